"""The values of host code that kernels do not have: tensors with storage, shapes of unknown rank, quotients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.text.syntax import walk_kind
from tilecheck.frontend.values.values import Frame, Function, Param, Token
from tilecheck.ir.expr import ZERO, Expr

if TYPE_CHECKING:
    from tilecheck.frontend.modules.project import ModuleTable

GUARDED_LAUNCHER = "tilecheck.launch"
LAUNCHERS = ("cuda.tile.launch", GUARDED_LAUNCHER)  # what launches a kernel; the arguments are the same


@dataclass(frozen=True, slots=True)
class Unknown(Param):
    """A value that the text does not give: an argument of the function, or what unread code computes.

    Two unknowns of one name are one value. What it is used as decides what it is: a tensor, a scalar, or
    neither.
    """

    opaque: bool = False


@dataclass(frozen=True, slots=True)
class Updated(Unknown):
    """An unknown after `x += 1`: a tensor is the same one with other elements, a number is `number`."""

    number: Expr = ZERO


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor. The fields mean what they mean in `HostTensor`."""

    name: str
    storage: str
    fresh: bool = False
    shape: tuple[Expr, ...] | None = None
    strides: tuple[Expr, ...] | None = None
    shape_of: str = ""
    strides_of: str = ""
    contiguous: bool = False
    expanded: bool = False
    part: tuple[object, ...] | None = ()
    dense: bool = False
    span_of: str = ""
    copied: str = field(default="", compare=False)
    among: tuple[str, ...] = ()
    copy: int = field(default=0, compare=False)  # which copy it is: one of each branch is one after them
    recast: bool = False  # whether its elements may be others than those of its storage, of another type
    offset: Expr | None = ZERO
    dtype: str = field(default="", compare=False)  # its full name, empty if not known
    room: Expr | None = field(default=None, compare=False)  # elements of the storage
    described: bool = False
    block: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True)
class HostShape:
    """`x.shape` (or `x.stride()`) of a free tensor whose rank is not known."""

    of: str
    strides: bool = False


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes `start:stop` of a free tensor whose rank is not known, as Python slices its shape."""

    of: str
    start: int = 0
    stop: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.stop is None

    @property
    def is_edge(self) -> bool:
        """Whether these are the first or the last few axes, not all but these."""
        return self.start < 0 or (self.stop is not None and self.stop > 0)


@dataclass(frozen=True, slots=True)
class Dims:
    """A shape that is made of extents and of axes of free tensors: `(*x.shape[:-1], n)`."""

    parts: tuple[Expr | Axes, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The axes below `count` in their order, but for one that is left out, or comes `last`."""

    count: Expr
    axis: Expr
    last: bool = False


@dataclass(frozen=True, slots=True)
class Ratio:
    """`a / b` of integers, waiting for `math.ceil`, `math.floor` or `int`."""

    top: Expr
    bottom: Expr


@dataclass(frozen=True, slots=True)
class BitLength:
    """`n.bit_length()`, waiting to become a power of two."""

    of: Expr


@dataclass(frozen=True, slots=True)
class Pieces:
    """`x.chunk(n)`: these tensors, or only the first of them where `x` has few elements."""

    items: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """`x.split(step, axis)`; with no step `x.unbind(axis)`. How many tensors that gives, the size says."""

    tensor: Tensor
    axis: int
    step: Expr | None


@dataclass(frozen=True, slots=True)
class Pair:
    """What `x.sort()`, `x.topk(k)` and `x.max(dim)` give."""

    values: Tensor
    indices: Tensor


@dataclass(frozen=True, slots=True)
class Table:
    """A dictionary display with literal keys."""

    items: Mapping[Any, Any]  # keyed by str and int


@dataclass(frozen=True, slots=True)
class Members:
    """`frozenset(...)`, or a set display that is only asked what is in it."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Gridded:
    """`kernel[grid]`, waiting to be called: a launch of a Triton kernel."""

    kernel: Function
    grid: Any


@dataclass(frozen=True, slots=True)
class Starred:
    """`*x.stride()` among arguments, of a length that is not known."""

    value: HostShape | Dims


@dataclass(frozen=True, slots=True)
class FloatParam(Token):
    """A parameter of a host function that is annotated as a float."""


@dataclass(frozen=True, slots=True)
class Device(Token):
    """Where a tensor lies: never None."""


WARPS = 4  # of a Triton launch that does not say how many


@dataclass(frozen=True, slots=True)
class Root(FloatParam):
    """`math.sqrt(n)` of an integer, a float that `math.ceil` or `int` may make an integer of."""

    of: Expr = ZERO


@dataclass(frozen=True, slots=True)
class Log2(FloatParam):
    """`math.log2(n)` of an integer, waiting for `math.ceil`."""

    of: Expr = ZERO


@dataclass(frozen=True, slots=True)
class LaunchCall:
    """One execution of a launch: the values that it passes, and where it stands.

    `names` are the parameters that `arguments` is for; without them it is for all, in order. `guarded` and
    `checks_contracts` are as those of a `Launch`.
    """

    kernel: Any
    grid: Any
    arguments: Any
    node: cst.CSTNode
    table: ModuleTable
    names: tuple[str, ...] | None = None
    warps: Any = None  # `num_warps` of a Triton launch; None where it is not read
    guarded: bool = False
    checks_contracts: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StandIn:
    """Stands for a function that is decorated: what the decorator calls it with is noted."""

    calls: list[tuple[Any, ...]]
    result: Unknown


@dataclass(frozen=True, slots=True)
class Config:
    """`triton.Config({...}, num_warps=4)`: what it passes to the kernel, and its number of warps."""

    values: Table
    warps: Any = None


def named_in(node: cst.CSTNode, frame: Frame) -> list[Any]:
    """The values of the names that stand in a piece of code, each name once."""
    names = dict.fromkeys(n.value for n in walk_kind(node, cst.Name))
    return [value for name in names if (value := frame.find(name)) is not None]
