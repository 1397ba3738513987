"""The rules that a plan of a host function breaks, by the clocks of its streams.

`broken` says which codes a plan deserves. It follows the steps once with one set for each stream, event and for
the host: the items that have certainly ended. The rules that it rests on:

- An item starts when what its stream knows has ended; from then on its stream knows it. `wait_stream` and
  events hand knowledge from one stream to another; a wait of the host hands it to all that is enqueued later.
- A dependent launch right behind a launch starts with what that one started with. Its wait knows what the
  stream knows. Its end hands on what its wait knew, or, if it never waits, what it started with.
- A replay is one item that does what was captured. Replays of one graph follow one another.
- Two items race if the later one does not know the earlier one, and they touch one part of a buffer, one of
  them writing.
- The caller's work on the handed-in buffers is known to the caller's stream at first. At last the caller reads
  what is returned and what it handed in, knowing what its own stream knows.
- A buffer that is let go belongs to the next owner, who knows what the buffer's stream and the recorded ones
  know then. Buffers of a graph's pool stay with the graph. All local buffers are let go at the end.

Rounds of a loop: none to three, so that a ring of two buffers comes round.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from soundness_host_kernels import Wait
from soundness_host_plans import (
    MAIN,
    Allocate,
    Capture,
    Delete,
    HostTouch,
    HostWait,
    Keep,
    Launch,
    Loop,
    Plan,
    Rebind,
    Record,
    RecordStream,
    Replay,
    SetNumber,
    Step,
    Update,
    Use,
    WaitEvent,
    WaitStream,
    in_round,
    uses_of,
)

ROUNDS = range(4)


@dataclass(frozen=True)
class Item:
    """Something on a stream. `knows` is what has ended when it has."""

    number: int
    uses: tuple[Use, ...]
    knows: frozenset[int]
    stream: str = MAIN
    graph: str = ""


@dataclass
class _Stream:
    knows: frozenset[int] = frozenset()
    items: frozenset[int] = frozenset()
    started: frozenset[int] | None = None  # what the last item started with, if it is a launch


@dataclass
class _Graph:
    uses: tuple[Use, ...]
    numbers: dict[str, int]
    replays: frozenset[int] = frozenset()


@dataclass
class Walk:
    """The state of the walk over a plan."""

    plan: Plan
    rounds: int
    joins: bool = True
    codes: set[str] = field(default_factory=set)
    items: list[Item] = field(default_factory=list)
    streams: dict[str, _Stream] = field(default_factory=dict)
    events: dict[str, frozenset[int]] = field(default_factory=dict)
    host: frozenset[int] = frozenset()
    home: dict[str, str] = field(default_factory=dict)  # by local buffer: its stream, or its graph's pool
    pinned: set[str] = field(default_factory=set)
    recorded: dict[str, set[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    graphs: dict[str, _Graph] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)
    overwritten: set[str] = field(default_factory=set)  # lists of results with a buffer that was written again
    apart: frozenset[tuple[int, int]] = frozenset()  # what races even if no launch is dependent
    races: set[tuple[int, int]] = field(default_factory=set)
    round: int = 0

    def stream(self, name: str) -> _Stream:
        return self.streams.setdefault(name, _Stream())

    def closure(self, items: frozenset[int]) -> frozenset[int]:
        return items.union(*(self.items[number].knows for number in items))

    def enqueue(
        self, stream: str, uses: tuple[Use, ...], *, launch: Launch | None = None, graph: str = ""
    ) -> None:
        """Add an item to a stream, and find what it races with."""
        queue = self.stream(stream)
        late = queue.knows | self.host
        early, overlaps = late, False
        if launch is not None and launch.dependent and queue.started is not None:
            early, overlaps = queue.started | self.host, True
        if graph:
            late = early = late | self.closure(self.graphs[graph].replays)
        waits = launch is None or not overlaps or launch.kernel.wait is not Wait.NEVER
        for item in self.items:
            for mine in uses:
                is_early = overlaps and (mine.early or not waits)
                known = early if is_early else late
                if item.number not in known and any(mine.meets(theirs) for theirs in item.uses):
                    self.race(
                        item, graph, "" if not overlaps else "wait" if not is_early else "early", waits=waits
                    )
        self.note(Item(len(self.items), uses, late if waits else early, stream, graph))
        number = self.items[-1].number
        queue.knows = self.items[-1].knows | {number}
        queue.items |= {number}
        queue.started = None if launch is None else early

    def race(self, item: Item, graph: str, part: str, *, waits: bool) -> None:
        """The rule that an item breaks together with the one that is enqueued now."""
        pair = (item.number, len(self.items))
        self.races.add(pair)
        if item.graph and graph:
            self.codes.add("TC425")
        elif pair in self.apart:
            self.codes.add("TC411")
        elif part == "early":
            self.codes.add("TC431" if waits else "TC432")
        else:
            self.codes.add("TC433")

    def note(self, item: Item) -> None:
        self.items.append(item)
        written = {use.buffer for use in item.uses if use.write}
        for results, buffers in self.kept.items():
            if item.graph and written.intersection(buffers):
                self.overwritten.add(results)

    def let_go(self, buffer: str) -> None:
        """The next owner of a local buffer."""
        if buffer in self.gone or buffer in self.pinned or self.home[buffer] in self.graphs:
            return  # torch hands pinned memory on when its copies have ended
        self.gone.add(buffer)
        streams = [self.home[buffer], *self.recorded.get(buffer, ())]
        known = self.host.union(*(self.stream(stream).knows for stream in streams))
        for item in self.items:
            if item.number not in known and any(use.buffer == buffer for use in item.uses):
                self.codes.add("TC421" if item.graph else "TC413")

    # ---- one step --------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        match step:
            case Allocate(stream=stream):
                self.home |= dict.fromkeys(step.buffers, stream)
                if step.pinned:
                    self.pinned.update(step.buffers)
                elif step.filled:
                    self.enqueue(stream, tuple(Use(buffer, write=True) for buffer in step.buffers))
            case Launch() | Update():
                self.work(step)
            case WaitStream(waiter=waiter, waited=waited):
                self.know(waiter, self.stream(waited).knows)
            case Record(event=event, stream=stream):
                self.events[in_round(event, self.round)] = self.stream(stream).knows
            case WaitEvent(event=event, stream=stream):
                self.know(stream, self.events.get(in_round(event, self.round), frozenset()))
            case HostWait(stream=stream, event=event):
                self.host |= self.waited_for(stream, in_round(event, self.round))
            case HostTouch(buffer=buffer, write=write):
                mine = Use(buffer, write)
                for item in self.items:
                    if item.number not in self.host and any(mine.meets(use) for use in item.uses):
                        self.codes.add("TC415")
            case RecordStream(buffer=buffer, stream=stream):
                self.recorded.setdefault(buffer, set()).add(stream)
            case Delete(buffer=buffer):
                self.let_go(buffer)
            case Capture():
                self.capture(step)
            case Replay(graph=graph, stream=stream):
                self.replay(graph, stream)
            case SetNumber(name=name) | Rebind(buffer=name):
                self.versions[name] = self.versions.get(name, 0) + 1
            case Keep(results=results, buffer=buffer, copied=copied):
                if copied:
                    self.enqueue(MAIN, (Use(buffer, write=False),))
                self.kept.setdefault(results, []).extend([] if copied else [buffer])
            case Loop(steps=steps):
                for number in range(self.rounds):
                    self.round = number
                    for inner in steps:
                        self.step(inner)

    def work(self, step: Launch | Update) -> None:
        uses = tuple(uses_of(step, self.round))
        fresh = {u.buffer for u in uses if not u.write} - {
            u.buffer for i in self.items for u in i.uses if u.write
        }
        if any(use.write and use.buffer in fresh for g in self.graphs.values() for use in g.uses):
            self.codes.add("TC426")  # only work that is captured and has not run would write it
        self.enqueue(step.stream, uses, launch=step if isinstance(step, Launch) else None)

    def know(self, stream: str, known: frozenset[int]) -> None:
        self.stream(stream).knows |= known
        self.stream(stream).started = None  # a wait is an item

    def waited_for(self, stream: str, event: str) -> frozenset[int]:
        if event:
            return self.events.get(event, frozenset())
        queues = [self.stream(stream)] if stream else list(self.streams.values())
        return frozenset().union(*(self.closure(queue.items) for queue in queues))

    def capture(self, step: Capture) -> None:
        """What the graph does, and the numbers and names that it keeps."""
        uses: list[Use] = []
        names: set[str] = set()
        if self.joins:
            self.host |= self.waited_for("", "")
        self.graphs[step.graph] = _Graph((), {})
        for inner in step.steps:
            if isinstance(inner, Allocate):
                self.home[inner.buffer] = step.graph
            elif isinstance(inner, Launch):
                uses += uses_of(inner, self.round)
                names |= {inner.number, *(a.buffer for a in inner.arguments)}
            elif isinstance(inner, Update):
                uses += uses_of(inner, self.round)
            elif isinstance(inner, HostWait):
                self.codes.add("TC422")
        self.graphs[step.graph] = _Graph(tuple(uses), {name: self.versions.get(name, 0) for name in names})

    def replay(self, graph: str, stream: str) -> None:
        captured = self.graphs[graph]
        if any(use.buffer in self.gone for use in captured.uses):
            self.codes.add("TC421")
        for name, version in captured.numbers.items():
            if self.versions.get(name, 0) != version:
                self.codes.add("TC423" if name in self.plan.handed else "TC424")
        self.enqueue(stream, captured.uses, graph=graph)
        captured.replays |= {len(self.items) - 1}

    def leave(self) -> None:
        """What the caller does next, and the end of all local buffers that it does not get."""
        known = self.stream(MAIN).knows | self.host
        caller = [Use(name, write=False) for name in self.plan.returned if name not in self.kept]
        caller += [Use(name, write=False) for name in self.plan.handed]
        for item in self.items:
            if item.number not in known and any(m.meets(use) for m in caller for use in item.uses):
                self.codes.add("TC414")
        if self.overwritten.intersection(self.plan.returned):
            self.codes.add("TC426")
        for buffer in self.home:
            if buffer not in self.plan.returned:
                self.let_go(buffer)


def broken(plan: Plan, *, joins: bool = True) -> frozenset[str]:
    """The codes of the rules that a plan breaks, with some number of rounds of its loops.

    Args:
        plan: the host function.
        joins: whether `torch.cuda.graph` lets the host wait for the device, as its code does and no page says.
    """
    found: set[str] = set()
    for count in ROUNDS:
        plain = walked(_independent(plan), count, joins=joins)
        found |= walked(plan, count, frozenset(plain.races), joins=joins).codes
    return frozenset(found)


def walked(
    plan: Plan, rounds: int, apart: frozenset[tuple[int, int]] = frozenset(), *, joins: bool = True
) -> Walk:
    """Walk over a plan. `apart` are the races that it has even if no launch is dependent."""
    walk = Walk(plan, rounds, joins, apart=apart)
    walk.items.append(Item(0, tuple(Use(name, write=True) for name in plan.handed), frozenset()))
    walk.streams[MAIN] = _Stream(frozenset({0}), frozenset({0}))
    for step in plan.steps:
        walk.step(step)
    walk.leave()
    return walk


def _independent(plan: Plan) -> Plan:
    """The plan with no launch dependent."""

    def plain(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(
            replace(step, dependent=False)
            if isinstance(step, Launch)
            else replace(step, steps=plain(step.steps))
            if isinstance(step, Loop | Capture)
            else step
            for step in steps
        )

    return replace(plan, steps=plain(plan.steps))
