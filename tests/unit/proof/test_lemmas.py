"""Every clause that the encoding adds to the assertions is true of the true values.

The text of a query is evaluated on concrete integers: symbols get random values, and every other constant the
value of what it stands for (products are multiplied, quotients divided). Then all clauses but the assertions
themselves must hold. A wrong lemma, definition or guard fails here whatever the solver makes of it.
"""

from __future__ import annotations

import inspect
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence

import pytest
from proof_brute import Cells, integers, random_boolean
from proof_patterns import CATALOGUE, SINGLE

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Symbol
from tilecheck.proof.algebra.linear import Linear
from tilecheck.proof.algebra.polynomial import Key
from tilecheck.proof.solver import lemmas

Tree = str | list["Tree"]


def parsed(text: str) -> Tree:
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()
    position = 0

    def tree() -> Tree:
        nonlocal position
        position += 1
        if tokens[position - 1] != "(":
            return tokens[position - 1]
        found: list[Tree] = []
        while tokens[position] != ")":
            found.append(tree())
        position += 1
        return found

    return tree()


def value(t: Tree, known: Mapping[str, int | bool]) -> int | bool:
    """Evaluates a term of the query language."""
    if isinstance(t, str):
        if t in ("true", "false"):
            return t == "true"
        return known[t] if t in known else int(t)
    op, *args = t
    v = [value(a, known) for a in args]
    match op:
        case "+":
            return sum(v)
        case "*":
            product = 1
            for factor in v:
                product *= factor
            return product
        case "-":
            return -v[0] if len(v) == 1 else v[0] - v[1]
        case "<":
            return v[0] < v[1]
        case "<=":
            return all(a <= b for a, b in itertools.pairwise(v))
        case ">=":
            return v[0] >= v[1]
        case "=":
            return v[0] == v[1]
        case "and":
            return all(v)
        case "or":
            return any(v)
        case "not":
            return not v[0]
        case "=>":
            return (not v[0]) or v[1]
        case "ite":
            return v[1] if v[0] else v[2]
    raise ValueError(op)


class Values:
    """What each constant of a query stands for, under an assignment of the symbols."""

    def __init__(self, linear: Linear, symbols: Mapping[Symbol, int | bool], rng: random.Random) -> None:
        self.linear, self.symbols = linear, symbols
        self.cells = Cells(rng)
        self.atoms: dict[int, int] = {}
        for symbol, name in linear.symbols.items():
            self.atoms[int(name[1:])] = symbols[symbol]
        for e, p in linear._integer.items():  # noqa: SLF001 - the encoding under test
            if len(p) == 1 and e.op not in ("const", "sym", "add", "mul"):
                ((m, c),) = p.items()
                if len(m) == 1 and c == 1:
                    self.atoms.setdefault(m[0], self.of(e))
        for (x, d), (q, r) in linear._quotients.items():  # noqa: SLF001
            self.atoms[q], self.atoms[r] = divmod(self.sum(x), self.sum(d))
        for k, unit in linear._units.items():  # noqa: SLF001
            self.atoms[unit] = self.sum(k)

    def of(self, e: Expr) -> int:
        return int(ex.evaluate(e, lambda s: self.symbols[s], lambda a, i: self.cells[a, i]))

    def sum(self, k: Key) -> int:
        total = 0
        for m, c in k:
            total += c * math.prod(map(self.value_of, m))
        return total

    def value_of(self, a: int) -> int:
        if a not in self.atoms:  # a unit or quotient that a later loop reaches
            for k, unit in self.linear._units.items():  # noqa: SLF001
                if unit == a:
                    return self.sum(k)
            for (x, d), pair in self.linear._quotients.items():  # noqa: SLF001
                if a in pair:
                    return divmod(self.sum(x), self.sum(d))[pair.index(a)]
        return self.atoms[a]

    def table(self) -> dict[str, int | bool]:
        known: dict[str, int | bool] = {f"v{a}": v for a, v in self.atoms.items()}
        known |= {name: self.sum(((m, 1),)) for m, name in self.linear.products.items()}
        return known


def false_clauses(assertions: Sequence[Expr], rng: random.Random, tries: int) -> Iterator[str]:
    """Clauses that some random assignment makes false although they are not assertions."""
    for products, definitions in ((False, False), (True, False), (True, True)):
        linear = Linear()
        linear.assert_all(assertions)
        own = len(assertions)
        facts = linear.clauses[:-own] if own else linear.clauses
        linear.clauses = list(facts)
        lemmas.instantiate(linear, products=products, definitions=definitions)
        clauses = [(c, parsed(c)) for c in linear.clauses]
        for _ in range(tries):
            symbols = {s: rng.randint(-3, 6) for s in linear.symbols}
            try:
                known = Values(linear, symbols, rng).table()
            except ZeroDivisionError:
                continue
            for name in (f"b{i}" for i in range(linear._booleans)):  # noqa: SLF001
                known[name] = _named(name, clauses, known)
            yield from (text for text, tree in clauses if not value(tree, known))


def _named(name: str, clauses: list[tuple[str, Tree]], known: dict[str, int | bool]) -> bool:
    """The value of a condition that was given a name."""
    for _, tree in clauses:
        if isinstance(tree, list) and tree[0] == "=" and tree[1] == name:
            return bool(value(tree[2], known))
    return False


@pytest.mark.parametrize("pattern", [*CATALOGUE, *SINGLE], ids=lambda p: p.name)
def test_clauses_of_patterns_are_valid(pattern) -> None:
    found = next(false_clauses(pattern.assertions(), random.Random(5), 3), None)
    assert found is None


def test_clauses_of_random_conditions_are_valid() -> None:
    rng = random.Random(6)
    leaves = integers("x", "y", "z")
    for _ in range(60):
        assertions = [random_boolean(rng, leaves, 3) for _ in range(2)]
        found = next(false_clauses(assertions, rng, 4), None)
        assert found is None, assertions


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("_order_text", "(<= (+ {dx} {d}) {dy})", "(< (+ {dx} {d}) {dy})"),
        ("_order_text", "(<= 0 {d})", "(<= {d} 0)"),
        ("_multiplied", "(<= {name} {product})", "(< {name} {product})"),
        ("signs", "(<= 0 {t})", "(<= 1 {t})"),
        ("signs", "(<= {t} (- {d}))", "(< {t} (- {d}))"),
        ("twins", "(=> {same} {_orders", "(=> true {_orders"),
        ("branches", "(= v{v} {linear.term(branch)})", "true"),
        ("expansions", "linear.term(value)", "linear.term(definition.value)"),
    ],
)
def test_a_wrong_lemma_is_noticed(name: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above is not vacuous: each lemma, made slightly too strong, has a false instance."""
    source = inspect.getsource(getattr(lemmas, name))
    assert right in source
    scope = dict(vars(lemmas))
    exec(f"from __future__ import annotations\n{source.replace(right, wrong)}", scope)
    monkeypatch.setattr(lemmas, name, scope[name])
    rng = random.Random(9)
    patterns = [*CATALOGUE, *SINGLE]
    tried = (p.assertions() for p in rng.sample(patterns, len(patterns)))
    leaves = integers("x", "y", "z")
    more = ([random_boolean(rng, leaves, 3) for _ in range(2)] for _ in range(200))
    assert any(next(false_clauses(a, rng, 8), None) for a in itertools.chain(tried, more))
