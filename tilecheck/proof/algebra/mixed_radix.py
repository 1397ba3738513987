"""Mixed-radix normal form of repeated division.

`(b // n) % h`, `b // (h * n)` and `b % n` are digits of one number, but as separate quotients of `b` they
are related only through products of unknowns. Where the divisors of all quotients and remainders of one
dividend x form a chain P1 | P2 | ... (as monomials), each is rewritten with the digits of x:

    top 0 = x,   top k = top (k-1) // s_k,   digit k = top (k-1) % s_k,   s_k = P_k / P_(k-1)
    x // P_k = top k
    (x // P_i) % (P_j / P_i) = digit j * s_(j-1) ... s_(i+1) + ... + digit (i+1)

Both identities hold where every divisor is positive; floor(floor(x/a)/b) = floor(x/(a*b)) needs b > 0. The
caller must establish that: `Chained.positive` lists the divisors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, add, floordiv, mod, mul, rebuild
from tilecheck.proof.algebra.linear import postorder

_Factors = tuple[int, tuple[int, ...]]  # a literal and the numbers of the other factors, sorted
_ONE: _Factors = (1, ())
_NESTED = 12  # quotients of quotients that are taken apart


@dataclass(frozen=True, slots=True)
class Chained:
    """Assertions in digit form, equivalent to the given ones wherever all of `positive` are."""

    assertions: tuple[Expr, ...]
    positive: tuple[Expr, ...]


def normalise(assertions: Sequence[Expr]) -> Chained | None:
    """The digit form, or None when no dividend has a chain of two divisors."""
    chains = _Chains()
    for node in postorder(assertions):
        if node.op in ("floordiv", "mod"):
            chains.collect(node)
    chains.keep_chains()
    if not chains.table:
        return None
    rewritten = tuple(chains.inside(a) for a in assertions)
    positive = dict.fromkeys(d for x in chains.table for d in chains.divisors[x])
    return Chained(rewritten, tuple(positive))


@dataclass
class _Chains:
    """For each dividend: the prefix products that divide it, and the divisors as they were written."""

    table: dict[Expr, list[_Factors]] = field(default_factory=dict)
    divisors: dict[Expr, dict[Expr, None]] = field(default_factory=dict)
    _numbers: dict[Expr, int] = field(default_factory=dict)
    _exprs: list[Expr] = field(default_factory=list)
    _digits: dict[Expr, Expr] = field(default_factory=dict)

    def collect(self, node: Expr) -> None:
        x, path = self._path(node.args[0])
        products = self.table.setdefault(x, [])
        divisors = self.divisors.setdefault(x, {})
        product = _ONE
        for divisor in (*path, node.args[1]):
            divisors[divisor] = None
            product = _multiplied(product, self._factors(divisor))
            if product not in products:
                products.append(product)

    def keep_chains(self) -> None:
        chained: dict[Expr, list[_Factors]] = {}
        for x, products in self.table.items():
            ordered = sorted(products, key=lambda f: (len(f[1]), abs(f[0])))
            steps = [_divided(b, a) for a, b in pairwise(ordered)]
            if len(ordered) >= 2 and all(s is not None and s[0] > 0 for s in steps) and ordered[0][0] > 0:
                chained[x] = ordered
        self.table = chained

    def change(self, node: Expr) -> Expr | None:
        """The digit form of a quotient or remainder that belongs to a chain."""
        if node.op not in ("floordiv", "mod"):
            return None
        x, path = self._path(node.args[0])
        products = self.table.get(x)
        if products is None:
            return None
        prefix, whole = self._product(path), self._product((*path, node.args[1]))
        last = products.index(whole)
        if node.op == "floordiv":
            return self._top(x, last)
        first = -1 if prefix == _ONE else products.index(prefix)
        value = self._digit(x, last)
        for k in range(last - 1, first, -1):
            value = add(mul(value, self._step(x, k)), self._digit(x, k))
        return value

    def inside(self, e: Expr) -> Expr:
        """`e` in digit form; dividends and divisors may contain chains of their own."""
        return rebuild(e, self.change, self._digits)

    def _top(self, x: Expr, k: int) -> Expr:
        value = self.inside(x)
        for i in range(k + 1):
            value = floordiv(value, self._step(x, i))
        return value

    def _digit(self, x: Expr, k: int) -> Expr:
        return mod(self._top(x, k - 1), self._step(x, k))

    def _step(self, x: Expr, k: int) -> Expr:
        products = self.table[x]
        step = products[0] if k == 0 else _divided(products[k], products[k - 1])
        if step is None:
            raise ValueError("not a divisibility chain")
        return self.inside(mul(step[0], *(self._exprs[i] for i in step[1])))

    def _path(self, e: Expr) -> tuple[Expr, list[Expr]]:
        """x and d1, d2, ... with e = x // d1 // d2 ..."""
        divisors: list[Expr] = []
        while e.op == "floordiv" and len(divisors) < _NESTED:
            divisors.append(e.args[1])
            e = e.args[0]
        return e, divisors[::-1]

    def _product(self, divisors: Sequence[Expr]) -> _Factors:
        product = _ONE
        for divisor in divisors:
            product = _multiplied(product, self._factors(divisor))
        return product

    def _factors(self, e: Expr) -> _Factors:
        literal, rest = 1, []
        for factor in e.args if e.op == "mul" else (e,):
            if factor.value is not None:
                literal *= factor.value
            else:
                rest.append(self._number(factor))
        return literal, tuple(sorted(rest))

    def _number(self, e: Expr) -> int:
        if e not in self._numbers:
            self._numbers[e] = len(self._exprs)
            self._exprs.append(e)
        return self._numbers[e]


def _multiplied(a: _Factors, b: _Factors) -> _Factors:
    return a[0] * b[0], tuple(sorted(a[1] + b[1]))


def _divided(a: _Factors, b: _Factors) -> _Factors | None:
    """a / b, or None when b does not divide a."""
    if b[0] == 0 or a[0] % b[0]:
        return None
    rest = list(a[1])
    for factor in b[1]:
        if factor not in rest:
            return None
        rest.remove(factor)
    return a[0] // b[0], tuple(rest)
