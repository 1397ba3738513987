"""Unsigned numbers of 64 bits that are made of what is not negative, by sums and products alone.

Their values are those of integers, as values of 64 bits are taken to fit. Differences, quotients and all else
are those of a ring: of them nothing is known. A number's value stands beside it (`Num.unsigned`), so that only
what is listed here can use it: every other operation takes it for data.
"""

from __future__ import annotations

from typing import Protocol

from tilecheck.frontend.values.signs import is_natural
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERS = {"<": E.lt, "<=": E.le, ">": E.gt, ">=": E.ge}


class Machine(Protocol):
    """The part of the executor that is asked."""

    @property
    def positive(self) -> frozenset[Expr]: ...
    def integral(self, *values: Num) -> None: ...
    def is_integer_memory(self, value: Expr) -> bool: ...


def converted(num: Num, machine: Machine) -> Expr | None:
    """The value of an integer in 64 unsigned bits, if it is not negative by its look and has not wrapped."""
    if num.unsigned is not None:
        return num.unsigned
    known = num.kind == "int" or num.elem in machine.positive  # a tile size
    if not known or num.elem is None or _may_have_wrapped(num):
        return None
    return num.elem if is_natural(num.elem, frozenset(), machine.positive) else None


def combined(op: str, a: Num, b: Num, machine: Machine) -> tuple[Num, Num] | None:
    """The operands of a sum or product one of which is unsigned, as integers whose `op` is the result."""
    if op not in ("+", "*") or (a.unsigned is None and b.unsigned is None):
        return None
    x, y = converted(a, machine), converted(b, machine)
    return None if x is None or y is None else (Num(a.shape, x, "int", 64), Num(b.shape, y, "int", 64))


def ordered(op: str, a: Num, b: Num, machine: Machine) -> tuple[Num, Num] | None:
    """The operands of an order of which one is unsigned, as integers; the other may be negative (`below`)."""
    if op not in _ORDERS or (a.unsigned is None and b.unsigned is None):
        return None
    machine.integral(*(side for side in (a, b) if side.unsigned is None))  # as what is compared with an integer
    x, y = (_compared(side, machine) for side in (a, b))
    return None if x is None or y is None else (Num(a.shape, x, "int", 64), Num(b.shape, y, "int", 64))


def base_of(op: str, a: Num, b: Num) -> Expr | None:
    """The scalar of any type to which an unsigned number is added: a pointer, as far as is known."""
    for one, other in ((a, b), (b, a)):
        if op == "+" and one.unsigned is not None and other.kind == "any" and not other.shape:
            return other.elem
    return None


def below(op: str, a: Num, b: Num, x: Expr | None, y: Expr | None) -> Expr:
    """`x op y`, the values of `a` and `b`, which become unsigned beside each other: where one of them is
    negative it is larger than all that are not."""
    assert x is not None
    assert y is not None
    if a.unsigned is None:
        a, b, x, y, op = b, a, y, x, _MIRRORED[op]
    if b.unsigned is not None:
        return _ORDERS[op](x, y)
    if op in ("<", "<="):
        return E.any_of(E.lt(y, 0), _ORDERS[op](x, y))
    return E.all_of(E.le(0, y), _ORDERS[op](x, y))


def _compared(num: Num, machine: Machine) -> Expr | None:
    if num.unsigned is not None:
        return num.unsigned
    known = num.kind == "int" or (
        num.kind == "any" and num.elem is not None and machine.is_integer_memory(num.elem)
    )
    return num.elem if known and not _may_have_wrapped(num) else None


def _may_have_wrapped(num: Num) -> bool:
    """Whether a number of 32 bits is more than a value that is known to fit."""
    return num.elem is not None and num.bits == 32 and num.elem.value is None and num.elem.op != "sym"
