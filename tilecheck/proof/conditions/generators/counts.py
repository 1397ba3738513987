"""Launch values that a kernel counts with, and the conditions that are made of them alone.

decodes   grid[k] <= num_m * num_n   where a block index is taken apart by // and %
wholes    e % c == 0                 where the kernel divides by a compile-time constant c
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.ir.expr import (
    ONE,
    ZERO,
    Expr,
    Kind,
    Symbol,
    add,
    children,
    eq,
    le,
    mod,
    mul,
    negate,
    render,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Axis, Kernel, grid_symbol
from tilecheck.proof.conditions.terms import Terms

_FACTORS = 5  # counts of tiles that products are made of
_NO_COUNT = 3
_DECODING = frozenset({"floordiv", "mod", "min", "max", "lt", "le", "eq"})


class Counts:
    """The numbers of tiles, extents, scalars and radixes of one kernel."""

    def __init__(self, kernel: Kernel, terms: Terms) -> None:
        self.kernel = kernel
        self.terms = terms

    def of(self, numbers: tuple[Expr, ...], paths: tuple[Expr, ...] = ()) -> tuple[Expr, ...]:
        """Launch values that stand beside varying ones: numbers of tiles, extents, scalars, radixes.

        Those that a value of `numbers` is computed with, and those that one of `paths` compares with.
        """
        terms = self.terms
        found: dict[Expr, None] = {}
        for node in walk(*paths):
            if node.op in ("lt", "le", "eq") and not terms.uniform(node):
                limits = [child for child in children(node) if terms.uniform(child)]
                found.update((factor, None) for limit in limits for factor in self._factors(limit))
        for node in walk(*numbers, *paths):
            if node.is_bool or terms.uniform(node):
                continue
            for child in children(node):
                if terms.uniform(child) and not child.is_bool:
                    found.update(dict.fromkeys(self._factors(child)))
        ranked = sorted(found, key=self._rank)  # stable: order of appearance within a rank
        return tuple(e for e in ranked if self._rank(e) < _NO_COUNT)

    def _factors(self, e: Expr) -> Iterator[Expr]:
        for m, coefficient in self.terms.poly(e).items():
            if abs(coefficient) == 1 or m:
                yield from (self.terms.atom(number) for number in m)

    def _rank(self, e: Expr) -> int:
        """0 tile counts, 1 extents and scalars, 2 other constants, 3 what is no count (grids, tiles)."""
        found = symbols(e)
        kinds = {s.kind for s in found}
        if Kind.GRID in kinds or Kind.STRIDE in kinds or all(s in self.terms.tiles for s in found):
            return _NO_COUNT
        if e.op == "sym":
            return 1 if kinds & {Kind.EXTENT, Kind.SCALAR} else 2
        return 0

    def products(self, cone: tuple[Expr, ...]) -> Iterator[Expr]:
        """`grid[k] <= u * v` where block k is decoded by // and % and u, v are counts in the decode."""
        axes = self._decoded_axes(cone)
        counts = sorted(self._divided_by(cone)[:_FACTORS], key=self._position)
        pairs = [(i, j) for i in range(len(counts)) for j in range(i + 1, len(counts))]
        products = [mul(counts[i], counts[j]) for i, j in pairs]
        products += [mul(counts[i], counts[j], counts[k]) for i, j in pairs for k in range(j + 1, len(counts))]
        for axis in axes:
            for product in products:
                yield le(sym(grid_symbol(axis)), product)

    def _divided_by(self, cone: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Counts that block indices are divided by, and those that what comes of it is compared with. Strides,
        which it is only multiplied by, say nothing of how many blocks there are."""
        terms = self.terms
        found: dict[Expr, None] = {}
        for node in walk(*cone):
            if node.op not in _DECODING or terms.uniform(node) or not _is_decode(node):
                continue
            for child in children(node):
                if not child.is_bool:
                    parts = self._factors(child) if terms.uniform(child) else self._uniform_terms(child)
                    found.update(dict.fromkeys(parts))
        ranked = sorted(found, key=self._rank)
        return tuple(e for e in ranked if self._rank(e) < _NO_COUNT and not self._is_length(e))

    def _is_length(self, e: Expr) -> bool:
        """Whether it is how long flat memory is."""
        return self.kernel.language == "triton" and e.op == "sym" and e.args[0].kind is Kind.EXTENT

    def _uniform_terms(self, e: Expr) -> Iterator[Expr]:
        """The counts that are added in a sum: `n` of `n - group * size`."""
        for term in e.args if e.op == "add" else ():
            if self.terms.uniform(term):
                yield from self._factors(term)

    def _position(self, count: Expr) -> tuple[int, str]:
        """Where a count comes in the order of the kernel's parameters."""
        names = [param.name for param in self.kernel.params]
        owners = [s.name.partition(".")[0] for s in symbols(count)]
        found = [names.index(owner) for owner in owners if owner in names]
        return min(found, default=len(names)), render(count)

    def _decoded_axes(self, cone: tuple[Expr, ...]) -> tuple[int, ...]:
        names: dict[Symbol, None] = {}
        for node in walk(*cone):
            if node.op in ("floordiv", "mod"):
                for symbol in symbols(node.args[0]):
                    if symbol.kind is Kind.BLOCK and symbol.bound is not None:
                        names.update(dict.fromkeys(symbols(symbol.bound)))
        grids = {grid_symbol(axis): axis for axis in self.kernel.grid_axes}
        return tuple(grids[s] for s in names if s in grids)

    def wholes(self, cone: tuple[Expr, ...], axes: tuple[Axis, ...]) -> Iterator[Expr]:
        """`e % c == 0` for the compile-time constants c that the kernel divides by, and `c >= 2` where it asks
        whether a tile has one element: what is broadcast if it has."""
        terms = self.terms
        for node in walk(*cone):
            size = node.args[0] if node.op == "eq" and ONE in node.args else ONE
            if size.op == "sym" and size.args[0] in terms.tiles:
                yield le(2, size)
        for axis in axes:
            if _is_constant(axis.step) and axis.step is not ONE and terms.uniform(axis.extent):
                yield eq(mod(axis.extent, axis.step), 0)
        counts = [count for count in self.of(cone) if self._rank(count) <= 1]
        for node in walk(*cone):
            if node.op not in ("floordiv", "mod") or terms.uniform(node) or not _is_constant(node.args[1]):
                continue
            top, divisor = node.args
            for symbol in symbols(top):
                if symbol.kind is Kind.GRID:
                    yield eq(mod(sym(symbol), divisor), 0)
                elif symbol.kind is Kind.BLOCK and symbol.bound is not None:
                    yield eq(mod(symbol.bound, divisor), 0)
            for count in counts:
                if count is not divisor:
                    yield eq(mod(count, divisor), 0)


def _is_decode(node: Expr) -> bool:
    """Whether one value for all lanes is computed here from a block index, or compared with."""
    if node.op in ("lt", "le", "eq"):
        return any(n.op in ("floordiv", "mod") and _is_decode(n) for n in walk(node))
    kinds = {s.kind for s in symbols(node)}
    return Kind.BLOCK in kinds and Kind.LANE not in kinds


def _is_constant(e: Expr) -> bool:
    return e.value is not None or (e.op == "sym" and e.args[0].kind is Kind.CONSTANT)


def is_flag(term: Expr) -> bool:
    """Whether a term of a guard is decided at compile time."""
    found = symbols(term)
    return bool(found) and all(s.kind is Kind.CONSTANT for s in found)


# ---- inequalities ---------------------------------------------------------------------------------------


def inequalities(goal: Expr) -> Iterator[tuple[Expr, Expr]]:
    """`goal` as inequalities a <= b that have to do with it, clamps taken apart."""
    match goal.op:
        case "all":
            for part in goal.args:
                yield from inequalities(part)
        case "lt":
            yield from _apart(add(goal.args[0], 1), goal.args[1])
        case "le":
            yield from _apart(goal.args[0], goal.args[1])
        case "not" if goal.args[0].op in ("lt", "le"):
            yield from inequalities(negate(goal.args[0]))


def _apart(a: Expr, b: Expr) -> Iterator[tuple[Expr, Expr]]:
    if b.op in ("min", "max", "ite"):
        for branch in b.args[-2:]:
            yield from _apart(a, branch)
    elif a.op in ("max", "ite"):
        for branch in a.args[-2:]:
            yield from _apart(branch, b)
    elif b.op == "mul" and a in (ZERO, ONE) and all(f.value is None or f.value > 0 for f in b.args):
        for factor in b.args:
            if factor.value is None:
                yield from _apart(a, factor)
    elif b.op == "floordiv" and a is ONE:
        yield from _apart(b.args[1], b.args[0])
    else:
        yield a, b
