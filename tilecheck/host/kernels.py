"""Kernels as operations need them: which arguments a kernel reads and writes, and how it is enqueued."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tilecheck.errors import LaunchRefused
from tilecheck.host.clocks import Queue
from tilecheck.host.driver import Driver
from tilecheck.jit.cubin import CompiledKernel
from tilecheck.jit.launch import launch as launch_tile
from tilecheck.jit.launch import launch_dependent, record_of
from tilecheck.jit.records import Argument, Record
from tilecheck.jit.verified import Verified

Enqueue: TypeAlias = Callable[[Driver, Queue, Any, Sequence[Any], Mapping[str, Any], bool], None]


@runtime_checkable
class Kernel(Protocol):
    """A kernel of any origin with its record. It checks the conditions of the record itself."""

    record: Record

    def enqueue(self, stream: int, grid: Any, args: Sequence[Any], *, dependent: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Role:
    """What a kernel does with an array argument.

    `reaches_gaps`: offsets may reach what lies between its rows. `is_early` and `early_write`: whether it is
    touched, and written, before the kernel waits for the launch before its own.
    """

    label: str
    writes: bool
    reaches_gaps: bool
    is_early: bool
    early_write: bool


class Prepared:
    """A kernel that was looked up: its roles by position, and how it is enqueued."""

    __slots__ = ("enqueue", "may_depend", "name", "names", "record", "roles", "waits")

    def __init__(self, record: Record, enqueue: Enqueue, *, may_depend: bool = True) -> None:
        self.record = record
        self.enqueue = enqueue
        self.may_depend = may_depend
        self.name = f"the launch of `{record.name}`"
        self.names = {argument.name: k for k, argument in enumerate(record.arguments)}
        self.roles = tuple(_role(record, argument) for argument in record.arguments)
        self.waits = record.waits is not None and record.waits.always

    def check_may_depend(self) -> None:
        """Check that the kernel can be launched so that it depends on the start of the launch before it.

        Raises:
            ValueError: it cannot.
        """
        if not self.may_depend:
            raise ValueError(f"{self.name} cannot depend on the launch before: it is launched from a cubin")


def _role(record: Record, argument: Argument) -> Role | None:
    """The role of an argument; None if the kernel touches no memory through it."""
    if not argument.is_accessed:
        return None
    waits, name = record.waits, argument.name
    writes = argument.ownership == "mut"
    # Pointers of Triton, and arrays of cuTile that are accessed by offsets, are flat to the proof.
    flat = record.language == "triton" or any(f"numel({name})" in text for text in record.conditions)
    if waits is None:
        return Role(name, writes, flat, is_early=True, early_write=writes)
    early_write = name in waits.writes
    return Role(name, writes, flat, early_write or name in waits.reads, early_write)


_prepared: dict[int, tuple[weakref.ref[Any], Prepared]] = {}


def prepared(kernel: Any) -> Prepared:
    """What launches of a kernel need, found once.

    Raises:
        LaunchRefused: it is no kernel, or is not verified.
    """
    found = _prepared.get(id(kernel))
    if found is not None and found[0]() is kernel:
        return found[1]
    key = id(kernel)
    made = _prepare(kernel)
    _prepared[key] = (weakref.ref(kernel, lambda _: _prepared.pop(key, None)), made)
    return made


def _prepare(kernel: Any) -> Prepared:
    # Held weakly: the entry in `_prepared` would keep its own key alive.
    held: Callable[[], Any] = weakref.ref(kernel)
    if isinstance(kernel, CompiledKernel) or hasattr(kernel, "_pyfunc"):
        record = _accepted(record_of(kernel))
        return Prepared(record, _enqueue_tile(held), may_depend=not isinstance(kernel, CompiledKernel))
    if isinstance(kernel, Verified):
        return Prepared(_accepted(kernel.record), _enqueue_triton(held))
    if isinstance(kernel, Kernel):
        return Prepared(_accepted(kernel.record), _enqueue_other(held))
    record = _accepted(Verified(kernel).record)  # refuses what is no kernel of Triton
    return Prepared(record, _enqueue_triton(lambda: Verified(held())))


def _accepted(record: Record) -> Record:
    if not record.is_accepted:
        raise LaunchRefused(f"`{record.name}` is not launched: its verdict is {record.verdict}", record.report)
    return record


def _enqueue_tile(held: Callable[[], Any]) -> Enqueue:
    def enqueue(
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        if options:
            raise TypeError(f"a kernel of cuTile takes no options: {', '.join(options)}")
        (launch_dependent if dependent else launch_tile)(queue.handle, grid, held(), tuple(args))

    return enqueue


def _enqueue_triton(held: Callable[[], Verified]) -> Enqueue:
    def enqueue(
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        def start() -> None:
            if dependent:
                held().launch_dependent(grid, tuple(args), dict(options))
            else:
                held()[grid](*args, **options)

        if driver.current() == queue.handle:  # Triton launches on the stream of the user's own code
            start()
        else:
            with driver.using(queue.raw):
                start()

    return enqueue


def _enqueue_other(held: Callable[[], Kernel]) -> Enqueue:
    def enqueue(
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        if options:
            raise TypeError(f"this kernel takes no options: {', '.join(options)}")
        held().enqueue(queue.handle, grid, args, dependent=dependent)

    return enqueue
