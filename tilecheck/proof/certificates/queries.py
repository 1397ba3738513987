"""Obligations as SMT-LIB: the queries that decided them, and what the solver would be asked first."""

from __future__ import annotations

from tilecheck.ir.expr import TRUE, render
from tilecheck.proof.algebra import mixed_radix
from tilecheck.proof.algebra.linear import Linear
from tilecheck.proof.decide import Settled
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import negation
from tilecheck.proof.obligation import Obligation, Ordered
from tilecheck.proof.solver import lemmas


def query_text(obligation: Obligation, context: Context) -> str:
    """The query, self-contained: `unsat` proves the obligation. Comments name the symbols."""
    if isinstance(obligation.goal, Ordered):
        return "; about the order of one array's accesses: the language answers, no query"
    assertions = negation(obligation.goal, context, obligation.assume)
    chained = mixed_radix.normalise(assertions)
    linear = Linear()
    linear.assert_all([a for a in (assertions if chained is None else chained.assertions) if a is not TRUE])
    lemmas.instantiate(linear, products=False, definitions=False)
    source = [f"; asserts {render(a)}" for a in assertions]
    return "\n".join([*source, linear.described(), "(check-sat)"])


def refuted_texts(settled: Settled, kernel: str, place: str, number: int) -> tuple[str, ...]:
    """The queries that proved an obligation, each a script of its own: a solver must call them unsatisfiable.

    The last is the proof: what breaks the obligation has no solution. One before it says that the divisors of
    which the last is rid are positive.
    """
    obligation = settled.obligation
    head = [
        f"kernel: {kernel}",
        f"rule: {obligation.rule} at {place}",
        f"obligation {number}: never that {obligation.cause}",
        f"rung: {settled.rung}",
    ]
    count = len(settled.queries)
    return tuple(
        "\n".join(
            [
                *(
                    f"; {_clean(line).replace(chr(10), ' ')}"
                    for line in [*head, f"query {k} of {count}, expected: unsat"]
                ),
                "(set-logic ALL)",
                "(set-info :status unsat)",
                _clean(text),
                "(check-sat)\n",
            ]
        )
        for k, text in enumerate(settled.queries, 1)
    )


def _clean(text: str) -> str:
    """Names of the user stand in comments only; none of them may end its line."""
    return "".join(c if c == "\n" or (c.isascii() and c.isprintable()) else "_" for c in text)
