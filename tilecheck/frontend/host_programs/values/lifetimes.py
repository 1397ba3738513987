"""Who holds memory and graphs, and when they are given back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host_programs.values import values as V
from tilecheck.ir import host_program as H

if TYPE_CHECKING:
    from tilecheck.frontend.host_programs.machine import Machine


def unreachable(m: Machine, memories: Iterable[str], graphs: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """Those of these memories and graphs that the program cannot name any more, in their order.

    The search ends as soon as all are found, which is the rule: it runs after every statement.
    """
    lost, lost_graphs = dict.fromkeys(memories), dict.fromkeys(graphs)
    if not lost and not lost_graphs:
        return [], []
    seen: set[int] = set()
    held = (m.scopes, m.pending, m.stored.values(), m.handed_out, m.globals.values())
    for root in (value for values in held for value in values):
        for value in V.contents(root, seen):
            m.visited += 1
            kind = type(value)
            if kind is V.Unknown:
                value = m.given.get(value.name)  # noqa: PLW2901 - what it was found to be
                kind = type(value)
            if kind is V.Tensor:
                lost.pop(value.memory, None)
                for region in value.aliases:
                    lost.pop(region.memory, None)
            elif kind is V.Graph:
                lost_graphs.pop(value.name, None)
            else:
                continue
            if not lost and not lost_graphs:
                return [], []
    return list(lost), list(lost_graphs)


def sweep(m: Machine, node: cst.CSTNode) -> None:
    """Give back what no name holds any more, if a name was bound anew since the last time."""
    if m.holds_frees or not m.rebound or (not m.owned and not m.live_graphs):
        return
    m.rebound = False
    open_graphs = {capture.graph for capture in m.captures}
    memories, graphs = unreachable(m, m.owned, (name for name in m.live_graphs if name not in open_graphs))
    for memory in memories:
        _release(m, node, memory)
    for graph in graphs:
        del m.live_graphs[graph]
        m.act(H.Destroy(m.site(node), graph))


def sweep_at_end(m: Machine, node: cst.CSTNode) -> None:
    """The names of the function are gone. Graphs stay: no replay can follow of one that nobody holds."""
    m.rebound = True
    live, m.live_graphs = m.live_graphs, {}
    sweep(m, node)
    m.live_graphs = live


def _release(m: Machine, node: cst.CSTNode, memory: str) -> None:
    """The last name of an allocation is gone.

    The allocator of pinned memory waits for the copies that use it, and a pageable copy has ended when its call
    returns: giving host memory back is safe unless a kernel touches it. Memory of a graph's pool goes back to
    the device, which waits for all of its streams, or to the graph that still lives.
    """
    del m.owned[memory]
    if m.place(memory) is not H.Place.DEVICE and memory not in m.copied:
        return
    after = list(m.recorded.get(memory, ()))
    if m.memories[memory].pool is not None:
        after += [name for name in used_streams(m) if name not in after]
    m.act(H.Free(m.site(node), memory, tuple(after)))


def hand_out(m: Machine, node: cst.CSTNode, value: V.Value) -> None:
    """The caller uses a value on its stream before the function goes on, and holds it until the next.

    What the names of a function hold is not used before the function is called.
    """
    m.handed_out = [value]
    seen = {id(part.closure) for part in V.contents(value) if isinstance(part, V.Function)}
    tensors = [t for t in V.contents(value, seen) if isinstance(t, V.Tensor)]
    for tensor in tensors:
        m.note_use(node, tensor)
    if tensors:
        m.enqueue(node, "the caller", [r for t in tensors for r in m.regions(t)], stream=m.caller)


def hand_back_host(m: Machine, values: Iterable[V.Value], returned: Iterable[H.Region]) -> None:
    """The caller may read host memory that it gets at once, unless it gets what it can wait for."""
    if m.end is None or any(isinstance(value, V.Stream | V.Event) for value in values):
        return
    made = (r for r in returned if m.place(r.memory) is H.Place.PINNED and not m.memories[r.memory].handed_in)
    reads = tuple(replace(region, exact=False) for region in made)
    if reads:
        m.act(H.Touch(m.end, "the caller", H.Footprint(reads)))


def used_streams(m: Machine) -> dict[str, None]:
    """The streams that have got work, or a graph; what is captured is none of it."""
    found: dict[str, None] = {}
    captured = False
    for action in m.actions:
        captured = isinstance(action, H.Capture) or (captured and not isinstance(action, H.EndCapture))
        if isinstance(action, H.Work | H.Replay) and not captured:
            found[action.stream] = None
    return found


def give_to_caller(m: Machine, memory: str) -> None:
    """Memory that was there before the function: the caller holds it."""
    del m.owned[memory]
    m.memories[memory] = replace(m.memories[memory], handed_in=True)
