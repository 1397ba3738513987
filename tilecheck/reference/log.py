"""What a run of the reference backend takes and what it reports. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Call = tuple[str, int, int]  # the file of a call, and its byte range in it


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: the kernel's file and name, the grid, and a value for every parameter.

    `arguments` maps a parameter to a numpy array (bind one array twice to model aliasing), a list of
    arrays, or a plain int, float, bool or str. A pointer of a Triton kernel is given as a flat array, its
    memory from the address on; a tensor descriptor as an array of its rank. `blocks` are the blocks to run,
    in that order (None: all of them, axis 0 fastest). `idle` is what the lanes hold that a load leaves
    undefined; with `idle_at` those of these loads alone, and others hold 0.
    """

    path: str
    kernel: str
    grid: tuple[int, int, int]
    arguments: Mapping[str, Any]
    blocks: Sequence[tuple[int, int, int]] | None = None
    max_steps: int = 200_000  # statements over all blocks; more ends the run with `StepLimit`
    idle: int = 0
    idle_at: frozenset[Call] | None = None


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """One executed memory operation of one block: only the elements that it really touched.

    `elements` has one row per touched element: its coordinates in the root array (for raw memory: one
    column, the offset in elements from the base pointer). Behind a Triton pointer the array is flat, and its
    one coordinate is that offset. `lanes` has the matching positions in the tile.
    `start` and `end` are the byte range of the call in `path`.
    """

    array: str
    member: int | None
    effect: str  # read | write | atomic
    block: tuple[int, int, int]
    sequence: int
    path: str
    start: int
    end: int
    elements: np.ndarray[Any, Any]
    lanes: np.ndarray[Any, Any]
    raw: bool = False
    order: str = "WEAK"
    scope: str = "NONE"


@dataclass(frozen=True, slots=True)
class UndefinedRecord:
    """Something undefined that a block did.

    `kind` is one of: tile-outside (a tile wholly outside its array), out-of-bounds (an unchecked access
    outside), divisor (a divisor that is not positive), slice (slice bounds), overflow (a 32-bit integer
    result that wrapped), duplicate (two lanes of one store hit one element), member (list index).
    """

    kind: str
    block: tuple[int, int, int]
    path: str
    start: int
    end: int
    array: str = ""
    element: tuple[int, ...] | None = None
    detail: str = ""


@dataclass(slots=True)
class Log:
    """Everything that one launch did. Mutable: it is filled while the launch runs.

    `idle` has the loads that left lanes undefined, each with its array.
    """

    accesses: list[AccessRecord] = field(default_factory=list)
    undefined: list[UndefinedRecord] = field(default_factory=list)
    idle: dict[Call, str] = field(default_factory=dict)
    steps: int = 0  # statements that were run


class ReplayError(Exception):
    """Base of the reference backend's own errors."""

    steps: int = 0  # statements that were run until then


class NotInterpretable(ReplayError):
    """The kernel uses something that this backend does not run."""


class StepLimit(ReplayError):
    """The kernel did not end within `Launch.max_steps`."""
