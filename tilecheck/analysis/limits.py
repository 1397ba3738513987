"""The sizes at which 32-bit index arithmetic fits: the standing obligation S5, as a launch can check it.

A launch knows no values in memory. Arithmetic on them is bounded by contracts, `within(t, low, high)`: then a
limit says that it fits for every value that the contract allows. Where no contract bounds such a value, TC305
asks for a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilecheck.analysis.ranges import INT32_MAX
from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    any_of,
    children,
    ite,
    le,
    lt,
    maximum,
    minimum,
    negate,
    render,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Kernel, extents_of, made_of
from tilecheck.ir.parts import Part, lies_in

# What `within` says of the arrays that the launch does not write: between which values each of some parts lies.
Ranges = Mapping[str, tuple[tuple[Part, Expr, Expr], ...]]


def int32_limits(kernel: Kernel) -> tuple[str, ...]:
    """Conditions `bound <= 2147483647`, one for each 32-bit value that grows with the sizes of a launch.

    A bound is the largest absolute value by interval arithmetic, as a Python expression over launch values.
    Where a part of a value has none (a loop counter, a value from memory without a contract) the rest of it is
    bounded alone.
    """
    bounds = _Bounds(promised_ranges(kernel))
    found: dict[str, None] = {}
    for operation in kernel.arithmetic:
        for bound in bounds.of_parts(operation.value):
            found[f"{bound} <= {INT32_MAX}"] = None
    return tuple(found)


def promised_ranges(kernel: Kernel) -> Ranges:
    """Between which launch values the author puts the elements of each table."""
    found: dict[str, tuple[tuple[Part, Expr, Expr], ...]] = {}
    for c in kernel.contracts:
        if c.kind == "within" and not c.initial:
            low, high = c.bounds
            found[c.array] = (*found.get(c.array, ()), (c.part, low, high))
        elif c.kind == "filled" and not c.initial:
            found[c.array] = (*found.get(c.array, ()), (c.part, c.bounds[0], add(c.bounds[0], 1)))
        elif c.kind == "within_or":
            low, high, skip = c.bounds  # what it skips is as far off as that is
            ends = minimum(low, skip), maximum(high, add(skip, 1))
            found[c.array] = (*found.get(c.array, ()), (c.part, *ends))
    return found


def ranges_of(element: Expr, ranges: Ranges) -> Iterator[tuple[Expr, Expr]]:
    """The ranges that may be those of an element."""
    for part, low, high in ranges.get(element.args[0], ()):
        if lies_in(element.args[1:], part, extents_of(element.args[0])) is not FALSE:
            yield low, high


def likely_ranges_of(element: Expr, ranges: Ranges) -> tuple[tuple[Expr, Expr], ...]:
    """The same without those of single elements, which it hardly is, if there are others."""
    several = [r for r in ranges.get(element.args[0], ()) if not r[0] or any(step for _, step in r[0])]
    found = tuple(ranges_of(element, {element.args[0]: tuple(several)}))
    return found or tuple(ranges_of(element, ranges))


# ---- values in memory --------------------------------------------------------------------------------------


def values_in_memory(value: Expr) -> tuple[Expr, ...]:
    """The elements of arrays, results of atomics and other unknown values that `value` is computed from.

    What tells an element's place is computed apart from it, and so is what chooses between two values.
    """
    found: dict[Expr, None] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if is_from_memory(node):
            found[node] = None
        elif node.op == "ite":
            stack += reversed(node.args[1:])
        elif node.op != "read":
            stack += reversed(children(node))
    return tuple(found)


def is_from_memory(node: Expr) -> bool:
    """Whether a node is a value that no launch value bounds."""
    if node.op == "read":
        return ".shape[" not in node.args[0]
    return node.op == "sym" and node.args[0].kind is Kind.OPAQUE


def is_bounded(value: Expr, ranges: Ranges) -> Expr:
    """A condition under which every value from memory that `value` is computed from lies between launch values:
    its limit among `int32_limits` then covers it."""
    if not values_in_memory(value):
        return TRUE
    match value.op:
        case "read":
            # It is proved to lie in one of them, and the limit is the largest of all. Of several about one part
            # the first is enough.
            parts = {part: (part, low, high) for part, low, high in reversed(ranges.get(value.args[0], ()))}
            own = {value.args[0]: tuple(parts.values())}
            return any_of(*(all_of(le(low, value), lt(value, high)) for low, high in ranges_of(value, own)))
        case "add" | "mul":
            return all_of(*(is_bounded(a, ranges) for a in value.args))
        case "min" | "max" if any(a.op == "ite" for a in value.args):
            return is_bounded(_chosen(value), ranges)
        case "min" | "max":
            return all_of(*(is_bounded(a, ranges) for a in value.args)) if not _is_clamped(value) else TRUE
        case "ite":
            test, first, second = value.args
            ways = (all_of(test, is_bounded(first, ranges)), all_of(negate(test), is_bounded(second, ranges)))
            return any_of(*ways)
        case "floordiv" if not values_in_memory(value.args[1]):
            return is_bounded(value.args[0], ranges)
        case "mod" if not values_in_memory(value.args[1]):
            return TRUE  # TC301 proves that the divisor is positive
        case _:
            return FALSE


def _chosen(value: Expr) -> Expr:
    """A minimum or maximum of a choice as a choice of two minima or maxima."""
    join = minimum if value.op == "min" else maximum
    choice, other = value.args if value.args[0].op == "ite" else value.args[::-1]
    test, first, second = choice.args
    return ite(test, join(first, other), join(second, other))


def _is_clamped(value: Expr) -> bool:
    """`max(low, min(x, high))` and `min(high, max(x, low))`: between launch values whatever x is."""
    other = "min" if value.op == "max" else "max"
    for outer, inner in (value.args, value.args[::-1]):
        if inner.op == other and not values_in_memory(outer):
            return any(not values_in_memory(a) for a in inner.args)
    return False


# ---- bounds ------------------------------------------------------------------------------------------------


class _Bounds:
    """Upper bounds on absolute values, as text. Mutable: it remembers them, as values share their parts."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._known: dict[Expr, str | None] = {}
        self._seen: set[Expr] = set()

    def of_parts(self, value: Expr) -> Iterator[str]:
        """The bounds of the largest parts of `value` that have one and depend on more than compile-time
        constants, but for parts that were asked about before."""
        if value in self._seen:
            return
        self._seen.add(value)
        own = symbols(value)
        known = all(s.kind is Kind.CONSTANT for s in own) or value.op in ("sym", "const", "read")
        if known and all(made_of(s) is None for s in own):  # a power of two is soon too large
            return
        bound = self.of(value)
        if bound is not None:
            yield bound
            return
        for child in children(value):
            yield from self.of_parts(child)

    def of(self, value: Expr) -> str | None:
        """The bound of one value, or None."""
        if value not in self._known:
            self._known[value] = self._worked_out(value)
        return self._known[value]

    def _worked_out(self, value: Expr) -> str | None:
        match value.op:
            case "const":
                return str(abs(int(value.args[0])))
            case "sym":
                return self._of_symbol(value.args[0])
            case "add":
                terms = [self.of(a) for a in value.args]
                return None if None in terms else f"({' + '.join(map(str, terms))})"
            case "mul":
                factors = [self.of(a) for a in value.args]
                return None if None in factors else " * ".join(map(str, factors))
            case "floordiv" | "mod":
                return self._of_quotient(value)
            case "min" | "max" if any(a.op == "ite" for a in value.args):
                return self.of(_chosen(value))
            case "min" | "max" if _is_clamped(value):
                ends = (*value.args, *(c for a in value.args for c in children(a)))
                return self._largest([a for a in ends if not values_in_memory(a)])
            case "min" | "max":
                return self._largest(value.args)
            case "ite":
                # What is read of a table, where there is something to read: TC305 proves that the other branch,
                # which nothing bounds, is not taken, or that the whole value fits.
                return self._largest([a for a in value.args[1:] if is_bounded(a, self._ranges) is not FALSE])
            case "read":
                return self._largest([end for ends in ranges_of(value, self._ranges) for end in ends])
            case _:
                return None

    def _largest(self, values: Sequence[Expr]) -> str | None:
        ways = [self.of(value) for value in values]
        if None in ways or not ways:
            return None
        return f"max({', '.join(map(str, ways))})" if len(ways) > 1 else ways[0]

    def _of_symbol(self, symbol: Symbol) -> str | None:
        match symbol.kind:
            case Kind.CONSTANT | Kind.SCALAR | Kind.STRIDE:
                return f"abs({symbol.name})"
            case Kind.EXTENT | Kind.GRID:
                return symbol.name
            case Kind.BLOCK | Kind.LANE if symbol.bound is not None:
                bound = self.of(symbol.bound)
                return None if bound is None else f"({bound} - 1)"
            case _:
                return None

    def _of_quotient(self, value: Expr) -> str | None:
        """`|a // b| <= cdiv(|a|, b)` and `a % b <= b - 1` for b > 0, which TC301 proves of every divisor.

        Floor division rounds -5 // 3 down to -2.
        """
        top, divisor = value.args
        if any(s.varies for s in symbols(divisor)) or any(e.op == "read" for e in walk(divisor)):
            return None
        if value.op == "mod":
            return f"({render(divisor)} - 1)"
        bound = self.of(top)
        return None if bound is None else f"cdiv({bound}, {render(divisor)})"
