"""The owner of the memory of a graph: it orders updates and launches, whatever streams they are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilecheck.host.memory.handles import View
from tilecheck.host.memory.regions import Region, overlap
from tilecheck.host.memory.storage import Storage
from tilecheck.host.memory.uses import Order, Use
from tilecheck.host.memory.written_bytes import Written
from tilecheck.host.places import Place
from tilecheck.host.streams.clocks import Item, Queue, Replay, has_ended

if TYPE_CHECKING:
    from tilecheck.host.runtime import Runtime


class Owner:
    """The memory that a graph holds, and the order of its launches and updates.

    A launch costs the same for any number of nodes. It looks at what others do with the graph's memory only if
    they have done something since the last launch, or if it is on another stream: `touched` is what they used.

    Mutable: it knows the latest launch and the latest update.
    """

    __slots__ = (
        "arrays", "generation", "inputs", "is_closed", "is_complete", "item", "last", "name", "neighbours",
        "place", "raw", "runtime", "touched", "unsure", "uses",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        raw: Any,
        queue: Queue,
        uses: Mapping[Storage, tuple[Use, ...]],
        unsure: Sequence[tuple[Use, Written]],
        inputs: Sequence[View],
        outputs: Sequence[View],
        place: Place,
    ) -> None:
        self.runtime = runtime
        self.name = name
        self.raw = raw
        self.place = place  # where the graph was captured
        self.uses = dict(uses)  # distinct regions by storage; of one that is written, no reads
        self.unsure = unsure  # reads of new memory, and what of it the graph itself writes before them
        self.inputs = inputs
        self.arrays: list[View] = [
            *inputs,
            *outputs,
            *(use.view for of in uses.values() for use in of),
        ]  # keep their memory
        self.item = Replay(queue, f"the launch of {name}", place)
        self.last: Item = self.item  # the latest update or launch
        self.generation = 0  # which of all launches of graphs is its latest; 0 if it has none
        self.is_complete = False
        self.is_closed = False
        self.touched: dict[Storage, None] = dict.fromkeys(self.uses)  # in the order of the uses
        self.neighbours: list[tuple[Owner, Storage]] = []  # other graphs that touch what this one writes, ...
        for storage in self.uses:
            for other in storage.graphs:
                other.touched[storage] = None
                if self._meets(other, storage):
                    self.neighbours.append((other, storage))
                    other.neighbours.append((self, storage))
            for use in self.uses[storage]:
                if use.write:
                    storage.promise(use.region, self)
            storage.graphs.append(self)
            storage.settle()

    def _meets(self, other: Owner, storage: Storage) -> bool:
        return any(
            (mine.write or theirs.write) and overlap(mine.region, theirs.region)
            for mine in self.uses[storage]
            for theirs in other.uses[storage]
        )

    # ---- what others ask -------------------------------------------------------------------------------------

    def uses_of(self, storage: Storage) -> tuple[Use, ...]:
        return self.uses.get(storage, ())

    def holds(self, storage: Storage, region: Region) -> bool:
        """Whether the graph touches a region of a storage."""
        return any(overlap(region, use.region) for use in self.uses_of(storage))

    def takes(self, use: Use) -> bool:
        """Whether a use shares only inputs with the graph: what may be written between two launches."""
        home, region = use.view.home(), use.region
        if any(view.home() is home and view.region.covers(region) for view in self.inputs):
            return True
        inputs = Written()
        for view in self.inputs:
            inputs.add(view.region)
        return not any(inputs.misses(region, held.region) for held in self.uses_of(home))

    def has_grown(self, part: Storage, whole: Storage) -> None:
        """Note that a storage has become part of another."""
        self.uses[whole] = (*self.uses.get(whole, ()), *self.uses.pop(part, ()))
        self.neighbours = [(other, s if s is not part else whole) for other, s in self.neighbours]
        self.touched.pop(part, None)
        self.touched[whole] = None

    # ---- launches and updates --------------------------------------------------------------------------------

    def follow(self, queue: Queue) -> None:
        """Put a stream behind the latest update or launch."""
        last = self.last
        if queue is last.queue or not last.seq:
            return
        ledger = self.runtime.ledger
        if not has_ended(last, queue.lane, queue.seq, queue.before) and not has_ended(last, 0, 0, ledger.done):
            ledger.wait(queue, ledger.mark(last.queue))

    def launch(self, queue: Queue, place: Place, order: Order) -> None:
        """Enqueue everything that was captured.

        Raises:
            HostRefused: work of others on its memory is not in order.
        """
        item = self.item
        if self.touched or queue is not item.queue or self.last is not item:
            self._prepare(queue, place, order)
        item.place = place
        queue.push(item, is_launch=False)
        runtime = self.runtime
        runtime.launches += 1
        self.generation = runtime.launches
        self.is_complete = False
        for other, storage in self.neighbours:
            other.touched[storage] = None
        recorder = runtime.ledger.recorder
        if recorder is not None:
            recorder.replay(self.name, item)
        runtime.driver.replay(self.raw, queue.raw)

    def _prepare(self, queue: Queue, place: Place, order: Order) -> None:
        """Check a launch that is not like the last, and put it in order."""
        self.follow(queue)
        ledger = self.runtime.ledger
        asked = Replay(queue, self.item.name, place)
        moved = queue is not self.item.queue
        uses = [use for storage in (self.uses if moved else self.touched) for use in self.uses_of(storage)]
        ledger.check(queue, uses, asked, order, self)
        if not self.generation:
            for storage in self.uses:
                storage.fulfil(self)
        self.touched = {}
        self.item.queue = queue
        self.last = self.item

    # ---- the end ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of everything. What a launch in flight still touches is followed like any other access."""
        if self.is_closed:
            return
        self.is_closed = True
        ledger = self.runtime.ledger
        in_flight = bool(self.item.seq) and not has_ended(self.item, 0, 0, ledger.done)
        for storage, kept in self.uses.items():
            storage.graphs.remove(self)
            for use in kept if self.generation else ():
                if use.write:
                    storage.overwritten[use.region] = (self.generation, self.item.place)
                if in_flight:
                    storage.tracks.add(use.region, self.item, write=use.write, is_checked=False)
            storage.settle()
        for other, _ in self.neighbours:
            other.neighbours = [(o, s) for o, s in other.neighbours if o is not self]
        if in_flight:
            self.runtime.reaper.keep(self.item, self.raw)
        if ledger.recorder is not None:
            ledger.recorder.destroy(self.name)
        self.raw = None
        self.uses.clear()
        self.arrays.clear()  # drops the handles, whose memory is freed when nothing uses it
