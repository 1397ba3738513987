"""Numbers of compile time that are multiples of others: `BT % BS == 0`.

Where BS >= 1 divides BT, BT is BS * (BT // BS). Written so, what is counted in steps of BS has the factor BS in
every term, and `-BS < i * BT - k * BS - BS` says that the number of steps is not negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilecheck.ir.expr import ONE, ZERO, Expr, Kind, conjuncts, eq, floordiv, le, mod, mul, sub, symbols, walk
from tilecheck.ir.kernel import Access
from tilecheck.proof.conditions.terms import Terms


def as_multiples(facts: Mapping[Expr, None]) -> Iterator[tuple[Expr, Expr, Expr]]:
    """The multiples of numbers of compile time among these and launch values, what they are equal to, and of
    what they are multiples: that is at least 1.

    One number is written as one product: as a multiple of what it is divided by, where that is said of several.
    """
    found: dict[Expr, list[Expr]] = {}
    for fact in facts:
        if fact.op != "eq" or ZERO not in fact.args:
            continue
        whole = next((a for a in fact.args if a is not ZERO), ZERO)
        if _is_whole(whole) and le(ONE, whole.args[1]) in facts:
            found.setdefault(whole.args[0], []).append(whole.args[1])
    for multiple, divisors in found.items():
        divisor = divisors[0]
        if len(divisors) > 1:
            divided = {n.args[1] for n in walk(*facts) if _is_part(n, multiple)}
            divisor = next((d for d in divisors if d in divided), divisor)
        yield multiple, mul(divisor, floordiv(multiple, divisor)), divisor


def _is_part(e: Expr, multiple: Expr) -> bool:
    """`i * BT // BS`: not BT alone, as what says that BT is a multiple."""
    if e.op not in ("floordiv", "mod") or e.args[0] is multiple:
        return False
    return any(s is multiple.args[0] for s in symbols(e.args[0]))


def _is_constant(e: Expr) -> bool:
    return e.op == "sym" and e.args[0].kind is Kind.CONSTANT


def _is_scalar(e: Expr) -> bool:
    return e.op == "sym" and e.args[0].kind is Kind.SCALAR


def is_multiple(condition: Expr) -> bool:
    """`BT % BS == 0`, between numbers of compile time."""
    return condition.op == "eq" and ZERO in condition.args and any(map(_is_remainder, condition.args))


def _is_whole(e: Expr) -> bool:
    """`n % BT` of a launch value, too."""
    if e.op != "mod" or not _is_constant(e.args[1]):
        return False
    return _is_constant(e.args[0]) or _is_scalar(e.args[0])


def _is_remainder(e: Expr) -> bool:
    return e.op == "mod" and all(map(_is_constant, e.args))


def whole_parts(goal: Expr, terms: Terms) -> Iterator[Expr]:
    """`S % BT == 0` where what is counted in steps of S is divided by BT, as the first block of a part is:
    `cdiv(i * S, BT)`: conditions to try."""
    for node in walk(goal):
        if node.op != "floordiv" or not _is_constant(node.args[1]) or terms.uniform(node):
            continue
        dividend = terms.poly(node.args[0])
        moving = [m for m in dividend if terms.varies(m)]
        still = terms.expr({m: c for m, c in dividend.items() if m not in moving})
        if len(moving) == 1 and still in (ZERO, sub(node.args[1], 1)):
            sizes = [terms.atom(number) for number in moving[0]]
            yield from (eq(mod(e, node.args[1]), 0) for e in sizes if _is_constant(e) and e is not node.args[1])


def whole_rounds(digit: Expr, terms: Terms) -> Iterator[Expr]:
    """`n % BT == 0` where lanes of tiles of BT wrap round at n, `(i * BT + lane) % n`, so that the last tile
    does not begin again at 0: conditions to try."""
    dividend, divisor = digit.args
    sizes = {e: None for m in terms.poly(dividend) for e in map(terms.atom, m) if _is_constant(e)}
    lanes = any(s.kind is Kind.LANE for s in symbols(dividend))
    if lanes and (_is_scalar(divisor) or _is_constant(divisor)):
        yield from (eq(mod(divisor, size), 0) for size in sizes if size is not divisor)


def whole_steps(given: Expr, terms: Terms) -> Iterator[Expr]:
    """`BT % BS == 0` where a loop goes in steps of BS to or from a multiple of BT: conditions to try."""
    for term in conjuncts(given):
        if term.op not in ("lt", "le"):
            continue
        steps: dict[Expr, None] = {}
        sizes: dict[Expr, None] = {}
        for side in term.args:
            for m in terms.poly(side):
                factors = [terms.atom(number) for number in m]
                constants = [e for e in factors if _is_constant(e)]
                counts = [s for e in factors for s in symbols(e) if s.kind is Kind.LOOP]
                (steps if counts else sizes).update(dict.fromkeys(constants))
        yield from (eq(mod(size, step), 0) for step in steps for size in sizes if size is not step)


def whole_pieces(access: Access) -> Iterator[Expr]:
    """`BT % BC == 0` where a loop inside another goes over BT elements in cdiv(BT, BC) steps of BC, so that the
    last does not reach into what the next round of the outer loop, or another block, goes over: conditions to
    try."""
    tests = [t for t in conjuncts(access.guard) if t.op == "lt"]
    for node in walk(*(t for t in tests if any(s.kind is Kind.LOOP for s in symbols(t)))):
        if node.op != "floordiv" or not _is_constant(node.args[1]):
            continue
        step = node.args[1]
        steps = [n for n in walk(*(a.coordinate for a in access.axes)) if n.op == "mul" and step in n.args]
        if any(s.kind is Kind.LOOP for s in symbols(*steps)):
            top = node.args[0].args if node.args[0].op == "add" else (node.args[0],)
            ends = [e for t in top for e in (t.args if t.op in ("min", "max") else (t,))]
            yield from (eq(mod(e, step), 0) for e in ends if _is_constant(e) and e is not step)
