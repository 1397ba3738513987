"""How large a 32-bit index expression is at small launch values.

A run-time quantity (an extent, a scalar, a block id) that is small gives small indices in real kernels:
sizes near 2^31 are kept away by the standing obligations S4 and S5. So an expression that passes 2^31
although every run-time quantity is below `SMALL` holds a constant that makes it wrap in ordinary use, and
that must be proved absent or reported. A product of many quantities passes it without any constant, as the
number of elements of an array of six axes does; of such an expression they are taken to be smaller still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilecheck.ir.expr import Expr, Kind, Symbol, children, conjuncts, walk

SMALL = 64
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
_FEW = 2**16  # of this size an expression without constants leaves room for those that index arithmetic has


def wraps_when_small(value: Expr, promised: Mapping[Symbol, int]) -> bool:
    """Whether `value` can leave int32 while every run-time quantity in it is at most `SMALL`.

    `promised` are lower bounds above `SMALL` that the author's contracts state.
    """
    return _largest(value, promised, SMALL) > INT32_MAX and _largest_of_few(value, promised) > INT32_MAX


def _largest_of_few(value: Expr, promised: Mapping[Symbol, int]) -> int:
    """The bound of `_largest` with each product at its own size: what stands beside it stays as large."""
    memo: dict[Expr, int] = {}
    stack = [value]
    while stack:
        node = stack[-1]
        todo = [c for c in children(node) if c not in memo] if node.op != "mul" else []
        if todo:
            stack.extend(todo)
            continue
        stack.pop()
        if node.op == "mul":
            memo[node] = _largest(node, promised, _ordinary(node))
        else:
            memo[node] = _bound(node, memo, promised, SMALL, constants=True)
    return memo[value]


def _ordinary(product: Expr) -> int:
    """The size of run-time quantities at which `product` is no more than `_FEW`, if all literals in it are 1.
    Promises of larger ones are no reason to take others to be smaller."""
    size = SMALL
    while size > 1 and _largest(product, {}, size, constants=False) > _FEW:
        size //= 2
    return size


def promised_sizes(requirements: Iterable[Expr]) -> dict[Symbol, int]:
    """The launch values that contracts put at or above a literal."""
    found: dict[Symbol, int] = {}
    for condition in (c for r in requirements for c in conjuncts(r)):
        if condition.op in ("le", "lt") and condition.args[1].op == "sym":
            low = condition.args[0].value
            if low is not None and low > SMALL:
                symbol = condition.args[1].args[0]
                found[symbol] = max(low, found.get(symbol, 0))
    return found


def _largest(value: Expr, promised: Mapping[Symbol, int], size: int, *, constants: bool = True) -> int:
    """A bound on the absolute value, by interval arithmetic without signs: run-time quantities are at most
    `size`, and without `constants` literals are at most 1."""
    memo: dict[Expr, int] = {}
    stack = [value]
    while stack:
        todo = [c for c in children(stack[-1]) if c not in memo]
        if todo:
            stack.extend(todo)
        else:
            node = stack.pop()
            memo[node] = _bound(node, memo, promised, size, constants=constants)
    return memo[value]


def _is_of_memory(e: Expr) -> bool:
    return any(n.op == "read" or (n.op == "sym" and n.args[0].kind is Kind.OPAQUE) for n in walk(e))


def _bound(
    node: Expr, memo: dict[Expr, int], promised: Mapping[Symbol, int], size: int, *, constants: bool
) -> int:
    def of(index: int) -> int:
        return memo[node.args[index]]

    match node.op:
        case "const":
            return abs(int(node.args[0])) if constants else min(1, abs(int(node.args[0])))
        case "add":
            return sum(memo[a] for a in node.args)
        case "mul":
            product = 1
            for a in node.args:
                product *= memo[a]
            return product
        case "floordiv" | "min":
            return of(0) if node.op == "floordiv" else max(of(0), of(1))
        case "mod":  # what memory holds is no run-time quantity that is small
            return min(of(0), of(1)) if node.args[1].value and not _is_of_memory(node.args[0]) else of(1)
        case "max":
            return max(of(0), of(1))
        case "ite":
            return max(of(1), of(2))
        case "bit":
            return of(1) + of(2)
        case "sym":
            symbol: Symbol = node.args[0]
            if symbol.bound is not None and symbol.bound.op == "sym":  # a block id below its grid
                symbol = symbol.bound.args[0]
            end = symbol.bound.value if symbol.bound is not None else None  # a lane below a literal
            most = size if end is None or not constants else max(size, end - 1)
            return promised.get(symbol, most)
        case _:
            return size
