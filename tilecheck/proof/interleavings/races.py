"""Pairs of work that touch one element at once, and the code of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tilecheck.ir.host_program import Place
from tilecheck.proof.interleavings.boxes import Access, Instance, corner, intersection
from tilecheck.proof.interleavings.hazard import Hazard
from tilecheck.proof.interleavings.host import Host
from tilecheck.proof.interleavings.machine import Machine, Part
from tilecheck.proof.interleavings.recording import Item, Kind


def races(host: Host) -> Iterator[Hazard]:
    """Each two parts that some state of the machine runs at once, with what they both touch."""
    items = host.device.items
    machine, plain = Machine(items, host.waits), Machine(items, host.waits, dependent=False)
    of_item = {part.item: part for part in plain.parts}
    for one, other in combinations(machine.parts, 2):
        if one.path == other.path:
            continue  # the two sides of one wait, or of one action
        # Memory that went from one owner of the pool to the other is not the next owner's outside of the pool.
        outside = Kind.NEXT_OWNER in {items[one.item].kind, items[other.item].kind}
        shared = list(_shared(one, other, {} if outside else host.taken))
        schedule = machine.together(one, other) if shared else None
        if schedule is None:
            continue
        level = next(k for k, (a, b) in enumerate(zip(one.path, other.path, strict=False)) if a != b)
        first, second = sorted((one.path[level], other.path[level]))
        early = plain.together(of_item[one.item], of_item[other.item]) is None
        for a, b in shared:
            code = _code(host, (items[one.item], items[other.item]), level, a, b) or (
                _launch_code(items[other.item], other) if early else "TC411"
            )
            both = intersection(a.box, b.box) if a.instance == b.instance else None
            element = None if both is None else corner(both)
            yield Hazard(code, first, second, a.memory, element, a.exact and b.exact, schedule)


def _shared(
    one: Part, other: Part, taken: Mapping[Instance, frozenset[Instance]]
) -> Iterator[tuple[Access, Access]]:
    for a in one.accesses:
        for b in other.accesses:
            if not (a.write or b.write):
                continue
            if a.instance == b.instance:
                if intersection(a.box, b.box) is not None:
                    yield a, b
            # Memory that a pool handed out again: where the one lies in the other is not known.
            elif b.instance in taken.get(a.instance, ()) or a.instance in taken.get(b.instance, ()):
                yield a, b


def _code(host: Host, items: Sequence[Item], level: int, a: Access, b: Access) -> str | None:
    """The code that follows from what the two items are; None if both are plain work."""
    kinds = [item.kind for item in items]
    replayed = [len(item.path) > level + 1 for item in items]
    if Kind.NEXT_OWNER in kinds:
        if any(replayed):
            return "TC421"
        device = host.memory(a.memory).place is Place.DEVICE
        # `items` stand in the order of the program: the use was enqueued before the memory was freed.
        return "TC415" if not device and items[1].kind is Kind.NEXT_OWNER else "TC413"
    if Kind.CALLER_AFTER in kinds:
        return "TC414"
    if Kind.TOUCH in kinds:
        return "TC415"
    if all(replayed):
        return "TC425"
    return None if a.instance == b.instance else "TC413"


def _launch_code(item: Item, part: Part) -> str:
    """The code where the two would be ordered if no launch started before the one before it has ended."""
    if not part.early:
        return "TC433"
    return "TC431" if item.waits else "TC432"
