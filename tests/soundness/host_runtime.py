"""Random programs of `tilecheck.host` on the fake GPU, judged by an oracle that knows nothing of it.

Every step is drawn from a seed: work on streams, events, waits, copies, touches of the host, pieces of arrays,
drops, graphs, and dependent launches. Nothing keeps the steps in order; the library refuses what is not. Then

- what was accepted shows no hazard in any interleaving (`tilecheck.proof.interleavings`), gives what its steps
  give one after the other, and touches no memory that was freed;
- each refusal is of a hazard that the oracle shows, with the same code.
"""

from __future__ import annotations

import ctypes
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import host_fake_driver
import numpy as np
from host_kits import FakeKit

from tilecheck import host
from tilecheck.host import HostRefused
from tilecheck.ir import host_program as P
from tilecheck.jit.records import Waits
from tilecheck.proof.interleavings import hazards

SIZE = 8  # elements of an array
STEPS = 25
# Refusals that say nothing of interleavings: the discipline of handles and graphs.
DISCIPLINE = ("TC412", "TC422", "TC423")


@dataclass
class Outcome:
    """What one program showed. Mutable: counted as it runs."""

    seed: int
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    disciplined: Counter[str] = field(default_factory=Counter)
    approximate: int = 0  # refusals that rest on a region that may reach less than it says
    wrong: list[str] = field(default_factory=list)


@dataclass
class Held:
    """A handle, and what its array holds if every step so far has run; NaN where that is not known."""

    view: Any
    values: np.ndarray

    def meets(self, other: Held) -> bool:
        return bool(np.shares_memory(self.values, other.values))

    def found(self) -> np.ndarray:
        if isinstance(self.view, host.HostArray):
            data = ctypes.string_at(self.view.region.start, self.view.nbytes)
            return np.frombuffer(data, np.float32)
        return host_fake_driver.elements(self.view.array)


@dataclass
class HeldGraph:
    graph: host.Graph[Any]
    steps: list[Callable[[], None]]
    inputs: dict[str, Held]
    outputs: dict[str, Held]
    borrowed: list[Held] = field(default_factory=list)


@dataclass(frozen=True)
class Body:
    """A kernel, how many arrays it reads, and what it does to the values."""

    kernel: Any
    reads: int
    effect: Callable[..., None]


def _add(x: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, x + 1)


def _double(out: np.ndarray) -> None:
    np.copyto(out, 2 * out)


def _both(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, x + y)


class Program:
    """One random program while it runs."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.kit = FakeKit(seed, order=self.rng.choice(("refuse", "refuse", "refuse", "events")))
        self.kit.driver.polls_advance = self.rng.choice((0, 0, 1))
        self.outcome = Outcome(seed)
        self.arrays: list[Held] = []
        self.pinned: list[Held] = []
        self.graphs: list[HeldGraph] = []
        self.events: list[host.Event] = []
        self.captured: list[Callable[[], None]] | None = None  # steps of the graph that is captured
        self.forked: list[host.Stream] = []  # its streams
        kernel = self.kit.kernel
        self.waiting = [
            Body(kernel("add", "x out", _add, waits=Waits(True)), 1, _add),
            Body(kernel("double", "out", _double, waits=Waits(True)), 0, _double),
            Body(kernel("both", "x y out", _both, waits=Waits(True)), 2, _both),
            Body(kernel("flat", "x out", _add, language="triton", waits=Waits(True)), 1, _add),
        ]
        # Loads `y` before its wait.
        hasty = kernel(
            "hasty",
            "x y out",
            lambda x, y, out, loaded: np.copyto(out, x + loaded),
            early=lambda x, y, out: y.copy(),
            waits=Waits(True, reads=("y",)),
        )
        self.hasty = Body(hasty, 2, _both)
        self.never = Body(kernel("never", "x out", early=_add), 1, _add)

    def run(self, steps: int) -> Outcome:
        with host.using(self.kit.runtime), host.recording() as recorder:
            self.recorder = recorder
            self.streams = [host.stream() for _ in range(self.rng.choice((1, 2, 2, 3)))]
            for _ in range(self.rng.choice((2, 3, 4))):
                self.allocate()
                if self.rng.random() < 0.3:
                    self.partition()
            often = {
                self.launch: 8, self.dependent: 6, self.transfer: 3, self.order: 4, self.replay: 6,
                self.capture: 2, self.touch: 2, self.advance: 2,
            }  # fmt: skip
            seldom = [self.allocate, self.partition, self.drop, self.torch, self.shared]
            choices = [step for step, times in often.items() for _ in range(times)] + seldom
            for _ in range(steps):
                self.rng.choice(choices)()
            self.finish()
        return self.outcome

    # ---- judging ---------------------------------------------------------------------------------------------

    def finish(self) -> None:
        self.kit.driver.run_all()
        for held in (*self.arrays, *self.pinned):
            self.compare(held, "at the end")
        program = self.recorder.program()
        for hazard in hazards(program):
            if hazard.code == "TC426" and not hazard.exact:
                continue  # a write that may leave something out comes before the read
            actions = [str(program.actions[k]) for k in (hazard.first, hazard.second)]
            self.outcome.wrong.append(f"accepted: {hazard.code} of {' and '.join(actions)}")

    def compare(self, held: Held, when: str) -> None:
        found, known = held.found(), ~np.isnan(held.values)
        if not np.array_equal(found[known], held.values[known]):
            self.outcome.wrong.append(f"{when}: {found.tolist()} instead of {held.values.tolist()}")

    def attempt(self, run: Callable[[], object], *effects: Callable[[], None]) -> bool:
        """Do a step. What is refused must be a hazard; what is not has its effects."""
        before = self.recorder.refusals
        try:
            run()
        except HostRefused as error:
            self.refused(error, before)
            return False
        self.outcome.accepted += 1
        for effect in effects:
            if self.captured is None:
                effect()
            else:
                self.captured.append(effect)
        return True

    def refused(self, error: HostRefused, before: int) -> None:
        if self.recorder.refusals == before or error.code in DISCIPLINE:
            self.outcome.disciplined[error.code] += 1
            return
        program = self.recorder.refused_program()
        at = len(program.actions) - 1
        if self.captured is not None:  # the hazard is one of the graph's launch
            begun = [action for action in program.actions if isinstance(action, P.Capture)][-1]
            ended = P.EndCapture(begun.site, begun.graph), P.Replay(begun.site, begun.graph, "another stream")
            program = replace(program, actions=(*program.actions, *ended))
        found = [hazard for hazard in hazards(program) if at in (hazard.first, hazard.second)]
        if any(hazard.code == error.code and hazard.exact for hazard in found):
            self.outcome.refused[error.code] += 1
        elif any(not hazard.exact for hazard in found):
            self.outcome.approximate += 1
        else:
            shown = ", ".join(f"{h.code} of {h.first} and {h.second}" for h in found) or "none"
            self.outcome.wrong.append(f"the oracle shows {shown} where this is refused: {error}")

    # ---- operands --------------------------------------------------------------------------------------------

    def stream(self) -> host.Stream:
        if self.captured is not None:
            return self.rng.choice(self.forked)
        return self.rng.choice((*self.streams, host.current()))

    def ordering(self) -> str | None:
        return self.rng.choice((None, None, None, "events", "refuse"))

    def apart(self, *from_: Held) -> list[Held]:
        """Arrays that overlap neither one another nor some others."""
        found: list[Held] = []
        for held in self.rng.sample(self.arrays, len(self.arrays)):
            if not any(held.meets(other) for other in (*found, *from_)):
                found.append(held)
        return found

    def operands(self, count: int) -> list[Held]:
        """Arrays of one shape, for a step that writes the last of them; none if there are too few."""
        written = self.rng.choice(self.arrays)
        if self.captured is None and written.view.storage.graphs and self.rng.random() < 0.8:
            return []  # mostly refused, whatever the order
        alike = [held for held in self.apart(written) if held.values.shape == written.values.shape]
        return [*alike[: count - 1], written] if len(alike) >= count - 1 else []

    def flat(self) -> list[Held]:
        return [held for held in self.arrays if held.values.shape == (SIZE,)]

    # ---- the steps -------------------------------------------------------------------------------------------

    def allocate(self) -> None:
        if self.captured is not None or len(self.arrays) > 6:
            return
        value, shape = float(self.rng.randrange(4)), self.rng.choice(((SIZE,), (SIZE,), (4, 2)))
        is_empty = self.rng.random() < 0.2
        made: list[Any] = []
        operation = host.empty(shape) if is_empty else host.full(shape, value)
        if self.attempt(lambda: made.append(operation.submit(self.stream()))):
            self.arrays.append(Held(made[0], np.full(shape, np.nan if is_empty else value)))
        if not self.pinned and self.rng.random() < 0.3:
            self.pinned.append(Held(host.pinned(SIZE), np.full(SIZE, value)))
            self.pinned[0].view.assign([value] * SIZE)

    def launch(self) -> None:
        self._launch(self.rng.choice((*self.waiting, self.hasty, self.never)), dependent=False)

    def dependent(self) -> None:
        self._launch(self.rng.choice((*self.waiting, self.hasty, self.hasty, self.never)), dependent=True)

    def _launch(self, body: Body, *, dependent: bool) -> None:
        operands = self.operands(body.reads + 1)
        if not operands:
            return
        stream, order = self.stream(), self.ordering()
        views = [held.view for held in operands]
        kernel, eager = body.kernel, self.rng.random() < 0.5
        self.attempt(
            lambda: (
                host.enqueue(stream, kernel, (1,), views, dependent=dependent, order=order)
                if eager
                else host.launch(kernel, (1,), views, dependent=dependent).submit(stream, order=order)
            ),
            partial(body.effect, *(held.values for held in operands)),
        )

    def transfer(self) -> None:
        stream, kind = self.stream(), self.rng.random()
        flat = self.flat()
        if kind < 0.5 or not self.pinned or not flat:
            pair = self.operands(2)
            if pair and pair[0].view.region.layout == pair[1].view.region.layout:
                self._copy(host.copy, pair[1], pair[0], stream)
            return
        pinned, device = self.pinned[0], self.rng.choice(flat)
        if kind < 0.75:
            self._copy(lambda to, source: host.copy_to_device(source, to), device, pinned, stream)
        else:
            self._copy(lambda to, source: host.copy_to_host(source, to), pinned, device, stream)

    def _copy(self, make: Callable[[Any, Any], Any], to: Held, source: Held, stream: host.Stream) -> None:
        order = self.ordering()
        self.attempt(
            lambda: make(to.view, source.view).submit(stream, order=order),
            partial(np.copyto, to.values, source.values),
        )

    def order(self) -> None:
        kind, stream, other = self.rng.random(), self.stream(), self.stream()
        if kind < 0.3:
            self.events.append(stream.record())
        elif kind < 0.5 and self.events:
            event = self.rng.choice(self.events)
            self.attempt(lambda: stream.wait(event))
        elif kind < 0.8:
            self.attempt(lambda: stream.wait(other))
        elif kind < 0.9:
            self.attempt(stream.sync)
        elif kind < 0.95 and self.events:
            self.attempt(self.rng.choice(self.events).sync)
        else:
            self.attempt(host.synchronize)

    def touch(self) -> None:
        if not self.pinned or self.captured is not None:
            return
        held = self.pinned[0]
        if self.rng.random() < 0.5:
            value = float(self.rng.randrange(9))
            self.attempt(lambda: held.view.assign([value] * SIZE), partial(held.values.fill, value))
        elif self.attempt(held.view.tolist):
            self.compare(held, "read by the host")

    def partition(self) -> None:
        """Halves of an array, by rows or columns."""
        held = self.rng.choice(self.arrays)
        if held.view.moved is not None or held.values.base is not None:
            return
        cut = (SIZE // 2,) if held.values.ndim == 1 else self.rng.choice(((2, 2), (4, 1)))
        parts = host.partition(held.view, cut)
        for block in np.ndindex(*parts.grid):
            box = tuple(slice(i * n, (i + 1) * n) for i, n in zip(block, cut, strict=True))
            self.arrays.append(Held(parts[block], held.values[box]))

    def drop(self) -> None:
        kind = self.rng.random()
        if kind < 0.5 and len(self.arrays) > 2:
            del self.arrays[self.rng.randrange(len(self.arrays))]
        elif kind < 0.7 and self.graphs and self.captured is None:
            graph = self.graphs.pop(self.rng.randrange(len(self.graphs)))
            if self.rng.random() < 0.5:
                graph.graph.close()
        else:
            host.reap()

    def torch(self) -> None:
        """An array of the user's own, or one for the user's own code, and work that nobody else sees."""
        if self.captured is not None:
            return
        if len(self.arrays) > 3:
            held, order = self.rng.choice(self.arrays), self.ordering()
            with self.kit.on(self.stream()):
                if self.attempt(lambda: held.view.tensor(order=order), partial(held.values.fill, 3.0)):
                    self.kit.torch_fill(held.view.array, 3.0)
            return
        tensor = self.kit.array([1.0] * SIZE)
        with self.kit.on(self.stream()):
            self.kit.torch_fill(tensor, 3.0)
            self.arrays.append(Held(host.own(tensor), np.full(SIZE, 3.0)))

    def shared(self) -> None:
        """A shared operation with two readers on two streams."""
        if self.captured is not None:
            return
        operation, found = host.full(SIZE, 2.0).shared(), []
        for stream in (self.stream(), self.stream()):
            self.attempt(lambda stream=stream: found.append(operation.submit(stream)))
            if found and self.flat():
                source = Held(found[-1], np.full(SIZE, 2.0))
                self._copy(host.copy, self.rng.choice(self.flat()), source, stream)

    def advance(self) -> None:
        for _ in range(self.rng.randrange(6)):
            self.kit.driver.step()

    # ---- graphs ----------------------------------------------------------------------------------------------

    def capture(self) -> None:
        if self.captured is not None or len(self.graphs) > 2:
            return
        inputs, outputs = (
            dict(zip((name,), (held for held in self.apart() if held.view.moved is None), strict=False))
            for name in ("input", "output")
        )
        first = self.rng.choice((None, *self.streams))
        scope = host.capture(first, inputs={name: held.view for name, held in inputs.items()})
        self.captured = steps = []
        try:
            with scope:
                self.forked = [scope.stream]
                for _ in range(self.rng.randrange(1, 6)):
                    step = [self.launch] * 4 + [self.dependent] * 4 + [self.transfer, self.fork, self.fork]
                    self.rng.choice(step)()
                for other in self.forked[1:]:
                    self.forked[0].wait(other)
                for name, held in outputs.items():
                    scope.output(name, held.view)
        finally:
            self.captured, self.forked = None, []
        self.graphs.append(HeldGraph(scope.graph, steps, inputs, outputs))

    def fork(self) -> None:
        other = self.rng.choice(self.streams)
        if other not in self.forked:
            other.wait(self.rng.choice(self.forked))
            self.forked.append(other)

    def replay(self) -> None:
        if not self.graphs or self.captured is not None:
            return
        held, kind = self.rng.choice(self.graphs), self.rng.random()
        stream, order = self.stream(), self.rng.choice((None, None, "events"))
        if kind < 0.6:
            self.attempt(lambda: held.graph.launch(stream, order=order), *held.steps)
        elif kind < 0.75 and held.inputs:
            source = self.rng.choice(self.arrays)
            self.attempt(
                lambda: held.graph.update({"input": source.view}, stream, order=order),
                partial(np.copyto, held.inputs["input"].values, source.values),
            )
        elif kind < 0.9 and held.outputs:
            of = held.outputs["output"].values
            self.attempt(lambda: held.borrowed.append(Held(held.graph.output("output"), of)))
        elif held.borrowed:
            source = self.rng.choice(held.borrowed)
            outs = [h for h in self.apart(source) if h.view.region.layout == source.view.region.layout]
            if outs:
                self._copy(host.copy, outs[0], source, stream)


def check(seed: int, steps: int = STEPS) -> Outcome:
    """Run the program of a seed."""
    return Program(seed).run(steps)
