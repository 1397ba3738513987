"""Kernels as operations need them: which arguments a kernel reads and writes, and how it is launched."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from tilecheck.dataclass import dataclass
from tilecheck.errors import LaunchRefused
from tilecheck.host.driver import Driver
from tilecheck.host.memory.handles import View
from tilecheck.host.memory.partition import Partition
from tilecheck.host.memory.uses import Use, new_use
from tilecheck.host.operations.fast_path import FastPath, compile_fast_path
from tilecheck.host.streams.clocks import Queue
from tilecheck.jit.cubin import CompiledKernel
from tilecheck.jit.guard import Guard
from tilecheck.jit.launch import guard_of
from tilecheck.jit.records import Argument, Record
from tilecheck.jit.verified import Guarded, Verified

_REMEMBERED = 4096  # launches of one kernel that need no check again


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


class Prepared(ABC):
    """A kernel that was looked up: its roles by position, and how it is launched.

    `touching` are the positions that have a role, with it, and `others` those that have none.
    `passed` maps launches that need no check again to their grids. Mutable: `passed` grows.
    """

    __slots__ = (
        "_fast_paths", "_flags", "held", "name", "names", "others", "passed", "record", "roles", "touching",
        "waits",
    )  # fmt: skip

    may_depend = True
    remembers_any = False  # whether `passed` is of use

    def __init__(self, kernel: Any, record: Record) -> None:
        # Held weakly: the entry in `_prepared` would keep its own key alive.
        self.held: Callable[[], Any] = weakref.ref(kernel)
        self.record = record
        self.name = f"the launch of `{record.name}`"
        self.names = {argument.name: k for k, argument in enumerate(record.arguments)}
        self.roles = tuple(_role(record, argument) for argument in record.arguments)
        self.touching = tuple((at, role) for at, role in enumerate(self.roles) if role is not None)
        self.others = tuple(at for at, role in enumerate(self.roles) if role is None)
        self.waits = record.waits is not None and record.waits.always
        # What the record says of the wait holds where these are true.
        self._flags = tuple((name, self.names[name]) for name in (record.waits.needs if record.waits else ()))
        self.passed: dict[Any, tuple[int, ...]] = {}
        self._fast_paths: dict[Any, FastPath] = {}  # by the number of arguments and the names of options

    def role_of(self, name: str) -> Role | None:
        """The role of a parameter; None for a number, and for the name of an option."""
        at = self.names.get(name)
        return None if at is None else self.roles[at]

    def uses(self, args: Sequence[Any], options: Mapping[str, Any]) -> tuple[list[Use], list[Use]]:
        """The accesses of a launch, and those before its wait."""
        given = [(args[at], role) for at, role in self.touching if at < len(args)]
        given += [(value, role) for name, value in options.items() if (role := self.role_of(name)) is not None]
        uses, early = [], []
        for value, role in given:
            for view in (value,) if isinstance(value, View) else _views(value):
                region = view.hull() if role.reaches_gaps else view.region
                uses.append(new_use(view, region, role.writes, role.label))
                if role.is_early:
                    early.append(new_use(view, region, role.early_write, role.label))
        return uses, early

    def fast_path(self, args: Sequence[Any], options: Mapping[str, Any]) -> FastPath:
        """The fast path of launches with as many arguments, and options of the same names."""
        signature = (len(args), *options) if options else len(args)
        found = self._fast_paths.get(signature)
        if found is None:
            found = self._fast_paths[signature] = compile_fast_path(self, len(args), tuple(options))
        return found

    @abstractmethod
    def launch(
        self,
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        """Check a launch, and hand it to the driver.

        Raises:
            LaunchRefused: the launch breaks a condition of the proof.
        """

    def launch_again(
        self,
        driver: Driver,
        queue: Queue,
        grid: tuple[int, ...],
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        """Hand the driver a launch that is equal to one in `passed`."""
        raise NotImplementedError

    def remember(self, key: Any, grid: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Note a launch that has passed its check, if an equal one passes as well.

        `key` stands for the arrays and the numbers of the launch, none of which can change, and for its grid.
        """
        if {*map(type, grid)} == {int} and self._remembers(grid, args, options):
            if len(self.passed) >= _REMEMBERED:
                self.passed.clear()
            self.passed[key] = grid

    def _remembers(self, grid: tuple[int, ...], args: Sequence[Any], options: Mapping[str, Any]) -> bool:
        """Whether the check depends on the key and on nothing else."""
        return False

    def check_may_depend(self, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Check that the kernel can be launched so that it depends on the start of the launch before it.

        Raises:
            ValueError: it cannot, or not with these arguments.
        """
        if not self.may_depend:
            raise ValueError(f"{self.name} cannot depend on the launch before: it is launched from a cubin")
        for name, at in self._flags:
            if not (args[at] if at < len(args) else options.get(name)):
                raise ValueError(
                    f"{self.name} cannot depend on the launch before: it only waits where `{name}` is true"
                )

    def refuse_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options of a launch, which only kernels of Triton have.

        Raises:
            TypeError: there are some.
        """
        if options:
            raise TypeError(f"{self.name} takes no options: {', '.join(options)}")


def launched(value: Any) -> Any:
    """What a kernel is launched with for an argument."""
    if isinstance(value, View):
        return value.launched
    if isinstance(value, Partition):
        return value.whole.launched
    if isinstance(value, (tuple, list)) and any(isinstance(member, View) for member in value):
        return type(value)(launched(member) for member in value)
    return value


def _views(value: Any) -> Iterator[View]:
    """The handles that an argument stands for: one, those of a list, or none."""
    if isinstance(value, (tuple, list)):
        for member in value:
            yield from _views(member)
    elif value is not None:
        yield value.whole if isinstance(value, Partition) else value


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


class _Tile(Prepared):
    """A `ct.kernel`."""

    __slots__ = ("_guard", "_launch")

    remembers_any = True

    def __init__(self, kernel: Any, guard: Guard) -> None:
        super().__init__(kernel, guard.record)
        from cuda.tile import launch  # lazy: other kernels are launched without it

        self._guard = guard
        self._launch = launch

    def launch(
        self,
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        self.refuse_options(options)
        self._guard.check(grid, args)
        self.launch_again(driver, queue, grid, args, options, dependent)

    def launch_again(
        self,
        driver: Driver,
        queue: Queue,
        grid: tuple[int, ...],
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        if dependent:
            self._launch(queue.handle, grid, self.held(), tuple(args), programmatic_dependent_launch=True)
        else:
            self._launch(queue.handle, grid, self.held(), tuple(args))

    def _remembers(self, grid: tuple[int, ...], args: Sequence[Any], options: Mapping[str, Any]) -> bool:
        return self._guard.remembers(grid, args)


class _Triton(Prepared):
    """A kernel of Triton, which is launched on the stream of the user's own code."""

    __slots__ = ("_guarded",)

    remembers_any = True

    def __init__(self, kernel: Any, guarded: Guarded) -> None:
        super().__init__(kernel, guarded.record)
        self._guarded = guarded

    def launch(
        self,
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        if options.get("launch_pdl"):  # the launches after it count on its place in the order
            raise TypeError(f"{self.name}: give `dependent=True` in place of `launch_pdl`")
        start = self._guarded.launch_dependent if dependent else self._guarded.launch
        if driver.current() == queue.handle:
            start(self.held(), grid, args, options)
        else:
            with driver.using(queue.raw):
                start(self.held(), grid, args, options)

    def launch_again(
        self,
        driver: Driver,
        queue: Queue,
        grid: tuple[int, ...],
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        kernel = self.held()
        if kernel.pre_run_hooks:  # may change the arguments
            self.launch(driver, queue, grid, args, options, dependent)
            return
        if dependent:
            options = {**options, "launch_pdl": True}
        if driver.current() == queue.handle:
            kernel[grid](*args, **options)
        else:
            with driver.using(queue.raw):
                kernel[grid](*args, **options)

    def _remembers(self, grid: tuple[int, ...], args: Sequence[Any], options: Mapping[str, Any]) -> bool:
        return self._guarded.remembers(grid, args, options)


class _Cubin(Prepared):
    """A kernel of `tilecheck.load_kernels`."""

    __slots__ = ()

    may_depend = False

    def launch(
        self,
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        self.refuse_options(options)
        self.held().forward(queue.handle, grid, tuple(args))


class _Other(Prepared):
    """A kernel of any other origin."""

    __slots__ = ()

    def launch(
        self,
        driver: Driver,
        queue: Queue,
        grid: Any,
        args: Sequence[Any],
        options: Mapping[str, Any],
        dependent: bool,
    ) -> None:
        self.refuse_options(options)
        self.held().enqueue(queue.handle, grid, args, dependent=dependent)


_prepared: dict[int, tuple[weakref.ref[Any], Prepared]] = {}


def prepared(kernel: Any) -> Prepared:
    """The roles and the launcher of a kernel, found once.

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
    if isinstance(kernel, CompiledKernel):
        return _Cubin(kernel, _accepted(kernel.record))
    if hasattr(kernel, "_pyfunc"):
        return _Tile(kernel, guard_of(kernel))
    if isinstance(kernel, Verified):
        return _Triton(kernel.kernel, kernel.guarded)
    if isinstance(kernel, Kernel):
        return _Other(kernel, _accepted(kernel.record))
    return _Triton(kernel, Verified(kernel).guarded)  # refuses what is no kernel of Triton


def _accepted(record: Record) -> Record:
    if not record.is_accepted:
        raise LaunchRefused(f"`{record.name}` is not launched: its verdict is {record.verdict}", record.report)
    return record
