"""Handles: what a program holds of the memory in play, and what it may do with it.

An `Array` is the one right to write its memory. Given to an operation that writes it, it *moves* there: the
handle is dead until the operation has been enqueued and gives it back. Given to an operation that reads it, it
is lent. What is in flight after that is followed by addresses, so a handle that came back may be used at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tilecheck.host.errors import HostRefused
from tilecheck.host.memory.arrays import dtype_of, locate
from tilecheck.host.memory.regions import Region, hull
from tilecheck.host.memory.storage import Storage
from tilecheck.host.places import Place, caller, text_of
from tilecheck.host.streams.clocks import Item
from tilecheck.ir.host_program import Place as Kind
from tilecheck.jit.layouts import NotAnArray

if TYPE_CHECKING:
    from tilecheck.host.graphs.owners import Owner
    from tilecheck.host.memory.uses import Order
    from tilecheck.host.runtime import Runtime

_serials = itertools.count(1)


class View:
    """A handle that may read an array. Mutable: it may be dead for a time, or for good."""

    __slots__ = (
        "__weakref__",
        "_hull",
        "array",
        "dtype",
        "launched",
        "loans",
        "moved",
        "place",
        "region",
        "runtime",
        "serial",
        "storage",
    )

    def __init__(self, runtime: Runtime, array: Any, storage: Storage, region: Region, place: Place) -> None:
        self.runtime = runtime
        self.array = array  # what the user's own code gets
        private = runtime.driver.private(array)
        self.launched = array if private is None else private  # what kernels get
        self.serial = (
            0 if private is None else next(_serials)
        )  # stands for `launched`, which then never changes
        self.storage = storage
        self.region = region
        self.dtype = dtype_of(array)
        self.place = place  # where the handle was made
        self.moved: tuple[str, Place] | None = None  # where to, if it is dead
        self.loans = 0  # operations that will read it and are not enqueued yet
        self._hull: Region | None = None
        storage.hold(region)

    def __del__(self) -> None:
        if hasattr(self, "_hull"):
            self.runtime.reaper.dropped(self.storage, self.region)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.region.layout.shape

    @property
    def nbytes(self) -> int:
        return self.region.layout.size * self.region.layout.itemsize

    def __repr__(self) -> str:
        dead = f", moved into {self.moved[0]}" if self.moved is not None else ""
        return f"<{type(self).__name__} {self.dtype}{list(self.shape)}{dead}>"

    def home(self) -> Storage:
        """Its storage, which may have become part of another since."""
        if self.storage.into is not None:
            self.storage = self.storage.root()
        return self.storage

    def hull(self) -> Region:
        """All that offsets from the first element may reach, as kernels of Triton do."""
        if self._hull is None:
            whole = hull(self.region)
            self._hull = self.home().region(whole.start, whole.layout)
        return self._hull

    # ---- use -------------------------------------------------------------------------------------------------

    def lend(self, to: str, place: Place) -> None:
        """Lend the array to an operation that reads it.

        Raises:
            HostRefused: the handle is dead.
        """
        self.check_alive(to, place)
        self.loans += 1

    def move(self, to: str, place: Place) -> None:
        """Move the array into an operation that writes it.

        Raises:
            HostRefused: the handle gives no right to write.
        """
        raise HostRefused(
            "TC412",
            f"{to} at {text_of(place)} writes an array through a shared handle",
            f"the handle was made at {text_of(self.place)}",
            "help: only an `Array` that nobody shares may be written",
        )

    def check_alive(self, use: str, place: Place) -> None:
        if self.moved is not None:
            what, where = self.moved
            raise HostRefused(
                "TC412",
                f"{use} at {text_of(place)} uses an array that was moved into {what} at {text_of(where)}",
                "help: use it after that operation has given it back, by `submit()`, `sync()` or `await`",
            )

    def check_current(self, item: Item) -> None:
        """Check when the work is enqueued that the handle still means what it did."""

    # ---- looking at what is inside ---------------------------------------------------------------------------

    def tensor(self, *, order: Order | None = None) -> Any:
        """The array itself, for the user's own code on its current stream, which may write it.

        What the library has enqueued on it must be in order with that stream. All that the stream holds when
        the handle is next given to an operation counts as work of that code on the array; after that the array
        is the library's again.

        Raises:
            HostRefused: work in flight on another stream uses it.
        """
        place = caller()
        self.check_alive("`tensor()`", place)
        self.runtime.hand_out(self, place, order)
        return self.array

    def tolist(self, *, order: Order | None = None) -> Any:
        """The values as nested lists. Waits for the copy.

        Raises:
            HostRefused: the array is dead, or work in flight on another stream writes it.
        """
        from tilecheck.host.operations.copies import copy_to_host  # lazy: operations build on handles

        return copy_to_host(self).sync(order=order).tolist()

    def item(self, *, order: Order | None = None) -> Any:
        """The value of an array of one element. Waits for the copy."""
        value = self.tolist(order=order)
        while isinstance(value, list):
            (value,) = value
        return value


class Array(View):
    """The exclusive handle of an array: the right to write it."""

    __slots__ = ("shared",)

    def __init__(self, runtime: Runtime, array: Any, storage: Storage, region: Region, place: Place) -> None:
        super().__init__(runtime, array, storage, region, place)
        self.shared: tuple[str, Place] | None = None  # who made it read-only for good

    def move(self, to: str, place: Place) -> None:
        self.check_alive(to, place)
        if self.shared is not None:
            what, where = self.shared
            raise HostRefused(
                "TC412",
                f"{to} at {text_of(place)} writes an array that is shared since {what} at {text_of(where)}",
            )
        if self.loans:
            raise HostRefused(
                "TC412",
                f"{to} at {text_of(place)} writes an array that {self.loans} operations are still to read",
                f"the handle was made at {text_of(self.place)}",
                "help: run the operations that were given the array first",
            )
        self.moved = (to, place)

    def share(self) -> Shared:
        """A handle for readers. The array itself is dead until all of them are gone or given back.

        Raises:
            HostRefused: the array is dead.
        """
        place = caller()
        self.move("a shared handle", place)
        return Shared(self, place)


class Shared(View):
    """A counted handle of an array that many may read and none may write."""

    __slots__ = ("_count", "_owner")

    def __init__(self, owner: Array, place: Place, count: list[int] | None = None) -> None:
        super().__init__(owner.runtime, owner.array, owner.home(), owner.region, place)
        self._owner = owner
        self._count = [0] if count is None else count
        self._count[0] += 1

    @property
    def count(self) -> int:
        """How many handles there are."""
        return self._count[0]

    def clone(self) -> Shared:
        """Another handle of the same array.

        Raises:
            HostRefused: this one was given back.
        """
        place = caller()
        self.check_alive("`clone()`", place)
        return Shared(self._owner, place, self._count)

    def unshare(self) -> Array:
        """Give back the last shared handle for the exclusive one.

        Raises:
            HostRefused: there are others, or an operation is still to read through this one.
        """
        place = caller()
        self.check_alive("`unshare()`", place)
        if self._count[0] > 1 or self.loans:
            others = (
                f"{self._count[0] - 1} other handles share" if self._count[0] > 1 else "an operation is to read"
            )
            raise HostRefused("TC412", f"`unshare()` at {text_of(place)}: {others} the array")
        self.moved = ("`unshare()`", place)
        self._owner.moved = None
        return self._owner

    def __del__(self) -> None:
        if hasattr(self, "_count"):
            self._count[0] -= 1
            super().__del__()


class Borrowed(View):
    """An output of a graph as its latest launch leaves it: good until the next launch."""

    __slots__ = ("_generation", "graph", "kept", "source")

    def __init__(self, graph: Owner, view: View, kept: str, place: Place) -> None:
        super().__init__(view.runtime, view.array, view.home(), view.region, place)
        self.graph = graph
        self.source = view
        self.kept = kept
        self._generation = view.runtime.launches

    def check_alive(self, use: str, place: Place) -> None:
        super().check_alive(use, place)
        self._check(use, place)

    def check_current(self, item: Item) -> None:
        self._check(item.name, item.place)
        recorder = self.runtime.ledger.recorder
        if recorder is not None:
            recorder.use_kept(self.kept, item.place)

    def _check(self, use: str, place: Place) -> None:
        since, graph = self._generation, self.graph
        own = graph.item.place if graph.generation > since else None
        which = "the" if own is not None else "another"
        launched = own or self.home().launched_after(self.region, since)
        if launched is not None:
            raise HostRefused(
                "TC426",
                f"{use} at {text_of(place)} uses an output that a later launch of {which} graph "
                "has overwritten",
                f"the output was borrowed at {text_of(self.place)}",
                f"the graph was launched{' again' if own else ''} at {text_of(launched)}",
                "help: copy the output before the next launch",
            )


def views_in(value: Any) -> Iterator[View]:
    """The handles in a value: itself, or inside tuples, lists and mappings."""
    if isinstance(value, View):
        yield value
    elif isinstance(value, tuple | list):
        for member in value:
            yield from views_in(member)
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from views_in(member)


def place_of(runtime: Runtime, array: Any, *, is_foreign: bool = False) -> tuple[Storage, Region]:
    """The storage and the region of an array; of one that somebody else made, in its allocation.

    Raises:
        NotAnArray: it is no array whose addresses can be known, or no memory of the device.
    """
    address, layout, kind, (start, end) = locate(array)
    if is_foreign and kind is Kind.DEVICE and layout.size and not hasattr(array, "untyped_storage"):
        found = runtime.driver.allocation(address)
        if found is None or address + layout.span > sum(found):
            raise NotAnArray(f"{layout.span} bytes at {address:#x}, which are no memory of the device")
        start, end = found[0], sum(found)
    storage = runtime.table.at(start, end, kind, runtime.name("memory"))
    storage.retain(array)
    return storage, storage.region(address, layout)
