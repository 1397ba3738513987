"""Certificates of proved obligations: the lemma instances with which a query in linear arithmetic suffices.

Each obligation, whatever rung proved it, is proved once more from its negation: with no lemmas, then with those
of each tier of `solver`. The query that z3 refutes here is the checker's own (`certificate.linear`), so that
what is written is what the checker will ask. The digit form (`mixed_radix`) is not needed for that: the
definitions of quotients and the lemmas about their products say the same, only at greater length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilecheck.certificate.linear import linear_query
from tilecheck.certificate.reader import END, parsed
from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import ZERO, Expr, all_of, conjuncts
from tilecheck.proof.algebra.linear import Linear, meaning, postorder
from tilecheck.proof.algebra.polynomial import Monomial, combine, key, monomial, without
from tilecheck.proof.certificates.terms import Lemma, certificate_text
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import negation
from tilecheck.proof.obligation import Holds, Obligation, Ordered
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.solver import lemmas as lemma_instances
from tilecheck.proof.solver.interrupts import deferred_interrupts
from tilecheck.proof.solver.session import Session


@dataclass(frozen=True, slots=True)
class Certified:
    """`goal` is the certificate, `query` the linear query that it leads to; "" where none was found that z3
    refutes, and both "" for a goal about the order of accesses, which the language answers."""

    goal: str
    query: str


@dataclass(frozen=True, slots=True)
class Helper:
    """A fact that a proof may have used, and the assertions that no integers satisfy because it holds."""

    fact: Expr
    negated: tuple[Expr, ...]


def certify(
    obligation: Obligation,
    context: Context,
    session: Session,
    comments: Sequence[str],
    proved: Sequence[Obligation] = (),
) -> Certified:
    """The certificate of an obligation that holds under `context`. `proved` are others that do."""
    if isinstance(obligation.goal, Ordered):
        return Certified("", "")
    helpers = [
        Helper(all_of(other.assume, other.goal.goal), negation(other.goal, context, other.assume))
        for other in proved
        if isinstance(other.goal, Holds) and other is not obligation and _is_given_less(other, obligation)
    ]
    assertions = negation(obligation.goal, context, obligation.assume)
    return prove_again(assertions, session, comments, helpers)


def _is_given_less(other: Obligation, obligation: Obligation) -> bool:
    """Whether a proof may have used the other goal: its premises are met (see `decide`)."""
    if not isinstance(other.goal, Holds) or not isinstance(obligation.goal, Holds) or other.stage == 0:
        return False
    return set(conjuncts(other.goal.given)) <= set(conjuncts(obligation.goal.given))


def prove_again(
    assertions: Sequence[Expr], session: Session, comments: Sequence[str], helpers: Sequence[Helper] = ()
) -> Certified:
    """The certificate of assertions that no integers satisfy."""
    for found in _attempts(assertions, helpers):
        certified = _certified(assertions, found, comments)
        if _is_refuted(certified.query, session):
            fewer = _certified(assertions, _used(certified.query, found, session), comments)
            return fewer if _is_refuted(fewer.query, session) else certified
    return Certified(certificate_text(assertions, (), comments), "")


def _certified(assertions: Sequence[Expr], lemmas: Sequence[Lemma], comments: Sequence[str]) -> Certified:
    """A certificate and the linear query that the checker builds from it."""
    text = certificate_text(assertions, lemmas, comments)
    certificate = parsed(text)
    return Certified(text, linear_query(certificate.terms, [*certificate.assertions, *certificate.lemmas]))


def _is_refuted(query: str, session: Session) -> bool:
    with deferred_interrupts():
        return session.query(query.removesuffix(END)).check(session.budget) == "unsat"


def _used(query: str, lemmas: Sequence[Lemma], session: Session) -> tuple[Lemma, ...]:
    """Of the lemmas, which the query asserts last, those that z3 needs to refute it; all if it cannot tell."""
    lines = query.removesuffix(END).splitlines()
    names = [f"lemma{number}" for number in range(len(lemmas))]
    first = len(lines) - len(lemmas)
    for name, line in zip(names, lines[first:], strict=True):
        fact = line.removeprefix("(assert ").removesuffix(")")
        lines += [f"(declare-const {name} Bool)", f"(assert (=> {name} {fact}))"]
    del lines[first : first + len(lemmas)]
    with deferred_interrupts():
        core = session.query("\n".join(lines)).core(session.budget, names)
    needed = names if core is None else core
    return tuple(x for x, name in zip(lemmas, names, strict=True) if name in needed)


def _attempts(assertions: Sequence[Expr], helpers: Sequence[Helper]) -> Iterator[tuple[Lemma, ...]]:
    """Sets of lemma instances, small ones first.

    A fact that helped is not assumed: the lemmas with which it was proved from the same premises, and those of
    the proof that uses it, are enough together.
    """
    yield ()
    yield (*_instances(assertions, products=False, definitions=False), *scaled_comparisons(assertions))
    tiers = ((False, False), (True, False), (True, True))
    for products, definitions in tiers:
        yield _instances(assertions, products=products, definitions=definitions)
    for products, definitions in tiers if helpers else ():
        roots = [(*assertions, *(h.fact for h in helpers)), *(h.negated for h in helpers)]
        found = (x for r in roots for x in _instances(r, products=products, definitions=definitions))
        yield tuple(dict.fromkeys(found))


def _instances(assertions: Sequence[Expr], *, products: bool, definitions: bool) -> tuple[Lemma, ...]:
    linear = Linear()
    linear.assert_all(assertions)
    lemma_instances.instantiate(linear, products=products, definitions=definitions)
    atoms = linear.meanings()
    found = [Lemma(schema, tuple(meaning(p, atoms) for p in about)) for schema, about in linear.instances]
    if products:
        found += _last_digits(linear, atoms)
    # A named sum is equal to itself: the checker knows no names.
    return tuple(x for x in dict.fromkeys(found) if x.schema != "equal-factors" or x.about[0] is not x.about[1])


def scaled_comparisons(assertions: Sequence[Expr]) -> tuple[Lemma, ...]:
    """What rung "entail" does by adding up premises multiplied by what is not negative: p >= 0 gives f*p >= 0
    where f >= 0, for each comparison p >= 0 and each product f that makes of its terms products that occur; and
    the signs of products, factor by factor."""
    premises = Premises.of(assertions)
    compared = [
        combine(premises.form(node.args[0]), premises.form(node.args[1]), -1)
        for node in postorder(assertions)
        if node.op in ("lt", "le", "eq")
    ]
    named = {m for p in (*compared, *premises.inequalities) for m in p if len(m) > 1}
    atoms = premises.forms.meanings()
    found = dict.fromkeys(
        Lemma("sign", (meaning(monomial(m[:k]), atoms), atoms[m[k]]))
        for m in sorted(named)
        for k in range(1, len(m))
    )
    for p in dict.fromkeys(map(key, (*compared, *premises.inequalities))):
        terms = [m for m, _ in p if m]
        factors = dict.fromkeys(f for m in terms for n in sorted(named) for f in _cofactors(n, m))
        for f in factors:
            if all(tuple(sorted(m + f)) in named for m in terms) and premises.term(f).low >= 0:
                found[Lemma("order", (meaning(monomial(f), atoms), ZERO, meaning(dict(p), atoms)))] = None
    return tuple(found)


def _cofactors(n: Monomial, m: Monomial) -> Iterator[Monomial]:
    """n / m, where m divides n and is not all of it."""
    if len(m) < len(n) and all(n.count(a) >= m.count(a) for a in m):
        yield without(n, *m)


def _last_digits(linear: Linear, atoms: Mapping[int, Expr]) -> Iterator[Lemma]:
    """In a product d*(x % c) with a literal c the remainder is compared with c, which bounds the product."""
    for m in list(linear.products):
        for k, a in enumerate(m):
            if atoms[a].op == "mod" and atoms[a].args[1].value is not None:
                rest = meaning(monomial(m[:k] + m[k + 1 :]), atoms)
                yield Lemma("order", (rest, atoms[a], atoms[a].args[1]))
