"""What lanes hold that a load masks off: `tl.load(p, mask, other=-1)` gives -1 there.

Triton converts `other` to the type of the elements. Sound because it is taken for what is written only where

- it is a literal integer that 32 bits hold, and
- the elements are known to be integers of 32 or 64 bits, so that none of it is lost: those of an array that the
  kernel uses as integers, or of which a contract speaks (S6, which the guard checks). In an array of bytes -1
  is 255, and in one of halves 100000 is infinite.

Of arrays that the launch writes nothing is said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind

_LEAST, _END = -(2**31), 2**31


def masked_off(x: Executor, read: Num, other: Any) -> Num:
    """What a load gives, `ite(mask, element, unknown)` so far, with what `other` says of the lanes without an
    element; as it was where that is not known."""
    if not isinstance(other, Num) or other.kind != "int" or other.shape or other.elem is None:
        return read
    literal = other.elem.value
    if literal is None or not _LEAST <= literal < _END or read.elem is None or read.elem.op != "ite":
        return read
    test, element, unknown = read.elem.args
    is_unknown = unknown.op == "sym" and unknown.args[0].kind is Kind.OPAQUE
    if element.op != "read" or not is_unknown or not x.is_integer_memory(element):
        return read
    return replace(read, elem=E.ite(test, element, E.const(literal)), rests=other.rests)
