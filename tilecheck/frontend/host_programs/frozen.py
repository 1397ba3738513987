"""What a graph keeps of host variables, and when that is stale."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host_programs import values as V
from tilecheck.frontend.host_programs.holding import reachable
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
    for variable, (label, value) in (item for read in m.reads for item in read.items()):
        if around & set(m.bound_in.get(variable, ())):
            continue
        if isinstance(value, V.Unknown):
            value = m.given.get(value.name, value)  # noqa: PLW2901 - the work may have shown it to be a tensor
        if _is_number(value):
            known = m.frozen.setdefault(variable, (_label(m, variable, label), value))
            found[known[0]] = None
        elif isinstance(value, V.Tensor) and value.memory in memories and value.memory not in own:
            m.inputs[variable] = value.memory
            found[value.memory] = None
    return tuple(found)


def _label(m: Machine, variable: Key, label: str) -> str:
    """A name for a variable that no memory and no other variable has."""
    taken = {known for other, (known, _) in m.frozen.items() if other != variable} | m.memories.keys()
    return label if label not in taken else m.unique(f"{label} as a number")


def _is_number(value: V.Value) -> bool:
    match value:
        case V.Number() | V.Const(value=float()):
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

    A tensor that the program still has another name for can be refreshed through that name: nothing is said.
    """
    variable = key(holder, name)
    m.bound_in[variable] = tuple(loop.site for loop in m.loops)
    if variable in m.frozen:
        label, before = m.frozen[variable]
        if not _same(before, value):
            m.act(H.Rebind(m.site(node), label))
    memory = m.inputs.get(variable)
    same = isinstance(value, V.Tensor) and value.memory == memory
    if memory is not None and not same and memory not in reachable(m)[0]:
        m.act(H.Rebind(m.site(node), memory))


def _same(before: V.Value, value: V.Value) -> bool:
    if isinstance(before, V.Number) and isinstance(value, V.Number):
        return before.expr is value.expr
    return bool(before == value)


def keep(m: Machine, node: cst.CSTNode, value: V.Value, label: str) -> V.Value:
    """A value under a name of its own. Of memory that a graph writes, this keeps the result of a replay."""
    if not isinstance(value, V.Tensor) or not m.replays.get(value.memory):
        return value
    name = m.unique(label)
    m.act(H.Keep(m.site(node), value.memory, name))
    return replace(value, kept=name)
