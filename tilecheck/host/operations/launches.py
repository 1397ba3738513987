"""Launches of verified kernels, and calls of the user's own code, as operations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tilecheck.host.defaults import default
from tilecheck.host.memory.handles import View
from tilecheck.host.memory.host_arrays import HostArray
from tilecheck.host.memory.partition import Partition, common_grid
from tilecheck.host.memory.uses import Dependence, Use
from tilecheck.host.operations.copies import Leaf
from tilecheck.host.operations.kernels import Prepared, Role, launched, prepared
from tilecheck.host.operations.operations import Execution, Operation, State
from tilecheck.host.places import Place, caller, get_frame
from tilecheck.host.streams.clocks import Item

if TYPE_CHECKING:
    from tilecheck.host.memory.uses import Order
    from tilecheck.host.runtime import Runtime
    from tilecheck.host.streams.streams import Stream

T = TypeVar("T")


_WAITING, _DONE = State.WAITING, State.DONE  # a look into an enumeration takes longer


class Launch(Leaf[tuple[Any, ...]]):
    """A launch of a verified kernel. Its result are its arguments, with handles in place of plain arrays."""

    __slots__ = (
        "_args", "_dependent", "_fast_path", "_grid", "_kernel", "_kernel_object", "_mark", "_options",
    )  # fmt: skip

    _args: tuple[Any, ...]

    def __init__(
        self,
        runtime: Runtime,
        kernel: Any,
        grid: Any,
        args: Sequence[Any],
        options: dict[str, Any],
        place: Place,
        dependent: bool,
    ) -> None:
        # Without `super().__init__`, which takes a microsecond.
        ready = prepared(kernel)
        if dependent:
            ready.check_may_depend(args, options)
        self.runtime = runtime
        self.place = place
        self.state = _WAITING
        self.used = None
        self.name = ready.name
        self._kernel_object = kernel  # kept: `ready` does not
        self._kernel = ready
        self._grid = grid
        self._args = args = tuple(args)
        self._options = options
        self._dependent = dependent
        self._mark = mark = (ready.name, place)
        self._fast_path = fast_path = ready.fast_path(args, options)
        taken = fast_path.take(args, mark) if grid is not None else None
        self.is_holding = True
        if taken is None:
            self._take(ready)
        else:
            self.moved, self.lent = taken

    def _take(self, kernel: Prepared) -> None:
        """Take the arguments in, by what the kernel does with them."""
        self.moved, self.lent = [], []
        try:
            roles = itertools.chain(kernel.roles, itertools.repeat(None))
            self._args = tuple([self._taken(value, role) for value, role in zip(self._args, roles)])  # noqa: B905 - endless
            self._options = {
                name: self._taken(value, kernel.role_of(name)) for name, value in self._options.items()
            }
            if self._grid is None:
                self._grid = common_grid(self._args, self.place)
        except BaseException:
            self._release()
            raise

    def _taken(self, value: Any, role: Role | None) -> Any:
        """Take an argument in; the handle that stands for it."""
        if role is None or value is None:
            return value
        if isinstance(value, (tuple, list)):  # an argument that is a list of arrays
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
        return value

    def submit(self, stream: Stream | None = None, *, order: Order | None = None) -> tuple[Any, ...]:
        runtime, frame = self.runtime, get_frame(1)  # as `caller` finds it: only users call this
        place = frame.f_code, frame.f_lasti
        if (
            stream is None
            or stream.runtime is not runtime
            or self.state is not _WAITING
            or not self.is_holding
            or (order or runtime.order) != "refuse"
        ):
            return runtime.submit(self, stream, order, place)
        with runtime.lock:
            if runtime.is_executing:
                runtime.enter(place)  # refuses
            try:
                is_launched = self._fast_path.launch(
                    stream, self._grid, self._args, self._options, self.place, self._mark, self._dependent
                )
            except BaseException:
                self.state = State.FAILED
                self._release()
                raise
            if not is_launched:
                return runtime.submit(self, stream, order, place)
            self.state = _DONE
            self.used = place
            self.is_holding = False  # as `_release` does
            for view in self.moved:
                view.moved = None
            for view in self.lent:
                view.loans -= 1
        return self._args

    def _run(self, on: Execution) -> tuple[Any, ...]:
        queue, kernel = on.queue, self._kernel
        uses, early = kernel.uses(self._args, self._options)
        dependence = Dependence(early, kernel.waits) if self._dependent else None
        on.claim(Item(queue, self.name, self.place), uses, "kernel", is_launch=True, dependence=dependence)
        values = [launched(value) for value in self._args]
        options = {name: launched(value) for name, value in self._options.items()}
        kernel.launch(self.runtime.driver, queue, self._grid, values, options, self._dependent)
        self._release()
        return self._args


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
    frame = get_frame(1)  # as `caller` finds it: only users call this
    place = frame.f_code, frame.f_lasti
    return Launch(runtime or default(), kernel, grid, args, options, place, dependent)


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
    """Launch a verified kernel on a stream now: `launch(...).submit(stream)` in less of the host's time.

    Plain arrays among the arguments are taken from your own code each time: give handles instead.

    Raises:
        LaunchRefused: the kernel is not verified, or the launch breaks a condition of its proof.
        HostRefused: an argument was moved, or an access is not in order.
    """
    runtime, frame, ready = stream.runtime, get_frame(1), prepared(kernel)
    place = frame.f_code, frame.f_lasti  # as `caller` finds it: only users call this
    if dependent:
        ready.check_may_depend(args, options)
    if (order or runtime.order) == "refuse":
        with runtime.lock:
            if runtime.is_executing:
                runtime.enter(place)  # refuses
            if ready.fast_path(args, options).launch(stream, grid, args, options, place, None, dependent):
                return
    operation = Launch(runtime, kernel, grid, args, options, place, dependent)
    runtime.submit(operation, stream, order, place)


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
