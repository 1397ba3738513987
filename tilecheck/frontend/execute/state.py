"""The state of symbolic execution: the path condition, fresh unknowns, and what has been recorded.

One run executes a kernel once, for all blocks, iterations and lanes together. Branches on symbolic
conditions run both ways; loops run once with a symbolic iteration number. Everything over-approximates:
an access may be recorded under a weaker guard than the real one, never under a stronger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tilecheck.cancellation import checkpoint
from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.load_sources import by_branch
from tilecheck.frontend.dataflow.operations import way_of
from tilecheck.frontend.execute.overflow import Overflow, coarse
from tilecheck.frontend.execute.overflow_dependencies import is_new_unknown, resting, rests_of
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.values import arithmetic as numbers
from tilecheck.frontend.values import float_ranges, signs
from tilecheck.frontend.values.values import (
    START,
    Array,
    ArrayList,
    BlockPointer,
    Choice,
    Const,
    Frame,
    Function,
    Method,
    ModuleRef,
    Named,
    Num,
    Param,
    Pointer,
    Poison,
    Range,
    RecordType,
    Seq,
    Token,
    View,
    alike,
    chosen,
    lane,
    parts,
    rebuilt,
    used,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol, memory_names
from tilecheck.ir.kernel import (
    Access,
    Arithmetic,
    Barrier,
    Check,
    CheckKind,
    Effect,
    Exchange,
    LaunchWait,
    RunningSum,
    UnsafeBlock,
)
from tilecheck.model import Site

if TYPE_CHECKING:
    import libcst as cst

    from tilecheck.frontend.modules.project import ModuleTable, Project

# Decorators that leave a function what its text says, to code that a kernel calls.
TRANSPARENT = frozenset(
    "function staticmethod lru_cache cache kernel jit contextmanager constexpr constexpr_function".split()
)
_ORDERS = frozenset({"<", "<=", ">", ">="})
MAX_DEPTH = 40  # nested helper calls
MAX_STEPS = 60_000  # statements and expressions of one run, unrolled loops included


class Dialect(Protocol):
    """What a language adds: the meaning of its names, and of attributes and methods of its values."""

    namespace: str
    has_pointers: (
        bool  # arrays are reached through pointers; a parameter that is compared with an integer is one
    )

    def call(self, x: Executor, name: str, call: Arguments) -> Any: ...

    def is_access(self, name: str) -> bool:
        """Whether an operation reaches memory; its result is what memory held."""
        ...

    def method(self, x: Executor, value: Any, name: str, call: Arguments) -> Any: ...

    def attribute(self, x: Executor, value: Any, name: str) -> Any: ...

    def subscript(self, x: Executor, value: Any, index: Any) -> Any: ...

    def param(self, x: Executor, name: str) -> Num: ...

    def quotient(self, x: Executor, op: str, dividend: Expr, divisor: Expr) -> Expr:
        """`//` or `%` of machine integers, where the divisor is positive."""
        ...

    def assigned(self, value: Any) -> Any:
        """What a name holds after `name = value`."""
        ...

    def lost(self, x: Executor, function: Poison, args: Arguments) -> Any:
        """A call of something whose value is not known."""
        ...

    def offset(self, x: Executor, op: str, a: Any, b: Any) -> Any:
        """An operator of which one operand is a pointer."""
        ...


ROUNDED = "rounded"  # where an unknown comes from that is a float as an integer


@dataclass(frozen=True, slots=True)
class Arguments:
    """The evaluated arguments of a call, and the call itself for its site."""

    positional: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    node: cst.CSTNode
    table: ModuleTable

    def at(self, position: int) -> Any:
        """A positional argument that the call must have."""
        if position >= len(self.positional):
            raise UnsupportedConstruct("call with an argument missing")
        return self.positional[position]

    def bind(self, names: tuple[str, ...], what: str) -> dict[str, Any]:
        """Match against parameter names; a name ending in `?` may be absent, `*` starts keyword-only."""
        bound: dict[str, Any] = {}
        plain = [n.rstrip("?") for n in names]
        positional_names = plain[: plain.index("*")] if "*" in plain else plain
        if len(self.positional) > len(positional_names):
            raise UnsupportedConstruct(f"{what} with {len(self.positional)} positional arguments")
        bound.update(zip(positional_names, self.positional, strict=False))
        for name, value in self.keywords:
            if name not in plain or name in bound:
                raise UnsupportedConstruct(f"{what} with argument `{name}`")
            bound[name] = value
        for name in names:
            if name != "*" and not name.endswith("?") and name not in bound:
                raise UnsupportedConstruct(f"{what} without argument `{name}`")
        return bound


def _both_ends(a: Range, b: Range) -> tuple[tuple[Num, Num], ...] | None:
    """What two ranges have at the same place, if these are single numbers."""
    ends = ((a.start, b.start), (a.stop, b.stop), (a.step, b.step))
    return ends if all(end.is_scalar for pair in ends for end in pair) else None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What earlier runs over the same kernel found; the last run sees all of it.

    `written` are the arrays that the launch writes, `integers` the arrays and scalars whose values are
    used as integers, `ranks` the number of axes of each array, `lists` the parameters that are lists. Of
    Triton kernels: `pointers` are the parameters that memory is reached through, `numbers` those that certainly
    are none of them, `positive` the expressions that are tile sizes. `flagged` are the compile-time conditions
    that hold wherever memory is reached through a parameter. With `by_name` no run could tell some pointer, and
    names of parameters may.
    """

    written: frozenset[str] = frozenset()
    integers: frozenset[str] = frozenset()
    ranks: tuple[tuple[str, int], ...] = ()
    lists: frozenset[str] = frozenset()
    pointers: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    positive: frozenset[Expr] = frozenset()
    flagged: tuple[tuple[str, Expr], ...] = ()
    by_name: bool = False

    def answer(self, what: str, name: str | None) -> Any:
        """What a field says of a name: whether it is one of those, or what it is mapped to. Of None, all."""
        found = getattr(self, what)
        if name is None:
            return found
        return name in found if isinstance(found, frozenset) else dict(found).get(name)


@dataclass(slots=True)
class Loop:
    """The innermost loop while its body runs. Mutable: `break` and `continue` report to it."""

    frame: Frame
    continues: list[tuple[Expr, dict[str, Any]]] = field(default_factory=list)
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Unrolled:
    """A static loop of unknown length: how often it runs, its number, and what each iteration has of that."""

    trips: Expr
    number: Symbol
    bounds: frozenset[Expr]


@dataclass(slots=True)
class _At:
    """Sets the site of a run for a while; a class, as it is done for every call and operator."""

    x: Executor
    site: Site

    def __enter__(self) -> None:
        self.x.site, self.site = self.site, self.x.site

    def __exit__(self, *_: object) -> None:
        self.x.site = self.site


@dataclass(slots=True, eq=False)
class Executor:
    """Mutable state of one run."""

    reads_every_way: ClassVar[bool] = True  # a name that its module binds in several ways is each of them
    follows_searches: ClassVar[bool] = True  # what loops that search keep is said of their variables
    has_machine_integers: ClassVar[bool] = True  # numbers that may wrap

    project: Project
    dialect: Dialect
    site: Site
    knowledge: Knowledge = field(default_factory=Knowledge)  # runs ask with `knows`, which remembers
    answers: dict[tuple[str, str | None], Any] = field(default_factory=dict)
    guard: Expr = E.TRUE
    dry: int = 0
    contract: bool = False
    serial: int = 0
    steps: int = 0
    depth: int = 0
    importing: int = 0  # so many module-level expressions are being evaluated, one for another
    loops: list[Loop] = field(default_factory=list)
    nest: list[tuple[Symbol, Expr | None]] = field(default_factory=list)  # iteration symbols, loop variables
    unsafe: int | None = None
    synchronised: bool = False
    accesses: list[Access] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    overflow: Overflow = field(default_factory=Overflow)
    unsafe_blocks: list[UnsafeBlock] = field(default_factory=list)
    barriers: list[Barrier] = field(default_factory=list)
    launch_waits: list[LaunchWait] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    sums: list[RunningSum] = field(default_factory=list)
    uneven: bool = False  # what addresses are computed by does not say how their tiles are laid out
    folds_planes: bool = False  # a tile of several axes was reduced, reshaped, ..., or an index turned back
    splits_warps: bool = False  # a loop may be dealt out to several groups of warps
    waits: list[Access] = field(default_factory=list)
    settled: list[tuple[Expr, Expr]] = field(default_factory=list)  # what loops left true, and where
    guards: dict[int, Expr] = field(default_factory=dict)  # of loads and exchanges, by position
    leaving: bool = False  # the condition with which a `while` loop ends is evaluated
    facts: dict[Expr, None] = field(default_factory=dict)
    powers: dict[Expr, None] = field(default_factory=dict)
    grid_axes: set[int] = field(default_factory=set)
    ranks: dict[str, int] = field(default_factory=dict)
    integers: set[str] = field(default_factory=set)
    questions: dict[str, dict[tuple[str, Expr, Expr], None]] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)
    pointers: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    flags: dict[str, frozenset[Expr]] = field(
        default_factory=dict
    )  # around what reaches memory through a pointer
    unclear: UnsupportedConstruct | None = None  # a pointer whose base this run could not tell
    used: set[str] = field(default_factory=set)
    arrays: set[str] = field(default_factory=set)
    constants: frozenset[str] = frozenset()  # untyped compile-time parameters
    wide: frozenset[str] = frozenset()  # arrays indexed with int64
    unrolled: list[Unrolled] = field(default_factory=list)  # the static loops that are open
    tables: frozenset[str] = frozenset()  # arrays of integers, by a contract about their values
    files: dict[str, None] = field(default_factory=dict)
    bounds_floats: bool = False  # what bounds a float is said of what it is rounded to
    ways: dict[Symbol, str] = field(default_factory=dict)  # what stands for names that are not read, and why
    globals: dict[tuple[str, str], Any] = field(default_factory=dict)  # file and name -> what it was taken for
    names: dict[str, Expr] = field(default_factory=dict)
    makers: dict[Expr, Site] = field(default_factory=dict)  # where each 32-bit sum or product was computed
    moves: dict[tuple[Symbol, tuple[tuple[Expr, Expr], ...]], Symbol] = field(default_factory=dict)
    copies: set[Symbol] = field(default_factory=set)  # the values of `moves`
    wraps: dict[Expr, Expr] = field(default_factory=dict)  # what 32-bit values are that nothing bounds

    # ---- what a run over host code does its own way ------------------------------------------------------
    # A kernel is read strictly: what is not modelled ends the run. A run over host code overrides these to
    # carry on with an unknown value, and to keep what raises and asserts establish.

    def expression(self, node: cst.BaseExpression, frame: Frame) -> Callable[[], Any] | None:
        """Another way to evaluate this node, or None for the usual one."""
        return None

    def recover(self, problem: UnsupportedConstruct, node: cst.BaseExpression, frame: Frame) -> Any:
        """The value of an expression that is not modelled."""
        raise problem

    def statement(self, node: cst.CSTNode, frame: Frame) -> bool:
        """Execute a statement another way than the usual one; False if it was left alone."""
        return False

    def target(self, target: cst.BaseExpression, value: Any, frame: Frame) -> bool:
        """Assign to a target another way than the usual one; False if it was left alone."""
        return False

    def join(self, a: Expr, b: Expr) -> Expr:
        """The path condition where two paths meet."""
        return E.any_of(a, b)

    def bind(self, function: Function, args: Arguments) -> Frame | None:
        """Another way to bind arguments to parameters, or None for the usual one."""
        return None

    def undecorated(self, function: Function) -> None:
        """Refuse a function whose decorator may have put another in its place."""
        for decorator in getattr(function.node, "decorators", ()):
            node = decorator.decorator
            name = dotted(node.func if hasattr(node, "func") else node)
            written_here = not isinstance(
                function.table.bindings.get(name.partition(".")[0], Import("", None)), Import
            )
            if written_here or name.rpartition(".")[2] not in TRANSPARENT:
                raise UnsupportedConstruct(f"decorator of `{function.name}`", self.site.span, self.site.file)

    def guard_after(self, before: Expr, frame: Frame) -> Expr:
        """The path condition after a call whose paths returned into `frame.returns`."""
        return before

    # ---- unknowns ------------------------------------------------------------------------------------

    def number(self) -> int:
        self.serial += 1
        return self.serial

    def fresh(self, origin: str, *, per_lane: bool, boolean: bool = False, name: str = "value") -> Expr:
        """An unknown that may differ in every block and iteration, and in every lane if `per_lane`."""
        symbol = Symbol(name, Kind.OPAQUE, self.number(), origin=origin, per_lane=per_lane)
        return E.bool_sym(symbol) if boolean else E.sym(symbol)

    def moved(self, symbol: Symbol, positions: tuple[tuple[Expr, Expr], ...]) -> Expr:
        """The unknown that a tile of unknowns holds at other positions; the same one for the same move."""
        found = self.moves.get((symbol, positions))
        if found is None:
            found = self.moves[symbol, positions] = replace(symbol, uid=self.number())
            self.copies.add(found)
        return E.sym(found)

    def _is_moved(self, value: Num) -> bool:
        """Whether a number is what another unknown is elsewhere: it is known then to be the same for the same
        one."""
        return value.elem is not None and value.elem.args[0] in self.copies

    def derived(self, *values: Expr) -> str:
        """The origin of an unknown that is computed from `values` and has their type.

        It names the memory that they come from: whether the unknown is an integer depends on that.
        """
        names = sorted(set().union(*map(memory_names, values)))
        origin = numbers.origin(*values)
        return f"{origin if origin == 'atomic' else 'memory'}:{','.join(names)}" if names else origin

    def knows(self, what: str, name: str | None = None) -> Any:
        """What earlier runs found (`Knowledge.answer`). Runs that get the same answers are the same."""
        answer = self.answers[what, name] = self.knowledge.answer(what, name)
        return answer

    def would_be(self, knowledge: Knowledge) -> bool:
        """Whether a run that knows this would do what this run did."""
        return all(knowledge.answer(*question) == answer for question, answer in self.answers.items())

    @property
    def positive(self) -> frozenset[Expr]:
        """The sizes of tiles, as far as an earlier run has found them."""
        found: frozenset[Expr] = self.knows("positive")
        return found

    def is_integer_memory(self, value: Expr) -> bool:
        """Whether everything read from memory or passed untyped in `value` is used as an integer: by the
        kernel, or by what its contracts compare it with, so that launches are asked for one."""
        return all(map(self.is_integer, memory_names(value)))

    def is_integer(self, name: str) -> bool:
        """Whether the elements of an array, or what is passed for a parameter, are used as integers. That this
        run has found one is what it learns in the end."""
        return name in self.tables or name in self.integers or self.knows("integers", name)

    def unfolded(self, value: Expr, x: Expr, y: Expr, *, per_lane: bool) -> Expr:
        """`value`, made of `x` and `y`, unless something was folded away in it that may be no integer: where v
        is a float, v + 1 - v need not be 1, nor v % 1 be 0."""
        lost = (memory_names(x) | memory_names(y)) - memory_names(value)
        if all(map(self.is_integer, lost)):
            return value
        return self.fresh(self.derived(x, y), per_lane=per_lane)

    def is_loaded(self, value: Expr) -> bool:
        """Whether something in `value` was read from memory, or is not known at all."""
        return any(_is_memory(node) for node in E.walk(value))

    # ---- obligations ---------------------------------------------------------------------------------

    def check(self, kind: CheckKind, goal: Expr, what: str, array: str = "") -> None:
        if not self.dry and goal is not E.TRUE:
            self.checks.append(Check(kind, goal, self.guard, what, self.site, self.unsafe, array))

    def divides(self, divisor: Expr) -> None:
        self.check(CheckKind.DIVISOR, E.le(1, divisor), E.render(divisor))

    def quotient(self, op: str, dividend: Expr, divisor: Expr) -> Expr:
        """`dividend // divisor` or `dividend % divisor` of machine integers, the divisor being positive."""
        if self.contract:
            return E.floordiv(dividend, divisor) if op == "//" else E.mod(dividend, divisor)
        return self.dialect.quotient(self, op, dividend, divisor)

    def power_of_two(self, n: Num, *, shifts: bool) -> Num | None:
        """`1 << n`, if it `shifts`, or `2 ** n`, of a number of compile time."""
        from tilecheck.frontend.execute.powers_of_two import power_of_two  # lazy: it runs on top of this

        return power_of_two(self, n, shifts=shifts)

    def steps_by(self, step: Expr) -> None:
        self.check(CheckKind.STEP, E.le(1, step), E.render(step))

    def fits(self, value: Expr, shape: tuple[Expr, ...] = ()) -> Expr:
        """Note that a 32-bit value of this tile shape must not have wrapped, in any lane. Gives the value."""
        if self._is_rounded(value):
            return self._wrapped(value, per_lane=bool(shape))
        if not self.dry:
            self._fits(value, shape, E.TRUE)
        return value

    def fits_as_offset(self, value: Expr, shape: tuple[Expr, ...]) -> Expr:
        """The same of an offset of a pointer. Where the integers that floats were rounded to are bounded, it
        must not have wrapped either."""
        found = self.fits(value, shape)
        if found is value or not self._is_rounded(value):
            return found
        near, where = self._near(value)
        if where is E.FALSE:
            return found
        if not self.dry:
            self._fits(near, shape, where)
        return E.ite(where, near, found)

    def _is_rounded(self, value: Expr) -> bool:
        """Whether a value is what a float was rounded to, give or take something: any number of 32 bits, of
        which no proof can show that it does not wrap, but for what the path says of it."""
        terms = value.args if value.op == "add" else (value,)
        found = [_rounded(term) for term in terms]
        return any(s is not None and s not in E.symbols(self.guard) for s in found)

    def _near(self, value: Expr) -> tuple[Expr, Expr]:
        """A value where all that floats were rounded to in it is bounded, and where that is so."""
        bounded = [n for n in E.walk(value) if n.op == "ite" and _rounded(n) is not None]
        bounded = [n for n in bounded if n.args[1].op in ("min", "max") and _is_clamped(n.args[1])]
        near = E.substitute(value, {n: n.args[1] for n in bounded})
        return near, E.all_of(*(n.args[0] for n in bounded)) if bounded else E.FALSE

    def _wrapped(self, value: Expr, *, per_lane: bool) -> Expr:
        """A 32-bit value that may have wrapped: itself where it fits, else some other number."""
        if self.bounds_floats and float_ranges.fits(value):
            return value
        for term in value.args if self.bounds_floats and value.op == "add" else ():
            if term.op == "ite":
                near, far = (E.substitute(value, {term: branch}) for branch in term.args[1:])
                if float_ranges.fits(near):
                    return E.ite(term.args[0], near, self._wrapped(far, per_lane=per_lane))
        if value not in self.wraps:
            fits = E.all_of(E.le(-(2**31), value), E.lt(value, 2**31))
            self.wraps[value] = E.ite(fits, value, self.fresh("data", per_lane=per_lane))
        return self.wraps[value]

    def _fits(self, value: Expr, shape: tuple[Expr, ...], case: Expr) -> None:
        if value.op == "ite":  # one of its branches is the value, and the other may wrap as it likes
            test, first, second = value.args
            for chosen, branch in ((test, first), (E.negate(test), second)):
                if numbers.may_have_wrapped(branch):
                    self._fits(branch, shape, E.all_of(case, chosen))
            return
        mapping, bounds = {}, []
        for i, size in enumerate(reversed(shape)):
            place = E.sym(Symbol(f"lane {len(shape) - 1 - i}", Kind.LANE, self.number(), bound=size))
            mapping[lane(i)] = place
            bounds += [E.le(0, place), E.lt(place, size)]
        guard = E.all_of(self.guard, *bounds, E.substitute(case, mapping))
        steps = tuple((E.substitute(n, mapping), self.makers[n]) for n in E.walk(value) if n in self.makers)
        of_lanes = E.substitute(value, mapping)
        made = Arithmetic(of_lanes, guard, self.site, self.unsafe, tuple(reversed(steps)))
        # What a launch bounds is asked in all lanes: no value from memory is in it.
        self.overflow.add(made, value if self.is_loaded(value) else None, case, shape)

    @property
    def carries_no_rests(self) -> bool:
        """Whether numbers carry no overflow checks: where nothing is recorded, and before there is any."""
        return self.dry > 0 or self.overflow.is_idle

    def depends(self, result: Any, first: int, *operands: Any) -> Any:
        """Have the result of an operation rest on the checks of its operands, and on those made since there
        were `first` (S-32bit-1). A literal is a sink (S-32bit-2)."""
        if self.carries_no_rests:
            return result
        if isinstance(result, Seq):
            return replace(result, items=tuple(self.depends(r, first, *operands) for r in result.items))
        if isinstance(result, Num) and is_new_unknown(result, *operands) and not self._is_moved(result):
            return result
        rests = coarse(self.overflow.since(first).union(*map(rests_of, operands)))
        if isinstance(result, Const) and isinstance(result.value, int | float):
            self.overflow.test(rests)
        return resting(result, rests)

    def tests(self, value: Any, first: int) -> None:
        """Record that a test rests on the checks of `value`, and on those made since there were `first`."""
        if not self.carries_no_rests:
            self.overflow.test(rests_of(value) | self.overflow.since(first))

    def changes_so_far(self) -> Any:
        """What has changed objects so far: one branch does not see what the other one changes."""
        return None

    def set_changes(self, changes: Any) -> None:
        """Go on as after these changes alone."""

    def join_changes(self, others: Any, *, ended: tuple[bool, bool]) -> None:
        """Go on as after either of two branches: one that changed `others`, and this one. `ended` says of each
        whether it left the function."""

    def note_name(self, name: str, value: Any) -> None:
        """Remember what the author calls a block-dependent integer; reports use it."""
        if not isinstance(value, Num) or value.shape or value.kind != "int" or value.elem is None:
            return
        if any(s.kind is Kind.BLOCK for s in E.symbols(value.elem)):
            self.names.setdefault(name, value.elem)

    def compared(self, op: str, a: Num, b: Num) -> None:
        """Note that two numbers are compared: a parameter beside an integer may be one by that."""
        if not self.dialect.has_pointers:
            return
        for this, other in ((a, b), (b, a)):
            if this.kind != "any" or this.elem is None or other.elem is None:
                continue
            if numbers.is_argument(this) and numbers.is_literal(other):
                self._ask(op, a, b)
                continue
            known = other.kind == "int" or (other.kind == "any" and self.is_integer_memory(other.elem))
            if known and not self.is_loaded(this.elem):
                self.use_as_integer(this.elem)

    def asked(self, op: str, a: Num, b: Num) -> None:
        """Note what is asked of numbers of compile time."""
        if numbers.is_compile_time(a) and numbers.is_compile_time(b):
            self._ask(op, a, b)

    def shifted(self, op: str, a: Num, b: Num) -> None:
        """Note a sum of a parameter and a literal, as of a length and the 1 by which the last index is less:
        where it bounds what is rounded to an index, it matters whether the parameter is an integer."""
        for this, other in ((a, b), (b, a)):
            if self.dialect.has_pointers and numbers.is_argument(this) and way_of(other) is not None:
                self._ask(op, this, this)

    def _ask(self, op: str, a: Num, b: Num) -> None:
        """A float answers one question as some integer does, and two as none may (`R > 0` and `R < 1`): what
        several are asked of is taken for an integer."""
        if a.elem is None or b.elem is None:
            return
        for name in {s.name for s in E.symbols(a.elem, b.elem)}:
            questions = self.questions.setdefault(name, {})
            questions[op, a.elem, b.elem] = None
            if len(questions) > 1 and any(word in _ORDERS for word, _, _ in questions):
                self.integers.add(name)

    def integral(self, *values: Num) -> None:
        """Note the operands of what the language has for integers alone, one of them no compile-time value:
        with another type the kernel does not compile."""
        if self.dialect.has_pointers:
            for value in values:
                if value.kind == "any" and value.elem is not None:
                    self.use_as_integer(value.elem)

    def numeric(self, *values: Num) -> None:
        """Note the operands of what has none that is a pointer: an order, a product, a quotient, a shift."""
        if self.dialect.has_pointers:
            for value in values:
                if value.kind == "any" and value.elem is not None:
                    self.numbers.update(s.name for s in _untyped_terms(value.elem))

    def exchanged(
        self,
        *values: Any,
        whole: bool = False,
        loads: frozenset[int] = frozenset(),
        shape: tuple[Expr, ...] = (),
        scans: bool = False,
    ) -> frozenset[int]:
        """Note an operation by which threads may see what others loaded, if a value comes from memory; of a
        reduction or scan of a tile of this `shape` the `loads` whose elements it goes over.

        Gives its position, if it is noted."""
        if self.dry or not self.dialect.has_pointers:
            return frozenset()
        if not any(self._may_change(value) for value in values):
            return frozenset()
        loops = tuple(k for k, _ in self.nest)
        self.exchanges.append(Exchange(self.number(), loops, whole, loads, shape, self.guard, scans))
        self.guards[self.serial] = self.guard
        return frozenset({self.serial})

    def _may_change(self, value: Any) -> bool:
        """Whether a value may have been computed from an array that the launch writes: threads that load it at
        different times may then hold different values. Of data nothing is known."""
        if not isinstance(value, Num) or value.way is not None:  # memory gives values of no known way
            return False
        if value.elem is None:
            return not numbers.is_compile_time(value)
        unknown = [s for s in E.symbols(value.elem) if s.kind is Kind.OPAQUE]
        if any(not s.origin.startswith("memory:") for s in unknown):
            return True
        return any(self.knows("written", name) for s in unknown for name in s.memory)

    def folds(self, *values: Any) -> None:
        """Note an operation that takes axes away or puts elements elsewhere, if it has to do with planes."""
        self.folds_planes |= any(isinstance(value, Num) and len(value.shape) > 1 for value in values)

    def turns_back(self) -> None:
        """Note that what falls along a tile is subtracted or negated: the compiler does not see that the result
        rises by 1, as it is written here, and may lay out its tiles otherwise than others."""
        self.folds_planes = True

    def widened(self, shape: tuple[Expr, ...], *values: Num) -> frozenset[int]:
        """Note the values that are used beside more elements than they have."""
        fewer = [v for v in values if v.shape != shape]
        return self.exchanged(*fewer, whole=all(s is E.ONE for v in fewer for s in v.shape), shape=shape)

    def made(self, value: Expr) -> None:
        self.makers.setdefault(value, self.site)

    def use_as_integer(self, value: Expr) -> None:
        self.integers.update(memory_names(value))

    def record(self, access: Access) -> None:
        if not self.dry and access.guard is not E.FALSE:
            self.accesses.append(access)
        if self.dry == 1 and self.leaving and access.effect is Effect.ATOMIC:
            self.waits.append(access)

    # ---- conversions ---------------------------------------------------------------------------------

    def number_of(self, value: Any, what: str) -> Num:
        """`value` as a number."""
        value = used(value)
        first = len(self.overflow.checks)
        match value:
            case Num():
                return value
            case Param():
                found = self.dialect.param(self, value.name)
                return replace(found, bits=found.bits or 32) if value.assigned else found
            case Const(bool() as b):
                return Num((), E.TRUE if b else E.FALSE, "bool", None)
            case Const(float() as literal):
                natural, single = signs.of_literal(literal), signs.is_single(literal)
                way, span = (1, "literal", literal), float_ranges.of_literal(literal)
                return Num((), None, "data", None, natural=natural, single=single, way=way, span=span)
            case Token():
                return Num((), None, "data", None)
            case Choice():
                one, two = self.number_of(value.first, what), self.number_of(value.second, what)
                if len(one.shape) != len(two.shape):
                    raise UnsupportedConstruct(f"{what} used as a number", self.site.span, self.site.file)
                merged: Num = self.depends(self._merge_numbers(value.cond, one, two), first, value)
                return merged
            case Named() if value.name.startswith(("math.", "numpy.", "torch.")):
                return Num((), None, "data", None)  # a constant such as math.inf
            case Poison():
                raise UnsupportedConstruct(value.why, self.site.span, self.site.file)
            case _:
                raise UnsupportedConstruct(f"{what} used as a number", self.site.span, self.site.file)

    def scalar(self, value: Any, what: str) -> Expr:
        """`value` as one integer that will be used as a size or a loop bound."""
        first = len(self.overflow.checks)
        found = self.index(value, what)
        self.tests(found, first)
        assert found.elem is not None
        return found.elem

    def index(self, value: Any, what: str) -> Num:
        """`value` as one integer that will be used as an index."""
        first = len(self.overflow.checks)
        num = self.number_of(value, what)
        if num.elem is None:
            num = replace(num, elem=numbers.as_int(num, self))
        num = numbers.first_element(num, self)
        found = Num((), self._scalar(num), num.kind, num.bits)
        return numbers.rested(found, self, first, num)

    def _scalar(self, num: Num) -> Expr:
        result = numbers.as_int(num, self)
        self.use_as_integer(result)
        if num.bits == 32 and numbers.may_have_wrapped(result):
            return self.fits(result)
        return result

    def truth(self, value: Any) -> Expr:
        """The truth of a scalar value, as a branch sees it."""
        first = len(self.overflow.checks)
        found = self._truth(value)
        self.tests(value, first)
        return found

    def _truth(self, value: Any) -> Expr:
        match value:
            case Num():
                return numbers.as_bool(value, self)
            case Const():
                return E.TRUE if value.value else E.FALSE
            case Seq():
                return E.TRUE if value.items else E.FALSE
            case Token():
                return E.bool_sym(Symbol(value.name, Kind.CONSTANT))
            case Param():
                return numbers.as_bool(self.dialect.param(self, value.name), self)
            case Choice() if value.truth is not None:
                return value.truth
            case Choice():
                return E.any_of(
                    E.all_of(value.cond, self.truth(value.first)),
                    E.all_of(E.negate(value.cond), self.truth(value.second)),
                )
            case Poison():
                raise UnsupportedConstruct(value.why, self.site.span, self.site.file)
            case Function() | ModuleRef() | RecordType():
                return E.TRUE
            case Pointer(array=name, offset=offset) if offset == START:  # of a parameter, which may be None
                return E.negate(E.bool_sym(Symbol(f"{name} is None", Kind.CONSTANT)))
            case _:  # a name that another module gives, an attribute of it: nothing says that they are true
                raise UnsupportedConstruct("truth of a value that is not read", self.site.span, self.site.file)

    def branch_on(self, cond: Expr) -> None:
        """Note a branch: one on an atomic's result may order blocks in ways that races do not see."""
        if any(s.origin.startswith("atomic") for s in E.symbols(cond)):
            self.synchronised = True

    # ---- paths ---------------------------------------------------------------------------------------

    def at(self, table: ModuleTable, node: cst.CSTNode) -> _At:
        """Obligations made inside belong to `node`."""
        return _At(self, table.site(node))

    @contextmanager
    def unsafe_statement(self, table: ModuleTable, node: cst.CSTNode) -> Iterator[None]:
        """Honour an unsafe pragma that is attached to this statement."""
        before = self.unsafe
        block = table.unsafe_pragma(node)
        if block is not None:
            self.unsafe = self.unsafe_index(block)
        try:
            yield
        finally:
            self.unsafe = before

    def settle(self, fact: Expr) -> None:
        """Note what holds from here on, of values that do not change any more."""
        if fact is not E.TRUE:
            self.settled.append((self.guard, fact))
            self.guard = E.all_of(self.guard, fact)

    def settled_since(self, count: int, guard: Expr) -> Expr:
        """`guard`, where a helper was called, and what the helper has settled: that holds of what it returns.

        How often a loop ran is not negative, and that of one that was not reached may be taken for 0."""
        for where, fact in self.settled[count:]:
            given = frozenset(E.conjuncts(guard))
            own = [term for term in E.conjuncts(where) if term not in given]
            counts = [term for term in own if _is_of_count(term)]
            path = E.all_of(*(term for term in own if term not in counts))
            guard = E.all_of(guard, *counts, E.any_of(E.negate(path), fact))
        return guard

    def unsafe_index(self, block: UnsafeBlock) -> int:
        if block not in self.unsafe_blocks:
            self.unsafe_blocks.append(block)
        return self.unsafe_blocks.index(block)

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Execute without recording, to see what a loop body does to its variables."""
        state, settled = (self.guard, self.synchronised, self.unsafe), len(self.settled)
        self.dry += 1
        try:
            yield
        finally:
            self.dry -= 1
            self.guard, self.synchronised, self.unsafe = state
            del self.settled[settled:]

    @contextmanager
    def stating_contract(self) -> Iterator[None]:
        """Read an expression as a contract states it: with Python's meaning, whatever the kernel's language."""
        self.contract = True
        try:
            yield
        finally:
            self.contract = False

    def split(self, cond: Expr, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
        """Run `first` where `cond` holds and `second` elsewhere; merge what they return."""
        if cond is E.TRUE:
            return first()
        if cond is E.FALSE:
            return second()
        before = self.guard
        try:
            self.guard = E.all_of(before, cond)
            if self.guard is E.FALSE:
                self.guard = before
                return second()
            a = first()
            self.guard = E.all_of(before, E.negate(cond))
            if self.guard is E.FALSE:
                return a
            b = second()
        finally:
            self.guard = before
        return self.merge(cond, a, b)

    def merge(self, cond: Expr, a: Any, b: Any) -> Any:
        """The value that is `a` where `cond` holds and `b` elsewhere."""
        if a is b or cond is E.TRUE:
            return a
        if type(a) is type(b) and not isinstance(a, Frame) and a == b:
            return self._same(a, b)
        if cond is E.FALSE:
            return b
        if self.dialect.has_pointers:  # what is a number in one branch is one in the other
            a, b = self._beside(a, b), self._beside(b, a)
        match a, b:
            case Num(), Num() if len(a.shape) == len(b.shape):
                return self._merge_numbers(cond, a, b)
            case ((Seq() | Pointer() | BlockPointer()), _) if alike(a, b):
                pairs = zip(parts(a) or (), parts(b) or (), strict=True)
                merged = tuple(self.merge(cond, x, y) for x, y in pairs)
                # A pointer is to one element or to several: an offset that is either is no offset.
                split = isinstance(a, Pointer) and any(isinstance(part, Choice) for part in merged)
                return Choice(cond, a, b) if split else rebuilt(a, merged)
            case Range(), Range() if a.static == b.static and (ends := _both_ends(a, b)) is not None:
                start, stop, step = (self._merge_numbers(cond, one, two) for one, two in ends)
                return Range(start, stop, step, static=a.static)
            case Array(), Array() if a.name == b.name and dict(a.views).keys() == dict(b.views).keys():
                return self._merge_arrays(cond, a, b)
            case Poison(), _:
                return a
            case _, Poison():
                return b
            case _:
                return chosen(cond, a, b)

    def _same(self, a: Any, b: Any) -> Any:
        """One of two equal values, which rests on what both rest on."""
        if isinstance(a, Num):
            return a if b.rests <= a.rests else replace(a, rests=a.rests | b.rests)
        mine, others = parts(a), parts(b)
        if mine is not None and others is not None:
            return rebuilt(a, tuple(map(self._same, mine, others)))
        if isinstance(a, Choice):
            return replace(a, first=self._same(a.first, b.first), second=self._same(a.second, b.second))
        if isinstance(a, Method):
            return replace(a, value=self._same(a.value, b.value))
        if not rests_of(b) <= rests_of(a):
            self.overflow.test(rests_of(b))
        return a

    def _beside(self, value: Any, other: Any) -> Any:
        """A parameter as the number that it must be to stand for `other` elsewhere."""
        is_number = isinstance(other, Num) and other.kind in ("int", "any") and other.is_scalar
        return self.dialect.param(self, value.name) if isinstance(value, Param) and is_number else value

    def _merge_numbers(self, cond: Expr, a: Num, b: Num) -> Num:
        shape = tuple(E.ite(cond, x, y) for x, y in zip(a.shape, b.shape, strict=True))
        merged = numbers.select(Num((), cond, "bool"), replace(a, shape=()), replace(b, shape=()), self)
        made = by_branch(cond, a, b, merged.kind, self.guards)
        folded = E.FALSE
        if self.dialect.has_pointers and merged.bits is not None and merged.elem is not None:
            folded = E.either(cond, numbers.folded_where(a), numbers.folded_where(b))
        way, rests = merged.way, merged.rests
        return Num(shape, merged.elem, merged.kind, merged.bits, made, way=way, folded=folded, rests=rests)

    def _merge_arrays(self, cond: Expr, a: Array, b: Array) -> Any:
        if (a.member is None) != (b.member is None):
            return Choice(cond, a, b)
        other = dict(b.views)
        views = tuple(
            (k, View(E.ite(cond, v.base, other[k].base), E.ite(cond, v.extent, other[k].extent)))
            for k, v in a.views
        )
        member = None
        if a.member is not None and b.member is not None:
            member = E.ite(cond, a.member, b.member)
        return Array(a.name, member, views)

    def merge_names(self, cond: Expr, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        """Merge two sets of local names; a name bound on one path only keeps that value.

        Using such a name on the other path is an error of the kernel's own, so any value is right there.
        """
        merged = dict(b)
        for name, value in a.items():
            merged[name] = self.merge(cond, value, b[name]) if name in b else value
        return merged

    def step(self) -> None:
        checkpoint()
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise UnsupportedConstruct("kernel too large to execute", self.site.span, self.site.file)

    def array_of(self, value: Any, what: str) -> Array:
        """`value` as an array."""
        match value:
            case Array():
                return value
            case Param():
                self.arrays.add(value.name)
                return Array(value.name)
            case Poison():
                raise UnsupportedConstruct(value.why, self.site.span, self.site.file)
            case ArrayList():
                raise UnsupportedConstruct(f"a list of arrays as {what}", self.site.span, self.site.file)
            case _:
                raise UnsupportedConstruct(f"{what} that is not a parameter", self.site.span, self.site.file)


def _is_of_count(term: Expr) -> bool:
    """Whether it says that the number of a loop's rounds is not negative."""
    if term.op != "le" or term.args[0] is not E.ZERO:
        return False
    count = term.args[1]
    return bool(count.op == "sym" and count.args[0].kind is Kind.LOOP)


def _untyped_terms(elem: Expr) -> Iterator[Symbol]:
    """The untyped parameters of which one may be the pointer that a sum is."""
    if elem.op == "add":
        for term in elem.args:
            yield from _untyped_terms(term)
    elif elem.op == "ite":
        for branch in elem.args[1:]:
            yield from _untyped_terms(branch)
    elif elem.op == "sym" and elem.args[0].origin == "untyped" and elem.args[0].kind is Kind.SCALAR:
        yield elem.args[0]


def _is_memory(node: Expr) -> bool:
    """Whether a node is a value that was read from memory, or that nothing is known of."""
    return node.op == "read" or (node.op in ("sym", "bsym") and node.args[0].kind is Kind.OPAQUE)


def _rounded(term: Expr) -> Symbol | None:
    """The unknown that a float was rounded to, if `term` is that, or its negative."""
    if term.op == "mul" and len(term.args) == 2 and term.args[0].value == -1:
        term = term.args[1]
    if term.op == "ite" and term.args[1] is E.maximum(0, term.args[2]):  # whose sign a launch value decides
        term = term.args[2]
    if term.op == "ite" and term.args[1].op in ("min", "max"):  # bounded, where a launch value is small
        inner = _rounded(term.args[2])
        return inner if inner is not None and inner in E.symbols(term.args[1]) else None
    if term.op in ("min", "max"):
        a, b = term.args
        term = a if b.value is not None else b
    return term.args[0] if term.op == "sym" and term.args[0].origin == ROUNDED else None


def _is_clamped(e: Expr) -> bool:
    """Whether an unknown has a largest value: `max(min(u, n), 0)`."""
    return any(n.op == "min" for n in E.walk(e))
