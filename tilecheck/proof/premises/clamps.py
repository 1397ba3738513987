"""Values that a conditional keeps below an end: `x if x < n else 0` is below n where 0 is.

    v = x if x < n else o,  o < n      gives v < n           (and so with <=, and with more conditions on x)
                                       v <= max(n - 1, o)    where that maximum occurs

Where the condition holds, v is x and below n; elsewhere it is o. A proof that takes one branch after the other
does not have the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tilecheck.ir.expr import Expr, conjuncts, negated_terms
from tilecheck.proof.algebra.polynomial import Polynomial, atom, combine, constant, key
from tilecheck.proof.premises.premises import Premises


def below_ends(
    premises: Premises, atoms: Iterable[int], covers: Callable[[Polynomial], bool]
) -> Iterator[Polynomial]:
    """What follows of the conditionals among `atoms`: polynomials that are not negative. `covers` says that one
    is for certain."""
    for index in sorted(atoms):
        a = premises.forms.atoms[index]
        if a.op != "ite" or a.condition is None:
            continue
        first, second = a.args
        for terms, chosen, other in (
            (conjuncts(a.condition), first, second),
            (negated_terms(a.condition), second, first),
        ):
            for term in terms:
                if term.op not in ("lt", "le") or key(premises.form(term.args[0])) != key(chosen):
                    continue
                end = combine(premises.form(term.args[1]), constant(1 if term.op == "lt" else 0), -1)
                for most in (end, *_maxima(premises, end)):
                    below = combine(most, atom(index), -1)
                    if below not in premises.inequalities and covers(combine(most, other, -1)):
                        yield below


def ends_of(conditional: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The comparisons that keep a branch of a conditional below an end where it is taken, each with the other
    branch."""
    condition, first, second = conditional.args
    for terms, chosen, other in (
        (conjuncts(condition), first, second),
        (negated_terms(condition), second, first),
    ):
        yield from ((t, other) for t in terms if t.op in ("lt", "le") and t.args[0] is chosen)


def _maxima(premises: Premises, end: Polynomial) -> Iterator[Polynomial]:
    """The maxima that are at least `end`, as it is one of their branches."""
    for index, a in enumerate(premises.forms.atoms):
        if a.op == "max" and any(key(branch) == key(end) for branch in a.args):
            yield atom(index)
