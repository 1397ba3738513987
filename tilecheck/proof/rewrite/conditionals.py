"""Obligations with conditionals replaced by the branch that they are.

`cdiv` of a length that is looked up (`ends[n] - ends[n - 1]`) divides as C does: one way below 0, another way
from 0 on. A number of 64 bits that is cast to 32 is itself where it fits, and unknown elsewhere. Where
contracts and launch conditions say which, the other branch is in the way of everything that reads the text: of
candidates for conditions, of digits, of sums.

Sound because a conditional is replaced only where its condition, or the negation of that, follows (rung
"entail") from what holds for the block, iteration and lane that compute it: the facts of the launch, ranges,
contracts, and the guards of the obligation or access that it stands in. Where all these hold the old terms and
the new ones have equal values, so what refutes the new premises and goal refutes the old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tilecheck.analysis.limits import promised_ranges, ranges_of
from tilecheck.analysis.ranges import INT32_MAX
from tilecheck.ir.expr import TRUE, ZERO, Expr, Kind, conjuncts, le, negate, sub, substitute, symbols, walk
from tilecheck.ir.kernel import Access, Axis
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.premises.shared import KnownPremises
from tilecheck.proof.rungs.entail import entailed

_ROUNDS = 4  # a conditional in the condition of another
_MOST = 40  # conditionals of one obligation
_SMALL = 2**23  # literals that are no smaller are limits on the size of numbers
_OF_LAUNCH = (Kind.SCALAR, Kind.CONSTANT, Kind.EXTENT)

Settle = Callable[[Obligation, Context], Obligation]


@dataclass
class Branches:
    """What conditionals are known to be, by the premises. Mutable: it remembers."""

    known: KnownPremises
    _found: dict[tuple[Expr, Expr, tuple[Expr, ...]], bool | None] = field(default_factory=dict)

    def settled(self, obligation: Obligation, context: Context) -> Obligation:
        """The obligation with the branches that its conditionals are under `context`."""
        goal = obligation.goal
        if isinstance(goal, Holds):
            terms = (goal.goal, goal.given)
            taken = self._taken(obligation, context, terms, goal.given)
            if taken is None:
                return obligation
            access = None if goal.access is None else with_terms(goal.access, taken)
            new = replace(goal, goal=taken(goal.goal), given=taken(goal.given), access=access)
            return replace(obligation, goal=new)
        if not isinstance(goal, Disjoint):
            return obligation
        accesses = {}
        for access in (goal.first, goal.second):
            taken = self._taken(obligation, context, _terms(access), access.happens)
            accesses[access] = access if taken is None else with_terms(access, taken)
        first, second = accesses[goal.first], accesses[goal.second]
        if first is goal.first and second is goal.second:
            return obligation
        return replace(obligation, goal=replace(goal, first=first, second=second))

    def _taken(
        self, obligation: Obligation, context: Context, terms: tuple[Expr, ...], given: Expr
    ) -> Callable[[Expr], Expr] | None:
        """What writes the branches into a term; None where nothing is to be written."""
        chosen: dict[Expr, Expr] = {}
        for _ in range(_ROUNDS):
            fresh = {}
            for node in _conditionals(terms):
                holds = self._holds(obligation, context, node.args[0], given)
                if holds is not None:
                    fresh[node] = node.args[1 if holds else 2]
            if not fresh:
                break
            terms = tuple(substitute(term, fresh) for term in terms)
            chosen = {node: substitute(branch, fresh) for node, branch in chosen.items()} | fresh
        if not chosen:
            return None

        def taken(e: Expr) -> Expr:
            for _ in range(_ROUNDS + 1):
                changed = substitute(e, chosen)
                if changed is e:
                    break
                e = changed
            return e

        return taken

    def _holds(self, obligation: Obligation, context: Context, condition: Expr, given: Expr) -> bool | None:
        """Whether a condition holds, or does not, wherever it is asked: without what guards say, if that is
        enough. None where neither follows."""
        for where in (TRUE, given):
            asked = condition, where, context.conditions
            if asked not in self._found:
                self._found[asked] = self._decided(obligation, context, condition, where)
            if self._found[asked] is not None:
                return self._found[asked]
        return None

    def _decided(self, obligation: Obligation, context: Context, condition: Expr, given: Expr) -> bool | None:
        assume = TRUE if given is TRUE else obligation.assume
        for goal, value in ((condition, True), (negate(condition), False)):
            asked = Holds(goal, given)
            question = Question(replace(obligation, goal=asked, assume=assume), context, self.known)
            if entailed(goal, question.premises):
                return value
        return None


def widths(obligation: Obligation, context: Context) -> tuple[Expr, ...]:
    """Conditions under which looked-up numbers that are cast to 32 bits fit: that what contracts say they stay
    below does. And under which floats are what integers bound them."""
    goal = obligation.goal
    terms = [goal.goal, goal.given] if isinstance(goal, Holds) else []
    if isinstance(goal, Disjoint):
        terms = [e for access in (goal.first, goal.second) for e in _terms(access)]
    promised = promised_ranges(context.kernel)
    found: dict[Expr, None] = {}
    for node in _conditionals(tuple(terms)):
        if is_of_sizes(node.args[0]):
            found[node.args[0]] = None
            continue
        limits = [n.value for n in walk(node.args[0]) if n.value is not None]
        if any(abs(limit) >= INT32_MAX for limit in limits):
            for element in walk(node.args[0]):
                for _, high in ranges_of(element, promised) if element.op == "read" else ():
                    found[le(sub(high, 1), INT32_MAX)] = None
    return tuple(c for c in found if symbols(c))


def _conditionals(terms: tuple[Expr, ...]) -> Iterator[Expr]:
    """The integers that are chosen by what is looked up, or by the size of a number, inner ones first."""
    nodes = [n for n in walk(*terms) if n.op == "ite" and (_is_looked_up(n.args[0]) or is_of_sizes(n.args[0]))]
    yield from nodes[::-1][:_MOST]


def _is_looked_up(condition: Expr) -> bool:
    return any(node.op == "read" for node in walk(condition))


def _terms(access: Access) -> tuple[Expr, ...]:
    return (access.guard, access.mask, *(axis.coordinate for axis in access.axes))


def with_terms(access: Access, taken: Callable[[Expr], Expr]) -> Access:
    """The access with other terms for where and when it is made."""
    return replace(
        access,
        guard=taken(access.guard),
        mask=taken(access.mask),
        axes=tuple(_axis(axis, taken) for axis in access.axes),
    )


def _axis(axis: Axis, taken: Callable[[Expr], Expr]) -> Axis:
    return replace(axis, index=taken(axis.index), base=taken(axis.base), extent=taken(axis.extent))


def is_of_sizes(condition: Expr) -> bool:
    """Whether it says that numbers of the launch are so small that they are floats of 32 bits, or that what is
    made of them is."""
    terms = conjuncts(condition)
    if any(term.op != "le" for term in terms):
        return False
    limits = [term for term in terms if any(abs(side.value or 0) >= _SMALL for side in term.args)]
    return bool(limits) and all(
        (term in limits or (term.args[0] is ZERO and term.args[1].op == "sym"))
        and all(s.kind in _OF_LAUNCH for s in symbols(term))
        for term in terms
    )
