"""The values that symbolic execution computes with. Frozen data; the operations live in `arithmetic`.

A number is always a tile; a scalar is a tile of shape (). Its element is one expression over *lane
placeholders*: `lane(0)` is the position along the last axis, `lane(1)` along the one before, so that
broadcasting (which aligns shapes at the right) needs no renaming.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    const,
    negate,
    substitute,
    sym,
)

if TYPE_CHECKING:
    import libcst as cst

    from tilecheck.frontend.modules.project import ModuleTable


def lane(from_right: int) -> Expr:
    """The placeholder for the position along an axis, counted from the last."""
    return sym(Symbol(f"lane{from_right}", Kind.LANE, uid=-1 - from_right))


Place = tuple[str, Expr, int]  # an array, and an element: an expression and a literal that is added to it


@dataclass(frozen=True, slots=True)
class Made:
    """What a value is certainly computed from, whatever a compiler may leave out: the loads (by their
    positions) whose element it takes in each lane, and the exchanges between threads that its lanes need the
    results of."""

    loads: frozenset[int] = frozenset()
    exchanges: frozenset[int] = frozenset()
    typed: bool = True  # not converted to a type that the text does not show, which may be one of integers
    free: bool = True  # a compiler can know neither a range nor low bits of it
    chosen: bool = False  # counts only where a choice was not known
    places: frozenset[Place] = frozenset()  # those that the loads are from
    atom: bool = False  # a loaded element, or a product of such: no sum, whose operands may be taken out again
    closed: bool = False  # all that could be taken out of it again is counted
    summed: bool = False  # a sum of such atoms, with nothing subtracted: no compiler knows it for a constant
    real: bool = False  # certainly a floating-point number
    scans: frozenset[int] = frozenset()  # those of the exchanges that are scans, whose results are tiles
    carried: frozenset[tuple[int, str]] = (
        frozenset()
    )  # variables of loops, in a round of those (`loop_reductions`)

    def __or__(self, other: Made) -> Made:
        atom = (self.atom and not other.loads) or (other.atom and not self.loads)
        loads, exchanges = self.loads | other.loads, self.exchanges | other.exchanges
        return self._with(other, loads, exchanges, atom=atom, carried=self.carried | other.carried)

    def __and__(self, other: Made) -> Made:
        return self._with(other, self.loads & other.loads, self.exchanges & other.exchanges)

    def _with(
        self,
        other: Made,
        loads: frozenset[int],
        exchanges: frozenset[int],
        *,
        atom: bool = False,
        carried: frozenset[tuple[int, str]] = frozenset(),
    ) -> Made:
        return Made(
            loads,
            exchanges,
            atom=atom,
            carried=carried,
            typed=self.typed and other.typed,
            free=self.free and other.free,
            chosen=self.chosen or other.chosen,
            places=self.places | other.places,
            closed=self.closed and other.closed,
            scans=self.scans | other.scans,
        )


NOTHING = Made()

Way = tuple[Any, ...]  # its length, an operation, and its operands (`dataflow.operations`)


@dataclass(frozen=True, slots=True)
class Bound:
    """An integer that a float is at most (at least), where `exact` holds and what is `above` (`below`) it by
    these literals is so small that it is a float of 32 bits."""

    value: Expr
    below: int = 0
    above: int = 0
    exact: Expr = TRUE


@dataclass(frozen=True, slots=True)
class Span:
    """Between which integers a number lies as a float, if it is one (`float_ranges`). It has 32 bits or
    more."""

    low: Bound | None = None
    high: Bound | None = None
    number: bool = False  # certainly a number, perhaps an infinite one
    finite: bool = False
    full: bool = False  # certainly a machine number, and a float: no literal, which takes any type
    reach: Expr | None = None  # what its absolute value is at most, but for what rounding adds


@dataclass(frozen=True, slots=True)
class Rest:
    """An overflow check that a number rests on (`execute.overflow`), by its position.

    `value` is what the check is about, and `case` where the number is made of it, over the placeholders of the
    number's own tile. A check without a value counts in every lane where it was made.
    """

    check: int
    value: Expr | None = None
    case: Expr = TRUE

    def moved(self, mapping: Mapping[Expr, Expr]) -> Rest:
        """The same for a tile in which the lanes are at other positions."""
        if self.value is None or not mapping:
            return self
        return Rest(self.check, substitute(self.value, mapping), substitute(self.case, mapping))


Rests = frozenset[Rest]
NO_RESTS: Rests = frozenset()


@dataclass(frozen=True, slots=True)
class Num:
    """A scalar or a tile of numbers.

    `kind` is `int`, `bool`, `any` (read from memory: an integer if the program uses it as one) or `data`
    (not modelled; `elem` is then None). `bits` is 32 or 64 for machine integers, None for integers known
    at compile time, which do not wrap.
    """

    shape: tuple[Expr, ...]
    elem: Expr | None
    kind: str
    bits: int | None = 32
    made: Made = NOTHING
    natural: Expr = FALSE  # of floats: a condition on launch values under which none is negative (`signs`)
    single: bool = False  # of floats: certainly of no more than 32 bits
    wholes: tuple[Num, ...] = ()  # of floats: the integers that `natural` speaks of
    unsigned: Expr | None = None  # the value of an unsigned number, where integers tell it (`unsigned`)
    way: Way | None = None  # how it was computed, if that is known (`dataflow.operations`)
    folded: Expr = FALSE  # where this is no machine number, but one of compile time, with which Python computes
    span: Span | None = None  # of floats: between which integers they lie
    rests: Rests = field(default=NO_RESTS, compare=False)  # the overflow checks that it rests on

    @property
    def is_scalar(self) -> bool:
        return not self.shape


@dataclass(frozen=True, slots=True)
class Const:
    """A compile-time Python value that is not an integer: str, float, None, Ellipsis, bytes."""

    value: Any


@dataclass(frozen=True, slots=True)
class Named:
    """A name of the DSL or of Python: a function, a dtype, an enum member, a module (`cuda.tile.load`)."""

    name: str


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module of the same project, read as text."""

    table: ModuleTable


@dataclass(frozen=True, slots=True)
class Seq:
    """A tuple or list of known length."""

    items: tuple[Any, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter whose type the text does not give: the first use decides what it is. A constant that
    was `assigned` to a name is a machine number, if it is a number."""

    name: str
    assigned: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """One axis of an array view: where it starts in the root array and how long it is."""

    base: Expr
    extent: Expr


@dataclass(frozen=True, slots=True)
class Array:
    """An array parameter, a member of a list parameter, or a slice of one.

    `views` maps an axis to its `View`, for the axes that were sliced.
    """

    name: str
    member: Expr | None = None
    views: tuple[tuple[int, View], ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayList:
    """A list parameter of arrays."""

    name: str


@dataclass(frozen=True, slots=True)
class Shape:
    """`array.shape` or `array.strides`, whose length may not be known yet."""

    array: Array
    strides: bool = False


@dataclass(frozen=True, slots=True)
class TiledView:
    """`array.tiled_view(tile_shape, traversal_steps=...)`."""

    array: Array
    tile: tuple[Expr, ...]
    steps: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class RawMemory:
    """`array.get_raw_memory()`."""

    array: Array


@dataclass(frozen=True, slots=True)
class Pointer:
    """A Triton pointer, or a tile of them: the parameter it points into and the offset, in elements."""

    array: str
    offset: Num


@dataclass(frozen=True, slots=True)
class BlockPointer:
    """`tl.make_block_ptr(base, shape, strides, offsets, block_shape, order)`, or a tensor descriptor.

    The element at place l of the block is `base + sum((offsets[k] + l[k]) * strides[k])`.
    """

    base: Pointer
    shape: tuple[Num, ...]
    strides: tuple[Num, ...]
    offsets: tuple[Num, ...]
    block: tuple[Expr, ...]
    descriptor: bool = False


@dataclass(frozen=True, slots=True)
class DenseSlice:
    """`ct.Slice(start, length)`."""

    start: Num
    length: Expr


@dataclass(frozen=True, slots=True)
class Range:
    """`range(start, stop, step)`; `static` for the argument of `static_iter`."""

    start: Num
    stop: Num
    step: Num
    static: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function or lambda of the user's, with the frame that it closes over.

    `defaults` are those of a nested function, evaluated where it was defined. A kernel is `guarded` where
    `tilecheck.verified` stands before it, and `checks_contracts` where that was asked for.
    """

    node: cst.FunctionDef | cst.Lambda
    table: ModuleTable
    closure: Frame | None
    defaults: tuple[tuple[str, Any], ...] = ()
    guarded: bool = False
    checks_contracts: bool = False

    @property
    def name(self) -> str:
        name = getattr(self.node, "name", None)
        return name.value if name is not None else "<lambda>"


@dataclass(frozen=True, slots=True)
class Method:
    """`value.name`, waiting to be called."""

    value: Any
    name: str


@dataclass(frozen=True, slots=True)
class RecordType:
    """A dataclass or simple namespace class: its field names and defaults."""

    name: str
    fields: tuple[tuple[str, Any], ...]
    sets: frozenset[str] = frozenset()  # attributes that its methods set, of whatever object


@dataclass(frozen=True, slots=True)
class Record:
    """An instance of a `RecordType`."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Poison:
    """A value that symbolic execution lost (`why`); using it for anything that matters is unsupported."""

    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that a branch chose: `first` where `cond` holds, else `second`. `truth` is its truth, where
    that can be said in fewer words."""

    cond: Expr
    first: Any
    second: Any
    truth: Expr | None = None


_DEPTH = 6


def chosen(cond: Expr, first: Any, second: Any) -> Choice:
    """`first` where `cond` holds, else `second`, neither twice where one is a branch of the other.

    A branch that leaves a value as it is adds a way to choose it, not a copy. With copies, what is done to each
    of them would be done twice as often after every such branch.
    """
    if (found := _taken_out(second, first, _DEPTH)) is not None:
        where, rest = found
        return Choice(any_of(cond, where), first, rest)
    if (found := _taken_out(first, second, _DEPTH)) is not None:
        where, rest = found
        return Choice(any_of(negate(cond), where), second, rest)
    return Choice(cond, first, second)


def _taken_out(value: Any, part: Any, depth: int) -> tuple[Expr, Any] | None:
    """Where `value` is its branch `part`, and what it is elsewhere; None if there is no such branch."""
    if not isinstance(value, Choice) or value.truth is not None or not depth:
        return None
    holds, fails = value.cond, negate(value.cond)
    if value.first is part:
        return holds, value.second
    if value.second is part:
        return fails, value.first
    if (found := _taken_out(value.first, part, depth - 1)) is not None:
        return all_of(holds, found[0]), Choice(holds, found[1], value.second)
    if (found := _taken_out(value.second, part, depth - 1)) is not None:
        return all_of(fails, found[0]), Choice(holds, value.first, found[1])
    return None


@dataclass(frozen=True, slots=True)
class Token:
    """An opaque compile-time value (dtype of an array, string parameter): only comparisons are asked of it.

    Comparisons give a boolean that is the same in every block, named by the text of both sides.
    """

    name: str


@dataclass(slots=True, eq=False)
class Frame:
    """The local names of one call. Mutable: statements assign into `names`."""

    names: dict[str, Any]
    parent: Frame | None
    table: ModuleTable
    function: str
    returns: list[tuple[Expr, Any]]
    depth: int
    left_loop: bool = False  # a `return` stands in a loop: what holds after that need not hold for the caller

    def find(self, name: str) -> Any | None:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            frame = frame.parent
        return None


def used(value: Any) -> Any:
    """A value that is put to a use which None has not: where it would be None, the code does not compile."""
    while isinstance(value, Choice):
        if isinstance(value.first, Const) and value.first.value is None:
            value = value.second
        elif isinstance(value.second, Const) and value.second.value is None:
            value = value.first
        else:
            break
    return value


START = Num((), const(0), "int", 64, way=(1, "start"))  # the offset of a pointer parameter itself


def parts(value: Any) -> tuple[Any, ...] | None:
    """The values that a sequence or a pointer is made of; None for anything else."""
    match value:
        case Seq():
            return value.items
        case Pointer():
            return (value.offset,)
        case BlockPointer():
            return (value.base, *value.offsets)
        case _:
            return None


def rebuilt(value: Any, new: tuple[Any, ...]) -> Any:
    """`value` with other parts in their places."""
    match value:
        case Seq():
            return Seq(new, value.is_list)
        case Pointer():
            return replace(value, offset=new[0])
        case BlockPointer():
            return replace(value, base=new[0], offsets=new[1:])
        case _:
            raise TypeError(f"{type(value).__name__} has no parts")


def alike(a: Any, b: Any) -> bool:
    """Whether two values with parts differ in their parts alone."""
    first, second = parts(a), parts(b)
    if type(a) is not type(b) or first is None or second is None or len(first) != len(second):
        return False
    return isinstance(a, Seq) or bool(rebuilt(a, second) == b)


def forgotten(num: Num) -> Num:
    """A number of which nothing but its shape, its type and its element is known any more."""
    return replace(num, made=NOTHING, natural=FALSE, single=False, unsigned=None, way=None, span=None)


def integer(value: int) -> Num:
    """A compile-time integer."""
    return Num((), const(value), "int", None)
