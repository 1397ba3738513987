"""The fast path of a launch: straight-line Python for one kernel and one signature.

It is taken where nothing has to be looked at: no other operation holds the arrays, all work in flight on them
is on the stream of the launch, and nothing writes them that a dependent launch overlaps with. It then does what
`Runtime.submit`, `Ledger.claim` and the guard do. Elsewhere it does nothing, and the general way is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tilecheck.host.memory.handles import Array, Shared
from tilecheck.host.memory.uses import Dependence
from tilecheck.host.places import Place
from tilecheck.host.streams.clocks import Item

if TYPE_CHECKING:
    from tilecheck.host.memory.handles import View
    from tilecheck.host.operations.kernels import Prepared, Role
    from tilecheck.host.recording import Recorder
    from tilecheck.host.streams.streams import Stream

Mark: TypeAlias = tuple[str, Place]
"""The operation that an array has moved into: its name, and where it was made."""

Launch: TypeAlias = Callable[
    ["Stream", Any, Sequence[Any], Mapping[str, Any], Place, "Mark | None", bool], bool
]
"""Launches with stream, grid, arguments, options, place, the mark of the operation that holds the arrays, and
whether the launch depends on the start of the one before. Returns whether it did. Its caller holds the lock."""

Take: TypeAlias = Callable[[Sequence[Any], Mark], "tuple[list[View], list[View]] | None"]
"""Moves and lends the arrays among the arguments to the operation of a mark. Returns those that have moved and
those that are lent; None if it did nothing."""


class FastPath(NamedTuple):
    """The functions of one signature."""

    launch: Launch
    take: Take


Touching: TypeAlias = "Sequence[tuple[int, Role]]"
"""Positions of arrays that a kernel touches, and what it does with them."""

# Exact types of numbers and texts: values that cannot change.
CONSTANT = frozenset({int, float, bool, str, type(None)})


def compile_fast_path(kernel: Prepared, count: int, options: Sequence[str]) -> FastPath:
    """The fast path of launches with `count` arguments by position, and options of these names."""
    if count > len(kernel.roles):
        return FastPath(lambda *_: False, lambda *_: None)
    touching = [(at, role) for at, role in kernel.touching if at < count]
    numbers = [f"a{at}" for at in kernel.others if at < count] + [f"o{k}" for k in range(len(options))]
    unpack = f"    {''.join(f'a{at}, ' for at in range(count))}= args" if count else "    () = args"
    values = "".join(f"a{at}, " if kernel.roles[at] is None else f"a{at}.launched, " for at in range(count))
    lines = [
        "def launch(stream, grid, args, options, place, mark, dependent):",
        "    runtime = stream.runtime",
        "    ledger = runtime.ledger",
        "    queue = ledger.queues.get(stream.handle)",
        "    if queue is None or runtime.capture is not None or runtime.reaper.is_needed:",
        "        return False",
        "    lane = queue.lane",
        "    overlaps = dependent and queue.is_launch",
        *([] if kernel.waits else ["    if overlaps:", "        return False"]),
        unpack,
        *(f"    o{k} = options[{name!r}]" for k, name in enumerate(options)),
        *(line for at, role in touching for line in _checks(at, role)),
        *(f"    if type({value}) not in CONSTANT: return False" for value in numbers),
        *_lookup(kernel, [at for at, _ in touching], numbers),
        "    item = Item(queue, name, place)",
        "    if overlaps:",
        "        queue.push_dependent(item, waits=True)",
        "    else:",
        "        queue.push(item, is_launch=True)",
        "    seq = item.seq",
        *(line for at, role in touching for line in _notes(at, role)),
        "    if ledger.recorder is not None:",
        "        record(kernel, ledger.recorder, item, args, dependent)",
        "    runtime.is_executing = True",  # a grid or a hook may be code of the user's
        "    try:",
        "        if blocks is not None:",
        f"            again(runtime.driver, queue, blocks, ({values}), options, dependent)",
        "        else:",
        f"            values = ({values})",
        "            start(runtime.driver, queue, grid, values, options, dependent)",
        "            if is_known:",
        "                remember(key, grid, values, options)",
        "    finally:",
        "        runtime.is_executing = False",
        "    return True",
        "def take(args, mark):",
        unpack,
        *(f"    if {_is_held(at, role, 'None')}: return None" for at, role in touching),
        *(f"    if a{one} is a{two}: return None" for one, two in _written_pairs(touching)),
        *(f"    a{at}.moved = mark" if role.writes else f"    a{at}.loans += 1" for at, role in touching),
        f"    return [{_listed(touching, writes=True)}], [{_listed(touching, writes=False)}]",
    ]
    scope: dict[str, Any] = {
        "Array": Array,
        "CONSTANT": CONSTANT,
        "Item": Item,
        "Shared": Shared,
        "again": kernel.launch_again,
        "kernel": kernel,
        "name": kernel.name,
        "passed": kernel.passed,
        "record": _record,
        "remember": kernel.remember,
        "start": kernel.launch,
    }
    text = "\n".join(lines)
    exec(compile(text, f"<fast path of {kernel.record.name}>", "exec"), scope)  # noqa: S102 - names of options are quoted
    return FastPath(scope["launch"], scope["take"])


def _checks(at: int, role: Role) -> list[str]:
    """Leave the fast path unless an array may be used, and nothing on another stream uses it."""
    t, r = f"t{at}", f"r{at}"
    return [
        f"    if {_is_held(at, role, 'mark')}: return False",
        f"    {t}, {r} = a{at}.storage.tracks, a{at}.region",
        f"    if {t}.lane != lane{f' or not {r}.is_dense' if role.reaches_gaps else ''}: return False",
        f"    {t} = {t}.only",
        *_early_checks(t, role),
    ]


def _is_held(at: int, role: Role, mark: str) -> str:
    """Whether an argument is no plain handle, or one that something else than the operation of `mark` holds."""
    a = f"a{at}"
    if role.writes:
        return f"type({a}) is not Array or {a}.moved is not {mark} or {a}.shared is not None or {a}.loans"
    return f"type({a}) is not Array and type({a}) is not Shared or {a}.moved is not None"


def _written_pairs(touching: Touching) -> Iterator[tuple[int, int]]:
    """Pairs of arrays of which one is written."""
    for (one, first), (two, second) in itertools.combinations(touching, 2):
        if first.writes or second.writes:
            yield one, two


def _listed(touching: Touching, *, writes: bool) -> str:
    return ", ".join(f"a{at}" for at, role in touching if role.writes is writes)


def _early_checks(track: str, role: Role) -> list[str]:
    """Leave the fast path where a dependent launch touches what may still be written before its wait, or writes
    there what may still be read."""
    if not role.is_early:
        return []
    return [f"    if overlaps{'' if role.early_write else f' and {track}.written > queue.start'}: return False"]


def _lookup(kernel: Prepared, arrays: Sequence[int], numbers: Sequence[str]) -> list[str]:
    """Find out if an equal launch has passed its check: the same arrays, and numbers of the same types."""
    if not kernel.remembers_any:
        return ["    is_known = blocks = None"]
    # 1, 1.0 and True are equal.
    key = ["grid", *(f"a{at}.serial" for at in arrays), *numbers, *(f"type({value})" for value in numbers)]
    is_known = " and ".join(["type(grid) is tuple", *(f"a{at}.serial" for at in arrays)])
    return [
        f"    is_known = {is_known}",
        f"    key = ({', '.join(key)},)",
        "    try:",
        "        blocks = passed.get(key) if is_known else None",
        "    except TypeError:",  # a grid that is not hashable
        "        is_known = blocks = None",
    ]


def _notes(at: int, role: Role) -> list[str]:
    """Note the access to an array."""
    if role.writes:
        return [f"    t{at}.writes[r{at}] = item", f"    t{at}.seq = t{at}.written = seq"]
    return [f"    t{at}.reads[r{at}] = item", f"    t{at}.seq = seq"]


def _record(kernel: Prepared, recorder: Recorder, item: Item, args: Sequence[Any], dependent: bool) -> None:
    uses, early = kernel.uses(args, {})
    dependence = Dependence(early, kernel.waits) if dependent else None
    recorder.work(item, uses, is_launch=True, dependence=dependence)
