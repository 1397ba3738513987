"""Random host programs: streams, events, graphs, dependent launches, and memory that comes and goes.

A program is drawn as segments: work on a stream, a chain of dependent launches, a graph with its replays, a
touch of the host, the end of some memory. Before each use the drawer puts the waits that make it right, by
vector clocks of its own. A careless drawer leaves some out and makes other slips. The oracle says which of
them are hazards.

As a script it draws N programs and prints how many have each code: `python host_programs.py N [SEED]`.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace

from tilecheck.ir import host_program as ir
from tilecheck.ir.expr import const
from tilecheck.model import Site, Span
from tilecheck.proof.interleavings import hazards

MAIN, HOST = "main", "host"
SITE = Site("drawn.py", Span(0, 0))
CODES = (*(f"TC41{k}" for k in range(1, 6)), *(f"TC42{k}" for k in range(1, 7)), "TC431", "TC432", "TC433")
_SLIP = 0.5  # of the chances to slip that a careless drawer has


@dataclass(frozen=True)
class Use:
    """A box of memory that is read or written; no box is all of it."""

    memory: str
    box: tuple[tuple[int, int], ...]
    write: bool

    def conflicts(self, other: Use) -> bool:
        if self.memory != other.memory or not (self.write or other.write):
            return False
        return all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(self.box, other.box, strict=False))


@dataclass
class Clocks:
    """What each stream, and the host, knows to have ended: vector clocks of the device, or of one capture."""

    uses: list[tuple[str, int, Use]] = field(default_factory=list)
    known: dict[str, Counter[str]] = field(default_factory=dict)

    def clock(self, stream: str) -> Counter[str]:
        return self.known.setdefault(stream, Counter())

    def enqueue(self, stream: str, uses: list[Use]) -> None:
        """Later items know what the host knew when it enqueued them."""
        self.wait(stream, HOST)
        self.clock(stream)[stream] += 1
        self.uses += [(stream, self.clock(stream)[stream], use) for use in uses]

    def wait(self, stream: str, other: str) -> None:
        self.known[stream] = self.clock(stream) | self.clock(other)

    def unknown(self, stream: str, uses: list[Use]) -> list[str]:
        """The streams whose work must have ended before these uses."""
        clock = self.clock(stream) | self.clock(HOST)
        conflicts = {(s, k) for s, k, use in self.uses for new in uses if use.conflicts(new)}
        return sorted({s for s, k in conflicts if k > clock[s] and s != stream})


class Drawer:
    """One program in the making."""

    def __init__(self, rng: random.Random, careless: float) -> None:
        self.rng = rng
        self.slips = _SLIP if rng.random() < careless else 0.0
        self.streams = [MAIN, "left", "right", "other"][: rng.choice((1, 2, 2, 3, 3, 4))]
        self.actions: list[ir.Action] = []
        self.clocks = Clocks()
        self.graphs: dict[str, list[Use]] = {}
        self.frozen: dict[str, list[str]] = {}
        self.gone: set[str] = set()  # graphs that were destroyed
        self.memories: dict[str, ir.Memory] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.alive: list[str] = []  # device memory to use
        self.filled: set[str] = set()  # memory that holds values
        for k in range(rng.choice((1, 2, 3, 4))):
            handed_in = self.chance(0.3)
            self.memory(f"m{k}", MAIN if handed_in or self.chance(0.7) else self.stream(), handed_in=handed_in)
            self.alive.append(f"m{k}")
        # Memory that is only read, and pinned memory.
        self.weights = ["w"] if self.chance(0.5) else []
        for name in self.weights:
            self.memory(name, MAIN, handed_in=True)
        self.pinned = "p" if self.chance(0.4) else ""
        if self.pinned:
            self.memory("p", None, place=ir.Place.PINNED)
        handed = self.handed_in()
        if handed:
            self.clocks.enqueue(MAIN, handed)

    def do(self, kind: type[ir.Action], *values: object, **more: object) -> None:
        self.actions.append(kind(SITE, *values, **more))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def slip(self, part: float = 1.0) -> bool:
        return self.chance(self.slips * part)

    def stream(self) -> str:
        return self.rng.choice(self.streams)

    def memory(self, name: str, stream: str | None, **more: object) -> None:
        shape = self.rng.choice(((8,), (8,), (12,), (4, 6)))
        extents = tuple(map(const, shape)) if self.chance(0.7) else None
        memory = ir.Memory(name, SITE, stream=stream, extents=extents, **more)
        self.memories[name], self.shapes[name] = memory, shape
        if memory.handed_in:
            self.filled.add(name)
        elif memory.place is ir.Place.DEVICE:
            self.do(ir.Allocate, name)

    def handed_in(self) -> list[Use]:
        return [Use(name, (), write=True) for name, memory in self.memories.items() if memory.handed_in]

    def use(self, memory: str, *, write: bool) -> Use:
        """All of the memory, half of it, or a box anywhere."""
        shape, way = self.shapes[memory], self.rng.randrange(4)
        if way == 0:
            return Use(memory, (), write)
        if way == 1:
            starts = [self.rng.randrange(n) for n in shape]
            stops = [self.rng.randrange(start, n) + 1 for start, n in zip(starts, shape, strict=True)]
            return Use(memory, tuple(zip(starts, stops, strict=True)), write)
        axis = self.rng.randrange(len(shape))
        half = shape[axis] // 2
        side = self.rng.choice(((0, half), (half, shape[axis])))
        return Use(memory, tuple(side if k == axis else (0, n) for k, n in enumerate(shape)), write)

    def uses(self, among: list[str]) -> list[Use]:
        """A write, a read of what holds values, or both."""
        read = [name for name in among if name in self.filled] + self.weights
        found = [self.use(self.rng.choice(among), write=True)] if among and self.chance(0.8) else []
        if read and (not found or self.chance(0.6)):
            found.append(self.use(self.rng.choice(read), write=False))
        return found

    def wait(self, stream: str, other: str, clocks: Clocks) -> None:
        event = f"e{len(self.actions)}"
        self.do(ir.Record, event, other)
        self.do(ir.Await, stream, event)
        clocks.wait(stream, other)

    def order(self, stream: str, uses: list[Use], clocks: Clocks) -> None:
        for other in clocks.unknown(stream, uses):
            if not self.slip():
                self.wait(stream, other, clocks)

    def work(self, stream: str, uses: list[Use], clocks: Clocks, **more: object) -> None:
        self.order(stream, uses, clocks)
        self.do(ir.Work, "k", stream, footprint(uses), **more)
        clocks.enqueue(stream, uses)
        self.filled.update(use.memory for use in uses if use.write)

    def join(self, stream: str) -> None:
        """The host waits for a stream, in one of the three ways."""
        way, event = self.rng.randrange(3), f"e{len(self.actions)}"
        if way == 0:
            self.do(ir.Record, event, stream)
        self.do(ir.Join, **({"event": event}, {"stream": stream}, {})[way])
        self.clocks.wait(HOST, stream)

    def lent(self) -> set[str]:
        """The memory that graphs use."""
        return {use.memory for uses in self.graphs.values() for use in uses}


def plain(d: Drawer) -> None:
    """Work or a copy on some stream."""
    if uses := d.uses(d.alive):
        d.work(d.stream(), uses, d.clocks, is_launch=d.chance(0.8))


def host(d: Drawer) -> None:
    """A copy from or to pinned memory, and then the host's touch, or the end, of it."""
    up = d.chance(0.6)
    others = [name for name in d.alive if up or name in d.filled]
    if not d.pinned or not others:
        return
    d.work(
        d.stream(), [d.use("p", write=not up), d.use(d.rng.choice(others), write=up)], d.clocks, is_launch=False
    )
    end = d.chance(0.1)
    touch = Use("p", (), write=True) if end else d.use("p", write=d.chance(0.5))
    for stream in d.clocks.unknown(HOST, [touch]):
        if not d.slip():
            d.join(stream)
    if end:
        d.pinned = ""
        d.do(ir.Free, "p")
    else:
        d.do(ir.Touch, "fill", footprint([touch]))


def free(d: Drawer) -> None:
    """The end of memory, after what other streams did to it."""
    own = [n for n in d.alive if not d.memories[n].handed_in and (n not in d.lent() or d.slip(0.5))]
    if not own:
        return
    name = d.rng.choice(own)
    stream = d.memories[name].stream or MAIN
    others = d.clocks.unknown(stream, [Use(name, (), write=True)])
    recorded = tuple(other for other in others if not d.slip()) if d.chance(0.5) else ()
    for other in others:
        if other not in recorded and not d.slip():
            d.wait(stream, other, d.clocks)
    d.do(ir.Free, name, recorded)
    d.alive.remove(name)
    if d.slip(0.5):
        d.do(ir.Work, "late", d.stream(), footprint([d.use(name, write=False)]))


def move(d: Drawer) -> None:
    """Memory that an operation owns for a while."""
    own = [name for name in d.alive if name not in d.lent()]
    if not own:
        return
    name, back = d.rng.choice(own), not d.slip()
    d.do(ir.Move, name, "op")
    if d.slip(0.5):
        d.do(ir.Move, name, "twin")
    if back:
        d.do(ir.Back, name)
    if d.chance(0.7):
        d.work(d.stream(), [d.use(name, write=True)], d.clocks)
    if not back:
        d.do(ir.Back, name)


def chain(d: Drawer) -> None:
    """Launches that start before the one before them has ended."""
    stream, uses = d.stream(), d.uses(d.alive)
    if not uses:
        return
    d.work(stream, uses, d.clocks)
    touched = [use.memory for use in uses]
    waits = True
    for _ in range(d.rng.choice((1, 1, 2, 3))):
        waits = not (d.slip(0.6) or d.chance(0.1))
        before = [d.use(name, write=False) for name in d.weights]
        after = d.uses(d.alive) if waits or d.slip() else []
        if d.slip(0.6):
            before.append(d.use(d.rng.choice(touched), write=d.chance(0.5)))
        # A wait for another stream would stand between the two launches.
        if d.clocks.unknown(stream, before + after):
            break
        d.do(ir.Work, "d", stream, footprint(after), footprint(before), dependent=True, waits=waits)
        d.clocks.enqueue(stream, before + after)
        d.filled.update(use.memory for use in before + after if use.write)
        touched += [use.memory for use in after]
        if not waits and not d.slip():
            break
    if not waits and not d.slip():
        d.do(ir.Join, stream)
        d.clocks.wait(HOST, stream)


def graph(d: Drawer) -> None:
    """A capture, with a fork and memory of its own at times, and a replay."""
    if len(d.graphs) == 2 or not d.alive:
        return
    name, origin, clocks = f"g{len(d.graphs)}", d.stream(), Clocks()
    filled = set(d.filled)
    among = sorted(d.lent() & set(d.alive)) if d.chance(0.5) else []
    among = among or list(d.alive)
    d.do(ir.Capture, name, origin)
    own = f"t{name}" if d.chance(0.4) else ""
    if own:
        d.memory(own, "pool", pool=name if "g0" in d.gone else "g0")
        among.append(own)
    others = [stream for stream in d.streams if stream != origin]
    side = d.rng.choice(others) if others and d.chance(0.5) else ""
    if side:
        d.wait(side, origin, clocks)
    uses, frozen = [], []
    for _ in range(d.rng.choice((1, 1, 2, 3))):
        new = d.uses(among)
        names = [f"n{d.rng.randrange(4)}"] if d.chance(0.3) else [d.rng.choice(among)] if d.chance(0.3) else []
        d.work(side if side and d.chance(0.5) else origin, new, clocks, frozen=tuple(names))
        uses += new
        frozen += names
        if d.slip(0.2):
            forbidden(d, origin)
    if side:
        d.wait(origin, side, clocks)
    if own:
        if d.chance(0.7):
            d.do(ir.Free, own)
        else:
            d.alive.append(own)
    d.do(ir.EndCapture, name)
    made = sorted(d.filled - filled - {own})
    d.filled = filled
    d.graphs[name], d.frozen[name] = uses, frozen
    if made and d.slip(0.5):
        d.do(ir.Work, "soon", origin, footprint([d.use(d.rng.choice(made), write=False)]))
    replay(d, name)


def forbidden(d: Drawer, stream: str) -> None:
    """What may not stand in a capture."""
    way = d.rng.randrange(3)
    if way == 0:
        d.do(ir.Join, stream)
    elif way == 1:
        d.do(ir.Forbidden, "item", "a read of the host")
    else:
        d.memory(f"i{len(d.memories)}", stream)


def replay(d: Drawer, name: str) -> None:
    """A replay on some stream, with values, memory and results that change around it."""
    stream, uses, names = d.stream(), d.graphs[name], d.frozen[name]
    if names and d.slip(0.6):
        d.do(ir.Rebind, d.rng.choice(names))
    d.order(stream, uses, d.clocks)
    if any(d.memories[use.memory].pool for use in uses):  # two graphs of one pool may be over one memory
        for other in d.streams:
            if other != stream and not d.slip():
                d.wait(stream, other, d.clocks)
    d.do(ir.Replay, name, stream)
    d.clocks.enqueue(stream, uses)
    written = sorted({use.memory for use in uses if use.write})
    d.filled.update(written)
    if written and d.chance(0.3):
        d.do(ir.Keep, d.rng.choice(written), "result")
        if d.slip():
            d.do(ir.Replay, name, stream)
        d.do(ir.UseKept, "result")
    shares_pool = name == "g0" and len(d.graphs) > 1
    if d.chance(0.15) and (not shares_pool or d.slip()):
        d.do(ir.Destroy, name)
        d.gone.add(name)
        if d.slip():
            d.do(ir.Replay, name, stream)


def again(d: Drawer) -> None:
    """A replay of each graph that is still there."""
    for name in d.graphs:
        if name not in d.gone:
            replay(d, name)


def rebind(d: Drawer) -> None:
    """Another value for a variable that no graph has got."""
    d.do(
        ir.Rebind, d.rng.choice([f"n{k}" for k in range(9) if all(f"n{k}" not in f for f in d.frozen.values())])
    )


def region(use: Use) -> ir.Region:
    return ir.Region(use.memory, tuple((const(start), const(stop)) for start, stop in use.box))


def footprint(uses: list[Use]) -> ir.Footprint:
    read, written = ([region(use) for use in uses if use.write is write] for write in (False, True))
    return ir.Footprint(tuple(read), tuple(written))


_SEGMENTS = {plain: 6, host: 2, free: 2, move: 1, chain: 4, graph: 4, again: 3, rebind: 1}


def random_program(rng: random.Random, careless: float = 0.7) -> ir.HostProgram:
    """A program with numbers for sizes; about half of them have no hazard, and all if none is careless."""
    d = Drawer(rng, careless)
    for segment in rng.choices(list(_SEGMENTS), list(_SEGMENTS.values()), k=rng.choice((1, 2, 3, 3, 4, 5))):
        segment(d)
    returned = [d.use(name, write=False) for name in d.alive if name in d.filled and d.chance(0.4)]
    d.order(MAIN, returned + [replace(use, write=False) for use in d.handed_in()], d.clocks)
    regions = tuple(map(region, returned))
    memories = tuple(d.memories.values())
    return ir.HostProgram("drawn", SITE, memories, tuple(d.actions), caller=MAIN, returned=regions)


def table(count: int, seed: int = 0) -> str:
    """How many of so many drawn programs have each code."""
    found: Counter[str] = Counter()
    actions, begin = 0, time.perf_counter()
    for k in range(count):
        program = random_program(random.Random(f"{seed} {k}"))
        found.update({hazard.code for hazard in hazards(program)} or {"none"})
        actions += len(program.actions)
    each = 1000 * (time.perf_counter() - begin) / count
    lines = [f"{code:8}{found[code]:6}{found[code] / count:8.1%}" for code in ("none", *CODES)]
    return "\n".join([f"{count} programs, {actions / count:.1f} actions, {each:.2f} ms each", *lines])


if __name__ == "__main__":
    sys.stdout.write(table(*map(int, sys.argv[1:])) + "\n")
