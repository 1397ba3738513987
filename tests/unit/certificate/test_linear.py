"""The linear query keeps every assignment: what is true of some integers stays satisfiable."""

from __future__ import annotations

import inspect
import random
import textwrap
from collections.abc import Iterator
from contextlib import closing

import pytest

from tilecheck.certificate import linear
from tilecheck.certificate.linear import linear_query
from tilecheck.certificate.reader import END
from tilecheck.certificate.schemas import SCHEMAS, statement
from tilecheck.certificate.terms import CertificateError, Term, Terms
from tilecheck.proof.solver.session import Session

BINARY = "+ - * floor-div floor-mod minimum maximum bit-and bit-or bit-xor".split()
NAMES = ("x", "y", "z")


def answer(terms: Terms, *formulas: Term) -> str:
    with closing(Session()) as session:
        return session.query(linear_query(terms, formulas).removesuffix(END)).check(1_000_000)


def constants(terms: Terms) -> list[Term]:
    return [terms.constant(name, is_bool=False) for name in NAMES]


def random_term(terms: Terms, rng: random.Random, depth: int) -> Term:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([*constants(terms), terms.number(rng.randint(0, 4))])
    a, b = (random_term(terms, rng, depth - 1) for _ in range(2))
    kind = rng.choice([*BINARY, "*", "floor-div", "floor-mod", "call", "ite"])
    if kind == "call":
        return terms.call("f", a)
    return terms.of("ite", terms.of("<", a, b), a, b) if kind == "ite" else terms.of(kind, a, b)


def true_formulas(terms: Terms, rng: random.Random, evaluate) -> list[Term]:
    """Formulas that hold for some integers, which they give, with lemmas about their terms."""
    roots = [random_term(terms, rng, 3) for _ in range(3)]
    known = {name: rng.randint(-4, 6) for name in NAMES}
    fixed = {terms.constant(name, is_bool=False): v for name, v in known.items()}
    fixed |= {root: int(evaluate(root, known)) for root in roots}
    stated = [terms.of("=", t, number(terms, v)) for t, v in fixed.items()]
    for schema, (_, count) in SCHEMAS.items():
        stated.append(statement(terms, schema, rng.choices(roots, k=count)))
    return stated


def number(terms: Terms, v: int) -> Term:
    return terms.number(v) if v >= 0 else terms.of("-", terms.number(-v))


def answers(evaluate, tries: int) -> Iterator[str]:
    """What a solver says of formulas that hold for some integers."""
    rng = random.Random(7)
    for _ in range(tries):
        terms = Terms()
        try:
            formulas = true_formulas(terms, rng, evaluate)
        except ZeroDivisionError:
            continue
        yield answer(terms, *formulas)


def test_what_is_true_stays_satisfiable(evaluate) -> None:
    found = list(answers(evaluate, 200))
    assert len(found) > 100
    assert set(found) == {"sat"}


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        ("_divide", "(< {self._term(r)} {size})", "(< {self._term(r)} 1)"),
        ("_divide", "(=> (< {zero} {size}) (and", "(=> true (and"),
        ("_extremum", '"<=" if op', '"<" if op'),
        ("_choice", "(= {name} {self._term(b)})", "(= {name} {self._term(a)})"),
        ("_call", "(= v{index} v{other})", "(= v{index} 0)"),
        ("_bits", "(=> (<= 0 {side}) (and", "(=> true (and"),
        ("_bits", "(=> {natural} (and", "(=> true (and"),
        ("_multiplied", "get(both, 0) + a * b", "get(both, 0) + a + b"),
    ],
)
def test_a_wrong_definition_is_noticed(function: str, right: str, wrong: str, evaluate, monkeypatch) -> None:
    """The test above is not vacuous: each definition, made too strong, excludes true assignments."""
    owner = linear if hasattr(linear, function) else linear._Encoder  # noqa: SLF001 - what is under test
    source = textwrap.dedent(inspect.getsource(getattr(owner, function)))
    assert right in source
    scope = dict(vars(linear))
    exec(f"from __future__ import annotations\n{source.replace(right, wrong)}", scope)
    monkeypatch.setattr(owner, function, scope[function])
    assert "unsat" in answers(evaluate, 400)


def test_distributing_is_exact() -> None:
    terms = Terms()
    x, y, z = constants(terms)
    left = terms.of("*", terms.of("+", x, y), terms.of("-", x, z))
    parts = [terms.of("*", x, x), terms.of("*", y, x), terms.of("-", terms.of("*", terms.of("+", x, y), z))]
    assert answer(terms, terms.of("not", terms.of("=", left, terms.of("+", *parts)))) == "unsat"


def test_a_product_needs_lemmas() -> None:
    terms = Terms()
    x, y, _ = constants(terms)
    zero = terms.number(0)
    negative = [terms.of("<=", zero, x), terms.of("<=", zero, y), terms.of("<", terms.of("*", x, y), zero)]
    assert answer(terms, *negative) == "sat"
    assert answer(terms, *negative, statement(terms, "sign", [x, y])) == "unsat"


def test_a_product_of_long_sums_is_refused() -> None:
    terms = Terms()
    long = terms.of("+", *(terms.constant(f"c{n}", is_bool=False) for n in range(60)))
    formula = terms.of("<", terms.of("*", long, long), terms.number(0))
    with pytest.raises(CertificateError, match="long sums"):
        linear_query(terms, [formula])
