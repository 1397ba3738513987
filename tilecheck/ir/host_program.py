"""What a host function asks of the device, in order: work on streams, events, graphs, memory and its end.

A `HostProgram` is one path through a host function, with its loops unrolled: a list of actions of one host
thread. Three things read it: the host borrow graph (`analysis/host_graph.py`), the oracle that explores
interleavings (`proof/interleavings.py`), and the run-time library, which writes down what it submitted.

The machine that an action speaks to:

- Items of one stream run in the order in which they were enqueued. Two streams have no order but what
  events, joins of the host, and graphs give them. The host goes on without waiting unless an action says
  that it waits.
- `Record` marks the end of the item before it in its stream. `Await` is an item that ends when the event
  that was recorded last has ended (at once if none was). `Join` keeps the host from going on before all
  items of a stream, an event (as recorded last), or everything that was enqueued has ended.
- Work starts when the item before it in its stream has ended. Work that is `dependent` (PDL), with a launch
  right before it in its stream, starts when that launch has started. What such work does before its wait is
  ordered after nothing else. Its wait ends when the launch before it has ended. Its own end implies the end
  of what came before only if it waits on every path (`waits`). Work has ended when all that it does has
  ended.
- From `Capture` to `EndCapture` the work on the captured stream, and on streams that await an event that
  was recorded on a captured stream, is written into a graph and does not run. `Replay` enqueues the graph
  as one item, whose work keeps the order in which it was captured. Replays of one graph do not overlap,
  whatever their streams.
- `Allocate` gives memory to the program. `Free` gives it back: from then on anybody may write it, in the
  order of the stream that it was allocated on (an allocator that reuses memory in stream order), and after
  what the streams in `also_after` hold at that moment (`record_stream`). Freed host memory may be written
  at once.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Symbol, const, substitute, sym
from tilecheck.model import Site


class Place(enum.Enum):
    """Where memory lies, and so who may read it how."""

    DEVICE = "device"
    PINNED = "pinned"  # page-locked host memory: copies are asynchronous
    PAGEABLE = "pageable"  # ordinary host memory


@dataclass(frozen=True, slots=True)
class Memory:
    """One allocation.

    `stream` is the stream whose order its reuse follows (None for host memory), `pool` the graph in whose
    private pool it lies, and `extents` its shape, if known. `handed_in` says that the caller made it: the
    caller's stream wrote it, and the caller's stream reads it when the function has returned.
    """

    name: str
    site: Site
    place: Place = Place.DEVICE
    stream: str | None = None
    pool: str | None = None
    extents: tuple[Expr, ...] | None = None
    handed_in: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """A box of elements of one memory: `start <= coordinate < stop` along each axis.

    No box at all (`box` empty) is the whole memory. `exact` says that every element of the box is touched;
    otherwise some element may be, and nothing that rests on it is an error.
    """

    memory: str
    box: tuple[tuple[Expr, Expr], ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a piece of work reads and writes."""

    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()

    def regions(self) -> Iterator[tuple[Region, bool]]:
        """Each region, and whether it is written."""
        yield from ((region, False) for region in self.reads)
        yield from ((region, True) for region in self.writes)


@dataclass(frozen=True, slots=True)
class Action:
    """One step of the host. `site` is where the source says so."""

    site: Site


@dataclass(frozen=True, slots=True)
class Work(Action):
    """A launch, a copy or a fill that is enqueued on a stream.

    `before` is what it touches before it has waited for the launch before it, which matters if it is
    `dependent`; `after` is all else. `waits` says that every program of it waits. `is_launch` is false for
    copies and fills. `frozen` are names of host variables whose values it was given: a graph keeps what
    they were at capture.
    """

    name: str
    stream: str
    after: Footprint
    before: Footprint = Footprint()
    dependent: bool = False
    waits: bool = True
    is_launch: bool = True
    frozen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record(Action):
    """Mark the end of what a stream holds."""

    event: str
    stream: str


@dataclass(frozen=True, slots=True)
class Await(Action):
    """The stream waits for the event."""

    stream: str
    event: str


@dataclass(frozen=True, slots=True)
class Join(Action):
    """The host waits: for a stream, or for an event, or, with neither, for the device."""

    stream: str | None = None
    event: str | None = None


@dataclass(frozen=True, slots=True)
class Touch(Action):
    """The host itself reads or writes memory, at once."""

    name: str
    footprint: Footprint


@dataclass(frozen=True, slots=True)
class Allocate(Action):
    """The program owns the memory from here on."""

    memory: str


@dataclass(frozen=True, slots=True)
class Free(Action):
    """The program gives the memory back."""

    memory: str
    also_after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Move(Action):
    """The program gives memory away to what it built (`into`): it may not use it before it comes `Back`."""

    memory: str
    into: str


@dataclass(frozen=True, slots=True)
class Back(Action):
    """Memory that was given away is the program's own again."""

    memory: str


@dataclass(frozen=True, slots=True)
class Rebind(Action):
    """A host variable gets another value. Graphs that froze the former one keep it."""

    name: str


@dataclass(frozen=True, slots=True)
class Keep(Action):
    """The program keeps what memory holds now as a result, under a name, without copying it."""

    memory: str
    name: str


@dataclass(frozen=True, slots=True)
class UseKept(Action):
    """The program uses a result that it kept."""

    name: str


@dataclass(frozen=True, slots=True)
class Capture(Action):
    """Work on a stream goes into a graph from here on."""

    graph: str
    stream: str


@dataclass(frozen=True, slots=True)
class EndCapture(Action):
    """The graph is complete."""

    graph: str


@dataclass(frozen=True, slots=True)
class Replay(Action):
    """Enqueue what a graph holds."""

    graph: str
    stream: str


@dataclass(frozen=True, slots=True)
class Destroy(Action):
    """The graph is released, with its pool."""

    graph: str


@dataclass(frozen=True, slots=True)
class Forbidden(Action):
    """A step that may not be captured (`why`: a synchronisation, a read of the host, a pageable copy)."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class HostProgram:
    """One path through a host function.

    `caller` is the stream that is current when the function is entered and when it returns: what is handed in
    was written on it, and is read on it afterwards, as what is `returned` is. `unread` says why the path is not
    understood. Actions before `first` are those of functions that are called before this one: what is wrong
    among them is theirs.
    """

    function: str
    site: Site
    memories: tuple[Memory, ...]
    actions: tuple[Action, ...]
    caller: str = "current"
    returned: tuple[Region, ...] = ()
    unread: tuple[tuple[Site, str], ...] = ()
    facts: tuple[Expr, ...] = ()  # boolean: what holds of the sizes in the regions
    end: Site | None = None  # where the function returns
    first: int = 0
    by_name: dict[str, Memory] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {memory.name: memory for memory in self.memories})

    def at(self, values: Mapping[Symbol, int]) -> HostProgram:
        """The program with numbers for its sizes."""
        numbers = {sym(symbol): const(value) for symbol, value in values.items()}

        def region(of: Region) -> Region:
            box = tuple((substitute(a, numbers), substitute(b, numbers)) for a, b in of.box)
            return replace(of, box=box)

        def footprint(of: Footprint) -> Footprint:
            return Footprint(tuple(map(region, of.reads)), tuple(map(region, of.writes)))

        def action(of: Action) -> Action:
            if isinstance(of, Work):
                return replace(of, before=footprint(of.before), after=footprint(of.after))
            return replace(of, footprint=footprint(of.footprint)) if isinstance(of, Touch) else of

        return replace(
            self,
            actions=tuple(map(action, self.actions)),
            returned=tuple(map(region, self.returned)),
            facts=tuple(substitute(fact, numbers) for fact in self.facts),
        )
