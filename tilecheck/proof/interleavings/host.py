"""The host thread: it does one action after the other, which puts items into queues and may make it wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tilecheck.dataclass import dataclass
from tilecheck.ir.host_program import (
    Action,
    Allocate,
    Await,
    Capture,
    Destroy,
    EndCapture,
    Free,
    HostProgram,
    Join,
    Memory,
    Place,
    Rebind,
    Record,
    Region,
    Replay,
    Touch,
    Work,
)
from tilecheck.proof.interleavings.boxes import Access, Instance, access, shape
from tilecheck.proof.interleavings.hazard import BEFORE
from tilecheck.proof.interleavings.recording import Item, Kind, Recording


@dataclass(frozen=True, slots=True)
class Pooled:
    """Memory that was given back to the pool of a graph: an allocation of a later capture may take it."""

    instance: Instance
    memory: Memory
    graph: str | None  # the capture during which it was freed
    shared: bool  # other streams had used it


class Host:
    """The host, and what it has enqueued so far.

    The host is one thread, so that the items of a program, and what each of them waits for, are the same in
    all interleavings; `waits[k]` are the items that must have ended before the host goes on after action k.
    """

    def __init__(self, program: HostProgram) -> None:
        self.program = program
        self.device = Recording()
        self.captures: dict[str, Recording] = {}  # those that go on
        self.captured: dict[str, str] = {}  # stream: the graph that its work goes into
        self.graphs: dict[str, Recording] = {}
        self.destroyed: dict[str, int] = {}
        self.bound: dict[str, int] = {}  # host variable: the action that bound it last
        self.taken: dict[Instance, frozenset[Instance]] = {}  # what memory of a pool may have been before
        self.waits: list[tuple[int, ...]] = []
        self._events: dict[str, tuple[Recording, int | None]] = {}
        self._generations: Counter[str] = Counter()
        self._pooled: list[Pooled] = []
        self._replayed: dict[str, int] = {}
        written = tuple(
            self._whole(memory)
            for memory in program.memories
            if memory.handed_in and memory.place is Place.DEVICE
        )
        if written:
            self.device.enqueue(program.caller, Item((BEFORE,), Kind.CALLER_BEFORE, late=written))

    def leave(self) -> None:
        """Return to the caller, who reads what is returned and all that was handed in."""
        index = len(self.waits)
        own = (Region(memory.name) for memory in self.program.memories if memory.handed_in)
        read = self.accesses((region, False) for region in (*self.program.returned, *own))
        self.device.enqueue(self.program.caller, Item((index,), Kind.CALLER_AFTER, late=tuple(read)))

    def step(self, action: Action) -> None:
        """Do the next action."""
        index = len(self.waits)
        waits: tuple[int, ...] = ()
        match action:
            case Work():
                waits = self._work(index, action)
            case Touch(footprint=footprint):
                item = Item((index,), Kind.TOUCH, late=self.accesses(footprint.regions()))
                waits = (self.device.put(item),)
            case Record(event=event, stream=stream):
                into = self.recording(stream)
                self._events[event] = into, into.tail(stream)
            case Await():
                self._await(index, action)
            case Join():
                waits = self._join(action)
            case Allocate(memory=name):
                self._allocate(self.memory(name))
            case Free():
                self._free(index, action)
            case Rebind(name=name):
                self.bound[name] = index
            case Capture(graph=graph, stream=stream):
                self.captures[graph] = Recording()
                self.destroyed.pop(graph, None)
                self.captured[stream] = graph
            case EndCapture(graph=graph):
                self.graphs[graph] = self.captures.pop(graph)
                self.captured = {s: into for s, into in self.captured.items() if into != graph}
            case Replay(graph=graph, stream=stream):
                self._replay(index, graph, stream)
            case Destroy(graph=graph):
                self._destroy(index, graph)
            case _:  # the others change nothing that runs
                pass
        self.waits.append(waits)

    def memory(self, name: str) -> Memory:
        """The memory of that name.

        Raises:
            ValueError: there is none.
        """
        if name not in self.program.by_name:
            raise ValueError(f"no memory is named {name}")
        return self.program.by_name[name]

    def recording(self, stream: str) -> Recording:
        """Where work on the stream goes now: a graph, or the device."""
        graph = self.captured.get(stream)
        return self.device if graph is None else self.captures[graph]

    def instance(self, name: str) -> Instance:
        """The memory that the name means now."""
        return name, self._generations[name]

    def accesses(self, regions: Iterable[tuple[Region, bool]]) -> tuple[Access, ...]:
        """The regions that hold elements, with numbers for bounds, and whether each is written."""
        return tuple(self._accesses(regions))

    def _accesses(self, regions: Iterable[tuple[Region, bool]]) -> Iterator[Access]:
        for region, write in regions:
            memory = self.memory(region.memory)
            found = access(region, memory, self._generations[memory.name], write=write)
            if found is not None:
                yield found

    def _whole(self, memory: Memory) -> Access:
        return Access(self.instance(memory.name), shape(memory), write=True)

    def _work(self, index: int, work: Work) -> tuple[int, ...]:
        """Enqueue work. The host stays in a copy until it has read, or has got, what is in pageable memory."""
        into = self.recording(work.stream)
        early, late = self.accesses(work.before.regions()), self.accesses(work.after.regions())
        blocks = into is self.device and not work.is_launch
        pageable = [a for a in early + late if blocks and self.memory(a.memory).place is Place.PAGEABLE]
        read = tuple(a for a in pageable if not a.write)
        waits = (into.put(Item((index,), Kind.TOUCH, late=read)),) if read else ()
        item = Item(
            (index,),
            Kind.WORK,
            tuple(a for a in early if a not in read),
            tuple(a for a in late if a not in read),
            waits=work.waits,
            is_launch=work.is_launch,
            frozen=tuple((name, self.bound.get(name, BEFORE)) for name in work.frozen),
        )
        number = into.enqueue(work.stream, item, dependent=work.dependent)
        return (*waits, number) if any(a.write for a in pageable) else waits

    def _await(self, index: int, action: Await) -> None:
        of, number = self._events.get(action.event, (self.device, None))
        if self.recording(action.stream) is self.device:
            # The stream joins the capture that the event was recorded in.
            for graph, recording in self.captures.items():
                if recording is of:
                    self.captured[action.stream] = graph
        into = self.recording(action.stream)
        # An event of another recording orders nothing: work in a graph does not run when it is captured.
        after = (number,) if of is into and number is not None else ()
        into.enqueue(action.stream, Item((index,), Kind.ORDER, after=after))

    def _join(self, action: Join) -> tuple[int, ...]:
        if action.event is not None:
            of, number = self._events.get(action.event, (self.device, None))
            return () if number is None or of is not self.device else (number,)
        if action.stream is not None:
            return tuple(self.device.streams.get(action.stream, ()))
        return tuple(number for numbers in self.device.streams.values() for number in numbers)

    def _allocate(self, memory: Memory) -> None:
        self._generations[memory.name] += 1
        if memory.pool is None or not self.captures:
            return
        self.taken[self.instance(memory.name)] = frozenset(
            old.instance
            for old in self._pooled
            if (old.memory.pool, old.memory.stream) == (memory.pool, memory.stream)
            # What other streams used is not handed out again in the same capture, where no event ends.
            and not (old.shared and old.graph in self.captures)
        )

    def _free(self, index: int, action: Free) -> None:
        memory = self.memory(action.memory)
        if memory.pool is not None and memory.pool not in self.destroyed:
            graph = next(iter(self.captures), None)
            others = set(action.also_after) - {memory.stream}
            self._pooled.append(Pooled(self.instance(memory.name), memory, graph, bool(others)))
            return
        streams = [stream for stream in (memory.stream, *action.also_after) if stream is not None]
        tails = tuple(tail for tail in map(self.device.tail, streams) if tail is not None)
        item = Item((index,), Kind.NEXT_OWNER, late=(self._whole(memory),), after=tails)
        self.device.put(item)

    def _replay(self, index: int, graph: str, stream: str) -> None:
        if graph not in self.graphs:
            if graph in self.destroyed:
                return  # reported elsewhere; nothing runs
            raise ValueError(f"the graph {graph} is replayed before it is complete")
        into = self.recording(stream)
        before = self._replayed.get(graph)
        after = (before,) if into is self.device and before is not None else ()
        end = into.replay(stream, self.graphs[graph], index, after)
        if into is self.device:
            self._replayed[graph] = end

    def _destroy(self, index: int, graph: str) -> None:
        self.graphs.pop(graph, None)
        self.destroyed[graph] = index
        everything = tuple(number for numbers in self.device.streams.values() for number in numbers)
        kept = []
        for old in self._pooled:
            if old.memory.pool != graph:
                kept.append(old)
                continue
            whole = Access(old.instance, shape(old.memory), write=True)
            self.device.put(Item((index,), Kind.NEXT_OWNER, late=(whole,), after=everything))
        self._pooled = kept
