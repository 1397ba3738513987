"""Running the examples of a module: on the GPU, or on the reference backend where there is none."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilecheck.example import Example
from tilecheck.jit.device import DeviceArray
from tilecheck.jit.launch import launch
from tilecheck.jit.modules import kernel_function
from tilecheck.jit.records import Record
from tilecheck.jit.reference import Launch
from tilecheck.jit.reference import run as interpret


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
    if on_gpu:
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


def _on_reference(record: Record, example: Example, names: list[str]) -> tuple[dict[str, Any], str]:
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in example.args]
    arguments = dict(zip(names, args, strict=True))
    x, y, z = (*example.grid, 1, 1)[:3]
    path = kernel_function(example.kernel).__code__.co_filename
    log = interpret(Launch(path, record.name, (x, y, z), arguments), record=False)
    problem = f"an access is undefined: {log.undefined[0]}" if log.undefined else ""
    return arguments, problem


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
