"""Examples: launches with real values that a kernel module offers to `tilecheck run` and `tilecheck compile`.

A module offers them in a function `examples()` that takes nothing and yields `Example`s, at least one for each
of its kernels. `run` executes them; `compile` takes the element types, ranks and compile-time constants from
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    """One launch of `kernel`, and what it must leave in memory.

    Args:
        kernel: the kernel object, as the module defines it.
        grid: the number of blocks along each axis.
        args: NumPy arrays and numbers in the order of the kernel's parameters. A run works on copies.
        expected: the contents of the written arrays after the launch, by parameter name.
        tolerance: how far an element may lie off, relative to `max(1, abs(expected))`; 0 demands equality.
    """

    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    expected: Mapping[str, Any]
    tolerance: float = 0.0
