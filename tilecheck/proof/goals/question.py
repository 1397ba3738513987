"""One obligation on the ladder, with what its rungs share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tilecheck.ir.expr import Expr, Kind, Symbol, conjuncts, symbols, walk
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.contracts import instances
from tilecheck.proof.goals.predicate import negation, ranges
from tilecheck.proof.goals.predicate import premises as premises_of
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.premises.shared import KnownPremises


@dataclass(frozen=True)
class Question:
    """The obligation under its context. What several rungs read is computed once, when first asked for."""

    obligation: Obligation
    context: Context
    known: KnownPremises = field(default_factory=KnownPremises)
    found: dict[str, Any] = field(default_factory=dict)  # what rungs leave for those after them

    @cached_property
    def negated(self) -> tuple[Expr, ...]:
        """The canonical predicate: unsatisfiable exactly when the goal holds."""
        return negation(self.obligation.goal, self.context, self.obligation.assume)

    @cached_property
    def near(self) -> Context:
        """The context without the conditions on how long flat memory is, for a race in it whose places are not
        looked up: they say nothing of who touches which element, and there are many. With fewer premises less
        is proved, and nothing else."""
        goal = self.obligation.goal
        if not isinstance(goal, Disjoint) or not (goal.first.flat and goal.second.flat):
            return self.context
        places = [e for a in (goal.first, goal.second) for e in (a.axes[0].index, a.guard, a.mask)]
        if any(node.op == "read" for node in walk(*places)):
            return self.context
        own = set(symbols(*places))
        close = tuple(c for c in self.context.conditions if own.issuperset(_extents(c)))
        return replace(self.context, conditions=close)

    @cached_property
    def uniform(self) -> Premises:
        """What holds for the launch as a whole, and what is assumed of it: that of every block is of all."""
        assumed = conjuncts(self.obligation.assume)
        still = (a for a in assumed if not any(s.varies for s in symbols(a)) and not _reads(a))
        facts = (*self.near.uniform_facts, *still)
        return self.known.of((*ranges(facts), *facts))

    @cached_property
    def premises(self) -> Premises:
        """What a `Holds` goal may use; for other goals, what holds for the launch."""
        goal = self.obligation.goal
        return self.premises_of(goal) if isinstance(goal, Holds) else self.uniform

    def premises_of(self, goal: Holds) -> Premises:
        known = premises_of(goal, self.near, self.obligation.assume)
        stated = instances(self.context.kernel.contracts, (*known, goal.goal))
        return self.known.of((*ranges((*known, goal.goal, *stated)), *known, *stated))


def _extents(e: Expr) -> set[Symbol]:
    return {s for s in symbols(e) if s.kind is Kind.EXTENT}


def _reads(e: Expr) -> bool:
    """Whether it speaks of memory, of which another block may see something else."""
    return any(node.op == "read" for node in walk(e))
