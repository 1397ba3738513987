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
from tilecheck.jit.launch import forwarding_of, record_of
from tilecheck.jit.records import Argument, Record
from tilecheck.jit.verified import Guarded, Verified

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
    """A kernel that was looked up: its roles by position, and how it is enqueued.

    `touching` are the positions that have a role, with it, and `others` those that have none.
    """

    __slots__ = ("enqueue", "may_depend", "name", "names", "others", "record", "roles", "touching", "waits")

    def __init__(self, record: Record, enqueue: Enqueue, *, may_depend: bool = True) -> None:
        self.record = record
        self.enqueue = enqueue
        self.may_depend = may_depend
        self.name = f"the launch of `{record.name}`"
        self.names = {argument.name: k for k, argument in enumerate(record.arguments)}
        self.roles = tuple(_role(record, argument) for argument in record.arguments)
        self.touching = tuple((at, role) for at, role in enumerate(self.roles) if role is not None)
        self.others = tuple(at for at, role in enumerate(self.roles) if role is None)
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
    if isinstance(kernel, CompiledKernel):
        return Prepared(_accepted(kernel.record), _enqueue_cubin(held), may_depend=False)
    if hasattr(kernel, "_pyfunc"):
        return Prepared(_accepted(record_of(kernel)), _enqueue_tile(held))
    if isinstance(kernel, Verified):
        return _prepare_triton(kernel)
    if isinstance(kernel, Kernel):
        return Prepared(_accepted(kernel.record), _enqueue_other(held))
    return _prepare_triton(Verified(kernel))  # refuses what is no kernel of Triton


def _prepare_triton(kernel: Verified) -> Prepared:
    guarded = kernel.guarded
    return Prepared(_accepted(guarded.record), _enqueue_triton(weakref.ref(kernel.kernel), guarded))


def _accepted(record: Record) -> Record:
    if not record.is_accepted:
        raise LaunchRefused(f"`{record.name}` is not launched: its verdict is {record.verdict}", record.report)
    return record


def _enqueue_cubin(held: Callable[[], CompiledKernel]) -> Enqueue:
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
        held().forward(queue.handle, grid, tuple(args))

    return enqueue


def _enqueue_tile(held: Callable[[], Any]) -> Enqueue:
    forward: Callable[..., None] | None = None

    def enqueue(
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        nonlocal forward
        if options:
            raise TypeError(f"a kernel of cuTile takes no options: {', '.join(options)}")
        forward = forward or forwarding_of(held())  # late: it needs cuTile's launcher
        if dependent:
            forward(queue.handle, grid, tuple(args), programmatic_dependent_launch=True)
        else:
            forward(queue.handle, grid, tuple(args))

    return enqueue


def _enqueue_triton(held: Callable[[], Any], guarded: Guarded) -> Enqueue:
    plain, depending = guarded.launch, guarded.launch_dependent

    def enqueue(
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        start = depending if dependent else plain
        if driver.current() == queue.handle:  # Triton launches on the stream of the user's own code
            start(held(), grid, args, options)
        else:
            with driver.using(queue.raw):
                start(held(), grid, args, options)

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
