"""One obligation as the SMT-LIB text that the solver gets in its first tier."""

from __future__ import annotations

from tilecheck.ir.expr import TRUE, render
from tilecheck.proof import chain, lemmas
from tilecheck.proof.context import Context
from tilecheck.proof.linear import Linear
from tilecheck.proof.obligation import Obligation, Ordered
from tilecheck.proof.predicate import negation


def query_text(obligation: Obligation, context: Context) -> str:
    """The query, self-contained: `unsat` proves the obligation. Comments name the symbols."""
    if isinstance(obligation.goal, Ordered):
        return "; about the order of one array's accesses: the language answers, no query"
    assertions = negation(obligation.goal, context, obligation.assume)
    chained = chain.normalise(assertions)
    linear = Linear()
    linear.assert_all([a for a in (assertions if chained is None else chained.assertions) if a is not TRUE])
    lemmas.instantiate(linear, products=False, definitions=False)
    names = [f"; {name} = {symbol.name}{_block(symbol.instance)}" for symbol, name in linear.symbols.items()]
    source = [f"; asserts {render(a)}" for a in assertions]
    return "\n".join(["(reset)", *source, *names, linear.text(), "(check-sat)"])


def _block(instance: int) -> str:
    return f" of instance {instance}" if instance else ""
