"""The findings of host functions in words: what the two steps do, why nothing orders them, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.dataclass import dataclass
from tilecheck.findings.kernels import rule_name
from tilecheck.ir.host_program import (
    Action,
    Allocate,
    Capture,
    Destroy,
    Forbidden,
    Free,
    HostProgram,
    Join,
    Keep,
    Move,
    Rebind,
    Replay,
    Touch,
    UseKept,
    Work,
)
from tilecheck.model import Diagnostic, Related, Severity, Site, Witness
from tilecheck.proof.interleavings.judge import Confirmed


@dataclass(frozen=True, slots=True)
class Shown:
    """A confirmed finding of one path through a function."""

    program: HostProgram
    confirmed: Confirmed

    @property
    def key(self) -> tuple[object, ...]:
        """What tells two findings apart, whatever the path, the round of a loop, and the memory."""
        return self.confirmed.finding.code, self.places

    @property
    def places(self) -> tuple[Site, ...]:
        """The place of the finding, and the other one if the text has two."""
        found = [self.site(index) for index in (self.second, self.first)]
        return tuple(dict.fromkeys(site for site in found if site is not None)) or (self.program.site,)

    def site(self, index: int) -> Site | None:
        """Where a step stands: the caller's use at the return; None for what the caller did before."""
        action = self.action(index)
        if action is None:
            return self.program.end if index >= 0 else None
        return action.site

    @property
    def first(self) -> int:
        return self.confirmed.finding.first

    @property
    def second(self) -> int:
        return self.confirmed.finding.second

    def action(self, index: int) -> Action | None:
        """An action; None for what the caller does."""
        return self.program.actions[index] if 0 <= index < len(self.program.actions) else None


def diagnostic(found: Sequence[Shown]) -> Diagnostic:
    """One finding for what several paths, rounds or memories show of the same two places."""
    shown = found[0]
    code = shown.confirmed.finding.code
    deeds = _Deeds(shown, tuple(dict.fromkeys(one.confirmed.finding.memory for one in found)))
    place, *others = shown.places
    return Diagnostic(
        code=code,
        name=rule_name(code),
        severity=Severity.ERROR,
        message=f"in `{shown.program.function}`, {deeds.message()}",
        site=place,
        label=deeds.of(shown.second if shown.site(shown.second) is not None else shown.first),
        related=tuple(Related(site, deeds.of(shown.first)) for site in others),
        witness=_witness(shown),
        notes=deeds.notes(),
        help=deeds.help(),
    )


def _witness(shown: Shown) -> Witness | None:
    """The sizes with which the interleavings were explored, and the element that both steps touch."""
    values: dict[str, int | list[int]] = {s.name: v for s, v in shown.confirmed.values.items()}
    if not values:
        return None
    finding = shown.confirmed.finding
    return Witness("order", (), (), values, finding.memory, finding.meeting.element)


@dataclass(frozen=True, slots=True)
class _Deeds:
    """Words for the two steps of a finding and what they touch."""

    shown: Shown
    memories: tuple[str, ...]

    @property
    def memory(self) -> str:
        return " and ".join(f"`{name}`" for name in self.memories)

    def message(self) -> str:
        shown = self.shown
        first, second = (self.of(index) for index in (shown.first, shown.second))
        match shown.confirmed.finding.code:
            case "TC411" | "TC425":
                return f"{second}, and nothing orders that after this: {first}"
            case "TC413" if isinstance(shown.action(shown.first), Free | Destroy):
                return f"{second}, which was freed before"
            case "TC413":
                return f"{self.memory} is freed, and nothing orders its next owner after this: {first}"
            case "TC414":
                return f"{first}, and nothing orders that before the caller goes on"
            case "TC415" if isinstance(shown.action(shown.second), Free):
                return f"{self.memory} is freed while a copy may still use it: {first}"
            case "TC415":
                return f"{second}, and nothing makes the host wait for this: {first}"
            case "TC412":
                return f"{second}, which was moved away before"
            case "TC421" | "TC422" | "TC423" | "TC424" | "TC426":
                return self._of_graph()
            case _:
                return self._of_dependent()

    def _of_graph(self) -> str:
        shown = self.shown
        first, second = (self.of(index) for index in (shown.first, shown.second))
        match shown.confirmed.finding.code, shown.action(shown.first):
            case "TC421", Destroy(graph=graph) if isinstance(shown.action(shown.second), Replay):
                return f"graph `{graph}` is replayed after it was released"
            case "TC421", Free() | Destroy():
                return f"{second}, which uses {self.memory} after it was freed"
            case "TC421", _:
                return f"{self.memory} is freed, and nothing orders its next owner after this: {first}"
            case "TC422", _:
                return f"{second} inside the capture of a graph"
            case "TC423", _:
                return f"{second}, which still uses the tensor that `{self.memories[0]}` was at the capture"
            case "TC424", _:
                return f"{second}, which keeps the value that `{self.memories[0]}` had at the capture"
            case "TC426", Replay():
                return f"{second}, which {first} has written again since it was kept"
            case _:
                return f"{second}, which only captured work has written, before any replay"

    def _of_dependent(self) -> str:
        first, second = (self.of(index) for index in (self.shown.first, self.shown.second))
        match self.shown.confirmed.finding.code:
            case "TC431":
                return f"{second} before it waits, and this may still run: {first}"
            case "TC432":
                return f"{second} without a wait, and this may still run: {first}"
            case _:
                return f"{second}, and a launch between that does not wait leaves this running: {first}"

    def of(self, index: int) -> str:
        """What one of the two steps does."""
        action = self.shown.action(index)
        match action:
            case None if index < 0:
                return f"the caller's work on {self.stream(self.shown.program.caller)} makes {self.memory}"
            case None:
                return f"the caller uses {self.memory}"
            case Work(name=name, stream=stream):
                return f"`{name}` on {self.stream(stream)} {self.touches(action)}"
            case Replay(graph=graph, stream=stream):
                return f"the replay of graph `{graph}` on {self.stream(stream)}"
            case Touch(name=name):
                return f"the host {self.touches(action)} (`{name}`)"
            case Free(memory=memory):
                return f"`{memory}` is freed"
            case Destroy(graph=graph):
                return f"graph `{graph}` is released"
            case Move(memory=memory, into=into):
                return f"`{memory}` moves into `{into}`"
            case Rebind(name=name):
                return f"`{name}` gets another value"
            case Keep(name=name) | UseKept(name=name):
                return f"the kept result `{name}` is used"
            case Capture(graph=graph):
                return f"graph `{graph}` is captured"
            case Forbidden(what=what, why=why):
                return f"`{what}`, {why}," if why else f"`{what}`"
            case Join():
                return "the host waits"
            case Allocate(memory=memory):
                return f"`{memory}` is allocated outside the graph's pool"
            case _:
                return "this step"

    def touches(self, action: Work | Touch) -> str:
        """What a step does to the memories of the finding: ``writes `out` and reads `x` ``."""
        parts = (action.footprint,) if isinstance(action, Touch) else (action.before, action.after)
        written = {region.memory for part in parts for region in part.writes}
        groups = {
            "writes": [name for name in self.memories if name in written],
            "reads": [name for name in self.memories if name not in written],
        }
        listed = ((verb, " and ".join(f"`{n}`" for n in names)) for verb, names in groups.items() if names)
        return " and ".join(f"{verb} {names}" for verb, names in listed)

    def stream(self, name: str) -> str:
        if name == self.shown.program.caller:
            return "the current stream"
        return name if name.startswith("the ") else f"stream `{name}`"

    # ---- what to do ----------------------------------------------------------------------------------------

    def notes(self) -> tuple[str, ...]:
        if self.shown.confirmed.finding.code == "TC414" and self.shown.program.function:
            return ("the caller goes on with the stream that was current when the function was called",)
        return ()

    def help(self) -> str:
        """The change that makes the pair safe."""
        shown = self.shown
        first, second = shown.action(shown.first), shown.action(shown.second)
        streams = [getattr(action, "stream", "") or shown.program.caller for action in (first, second)]
        match shown.confirmed.finding.code:
            case "TC411" | "TC425":
                waiting, other = _expression(shown, streams[1]), _expression(shown, streams[0])
                return f"call `{waiting}.wait_stream({other})` before"
            case "TC412":
                return "use what the operation gives back"
            case "TC413" | "TC421" if isinstance(second, Free) and isinstance(first, Work):
                stream = _expression(shown, streams[0])
                return f"call `{self.memories[0]}.record_stream({stream})`, or let its own stream wait first"
            case "TC413":
                return "free it after its last use"
            case "TC414":
                caller = _expression(shown, shown.program.caller)
                return (
                    f"call `{caller}.wait_stream({_expression(shown, streams[0])})` before the function returns"
                )
            case "TC415":
                return f"call `{_expression(shown, streams[0])}.synchronize()` before"
            case code:
                return _HELP[code]


def _expression(shown: Shown, stream: str) -> str:
    """The Python expression for a stream."""
    return "torch.cuda.current_stream()" if stream == shown.program.caller else stream


_HELP = {
    "TC421": "keep the memory, and the graph, for as long as the graph is replayed",
    "TC422": "move it out of the capture",
    "TC423": "copy the new values into the captured tensor with `copy_`, or capture again",
    "TC424": "keep the number in device memory and update it before each replay, or capture again",
    "TC426": "replay the graph first, and `clone` a result that has to outlive the next replay",
    "TC431": "wait in the kernel before this access, or launch it without programmatic dependent launch",
    "TC432": "let every program of the kernel wait, or launch it without programmatic dependent launch",
    "TC433": "let the kernel of the launch between wait, or launch that without programmatic dependent launch",
}
