"""Loops: which rounds of a loop stand for all of them.

All rounds of a loop run the same body. They differ by the counter, and by what the variables are bound to. The
bindings recur after some rounds with some period (1 for most loops, k for a ring of k buffers): from there on
round r does what round r + period does. Work keeps to its stream in corresponding rounds, so what is ordered
before a round is ordered before all that correspond to it later. So a period and one round more have every pair
of rounds that two rounds can be, as far as order goes. Parts of memory that move with the counter must move at
one speed for this to hold of overlaps too (`moving_regions`); else they count as the whole memory, perhaps
touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from tilecheck.frontend.host_programs.knowledge import BreakLoop, ContinueLoop, Loop, LoopsOn, Relearn
from tilecheck.frontend.host_programs.loops.iteration import Items
from tilecheck.frontend.host_programs.loops.round_counts import may_be, read_with, share_rounds
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

_LONGEST = 10  # rounds that are read of one loop
_FEW = 3


def run_for(
    m: Machine,
    node: cst.CSTNode,
    items: Callable[[], Items],
    body: Callable[[V.Value], None],
    *,
    skips: bool = True,
) -> bool:
    """Run a `for` loop; whether it ended without `break`.

    Args:
        m: the path.
        node: the loop.
        items: gives what it goes over, asked for inside the loop.
        body: runs a round.
        skips: whether the number of rounds is chosen; else there are as many as stand for all.
    """
    with_loop = Loop(m.site(node), m.unique("loop"))
    m.loops.append(with_loop)
    try:
        whole = items()
        if whole.exact is not None:
            for r, value in enumerate(whole.exact):
                with_loop.round = r
                if not _round(m, with_loop, lambda value=value: body(value), None):  # type: ignore[misc]
                    return False
            return True
        states: list[object] = []
        for r in _rounds_of(m, with_loop, node, whole, skips=skips):
            with_loop.round = r
            grown = _Carried(m, with_loop)
            if not _round(m, with_loop, lambda r=r: body(whole.at(r)), grown):  # type: ignore[misc]
                return False
            states.append(_state(m, with_loop))
        _check_recurs(m, with_loop, node, states)
        return True
    finally:
        m.loops.pop()
        _leave(m, with_loop)


def run_while(m: Machine, node: cst.CSTNode, test: Callable[[], bool | None], body: Callable[[], None]) -> bool:
    """Run a `while` loop; whether it ended without `break`. `test` gives None where the condition is open.

    Raises:
        LoopsOn: the loop has no end but a `break`, and this path takes none.
    """
    loop = Loop(m.site(node), m.unique("loop"))
    m.loops.append(loop)
    most = _most_rounds(m, loop)
    states: list[object] = []
    try:
        while True:
            grown = _Carried(m, loop)
            goes_on = test()
            if goes_on is None:
                goes_on = loop.round < most and m.choices.pick(2) == 0
            if not goes_on:
                _check_recurs(m, loop, node, states)
                return True
            if loop.round >= most:
                _check_recurs(m, loop, node, states)
                raise LoopsOn(node)
            if not _round(m, loop, body, grown):
                return False
            states.append(_state(m, loop))
            loop.round += 1
    finally:
        m.loops.pop()
        _leave(m, loop)


def _round(m: Machine, loop: Loop, body: Callable[[], None], grown: _Carried | None) -> bool:
    """One round; whether the loop goes on."""
    try:
        body()
    except ContinueLoop:
        pass
    except BreakLoop:
        return False
    if grown is not None:
        grown.learn()
    return True


def _most_rounds(m: Machine, loop: Loop) -> int:
    """The number of rounds that have every pair of rounds: a period and one, behind those that differ."""
    wanted = max(2, m.knowledge.rounds.get(loop.site, 0), m.knowledge.periods.get(loop.site, 1) + 1)
    if wanted > _LONGEST:
        raise m.unread_at(loop.site, "too many rounds of this loop differ")
    return wanted


def _rounds_of(m: Machine, loop: Loop, node: cst.CSTNode, whole: Items, *, skips: bool) -> list[int]:
    """The numbers of the rounds that are read on this path.

    A loop of a known number of rounds is read at both its ends; between them only whole periods are left out.
    """
    most = _most_rounds(m, loop)
    period = m.knowledge.periods.get(loop.site, 1)
    if whole.count is not None:
        most, period = share_rounds(m, whole.count, most, period, whole.read)
        if most > _LONGEST:
            raise m.unread_at(loop.site, "too many rounds of this loop differ")
    if whole.read is not None:
        return list(range(whole.read))
    known = None if whole.count is None else m.settle(whole.count).value
    if whole.count in m.stand_ins:
        loop.count = known
    if known is not None:
        last = min(known, period + 1)
        first = most + (known - last - most) % period
        if first + last >= known:
            loop.tail = 0
            return list(range(known))
        loop.tail = known - last
        return [*range(first), *range(known - last, known)]
    if not skips:
        return list(range(most))
    ways = _ways(most, period) if m.is_relevant(node) else [most, 0]
    if loop.site in m.knowledge.replaying:
        ways.remove(0)  # a loop that replays is taken to do so: without it, what the graph writes is not there
    if whole.count is not None:
        count = m.settle(whole.count)
        ways = [way for way in ways if may_be(m, count, way, more=way == most)] or ways
    rounds = ways[m.choices.pick(len(ways))]
    if whole.count is not None:
        read_with(m, whole.count, rounds, more=rounds > most - period)
        loop.count = rounds
        loop.number = whole.count if rounds > most - period else None
    return list(range(rounds))


def _ways(most: int, period: int) -> list[int]:
    """How many rounds there may be: none, one, or any number by its place in the period."""
    if most <= _FEW:
        return [*range(most, -1, -1)]
    return list(dict.fromkeys((*range(most, most - period, -1), 2, 1, 0)))


# ---- variables that change from round to round -------------------------------------------------------------


def _scopes(m: Machine) -> list[V.Scope]:
    """The scopes whose variables a round may bind: its own, and those of code that goes over generators."""
    return list({id(scope): scope for scope in (m.scope, *m.consumers)}.values())


class _Carried:
    """The numbers that a loop changes: how each grows in a round is learned, and said of it in the next run."""

    def __init__(self, m: Machine, loop: Loop) -> None:
        self.m, self.loop, self.scopes = m, loop, _scopes(m)
        known = m.knowledge.carried.get(loop.site, {})
        for (at, name), growth in known.items():
            value = self.scopes[at].names.get(name) if at < len(self.scopes) else None
            if isinstance(value, V.Number):
                if growth is not None and value.curved and value.value is not None:
                    self._may_recur((at, name))
                self.scopes[at].names[name] = _growing(value, loop, growth)
        self.before = {
            (at, name): value
            for at, scope in enumerate(self.scopes)
            for name, value in scope.names.items()
            if isinstance(value, V.Number)
        }

    def _may_recur(self, name: tuple[int, str]) -> None:
        """A number that does not grow evenly, as `turn ^= 1`: its values may recur.

        Raises:
            Relearn: that is not known yet.
        """
        recurring = self.m.knowledge.recurring.setdefault(self.loop.site, {})
        if name not in recurring:
            recurring[name] = True
            del self.m.knowledge.carried[self.loop.site][name]
            raise Relearn

    def learn(self) -> None:
        """Raises: Relearn, if a number changes in another way than was known."""
        known = self.m.knowledge.carried.setdefault(self.loop.site, {})
        recurring = self.m.knowledge.recurring.setdefault(self.loop.site, {})
        learned = False
        for name, before in self.before.items():
            after = self.scopes[name[0]].names.get(name[1])
            if not isinstance(after, V.Number) or recurring.get(name):
                continue
            growth = E.sub(after.expr, before.expr)
            expected = known.get(name)
            if name in known and (expected is None or growth is expected):
                continue
            if name not in known and (growth is E.ZERO or any(n == self.loop.name for n, _ in after.slopes)):
                continue
            learned = True
            literal = after.expr.value is not None and before.expr.value is not None
            if name not in known:
                known[name] = growth
            elif literal and name not in recurring:  # `turn = 1 - turn`: its values may recur
                recurring[name] = True
                del known[name]
            else:
                known[name] = None
        if learned:
            raise Relearn


def _growing(value: V.Number, loop: Loop, growth: Expr | None) -> V.Number:
    if growth is None:
        return replace(value, curved=True)
    others = tuple((name, slope) for name, slope in value.slopes if name != loop.name)
    return replace(value, slopes=(*others, (loop.name, growth)))


def _leave(m: Machine, loop: Loop) -> None:
    """Behind the loop, its numbers stand for the rounds that were read alone."""
    for scope in m.scopes:
        for name, value in scope.names.items():
            if isinstance(value, V.Number) and any(n == loop.name for n, _ in value.slopes):
                scope.names[name] = V.Number(value.expr, (), curved=True)


# ---- when bindings recur -----------------------------------------------------------------------------------


def _state(m: Machine, loop: Loop) -> object:
    """What the variables are bound to, with what the loop made called by its age."""
    recurring = m.knowledge.recurring.get(loop.site, {})
    names = {f"{at}.{name}" for (at, name), recurs in recurring.items() if recurs}
    bindings = sorted(_bindings(m), key=lambda item: item[0])
    return tuple((name, value if name in names else _identity(loop, value, 0)) for name, value in bindings)


def _bindings(m: Machine) -> list[tuple[str, V.Value]]:
    found = [(f"{at}.{name}", value) for at, s in enumerate(_scopes(m)) for name, value in s.names.items()]
    for variable, value in list(found):
        if isinstance(value, V.Object):
            found += [(f"{variable}.{name}", field) for name, field in value.fields.items()]
    return found


_ITEM = re.compile(r"\[-?\d+\]")
_LATEST = 3  # items of a list that grows


def _identity(loop: Loop, value: V.Value, depth: int) -> object:
    name = value.memory if isinstance(value, V.Tensor) else getattr(value, "name", "")
    if depth == 0 and name in loop.items and name not in loop.births:
        return (type(value).__name__, "item", loop.round - loop.items[name])
    match value:
        case V.Stream(name=name) | V.Event(name=name) | V.Graph(name=name):
            return (type(value).__name__, _age(loop, name))
        case V.Tensor(memory=memory):
            return ("Tensor", _age(loop, memory))
        case V.Unknown(name=name, plain=False):
            return ("Unknown", _age(loop, name))
        case V.Sequence(items=items) if depth < _LATEST:
            return tuple(_identity(loop, item, depth + (not value.is_tuple)) for item in items[-_LATEST:])
        case V.Const(value=constant):
            return constant
        case _:
            return None


def _age(loop: Loop, name: str) -> object:
    if name not in loop.births:
        root, rest = _split(name)
        # Items of what the caller made go with the counter: `moving_regions` looks at where they are taken.
        rest = _ITEM.sub("[]", rest)
        return (root, rest) if root not in loop.births else (_age(loop, root), rest)
    born, order = loop.births[name]
    first = min(o for r, o in loop.births.values() if r == born)
    return (loop.round - born, order - first)


def _split(path: str) -> tuple[str, str]:
    """The value that a path starts from, and the path below it."""
    ends = [at for at in (path.find("."), path.find("[")) if at > 0]
    return (path[: min(ends)], path[min(ends) :]) if ends else (path, "")


def _check_recurs(m: Machine, loop: Loop, node: cst.CSTNode, states: list[object]) -> None:
    """Raises: Relearn, if the bindings do not recur with the period that is known."""
    rounds = len(states)
    period = m.knowledge.periods.get(loop.site, 1)
    states = states[: rounds - loop.behind]
    if rounds < _most_rounds(m, loop) or (len(states) > period and states[-1] == states[-1 - period]):
        return
    for longer in range(1, len(states)):
        if states[-1] == states[-1 - longer]:
            m.knowledge.learn_period(loop.site, longer)
            m.knowledge.learn_rounds(loop.site, rounds + longer)
    if rounds >= _LONGEST - _FEW:
        _give_up_numbers(m, loop)
        raise m.unread(node, "the variables of this loop do not recur")
    m.knowledge.learn_rounds(loop.site, rounds + _FEW)


def _give_up_numbers(m: Machine, loop: Loop) -> None:
    """Raises: Relearn, if numbers were taken to recur: each counts as unknown from now on."""
    recurring = m.knowledge.recurring.get(loop.site, {})
    if any(recurring.values()):
        m.knowledge.carried.setdefault(loop.site, {}).update(dict.fromkeys(recurring))
        recurring.update(dict.fromkeys(recurring, False))
        raise Relearn
