"""A kernel as the proof sees it: parameters, accesses, and the checks its own operations ask for."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection
from dataclasses import field, replace
from functools import lru_cache

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import FALSE, TRUE, Expr, Kind, Symbol, add, all_of, const, ite, le, lt, mul, sym
from tilecheck.ir.parts import WHOLE, Part
from tilecheck.model import GlobalName, Site


class Effect(enum.IntEnum):
    """What an access does to memory; the order is strength."""

    READ = 1
    ATOMIC = 2
    WRITE = 3


class Space(enum.Enum):
    """How an access names elements."""

    TILE = "tile"  # whole tiles: index * step + lane, per axis
    ELEMENT = "element"  # one index expression per axis, over lanes
    RAW = "raw"  # one offset from the base pointer, unchecked


# Memory orders that release and that acquire, and scopes that cover the blocks of a launch (`NONE` and `BLOCK`
# do not), as accesses and logs spell them.
RELEASES = frozenset({"RELEASE", "ACQ_REL"})
ACQUIRES = frozenset({"ACQUIRE", "ACQ_REL"})
ANY_ORDER = "ANY"  # a word that the launch chooses: taken to order nothing
WIDE_SCOPES = frozenset({"DEVICE", "SYS", "SYSTEM"})


class Ownership(enum.Enum):
    """What a kernel does with a parameter."""

    MUT = "mut"
    SHARED = "shared"
    VALUE = "value"
    CONSTANT = "constant"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter. `ownership` is inferred; `declared` is what the author wrote, if anything.

    `scalar` is the type that its annotation names (int, bool, float, str or nothing), and `wide` says that the
    annotation asks for 64 bits. `integer` says that the proof takes its value or its elements for integers,
    and `updated` that what a launch leaves in an array depends on what was in it, as far as the text shows.
    """

    name: str
    is_array: bool
    rank: int | None
    is_list: bool
    ownership: Ownership
    declared: Ownership | None
    site: Site
    scalar: str = ""
    wide: bool = False
    integer: bool = False
    updated: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an access, in elements of the root array.

    The touched coordinates are `base + index * step + lane`, with `0 <= lane < size` (`lane` is None where
    size is 1 or `index` itself holds the lanes). `extent` is the length of the view that the access goes
    through and `base` where that view starts in the root array, so an element is inside the view when
    `0 <= index * step + lane < extent`.
    """

    index: Expr
    step: Expr
    size: Expr
    extent: Expr
    base: Expr
    lane: Symbol | None = None

    @property
    def local(self) -> Expr:
        """The element coordinate inside the view."""
        offset = mul(self.index, self.step)
        return offset if self.lane is None else add(offset, sym(self.lane))

    @property
    def coordinate(self) -> Expr:
        """The element coordinate inside the root array."""
        return add(self.base, self.local)

    @property
    def inside(self) -> Expr:
        """Whether the touched element lies inside the view."""
        return all_of(le(0, self.local), lt(self.local, self.extent))

    def mapped(self, of: Callable[[Expr], Expr], lane_of: Callable[[Symbol], Symbol]) -> Axis:
        """The axis with each expression in it taken through `of`, and its lane through `lane_of`."""
        index, step, size, extent, base = map(of, (self.index, self.step, self.size, self.extent, self.base))
        return Axis(index, step, size, extent, base, None if self.lane is None else lane_of(self.lane))


@dataclass(frozen=True, slots=True)
class Access:
    """One read, write or atomic update of an array, for all blocks, iterations and lanes at once.

    `guard` is the path condition (loop ranges included), `mask` the lanes that take part. `lanes` are the LANE
    symbols in `axes` and `mask`. `member` is the index into a list parameter. `synchronised` says that the
    access is reached through a branch on an atomic's result, so that plain happens-before reasoning does not
    apply. `position` is the program order of the site. `order` and `scope` are the memory order and scope as
    cuTile names them. `unsafe` is the index of the innermost unsafe block around it, or None. `unchecked` is
    where nothing keeps it inside its array: a flag of compile time may say so. An atomic of one element also
    has its `operands` (None where one is not modelled) and its `result`, the symbol for the element's old
    value. `copied` says that a copy engine makes the access, beside the threads (descriptors of Triton): what
    orders threads does not order it. `takes` and `needs` say what a stored value is certainly computed from:
    the positions of the loads whose element it takes lane for lane, and of exchanges. `reaches` are the stores
    that alone take what a load gives, lane for lane, in the same iteration; None where that is not known.
    `feeds` are the same with those that take it in a later one, or after the loop. Accesses of equal `way`
    compute their places by the same operations on the same numbers (`frontend/dataflow/operations.py`); None if
    not known.
    """

    array: str
    effect: Effect
    space: Space
    axes: tuple[Axis, ...]
    guard: Expr
    mask: Expr
    lanes: tuple[Symbol, ...]
    site: Site
    position: int
    unchecked: Expr = FALSE
    member: Expr | None = None
    order: str = "WEAK"
    scope: str = "NONE"
    synchronised: bool = False
    unsafe: int | None = None
    atomic_kind: str | None = None
    operands: tuple[Expr | None, ...] = ()
    result: Expr | None = None
    copied: bool = False
    takes: frozenset[int] = frozenset()
    needs: frozenset[int] = frozenset()
    reaches: frozenset[Site] | None = None
    feeds: frozenset[Site] | None = None
    way: object = None
    loops: tuple[Symbol, ...] = ()  # the iteration symbols of the loops around it, outermost first
    stepped_by: Symbol | None = None  # the innermost `for` loop, if its variable itself is a tile index
    spare: bool = False  # lanes that are sent to one launch value, which is to lie behind the array
    padded: bool = False  # a load whose text says what the lanes that take no part hold

    @property
    def inside(self) -> Expr:
        """Whether the touched element lies inside its view on every axis (always true for RAW)."""
        return TRUE if self.space is Space.RAW else all_of(*(axis.inside for axis in self.axes))

    @property
    def checked(self) -> bool:
        """Whether elements outside its array are left out, whatever the launch."""
        return self.unchecked is FALSE

    @property
    def flat(self) -> bool:
        """Whether nothing checks it and its array is memory of one axis in which the kernel itself counts."""
        return self.space is not Space.TILE and len(self.axes) == 1 and not self.checked

    @property
    def lane_facts(self) -> Expr:
        """The ranges of the lanes: 0 <= lane < size."""
        return all_of(*(all_of(le(0, sym(s)), lt(sym(s), s.bound)) for s in self.lanes if s.bound is not None))

    @property
    def happens(self) -> Expr:
        """The condition under which an element is really touched."""
        return all_of(self.guard, self.lane_facts, self.mask, self.inside)

    def mapped(
        self, of: Callable[[Expr], Expr], lane_of: Callable[[Symbol], Symbol] = lambda lane: lane
    ) -> Access:
        """The access with each expression that says what it touches taken through `of`, and each lane through
        `lane_of`."""
        return replace(
            self,
            guard=of(self.guard),
            mask=of(self.mask),
            member=None if self.member is None else of(self.member),
            axes=tuple(axis.mapped(of, lane_of) for axis in self.axes),
            lanes=tuple(map(lane_of, self.lanes)),
        )


def common_loops(first: Access, second: Access) -> tuple[Symbol, ...]:
    """The iteration symbols of the loops around both accesses, outermost first."""
    return tuple(a for a, b in zip(first.loops, second.loops, strict=False) if a == b)


class CheckKind(enum.Enum):
    """Why an operation of the kernel itself asks for a proof."""

    DIVISOR = "divisor"  # a divisor is positive
    DIVIDEND = "dividend"  # what is divided by a truncating division is not negative
    SLICE = "slice"  # 0 <= start < N and start <= stop <= N
    STEP = "step"  # the step of a range is not 0
    EXPONENT = "exponent"  # a power of two that is an integer has no negative exponent
    MEMBER = "member"  # an index into a list of arrays is inside it
    TILE = "tile"  # a tile of an advanced access is not wholly outside its array


@dataclass(frozen=True, slots=True)
class Check:
    """An operation that is only defined where `goal` holds; `what` is its text for reports."""

    kind: CheckKind
    goal: Expr
    guard: Expr
    what: str
    site: Site
    unsafe: int | None = None
    array: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A value as the index of an access uses it where `given` holds, with the lanes of that access. `length` is
    the length of the axis in words."""

    value: Expr
    given: Expr
    length: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A 32-bit integer whose value feeds an address or a branch: `value` must fit in int32.

    `steps` are the sums and products inside it, innermost first, and where each is computed. It counts in every
    lane that computes it if it is `tested`: if a mask, a branch or a check rests on it. Else it counts at the
    `places` where an index rests on it, and nowhere if there are none.
    """

    value: Expr
    guard: Expr
    site: Site
    unsafe: int | None = None
    steps: tuple[tuple[Expr, Site], ...] = ()
    tested: bool = False
    places: tuple[Place, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether an access, a branch or a check may rest on it."""
        return self.tested or bool(self.places)


@dataclass(frozen=True, slots=True)
class Barrier:
    """A `tl.debug_barrier()`: every thread of a program waits for the others. Fields as those of an access."""

    guard: Expr
    position: int
    loops: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class LaunchWait:
    """A wait of a program for the launches before its own, with programmatic dependent launch: they have ended
    after it, and their writes are seen. Fields as those of an access."""

    guard: Expr
    position: int
    loops: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A Triton operation by which threads see values that other threads loaded: a reduction, a product, a
    change of shape, a value of few elements used beside more. `whole` says that it is a reduction to one
    element, such an element used in many lanes, or a scan along the only axis of a tile; `shape` is that of the
    tile then, and `loads` are those whose elements the reduction, or what `scans`, goes over along that axis.
    The other fields are as those of an access."""

    position: int
    loops: tuple[Symbol, ...]
    whole: bool = False
    loads: frozenset[int] = frozenset()
    shape: tuple[Expr, ...] = ()
    guard: Expr = TRUE
    scans: bool = False


@dataclass(frozen=True, slots=True)
class RunningSum:
    """A tile of one axis, each element of which is the sum of small integers up to it, none of them negative.

    `value` is an element and `term` the one that it adds to the element before, where `lane` stands for the
    place of both; `loops` are the iteration symbols of the loops around the sum. In tiles that are made of it
    by a change of shape, other symbols stand for its own: `moved` has a pair for each, change by change.
    """

    value: Expr
    term: Expr
    lane: Symbol
    loops: tuple[Symbol, ...]
    moved: tuple[tuple[tuple[Symbol, Symbol], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class UnsafeBlock:
    """A `with unsafe("reason"):` block or an unsafe pragma."""

    reason: str | None
    site: Site


PASSED = "passed"  # what every launch in view passes: no premise that somebody wrote, but a condition


@dataclass(frozen=True, slots=True)
class Requirement:
    """A launch precondition that the author wrote; a premise of every proof.

    One that `specialises` gives a compile-time parameter a value: launches with another are of another kernel.
    `origin` is where it was written: source, config, pack, gate, or `PASSED`.
    """

    condition: Expr
    text: str
    reason: str | None
    site: Site
    specialises: bool = False
    origin: str = "source"


@dataclass(frozen=True, slots=True)
class Contract:
    """What the author says of the values in arrays that the launch does not write, or of arrays themselves.

    filled: `t[i] == c`, with `bounds` = (c,).
    within: `low <= t[i] < high`, with `bounds` = (low, high). within_or: that or `t[i] == skip`, with `bounds`
    = (low, high, skip). distinct: no two elements are equal, except those equal to `bounds[0]` if it is given.
    increasing: `t[i] <= t[j]` for i <= j. distinct_pairs: no two rows of `t` have both their entries equal.
    prefix_sum, with `others` = (c,): `t[0] == 0`, `0 <= c[i]` and `t[i + 1] == t[i] + c[i]`. chunks, with
    `others` = (c,) and `bounds` = (size,): `t` is flat, and for its pairs (n, k), one after the other, `0 <= k`
    and `k * size < c[n + 1] - c[n]`, with `1 <= size`. chunk_sums, with the same: `t[0] == 0`, and `t[i + 1] -
    t[i]` is how many chunks sequence i has, `cdiv(c[i + 1] - c[i], size)`. disjoint: `array`, `others` and the
    members of those that are lists share no memory.

    All but the last speak of elements inside the array only. What a contract says of shapes is a `Requirement`
    of its own. With `initial`, the launch changes the array, by atomics alone: the contract speaks of what
    is in it when the launch begins. With a `part`, it speaks of that part's elements alone. `origin` is as that
    of a `Requirement`.
    """

    kind: str  # as above
    array: str
    bounds: tuple[Expr, ...]
    text: str
    reason: str | None
    site: Site
    others: tuple[str, ...] = ()
    initial: bool = False
    part: Part = WHOLE
    origin: str = "source"

    @property
    def arrays(self) -> tuple[str, ...]:
        """Every array that it speaks of."""
        return (self.array, *self.others)

    @property
    def is_about_values(self) -> bool:
        return self.kind != "disjoint"

    def is_void(self, written: Collection[str]) -> bool:
        """Whether it speaks of values that the launch itself changes."""
        return self.is_about_values and any(array in written for array in self.arrays)


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A contract speaks of `name`, which is no parameter of the kernel."""

    name: str
    site: Site


@dataclass(frozen=True, slots=True)
class Filled:
    """The author says that a launch writes every element of `array`.

    `exact` says that accesses are made just where their guards say: no loop is left before its end.
    """

    array: str
    site: Site
    exact: bool


@dataclass(frozen=True, slots=True)
class Tuning:
    """A tuner runs the kernel many times on one set of arguments, and puts the arrays `kept` back each time."""

    site: Site
    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the front end found in one kernel.

    `grid_axes` are the grid axes that the kernel reads (bid or num_blocks). `facts` hold for every launch:
    extents are not negative, tile sizes are at least 1. `accesses` are in program order.
    """

    name: str
    language: str
    site: Site
    params: tuple[Param, ...]
    grid_axes: tuple[int, ...]
    accesses: tuple[Access, ...]
    checks: tuple[Check, ...]
    arithmetic: tuple[Arithmetic, ...]
    facts: tuple[Expr, ...]
    requires: tuple[Requirement, ...] = ()
    contracts: tuple[Contract, ...] = ()
    unsafe_blocks: tuple[UnsafeBlock, ...] = ()
    files: tuple[tuple[str, str], ...] = ()  # the kernel's file and its helpers', with SHA-256 of their text
    constants: tuple[tuple[str, Symbol], ...] = field(default=())  # parameter name -> symbol, in order
    unknown_names: tuple[UnknownName, ...] = ()
    names: tuple[tuple[str, Expr], ...] = ()  # the author's names for values that depend on the block
    powers_of_two: tuple[Expr, ...] = ()  # tile sizes: the compiler takes powers of two only
    barriers: tuple[Barrier, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    sums: tuple[RunningSum, ...] = ()
    folds_planes: bool = True  # tiles of several axes may be reduced, reshaped, ..., or indices turned back
    splits_warps: bool = False  # a loop of its may be dealt out to several groups of warps
    launch_waits: tuple[LaunchWait, ...] = ()
    waits: tuple[Access, ...] = ()  # atomics that a `while` loop ended with, as executed that last time
    globals: tuple[GlobalName, ...] = ()  # what the names of modules that it reads were taken for
    tuning: Tuning | None = None
    fills: tuple[Filled, ...] = ()


@lru_cache(maxsize=4096)
def grid_symbol(axis: int) -> Symbol:
    """The number of blocks along a grid axis."""
    return Symbol(f"grid[{axis}]", Kind.GRID)


@lru_cache(maxsize=4096)
def block_symbol(axis: int) -> Symbol:
    """The block index along a grid axis, 0 <= bid < grid[axis]."""
    return Symbol(f"ct.bid({axis})", Kind.BLOCK, bound=sym(grid_symbol(axis)))


@lru_cache(maxsize=4096)
def extent_symbol(array: str, axis: int) -> Symbol:
    return Symbol(f"{array}.shape[{axis}]", Kind.EXTENT)


def extents_of(array: str) -> Callable[[int], Expr]:
    """The extents of an array, by axis."""
    return lambda axis: sym(extent_symbol(array, axis))


def power_symbol(name: str, added: int = 0) -> Symbol:
    """`2 ** n`, or `2 ** (n + added)`, of a number of compile time."""
    shown = name if added == 0 else f"({name} {'-' if added < 0 else '+'} {abs(added)})"
    return Symbol(f"2 ** {shown}", Kind.CONSTANT)


def power_of(exponent: Expr) -> Expr | None:
    """2 to a literal, or to a choice of literals, where launches have such numbers."""
    return of_literals(_power_of_literal, exponent)


def of_literals(function: Callable[[int], int | None], e: Expr) -> Expr | None:
    """A function of a literal, or of each of a choice of them; None of others, and where it has no value."""
    if e.value is not None:
        found = function(e.value)
        return None if found is None else const(found)
    if e.op != "ite":
        return None
    first, second = (of_literals(function, way) for way in e.args[1:])
    return None if first is None or second is None else ite(e.args[0], first, second)


def _power_of_literal(n: int) -> int | None:
    return 1 << n if 0 <= n <= _LARGEST_EXPONENT else None


def _next_power_of_literal(n: int) -> int:
    """As Triton computes it: 0 below 1."""
    return 1 << (n - 1).bit_length() if n > 0 else 0


_LARGEST_EXPONENT = 62
_MADE = re.compile(r"(2 \*\* \(?|next_power_of_2\()(\w+)(?: ([+-]) (\d+))?\)?")


@dataclass(frozen=True, slots=True)
class Made:
    """A power of two made of a number n of compile time: `2 ** (n + added)`, or the next from `n + added` on
    where it `rounds`."""

    name: str
    added: int
    rounds: bool

    def of(self, n: int) -> int | None:
        return (_next_power_of_literal if self.rounds else _power_of_literal)(n + self.added)


def made_of(symbol: Symbol) -> Made | None:
    """What a constant that is no parameter is made of, as far as its name says it."""
    if symbol.kind is not Kind.CONSTANT or not symbol.name.startswith(("2 ** ", "next_power_of_2(")):
        return None
    found = _MADE.fullmatch(symbol.name)
    if found is None:
        return None
    return Made(found[2], int(f"{found[3] or ''}{found[4] or 0}"), rounds=found[1].startswith("next"))


@lru_cache(maxsize=4096)
def stride_symbol(array: str, axis: int) -> Symbol:
    return Symbol(f"{array}.stride({axis})", Kind.STRIDE)
