"""Certificates say what the prover's expressions say, and their linear queries suffice."""

from __future__ import annotations

import contextlib
import itertools
import random
from contextlib import closing
from dataclasses import replace

import pytest
from proof_brute import Cells, integers, random_boolean
from proof_kernels import SITE, context
from proof_patterns import CATALOGUE, SINGLE

from tilecheck.certificate.reader import parsed
from tilecheck.certificate.terms import Term
from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Kind, Symbol, evaluate, sym, symbols
from tilecheck.proof.algebra.linear import meaning
from tilecheck.proof.algebra.normal_form import Forms
from tilecheck.proof.certificates import lemmas as certify_module
from tilecheck.proof.certificates.lemmas import Helper, _attempts, _is_given_less, certify, prove_again
from tilecheck.proof.certificates.terms import Lemma, certificate_text
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.proof.solver.session import Session

PROVED = [p for p in [*CATALOGUE, *SINGLE] if p.expect == "unsat"]


@pytest.mark.parametrize("pattern", PROVED, ids=lambda p: p.name)
def test_patterns_are_proved_again_in_linear_arithmetic(pattern) -> None:
    with closing(Session()) as session:
        assert prove_again(pattern.assertions(), session, ()).query


def test_what_does_not_hold_is_not_proved_again() -> None:
    broken = [p for p in [*CATALOGUE, *SINGLE] if p.expect == "sat"]
    for pattern in random.Random(2).sample(broken, 25):
        with closing(Session()) as session:
            assert not prove_again(pattern.assertions(), session, ()).query, pattern.name


def values_of(term: Term, known: dict[str, int], cells: Cells) -> int | bool:
    """The value of a term of a certificate, arrays included."""
    args = [values_of(a, known, cells) for a in term.args]
    match term.op:
        case "number":
            return int(term.label)
        case "constant":
            return known[str(term.label)]
        case "call":
            return cells["tbl", tuple(args)]
        case "ite":
            return args[1] if args[0] else args[2]
        case "*":
            product = 1
            for factor in args:
                product *= factor
            return product
        case "+":
            return sum(args)
        case "-":
            return -args[0] if len(args) == 1 else args[0] - args[1]
        case "and":
            return all(args)
        case "or":
            return any(args)
        case "not":
            return not args[0]
        case "true" | "false":
            return term.op == "true"
    a, b = args
    return {
        "floor-div": lambda: a // b,
        "floor-mod": lambda: a % b,
        "minimum": lambda: min(a, b),
        "maximum": lambda: max(a, b),
        "bit-and": lambda: a & b,
        "bit-or": lambda: a | b,
        "bit-xor": lambda: a ^ b,
        "<": lambda: a < b,
        "<=": lambda: a <= b,
        "=": lambda: a == b,
    }[term.op]()


def test_the_text_keeps_the_meaning() -> None:
    rng = random.Random(4)
    leaves = integers("x", "y", "z")
    compared = 0
    for _ in range(150):
        asserted = [random_boolean(rng, leaves, 4) for _ in range(2)]
        read = parsed(certificate_text(asserted, (), ("a comment\n(assert false)",)))
        for _ in range(4):
            cells = Cells(rng)
            known = {s: rng.randint(-3, 6) for s in symbols(*leaves)}
            named = {f"|{s.name}|": v for s, v in known.items()}
            with contextlib.suppress(ZeroDivisionError):
                expected = evaluate(ex.all_of(*asserted), known.__getitem__, lambda a, i, c=cells: c[a, i])
                assert all(values_of(term, named, cells) for term in read.assertions) == expected
                compared += 1
    assert compared > 250


def test_symbols_of_one_name_stay_apart() -> None:
    odd = [Symbol("x", Kind.SCALAR), Symbol("x", Kind.SCALAR, uid=1), Symbol("x|\n(", Kind.HOST)]
    odd += [Symbol("x", Kind.BLOCK, instance=1), Symbol("x", Kind.BLOCK, instance=2), Symbol("é", Kind.HOST)]
    read = parsed(certificate_text([ex.lt(ex.add(*map(sym, odd)), 0)], (), ("é",)))
    assert sum(t.op == "constant" for t in read.terms.made.values()) == len(odd)


def test_lemmas_are_about_expressions() -> None:
    x, y = integers("x", "y")
    text = certificate_text([ex.lt(ex.mul(x, y), 0)], [Lemma("sign", (x, y))], ())
    assert "(set-info :lemma (sign |x| |y|))" in text
    assert len(parsed(text).lemmas) == 1


def obligation(goal: ex.Expr) -> Obligation:
    return Obligation("TC302", Holds(goal, ex.TRUE), (SITE,), "cause", 1, "bounds")


def test_a_proof_in_non_linear_arithmetic_has_no_query(monkeypatch) -> None:
    x = sym(Symbol("x", Kind.SCALAR))
    goal = obligation(ex.le(0, ex.add(ex.mul(x, x), x)))
    monkeypatch.setattr(certify_module, "_attempts", lambda *_: [()])
    with closing(Session()) as session:
        found = certify(goal, context(), session, ())
    assert found.query == ""
    assert len(parsed(found.goal).assertions) >= 1


def test_a_fact_that_helped_is_proved_along_and_not_assumed() -> None:
    """The last sets of lemmas hold those of the fact's own proof."""
    a, b, c, d = integers("a", "b", "c", "d")
    premises = (ex.le(0, a), ex.le(0, b))
    fact = ex.le(0, ex.mul(a, b))
    helper = Helper(fact, (*premises, ex.negate(fact)))
    assertions = (*premises, ex.lt(ex.mul(c, d), 0))
    own, helped = (list(_attempts(assertions, helpers))[-1] for helpers in ((), [helper]))
    assert Lemma("sign", (a, b)) in set(helped) - set(own)
    read = parsed(certificate_text(assertions, helped, ()))
    assert len(read.assertions) == len(assertions)


def test_facts_help_where_their_premises_are_met() -> None:
    a, b = integers("a", "b")
    guard = ex.lt(a, b)
    plain, guarded = (replace(obligation(ex.le(0, a)), goal=Holds(ex.le(0, a), g)) for g in (ex.TRUE, guard))
    assert _is_given_less(plain, guarded)
    assert not _is_given_less(guarded, plain)
    assert not _is_given_less(replace(plain, stage=0), guarded)


def test_a_certificate_holds_only_lemmas_that_the_proof_uses() -> None:
    a, b, c = integers("a", "b", "c")
    assertions = (ex.le(0, a), ex.le(0, b), ex.lt(ex.mul(a, b), 0), ex.lt(ex.mul(a, c), ex.mul(b, c)))
    with closing(Session()) as session:
        found = prove_again(assertions, session, ())
    assert found.goal.count(":lemma") == 1
    assert "(set-info :lemma (sign |a| |b|))" in found.goal


def flat_bound(*masked: str) -> tuple[ex.Expr, ...]:
    """That an element of a matrix at (m, k*B + lane) is not beyond its end; m and k*B + lane are `masked`."""
    m, k, lane, rows, columns, block, row, column = integers(*"mklMKBrc")
    column_index = ex.add(ex.mul(k, block), lane)
    least = [ex.le(0, x) for x in (m, k, lane, row, column)]
    last = ex.add(ex.mul(ex.add(rows, -1), row), ex.mul(ex.add(columns, -1), column))
    masks = {"row": ex.lt(m, rows), "column": ex.lt(column_index, columns)}
    here = ex.add(ex.mul(m, row), ex.mul(k, block, column), ex.mul(lane, column))
    return (*least, ex.le(1, block), *(masks[name] for name in masked), ex.lt(last, here))


def test_sums_of_multiplied_comparisons_are_proved_again() -> None:
    with closing(Session()) as session:
        assert prove_again(flat_bound("row", "column"), session, ()).query
        for mask in ("row", "column"):
            assert not prove_again(flat_bound(mask), session, ()).query


def test_signs_of_long_products_are_proved_again_factor_by_factor() -> None:
    a, b, c, d = integers(*"abcd")
    least = [ex.le(0, x) for x in (a, b, c, d)]
    with closing(Session()) as session:
        assert prove_again([*least, ex.lt(ex.mul(a, b, c, d), 0)], session, ()).query
        assert not prove_again([*least[1:], ex.lt(ex.mul(a, b, c, d), 0)], session, ()).query


def test_divisions_without_multiples_of_the_divisor_have_a_meaning() -> None:
    x, y = integers(*"xy")
    forms = Forms()
    whole = ex.add(ex.floordiv(ex.add(ex.mul(8, x), y, 3), 4), ex.mod(ex.add(ex.mul(8, x), y, 3), 4))
    form = forms.of(whole)
    said = meaning(form, forms.meanings())
    for i, j in itertools.product(range(-5, 6), repeat=2):
        known = {x.args[0]: i, y.args[0]: j}
        assert evaluate(said, known.__getitem__) == evaluate(whole, known.__getitem__)
