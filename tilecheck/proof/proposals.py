"""Contracts that would decide an obligation: what the report asks the author to promise of values in memory.

A claim about elements that are found through values in memory is a claim about these values. Where the
obligation is proved under a contract `within(t, 0, n)`, for a launch value n that the kernel itself uses, the
kernel is not called violated: it waits for the contract, or for another that says more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from tilecheck.ir.expr import ZERO, Expr, Kind, render, sym, symbols, walk
from tilecheck.ir.kernel import Contract
from tilecheck.proof.context import Context
from tilecheck.proof.obligation import Disjoint, Holds, Obligation

_TABLES, _LIMITS = 2, 5  # tried at most: tables in one claim, limits for each

Proves = Callable[[Obligation, Context], bool]


def proposed(obligation: Obligation, context: Context, proves: Proves) -> str:
    """The comment under which the obligation holds, or nothing."""
    terms = _coordinates(obligation)
    known = {array for contract in context.kernel.contracts for array in contract.arrays}
    tables = list(dict.fromkeys(n.args[0] for n in walk(*terms) if n.op == "read" and ":" not in n.args[0]))
    tables = [t for t in tables if t not in known and ".shape[" not in t]
    if not tables or len(tables) > _TABLES:
        return ""
    limits = list(_limits(obligation))[:_LIMITS]
    for chosen in product(limits, repeat=len(tables)):
        contracts = tuple(_within(t, n, obligation) for t, n in zip(tables, chosen, strict=True))
        kernel = replace(context.kernel, contracts=(*context.kernel.contracts, *contracts))
        if proves(obligation, replace(context, kernel=kernel)):
            return " and ".join(f"# tilecheck: requires {c.text}" for c in contracts)
    return ""


def _coordinates(obligation: Obligation) -> list[Expr]:
    match obligation.goal:
        case Disjoint(first=first, second=second):
            return [axis.coordinate for access in (first, second) for axis in access.axes]
        case Holds(goal=goal, access=access) if access is not None:
            return [goal]
        case _:
            return []


def _limits(obligation: Obligation) -> Iterator[Expr]:
    """The sizes that the obligation speaks of: scalars, extents and constants, those in comparisons first."""
    goal = obligation.goal
    accesses = (goal.first, goal.second) if isinstance(goal, Disjoint) else ()
    guards = [part for a in accesses for part in (a.guard, a.mask)]
    guards += [goal.given] if isinstance(goal, Holds) else []
    found: dict[Expr, None] = {}
    for node in walk(*guards):
        if node.op in ("lt", "le"):
            found.update((sym(s), None) for s in symbols(node) if _is_size(s))
    found.update((sym(s), None) for s in symbols(*guards, *_coordinates(obligation)) if _is_size(s))
    yield from found


def _is_size(symbol: object) -> bool:
    return getattr(symbol, "kind", None) in (Kind.SCALAR, Kind.EXTENT, Kind.CONSTANT)


def _within(table: str, limit: Expr, obligation: Obligation) -> Contract:
    text = f"within({table}, 0, {render(limit)})"
    return Contract("within", table, (ZERO, limit), text, None, obligation.sites[0])
