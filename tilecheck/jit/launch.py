"""`tilecheck.launch`: forwards a launch that the kernel's verdict covers, and refuses every other."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from tilecheck.errors import LaunchRefused
from tilecheck.jit.compiler import GRANULE, stores_whole_pieces
from tilecheck.jit.contracts import limit_of
from tilecheck.jit.cubin import CompiledKernel
from tilecheck.jit.guard import Check, Guard, compile_guard
from tilecheck.jit.jitted import function_of, plain
from tilecheck.jit.records import Record
from tilecheck.jit.verdicts import record_for

_Forward = Callable[..., None]
_ready: weakref.WeakKeyDictionary[Any, _Forward] = weakref.WeakKeyDictionary()
# The checks of contracts too, for each limit that was asked for.
_with_contracts: weakref.WeakKeyDictionary[Any, dict[int, Check]] = weakref.WeakKeyDictionary()


def launch(
    stream: Any,
    grid: Any,
    kernel: Any,
    args: Any,
    /,
    *,
    programmatic_dependent_launch: bool = False,
    check_contracts: bool | int = False,
) -> None:
    """Launch a verified kernel, as `cuda.tile.launch` does.

    The first launch of a kernel finds its verdict: an emitted one (`use_verdicts`), else by verifying its file
    now, which takes a second or so. Every launch is then checked against the conditions of the verdict and the
    standing obligations.

    Args:
        stream: a CUDA stream: PyTorch's, or the handle as an integer.
        grid: the number of blocks along one to three axes.
        kernel: a `ct.kernel`, or a `CompiledKernel` of `tilecheck.load_kernels`.
        args: one value for each parameter. Arrays are PyTorch tensors or have `__cuda_array_interface__`.
        programmatic_dependent_launch: whether the kernel may start before the launch before it on the stream
            has ended. Every block has to wait for that one (`ct.grid_dependency_control_wait()`) before it
            touches memory.
        check_contracts: whether to hold the contracts on values in memory (`increasing(t)`, `distinct(t)`, ...)
            against the arrays. This waits until the device is idle and copies them to the host. Arrays of more
            than 65,536 elements are refused, unless the number that are allowed is given instead of True.

    Raises:
        LaunchRefused: the kernel is not verified, or this launch breaks a condition of its proof.
    """
    most = limit_of(check_contracts)
    if most is not None:
        _contracts_of(kernel, most)(grid, args)
    try:
        forward = _ready[kernel]
    except (KeyError, TypeError):
        forward = _prepare(kernel)
    if programmatic_dependent_launch:
        forward(stream, grid, args, dependent=True)
    else:
        forward(stream, grid, args)


def _prepare(kernel: Any) -> _Forward:
    """Find the verdict of a kernel and compile its guard, once."""
    is_compiled = isinstance(kernel, CompiledKernel)
    forward: _Forward = kernel.forward if is_compiled else _forwarding(kernel, guard_of(kernel))
    _ready[kernel] = forward
    return forward


def _contracts_of(kernel: Any, most: int) -> Check:
    try:
        return _with_contracts[kernel][most]
    except (KeyError, TypeError):
        is_compiled = isinstance(kernel, CompiledKernel)
        guard = compile_guard(kernel.record, most=most) if is_compiled else guard_of(kernel, most)
        check = guard.check
    _with_contracts.setdefault(kernel, {})[most] = check
    return check


def _forwarding(kernel: Any, guard: Guard) -> _Forward:
    from cuda.tile import launch as launch_tile  # lazy: a cubin is launched without it

    held = weakref.ref(kernel)  # strongly held, the entry of `_ready` would keep its own key alive
    check, record = guard.check, guard.record

    def forward(stream: Any, grid: Any, args: Any, *, dependent: bool = False) -> None:
        check(grid, args)
        if not dependent:
            launch_tile(stream, grid, held(), args)
            return
        if why := record.why_unordered(args):
            raise guard.refusal(f"`programmatic_dependent_launch=True`: {why}")
        launch_tile(stream, grid, held(), args, programmatic_dependent_launch=True)

    return forward


def _function_of(kernel: Any) -> types.FunctionType:
    function = getattr(kernel, "_pyfunc", None)
    if not isinstance(function, types.FunctionType):
        raise LaunchRefused(
            f"a {type(kernel).__name__} is no kernel: `ct.kernel` or a `CompiledKernel` is; "
            "`tilecheck.verified` launches Triton's"
        )
    return function


def guard_of(kernel: Any, most: int | None = None) -> Guard:
    """The guard of a `ct.kernel`'s launches, from its verdict; contracts too, of arrays of `most` elements.

    Raises:
        LaunchRefused: it has none, or is not verified.
    """
    function = _function_of(kernel)
    record = record_for(function)  # refuses a kernel with a free variable that is not bound yet
    _check_annotations(kernel, record)
    granule = GRANULE if stores_whole_pieces() else 1
    return compile_guard(record, captured(function), granule=granule, most=most)


def captured(function: types.FunctionType) -> dict[str, int]:
    """The integers that a kernel and the helpers beside it close over. No two of them have one name: the proof
    does not read a variable that another hides."""
    found: dict[str, int] = {}
    todo, seen = [function], {function}
    while todo:
        current = todo.pop()
        for name, cell in zip(current.__code__.co_freevars, current.__closure__ or (), strict=True):
            value = plain(cell.cell_contents)
            helper = function_of(value) or value
            if isinstance(value, int):
                found.setdefault(name, value)
            elif isinstance(helper, types.FunctionType) and helper not in seen:
                seen.add(helper)
                todo.append(helper)
    return found


def _check_annotations(kernel: Any, record: Record) -> None:
    """cuTile compiles for the annotations in memory, which no code object holds; the proof read the text's.

    Raises:
        LaunchRefused: they are not the same.
    """
    leaves = kernel._annotated_function.parameter_annotations  # noqa: SLF001 - cuTile has no public name for it
    for argument, leaf in zip(record.arguments, leaves, strict=True):
        constant = bool(getattr(leaf, "constant", False))
        arrays = (getattr(leaf, "array", None), getattr(getattr(leaf, "list", None), "element", None))
        widths = {str(getattr(array, "index_dtype", "")) for array in arrays}
        widths.add(str(getattr(getattr(leaf, "scalar", None), "dtype", "")))
        if argument.ownership == "unused" or (
            constant == (argument.ownership == "constant") and ("int64" in widths) == argument.wide
        ):
            continue
        raise LaunchRefused(
            f"`{record.name}` is not launched: `{argument.name}` is not annotated as its file says",
            f"   = {record.where}",
        )
