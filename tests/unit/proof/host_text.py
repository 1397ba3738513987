"""Host programs as short texts: one action a line.

    launch side reads x[0:4] writes y      copy, too; `x~[0:4]` is an inexact region
    launch s dependent before reads b after writes y   `sometimes`: need not wait
    touch writes p / record e side / await main e / join / join stream s / join event e
    allocate m / free m after s / move m op / back m / rebind n / keep m r / use r
    capture g s / end g / replay g s / destroy g / forbidden item

Memories are words: `x` lies on the stream `main`, `x:side` on `side`, `x@in` is handed in, `p@pinned` and
`p@pageable` lie on the host, `m@pool=g` in the pool of the graph g.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from tilecheck.ir.expr import const
from tilecheck.ir.host_program import (
    Action,
    Allocate,
    Await,
    Back,
    Capture,
    Destroy,
    EndCapture,
    Footprint,
    Forbidden,
    Free,
    HostProgram,
    Join,
    Keep,
    Memory,
    Move,
    Place,
    Rebind,
    Record,
    Region,
    Replay,
    Touch,
    UseKept,
    Work,
)
from tilecheck.model import Site, Span

SITE = Site("host.py", Span(0, 0))
MAIN = "main"
_WORDS = {"reads", "writes", "before", "after", "dependent", "sometimes", "frozen"}


def program(text: str, memories: str = "x y", returned: str = "") -> HostProgram:
    """The program of a text; the caller's stream is `main`."""
    actions = tuple(_action(line.split()) for line in text.splitlines() if line.strip())
    return HostProgram(
        "host",
        SITE,
        tuple(map(_memory, memories.split())),
        actions,
        caller=MAIN,
        returned=tuple(map(region, returned.split())),
    )


def region(word: str) -> Region:
    name, _, box = word.rstrip("]").partition("[")
    axes = [axis.split(":") for axis in box.split(",")] if box else []
    bounds = tuple((const(int(start)), const(int(stop))) for start, stop in axes)
    return Region(name.rstrip("~"), bounds, exact="~" not in name)


def _memory(word: str) -> Memory:
    name, *marks = word.split("@")
    name, _, stream = name.partition(":")
    place = next((Place(mark) for mark in marks if mark in {"pinned", "pageable"}), Place.DEVICE)
    pool = next((mark.removeprefix("pool=") for mark in marks if mark.startswith("pool=")), None)
    on = None if place is not Place.DEVICE else stream or MAIN
    return Memory(name, SITE, place, on, pool, handed_in="in" in marks)


def _words(words: list[str], after: str) -> tuple[str, ...]:
    if after not in words:
        return ()
    return tuple(takewhile(lambda word: word not in _WORDS, words[words.index(after) + 1 :]))


def _footprint(words: list[str]) -> Footprint:
    reads, writes = (tuple(map(region, _words(words, word))) for word in ("reads", "writes"))
    return Footprint(reads, writes)


def _work(verb: str, stream: str, words: list[str]) -> Work:
    split = words.index("after") if "after" in words else len(words) if "before" in words else 0
    return Work(
        SITE,
        verb,
        stream,
        _footprint(words[split:]),
        _footprint(words[:split]),
        dependent="dependent" in words,
        waits="sometimes" not in words,
        is_launch=verb == "launch",
        frozen=_words(words, "frozen"),
    )


def _join(kind: str = "", name: str = "") -> Join:
    return Join(SITE, name if kind == "stream" else None, name if kind == "event" else None)


_VERBS: dict[str, Callable[..., Action]] = {
    "join": _join,
    "record": lambda event, stream: Record(SITE, event, stream),
    "await": lambda stream, event: Await(SITE, stream, event),
    "allocate": lambda memory: Allocate(SITE, memory),
    "free": lambda memory, _after="", *streams: Free(SITE, memory, streams),
    "move": lambda memory, into: Move(SITE, memory, into),
    "back": lambda memory: Back(SITE, memory),
    "rebind": lambda name: Rebind(SITE, name),
    "keep": lambda memory, name: Keep(SITE, memory, name),
    "use": lambda name: UseKept(SITE, name),
    "capture": lambda graph, stream: Capture(SITE, graph, stream),
    "end": lambda graph: EndCapture(SITE, graph),
    "replay": lambda graph, stream: Replay(SITE, graph, stream),
    "destroy": lambda graph: Destroy(SITE, graph),
    "forbidden": lambda what: Forbidden(SITE, what, "the host reads"),
}


def _action(words: list[str]) -> Action:
    verb, *rest = words
    if verb in {"launch", "copy"}:
        return _work(verb, rest[0], rest[1:])
    if verb == "touch":
        return Touch(SITE, verb, _footprint(rest))
    return _VERBS[verb](*rest)
