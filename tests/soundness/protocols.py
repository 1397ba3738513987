"""Random programs that order their accesses by atomics, and every interleaving of them.

A program is a list of statements for each role (one program id each, the last role for all others). `text`
writes it as a Triton kernel; `has_race` runs it in all interleavings with vector clocks, sharing nothing with
tilecheck: an acquire has what was released to its cell before, and two accesses of one element race if neither
has the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import TypeVar

T = TypeVar("T")

PID, LAST = "pid", "last"  # numbers that depend on the program: its id, and the number of programs less 1
_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "acq_rel", "acq_rel")
_RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    ">=": int.__ge__,
}

Number = int | str


@dataclass(frozen=True)
class Touch:
    """A plain store or load of one element of the data."""

    place: Number
    stores: bool


@dataclass(frozen=True)
class Atomic:
    """An atomic on one cell of the flags, whose result gets a name."""

    kind: str
    operands: tuple[int, ...]
    order: str
    name: str = "seen"
    cell: int = 0

    def left(self, old: int) -> int:
        """What it leaves in the cell."""
        value = self.operands[-1]
        if self.kind == "cas":
            return value if old == self.operands[0] else old
        return {"add": old + value, "xchg": value, "max": max(old, value)}[self.kind]


@dataclass(frozen=True)
class Branch:
    """A branch on what an atomic returned."""

    name: str
    relation: str
    number: Number
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Wait:
    """A loop that repeats an atomic while a relation holds of what it returns."""

    atomic: Atomic
    relation: str
    number: Number


Statement = Touch | Atomic | Branch | Wait
Roles = tuple[tuple[Statement, ...], ...]


# ---- generation --------------------------------------------------------------------------------------------


def random_roles(rng: random.Random) -> Roles:
    """A protocol, as it is meant or with something wrong."""
    bodies = rng.choice((_ticket, _flag, _lock, _turns, _claim))(rng)
    return tuple(tuple(_mistaken(rng, list(body))) for body in bodies)


def falling_roles(rng: random.Random) -> Roles:
    """A counter that falls, as it is meant or with something wrong."""
    drawn = Atomic("add", (rng.choice((-1, -1, -1, -2)),), _order(rng))
    reads = tuple(Touch(k, stores=False) for k in range(2))
    branch = Branch("seen", rng.choice(("==", "==", "<")), rng.choice((-1, -1, -2, 0, 1)), reads)
    return (tuple(_mistaken(rng, [Touch(PID, stores=True), drawn, branch])),)


def _mistaken(rng: random.Random, body: list[Statement]) -> list[Statement]:
    """Sometimes with two statements exchanged, one dropped, or another atomic or store."""
    chance = rng.random()
    if chance < 0.12:
        i, k = rng.randrange(len(body)), rng.randrange(len(body))
        body[i], body[k] = body[k], body[i]
    elif chance < 0.18 and len(body) > 1 and not isinstance(body[0], Atomic):
        del body[0]
    elif chance < 0.28:
        extra = Atomic(
            rng.choice(("add", "xchg")), (rng.choice((0, 1)),), _order(rng), "more", rng.choice((0, 0, 1))
        )
        body.insert(rng.randrange(len(body) + 1), extra)
    elif chance < 0.34:
        body.append(Touch(0, stores=rng.random() < 0.5))
    return body


def _order(rng: random.Random) -> str:
    return rng.choice(_ORDERS)


def _ticket(rng: random.Random) -> list[list[Statement]]:
    drawn = Atomic("add", (rng.choice((1, 1, 1, 2)),), _order(rng))
    reads = tuple(Touch(k, stores=False) for k in range(2))
    last = rng.choice((LAST, LAST, LAST, 0, 1, 2))
    return [[Touch(PID, stores=True), drawn, Branch("seen", rng.choice(("==", "==", ">=")), last, reads)]]


def _flag(rng: random.Random) -> list[list[Statement]]:
    kind = rng.choice(("xchg", "add", "cas"))
    raised = Atomic(kind, (0, 1) if kind == "cas" else (rng.choice((1, 1, 2)),), _order(rng))
    writer: list[Statement] = [Touch(0, stores=True), raised]
    if rng.random() < 0.5:
        wait = Wait(Atomic("add", (0,), _order(rng)), rng.choice(("==", "!=", "<")), rng.choice((0, 1, 1)))
        reader: list[Statement] = [wait, Touch(0, stores=False)]
    else:
        look = rng.choice((Atomic("add", (0,), _order(rng)), Atomic("cas", (1, 2), _order(rng))))
        reader = [look, Branch("seen", "==", 1, (Touch(0, stores=False),))]
    return [writer, reader, *([rng.choice((writer, reader))] if rng.random() < 0.3 else [])]


def _lock(rng: random.Random) -> list[list[Statement]]:
    swap = Atomic("cas", rng.choice(((0, 1), (0, 1), (0, 1), (1, 0))), _order(rng))
    taken = Wait(swap, rng.choice(("==", "==", "!=")), rng.choice((1, 1, 0)))
    back = rng.choice(
        (Atomic("xchg", (rng.choice((0, 0, 0, 1)),), _order(rng)), Atomic("cas", (1, 0), _order(rng)))
    )
    return [[taken, Touch(0, stores=False), Touch(0, stores=True), back]]


def _turns(rng: random.Random) -> list[list[Statement]]:
    awaited = Wait(
        Atomic("add", (0,), _order(rng)), rng.choice(("!=", "!=", "<")), rng.choice((PID, PID, PID, 1))
    )
    passed = Atomic("add", (rng.choice((1, 1, 1, 2)),), _order(rng))
    return [[awaited, Touch(0, stores=False), Touch(0, stores=True), passed]]


def _claim(rng: random.Random) -> list[list[Statement]]:
    kind = rng.choice(("max", "xchg", "cas", "add"))
    claim = Atomic(kind, (0, 1) if kind == "cas" else (rng.choice((1, 1, 0, 2)),), _order(rng))
    body = (Touch(0, stores=True),)
    return [[claim, Branch("seen", rng.choice(("==", "==", "!=")), rng.choice((0, 0, 1)), body)]]


# ---- as a kernel -------------------------------------------------------------------------------------------


def text(roles: Roles, programs: int) -> str:
    """The program as a Triton kernel, with barriers around each statement."""
    head = (
        "import triton\nimport triton.language as tl\n\n\n"
        "# tilecheck: requires within(flags, 0, 1) -- cleared\n"
        f"# tilecheck: requires grid[0] == {programs}\n"
        "@triton.jit\ndef kernel(data, flags, out):\n    pid = tl.program_id(0)\n"
    )
    if len(roles) == 1:
        return head + "".join(_lines(roles[0], 1, programs))
    parts = []
    for k, body in enumerate(roles):
        test = "if pid == 0:" if k == 0 else f"elif pid == {k}:" if k < len(roles) - 1 else "else:"
        parts += [f"    {test}\n", *_lines(body, 2, programs)]
    return head + "".join(parts)


def _lines(body: tuple[Statement, ...], depth: int, programs: int) -> Iterator[str]:
    indent = "    " * depth
    for statement in body:
        yield f"{indent}tl.debug_barrier()\n"
        match statement:
            case Touch(place, stores=True):
                yield f"{indent}tl.store(data + {place}, 1)\n"
            case Touch(place):
                yield f"{indent}tl.store(out + pid, tl.load(data + {place}))\n"
            case Atomic():
                yield f"{indent}{statement.name} = {_call(statement)}\n"
            case Branch(name, relation, number, inner):
                yield f"{indent}if {name} {relation} {programs - 1 if number == LAST else number}:\n"
                yield from _lines(inner, depth + 1, programs)
            case Wait(atomic, relation, number):
                yield f"{indent}while {_call(atomic)} {relation} {number}:\n{indent}    pass\n"
        yield f"{indent}tl.debug_barrier()\n"


def _call(atomic: Atomic) -> str:
    operands = ", ".join(map(str, atomic.operands))
    return f"tl.atomic_{atomic.kind}(flags + {atomic.cell}, {operands}, sem={atomic.order!r})"


# ---- all interleavings -------------------------------------------------------------------------------------

Clock = tuple[int, ...]


@dataclass(frozen=True)
class _State:
    """What is left to do, what was seen, and who knows of how many accesses of whom."""

    left: tuple[tuple[Statement, ...], ...]
    seen: tuple[tuple[tuple[str, int], ...], ...]
    cells: tuple[int, ...]
    released: tuple[Clock, ...]
    clocks: tuple[Clock, ...]
    touched: frozenset[tuple[int, int, bool, int]]  # program, element, whether it stores, time


class Race(Exception):
    """Two accesses that nothing orders."""


def has_race(roles: Roles, programs: int, most: int = 40_000) -> bool | None:
    """Whether some interleaving has a race; None where there are more states than `most`."""
    none = (0,) * programs
    start = _State(
        tuple(roles[min(p, len(roles) - 1)] for p in range(programs)),
        ((),) * programs,
        (0, 0),
        (none, none),
        (none,) * programs,
        frozenset(),
    )
    known, todo = {start}, [start]
    while todo:
        state = todo.pop()
        for program in range(programs):
            try:
                after = _step(state, program, programs)
            except Race:
                return True
            if after is not None and after not in known:
                known.add(after)
                todo.append(after)
        if len(known) > most:
            return None
    return False


def _step(state: _State, program: int, programs: int) -> _State | None:
    """One statement of one program; None where it has ended, or where it waits and changes nothing."""
    if not state.left[program]:
        return None
    statement, *rest = state.left[program]

    def number(value: Number) -> int:
        return {PID: program, LAST: programs - 1}[value] if isinstance(value, str) else value

    match statement:
        case Touch(place, stores):
            return _touch(state, program, number(place), stores, tuple(rest))
        case Branch(name, relation, limit, body):
            taken = _RELATIONS[relation](dict(state.seen[program]).get(name, 0), number(limit))
            return _replaced(state, program, left=((*body, *rest) if taken else tuple(rest)))
        case Wait(atomic, relation, limit):
            old = state.cells[atomic.cell]
            again = _RELATIONS[relation](old, number(limit))
            if again and (atomic.left(old) == old or atomic.left(old) > 2 * programs):
                return None
            return _update(state, program, atomic, state.left[program] if again else tuple(rest))
        case Atomic():
            return _update(state, program, statement, tuple(rest))


def _touch(state: _State, program: int, place: int, stores: bool, rest: tuple[Statement, ...]) -> _State:
    clock = state.clocks[program]
    for other, element, stored, time in state.touched:
        if element == place and other != program and (stored or stores) and clock[other] < time:
            raise Race
    time = clock[program] + 1
    clocks = _with(state.clocks, program, _with(clock, program, time))
    touched = state.touched | {(program, place, stores, time)}
    return _State(_with(state.left, program, rest), state.seen, state.cells, state.released, clocks, touched)


def _update(state: _State, program: int, atomic: Atomic, rest: tuple[Statement, ...]) -> _State:
    cell, old = atomic.cell, state.cells[atomic.cell]
    clock, released = state.clocks[program], state.released
    if atomic.order in ("acquire", "acq_rel"):
        clock = _both(clock, released[cell])
    changes = atomic.kind != "cas" or old == atomic.operands[0]
    if changes and atomic.order in ("release", "acq_rel"):
        released = _with(released, cell, _both(released[cell], clock))
    return _State(
        _with(state.left, program, rest),
        _with(state.seen, program, tuple(sorted({**dict(state.seen[program]), atomic.name: old}.items()))),
        _with(state.cells, cell, atomic.left(old)),
        released,
        _with(state.clocks, program, clock),
        state.touched,
    )


def _replaced(state: _State, program: int, left: tuple[Statement, ...]) -> _State:
    parts = state.seen, state.cells, state.released, state.clocks, state.touched
    return _State(_with(state.left, program, left), *parts)


def _with(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _both(a: Clock, b: Clock) -> Clock:
    return tuple(starmap(max, zip(a, b, strict=True)))
