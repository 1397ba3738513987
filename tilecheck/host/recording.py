"""Writes down what was submitted as a program of host actions, for whoever judges it by other means."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from tilecheck.host.defaults import default
from tilecheck.host.memory.regions import Region, count_runs, runs
from tilecheck.host.memory.storage import Storage
from tilecheck.host.places import Place, caller, line_of
from tilecheck.host.streams.clocks import Item, Mark, Queue
from tilecheck.ir import host_program as P
from tilecheck.ir.expr import const
from tilecheck.model import Site, Span

if TYPE_CHECKING:
    from tilecheck.host.memory.uses import Dependence, Use
    from tilecheck.host.runtime import Runtime

_MOST_BOXES = 256  # of one access with gaps; one with more is recorded as all that lies between

Touched: TypeAlias = tuple[Storage, Region, bool, bool]
"""A storage, the bytes, whether they are written, and whether all of them are touched."""


class Recorder:
    """Everything that was submitted since it began. Mutable: it grows."""

    def __init__(self, place: Place) -> None:
        self._place = place
        # Made into actions in the end: until then storages may be found to be parts of one.
        self._steps: list[Callable[[], P.Action]] = []
        self._refused: list[tuple[int, Callable[[], P.Action]]] = []
        self._memories: dict[Storage, tuple[Place, str | None]] = {}
        self._names: dict[Storage, str] = {}
        self._kept = 0

    # ---- what the ledger says --------------------------------------------------------------------------------

    def work(
        self,
        item: Item,
        uses: Sequence[Use],
        *,
        is_launch: bool,
        dependence: Dependence | None = None,
        refused: bool = False,
    ) -> None:
        """A piece of work was enqueued, or was refused."""
        early = _touched(dependence.early if dependence is not None else ())
        all_of_it = _touched(uses)
        waits = dependence is None or dependence.waits
        name, stream, place = item.name, stream_name(item.queue), item.place
        for storage, *_ in all_of_it:
            self._know(storage, place, item.queue)
        # A kernel that may not wait makes all accesses before its wait.
        late = all_of_it if dependence is None or waits else []

        def step() -> P.Action:
            return P.Work(
                site_of(place),
                name,
                stream,
                self._footprint(late),
                self._footprint(early),
                dependent=dependence is not None,
                waits=waits,
                is_launch=is_launch,
            )

        self._add(step, refused=refused)

    def assumed(self, item: Item, storage: Storage, region: Region, *, write: bool, dependent: bool) -> None:
        """The user's own code has used memory on a stream; if `dependent`, maybe before the launch before."""
        self._know(storage, item.place, item.queue)
        name, stream, site, touched = (
            item.name,
            stream_name(item.queue),
            site_of(item.place),
            [(storage, region, write, True)],
        )
        self._add(lambda: P.Work(site, name, stream, self._footprint(touched), dependent=dependent))

    def record(self, mark: Mark) -> None:
        self._plain(P.Record(self._here(), mark.name, stream_name(mark.queue)))

    def wait(self, queue: Queue, mark: Mark) -> None:
        self._plain(P.Await(self._here(), stream_name(queue), mark.name))

    def join(self, queue: Queue) -> None:
        self._plain(P.Join(self._here(), stream=stream_name(queue)))

    def join_mark(self, mark: Mark) -> None:
        self._plain(P.Join(self._here(), event=mark.name))

    def join_all(self) -> None:
        self._plain(P.Join(self._here()))

    def touch(
        self, storage: Storage, region: Region, place: Place, what: str, *, write: bool, refused: bool = False
    ) -> None:
        """The host itself reads or writes, or was refused to."""
        self._know(storage, place, None)
        touched = [(storage, region, write, True)]
        self._add(lambda: P.Touch(site_of(place), what, self._footprint(touched)), refused=refused)

    def allocate(self, storage: Storage, queue: Queue | None, place: Place) -> None:
        self._know(storage, place, queue)
        self._add(lambda: P.Allocate(site_of(place), self._name(storage)))

    def free(self, storage: Storage) -> None:
        if storage in self._memories:
            site = self._here()
            self._add(lambda: P.Free(site, self._name(storage)))

    def capture(self, graph: str, queue: Queue, place: Place) -> None:
        self._plain(P.Capture(site_of(place), graph, stream_name(queue)))

    def end_capture(self, graph: str, place: Place) -> None:
        self._plain(P.EndCapture(site_of(place), graph))

    def replay(self, graph: str, item: Item, *, refused: bool = False) -> None:
        action = P.Replay(site_of(item.place), graph, stream_name(item.queue))
        self._add(lambda: action, refused=refused)

    def destroy(self, graph: str) -> None:
        self._plain(P.Destroy(self._here(), graph))

    def forbidden(self, what: str, place: Place) -> None:
        action = P.Forbidden(site_of(place), what, "cannot be captured")
        self._add(lambda: action, refused=True)

    def keep(self, storage: Storage, place: Place) -> str:
        """The name of a result that is kept."""
        self._kept += 1
        name = f"result {self._kept}"
        self._add(lambda: P.Keep(site_of(place), self._name(storage), name))
        return name

    def use_kept(self, name: str, place: Place) -> None:
        self._plain(P.UseKept(site_of(place), name))

    # ---- as a program ----------------------------------------------------------------------------------------

    @property
    def refusals(self) -> int:
        """How many actions were refused."""
        return len(self._refused)

    def program(self) -> P.HostProgram:
        """Everything that was submitted."""
        return self._program(self._steps)

    def refused_program(self, number: int = -1) -> P.HostProgram:
        """What had been submitted when an action was refused, with that action behind it."""
        at, step = self._refused[number]
        return self._program([*self._steps[:at], step])

    def _program(self, steps: Sequence[Callable[[], P.Action]]) -> P.HostProgram:
        actions = tuple(step() for step in steps)
        memories = {}
        for storage, (place, stream) in self._memories.items():
            root = storage.root()
            size = (const(root.end - root.start),)
            name = self._name(storage)
            memories[name] = P.Memory(name, site_of(place), root.kind, stream=stream, extents=size)
        site = site_of(self._place)
        return P.HostProgram(self._place[0].co_name, site, tuple(memories.values()), actions)

    def _add(self, step: Callable[[], P.Action], *, refused: bool = False) -> None:
        if refused:
            self._refused.append((len(self._steps), step))
        else:
            self._steps.append(step)

    def _plain(self, action: P.Action) -> None:
        self._steps.append(lambda: action)

    def _here(self) -> Site:
        return site_of(caller())

    def _know(self, storage: Storage, place: Place, queue: Queue | None) -> None:
        device = storage.kind is P.Place.DEVICE and queue is not None
        self._memories.setdefault(
            storage, (place, stream_name(queue) if device and queue is not None else None)
        )

    def _name(self, storage: Storage) -> str:
        root = storage.root()
        return self._names.setdefault(root, f"memory {len(self._names) + 1}")

    def _footprint(self, touched: Sequence[Touched]) -> P.Footprint:
        reads = [region for use in touched if not use[2] for region in self._regions(use)]
        writes = [region for use in touched if use[2] for region in self._regions(use)]
        return P.Footprint(tuple(reads), tuple(writes))

    def _regions(self, touched: Touched) -> Iterator[P.Region]:
        storage, region, _, exact = touched
        name, base = self._name(storage), storage.root().start
        if region.start == region.end:
            return
        few = count_runs(region) <= _MOST_BOXES
        for first, last in runs(region) if few else ((region.start, region.end),):
            yield P.Region(name, ((const(first - base), const(last - base)),), exact and few)


def _touched(uses: Sequence[Use]) -> list[Touched]:
    return [(use.view.home(), use.region, use.write, use.region is use.view.region) for use in uses]


def stream_name(queue: Queue) -> str:
    return f"stream {queue.handle:#x}"


def site_of(place: Place) -> Site:
    """The line of a place."""
    file, line = place[0].co_filename, line_of(place)
    lines = linecache.getlines(file)[:line]
    end = sum(len(text.encode()) for text in lines)
    start = end - len(lines[-1].encode()) if lines else end
    return Site(file, Span(start, end))


@contextmanager
def recording(runtime: Runtime | None = None) -> Iterator[Recorder]:
    """Write down what is submitted inside the `with` block."""
    ledger = (runtime or default()).ledger
    before, ledger.recorder = ledger.recorder, Recorder(caller())
    try:
        yield ledger.recorder
    finally:
        ledger.recorder = before
