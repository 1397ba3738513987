"""Open goals that values in memory decide alone: no launch condition saves them, so that none is sought.

A bound fails along a ray: an element grows without limit, others that its tests compare it with grow faster,
and everything that the proof may assume stays true. A race fails where blocks along a grid axis, or lanes, find
their places through a table of which nothing is known: all of its elements may be equal.

The answer chooses where work goes. Such a goal stays undecided, so a wrong answer proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilecheck.ir.expr import FALSE, TRUE, Expr, Kind, conjuncts, negate, read, rebuild, sub, sym, walk
from tilecheck.ir.kernel import Access, Effect, Kernel, block_symbol
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import negation
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.refute.memory_claims import is_memory

_LONGEST = 3  # values that grow together
_Trend = tuple[int, int]  # how fast a value grows, as a rank (0: not at all), and its sign
_Ray = Mapping[Expr, _Trend]
_STILL: _Trend = (0, 0)


def is_unbounded(obligation: Obligation, context: Context) -> bool:
    """Whether values in memory break an obligation in every launch that performs its accesses."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        return (
            goal.access is not None and obligation.kind == "bounds" and _leaves_array(obligation, goal, context)
        )
    if not isinstance(goal, Disjoint) or goal.between not in (Between.BLOCKS, Between.LANES):
        return False
    return _shares_elements(goal, context)


# ---- bounds ------------------------------------------------------------------------------------------------


def _leaves_array(obligation: Obligation, goal: Holds, context: Context) -> bool:
    if not any(map(is_memory, walk(goal.goal))):
        return False
    terms = [term for a in negation(goal, context, obligation.assume) for term in conjuncts(a)]
    # What does not move says which branch a choice takes, as for a lane that a load has masked off.
    still = [term for term in terms if not _may_move(term)]
    known = dict.fromkeys(still, TRUE) | {negate(term): FALSE for term in still}
    elements = [node for node in _free(rebuild(goal.goal, known.get)) if is_memory(node)]
    assertions = [rebuild(term, known.get) for term in terms if _may_move(term)]
    return any(
        _all_hold({element: (1, sign)}, assertions, _LONGEST) for element in elements for sign in (1, -1)
    )


def _may_move(e: Expr) -> bool:
    return any(map(_is_free, walk(e)))


def _free(root: Expr) -> list[Expr]:
    """The values that may grow. What a read gives where it is masked off is none of them: launch conditions can
    say that no lane is."""
    nodes = dict.fromkeys(walk(root))
    choices = [node.args for node in nodes if node.op == "ite"]
    unused = {last for _, first, last in choices if is_memory(first) and last.op == "sym" and is_memory(last)}
    return [node for node in nodes if _is_free(node) and node not in unused]


def _is_free(node: Expr) -> bool:
    """Whether a value may grow: an element, or the number of an iteration, of which elements may allow many."""
    return is_memory(node) or (node.op == "sym" and node.args[0].kind is Kind.LOOP)


def _all_hold(ray: _Ray, assertions: Sequence[Expr], left: int) -> bool:
    """Whether all assertions hold far out on the ray, if need be with more values that grow faster."""
    failing = next((a for a in assertions if not _holds(a, ray)), None)
    if failing is None:
        return True
    return left > 1 and any(
        _holds(failing, longer) and _all_hold(longer, assertions, left - 1) for longer in _longer(ray, failing)
    )


def _longer(ray: _Ray, failing: Expr) -> Iterator[_Ray]:
    rank = 1 + max(rank for rank, _ in ray.values())
    for node in _free(failing):
        if node not in ray:
            yield from ({**ray, node: (rank, sign)} for sign in (1, -1))


def _holds(e: Expr, ray: _Ray) -> bool:
    """Whether a boolean is true far out on the ray. What does not move is taken to be true, but for a part of a
    disjunction."""
    if ray.keys().isdisjoint(walk(e)):
        return True
    match e.op:
        case "all":
            return all(_holds(part, ray) for part in e.args)
        case "any":
            return any(_moves_to_truth(part, ray) for part in e.args)
        case "not" if e.args[0].op == "all":
            return any(_moves_to_truth(negate(part), ray) for part in e.args[0].args)
        case "le" | "lt":
            found = _trend(sub(e.args[1], e.args[0]), ray)
            return found is not None and found[1] > 0
        case "not" if e.args[0].op == "eq":
            found = _trend(sub(*e.args[0].args), ray)
            return found is not None and found[1] != 0
        case _:
            return False


def _moves_to_truth(e: Expr, ray: _Ray) -> bool:
    return not ray.keys().isdisjoint(walk(e)) and _holds(e, ray)


def _trend(e: Expr, ray: _Ray) -> _Trend | None:
    """How a number moves along the ray; None if that is not known. Launch values that are multiplied or divided
    by are taken to be above 0: with others, conditions leave no ordinary launch."""
    if e in ray:
        return ray[e]
    if ray.keys().isdisjoint(walk(e)):
        return _STILL
    match e.op:
        case "add":
            return _of_sum([_trend(term, ray) for term in e.args])
        case "mul":
            return _of_product(e, ray)
        case "floordiv" if _trend(e.args[1], ray) == _STILL:
            return _trend(e.args[0], ray)
        case "min":
            return _of_least([_trend(term, ray) for term in e.args])
        case "max":
            return _opposite(_of_least([_opposite(_trend(term, ray)) for term in e.args]))
        case "ite":
            test, first, second = e.args
            return _of_choice(test, first, second, ray)
        case _:
            return None


def _of_sum(terms: Sequence[_Trend | None]) -> _Trend | None:
    known = [term for term in terms if term is not None]
    fastest = max(rank for rank, _ in known) if known else 0
    signs = {sign for rank, sign in known if rank == fastest}
    return (fastest, signs.pop()) if len(known) == len(terms) and len(signs) == 1 else None


def _of_product(e: Expr, ray: _Ray) -> _Trend | None:
    moving = [found for found in (_trend(factor, ray) for factor in e.args) if found != _STILL]
    is_negative = any((factor.value or 0) < 0 for factor in e.args)
    if len(moving) != 1:
        return None
    return _opposite(moving[0]) if is_negative else moving[0]


def _of_choice(test: Expr, first: Expr, second: Expr, ray: _Ray) -> _Trend | None:
    """Where the test does not move, what is read under a mask is taken to be read."""
    if not ray.keys().isdisjoint(walk(test)):
        chosen = first if _holds(test, ray) else second if _holds(negate(test), ray) else None
        return None if chosen is None else _trend(chosen, ray)
    moving = {found for found in (_trend(first, ray), _trend(second, ray)) if found != _STILL}
    return moving.pop() if len(moving) == 1 else None


def _of_least(terms: Sequence[_Trend | None]) -> _Trend | None:
    known = [term for term in terms if term is not None]
    if len(known) < len(terms):
        return None
    falling = [rank for rank, sign in known if sign < 0]
    return (max(falling), -1) if falling else min(known)


def _opposite(trend: _Trend | None) -> _Trend | None:
    return None if trend is None else (trend[0], -trend[1])


# ---- races -------------------------------------------------------------------------------------------------


def _shares_elements(goal: Disjoint, context: Context) -> bool:
    """Whether two blocks along some axis, or two lanes, touch the same elements where a table is the same all
    over."""
    first, second = goal.first, goal.second
    places = [axis.coordinate for axis in first.axes]
    if first.array != second.array or places != [axis.coordinate for axis in second.axes]:
        return False
    if first.synchronised or second.synchronised or first.member is not None or second.member is not None:
        return False
    numbers = map(block_symbol, context.kernel.grid_axes) if goal.between is Between.BLOCKS else first.lanes
    known = _known_tables(context.kernel)
    return any(_is_told_by_tables(sym(number), places, (first, second), known) for number in numbers)


def _known_tables(kernel: Kernel) -> frozenset[str]:
    """The tables of which a contract says something, or may say nothing: the kernel writes them."""
    said = {array for contract in kernel.contracts for array in contract.arrays}
    return frozenset(said | {access.array for access in kernel.accesses if access.effect is not Effect.READ})


def _is_told_by_tables(
    number: Expr, places: Sequence[Expr], accesses: Sequence[Access], known: frozenset[str]
) -> bool:
    """Whether the number of a block or lane decides places through elements of unknown tables alone, and its
    own tests leave other numbers."""

    def equal(node: Expr) -> Expr | None:
        """An element of a table that is the same all over, wherever it is read."""
        if node.op == "ite" and sum(map(is_memory, node.args[1:])) == 1:
            return rebuild(next(filter(is_memory, node.args[1:])), equal)
        name = node.args[0].partition(":")[0] if node.op == "read" else ""
        return read(node.args[0], 0) if name and name not in known and "." not in name else None

    told = [rebuild(place, equal) for place in places]
    if number not in walk(*places) or number in walk(*told):
        return False
    tests = [rebuild(t, equal) for a in accesses for part in (a.guard, a.mask) for t in conjuncts(part)]
    return any(all(_holds(test, {number: (1, sign)}) for test in tests) for sign in (-1, 1))
