"""Pointers: which parameters are pointers, and what arithmetic on them gives.

Nothing in the text of a Triton kernel says which parameters are pointers. The first run takes every parameter
for a number; where memory is reached through a sum of numbers, exactly one term of it is the pointer, since
pointers cannot be added. Where that leaves no doubt the parameter is a pointer in the runs that follow.
"""

from __future__ import annotations

from typing import Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.operations import way_of
from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import START, Num, Pointer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind


def offset(x: Executor, op: str, a: Any, b: Any) -> Any:
    """`pointer + number`, `number + pointer`, `pointer - number`, and the distance of two pointers."""
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        if op != "-" or a.array != b.array:
            raise UnsupportedConstruct(f"`{op}` of two pointers")
        return arithmetic.binary("-", a.offset, b.offset, x)
    if isinstance(b, Pointer):
        a, b = b, a
        if op == "-":
            raise UnsupportedConstruct("a number minus a pointer")
    if op == "/" and a.offset == START:  # flags say whether it is a pointer, and here it is none
        return Num(distance(x, b).shape, None, "data")
    if op not in ("+", "-"):
        raise UnsupportedConstruct(f"`{op}` of a pointer")
    step = distance(x, b)
    return Pointer(a.array, arithmetic.binary(op, a.offset, step, x))


def distance(x: Executor, value: Any) -> Num:
    """A number of elements by which a pointer moves. It leaves the ring of 32-bit numbers here,
    for addresses have 64 bits."""
    first = len(x.overflow.checks)
    num = x.number_of(value, "offset of a pointer")
    return arithmetic.rested(_distance(x, num), x, first, num)


def _distance(x: Executor, num: Num) -> Num:
    if num.unsigned is not None:
        return Num(num.shape, num.unsigned, "int", 64)
    elem = arithmetic.as_int(num, x)
    x.use_as_integer(elem)
    if num.bits == 32 and arithmetic.may_have_wrapped(elem):
        elem = x.fits_as_offset(elem, num.shape)
    return Num(num.shape, elem, "int", 64, way=way_of(num))


def pointer_of(x: Executor, value: Any, what: str) -> Pointer:
    """`value` as a pointer. In a run that does not know the pointers yet, some pointer of the right shape."""
    if isinstance(value, Pointer):
        _reached(x, value.array)
        return value
    num = x.number_of(value, what)
    names = frozenset() if num.elem is None else _bases(num.elem, x)
    if names:
        x.pointers |= names
        _reached(x, *names)
        return Pointer(min(names), Num(num.shape, None, "data", 64))
    why = "is computed from data" if num.elem is None else "no parameter is clearly the base of"
    x.unclear = UnsupportedConstruct(f"{what} that {why}", x.site.span, x.site.file)
    return Pointer("", Num(num.shape, None, "data", 64))  # a later run may know more of the integers


def _reached(x: Executor, *names: str) -> None:
    """Note the compile-time conditions under which memory is reached through parameters: without them one may
    be a number (`initial`)."""
    held = frozenset(c for c in E.conjuncts(x.guard) if all(s.kind is Kind.CONSTANT for s in E.symbols(c)))
    for name in names:
        x.flags[name] = x.flags.get(name, held) & held


def _bases(elem: Expr, x: Executor) -> frozenset[str]:
    """The parameters that `elem` is a pointer into, each in a case of its own; none where that is not clear.

    A sum has one term that is a pointer. Where several could be, it is one that is known to be a pointer or,
    where no reading of the kernel tells, the only one that is called so. That settles what a verdict is about:
    the others are integers then, which launches are asked to pass, and the guard refuses other ones.
    """
    match elem.op:
        case "add":
            found = [names for names in (_bases(term, x) for term in elem.args) if names]
            known = [names for names in found if all(n in x.pointers or x.knows("pointers", n) for n in names)]
            clear = known or found
            if len(clear) > 1 and x.knows("by_name"):
                clear = [names for names in clear if all(map(_is_called_pointer, names))]
            return clear[0] if len(clear) == 1 else frozenset()
        case "ite":
            # A number of the text, as in `p if FLAG else 0`, is no pointer that memory is reached through.
            found = [_bases(branch, x) for branch in elem.args[1:] if branch.value is None]
            return frozenset().union(*found) if all(found) else frozenset()
        case "sym" if elem.args[0].origin == "untyped" and elem.args[0].kind is Kind.SCALAR:
            name = elem.args[0].name
            number = name in x.numbers or x.knows("integers", name) or x.knows("numbers", name)
            return frozenset() if number else frozenset({name})
        case _:
            return frozenset()


def _is_called_pointer(name: str) -> bool:
    return name.lower().endswith(("_ptr", "_ptrs", "_pointer"))
