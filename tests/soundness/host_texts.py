"""Plans of host functions as Python: PyTorch's streams, events and graphs, and launches of Triton kernels."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from soundness_host_kernels import BLOCK, HEAD, Kernel
from soundness_host_plans import (
    MAIN,
    WHOLE,
    Allocate,
    Capture,
    Delete,
    HostTouch,
    HostWait,
    Keep,
    Launch,
    Loop,
    Plan,
    Rebind,
    Record,
    RecordStream,
    Replay,
    SetNumber,
    Step,
    Update,
    WaitEvent,
    WaitStream,
    all_steps,
)

_ROUND = "[i % 2]"


@dataclass(frozen=True)
class Style:
    """Ways to say the same."""

    main_is_named: bool = True
    events_in_context: bool = False  # `with torch.cuda.stream(s): event.record()`
    events_by_stream: bool = False  # `s.record_event(event)`
    annotated: bool = False
    imported: bool = False  # `from torch.cuda import Stream`
    has_helpers: bool = False  # a function for each kernel, which launches it

    @classmethod
    def drawn(cls, rng: random.Random) -> Style:
        return cls(*(rng.random() < share for share in (0.6, 0.4, 0.3, 0.4, 0.3, 0.3)))


def module(functions: dict[str, Plan], style: Style) -> str:
    """A module with the kernels of all plans and a function for each."""
    kernels = {
        step.kernel: None for p in functions.values() for step in all_steps(p.steps) if isinstance(step, Launch)
    }
    used = sorted(kernels, key=_name)
    head = HEAD + "from torch.cuda import CUDAGraph, Event, Stream, current_stream\n" * style.imported
    parts = [head, *(kernel.text() for kernel in used), *(map(_helper, used) if style.has_helpers else ())]
    return "\n\n".join((*parts, *(_Function(plan, style).text(name) for name, plan in functions.items())))


def _name(kernel: Kernel) -> str:
    return kernel.name


def _helper(kernel: Kernel) -> str:
    """A function that launches a kernel."""
    given = ", ".join((*kernel.arrays, "n", *["factor"] * kernel.does.number))
    launch = f"{kernel.name}[(triton.cdiv(n, {BLOCK}),)]({given}, BLOCK={BLOCK}, launch_pdl=dependent)"
    return f"def run_{kernel.name}({given}, dependent=False):\n    {launch}\n"


@dataclass
class _Function:
    """Writes one function."""

    plan: Plan
    style: Style

    def text(self, name: str) -> str:
        parameters = [f"{p}: torch.Tensor" if self.style.annotated else p for p in self.plan.handed]
        loops = any(isinstance(step, Loop) for step in self.plan.steps)
        header = f"def {name}({', '.join([*parameters, *['rounds: int'] * loops])}):"
        lines = [*self.checks(), *self.declared(), *self.block(self.plan.steps)]
        found = [f"torch.stack({name})" if name in self.lists() else name for name in self.plan.returned]
        return "\n".join([header, *(f"    {line}" for line in (*lines, f"return {', '.join(found)}"))]) + "\n"

    # ---- what comes first ------------------------------------------------------------------------------------

    def checks(self) -> Iterator[str]:
        first, *others = self.plan.handed
        yield f"assert {' and '.join(f'{name}.is_contiguous()' for name in self.plan.handed)}"
        if self.plan.size is not None:
            yield f"assert {' and '.join(f'{name}.shape == ({self.plan.size},)' for name in self.plan.handed)}"
            return
        if others:
            yield f"assert {' and '.join(f'{name}.shape == {first}.shape' for name in others)}"
        yield f"n = {first}.numel()"

    def declared(self) -> Iterator[str]:
        """Streams, events, graphs and lists."""
        steps = list(all_steps(self.plan.steps))
        streams = dict.fromkeys(
            name
            for step in steps
            for name in (getattr(step, field, "") for field in ("stream", "waiter", "waited"))
            if name not in {"", MAIN}
        )
        cuda = "" if self.style.imported else "torch.cuda."
        if self.style.main_is_named:
            yield f"main = {cuda}current_stream()"
        yield from (f"{name} = {cuda}Stream()" for name in streams)
        for event in dict.fromkeys(
            s.event for s in steps if isinstance(s, Record | WaitEvent | HostWait) and s.event
        ):
            new = f"{cuda}Event()"
            ring = event.endswith(_ROUND)
            yield f"{event.removesuffix(_ROUND)} = {f'[{new}, {new}]' if ring else new}"
        yield from (f"{step.graph} = {cuda}CUDAGraph()" for step in steps if isinstance(step, Capture))
        yield from (f"{name} = []" for name in self.lists())

    def lists(self) -> dict[str, None]:
        return dict.fromkeys(s.results for s in all_steps(self.plan.steps) if isinstance(s, Keep))

    # ---- steps -----------------------------------------------------------------------------------------------

    def block(self, steps: tuple[Step, ...]) -> Iterator[str]:
        """The lines of steps; what follows one another on one side stream is in one context."""
        current = MAIN
        for step in steps:
            stream = self.context(step)
            if stream not in {MAIN, current}:
                yield f"with torch.cuda.stream({stream}):"
            current = stream
            indent = "" if stream == MAIN else "    "
            yield from (indent + line for line in self.lines(step))

    def context(self, step: Step) -> str:
        """The stream that has to be the current one."""
        in_context = (Allocate, Launch, Update, Replay)
        if isinstance(step, in_context):
            return step.stream
        by_stream = self.style.events_by_stream and isinstance(step, Record)
        if self.style.events_in_context and isinstance(step, Record | WaitEvent) and not by_stream:
            return step.stream
        return MAIN

    def lines(self, step: Step) -> Iterator[str]:
        match step:
            case Launch():
                yield self.launch(step)
            case Loop(steps=steps):
                yield "for i in range(rounds):"
                yield from (f"    {line}" for line in self.block(steps))
            case Capture(graph=graph, steps=steps):
                yield f"with torch.cuda.graph({graph}):"
                yield from (f"    {line}" for line in self.block(steps))
            case _:
                yield self.line(step)

    def line(self, step: Step) -> str:
        match step:
            case Allocate(buffer=buffer, made=made):
                return f"{buffer} = {made.format(n=self.plan.size or 'n', first=self.plan.handed[0])}"
            case Update(buffer=buffer, method=method, source=source):
                later = ", non_blocking=True" if step.asynchronous else ""
                return f"{buffer}.{method}({source}{later})" if source else f"{buffer}.{method}"
            case WaitStream(waiter=waiter, waited=waited):
                return f"{self.stream(waiter)}.wait_stream({self.stream(waited)})"
            case Record(event=event, stream=stream):
                if self.style.events_by_stream:
                    return f"{self.stream(stream)}.record_event({event})"
                return f"{event}.record({'' if self.style.events_in_context else self.stream(stream)})"
            case WaitEvent(event=event, stream=stream):
                if self.style.events_in_context:
                    return f"{event}.wait()"
                return f"{self.stream(stream)}.wait_event({event})"
            case HostWait(stream=stream, event=event):
                waited = event or (self.stream(stream) if stream else "torch.cuda")
                return f"{waited}.synchronize()"
            case HostTouch(buffer=buffer, write=write):
                return f"{buffer}.fill_(1.0)" if write else f"values = {buffer}.tolist()"
            case RecordStream(buffer=buffer, stream=stream):
                return f"{buffer}.record_stream({self.stream(stream)})"
            case Delete(buffer=buffer):
                return f"del {buffer}"
            case Replay(graph=graph):
                return f"{graph}.replay()"
            case SetNumber(name=name, value=value):
                return f"{name} = {value}"
            case Rebind(buffer=buffer, other=other):
                return f"{buffer} = {other}"
            case Keep(results=results, buffer=buffer, copied=copied):
                return f"{results}.append({buffer}{'.clone()' if copied else ''})"
            case _:
                raise AssertionError(step)

    def stream(self, name: str) -> str:
        if name != MAIN or self.style.main_is_named:
            return name
        return "current_stream()" if self.style.imported else "torch.cuda.current_stream()"

    def launch(self, step: Launch) -> str:
        """All buffers of a launch are as long as each other."""
        size = self.plan.size
        first, last = step.arguments[0].quarters
        count: int | str = "n" if size is None else size * (last - first) // 4
        grid = f"triton.cdiv({count}, {BLOCK})" if size is None else -(-int(count) // BLOCK)
        arguments = [
            part.buffer
            if part.quarters == WHOLE or size is None
            else f"{part.buffer}[{size * part.quarters[0] // 4}:{size * part.quarters[1] // 4}]"
            for part in step.arguments
        ]
        number = [step.number] * step.kernel.does.number
        given = ", ".join((*arguments, str(count), *number))
        if self.style.has_helpers:
            return f"run_{step.kernel.name}({given}{', dependent=True' * step.dependent})"
        dependent = ", launch_pdl=True" * step.dependent
        return f"{step.kernel.name}[({grid},)]({given}, BLOCK={BLOCK}{dependent})"
