"""Random programs of `tilecheck.host` on the fake GPU, judged by an oracle that knows nothing of it.

Every step is drawn from a seed: work on streams, events, waits, copies, touches of the host, pieces of arrays,
drops, graphs, blocks that update their inputs, and dependent launches. The programs keep no
order themselves; the library refuses steps that are not in order. Then

- the accepted steps show no hazard in any interleaving (`tilecheck.proof.interleavings`), give the results of
  the same steps one after the other, and touch no freed memory;
- each refusal is of a hazard that the oracle shows, with the same code;
- a write to captured memory is refused (TC423) unless it updates inputs; no other write is refused so.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
from collections import Counter
from collections.abc import Callable, Sequence
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
    updates: int = 0  # accepted writes of inputs of graphs
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


@dataclass(frozen=True)
class Touch:
    """What a step does with an array: the elements that it touches, and those that its footprint may reach."""

    exact: frozenset[int]
    reached: frozenset[int]
    write: bool


def touch(held: Held, *, write: bool, is_flat: bool = False) -> Touch:
    """A use of an array, by the addresses of its elements here. A flat kernel may reach what lies between."""
    values = held.values
    steps = (sum(i * s for i, s in zip(at, values.strides, strict=True)) for at in np.ndindex(*values.shape))
    exact = frozenset(values.ctypes.data + step for step in steps)
    between = frozenset(range(min(exact), max(exact) + 1, values.itemsize)) if is_flat else exact
    return Touch(exact, between, write)


@dataclass
class HeldGraph:
    graph: host.Graph[Any]
    steps: list[Callable[[], None]]
    touched: list[Touch]
    inputs: dict[str, Held]
    outputs: dict[str, Held]
    borrowed: list[Held] = field(default_factory=list)

    def owns(self, use: Touch, *, is_update: bool) -> tuple[bool, bool]:
        """Whether a use may not write some elements: of those that are touched, and of those in reach."""
        inputs: frozenset[int] = frozenset()
        for held in self.inputs.values() if is_update else ():
            inputs |= touch(held, write=False).exact
        exact = any(use.exact & mine.exact - inputs for mine in self.touched)
        return exact, any(use.reached & mine.reached - inputs for mine in self.touched)


@dataclass(frozen=True)
class Block:
    """A block whose work on a stream updates graphs."""

    stream: host.Stream
    graphs: tuple[HeldGraph, ...]

    def inputs(self) -> list[Held]:
        return [held for graph in self.graphs for held in graph.inputs.values()]


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
        self.touched: list[Touch] = []  # what they touch
        self.declared: list[Held] = []  # its inputs
        self.block: Block | None = None
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
                self.capture: 2, self.touch_by_host: 2, self.advance: 2, self.fill: 1, self.update: 2,
            }  # fmt: skip
            if self.rng.random() < 0.4:  # a graph from the start, whose inputs such blocks write
                often[self.update] = 12
                self.capture()
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

    def attempt(
        self,
        run: Callable[[], object],
        *effects: Callable[[], None],
        touched: Sequence[Touch] = (),
        stream: host.Stream | None = None,
        updated: HeldGraph | None = None,
    ) -> bool:
        """Do a step. A refused step must be a hazard; an accepted step takes effect.

        Args:
            run: the step.
            effects: what it does to the values, in order. One that is refused behind its first part has the
                effect of that.
            touched: what it touches.
            stream: the stream that its work is on.
            updated: the graph that it updates by `Graph.update`.
        """
        before = self.recorder.refusals
        owned = self.owned(touched, stream, updated)
        try:
            run()
        except HostRefused as error:
            if error.code == "TC423" and touched and not any(owned):
                self.outcome.wrong.append(f"no graph has captured what is refused: {error}")
            self.refused(error, before)
            if error.partial:
                effects[0]()
            return False
        self.outcome.accepted += 1
        if owned[0]:
            self.outcome.wrong.append("accepted: TC423 of a write of what a graph has captured")
        for effect in effects:
            if self.captured is None:
                effect()
            else:
                self.captured.append(effect)
        if self.captured is not None:
            self.touched += touched
        elif any(graph.owns(use, is_update=False)[0] for graph in self.open() for use in touched if use.write):
            self.outcome.updates += 1
        return True

    def open(self) -> list[HeldGraph]:
        """The graphs that are not closed. A block keeps those that it updates."""
        kept = (*self.graphs, *(self.block.graphs if self.block is not None else ()))
        return [graph for graph in kept if graph.graph.state is not host.GraphState.CLOSED]

    def owned(
        self, touched: Sequence[Touch], stream: host.Stream | None, updated: HeldGraph | None
    ) -> tuple[bool, bool]:
        """Whether a step writes what a graph owns and the step does not update: by elements, and by reach."""
        if self.captured is not None:
            return False, False
        block = self.block
        in_block = block.graphs if block is not None and stream == block.stream and updated is None else ()
        found = [
            graph.owns(use, is_update=graph is updated or graph in in_block)
            for graph in self.open()
            for use in touched
            if use.write
        ]
        return any(exact for exact, _ in found), any(reach for _, reach in found)

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

    def may_update(self, held: Held) -> bool:
        """Whether the work of a block may write an array."""
        assert self.block is not None
        return not any(self.owned([touch(held, write=True)], self.block.stream, None))

    # ---- operands --------------------------------------------------------------------------------------------

    def stream(self) -> host.Stream:
        if self.captured is not None:
            return self.rng.choice(self.forked)
        if self.block is not None and self.rng.random() < 0.8:
            return self.block.stream
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

    def operands(self, count: int, written: Held | None = None) -> list[Held]:
        """Arrays of one shape, for a step that writes the last of them; none if there are too few."""
        written = written or self.written()
        if written is None:
            return []
        alike = [held for held in self.apart(written) if held.values.shape == written.values.shape]
        alike.sort(
            key=lambda held: not any(held is other for other in self.declared)
        )  # a graph reads its inputs
        return [*alike[: count - 1], written] if len(alike) >= count - 1 else []

    def written(self) -> Held | None:
        """An array for a step to write: in a block mostly one that is an input, or meets one."""
        if self.captured is None and self.block is not None and self.rng.random() < 0.8:
            inputs = self.block.inputs()
            meeting = [held for held in (*self.arrays, *inputs) if any(map(held.meets, inputs))]
            if self.rng.random() < 0.7:
                meeting = [held for held in meeting if held.view.moved is None and self.may_update(held)]
            return self.rng.choice(meeting) if meeting else None
        written = self.rng.choice(self.arrays)
        if self.captured is None and written.view.storage.graphs and self.rng.random() < 0.8:
            return None  # mostly refused, whatever the order
        return written

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

    def overtake(self) -> None:
        """A launch, on memory of no graph, that may end before the work in front of it on the stream."""
        free = [held for held in self.arrays if not held.view.storage.graphs and held.view.moved is None]
        stream = self.block.stream if self.block is not None else self.stream()
        if free:
            operands = self.operands(2, self.rng.choice(free))
            self._launch(self.never, dependent=True, operands=operands, stream=stream)

    def _launch(
        self,
        body: Body,
        *,
        dependent: bool,
        operands: list[Held] | None = None,
        stream: host.Stream | None = None,
    ) -> None:
        operands = self.operands(body.reads + 1) if operands is None else operands
        if not operands:
            return
        stream, order = stream or self.stream(), self.ordering()
        views = [held.view for held in operands]
        kernel, eager = body.kernel, self.rng.random() < 0.5
        is_flat = body.kernel.record.language == "triton"
        self.attempt(
            lambda: (
                host.enqueue(stream, kernel, (1,), views, dependent=dependent, order=order)
                if eager
                else host.launch(kernel, (1,), views, dependent=dependent).submit(stream, order=order)
            ),
            partial(body.effect, *(held.values for held in operands)),
            touched=[touch(held, write=held is operands[-1], is_flat=is_flat) for held in operands],
            stream=stream,
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
            touched=[touch(to, write=True), touch(source, write=False)],
            stream=stream,
        )

    def fill(self) -> None:
        """A fill, perhaps with a launch or copy behind it in one operation; or a call of the user's code."""
        held, stream, order = self.written(), self.stream(), self.ordering()
        if held is None:
            return
        value, kind = float(self.rng.randrange(9)), self.rng.random()
        effects, touched = [partial(held.values.fill, value)], [touch(held, write=True)]
        makes = [partial(host.fill, held.view, value)]
        others = self.operands(self.rng.choice((1, 2)))
        if self.captured is None and kind < 0.2:
            fill = partial(self.kit.torch_fill, value=value)
            makes = [partial(host.call, fill, writes=[held.view])]
        elif self.captured is None and kind < 0.7 and others and not any(map(held.meets, others)):
            views = [other.view for other in others]
            if len(others) == 1 or views[0].region.layout != views[1].region.layout or self.rng.random() < 0.3:
                body = self.waiting[2 - len(others)]
                makes.append(partial(host.launch, body.kernel, (1,), views, dependent=self.rng.random() < 0.5))
                effects.append(partial(body.effect, *(other.values for other in others)))
            else:
                makes.append(partial(host.copy, views[1], views[0]))
                effects.append(partial(np.copyto, others[1].values, others[0].values))
            touched += [touch(other, write=other is others[-1]) for other in others]
        self.attempt(
            lambda: host.zip(*(make() for make in makes)).submit(stream, order=order),
            *effects,
            touched=touched,
            stream=stream,
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

    def touch_by_host(self) -> None:
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
        if held.view.moved is not None or hasattr(held.view, "partition"):
            return
        cut = (SIZE // 2,) if held.values.ndim == 1 else self.rng.choice(((2, 2), (4, 1)))
        parts = host.partition(held.view, cut)
        held.view = parts.whole
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
                effect, touched = partial(held.values.fill, 3.0), [touch(held, write=True)]
                if self.attempt(lambda: held.view.tensor(order=order), effect, touched=touched):
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
            dict(zip(names, (held for held in self.apart() if held.view.moved is None), strict=False))
            for names in (("input", "other")[: self.rng.choice((1, 1, 2))], ("output",))
        )
        if self.graphs and self.rng.random() < 0.4:  # those of another graph
            known = self.rng.choice(self.graphs).inputs
            inputs = {name: held for name, held in known.items() if held.view.moved is None}
        first = self.rng.choice((None, *self.streams))
        scope = host.capture(first, inputs={name: held.view for name, held in inputs.items()})
        self.captured, self.touched = steps, touched = [], []
        self.declared = list(inputs.values())
        try:
            with scope:
                self.forked = [scope.stream]
                for _ in range(self.rng.randrange(1, 6)):
                    step = [self.launch, self.dependent] * 4
                    step += [self.transfer, self.fill, self.fork, self.fork]
                    self.rng.choice(step)()
                for other in self.forked[1:]:
                    self.forked[0].wait(other)
                for name, held in outputs.items():
                    scope.output(name, held.view)
        finally:
            self.captured, self.forked, self.declared = None, [], []
        self.graphs.append(HeldGraph(scope.graph, steps, touched, inputs, outputs))

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
            source, (name, to) = self.rng.choice(self.arrays), self.rng.choice([*held.inputs.items()])
            fits = source.values.shape == to.values.shape
            self.attempt(
                lambda: held.graph.update({name: source.view}, stream, order=order),
                partial(np.copyto, to.values, source.values),
                touched=[touch(to, write=True), touch(source, write=False)] if fits else (),
                updated=held,
            )
        elif kind < 0.9 and held.outputs:
            of = held.outputs["output"].values
            self.attempt(lambda: held.borrowed.append(Held(held.graph.output("output"), of)))
        elif held.borrowed:
            source = self.rng.choice(held.borrowed)
            outs = [h for h in self.apart(source) if h.view.region.layout == source.view.region.layout]
            if outs:
                self._copy(host.copy, outs[0], source, stream)

    def update(self) -> None:
        """A block whose work updates one graph or two, and perhaps a launch of one behind it."""
        if not self.graphs or self.captured is not None or self.block is not None:
            return
        graphs = tuple(self.rng.sample(self.graphs, min(len(self.graphs), self.rng.choice((1, 1, 2)))))
        stream = self.stream()
        often = [self.launch, self.dependent, self.fill, self.fill] * 2 + [self.transfer, self.overtake]
        seldom = [self.replay, self.replay, self.order, self.drop, self.capture, self.advance, self.leave]
        with contextlib.suppress(_Left), host.updating(stream, *(held.graph for held in graphs)):
            self.block = Block(stream, graphs)
            try:
                for _ in range(self.rng.randrange(1, 6)):
                    self.rng.choice((*often, *often, *seldom))()
                if self.rng.random() < 0.3:
                    self.overtake()
            finally:
                self.block = None
        held = self.rng.choice(graphs)
        if held in self.graphs and self.rng.random() < 0.5:
            stream = self.rng.choice((stream, self.stream(), self.stream()))
            self.attempt(partial(held.graph.launch, stream), *held.steps)

    def leave(self) -> None:
        raise _Left


class _Left(Exception):
    """A block that raises."""


def check(seed: int, steps: int = STEPS) -> Outcome:
    """Run the program of a seed."""
    return Program(seed).run(steps)
