"""What the library does not see of graphs: values that a capture keeps and that change, results that the next
launch writes over, and work beside the library in a capture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from tilecheck.frontend.host_guards.frames import Frame, Read
from tilecheck.frontend.host_guards.kinds import Box
from tilecheck.frontend.host_guards.program import Program
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.scopes import loops_around
from tilecheck.frontend.host_guards.source_facts import MAKING
from tilecheck.model import Site

Why = tuple[Site, str]


def behind(frames: Iterable[Frame]) -> set[Frame]:
    """Functions, and those that they call."""
    found: set[Frame] = set()
    todo = list(frames)
    while todo:
        frame = todo.pop()
        if frame not in found:
            found.add(frame)
            todo += frame.facts.calls
    return found


def unseen(p: Program, live: Collection[Frame]) -> Iterator[Why]:
    """What the library does not see of the captures and launches of these functions."""
    captured = behind(
        [
            *(callee for frame in live for callee, inside in frame.facts.calls.items() if inside),
            *(frame for frame in live if frame.facts.captured),
        ]
    )
    yield from _raw(live, captured)
    if any(frame.facts.captured or frame.facts.has_capture for frame in live):
        yield from _elsewhere(live, captured)
        yield from _stale(p, live, captured)
    yield from _kept(live)


def _elsewhere(live: Collection[Frame], captured: Collection[Frame]) -> Iterator[Why]:
    """Code and operations that were made in other places than those that run them, perhaps in a capture."""
    for frame in live:
        for site in frame.facts.lazy:
            yield site, "when this runs, and in which capture, is not followed"
        for site, is_inside in frame.facts.early:
            if is_inside or frame in captured:
                yield site, "what this was given before the capture is not followed"


def _raw(live: Collection[Frame], captured: Collection[Frame]) -> Iterator[Why]:
    enqueued = behind(callee for frame in live for callee in frame.facts.enqueued)
    for frame in live:
        for site, text, inside in frame.facts.raw:
            if inside or frame in captured or frame in enqueued:
                yield site, f"work beside tilecheck.host while it enqueues or captures: `{text}`"


# ---- values that a graph keeps -----------------------------------------------------------------------------


def _stale(p: Program, live: Collection[Frame], captured: Collection[Frame]) -> Iterator[Why]:
    """Variables, attributes and containers that are read in a capture, and that change after it.

    A graph keeps the numbers and arrays that its work was given. An attribute that anything but the making of
    its object binds may change between capture and launch, and so may what an array of the host holds.
    """
    arrays = any(box is None for frame in p.frames.values() for box, _ in frame.facts.changes)
    for frame in live:
        for read in frame.facts.reads:
            if frame not in captured and read.within is None:
                continue
            if _changes(p, frame, read, arrays=arrays):
                yield read.site, f"a graph keeps what {_named(read)} is now, and other code changes it"


def _named(read: Read) -> str:
    match read.what:
        case str(name):
            return f"`{name}`"
        case (_, name):
            return f"`{name}`"
        case _:
            return "this"


def _changes(p: Program, frame: Frame, read: Read, *, arrays: bool) -> bool:
    """Whether what was read may change after the capture."""
    match read.what:
        case None:
            return arrays
        case str(name):
            owners = {one.node for owner in read.owners for one in names.lineage(p, owner)[0]}
            return any(store.of is None or store.of in owners for store in p.stores(name))
        case Box() as box:
            return any(
                changed == box and not _is_making(other) and _is_later(frame, read, other, node, box)
                for other in p.frames.values()
                for changed, node in other.facts.changes
            )
        case (holder, name):
            return _is_bound_later(frame, read, holder, name)


def _is_bound_later(frame: Frame, read: Read, holder: Frame, name: str) -> bool:
    bound = [*holder.names.bound.get(name, ()), *holder.names.changed.get(name, ())]
    if isinstance(holder.node, cst.Module):
        return True  # only names that functions bind are noted
    if holder is not frame:  # a function inside reads it, whenever it runs
        return len(bound) != 1 or bool(loops_around(holder.names, bound[0]))
    return any(_is_after(frame, read, node) for node in bound if not isinstance(node, cst.Param))


def _is_making(frame: Frame) -> bool:
    """Whether a function makes an object: nobody else has that yet."""
    return isinstance(frame.node, cst.FunctionDef) and frame.node.name.value in MAKING


def _is_later(frame: Frame, read: Read, where: Frame, node: cst.CSTNode, box: Box) -> bool:
    """Whether a container may be changed by a function after it was read in a capture."""
    if where is not frame:
        return True
    return _is_after(frame, read, node) if box.frame is frame else True


def _is_after(frame: Frame, read: Read, node: cst.CSTNode) -> bool:
    """Whether a change by the function that reads a value may come after the capture. A function that is called
    in a capture makes its own variables anew with each call."""
    names, captures = frame.names, [read.within] if read.within is not None else frame.facts.captured
    for capture in captures:
        if capture in _above(names.parents, node):
            continue  # while it is captured
        start, begin = frame.table.span(node).start, frame.table.span(capture).start
        if start > begin or set(loops_around(names, node)) & set(loops_around(names, capture)):
            return True
    return False


def _above(parents: dict[cst.CSTNode, cst.CSTNode], node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    above = parents.get(node)
    while above is not None:
        yield above
        above = parents.get(above)


# ---- results that are kept ---------------------------------------------------------------------------------


def _kept(live: Collection[Frame]) -> Iterator[Why]:
    """Handles that are kept in a loop that launches a graph: each holds what the last launch wrote."""
    launching = {frame for frame in live if frame.facts.launches}
    while True:
        more = {f for f in live if f not in launching and launching & f.facts.calls.keys()}
        if not more:
            break
        launching |= more
    for frame in live:
        launches = [
            *frame.facts.launches,
            *(node for callee, node in frame.facts.call_sites if callee in launching),
        ]
        loops = {loop for node in launches for loop in loops_around(frame.names, node)}
        for node in frame.facts.kept:
            if loops & set(loops_around(frame.names, node)):
                yield (
                    frame.table.site(node),
                    "a handle that is kept holds what the next launch of the graph writes",
                )
