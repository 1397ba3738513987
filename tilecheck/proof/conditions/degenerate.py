"""Whether launch conditions save a kernel only by forbidding its use.

A set of conditions is kept when some launch meets it in which every grid axis that the kernel reads has two
blocks or more (unless a `requires` gives it one), the access happens inside its array (for a race: in two
different blocks), tiles may have more than one element, and every digit that the kernel takes of its block
indices (`bid // d`) can still be other than 0. Anything the solver does not decide counts as degenerate: a
condition is never derived on a guess.

An access under a compile-time flag, as what is stored `if SPLIT_K == 1`, may leave one block to an axis
(`grid[1] <= 1`), if there are two or more along every axis where the flag is off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from tilecheck.ir.expr import (
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    conjuncts,
    const,
    le,
    neg,
    negate,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Kernel
from tilecheck.proof.conditions.generators.counts import is_flag
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.instances import in_instance
from tilecheck.proof.goals.predicate import both_perform, ranges, several_blocks
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation

_DIGITS = 6  # quotients of block indices that are looked at


class Valuation(Protocol):
    """The part of a solver's model that is looked at: values that meet what was asked."""

    @property
    def symbols(self) -> dict[Symbol, int | bool]: ...

    def evaluate(self, e: Expr) -> int | bool: ...


class Decision(Protocol):
    """The part of a solver's answer that is looked at here."""

    @property
    def status(self) -> Literal["unsat", "sat", "unknown"]: ...

    @property
    def model(self) -> Valuation | None: ...


Decide = Callable[[Sequence[Expr]], Decision]


def is_degenerate(
    obligation: Obligation, context: Context, conditions: tuple[Expr, ...], satisfiable: Decide
) -> bool:
    """Whether no reasonable launch is left under `conditions`."""
    under = context.under(*conditions)
    performed = _performed(obligation, under)
    if _is_positive(obligation, conditions):
        return satisfiable(performed).status == "unsat"
    if satisfiable(performed).status != "sat":
        off = _flag_off(obligation, context)
        performed = _performed(obligation, under, everywhere=False)
        if off is None or any(satisfiable(goal).status != "sat" for goal in (off, performed)):
            return True
    if _is_narrow(obligation, context, performed, satisfiable):
        return True
    if satisfiable(ordinary(conditions, context.kernel)).status == "unsat":
        return True
    if not any(s.kind is Kind.GRID for s in symbols(*conditions)):
        return False
    return any(_is_frozen(digit, context, conditions, satisfiable) for digit in _digits(context))


def ordinary(conditions: Sequence[Expr], kernel: Kernel) -> tuple[Expr, ...]:
    """Conditions that are met where no size, stride or number of blocks is less than 2, but for those that a
    condition or a `requires` speaks of alone (`stride <= 1`, `grid[0] <= 1 or not SPLIT`).

    Each condition may leave enough for the goal that it is derived for, and one row or one column at most for
    all goals together.
    """
    required = [term for requirement in kernel.requires for term in conjuncts(requirement.condition)]
    said = [*(term for c in conditions for term in conjuncts(c)), *required]
    alone = {s for term in said for s in _spoken_of_alone(term)}
    alone |= {s for term in required if len(symbols(term)) == 1 for s in symbols(term)}  # also `B == 1`
    # A number of compile time is a size where it is multiplied; else it may be a flag.
    sizes = symbols(*(node for node in walk(*conditions) if node.op == "mul"))
    spoken = [s for s in symbols(*conditions) if not s.varies and s not in alone]
    large = tuple(le(2, sym(s)) for s in spoken if s.kind is not Kind.CONSTANT or s in sizes)
    return (*conditions, *large, *ranges((*conditions, *large)))


def _spoken_of_alone(term: Expr) -> set[Symbol]:
    """The one number that a condition speaks of besides numbers of compile time, or the one that it compares of
    these (`GROUP <= 1 or not GROUPED`), if it is not met by 2."""
    spoken = {s for s in symbols(term) if s.kind is not Kind.CONSTANT}
    spoken = spoken or set(symbols(*(node for node in walk(term) if node.op in ("le", "lt"))))
    if len(spoken) != 1:
        return set()
    return spoken if substitute(term, {sym(s): const(2) for s in spoken}) is not TRUE else set()


def _is_positive(obligation: Obligation, conditions: tuple[Expr, ...]) -> bool:
    """Whether the goal is one of the conditions and says that a launch value is at least 0 or 1: what every use
    of the kernel needs, whatever else is asked of it."""
    goal = obligation.goal
    if not isinstance(goal, Holds) or goal.goal not in conditions or goal.goal.op != "le":
        return False
    low, value = goal.goal.args
    return low.value in (0, 1) and value.op == "sym" and not value.args[0].varies


def _performed(obligation: Obligation, context: Context, *, everywhere: bool = True) -> tuple[Expr, ...]:
    """The obligation's accesses happen, and what it assumes holds: for one block, or for a race for two
    different blocks; in a launch with several blocks along every axis, if `everywhere`."""
    goal = obligation.goal
    if isinstance(goal, Disjoint) and (goal.first.spare or goal.second.spare):  # which is not to happen
        assertions = (*context.uniform_facts, *(several_blocks(context.kernel) if everywhere else ()))
        return (*assertions, *ranges(assertions))
    if isinstance(goal, Disjoint) and goal.between is Between.BLOCKS:
        assumed = in_instance(obligation.assume, 1), in_instance(obligation.assume, 2)
        performed = (*both_perform(context, goal.first, goal.second), *conjuncts(all_of(*assumed)))
        several = () if everywhere else several_blocks(context.kernel)
        performed = tuple(term for term in performed if term not in several)
        return (*performed, *ranges(performed))
    if isinstance(goal, Holds):
        happens = [goal.given] if goal.access is None else [goal.given, goal.access.happens]
    else:
        happens = [goal.first.happens]
    several = several_blocks(context.kernel) if everywhere else ()
    assertions = (*context.uniform_facts, *several, obligation.assume, *happens)
    return (*assertions, *ranges(assertions))


def _flag_off(obligation: Obligation, context: Context) -> tuple[Expr, ...] | None:
    """A launch with several blocks along every axis in which a compile-time flag keeps the accesses from
    happening; None if they are under no flag."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        guards = [goal.given] if goal.access is None else [goal.given, goal.access.guard]
    else:
        guards = [goal.first.guard, goal.second.guard]
    flags = [term for term in conjuncts(all_of(*guards)) if is_flag(term)]
    if not flags:
        return None
    off = any_of(*map(negate, flags))
    # The search is for launches with the flag set: what it finds is asked of no others.
    facts = [fact for fact in context.uniform_facts if not set(conjuncts(fact)) <= set(flags)]
    assertions = (*facts, *several_blocks(context.kernel), off)
    return (*assertions, *ranges(assertions))


def _is_narrow(
    obligation: Obligation, context: Context, performed: tuple[Expr, ...], satisfiable: Decide
) -> bool:
    """Whether the conditions leave only tiles of one element although the kernel allows others."""
    constants = [e for e in context.kernel.powers_of_two if e.op == "sym" and e.args[0].kind is Kind.CONSTANT]
    wide = tuple(le(2, size) for size in constants)
    if satisfiable((*performed, *wide)).status == "sat":
        return False
    return satisfiable((*_performed(obligation, context), *wide)).status != "unsat"


def _digits(context: Context) -> tuple[Expr, ...]:
    """The quotients of block indices that accesses are made of, where none of the facts turns these off."""
    found: dict[Expr, None] = {}
    known = set(context.uniform_facts)
    for access in context.kernel.accesses:
        if any(negate(term) in known for term in conjuncts(access.guard)):
            continue
        nodes = tuple(walk(*(axis.coordinate for axis in access.axes), access.guard))
        negated = {_negated(node) for node in nodes}
        for node in nodes:
            if node in negated:
                continue
            blocks = node.op == "floordiv" and any(s.kind is Kind.BLOCK for s in symbols(node.args[0]))
            if blocks and all(s.kind is Kind.BLOCK or not s.varies for s in symbols(node)):
                found[node] = None
    return tuple(found)[:_DIGITS]


def _negated(node: Expr) -> Expr | None:
    """The quotient of -x in `x // d if 0 <= x else -(-x // d)`, as Triton divides: no digit of its own, and 0
    wherever x is never negative."""
    if node.op != "ite" or node.args[0].op != "le" or node.args[0].args[0].value != 0:
        return None
    quotient, divisor = neg(node.args[2]), node.args[1].args[-1]
    is_of = quotient.op == "floordiv" and quotient.args[1] is divisor
    return quotient if is_of and quotient.args[0] is neg(node.args[0].args[1]) else None


def _is_frozen(digit: Expr, context: Context, conditions: tuple[Expr, ...], satisfiable: Decide) -> bool:
    """Whether the conditions force a digit to 0 that is not 0 in every launch anyway.

    Otherwise `grid[0] <= n` would rescue a kernel that decodes `bid // n` and then forgets to use it. An axis
    that may have one block, as the conditions ask for under a flag, is looked at with one; and no size of which
    the conditions speak with 0 or 1, as rows of 0 elements would fit into whatever is left for them.
    """

    def moves(under: Context, *more: Expr) -> Decision:
        several = (
            term for term in several_blocks(context.kernel) if le(term.args[1], 1) not in under.conditions
        )
        assertions = (*under.uniform_facts, *several, le(1, digit), *more)
        return satisfiable((*assertions, *ranges(assertions)))

    under, large = context.under(*conditions), ordinary(conditions, context.kernel)
    found = moves(under)
    if found.status == "sat" and (_meets(found.model, large) or moves(under, *large).status != "unsat"):
        return False
    return moves(context).status != "unsat"


def _meets(model: Valuation | None, wanted: Sequence[Expr]) -> bool:
    try:
        return model is not None and all(model.evaluate(e) for e in wanted)
    except ZeroDivisionError:
        return False
