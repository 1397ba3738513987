"""Launches of verified kernels, and calls of the user's own code, as operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tilecheck.host.clocks import Item
from tilecheck.host.copies import Leaf
from tilecheck.host.defaults import default
from tilecheck.host.handles import Array, View
from tilecheck.host.hostarrays import HostArray
from tilecheck.host.kernels import Prepared, Role, prepared
from tilecheck.host.operations import Execution, Operation
from tilecheck.host.partition import Partition, common_grid
from tilecheck.host.places import Place, caller
from tilecheck.host.uses import Dependence, Use, new_use

if TYPE_CHECKING:
    from tilecheck.host.runtime import Runtime
    from tilecheck.host.streams import Stream
    from tilecheck.host.uses import Order

T = TypeVar("T")

_NO_OPTIONS: dict[str, Any] = {}
_NUMBERS = frozenset({int, float, bool, type(None)})


class Launch(Leaf[tuple[Any, ...]]):
    """A launch of a verified kernel. Its result are its arguments, with handles in place of plain arrays."""

    __slots__ = ("_args", "_dependence", "_early", "_grid", "_kernel", "_options", "_uses", "_values")

    def __init__(
        self,
        runtime: Runtime,
        kernel: Prepared,
        grid: Any,
        args: Sequence[Any],
        options: dict[str, Any],
        place: Place,
        *,
        dependent: bool,
    ) -> None:
        super().__init__(runtime, kernel.name, place)
        self._kernel = kernel
        self._options = options
        self._uses: list[Use] = []
        self._early: list[Use] = []
        self._args: list[Any] = []
        self._values: list[Any] = []  # what the kernel is launched with
        try:
            self._take(args, kernel.roles)
            for name, value in options.items():
                at = kernel.names.get(name)
                if at is not None:
                    options[name] = _raw(self._taken(value, kernel.roles[at]))
            self._grid = common_grid(self._args, place) if grid is None else grid
            if dependent:
                kernel.check_may_depend()
        except BaseException:
            self._release()
            raise
        self._dependence = Dependence(self._early, kernel.waits) if dependent else None

    def _take(self, args: Sequence[Any], roles: Sequence[Role | None]) -> None:
        """Take the arguments in, by what the kernel does with them."""
        for value, role in zip(args, roles, strict=False):
            # The common case, which `_taken` has in general: an array that nothing else holds.
            if (
                type(value) is Array
                and role is not None
                and value.moved is None
                and (value.region.is_dense or not role.reaches_gaps)
            ):
                writes = role.writes
                if not writes:
                    value.loans += 1
                    self.lent.append(value)
                elif value.shared is None and not value.loans:
                    value.moved = (self.name, self.place)
                    self.moved.append(value)
                else:
                    value.move(self.name, self.place)  # refuses
                self._uses.append(new_use(value, value.region, writes, role.label))
                if role.is_early:
                    self._early.append(new_use(value, value.region, role.early_write, role.label))
                self._args.append(value)
                self._values.append(value.array)
            else:
                taken = self._taken(value, role)
                self._args.append(taken)
                self._values.append(_raw(taken))

    def _taken(self, value: Any, role: Role | None) -> Any:
        """Take an argument in; the handle that stands for it."""
        if role is None or value is None:
            return value
        if isinstance(value, tuple | list):  # an argument that is a list of arrays
            return type(value)(self._taken(member, role) for member in value)
        view = value.whole if isinstance(value, Partition) else value
        if not isinstance(view, View):
            value = view = self.runtime.adopt(view, self.place)
        if isinstance(view, HostArray):
            raise TypeError(f"{self.name} is given an array of the host for `{role.label}`")
        if role.writes:
            self.takes(view)
        else:
            self.borrows(view)
        region = view.hull() if role.reaches_gaps else view.region
        self._uses.append(new_use(view, region, role.writes, role.label))
        if role.is_early:
            self._early.append(new_use(view, region, role.early_write, role.label))
        return value

    def _run(self, on: Execution) -> tuple[Any, ...]:
        queue, dependence = on.queue, self._dependence
        on.claim(
            Item(queue, self.name, self.place), self._uses, "kernel", is_launch=True, dependence=dependence
        )
        self._kernel.enqueue(
            self.runtime.driver, queue, self._grid, self._values, self._options, dependence is not None
        )
        self._release()
        return tuple(self._args)


def _raw(value: Any) -> Any:
    """What a kernel is launched with for a handle."""
    if isinstance(value, View):
        return value.array
    if isinstance(value, Partition):
        return value.whole.array
    if isinstance(value, tuple | list) and any(isinstance(member, View) for member in value):
        return type(value)(_raw(member) for member in value)
    return value


def launch(
    kernel: Any,
    grid: Any,
    args: Sequence[Any],
    *,
    dependent: bool = False,
    runtime: Runtime | None = None,
    **options: Any,
) -> Operation[tuple[Any, ...]]:
    """A launch of a verified kernel; its arguments.

    What the kernel reads and writes comes from its verdict. Arrays that it writes move into the operation and
    come back with it; plain arrays get handles.

    Args:
        kernel: a `ct.kernel`, a kernel of Triton, or a `CompiledKernel`.
        grid: the number of blocks along each axis; None if partitions among the arguments say it.
        args: one value for each parameter, in order.
        dependent: whether the kernel may start when the launch before it on the stream has started
            (programmatic dependent launch). Refused where that is not safe.
        runtime: where.
        options: for a kernel of Triton: arguments by name, and options of the launch.

    Raises:
        LaunchRefused: the kernel is not verified.
        HostRefused: an argument was moved, or is shared and written.
    """
    return Launch(runtime or default(), prepared(kernel), grid, args, options, caller(), dependent=dependent)


def enqueue(
    stream: Stream,
    kernel: Any,
    grid: Any,
    args: Sequence[Any],
    *,
    dependent: bool = False,
    order: Order | None = None,
    **options: Any,
) -> None:
    """Launch a verified kernel on a stream now: `launch(...).submit(stream)` in half the host's time.

    Plain arrays among the arguments are taken from your own code each time: give handles instead.

    Raises:
        LaunchRefused: the kernel is not verified, or the launch breaks a condition of its proof.
        HostRefused: an argument was moved, or an access is not in order.
    """
    runtime, place, ready = stream.runtime, caller(), prepared(kernel)
    order = order or runtime.order
    if dependent:
        ready.check_may_depend()
    if order == "refuse" and not options:
        with runtime.lock:
            if runtime.is_executing:
                runtime.enter(place)  # refuses
            if _enqueue_plain(runtime, stream, ready, grid, args, place, dependent):
                return
    operation = Launch(runtime, ready, grid, args, options, place, dependent=dependent)
    runtime.submit(operation, stream, order, place)


def _enqueue_plain(
    runtime: Runtime,
    stream: Stream,
    kernel: Prepared,
    grid: Any,
    args: Sequence[Any],
    place: Place,
    dependent: bool,
) -> bool:
    """Launch a kernel if there is nothing to look at: no operation holds its arrays, all that is in flight on
    them is on this stream already, and nothing writes them that a dependent launch overlaps with.

    It does in one piece what `Runtime.submit`, `Launch` and `Ledger.claim` do.
    """
    ledger = runtime.ledger
    queue = ledger.queues.get(stream.handle)
    if queue is None or runtime.capture is not None or runtime.reaper.is_needed:
        return False
    lane = queue.lane
    overlaps = dependent and queue.is_launch
    if overlaps and not (kernel.waits and queue.start[1] == lane):
        return False
    touched, values = [], list(args)
    for at, role in kernel.touching:
        if at >= len(values):  # left to its default, with all behind it
            break
        value = values[at]
        if type(value) is not Array or value.moved is not None:
            return False
        tracks, region = value.storage.tracks, value.region
        if tracks.lane != lane or (role.reaches_gaps and not region.is_dense):
            return False
        track = tracks.only
        assert track is not None
        if overlaps and role.is_early and (role.early_write or track.is_written_after(queue.start[2])):
            return False
        if not role.writes:
            touched.append((track, track.reads, region))
        elif value.shared is None and not value.loans:
            touched.append((track, track.writes, region))
        else:
            return False
        values[at] = value.array
    for at in kernel.others:
        if at < len(values) and type(values[at]) not in _NUMBERS:
            values[at] = _raw(values[at])
    item = Item(queue, kernel.name, place)
    if overlaps:
        queue.push_dependent(item, waits=True)
    else:
        queue.push(item, is_launch=True)
    for track, kept, region in touched:
        kept[region] = item
        track.seq = item.seq
    if ledger.recorder is not None:
        uses, early = _uses_of(kernel, args)
        dependence = Dependence(early, kernel.waits) if dependent else None
        ledger.recorder.work(item, uses, is_launch=True, dependence=dependence)
    runtime.is_executing = True  # the grid may be a function of the user's
    try:
        kernel.enqueue(runtime.driver, queue, grid, values, _NO_OPTIONS, dependent)
    finally:
        runtime.is_executing = False
    return True


def _uses_of(kernel: Prepared, args: Sequence[Any]) -> tuple[list[Use], list[Use]]:
    """What a launch touches of arrays whose gaps it does not reach, and what of that before its wait."""
    pairs = [(view, role) for view, role in zip(args, kernel.roles, strict=False) if role is not None]
    return (
        [new_use(view, view.region, role.writes, role.label) for view, role in pairs],
        [new_use(view, view.region, role.early_write, role.label) for view, role in pairs if role.is_early],
    )


class Call(Leaf[T]):
    """The user's own code, which enqueues work on its current stream."""

    __slots__ = ("_function", "_uses")

    def __init__(
        self, runtime: Runtime, function: Callable[..., T], reads: list[View], writes: list[View], place: Place
    ) -> None:
        super().__init__(runtime, f"the call of `{getattr(function, '__name__', 'your function')}`", place)
        self._function = function
        self._uses: list[Use] = []
        try:
            for number, view in enumerate(writes):
                self.takes(view)
                self._uses.append(Use(view, view.region, True, f"writes[{number}]"))
            for number, view in enumerate(reads):
                self.borrows(view)
                self._uses.append(Use(view, view.region, False, f"reads[{number}]"))
        except BaseException:
            self._release()
            raise

    def _run(self, on: Execution) -> T:
        driver, queue = self.runtime.driver, on.queue
        on.claim(Item(queue, self.name, self.place), self._uses, "call", is_launch=True)
        arrays = [view.array for view in (*self.lent, *self.moved)]
        before = driver.allocations() if queue.capture is not None else 0
        if driver.current() == queue.handle:
            value = self._function(*arrays)
        else:
            with driver.using(queue.raw):
                value = self._function(*arrays)
        if queue.capture is not None and driver.allocations() != before:
            queue.capture.forbid(f"an allocation in {self.name}", self.place)
        self._release()
        return value


def call(
    function: Callable[..., T],
    *,
    reads: Iterable[Any] = (),
    writes: Iterable[Any] = (),
    runtime: Runtime | None = None,
) -> Operation[T]:
    """A call of your own code, which is given the arrays of `reads` and then those of `writes`.

    It is called when the operation is enqueued, with its stream as the current one, and must enqueue all that
    it does with these arrays on that stream. Nothing holds it to what it says of them.
    """
    place = caller()
    found = runtime or default()
    handles = [
        [view if isinstance(view, View) else found.adopt(view, place) for view in views]
        for views in (reads, writes)
    ]
    return Call(found, function, handles[0], handles[1], place)
