"""What a launch of a kernel reads and writes of its arguments, on either side of its wait."""

from __future__ import annotations

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr


@dataclass(frozen=True, slots=True)
class ParameterUse:
    """One array parameter that a kernel reads or writes.

    `certain` says that every launch whose sizes are positive touches the first element of the argument. That
    makes two uses of one argument a conflict, whatever else the kernel touches of it. `prefix`, if known, is
    the number of leading elements that every launch touches, in terms of the kernel's parameters and grid.
    """

    name: str
    write: bool
    certain: bool = False
    prefix: Expr | None = None


@dataclass(frozen=True, slots=True)
class KernelFootprint:
    """What a kernel touches before and after it waits for the launches before it; `waits` says that every
    program of every launch waits. A kernel that never waits touches everything before. `decided_by` are the
    compile-time parameters without a value on which it depends whether it waits."""

    before: tuple[ParameterUse, ...]
    after: tuple[ParameterUse, ...]
    waits: bool
    decided_by: tuple[str, ...] = ()
