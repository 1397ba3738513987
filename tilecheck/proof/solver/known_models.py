"""Models without a solver: those found earlier for one kernel, and small changes to them.

The questions about one kernel are much alike: most that have a model have one that was found before, or one
that differs from it in a few values. A model answers a question only where every assertion of it evaluates to
true there, which is all that "sat" says; so where its values came from is of no matter. Nothing found here
says nothing. All limits are counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from tilecheck.ir.expr import Expr, Kind, Symbol, add, evaluate, le, mul, sym, symbols, walk
from tilecheck.ir.kernel import Contract
from tilecheck.proof.solver.work import EVALUATION, Work

_KEPT = 48  # models of one kernel; each is tried on every question
_STARTS = 6  # models that are changed for one question
_FAILED = 2000  # questions without one that are remembered
_STEPS = 12  # changes that lead from one of them to a model
_ROUNDS = 6  # of growing sizes
_DIVISORS = 3  # of one symbol by which it may move
_A_FEW = 8  # numbers of compile time, where tiles have two elements
_FEW, _MANY = 24, 200  # changes that are looked at for one question

_TILE = 4  # the size of plain tiles, where arrays are larger
_SEQUENCES = 8  # in plain tables
_ROOM = 1 << 20  # elements of an array of which tables say what lies where

_FREE = (Kind.SCALAR, Kind.CONSTANT, Kind.STRIDE, Kind.EXTENT)
_COUNTED = (Kind.GRID, Kind.BLOCK, Kind.LOOP, Kind.LANE)  # what is never negative

Cell = tuple[str, tuple[int, ...]]
Value = int | bool


@dataclass
class Assignment:
    """Values for all symbols and cells: those given, those that others define, and a plain one for every other.
    Mutable: it remembers what it evaluated, which is sound as its values never change."""

    symbols: Mapping[Symbol, Value]
    reads: Mapping[Cell, int] = field(default_factory=dict)
    size: int = 1
    inner: bool = False
    blocks: int = 2
    chunk: int = 0  # that tables list of each sequence
    work: Work = field(default_factory=Work)
    defined: Mapping[Symbol, Expr] = field(default_factory=dict)  # none of them by itself
    tables: Mapping[str, str] = field(default_factory=dict)  # what contracts say of arrays: see `_plain_cell`
    used: dict[Cell, int] = field(default_factory=dict)  # the plain cells that were read
    _known: dict[Expr, Value] = field(default_factory=dict)

    def value(self, symbol: Symbol) -> Value:
        found = self.symbols.get(symbol)
        if found is not None:
            return found
        meant = self.defined.get(symbol)
        plain = _plain(symbol, self.size, self.inner, self.blocks)
        return plain if meant is None else self.number(meant)

    def holds(self, assertion: Expr) -> bool:
        """Whether it is true here; division by zero anywhere in it means no."""
        known = self._known.get(assertion)
        if known is not None:
            return bool(known)
        self.work.charge(EVALUATION)
        try:
            return bool(evaluate(assertion, self.value, self._cell, self._known))
        except ZeroDivisionError:
            return False

    def satisfies(self, assertions: Sequence[Expr]) -> bool:
        # What a question is about stands last, and is what fails most often.
        return all(map(self.holds, reversed(assertions)))

    def number(self, e: Expr) -> int:
        try:
            return int(evaluate(e, self.value, self._cell, self._known))
        except ZeroDivisionError:
            return 0

    def changed(self, symbol: Symbol, value: Value) -> Assignment:
        values = {**self.symbols, symbol: value}
        return Assignment(
            values,
            self.reads,
            self.size,
            self.inner,
            self.blocks,
            self.chunk,
            self.work,
            self.defined,
            self.tables,
        )

    @property
    def cells(self) -> dict[Cell, int]:
        """The values in memory, as far as they were asked for."""
        return {**self.used, **self.reads}

    def _cell(self, array: str, indices: tuple[int, ...]) -> int:
        found = self.reads.get((array, indices))
        if found is None and array in self.tables:
            found = self.used[array, indices] = _plain_cell(self.tables[array], indices, self.size, self.chunk)
        return found or 0


def _plain_cell(kind: str, indices: tuple[int, ...], size: int, chunk: int) -> int:
    """An element of a plain table: sequences of some rows each (`increasing`), of each one chunk (`chunks`),
    how many chunks are before each (`chunk_sums`)."""
    rows, tile = max(1, size // _SEQUENCES), min(size, _TILE)
    match kind:
        case "increasing" | "prefix_sum":
            return indices[0] * rows
        case "chunk_sums":
            return indices[0] * -(-rows // tile)
        case "chunks" | "distinct_pairs":
            row, column = indices if len(indices) == 2 else divmod(indices[0], 2)
            return chunk if column else row
        case "distinct" | "permutation":
            return indices[0]
        case _:
            return rows if kind == "counts" else 0


def _plain(symbol: Symbol, size: int, inner: bool, blocks: int) -> int:
    """A value of a launch in which every array has `size` elements along each axis: tiles and the grid are
    smaller, and of two blocks or lanes the second is the next. What is `inner` is not the first of its kind:
    there strides matter."""
    if symbol.varies and inner:
        return 0 if symbol.instance == 2 and symbol.kind is Kind.BLOCK else 1 + (symbol.instance == 2)
    if symbol.varies:
        return 1 if symbol.instance == 2 and symbol.kind in (Kind.BLOCK, Kind.LANE) else 0
    if symbol.kind is Kind.GRID:
        return min(size, blocks)
    return min(size, _TILE) if symbol.kind is Kind.CONSTANT else size


@dataclass
class Recall:
    """The models of one kernel, the last found first, and plain launches. Mutable: it learns from answers."""

    work: Work = field(default_factory=Work)
    _kept: list[Assignment] = field(default_factory=list)
    _plain: list[Assignment] = field(default_factory=lambda: [Assignment({}, size=n) for n in (64, 1, 2)])
    _inner: Assignment = field(default_factory=lambda: Assignment({}, size=64, inner=True))

    _moved: dict[Expr, tuple[Symbol, ...]] = field(default_factory=dict)  # of assertions that were looked at
    _many: Assignment = field(default_factory=lambda: Assignment({}, size=64, blocks=16))
    _long: Assignment = field(default_factory=lambda: Assignment({}, size=1024))  # sequences of many tiles
    _later: Assignment = field(default_factory=lambda: Assignment({}, size=1024, chunk=1))
    # The questions for which no changes were found, and what they were changes to besides plain launches.
    _failed: dict[tuple[tuple[Expr, ...], bool], list[Assignment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for assignment in self._made:
            assignment.work = self.work

    @property
    def _made(self) -> tuple[Assignment, ...]:
        """The plain launches, which no solver found."""
        return (*self._plain, self._inner, self._many, self._long, self._later)

    def promise(self, contracts: Sequence[Contract]) -> None:
        """Plain launches have tables that keep the contracts, where that is easy."""
        # What says more of a table than that it is increasing comes last.
        said = sorted(contracts, key=lambda c: c.kind != "increasing")
        tables = {c.array: c.kind for c in said if c.kind not in ("filled", "within", "within_or")}
        tables |= {c.others[0]: "counts" for c in contracts if c.kind == "prefix_sum"}
        for assignment in self._made:
            assignment.tables = tables

    def learn(self, symbols: Mapping[Symbol, Value], reads: Mapping[Cell, int]) -> None:
        self._kept.insert(0, Assignment(symbols, reads, work=self.work))
        del self._kept[_KEPT:]

    def find(self, assertions: Sequence[Expr]) -> Assignment | None:
        """An assignment that satisfied an earlier question and satisfies this one."""
        return next((a for a in (*self._kept, *self._plain, self._inner) if a.satisfies(assertions)), None)

    def repaired(self, assertions: Sequence[Expr], *, wanted: bool) -> Assignment | None:
        """An assignment that some changes turn into a model. Few are looked at unless a model is `wanted`:
        where a proof is, there mostly is none."""
        kept = self._kept[: _STARTS - 1]
        question = (tuple(assertions), wanted)
        before = self._failed.get(question)
        if before is not None and len(before) == len(kept) and all(map(is_, before, kept)):
            return None  # it would start from the same again
        found = self._repaired(assertions, kept, wanted=wanted)
        if found is None:
            if len(self._failed) >= _FAILED:
                self._failed.clear()
            self._failed[question] = kept
        return found

    def _repaired(
        self, assertions: Sequence[Expr], kept: Sequence[Assignment], *, wanted: bool
    ) -> Assignment | None:
        lengths, rest = _lengths(assertions)
        most = _MANY if wanted else _FEW
        roomy, long = ([*self._roomy(rest)], [self._long, self._later]) if self._long.tables else ([], [])
        plain = [*roomy, self._usual(rest), *self._plain[:1], *long, self._inner, self._many]
        # Where a model is wanted, those found before leave as many changes to plain ones.
        own, others = Repair(rest, most), Repair(rest, most)
        searches = [*((start, own) for start in kept), *((start, others if wanted else own) for start in plain)]
        if self._inner.tables:
            # What was found before has tables for its own blocks; plain ones have them for all, and come first.
            searches = [*((start, others) for start in plain), *((start, own) for start in kept)]
        for start, search in searches:
            found = search.from_(_grown(start, rest))
            if found is not None:
                found = _grown(found, lengths)
            if found is not None and found.satisfies(assertions):
                self.learn(found.symbols, found.cells)
                return found
        return None

    def _usual(self, assertions: Sequence[Expr]) -> Assignment:
        """A launch as most are: two elements in a tile, constants of a few tiles, arrays of more than that, and
        nothing by which a block index or a counter is moved."""
        found = list(symbols(*assertions))
        values: dict[Symbol, Value] = {s: _A_FEW for s in found if s.kind is Kind.CONSTANT}
        values |= {s: 2 for lane in found if lane.bound is not None for s in symbols(lane.bound) if s in values}
        for a in assertions:
            if a not in self._moved:
                self._moved[a] = tuple(_moved(a))
            values.update((s, 0) for s in self._moved[a])
        return Assignment(values, size=64, work=self.work, tables=self._inner.tables)

    def _roomy(self, assertions: Sequence[Expr]) -> Iterator[Assignment]:
        """A launch of long sequences where arrays have room for all that tables say lies in them, as many
        places as `x // d`."""
        divided = (node.args[0] for node in walk(*assertions) if node.op == "floordiv")
        extents = (e.args[0] for e in divided if e.op == "sym" and e.args[0].kind is Kind.EXTENT)
        values: dict[Symbol, Value] = dict.fromkeys(extents, _ROOM)
        if values:
            # There are several groups: of heads x % n, those that x % n // d tells.
            values |= {s: 1 if le(sym(s), 1) in assertions else 2 for s in _group_sizes(assertions)}
            long = self._long
            yield Assignment(values, size=long.size, work=self.work, tables=long.tables)


def _group_sizes(assertions: Sequence[Expr]) -> Iterator[Symbol]:
    for node in walk(*assertions):
        x, d = node.args if node.op == "floordiv" else (node, node)
        if x.op == "mod" and d.op == "sym" and d is not x.args[1]:
            yield d.args[0]


def _moved(assertion: Expr) -> Iterator[Symbol]:
    """The numbers of a launch that are added to a block index or a counter."""
    for node in walk(assertion):
        own = [e.args[0] for e in node.args if e.op == "sym"] if node.op == "add" else []
        if any(s.varies for s in own):
            yield from (s for s in own if s.kind in (Kind.CONSTANT, Kind.SCALAR))


def _lengths(assertions: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
    """What the assertions ask of an extent of which none says anything but how large it is at least, as plain
    comparisons; and the other assertions. Whatever these want, such an extent can be made as large as it takes
    afterwards."""
    about: dict[Symbol, list[Expr]] = {}
    for a in assertions:
        for s in symbols(a):
            if s.kind is Kind.EXTENT:
                about.setdefault(s, []).append(a)
    floors: dict[Expr, None] = {}
    least: dict[Expr, None] = {}
    for symbol, found in about.items():
        own = [_least(a, symbol) for a in found]
        if all(floor is not None for floor in own):
            floors.update((floor, None) for floor in own if floor is not None)
            least.update(dict.fromkeys(found))
    return list(floors), [a for a in assertions if a not in least]


def _least(assertion: Expr, symbol: Symbol) -> Expr | None:
    """The comparison by which it says, wherever it says anything, that an extent is at least something without
    extents: of a disjunction, what it asks for under a flag."""
    if assertion.op == "any":
        about = [term for term in assertion.args if symbol in symbols(term)]
        return _least(about[0], symbol) if len(about) == 1 else None
    if assertion.op not in ("le", "lt"):
        return None
    low, high = assertion.args
    is_floor = high.op == "sym" and high.args[0] == symbol
    return assertion if is_floor and all(s.kind is not Kind.EXTENT for s in symbols(low)) else None


def _grown(start: Assignment, assertions: Sequence[Expr]) -> Assignment:
    """The assignment with numbers set to the literals that they have to be, and strides and sizes made as large
    as what must lie inside them, from inside out."""
    grown = start
    for symbol, value in dict.fromkeys(filter(None, map(_literal, assertions))):
        found = symbols(*assertions) if symbol.kind is Kind.GRID else ()
        for s in (s for s in found if s.bound is sym(symbol) and s.kind is Kind.BLOCK):
            grown = grown.changed(s, value - 1) if grown.value(s) >= value else grown
        grown = grown.changed(symbol, value)
    # Of those with several terms most are met from the start.
    few = [a for a in assertions if a.op in ("le", "lt") or (a.op in ("any", "all") and not start.holds(a))]
    floors = {a: own for a in few if (own := tuple(_floors(a)))}
    for _ in range(_ROUNDS):
        unmet = [a for a in floors if not grown.holds(a)]
        for a in unmet:
            for low, size in floors[a]:
                least = grown.number(low)
                if least > grown.number(sym(size)):
                    grown = grown.changed(size, least)
        if not unmet:
            break
    return grown


def _literal(assertion: Expr) -> tuple[Symbol, int] | None:
    """The number of a launch that the assertion says to be a literal."""
    if assertion.op != "eq" or assertion.args[0].op != "sym" or assertion.args[1].value is None:
        return None
    symbol = assertion.args[0].args[0]
    return (symbol, assertion.args[1].value) if symbol.kind in (*_FREE, Kind.GRID) else None


def _floors(assertion: Expr) -> Iterator[tuple[Expr, Symbol]]:
    """What a stride or size has to be at least for the assertion, or one of its terms, to hold: of `i < s // d`
    that s is `(i + 1) * d`."""
    if assertion.op in ("any", "all"):
        for term in assertion.args:
            yield from _floors(term)
    elif assertion.op in ("le", "lt"):
        low, high = assertion.args
        low = add(low, 1) if assertion.op == "lt" else low
        if high.op == "floordiv":
            low, high = mul(low, high.args[1]), high.args[0]
        if _is_free(high):
            yield low, high.args[0]


def _is_free(e: Expr) -> bool:
    return e.op == "sym" and e.args[0].kind in _FREE


class Repair:
    """Greedy search: a change of one value that leaves fewer assertions unmet is kept. Mutable: it counts.
    `depends` says which symbols decide an assertion."""

    def __init__(
        self,
        assertions: Sequence[Expr],
        most: int,
        depends: Callable[[Expr], Iterable[Symbol]] = symbols,
    ) -> None:
        self._assertions = assertions
        self._tries = 0
        self._most = most
        self._about: dict[Symbol, dict[Expr, None]] = {}
        for a in assertions:
            for s in depends(a):
                self._about.setdefault(s, {})[a] = None

    def from_(self, start: Assignment) -> Assignment | None:
        current = start
        unmet = [a for a in self._assertions if not current.holds(a)]
        for _ in range(_STEPS):
            if not unmet:
                return current
            found = self._better(current, unmet)
            if found is None:
                return None
            current, unmet = found
        return None if unmet else current

    def _better(self, current: Assignment, unmet: list[Expr]) -> tuple[Assignment, list[Expr]] | None:
        for target in reversed(unmet):
            for symbol, value in _changes(target, current):
                self._tries += 1
                if self._tries > self._most:
                    return None
                trial, changed = current.changed(symbol, value), [symbol]
                grid = symbol.bound if symbol.kind is Kind.BLOCK and symbol.bound is not None else None
                if grid is not None and grid.op == "sym" and value >= current.number(grid):
                    trial = trial.changed(grid.args[0], value + 1)  # a block of that number is in the grid
                    changed.append(grid.args[0])
                for outside in self._outside(symbol, value, trial):
                    trial = trial.changed(outside, value - 1)
                    changed.append(outside)
                left = self._left(trial, changed, target, unmet)
                if left is not None:
                    return left
        return None

    def _outside(self, grid: Symbol, blocks: Value, at: Assignment) -> list[Symbol]:
        """The block indices that are in no grid of so few blocks."""
        if grid.kind is not Kind.GRID:
            return []
        along = [s for s in self._about if s.kind is Kind.BLOCK and s.bound is sym(grid)]
        return [s for s in along if at.value(s) >= blocks]

    def _left(
        self, trial: Assignment, changed: Sequence[Symbol], target: Expr, unmet: list[Expr]
    ) -> tuple[Assignment, list[Expr]] | None:
        """The trial and what it leaves unmet, if it meets `target` and leaves less than before."""
        if not trial.holds(target):
            return None
        about = {a: None for symbol in changed for a in self._about.get(symbol, ())}
        left = [a for a in unmet if a not in about]
        for a in about:
            if not trial.holds(a):
                left.append(a)
            if len(left) >= len(unmet):
                return None
        return trial, left


def _changes(assertion: Expr, at: Assignment) -> Iterator[tuple[Symbol, Value]]:
    """Changes that may make it true: by what closes the gap between the sides of a comparison, as far as the
    symbol moves them, by one, or to a literal."""
    inner = assertion.args[0] if assertion.op == "not" else assertion
    compared = inner.op in ("lt", "le", "eq")
    gap = _gap(inner, at) if compared else 1
    divisions = [node for node in walk(assertion) if node.op == "floordiv"]
    # Of `n * s <= t` it is t that can be anything.
    own = inner.args[1].args[:1] if compared and inner.args[1].op == "sym" else ()
    for symbol in dict.fromkeys((*own, *symbols(assertion))):
        value = at.value(symbol)
        if isinstance(value, bool):
            yield symbol, not value
            continue
        slope = _gap(inner, at.changed(symbol, value + 1)) - gap if compared else 0
        step = -gap // slope if slope else gap
        # A quotient of the symbol moves by one where the symbol moves by the divisor.
        divisors = [at.number(node.args[1]) for node in divisions if symbol in symbols(node.args[0])]
        strides = [value + n * d for d in divisors[:_DIVISORS] for n in (1, 2)]
        plain = (value + step, 0, value - step, value + step + 1, value + 1, value - 1)
        for other in dict.fromkeys((*plain, *strides)):
            if other != value and (other >= 0 or symbol.kind not in _COUNTED):
                yield symbol, other


def _gap(comparison: Expr, at: Assignment) -> int:
    """By how much its left side is too large for it to hold."""
    a, b = comparison.args
    return at.number(a) - at.number(b) + (comparison.op == "lt")
