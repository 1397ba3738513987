"""Races: two borrows of one memory that no order keeps apart, and the rule that each of them breaks."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.graph import AFTER, Borrow, HostGraph, Order, parting
from tilecheck.analysis.hosts.regions import APART, Answer, Meeting, Overlap
from tilecheck.dataclass import dataclass
from tilecheck.ir.host_program import Place, Work


@dataclass(frozen=True, slots=True)
class Races:
    """Every two borrows of one memory, one of them mutable, that may be held at once (H1, H3-H5, G5, P1-P3)."""

    graph: HostGraph
    order: Order
    plain: Order  # as if no launch started before the one before it has ended
    overlap: Overlap

    def found(self) -> Iterator[HostFinding]:
        for memory in self.graph.of_kind("memory"):
            borrows = self._borrows(memory)
            for number, first in enumerate(borrows):
                for second in borrows[number + 1 :]:
                    yield from self._race(memory, first, second, again=False)
            for other, _ in self.graph.edges_from(memory, "moves"):
                if self.graph.node(other)["kind"] == "memory":
                    # The next owner gets what a pool handed out again from its last owner.
                    used = [b for b in borrows if self.graph.node(b.holder)["kind"] != "free"]
                    for first in used:
                        for second in self._borrows(other):
                            yield from self._race(memory, first, second, again=True)

    def _borrows(self, memory: str) -> list[Borrow]:
        """In the order of the program. What is captured runs in the replays alone."""
        found = (b for b in self.graph.borrows(memory) if self.graph.node(b.holder)["kind"] != "captured")
        return sorted(found, key=lambda borrow: borrow.path)

    def _race(self, memory: str, first: Borrow, second: Borrow, *, again: bool) -> Iterator[HostFinding]:
        """The finding for two borrows: of one memory, or of two where a pool handed memory out `again`."""
        if not (first.mutable or second.mutable) or first.path == second.path:
            return  # two parts of one launch are judged in its kernel
        if self.order.ordered(first.holder, second.holder):
            return
        meeting = self._anywhere(first, second) if again else self.overlap(first.region, second.region)
        if meeting.answer is Answer.APART:
            return
        if second.path < first.path:
            first, second = second, first
        level = parting(first.path, second.path)
        replayed = [len(borrow.path) > level + 1 for borrow in (first, second)]
        code = self._code(self.graph.memory(memory).place, first.holder, second.holder, replayed)
        if code is None:
            code = "TC413" if again else self._dependent_code(first.holder, second.holder)
        yield HostFinding(
            code,
            first.path[level],
            second.path[level],
            first.region.memory,
            first.region.exact and second.region.exact,
            meeting,
            (first.holder, second.holder),
        )

    def _anywhere(self, first: Borrow, second: Borrow) -> Meeting:
        """Where one memory lies in the other is not known: they meet if neither region is empty."""
        found = [self.overlap(borrow.region, borrow.region) for borrow in (first, second)]
        return APART if APART in found else Meeting(Answer.MEET, found[0].values)

    def _code(self, where: Place, first: str, second: str, replayed: list[bool]) -> str | None:
        """The rule that follows from what the two are; None if both are work."""
        kinds = [self.graph.node(holder)["kind"] for holder in (first, second)]
        if "free" in kinds:
            if any(replayed):
                return "TC421"
            return "TC415" if where is not Place.DEVICE and kinds[1] == "free" else "TC413"
        if second == AFTER:
            return "TC414"
        if "step" in kinds:
            return "TC415"
        return "TC425" if all(replayed) else None

    def _dependent_code(self, first: str, second: str) -> str:
        """The rule that two pieces of work break: one of dependent launches if that alone keeps no order."""
        if not self.plain.ordered(first, second):
            return "TC411"
        action = self.graph.action(second)
        start = "start:" + second.partition(":")[2]
        if not second.startswith("before:") or self.graph.node(start)["overlaps"] is None:
            return "TC433"
        return "TC431" if isinstance(action, Work) and action.waits else "TC432"
