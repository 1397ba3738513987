"""Memory that is in play, and the work in flight on it.

A storage is a range of addresses that no other storage shares, so two accesses can meet only if they are of
one storage. Ranges that turn out to overlap (two views through DLPack over one allocation) become one storage.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from tilecheck.host.memory.regions import Region, overlap
from tilecheck.host.memory.written_bytes import Written
from tilecheck.host.places import Place
from tilecheck.host.streams.clocks import Clock, Item, Queue, has_ended
from tilecheck.ir.host_program import Place as Kind
from tilecheck.jit.layouts import Layout

if TYPE_CHECKING:
    from tilecheck.host.graphs.owners import Owner

Found: TypeAlias = tuple[Item, Region, bool]
"""An access that conflicts: its item, its region, and whether it writes."""

SEVERAL = -1  # instead of the number of a lane: accesses in several lanes, or none
_MOST = 64  # regions of one lane; from there on those that another covers are looked for


class Track:
    """The latest access of one lane to each region. Earlier ones of the lane have ended when these have."""

    __slots__ = ("queue", "reads", "seq", "writes", "written")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.seq = 0  # of the latest access
        self.written = 0  # of the latest write
        self.reads: dict[Region, Item] = {}
        self.writes: dict[Region, Item] = {}


class Tracks:
    """The accesses to one storage that may be in flight, by lane. Replays of graphs are kept by the graphs.

    `lane` and `only` are the one lane that has any, if there is one: its next access needs no look at regions.
    """

    __slots__ = ("added", "by_lane", "lane", "limit", "only", "pinned")

    def __init__(self) -> None:
        self.by_lane: dict[int, Track] = {}
        self.lane = SEVERAL
        self.only: Track | None = None
        self.pinned = False  # accesses are always looked at, whatever is in flight
        self.added = 0  # since `prune` looked at all regions
        self.limit = _MOST

    def conflict(
        self, region: Region, lane: int, seq: int, before: Clock, done: Clock, *, write: bool
    ) -> Found | None:
        """An access that meets `region`, one of the two a write, and may not have ended.

        What has ended are `seq` items of `lane` and those that `before` and `done` count.
        """
        for other, track in self.by_lane.items():
            latest = track.seq
            if (
                (other == lane and latest <= seq)
                or before.get(other, 0) >= latest
                or done.get(other, 0) >= latest
            ):
                continue
            known = max(before.get(other, 0), done.get(other, 0), seq if other == lane else 0)
            for theirs, item in track.writes.items():
                if item.seq > known and overlap(region, theirs):
                    return item, theirs, True
            for theirs, item in track.reads.items() if write else ():
                if item.seq > known and overlap(region, theirs):
                    return item, theirs, False
        return None

    def add(self, region: Region, item: Item, *, write: bool, is_checked: bool = True) -> None:
        """Note an access. If `is_checked`, it is ordered after all that `conflict` finds for it; else it may
        be older than what is known here: it replaces nothing that comes after it.
        """
        track = self.by_lane.get(item.lane)
        if track is None:
            track = self.by_lane[item.lane] = Track(item.queue)
            self._settle()
        kept = track.writes if write else track.reads
        if is_checked or region not in kept or kept[region].seq < item.seq:
            kept[region] = item
        track.seq = max(track.seq, item.seq)
        if write:
            track.written = max(track.written, item.seq)
        self.added += 1
        if write and is_checked and len(self.by_lane) > 1:
            self._forget_covered(region, item)

    def _forget_covered(self, region: Region, item: Item) -> None:
        """Forget what a write is ordered after and covers: what is ordered after the write is after it too."""
        for lane, track in tuple(self.by_lane.items()):
            for kept in (track.writes, track.reads):
                for theirs in [r for r, other in kept.items() if other is not item and region.covers(r)]:
                    del kept[theirs]
            if not track.writes and not track.reads:
                del self.by_lane[lane]
        self._settle()

    def prune(self, done: Clock) -> None:
        """Forget what has ended, looking at every region if many were added since it last did.

        As many as are left may be added before it looks again, so the cost of looking is spread.
        """
        by_lane = self.by_lane
        if len(by_lane) > 1:
            ended = [lane for lane, track in by_lane.items() if track.seq <= done.get(lane, 0)]
            for lane in ended:
                del by_lane[lane]
            if ended:
                self._settle()
        if self.is_full():
            self._prune_regions(done)
            self.added = 0
            self.limit = max(_MOST, sum(len(t.reads) + len(t.writes) for t in by_lane.values()))
        if self.lane == SEVERAL:
            self._settle()

    def _prune_regions(self, done: Clock) -> None:
        for lane, track in tuple(self.by_lane.items()):
            count = done.get(lane, 0)
            if track.seq <= count:
                del self.by_lane[lane]
            elif count:
                for kept in (track.writes, track.reads):
                    for region in [r for r, item in kept.items() if item.seq <= count]:
                        del kept[region]
        self._settle()

    def is_full(self) -> bool:
        """Whether `prune` will look at all regions."""
        return self.added > self.limit

    def look_again(self) -> None:
        """Have the next access looked at: a loop over new regions must not take the short way for ever."""
        self.lane, self.only = SEVERAL, None

    def regions(self) -> Iterator[Region]:
        for track in self.by_lane.values():
            yield from track.writes
            yield from track.reads

    def items(self) -> Iterator[Item]:
        for track in self.by_lane.values():
            yield from track.writes.values()
            yield from track.reads.values()

    def pin(self, *, pinned: bool) -> None:
        self.pinned = pinned
        self._settle()

    def _settle(self) -> None:
        self.lane, self.only = SEVERAL, None
        if len(self.by_lane) == 1 and not self.pinned:
            ((self.lane, self.only),) = self.by_lane.items()


class Storage:
    """One range of memory. Mutable: it grows where ranges are found to overlap."""

    __slots__ = (
        "end", "graphs", "held", "into", "keep", "kind", "most_regions", "name", "outside", "overwritten",
        "promised", "regions", "start", "tracks", "written",
    )  # fmt: skip

    def __init__(self, start: int, end: int, kind: Kind, name: str) -> None:
        self.start = start
        self.end = end
        self.kind = kind
        self.name = name
        self.keep: list[Any] = []  # the objects that own the memory
        self.held: dict[Region, int] = {}  # how many handles there are of each region
        # What the user's own code has got, on which stream, and whether it may write it.
        self.outside: list[tuple[Queue, Region, bool]] = []
        self.written: Written | None = None  # what was written of new memory; None if that is all
        # What graphs will write of it when they are launched, while not all was written.
        self.promised: list[tuple[Region, Owner]] = []
        self.graphs: list[Owner] = []  # those that have captured it
        # Which launch of a graph that was closed since wrote a region last, and where it was.
        self.overwritten: dict[Region, tuple[int, Place]] = {}
        self.into: Storage | None = None  # what it has become part of
        self.tracks = Tracks()
        self.regions: dict[tuple[int, Layout], Region] = {}
        self.most_regions = _MOST

    def region(self, start: int, layout: Layout) -> Region:
        """The one object that stands for these bytes: accesses are kept by region."""
        key = (start, layout)
        found = self.regions.get(key)
        if found is None:
            found = self.regions[key] = Region(start, layout)
            self.tracks.look_again()
        return found

    def prune(self, done: Clock) -> None:
        """Forget what has ended, and regions that nothing names any more."""
        self.tracks.prune(done)
        if len(self.regions) > self.most_regions:
            named = {*self.held, *self.tracks.regions(), *(region for region, _ in self.promised)}
            named |= {use.region for graph in self.graphs for use in graph.uses_of(self)}
            self.regions = {key: region for key, region in self.regions.items() if region in named}
            self.most_regions = max(_MOST, 2 * len(self.regions))

    def conflict(
        self,
        region: Region,
        lane: int,
        seq: int,
        before: Clock,
        done: Clock,
        *,
        write: bool,
        but: tuple[Owner, ...] = (),
    ) -> Found | None:
        """As `Tracks.conflict`, with the replays of graphs that have captured the storage, some excepted."""
        found = self.tracks.conflict(region, lane, seq, before, done, write=write)
        for graph in self.graphs if found is None else ():
            item = graph.item
            if graph in but or has_ended(item, lane, seq, before) or has_ended(item, 0, 0, done):
                continue
            for use in graph.uses_of(self):
                if (write or use.write) and overlap(region, use.region):
                    return item, use.region, use.write
        return found

    def root(self) -> Storage:
        """The storage that it has become part of, or itself."""
        found = self
        while found.into is not None:
            found = found.into
        return found

    def hold(self, region: Region) -> None:
        """Note a handle of a region."""
        self.held[region] = self.held.get(region, 0) + 1

    def let_go(self, region: Region) -> None:
        """Note that a handle of a region is gone."""
        count = self.held[region] - 1
        if count:
            self.held[region] = count
        else:
            del self.held[region]

    def is_held(self, region: Region) -> bool:
        """Whether a handle stands for all of a region."""
        return any(held.covers(region) for held in self.held)

    def retain(self, owner: Any) -> None:
        if not any(kept is owner for kept in self.keep):
            self.keep.append(owner)

    def note_written(self, region: Region) -> None:
        """Note a write by work that runs, while not all was written."""
        if self.written is not None:
            self.written.add(region)
            if self.written.covers(self.start, self.end):
                self.written = None
                self.promised = []
                self.settle()

    def launched_after(self, region: Region, generation: int) -> Place | None:
        """Where a graph was launched that has written in a region after a certain launch of a graph."""
        for graph in self.graphs:
            if graph.generation > generation and any(
                use.write and overlap(use.region, region) for use in graph.uses_of(self)
            ):
                return graph.item.place
        for written, (launched, place) in self.overwritten.items():
            if launched > generation and overlap(written, region):
                return place
        return None

    def promise(self, region: Region, graph: Owner) -> None:
        """Note that a graph writes a region when it is launched."""
        if self.written is not None:
            self.promised.append((region, graph))

    def fulfil(self, graph: Owner) -> None:
        """Note the first launch of a graph. What that may write and does not, no later launch of it writes."""
        self.promised = [(region, other) for region, other in self.promised if other is not graph]
        for use in graph.uses_of(self):
            if use.write:
                self.note_written(use.view.region)  # not what lies between its elements

    def too_early(self, region: Region, but: Owner | None = None, also: Written | None = None) -> Owner | None:
        """A graph, one excepted, that alone writes something in a region, and was not launched yet.

        What is in `also` is written too.
        """
        if self.written is None:
            return None
        written = self.written if also is None else self.written.joined(also)
        for promised, graph in self.promised:
            if graph is not but and written.misses(region, promised):
                return graph
        return None

    def settle(self) -> None:
        """Look at every access while not all was written, a graph has captured it, or the user has it."""
        self.tracks.pin(pinned=self.written is not None or bool(self.graphs) or bool(self.outside))

    def is_idle(self, done: Clock) -> bool:
        """Whether all work on it is known to have ended."""
        return all(has_ended(i, 0, 0, done) for i in self.tracks.items())


class Table:
    """All storages, by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._by_start: dict[int, Storage] = {}

    def __iter__(self) -> Iterator[Storage]:
        return iter(tuple(self._by_start.values()))

    def __len__(self) -> int:
        return len(self._starts)

    def at(self, start: int, end: int, kind: Kind, name: str) -> Storage:
        """The storage that holds a range; storages that the range connects become one."""
        met = list(self._meeting(start, end))
        if len(met) == 1 and met[0].start <= start and end <= met[0].end:
            return met[0]
        whole = Storage(min([start, *(s.start for s in met)]), max([end, *(s.end for s in met)]), kind, name)
        for part in met:
            self.remove(part)
            _absorb(whole, part)
        bisect.insort(self._starts, whole.start)
        self._by_start[whole.start] = whole
        return whole

    def remove(self, storage: Storage) -> None:
        if self._by_start.get(storage.start) is storage:
            del self._by_start[storage.start]
            del self._starts[bisect.bisect_left(self._starts, storage.start)]

    def _meeting(self, start: int, end: int) -> Iterator[Storage]:
        at = bisect.bisect_right(self._starts, start)
        if at:
            before = self._by_start[self._starts[at - 1]]
            if before.end > start or before.start == start:
                yield before
        while at < len(self._starts) and self._starts[at] < end:
            yield self._by_start[self._starts[at]]
            at += 1


def _absorb(whole: Storage, part: Storage) -> None:
    """Make a storage part of another, with all that is known of it."""
    whole.name = part.name
    for region, count in part.held.items():
        whole.held[region] = whole.held.get(region, 0) + count
    whole.outside += part.outside
    whole.overwritten.update(part.overwritten)
    whole.keep += part.keep
    for graph in part.graphs:
        graph.has_grown(part, whole)
        if graph not in whole.graphs:
            whole.graphs.append(graph)
    for lane, track in part.tracks.by_lane.items():
        mine = whole.tracks.by_lane.setdefault(lane, Track(track.queue))
        mine.seq = max(mine.seq, track.seq)
        mine.written = max(mine.written, track.written)
        mine.reads.update(track.reads)
        mine.writes.update(track.writes)
    whole.settle()  # with `written` None: what somebody else may have written counts as written
    whole.regions.update(part.regions)
    part.into = whole
    # A handle that still names the part finds its tracks here, and takes the slow way, which follows `into`.
    part.tracks = Tracks()
