"""Operators, and what the host does when it looks at a value."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from tilecheck.frontend.host_guards.kinds import NOTHING, Atom, Box, External, Kind, Made, Sort
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.run import Run

_LOOKED = frozenset(
    "__bool__ __len__ __str__ __repr__ __format__ __int__ __float__ __index__ __iter__ __next__".split()
)


def looked_at(r: Run, node: cst.CSTNode, kind: Kind, hooks: frozenset[str] = _LOOKED) -> None:
    """The host looks at a value: for that of a tensor it waits."""
    if Sort.TENSOR in kind:
        r.raw(node)
    of = {one for atom in kind if isinstance(atom, Made) for one in names.lineage(r.p, atom.of)[0]}
    if any(hooks & names.members(r.p, one).keys() for one in of):
        r.refuse(node, "what this object does when it is looked at is not followed")


def is_used_up(r: Run, node: cst.CSTNode) -> bool:
    """Whether what gives items one by one is gone through at once."""
    parents = r.frame.names.parents
    above = parents.get(node)
    call = parents.get(above) if isinstance(above, cst.Arg) else None
    match call:
        case cst.Call(func=cst.Name(value=name)):
            return name in _USING_UP and call.args[0] is above
        case _:
            return isinstance(above, cst.For) and above.iter is node


_USING_UP = frozenset("tuple list set frozenset dict sorted sum any all min max".split())


_OPERATORS = frozenset(
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __floordiv__ __mod__ __pow__ __matmul__ "
    "__rmatmul__ __and__ __or__ __xor__ __lshift__ __rshift__ __neg__ __pos__ __invert__ __iadd__ __isub__ "
    "__imul__ __imatmul__ __ior__ __iand__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__ __bool__ "
    "__hash__ __index__ __int__ __float__".split()
)


def operate(r: Run, node: cst.CSTNode, operands: Iterable[Kind]) -> Kind:
    """What an operator gives. Of tensors it is work on the current stream."""
    every: Kind = NOTHING.union(*operands)
    found: set[Atom] = set()
    for atom in every:
        match atom:
            case Sort.PLAIN | Sort.NONE | Sort.ARRAY:
                found.add(Sort.PLAIN if atom is Sort.NONE else atom)
            case Sort.TENSOR | Sort.UNKNOWN:
                r.raw(node)
                found.add(atom)
            case Box():
                found |= r.p.fill(r.box(node), r.p.items(atom), r.p.keys(atom))
            case Made(of=of):
                if any(
                    name in names.members(r.p, one) for one in names.lineage(r.p, of)[0] for name in _OPERATORS
                ):
                    r.refuse(node, "the operators of this object are not followed")
                found.add(Sort.PLAIN)
            case External():
                found.add(Sort.PLAIN)  # of types and flags of a library
            case _:
                found.add(Sort.UNKNOWN)
    return frozenset(found)
