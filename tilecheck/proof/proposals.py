"""Contracts that would decide an obligation: what the report asks the author to promise of values in memory.

A claim about elements that are found through values in memory is a claim about these values. Where the
obligation is proved under a contract `within(t, 0, n)`, for a launch value n that the kernel itself uses, the
kernel is not called violated: it waits for the contract, or for another that says more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from tilecheck.ir.expr import ZERO, Expr, Kind, read, rebuild, render, sym, symbols, walk
from tilecheck.ir.kernel import Contract
from tilecheck.ir.parts import WHOLE, Part, residue
from tilecheck.proof.context import Context
from tilecheck.proof.obligation import Disjoint, Holds, Obligation

_TABLES, _LIMITS = 2, 5  # tried at most: tables in one claim, limits for each
_CAST = ":int"  # an element that is cast to an integer

Proves = Callable[[Obligation, Context], bool]


def proposed(obligation: Obligation, context: Context, proves: Proves) -> str:
    """The comment under which the obligation holds, or nothing."""
    obligation = _of_integers(obligation)
    known = {array for contract in context.kernel.contracts for array in contract.arrays}
    tables = [t for t in dict.fromkeys(_tables(obligation)) if t[0] not in known]
    if not tables or len(tables) > _TABLES:
        return ""
    limits = list(_limits(obligation))[:_LIMITS]
    for chosen in product(limits, repeat=len(tables)):
        contracts = tuple(_within(*t, n, obligation) for t, n in zip(tables, chosen, strict=True))
        kernel = replace(context.kernel, contracts=(*context.kernel.contracts, *contracts))
        if proves(obligation, replace(context, kernel=kernel)):
            return " and ".join(f"# tilecheck: requires {c.text}" for c in contracts)
    return ""


def _of_integers(obligation: Obligation) -> Obligation:
    """A bound as it is stated of tables that are known to hold integers: those with a contract are."""
    goal = obligation.goal
    if not isinstance(goal, Holds):
        return obligation

    def known(e: Expr) -> Expr:
        return rebuild(e, lambda n: _plain(n, known) if n.op == "read" else None)

    plain = replace(goal, goal=known(goal.goal), given=known(goal.given))
    return replace(obligation, goal=plain, assume=known(obligation.assume))


def _plain(node: Expr, known: Callable[[Expr], Expr]) -> Expr | None:
    name, *indices = node.args
    return read(name.removesuffix(_CAST), *map(known, indices)) if name.endswith(_CAST) else None


def _tables(obligation: Obligation) -> Iterator[tuple[str, Part]]:
    """The tables that elements are found through; of one in flat memory that pairs are read from, the part
    with their first entries, or with their second ones."""
    for node in walk(*_coordinates(obligation)):
        if node.op == "read" and ":" not in node.args[0] and ".shape[" not in node.args[0]:
            entry = residue(node.args[1], 2) if len(node.args) == 2 and node.args[1].value is None else None
            yield node.args[0], WHOLE if entry is None else ((entry, 2),)


def _coordinates(obligation: Obligation) -> list[Expr]:
    match obligation.goal:
        case Disjoint(first=first, second=second):
            return [axis.coordinate for access in (first, second) for axis in access.axes]
        case Holds(goal=goal, access=access) if access is not None:
            return [goal]
        case _:
            return []


def _limits(obligation: Obligation) -> Iterator[Expr]:
    """The sizes that the obligation speaks of: scalars, extents and constants. First those in comparisons with
    what is looked up, then those in others."""
    goal = obligation.goal
    accesses = (goal.first, goal.second) if isinstance(goal, Disjoint) else ()
    guards = [part for a in accesses for part in (a.guard, a.mask)]
    guards += [goal.given] if isinstance(goal, Holds) else []
    found: dict[Expr, None] = {}
    compared = [node for node in walk(*guards) if node.op in ("lt", "le")]
    for node in sorted(compared, key=lambda node: all(part.op != "read" for part in walk(node))):
        found.update((sym(s), None) for s in symbols(node) if _is_size(s))
    found.update((sym(s), None) for s in symbols(*guards, *_coordinates(obligation)) if _is_size(s))
    yield from found


def _is_size(symbol: object) -> bool:
    return getattr(symbol, "kind", None) in (Kind.SCALAR, Kind.EXTENT, Kind.CONSTANT)


def _within(table: str, part: Part, limit: Expr, obligation: Obligation) -> Contract:
    slices = "".join(f"[{first}::{step}]" for first, step in part)
    text = f"within({table}{slices}, 0, {render(limit)})"
    return Contract("within", table, (ZERO, limit), text, None, obligation.sites[0], part=part)
