"""Zero as an element of an array: `tl.zeros([], dtype=ends.dtype.element_ty)`, beside loads from that array.

Which type that is the text does not say. A float's zero may meet an integer, and their sum is rounded; so it is
an unknown element of the array, until the kernel uses such elements as integers. Then the array holds int32 or
int64, which launches are asked for (S6), and the zero of either type is the integer 0. It is taken for one of
32 bits, of which more is asked than of one of 64: that sums with it fit.
"""

from __future__ import annotations

from typing import Any

from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.values.values import Num, Token
from tilecheck.ir import expr as E

_OF_ELEMENTS = ".dtype.element_ty"


def typed_zero(x: Executor, shape: tuple[E.Expr, ...], dtype: Any) -> Num | None:
    """The scalar zero of the type of an array's elements; None for tiles and for any other type."""
    if shape or not isinstance(dtype, Token) or not dtype.name.endswith(_OF_ELEMENTS):
        return None
    array = dtype.name.removesuffix(_OF_ELEMENTS)
    if not array.isidentifier():
        return None  # the type of a tile
    if x.is_integer(array):
        return Num((), E.ZERO, "int", 32)
    return Num((), x.fresh(f"memory:{array}", per_lane=False), "any", 32)
