"""Lazy operations: what is to be done, as a value. Nothing runs until a terminal is called."""

from __future__ import annotations

import enum
import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from tilecheck.host.errors import HostRefused
from tilecheck.host.memory.handles import Array, views_in
from tilecheck.host.places import Place, caller, text_of
from tilecheck.host.streams.clocks import Item, Mark, Queue

if TYPE_CHECKING:
    from tilecheck.host.graphs.graphs import Graph
    from tilecheck.host.graphs.owners import Owner
    from tilecheck.host.memory.uses import Dependence, Order, Use
    from tilecheck.host.runtime import Runtime
    from tilecheck.host.streams.streams import Stream

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class State(enum.Enum):
    """How far an operation has come. It runs at most once."""

    WAITING = "waits to run"
    RUNNING = "runs"
    GIVEN = "is part of another operation"
    DONE = "has run"
    FAILED = "has failed"
    CANCELLED = "was cancelled"


class Execution:
    """One run of an operation: all of it on one stream, so that its parts are in order."""

    __slots__ = ("graphs", "items", "order", "place", "queue", "runtime")

    def __init__(
        self, runtime: Runtime, queue: Queue, order: Order, place: Place, graphs: tuple[Owner, ...] = ()
    ) -> None:
        self.runtime = runtime
        self.queue = queue
        self.order = order
        self.place = place
        self.graphs = graphs  # those whose inputs it may write
        self.items: list[Item] = []  # what was enqueued

    def claim(
        self,
        item: Item,
        uses: Sequence[Use],
        kind: str,
        *,
        is_launch: bool = False,
        dependence: Dependence | None = None,
    ) -> None:
        """Give a piece of work its place in the order, and in the graph that is captured.

        Raises:
            HostRefused: an access is not in order.
        """
        queue = self.queue
        starts_early = self.runtime.ledger.claim(
            queue, uses, item, self.order, is_launch=is_launch, dependence=dependence, graphs=self.graphs
        )
        self.items.append(item)
        if queue.capture is not None:
            queue.capture.add(queue, item, uses, kind, starts_early=starts_early)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation behind the latest launches and updates of the graphs, as an update of them.

        Raises:
            HostRefused: an access is not in order.
        """
        for graph in self.graphs:
            graph.follow(self.queue)
        try:
            return operation.run(self)
        finally:
            if self.items:
                for graph in self.graphs:
                    graph.last = self.items[-1]


class Operation(ABC, Generic[T]):
    """What is to be done, and its result. Mutable: it is used up when it runs."""

    __slots__ = ("is_holding", "place", "runtime", "state", "used")

    def __init__(self, runtime: Runtime, place: Place) -> None:
        self.runtime = runtime
        self.place = place  # where it was made
        self.state = State.WAITING
        self.used: Place | None = None  # where it was run, or given to another operation
        self.is_holding = True  # whether it has the arrays that it was made with

    @abstractmethod
    def _run(self, on: Execution) -> T:
        """Enqueue it. What is refused leaves nothing enqueued."""

    def _release(self) -> None:
        """Give back the arrays that it holds."""

    def _take_again(self) -> None:
        """Take the arrays that it gave back when it was refused."""

    def run(self, on: Execution) -> T:
        """Run it once, as a whole or as a part of another operation."""
        if not self.is_holding:
            self._take_again()
        before, self.state = self.state, State.RUNNING
        try:
            value = self._run(on)
        except BaseException as error:
            # Where nothing of it was enqueued it may be tried again.
            is_whole = isinstance(error, HostRefused) and not error.partial
            self.state = before if is_whole else State.FAILED
            self._release()
            raise
        self.state = State.DONE
        return value

    def take(self, place: Place, state: State) -> None:
        """Use it up.

        Raises:
            HostRefused: it has been used already.
        """
        if self.state is not State.WAITING:
            where = f" at {text_of(self.used)}" if self.used is not None else ""
            raise HostRefused(
                "TC412",
                f"the operation made at {text_of(self.place)} is used twice: at {text_of(place)} it already "
                f"{self.state.value}{where}",
                "help: `shared()` makes an operation that runs once and may be used many times",
            )
        self.state = state
        self.used = place

    def cancel(self) -> None:
        """Give its arrays back without running it.

        Raises:
            HostRefused: it has been used already.
        """
        self.take(caller(), State.CANCELLED)
        self._release()

    # ---- building --------------------------------------------------------------------------------------------

    def then(self, make: Callable[[T], Operation[U]]) -> Operation[U]:
        """What `make` makes of the result, on the same stream, so behind what came before."""
        return Then(self, make, caller())

    def map(self, function: Callable[[T], U]) -> Operation[U]:
        """The result of a function of the result, which is called on the host when the work is enqueued."""
        return Map(self, function, caller())

    def shared(self) -> Operation[T]:
        """The same result for many: it runs once, and whoever asks later gets what it gave.

        A reader on another stream waits for its event. Arrays in the result are read-only from then on.
        """
        return Once(self, caller(), is_frozen=True)

    # ---- running ---------------------------------------------------------------------------------------------

    def submit(self, stream: Stream | None = None, *, order: Order | None = None) -> T:
        """Enqueue it and go on. The arrays of the result may be used at once: their use is checked.

        Args:
            stream: where; else what the policy says.
            order: "refuse" or "events"; else what the runtime says.

        Raises:
            HostRefused: an access is not in order with what is in flight. The operation may be tried again.
        """
        return self.runtime.submit(self, stream, order, caller())

    def sync(self, *, order: Order | None = None) -> T:
        """Run it on a stream of the policy, and wait for that."""
        return self.runtime.sync(self, None, order, caller())

    def sync_on(self, stream: Stream, *, order: Order | None = None) -> T:
        """Run it on a stream, and wait for that."""
        return self.runtime.sync(self, stream, order, caller())

    def __await__(self) -> Generator[Any, None, T]:
        """Enqueue it, and let other tasks run until it has ended."""
        from tilecheck.host.streams.waiting import completion  # lazy: asyncio is not needed without

        value, mark = self.runtime.start(self, caller())
        yield from completion(self.runtime, mark).__await__()
        return value

    def graph(self, stream: Stream | None = None) -> Graph[T]:
        """Capture it: the graph that does this when it is launched."""
        from tilecheck.host.graphs.capture import capture_operation  # lazy: graphs build on operations

        return capture_operation(self, stream, caller())


class _Sequence(Operation[T]):
    """Several operations on one stream. Parts that did not run give their arrays back if it fails."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[Operation[Any], ...], place: Place) -> None:
        super().__init__(parts[0].runtime, place)
        for part in parts:
            part.take(place, State.GIVEN)
        self._parts = list(parts)

    def _release(self) -> None:
        for part in self._parts:
            if part.state is State.GIVEN:
                part._release()  # noqa: SLF001 - an operation like this one

    def _after_the_first(self, step: Callable[[], U]) -> U:
        """Do a step behind which the operation cannot be tried again."""
        try:
            return step()
        except HostRefused as error:
            error.partial = True
            raise


class Then(_Sequence[U], Generic[T, U]):
    """One operation, and the one made of its result."""

    __slots__ = ("_make",)

    def __init__(self, first: Operation[T], make: Callable[[T], Operation[U]], place: Place) -> None:
        super().__init__((first,), place)
        self._make = make

    def _run(self, on: Execution) -> U:
        value: T = self._parts[0].run(on)

        def follow() -> U:
            following = self._make(value)
            if not isinstance(following, Operation):
                raise TypeError(f"`then` makes an operation, and got a {type(following).__name__}: see `map`")
            following.take(self.place, State.GIVEN)
            self._parts.append(following)
            return following.run(on)

        return self._after_the_first(follow)


class Map(_Sequence[U], Generic[T, U]):
    """An operation, and a function of its result."""

    __slots__ = ("_function",)

    def __init__(self, first: Operation[T], function: Callable[[T], U], place: Place) -> None:
        super().__init__((first,), place)
        self._function = function

    def _run(self, on: Execution) -> U:
        value: T = self._parts[0].run(on)
        return self._after_the_first(lambda: self._function(value))


class Zip(_Sequence[tuple[Any, ...]]):
    """Several operations, one after the other."""

    __slots__ = ()

    def _run(self, on: Execution) -> tuple[Any, ...]:
        first, *others = self._parts
        found = first.run(on)
        return (found, *(self._after_the_first(functools.partial(part.run, on)) for part in others))


class Value(Operation[T]):
    """A value that is there already."""

    __slots__ = ("_value",)

    def __init__(self, runtime: Runtime, value: T, place: Place) -> None:
        super().__init__(runtime, place)
        self._value = value

    def _run(self, on: Execution) -> T:
        return self._value


class Once(Operation[T]):
    """An operation that runs once, for whoever asks first. The others get its result, or its failure."""

    __slots__ = ("_is_frozen", "_mark", "_outcome", "_source")

    def __init__(self, source: Operation[T], place: Place, *, is_frozen: bool) -> None:
        super().__init__(source.runtime, place)
        source.take(place, State.GIVEN)
        self._source = source
        self._is_frozen = is_frozen  # whether arrays in the result are read-only from then on
        self._outcome: tuple[T] | BaseException | None = None
        self._mark: Mark | None = None

    def take(self, place: Place, state: State) -> None:
        """It may be used many times."""

    def run(self, on: Execution) -> T:
        if self._outcome is None:
            self._run_first(on)
        outcome = self._outcome
        if isinstance(outcome, BaseException):
            raise outcome.with_traceback(None)
        assert outcome is not None
        mark = self._mark
        assert mark is not None
        if mark.capture is on.queue.capture:
            on.runtime.ledger.order_after(on.queue, mark)
        elif mark.capture is not None:
            raise HostRefused(
                "TC426",
                f"the operation at {text_of(self.place)} ran while a graph was captured: it has no result yet",
                "help: launch the graph, and use its outputs",
            )
        return outcome[0]

    def _run(self, on: Execution) -> T:
        return self.run(on)

    def _run_first(self, on: Execution) -> None:
        if self.state is State.RUNNING:
            raise HostRefused("", f"the operation at {text_of(self.place)} needs its own result to run")
        self.state = State.RUNNING
        try:
            value = self._source.run(on)
            self._mark = on.runtime.ledger.mark(on.queue)
        except BaseException as error:
            self.state = State.FAILED
            self._outcome = error
            self._source._release()  # noqa: SLF001 - an operation like this one
            raise
        if self._is_frozen:
            for view in views_in(value):
                if isinstance(view, Array):
                    view.shared = ("`shared()`", self.place)
        self.state = State.DONE
        self._outcome = (value,)


class Part(Operation[T]):
    """One member of the result of an operation."""

    __slots__ = ("_index", "_whole")

    def __init__(self, whole: Once[Any], index: int, place: Place) -> None:
        super().__init__(whole.runtime, place)
        self._whole = whole
        self._index = index

    def _run(self, on: Execution) -> T:
        found: T = self._whole.run(on)[self._index]
        return found


# ---- combinators ---------------------------------------------------------------------------------------------


@overload
def zip(first: Operation[A], second: Operation[B], /) -> Operation[tuple[A, B]]: ...  # noqa: A001 - pipelines know it so
@overload
def zip(first: Operation[A], second: Operation[B], third: Operation[C], /) -> Operation[tuple[A, B, C]]: ...  # noqa: A001 - pipelines know it so
@overload
def zip(*operations: Operation[T]) -> Operation[tuple[T, ...]]: ...  # noqa: A001 - pipelines know it so
def zip(*operations: Operation[Any]) -> Operation[Any]:  # noqa: A001 - pipelines know it so
    """Several operations as one, on one stream, with all results.

    Raises:
        ValueError: there are none.
    """
    if not operations:
        raise ValueError("`zip` needs an operation")
    return Zip(operations, caller())


def first(operation: Operation[tuple[T, Any]] | Operation[tuple[T, Any, Any]]) -> Operation[T]:
    """The first member of the result."""
    take: Callable[[Any], T] = operator.itemgetter(0)
    return Map[Any, T](operation, take, caller())


@overload
def unzip(operation: Operation[tuple[A, B]], count: Literal[2] = 2, /) -> tuple[Operation[A], Operation[B]]: ...
@overload
def unzip(operation: Operation[Any], count: int, /) -> tuple[Operation[Any], ...]: ...
def unzip(operation: Operation[Any], count: int = 2, /) -> tuple[Operation[Any], ...]:
    """An operation for each member of the result. The operation itself runs once, with the first of them."""
    place = caller()
    whole = Once(operation, place, is_frozen=False)
    return tuple(Part(whole, index, place) for index in range(count))
