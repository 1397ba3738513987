"""What the host may do with memory, graphs and values at each action, whatever the device does meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilecheck.dataclass import dataclass
from tilecheck.ir.host_program import (
    Action,
    Allocate,
    Back,
    Capture,
    Destroy,
    EndCapture,
    Forbidden,
    Free,
    Join,
    Keep,
    Move,
    Place,
    Replay,
    Touch,
    UseKept,
    Work,
)
from tilecheck.proof.interleavings.boxes import Access, Instance, corner, intersection, left_over
from tilecheck.proof.interleavings.hazard import Hazard, Step, Verb
from tilecheck.proof.interleavings.host import Host


@dataclass(slots=True)
class _Kept:
    instance: Instance
    overwritten: int | None = None  # the first replay since that writes it


class Ownership:
    """Watches a host: `see` is called before the host does each action."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._moved: dict[Instance, tuple[int, str]] = {}
        self._pooled: dict[Instance, int] = {}  # given back to a pool that still is
        self._captures: dict[str, int] = {}  # those that go on
        self._kept: dict[str, _Kept] = {}
        self._written: list[Access] = []  # by work that runs, and by the host
        self._captured: list[tuple[int, str, Access]] = []  # writes that a graph keeps for later

    def see(self, index: int, action: Action) -> Iterator[Hazard]:
        """The hazards of the action."""
        for code, first, memory, element, exact in self._see(index, action):
            schedule = tuple(Step(Verb.HOST, (step,)) for step in range(index + 1))
            yield Hazard(code, first, index, memory, element, exact, schedule)

    def _see(self, index: int, action: Action) -> Iterator[_Found]:
        match action:
            case Work() | Touch():
                yield from self._use(index, action)
            case Allocate(memory=name):
                yield from self._allocate(name)
            case Free(memory=name):
                if self._host.memory(name).pool not in (None, *self._host.destroyed):
                    self._pooled.setdefault(self._host.instance(name), index)
            case Move(memory=name, into=into):
                moved = self._moved.setdefault(self._host.instance(name), (index, into))
                if moved[0] != index:
                    yield "TC412", moved[0], name, None, True
            case Back(memory=name):
                self._moved.pop(self._host.instance(name), None)
            case Keep(memory=memory, name=name):
                self._kept[name] = _Kept(self._host.instance(memory))
            case UseKept(name=name):
                kept = self._kept.get(name)
                if kept is not None and kept.overwritten is not None:
                    yield "TC426", kept.overwritten, kept.instance[0], None, True
            case Capture(graph=graph):
                yield from self._not_in_capture(graph)
                self._captures[graph] = index
            case Forbidden(what=what):
                yield from self._not_in_capture(what)
            case Join(stream=stream, event=event):
                yield from self._not_in_capture(stream or event or "")
            case Replay():
                yield from self._replay(index, action)
            case EndCapture(graph=graph):
                self._captures.pop(graph, None)
            case Destroy(graph=graph):
                # From here on this memory is the device's to hand out, and the machine has its next owner.
                of = {memory.name for memory in self._host.program.memories if memory.pool == graph}
                self._pooled = {i: step for i, step in self._pooled.items() if i[0] not in of}
            case _:
                pass

    def _not_in_capture(self, memory: str) -> Iterator[_Found]:
        if self._captures:
            yield "TC422", max(self._captures.values()), memory, None, True

    def _allocate(self, name: str) -> Iterator[_Found]:
        memory = self._host.memory(name)
        if memory.pool is None and memory.place is not Place.PAGEABLE:
            yield from self._not_in_capture(name)

    def _use(self, index: int, action: Work | Touch) -> Iterator[_Found]:
        if isinstance(action, Touch):
            graph, regions = None, [*action.footprint.regions()]
        else:
            graph = self._host.captured.get(action.stream)
            regions = [*action.before.regions(), *action.after.regions()]
        accesses = self._host.accesses(regions)
        yield from self._moved_away(action.name, accesses)
        for access in accesses:
            if access.instance in self._pooled:
                yield "TC413", self._pooled[access.instance], access.memory, corner(access.box), access.exact
            if graph is not None and self._host.memory(access.memory).place is Place.PAGEABLE:
                yield from self._not_in_capture(access.memory)
        writes = [access for access in accesses if access.write]
        if graph is None:
            yield from self._reads(accesses)
            self._written.extend(writes)
        else:
            self._captured.extend((index, graph, access) for access in writes)

    def _moved_away(self, by: str, accesses: Sequence[Access]) -> Iterator[_Found]:
        for access in accesses:
            moved, into = self._moved.get(access.instance, (None, ""))
            if moved is not None and into != by:
                yield "TC412", moved, access.memory, corner(access.box), access.exact

    def _reads(self, accesses: Sequence[Access], by: str = "") -> Iterator[_Found]:
        """Reads of elements that only work in other graphs has written, none of which was replayed."""
        for access in accesses:
            if access.write or self._host.memory(access.memory).handed_in:
                continue
            mine = [done for done in self._written if done.instance == access.instance]
            for index, graph, write in self._captured:
                if graph == by or write.instance != access.instance:
                    continue
                both = intersection(access.box, write.box)
                if both is None:
                    continue
                surely = left_over(both, (done.box for done in mine))
                missing = surely or left_over(both, (done.box for done in mine if done.exact))
                if missing:
                    exact = access.exact and write.exact and bool(surely)
                    yield "TC426", index, access.memory, corner(missing[0]), exact

    def _replay(self, index: int, action: Replay) -> Iterator[_Found]:
        graph = action.graph
        if graph in self._host.destroyed:
            yield "TC421", self._host.destroyed[graph], graph, None, True
            return
        outer = self._host.captured.get(action.stream)
        held = self._host.graphs.get(graph)
        for item in held.items if held else ():
            for name, bound in item.frozen:
                now = self._host.bound.get(name, bound)
                if now != bound:
                    yield "TC423" if name in self._host.program.by_name else "TC424", now, name, None, True
            yield from self._moved_away(graph, item.accesses)
            writes = [access for access in item.accesses if access.write]
            if outer is not None:
                self._captured.extend((index, outer, access) for access in writes)
                continue
            yield from self._reads(item.accesses, graph)
            self._written.extend(writes)
            for kept in self._kept.values():
                if kept.overwritten is None and any(w.instance == kept.instance for w in writes):
                    kept.overwritten = index
        if outer is None and held is not None:  # what this work may write, it has written or never does
            ran = {step for item in held.items for step in item.path}
            self._captured = [write for write in self._captured if write[0] not in ran]


# Code, first action, memory, element, exact.
_Found = tuple[str, int, str, "tuple[int, ...] | None", bool]
