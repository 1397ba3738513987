"""The state of one launch while it runs: which block, which call, how many steps are left, and the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilecheck.reference.log import AccessRecord, Call, Log, StepLimit, UndefinedRecord

Rows = np.ndarray[Any, Any]


class Reject(Exception):
    """Something that is not interpretable, before its place is known; never leaves the package."""


class Abandoned(Exception):
    """The block did something after which nothing that it does has a meaning; it is run no further."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file the machine is: the byte range of the running operation and its line."""

    path: str
    start: int
    end: int
    line: int


@dataclass(slots=True)
class Machine:
    """One launch in progress. Mutable: blocks run one after another on it."""

    grid: tuple[int, int, int]
    steps: int
    log: Log = field(default_factory=Log)
    recording: bool = True  # whether accesses are logged
    idle: int = 0  # what undefined lanes hold
    idle_at: frozenset[Call] | None = None  # in which calls; None: in every one
    block: tuple[int, int, int] = (0, 0, 0)
    sequence: int = 0
    place: Place = Place("", 0, 0, 0)
    host: int = 0  # above 0 while module constants and the like are folded, in Python's own semantics
    call: Callable[[Any, Sequence[Any]], Any] = field(default=lambda function, arguments: None)

    def enter(self, block: tuple[int, int, int]) -> None:
        """Start another block."""
        self.block = block
        self.sequence = 0

    def step(self) -> None:
        """Count one statement or call."""
        self.steps -= 1
        if self.steps < 0:
            raise StepLimit(f"{self.place.path}:{self.place.line}: the kernel did not end within its steps")

    def access(
        self,
        array: Any,
        effect: str,
        elements: Rows,
        lanes: Rows,
        *,
        raw: bool = False,
        order: str = "WEAK",
        scope: str = "NONE",
    ) -> None:
        """Log one memory operation, also one that touched nothing."""
        if not self.recording:
            return
        place = self.place
        self.log.accesses.append(
            AccessRecord(
                array.name,
                array.member,
                effect,
                self.block,
                self.sequence,
                place.path,
                place.start,
                place.end,
                elements,
                lanes,
                raw,
                order,
                scope,
            )
        )
        self.sequence += 1

    def idle_value(self, array: str) -> int:
        """What the running load gives in the lanes that it leaves undefined, which is logged."""
        call = (self.place.path, self.place.start, self.place.end)
        self.log.idle[call] = array
        return self.idle if self.idle_at is None or call in self.idle_at else 0

    def undefined(
        self, kind: str, *, array: str = "", element: Sequence[int] | None = None, detail: str = ""
    ) -> None:
        """Log something undefined."""
        if self.host:
            return
        place = self.place
        where = None if element is None else tuple(int(coordinate) for coordinate in element)
        self.log.undefined.append(
            UndefinedRecord(kind, self.block, place.path, place.start, place.end, array, where, detail)
        )
