"""Running the examples of a module: on the GPU, or on the reference backend where there is none."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.errors import UsageError
from tilecheck.example import Example
from tilecheck.jit.device import DeviceArray
from tilecheck.jit.launch import launch
from tilecheck.jit.layouts import Layout
from tilecheck.jit.modules import kernel_function
from tilecheck.jit.records import Record
from tilecheck.jit.verified import verified
from tilecheck.reference import Launch
from tilecheck.reference import run as interpret


@dataclass(frozen=True, slots=True)
class Ran:
    """One example that ran: how far the arrays lie from what was expected, relative to `max(1, abs(expected))`.

    `problem` says what is wrong, or is empty.
    """

    record: Record
    grid: tuple[int, ...]
    seconds: float
    error: float
    problem: str


def run_example(record: Record, example: Example, *, on_gpu: bool) -> Ran:
    """Run one example on copies of its arrays and compare.

    Raises:
        LaunchRefused: the guard refuses the launch (on the GPU).
        ReplayError: the reference backend does not interpret the kernel.
    """
    start = time.perf_counter()
    names = [a.name for a in record.arguments]
    if on_gpu and record.language == "triton":
        found, problem = _with_torch(example, names), ""
    elif on_gpu:
        found, problem = _on_gpu(example, names), ""
    else:
        found, problem = _on_reference(record, example, names)
    seconds = time.perf_counter() - start
    error = 0.0
    for name, expected in example.expected.items():
        if name not in found:
            return Ran(
                record, example.grid, seconds, error, f"it expects contents of `{name}`, which is no array"
            )
        off = _distance(found[name], np.asarray(expected))
        error = max(error, off)
        if not off <= example.tolerance and not problem:
            problem = f"`{name}` is {off:.3g} off, where {example.tolerance:.3g} is allowed"
    return Ran(record, example.grid, seconds, error, problem)


def _on_gpu(example: Example, names: list[str]) -> dict[str, Any]:
    args = tuple(DeviceArray(a) if isinstance(a, np.ndarray) else a for a in example.args)
    launch(0, example.grid, example.kernel, args)
    return {n: a.download() for n, a in zip(names, args, strict=True) if isinstance(a, DeviceArray)}


def _with_torch(example: Example, names: list[str]) -> dict[str, Any]:
    """Triton takes its streams, and all that is a tensor to it, from PyTorch."""
    try:
        import torch  # lazy: only where Triton runs
    except ImportError:
        raise UsageError("Triton kernels run with PyTorch, which is not installed") from None

    args = []
    for value in example.args:
        if isinstance(value, np.ndarray):
            host = torch.as_tensor(value)
            made = torch.empty_strided(host.shape, host.stride(), dtype=host.dtype, device="cuda")
            args.append(made.copy_(host))
        else:
            args.append(value)
    verified(example.kernel)[example.grid](*args)
    return {
        n: a.cpu().numpy()
        for n, a, value in zip(names, args, example.args, strict=True)
        if isinstance(value, np.ndarray)
    }


def _on_reference(record: Record, example: Example, names: list[str]) -> tuple[dict[str, Any], str]:
    flat = record.language == "triton"  # whose pointers are arrays of one axis
    copies = [_copied(a, flat=flat) if isinstance(a, np.ndarray) else (a, a) for a in example.args]
    arguments = {name: given for name, (given, _) in zip(names, copies, strict=True)}
    x, y, z = (*example.grid, 1, 1)[:3]
    path = kernel_function(example.kernel).__code__.co_filename
    log = interpret(Launch(path, record.name, (x, y, z), arguments), record=False)
    problem = f"an access is undefined: {log.undefined[0]}" if log.undefined else ""
    return {name: seen for name, (_, seen) in zip(names, copies, strict=True)}, problem


def _copied(value: np.ndarray[Any, Any], *, flat: bool) -> tuple[Any, Any]:
    """A copy of an array, and a view of the copy that has the array's shape.

    A flat copy holds the gaps between rows too, so that strides mean in it what they mean in the array.
    """
    if not flat:
        copy = value.copy()
        return copy, copy
    strides = tuple(step // value.itemsize for step in value.strides)
    buffer = np.zeros(Layout(value.shape, strides, value.itemsize).reach, value.dtype)
    view: np.ndarray[Any, Any] = np.ndarray(value.shape, value.dtype, buffer=buffer, strides=value.strides)
    view[...] = value
    return buffer, view


def _distance(found: Any, expected: Any) -> float:
    """The largest `abs(found - expected) / max(1, abs(expected))`; equal infinities and NaNs are 0 apart."""
    if found.shape != expected.shape:
        return float("inf")
    if found.size == 0:
        return 0.0
    with np.errstate(all="ignore"):
        one, other = found.astype(np.float64), expected.astype(np.float64)
        off = np.abs(one - other) / np.maximum(1, np.abs(other))
    off[(one == other) | (np.isnan(one) & np.isnan(other))] = 0
    return float("inf") if np.isnan(off).any() else float(off.max())
