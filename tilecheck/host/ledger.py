"""Judges whether a piece of work may be enqueued now, and keeps what is in flight.

Nothing here waits for the GPU but what is asked to: an access is compared with those in flight by their place
in the order of streams and events. Only where that order leaves a conflict is the driver asked whether the
other stream has ended meanwhile: what the host has seen to be complete is in order with all that it does later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilecheck.host import refusals
from tilecheck.host.driver import Driver
from tilecheck.host.errors import HostRefused
from tilecheck.host.memory.regions import Region
from tilecheck.host.memory.storage import Storage
from tilecheck.host.memory.uses import YOUR_CODE, Dependence, Order, Use
from tilecheck.host.places import Place
from tilecheck.host.streams.clocks import EMPTY, Clock, Item, Mark, Queue, has_ended, merged

if TYPE_CHECKING:
    from tilecheck.host.graphs.owners import Owner
    from tilecheck.host.memory.written_bytes import Written
    from tilecheck.host.recording import Recorder


class Ledger:
    """The order of everything that was enqueued. Mutable; its user holds a lock."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.queues: dict[int, Queue] = {}
        self.done: Clock = EMPTY  # what the host knows to have ended
        self.recorder: Recorder | None = None
        self._events = 0

    # ---- streams and events ----------------------------------------------------------------------------------

    def queue(self, handle: int) -> Queue:
        """The queue of a stream, by the stream's handle."""
        found = self.queues.get(handle)
        if found is None:
            name = f"stream {handle:#x}" if handle else "the default stream"
            found = self.queues[handle] = Queue(self.driver.stream_of(handle), handle, name)
            found.is_foreign = True
        return found

    def mark(self, queue: Queue) -> Mark:
        """Record an event behind what the stream holds."""
        self._events += 1
        mark = Mark(queue, self.driver.record(queue.raw), f"event {self._events}")
        if self.recorder is not None:
            self.recorder.record(mark)
        return mark

    def wait(self, queue: Queue, mark: Mark) -> None:
        """Have the stream wait for the event."""
        self.driver.wait(queue.raw, mark.event)
        queue.wait(mark.clock)
        queue.heads = tuple(dict.fromkeys((*queue.heads, *mark.heads)))
        if self.recorder is not None:
            self.recorder.wait(queue, mark)

    def order_after(self, queue: Queue, mark: Mark) -> None:
        """Have the stream wait for the event, unless the order is known already."""
        if mark.queue is not queue and not self._passed(queue, mark.clock):
            self.wait(queue, mark)

    def _passed(self, queue: Queue, clock: Clock) -> bool:
        known = merged(queue.end(), self.done)
        return all(known.get(lane, 0) >= count for lane, count in clock.items())

    def join(self, queue: Queue) -> None:
        """Wait until the stream is empty."""
        self.driver.sync(queue.raw)
        self._joined(queue)

    def join_mark(self, mark: Mark) -> None:
        """Wait until the event has ended."""
        self.driver.sync_event(mark.event)
        self.passed(mark)

    def passed(self, mark: Mark) -> None:
        """Note that the event was seen to have ended."""
        self.done = merged(self.done, mark.clock)
        if self.recorder is not None:
            self.recorder.join_mark(mark)

    def join_all(self) -> None:
        """Wait until the device is idle."""
        self.driver.sync_device()
        for queue in self.queues.values():
            self.done = merged(self.done, queue.everything())
        if self.recorder is not None:
            self.recorder.join_all()

    def saw_idle(self, queue: Queue) -> bool:
        """Whether the stream is found empty; noted if it is."""
        if not self.driver.is_idle(queue.raw):
            return False
        self._joined(queue)
        return True

    def _observe(self, queue: Queue) -> None:
        """Learn what has ended on a stream that the host never waits for."""
        mark = queue.watched
        if mark is not None and self.driver.is_done(mark.event):
            self.passed(mark)
            mark = None
        if mark is None:
            queue.watched = self.mark(queue)

    def _joined(self, queue: Queue) -> None:
        self.done = merged(self.done, queue.everything())
        queue.retired = EMPTY
        queue.lanes = {queue.lane}
        if self.recorder is not None:
            self.recorder.join(queue)

    # ---- work ------------------------------------------------------------------------------------------------

    def claim(
        self,
        queue: Queue,
        uses: Sequence[Use],
        item: Item,
        order: Order,
        *,
        is_launch: bool = True,
        dependence: Dependence | None = None,
        graphs: tuple[Owner, ...] = (),
    ) -> bool:
        """Give a piece of work its place behind what the stream holds, if its accesses are in order there.

        Args:
            queue: the stream.
            uses: all accesses of the work.
            item: the work; it gets its place.
            order: what to do about a conflict with another stream.
            is_launch: whether a dependent launch after it may start early.
            dependence: given if the launch itself may start early.
            graphs: those whose inputs the work may write; it is behind their latest launches and updates.

        Returns:
            Whether it may start before the launch before it has ended.

        Raises:
            HostRefused: an access is not in order.
        """
        lane = queue.lane
        capture = queue.capture
        if capture is None and dependence is None:
            for use in uses:
                if use[0].storage.tracks.lane != lane:
                    break
            else:  # all that is in flight on this memory is on this stream, before the work
                queue.push(item, is_launch=is_launch)
                seq = item.seq
                for view, region, write, _ in uses:
                    track = view.storage.tracks.only
                    assert track is not None
                    track.seq = seq
                    if write:
                        track.writes[region] = item
                        track.written = seq
                    else:
                        track.reads[region] = item
                if self.recorder is not None:
                    self.recorder.work(item, uses, is_launch=is_launch)
                return False
        return self._claim(queue, uses, item, order, is_launch, dependence, graphs)

    def _claim(
        self,
        queue: Queue,
        uses: Sequence[Use],
        item: Item,
        order: Order,
        is_launch: bool,
        dependence: Dependence | None,
        graphs: tuple[Owner, ...],
    ) -> bool:
        waits = dependence is None or dependence.waits
        if queue.is_launch and not waits:
            self._check_yours(queue, item)
        try:
            for use in uses:
                storage = use.view.home()
                if storage.tracks.pinned:
                    if storage.outside and queue.capture is None:
                        self._take_back(storage, item.place)
                    self._check_owner(use, item, queue, graphs)
            for use in dependence.early if dependence is not None else ():
                if not queue.is_launch:
                    break  # nothing starts early behind a wait, such as one that a check has just inserted
                self._check(queue, use, item, order, (), early=True, waits=waits)
            for use in uses:
                self._check(queue, use, item, order, graphs, early=False, waits=waits)
        except HostRefused:
            if self.recorder is not None:
                self.recorder.work(item, uses, is_launch=is_launch, dependence=dependence, refused=True)
            raise
        starts_early = dependence is not None and queue.is_launch
        if starts_early:
            queue.push_dependent(item, waits=waits)
        else:
            queue.push(item, is_launch=is_launch)
        for view, region, write, _ in uses:
            storage = view.home()
            if queue.capture is not None:
                queue.capture.tracks(storage).add(region, item, write=write)
                continue
            tracks = storage.tracks
            tracks.add(region, item, write=write)
            if write:
                storage.note_written(view.region)  # not what lies between its elements
            for owner in storage.graphs:
                # What comes behind an update is behind all of it, unless that is a launch: the next launch on
                # the stream may start before it has ended, and an event behind that one says nothing of it.
                if is_launch or owner not in graphs:
                    owner.touched[storage] = None
            if tracks.is_full():
                self._observe(queue)
            storage.prune(self.done)
        if self.recorder is not None:
            self.recorder.work(item, uses, is_launch=is_launch, dependence=dependence)
        return starts_early

    def check(self, queue: Queue, uses: Sequence[Use], item: Item, order: Order, graph: Owner) -> None:
        """Check the accesses of a graph's launch, which the graph keeps itself.

        Raises:
            HostRefused: one is not in order.
        """
        try:
            for use, before in graph.unsure:
                self._check_contents(use, item, graph, before)
            for use in uses:
                if use.view.home().outside:
                    self._take_back(use.view.home(), item.place)
                self._check(queue, use, item, order, (graph,), early=False, waits=True)
        except HostRefused:
            if self.recorder is not None:
                self.recorder.replay(graph.name, item, refused=True)
            raise

    def assume(self, queue: Queue, storage: Storage, region: Region, place: Place, *, write: bool) -> None:
        """Note an access that the user's own code has enqueued on a stream before now.

        It may be a launch: one of ours behind it that depends on its start would overlap with it. Where among
        the items of the stream it is, is not known. If the last of them is a launch, what comes next may
        depend on the start of that one just as well.
        """
        item = Item(queue, YOUR_CODE, place)
        behind_launch = queue.is_launch
        if behind_launch:
            queue.push_dependent(item, waits=True)
        else:
            queue.push(item, is_launch=True)
        storage.tracks.add(region, item, write=write, is_checked=False)
        for owner in storage.graphs:
            owner.touched[storage] = None
        if self.recorder is not None:
            self.recorder.assumed(item, storage, region, write=write, dependent=behind_launch)

    def _take_back(self, storage: Storage, place: Place) -> None:
        """Take memory back from the user's own code, which has used it until now."""
        outside, storage.outside = storage.outside, []
        for queue, region, write in outside:
            self.assume(queue, storage, region, place, write=write)
        storage.settle()

    def hand_out(self, storage: Storage, region: Region, queue: Queue, *, write: bool) -> None:
        """Note that the user's own code may use memory on a stream from here on, until it is taken back."""
        storage.outside.append((queue, region, write))
        storage.settle()
        queue.outside.add(storage)

    def _check_yours(self, queue: Queue, item: Item) -> None:
        """Refuse a launch that waits for nothing on a stream of the user's own code.

        That code counts on the order of the stream. The launch breaks it for all that comes after, even if the
        launch touches none of the code's arrays.

        Raises:
            HostRefused: your own code works on the stream, or has an array there.
        """
        given = {storage.root() for storage in queue.outside}
        queue.outside = {storage for storage in given if any(entry[0] is queue for entry in storage.outside)}
        if queue.is_foreign or queue.outside:
            raise refusals.breaks_order(queue, item)

    def _check_owner(self, use: Use, item: Item, queue: Queue, graphs: tuple[Owner, ...]) -> None:
        """Refuse a write to captured memory, except by launches of the graph and updates of its inputs."""
        storage = use.view.home()
        use.view.check_current(item)
        if queue.capture is not None:
            return
        for owner in storage.graphs if use.write else ():
            if owner.holds(storage, use.region) and not (owner in graphs and owner.takes(use)):
                raise refusals.captured(use, item, owner)
        if not use.write:
            self._check_contents(use, item)

    def _check_contents(
        self, use: Use, item: Item, but: Owner | None = None, also: Written | None = None
    ) -> None:
        """Refuse a read of memory that only graphs write, none of which was launched yet."""
        promised = use.view.home().too_early(use.region, but, also)
        if promised is not None:
            raise refusals.not_launched(use, item, promised)

    def _check(
        self,
        queue: Queue,
        use: Use,
        item: Item,
        order: Order,
        graphs: tuple[Owner, ...],
        *,
        early: bool,
        waits: bool,
    ) -> None:
        storage = use.view.home()
        if storage.tracks.lane == queue.lane and not early:
            return  # all of it is on this stream, and there is no graph
        while True:
            before, lane, seq = queue.before, queue.lane, queue.start if early else queue.seq
            if queue.capture is None:
                found = storage.conflict(use.region, lane, seq, before, self.done, write=use.write, but=graphs)
            else:
                found = queue.capture.tracks(storage).conflict(
                    use.region, lane, seq, before, EMPTY, write=use.write
                )
            if found is None:
                return
            if not self._put_in_order(queue, found[0], order):
                known = merged(queue.before, self.done)
                raise refusals.conflict(use, item, found, queue, known, early=early, waits=waits)
            if early and not queue.is_launch:
                return

    def _put_in_order(self, queue: Queue, other: Item, order: Order) -> bool:
        """Order the stream after another item, if that may be done or is found to be so."""
        if order == "events" and other.queue is not queue:
            # An event covers a launch only if the end of what comes before the event implies the launch's.
            mark = other.queue.mark_behind(other)
            if mark is not None or has_ended(other, 0, 0, other.queue.end()):
                self.wait(queue, mark or self.mark(other.queue))
                return True
        # While a stream is captured, the driver allows no questions.
        return queue.capture is None and other.queue.capture is None and self.saw_idle(other.queue)

    def touch(
        self, storage: Storage, region: Region, place: Place, what: str, order: Order, *, write: bool
    ) -> None:
        """Check that the host itself may read or write memory now.

        Raises:
            HostRefused: work in flight uses it.
        """
        while True:
            found = storage.conflict(region, 0, 0, EMPTY, self.done, write=write)
            if found is None:
                break
            queue = found[0].queue
            if self.saw_idle(queue):
                continue
            if order == "events":
                self.join(queue)
                continue
            if self.recorder is not None:
                self.recorder.touch(storage, region, place, what, write=write, refused=True)
            raise refusals.touch(storage, found, place, what, write=write)
        if self.recorder is not None:
            self.recorder.touch(storage, region, place, what, write=write)
