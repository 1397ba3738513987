"""What a loop that searches by halves keeps: two ends between which it looks, and what it found out at each.

    while low < high:                       # or so many rounds of `if low < high:`, or of tiles with `where`
        middle = (low + high) // 2
        if table[middle] <= x:
            low = middle + 1
        else:
            high = middle

A round moves one end to the middle, or next to it. With `low0` and `high0` before the loop, by induction:

- `low0 <= low` and `high <= high0`; and `low <= high`, or else `high0 < low0` and no round moves anything.
  For a round that moves an end has `low < high`, so that the middle is one of `low` to `high - 1`, and the end
  that it sets stays on its side of the other.
- of an end that moved, the test that moved it last holds: `low` is `low0` or `table[low - 1] <= x`.
- `high - low` after n rounds is at most `(high0 - low0) // 2**n`, where every round with `low < high` moves an
  end and leaves at most half of it.

Where both ends are inside (`while low <= high`, `high = middle - 1`), the same is said of `low` and `high + 1`.
Where no test keeps a round from moving anything (`low`, `high` are moved in each of them), the middle of `low`
and `high` is still one of `low` to `high`; a last one may take `low` to `high + 1`, from where nothing moves.
That needs `low0 <= high0`, and is said under that condition.

The values are integers that do not wrap: the middle is divided, so that what is halved must fit, and it lies
between the ends; that the number next to it fits is asked for where an end may pass its first value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.frontend.execute.overflow_dependencies import rests_of
from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.values.arithmetic import may_have_wrapped
from tilecheck.frontend.values.signs import is_natural
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

_MOST_PATHS = 16  # ways through the body of a loop
_MOST_NAMES = 8  # integers that a loop carries without a closed form
_MOST_ROUNDS = 64  # no number of 64 bits can be halved more often


@dataclass(frozen=True, slots=True)
class _Middle:
    """`floor((low + high + up) / 2) + offset`, with `up` 0 or 1; `half` is the quotient in its text, and `rest`
    is what else stands there beside it."""

    up: int
    offset: int
    half: Expr
    sign: int
    rest: Expr

    def above(self, width: int) -> int:
        """How far it is above `low`, where `high - low` is so much."""
        return (width + self.up) // 2 + self.offset


@dataclass(frozen=True, slots=True)
class _Path:
    """A way through the body: what holds on it, and to what it moves the ends, None for one that stays."""

    known: tuple[Expr, ...]
    low: _Middle | None
    high: _Middle | None


@dataclass(frozen=True, slots=True)
class _Told:
    """What holds of an end that moved, with `place` for it and for each of `others` some number or truth."""

    place: Symbol
    terms: Expr
    others: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """What holds of the variables `low` and `high` before each round of a loop and after it.

    `inside` is 1 where `high` itself is looked at, too. Without `tested`, rounds move ends in any case.
    `truths` are variables that say in each round what they say of these ends. `halves` says that each round
    leaves at most half.
    """

    low: str
    high: str
    first: Expr
    last: Expr
    inside: int
    tested: bool
    halves: bool
    told: tuple[tuple[str, _Told], ...]
    truths: tuple[tuple[str, Expr], ...]
    ends: tuple[Expr, Expr]  # what `truths` call them

    def asks(self, x: Executor, entry: Mapping[str, Any]) -> None:
        """Ask that no value wraps that nothing else asks it of. The ends before the loop are a sink: what is
        known of the unknowns of a round is made of them (S-32bit-2)."""
        before = len(x.overflow.checks)
        x.overflow.test(rest for name in self._names for rest in rests_of(entry[name]))
        for name, value, step in ((self.low, self.first, -1), (self.high, self.last, 1)):
            if entry[name].bits == 64:
                continue
            if may_have_wrapped(value):
                x.fits(value, entry[name].shape)
            if self.inside:  # the other end may be next to it
                x.fits(E.add(value, step), entry[name].shape)
        x.overflow.test(x.overflow.since(before))

    def rests(self, x: Executor, names: Mapping[str, Any]) -> None:
        """Note that what is known of the ends, and of what says how they are, rests on what a round computes:
        on halves of what fits, and on tests."""
        x.overflow.test(rest for name in self._names for rest in rests_of(names.get(name)))

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.low, self.high, *(name for name, _ in self.truths))

    def hold(self, x: Executor, names: dict[str, Any], rounds: Expr | None = None) -> Expr:
        """Put what is known into the variables, as unknown as they are in `names`. Gives what else holds, after
        so many rounds."""
        low, high = names[self.low], names[self.high]
        if not all(isinstance(value, Num) and value.elem is not None for value in (low, high)):
            return E.TRUE
        before = E.le(self.first, self.last)
        if self.tested:
            # Also where `last` is below `first`: the maximum is `first` then, and the minimum is `last`.
            least = E.maximum(self.first, E.minimum(low.elem, E.add(self.last, self.inside)))
            most = E.minimum(self.last, E.maximum(high.elem, E.sub(self.first, self.inside)))
        else:
            least = E.maximum(self.first, E.minimum(low.elem, E.add(self.last, 1)))
            most = E.minimum(self.last, E.maximum(high.elem, self.first))
            if not _is_at_most(self.first, self.last):
                least, most = E.ite(before, least, low.elem), E.ite(before, most, high.elem)
        names[self.low], names[self.high] = replace(low, elem=least), replace(high, elem=most)
        for name, truth in self.truths:
            said = E.substitute(truth, dict(zip(self.ends, (least, most), strict=True)))
            names[name] = replace(names[name], elem=said)
        if any(s.kind is Kind.LANE for s in E.symbols(self.first, self.last)):
            return E.TRUE  # what a guard says is the same in all lanes
        return E.all_of(*self._relations(least, most, rounds), *self._tests(x, least, most))

    def _relations(self, low: Expr, high: Expr, rounds: Expr | None) -> Iterator[Expr]:
        inside = self.inside if self.tested else 1
        ordered = E.le(self.first, E.add(self.last, inside if self.tested else 0))
        yield _where(ordered, E.le(low, E.add(high, inside)))
        if not self.halves or rounds is None or rounds.value is None:
            return
        if 0 <= rounds.value <= _MOST_ROUNDS:
            inside = self.inside if self.tested else 0
            width = E.add(E.sub(self.last, self.first), inside)
            left = E.add(E.sub(high, low), inside)
            yield _where(ordered, E.le(left, E.floordiv(width, 2**rounds.value)))

    def _tests(self, x: Executor, low: Expr, high: Expr) -> Iterator[Expr]:
        for name, told in self.told:
            end, start = (low, self.first) if name == self.low else (high, self.last)
            mapping = {E.sym(told.place): end}
            for symbol in told.others:
                mapping[E.sym(symbol)] = E.sym(again := replace(symbol, uid=x.number()))
                mapping[E.bool_sym(symbol)] = E.bool_sym(again)
            yield E.any_of(E.eq(end, start), E.substitute(told.terms, mapping))


def _where(condition: Expr, then: Expr) -> Expr:
    return E.any_of(E.negate(condition), then)


def searches(
    x: Executor,
    inputs: Mapping[str, Any],
    after: Mapping[str, Any],
    entry: Mapping[str, Any],
    mark: int,
) -> tuple[Search, ...]:
    """The searches that a loop makes, from one round of it: what it makes of the unknown `inputs` while the
    guard of `x` holds. What is made in a round has numbers from `mark` on."""
    own = [name for name in entry if _is_carried(x, name, inputs, after, entry)][:_MOST_NAMES]
    found: list[Search] = []
    taken: set[str] = set()
    for low, high in permutations(own, 2):
        if taken.isdisjoint((low, high)) and _may_search(low, high, inputs, after):
            search = _search(x, low, high, inputs, after, entry, mark)
            if search is not None:
                found.append(search)
                taken |= {low, high}
    return tuple(found)


def _is_carried(
    x: Executor, name: str, inputs: Mapping[str, Any], after: Mapping[str, Any], entry: Mapping[str, Any]
) -> bool:
    """Whether it is an integer, or a tile of integers, of one type before, in and after a round."""
    before, found, left = entry[name], inputs[name], after.get(name)
    return all(
        isinstance(value, Num)
        and value.elem is not None
        and value.unsigned is None
        and (value.kind == "int" or (value.kind == "any" and x.is_integer_memory(value.elem)))
        and value.shape == before.shape
        for value in (before, found, left)
    )


def _may_search(low: str, high: str, inputs: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a round makes each of two variables of both, and halves something."""
    ends = {E.symbols(inputs[name].elem)[0] for name in (low, high)}
    return inputs[low].shape == inputs[high].shape and all(
        ends.issubset(E.symbols(after[name].elem))
        and any(node.op == "floordiv" and node.args[1].value == 2 for node in E.walk(after[name].elem))
        for name in (low, high)
    )


def _search(
    x: Executor,
    low: str,
    high: str,
    inputs: Mapping[str, Any],
    after: Mapping[str, Any],
    entry: Mapping[str, Any],
    mark: int,
) -> Search | None:
    ends = inputs[low].elem, inputs[high].elem
    starts = entry[low].elem, entry[high].elem
    truths = tuple(_truths(ends, starts, (after[low].elem, after[high].elem), inputs, after, entry, mark))
    meaning = {inputs[name].elem: said for name, said in truths}
    moved = [E.substitute(after[name].elem, meaning) for name in (low, high)]
    guard = E.conjuncts(E.substitute(x.guard, meaning))
    paths: list[_Path] = []
    for known, one, other in _paths(guard, moved[0], moved[1]):
        middles = [None if e is end else _middle(e, ends) for e, end in zip((one, other), ends, strict=True)]
        if (middles[0] is None and one is not ends[0]) or (middles[1] is None and other is not ends[1]):
            return None
        paths.append(_Path(known, middles[0], middles[1]))
        if len(paths) > _MOST_PATHS:
            return None
    moving = [path for path in paths if path.low or path.high]
    if not any(path.low for path in moving) or not any(path.high for path in moving):
        return None
    forms = ((0, True), (1, True), (1, False))
    form = next((f for f in forms if _keeps(moving, ends, f[0], tested=f[1])), None)
    if form is None or not _is_floor(moving, starts[0], tested=form[1]):
        return None
    inside, tested = form
    if any(may_have_wrapped(e) and x.fits(e, entry[low].shape) is not e for e in starts):
        return None
    told: list[tuple[str, _Told]] = []
    if not entry[low].shape:
        for name in (low, high):
            said = _told(moving, inputs, mark, is_low=name == low)
            told += [] if said is None else [(name, said)]
    halves = all(_halves(path, ends, inside, tested=tested) for path in paths)
    return Search(low, high, *starts, inside, tested, halves, tuple(told), truths, ends)


def _truths(
    ends: tuple[Expr, Expr],
    starts: tuple[Expr, Expr],
    moved: tuple[Expr, Expr],
    inputs: Mapping[str, Any],
    after: Mapping[str, Any],
    entry: Mapping[str, Any],
    mark: int,
) -> Iterator[tuple[str, Expr]]:
    """The truths that a round leaves as a question about the ends that it leaves, where the same question about
    the first ends was the truth before the loop: so they are the answer in each round."""
    # Other names than those of the ends that the round found: these may be asked about, too.
    left = tuple(E.sym(Symbol(end, Kind.OPAQUE, mark, origin="search")) for end in ("low", "high"))
    for name, value in entry.items():
        later, now = after.get(name), inputs[name]
        if later is None or not all(
            isinstance(v, Num) and v.kind == "bool" and v.elem is not None for v in (value, later, now)
        ):
            continue
        asked = E.substitute(later.elem, dict(zip(moved, left, strict=True)))
        if asked.op not in ("lt", "le") or value.shape != later.shape:
            continue
        if any(s.uid >= mark and E.sym(s) not in left for s in E.symbols(asked)):
            continue
        if E.substitute(asked, dict(zip(left, starts, strict=True))) is value.elem:
            yield name, E.substitute(asked, dict(zip(left, ends, strict=True)))


# ---- ways through the body ---------------------------------------------------------------------------------


def _paths(known: tuple[Expr, ...], one: Expr, other: Expr) -> Iterator[tuple[tuple[Expr, ...], Expr, Expr]]:
    """Each way to choose among the branches that two values are, with what holds on it: one more than are
    looked at, if there are more."""
    stack, count = [(known, one, other)], 0
    while stack and count <= _MOST_PATHS:
        known, one, other = stack.pop()
        one, other = _resolved(one, frozenset(known)), _resolved(other, frozenset(known))
        choice = next((e for e in (one, other) if e.op == "ite" and _floor(e) is None), None)
        if choice is None:
            count += 1
            yield known, one, other
            continue
        test = choice.args[0]
        for term in (test, E.negate(test)):
            holds = E.all_of(*known, term)
            if holds is not E.FALSE:
                stack.append((E.conjuncts(holds), one, other))


def _resolved(e: Expr, known: frozenset[Expr]) -> Expr:
    """A value where all of `known` holds: choices that it decides are made."""

    def chosen(node: Expr) -> Expr | None:
        if node.op != "ite" or _floor(node) is not None:
            return None
        truth = _decided(node.args[0], known)
        return None if truth is None else _resolved(node.args[1 if truth else 2], known)

    return E.rebuild(e, chosen)


def _decided(test: Expr, known: frozenset[Expr]) -> bool | None:
    if known.issuperset(E.conjuncts(test)):
        return True
    opposite = E.negate(test)
    parts = test.args if test.op == "all" else ()
    return False if opposite in known or any(E.negate(part) in known for part in parts) else None


# ---- the middle --------------------------------------------------------------------------------------------


def _floor(e: Expr) -> Expr | None:
    """The half that `e` is, rounded down or, as Triton divides, towards 0: the quotient rounded down."""
    if e.op == "ite":
        test, floor, other = e.args
        if floor.op != "floordiv" or test is not E.le(0, floor.args[0]):
            return None
        return floor if other is E.neg(E.floordiv(E.neg(floor.args[0]), floor.args[1])) else None
    return e if e.op == "floordiv" and e.args[1].value == 2 else None


def _middle(e: Expr, ends: tuple[Expr, Expr]) -> _Middle | None:
    """What is half way between the ends, or a literal away from it."""
    terms = list(e.args) if e.op == "add" else [e]
    halves = [t for t in terms if _floor(t) is not None or (_is_negative(t) and _floor(t.args[1]) is not None)]
    if len(halves) != 1:
        return None
    half, sign = (halves[0], 1) if not _is_negative(halves[0]) else (halves[0].args[1], -1)
    floor = _floor(half)
    if floor is None or floor.args[1].value != 2:
        return None
    rest = E.add(*(t for t in terms if t is not halves[0]))
    beside, inner = _counted(rest, ends), _counted(floor.args[0], ends)
    if beside is None or inner is None:
        return None
    match sign, beside[:2], inner[:2]:
        case 1, (0, 0), (1, 1):  # (low + high + c) // 2
            up = inner[2]
        case 1, (1, 0), (-1, 1):  # low + (high - low + c) // 2
            up = inner[2]
        case -1, (0, 1), (-1, 1):  # high - (high - low + c) // 2
            up = 1 - inner[2]
        case _:
            return None
    return _Middle(up % 2, beside[2] + up // 2, half, sign, rest)


def _is_negative(e: Expr) -> bool:
    return e.op == "mul" and len(e.args) == 2 and e.args[0].value == -1


def _counted(e: Expr, ends: tuple[Expr, Expr]) -> tuple[int, int, int] | None:
    """How often each end stands in a sum of them, and the literal in it."""
    low = high = literal = 0
    for term in e.args if e.op == "add" else (e,):
        sign, bare = (-1, term.args[1]) if _is_negative(term) else (1, term)
        if bare is ends[0]:
            low += sign
        elif bare is ends[1]:
            high += sign
        elif term.value is not None:
            literal += term.value
        else:
            return None
    return low, high, literal


def _is_floor(moving: list[_Path], first: Expr, *, tested: bool) -> bool:
    """Whether what is halved is not negative where it is used, so that halves towards 0 are rounded down.

    A difference is not where ends are tested; the sum is not below twice `first`, as `first <= low`, and
    `first <= high` or, where both ends are inside and tested, `low <= high` in such a round.
    """
    for middle in (m for path in moving for m in (path.low, path.high) if m is not None):
        if middle.half.op == "floordiv":
            continue
        dividend = middle.half.args[1].args[0]
        literal = dividend.args[0].value if dividend.op == "add" else None
        is_sum = not any(_is_negative(term) for term in dividend.args)
        if (literal or 0) < 0 or not (is_natural(first, frozenset(), frozenset()) if is_sum else tested):
            return False
    return True


# ---- what rounds keep --------------------------------------------------------------------------------------


def _keeps(moving: list[_Path], ends: tuple[Expr, Expr], inside: int, *, tested: bool) -> bool:
    """Whether each way that moves an end leaves `low <= high + inside`, with ends that are where they were or
    between these.

    Say that w is `high + inside - low`, at least 1 in a round that is tested and 0 in others. An end is set to
    `low + f(w)`, where f(w) = (w - inside + up) // 2 + offset. Neither f nor w - f(w) falls where w rises: it
    is enough to look at the least w. In a round that is not tested `high` is `low - 1` for w = 0, and if it
    moves, then to where it is; else it is set to `low` or above it. So it does not fall below `first`.
    """
    low, high = ends
    active = (E.lt(low, high), E.le(low, high)) if inside else (E.lt(low, high),)
    least = 1 if tested else 0
    for path in moving:
        if tested and not any(term in path.known for term in active):
            return False
        if path.low is not None and not 0 <= path.low.above(least - inside) <= least:
            return False
        if path.high is not None and not 0 <= path.high.above(least - inside) + inside <= least:
            return False
        if path.high is not None and not tested and path.high.above(0) < 0:
            return False
        if path.low is not None and path.high is not None:
            crossed = path.low.up != path.high.up or path.low.offset > path.high.offset + inside
            if crossed:
                return False
    return True


def _halves(path: _Path, ends: tuple[Expr, Expr], inside: int, *, tested: bool) -> bool:
    """Whether a way leaves at most half of the width w between the ends, rounded down, of a width from 1 on,
    and of no other one that is above 0.

    The width is `high + inside - low` of ends that are tested, else `high - low`, which may be -1. What is left
    of w + 2 is 1 more than what is left of w, and so is the half of it: it is enough to look at two widths, and
    at those below 1.
    """
    low, high = ends
    if path.low is None and path.high is None:
        over = (E.lt(high, low),) if inside else (E.lt(high, low), E.le(high, low))
        return tested and any(term in path.known for term in over)
    beside = inside if tested else 0
    for width in (1, 2) if tested else (-1, 0, 1, 2):
        left = width
        if path.high is not None:
            left = path.high.above(width - beside) + beside
        if path.low is not None:
            left -= path.low.above(width - beside)
        if left > max(width, 0) // 2:
            return False
    return True


def _told(moving: list[_Path], inputs: Mapping[str, Any], mark: int, *, is_low: bool) -> _Told | None:
    """What the tests that move an end say of where they move it. Whatever else was made in the round that moved
    it last is something that is not known."""
    place = Symbol("end", Kind.OPAQUE, mark, origin="search", per_lane=False)
    elems = [value.elem for value in inputs.values() if isinstance(value, Num) and value.elem is not None]
    carried = frozenset(E.symbols(*elems))
    ways: list[Expr] = []
    others: dict[Symbol, None] = {}
    for path in moving:
        middle = path.low if is_low else path.high
        if middle is None:
            continue
        # The end is sign * half + rest.
        half = E.mul(middle.sign, E.sub(E.sym(place), middle.rest))
        terms = []
        for term in path.known:
            said = E.substitute(term, {middle.half: half})
            own = E.symbols(said)
            if place in own and carried.isdisjoint(own) and not any(map(_is_of_lanes, own)):
                terms.append(said)
                others.update((s, None) for s in own if s.uid >= mark and s != place)
        if not terms:
            return None
        ways.append(E.all_of(*terms))
    return _Told(place, E.any_of(*ways), tuple(others)) if ways else None


def _is_of_lanes(symbol: Symbol) -> bool:
    """Whether lanes may see different values of it: what a guard says is the same in all of them."""
    return symbol.kind is Kind.LANE or (symbol.kind is Kind.OPAQUE and symbol.per_lane)


def _is_at_most(a: Expr, b: Expr) -> bool:
    return is_natural(E.sub(b, a), frozenset(), frozenset())
