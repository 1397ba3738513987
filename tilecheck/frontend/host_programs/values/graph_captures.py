"""What a graph keeps of host variables, and when that is stale."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.lifetimes import unreachable
from tilecheck.ir import host_program as H

if TYPE_CHECKING:
    from tilecheck.frontend.host_programs.machine import Machine

Key = tuple[object, str]  # of a variable: the scope or object that holds it, or its path, and its name


def key(holder: object, name: str) -> Key:
    return (holder, name)


def freeze(m: Machine, reads: tuple[H.Region, ...], graph: str) -> tuple[str, ...]:
    """The variables whose values captured work was given: numbers, and tensors that the graph did not make.

    A variable that is bound anew in each round of a loop around the capture picks the graph, as a batch size
    does; the graph is not stale when it changes.
    """
    found: dict[str, None] = {}
    own = m.graph_made[graph]
    memories = {region.memory for region in reads}
    around = set(m.captures[-1].loops)
    for variable, (label, value) in (item for read in (*m.reads, m.branched) for item in read.items()):
        if around & set(m.bound_in.get(variable, ())):
            continue
        if isinstance(value, V.Unknown):
            # The work may have shown it to be a tensor, or touched it as one.
            other = V.Tensor(value.name) if value.name in m.guessed else value
            value = m.given.get(value.name, other)  # noqa: PLW2901
        of_module = isinstance(value, V.Unknown) and variable[0] in m.globals.values()
        if _is_number(value) or of_module:
            known = m.frozen.setdefault(variable, (_label(m, variable, label), value))
            found[known[0]] = None
        elif isinstance(value, V.Tensor) and value.memory in memories and value.memory not in own:
            m.graph_reads.setdefault(graph, {})[value.memory] = None
            m.refreshed.pop(value.memory, None)
            m.inputs[variable] = value
            found[value.memory] = None
    return tuple(found)


def _label(m: Machine, variable: Key, label: str) -> str:
    """A name for a variable that no memory and no other variable has."""
    taken = {known for other, (known, _) in m.frozen.items() if other != variable} | m.memories.keys()
    return label if label not in taken else m.unique(f"{label} as a number")


def _is_number(value: V.Value) -> bool:
    match value:
        case V.Number() | V.Const(value=float() | bool()):
            return True
        case V.Unknown(plain=plain):
            return plain
        case _:
            return False


def note_read(m: Machine, holder: object, name: str, label: str, value: V.Value) -> None:
    """A variable is read in the open statement."""
    if m.reads:
        m.reads[-1][key(holder, name)] = (label, value)


def note_bound(m: Machine, node: cst.CSTNode, holder: object, name: str, value: V.Value) -> None:
    """A variable gets a value: what graphs froze of it is stale if that is another one.

    A tensor that the program still has another name for can be refreshed through that name: it is stale at the
    next replay unless something writes it first, or has written it since the last one.
    """
    variable = key(holder, name)
    m.bound_in[variable] = tuple(loop.site for loop in m.loops)
    if variable in m.frozen:
        label, before = m.frozen[variable]
        if not _same(before, value):
            m.act(H.Rebind(m.site(node), label))
    known = m.inputs.get(variable)
    if known is None:
        return
    memory = known.memory
    if _is_same_view(known, value):
        m.stale.pop(memory, None)
    elif unreachable(m, (memory,))[0]:
        m.act(H.Rebind(m.site(node), memory))
    elif memory not in m.refreshed and _is_other_input(m, value):
        m.stale[memory] = H.Rebind(m.site(node), memory)


def _is_other_input(m: Machine, value: V.Value) -> bool:
    """Whether a value may be a tensor that no graph knows. Graphs that take turns swap what they know."""
    if isinstance(value, V.Tensor):
        written = any(value.memory in writes for writes in m.graph_writes.values())
        return not written and not any(_is_same_view(known, value) for known in m.inputs.values())
    return isinstance(value, V.Unknown) and not value.plain


def _is_same_view(known: V.Tensor, value: V.Value) -> bool:
    return isinstance(value, V.Tensor) and (value.memory, value.box) == (known.memory, known.box)


def note_written(m: Machine, footprint: H.Footprint) -> None:
    """Memory gets new contents, outside any graph."""
    for region in footprint.writes:
        m.refreshed[region.memory] = None
        m.stale.pop(region.memory, None)


def note_replay(m: Machine, graph: str) -> None:
    """A graph is replayed: the variables of its inputs that are bound to others, and were not refreshed."""
    for memory in [name for name in m.stale if name in m.graph_reads.get(graph, ())]:
        m.act(m.stale.pop(memory))
    m.refreshed.clear()


def is_frozen(m: Machine, holder: object, name: str) -> bool:
    """Whether a graph keeps what a variable holds."""
    return key(holder, name) in m.frozen or key(holder, name) in m.inputs


def _same(before: V.Value, value: V.Value) -> bool:
    if isinstance(before, V.Number) and isinstance(value, V.Number):
        return before.expr is value.expr
    return bool(before == value)


def keep(m: Machine, node: cst.CSTNode, value: V.Value, label: str, *, inside: bool = False) -> V.Value:
    """A value under a name of its own. Of memory that a graph writes, this keeps the result of a replay.

    `inside` says that a container gets the value: then the program looks into lists through that container.
    """
    if isinstance(value, V.Sequence) and (inside or value.is_tuple):
        items = [keep(m, node, part, f"{label}[{at}]", inside=inside) for at, part in enumerate(value.items)]
        changed = any(new is not old for new, old in zip(items, value.items, strict=True))
        return V.Sequence(items, value.is_tuple) if changed else value
    if isinstance(value, V.Mapping) and inside:
        parts = {at: keep(m, node, part, f"{label}[{at!r}]", inside=True) for at, part in value.items.items()}
        return V.Mapping(parts) if any(parts[at] is not value.items[at] for at in parts) else value
    if not isinstance(value, V.Tensor) or value.kept or not m.replays.get(value.memory):
        return value
    name = m.unique(label)
    m.act(H.Keep(m.site(node), value.memory, name))
    return replace(value, kept=name)
