"""Host functions as plans: the steps that a host takes, and what each of them does to memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from soundness_host_kernels import Kernel

MAIN = "main"
WHOLE = (0, 4)  # parts of a buffer, in quarters


# ---- steps ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Allocate:
    """A local buffer, made by the text `made`, which writes it if it is `filled`. A ring has two rows."""

    buffer: str
    made: str
    stream: str = MAIN
    filled: bool = False
    pinned: bool = False
    ring: bool = False

    @property
    def buffers(self) -> tuple[str, ...]:
        return tuple(f"{self.buffer}[{row}]" for row in range(2)) if self.ring else (self.buffer,)


@dataclass(frozen=True)
class Part:
    """A buffer or a part of it."""

    buffer: str
    quarters: tuple[int, int] = WHOLE


@dataclass(frozen=True)
class Launch:
    """A kernel with one argument for each of its arrays. A `number` that is a name is a host variable."""

    kernel: Kernel
    arguments: tuple[Part, ...]
    stream: str = MAIN
    dependent: bool = False
    number: str = "2.0"


@dataclass(frozen=True)
class Update:
    """A method that changes a buffer in place: `copy_` from a source, or a text with numbers alone."""

    buffer: str
    method: str
    source: str = ""
    stream: str = MAIN
    asynchronous: bool = False


@dataclass(frozen=True)
class WaitStream:
    waiter: str
    waited: str


@dataclass(frozen=True)
class Record:
    event: str
    stream: str


@dataclass(frozen=True)
class WaitEvent:
    event: str
    stream: str


@dataclass(frozen=True)
class HostWait:
    """The host waits for a stream, an event, or, with neither, for the device."""

    stream: str = ""
    event: str = ""


@dataclass(frozen=True)
class HostTouch:
    """The host fills a pinned buffer, or reads it."""

    buffer: str
    write: bool


@dataclass(frozen=True)
class RecordStream:
    buffer: str
    stream: str


@dataclass(frozen=True)
class Delete:
    buffer: str


@dataclass(frozen=True)
class Capture:
    graph: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Replay:
    graph: str
    stream: str = MAIN


@dataclass(frozen=True)
class SetNumber:
    """A host variable gets a value."""

    name: str
    value: str


@dataclass(frozen=True)
class Rebind:
    """The name of a handed-in buffer is bound to another handed-in buffer."""

    buffer: str
    other: str


@dataclass(frozen=True)
class Keep:
    """The contents of a buffer go into a list of results: as a copy, or as the buffer itself."""

    results: str
    buffer: str
    copied: bool


@dataclass(frozen=True)
class Loop:
    """Rounds, counted by `i`. Buffers and events named `ring[i % 2]` are one of two by the round."""

    steps: tuple[Step, ...]


Step = (
    Allocate
    | Launch
    | Update
    | WaitStream
    | Record
    | WaitEvent
    | HostWait
    | HostTouch
    | RecordStream
    | Delete
    | Capture
    | Replay
    | SetNumber
    | Rebind
    | Keep
    | Loop
)


@dataclass(frozen=True)
class Plan:
    """One host function. `size` is how many elements its buffers have, None if it is up to the caller."""

    handed: tuple[str, ...]
    steps: tuple[Step, ...]
    returned: tuple[str, ...]  # buffers, and lists of results
    size: int | None = None


def all_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps, with those inside loops and captures."""
    for step in steps:
        yield step
        if isinstance(step, Loop | Capture):
            yield from all_steps(step.steps)


def in_round(name: str, number: int) -> str:
    """A member of a ring of two in one round."""
    return name.replace("[i % 2]", f"[{number % 2}]")


# ---- what work does ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    """What an item does to a part of a buffer. `early`: before the wait of its kernel."""

    buffer: str
    write: bool
    quarters: tuple[int, int] = WHOLE
    early: bool = False

    def meets(self, other: Use) -> bool:
        same = self.buffer == other.buffer and (self.write or other.write)
        return same and max(self.quarters[0], other.quarters[0]) < min(self.quarters[1], other.quarters[1])


def uses_of(step: Launch | Update, number: int) -> Iterator[Use]:
    """What a piece of work does in a round."""
    if isinstance(step, Update):
        yield Use(in_round(step.buffer, number), write=True)
        yield Use(in_round(step.source or step.buffer, number), write=False)
        return
    kernel = step.kernel
    for name, argument in zip(kernel.arrays, step.arguments, strict=True):
        buffer = in_round(argument.buffer, number)
        if name in kernel.does.inputs:
            yield Use(buffer, write=False, quarters=argument.quarters, early=name in kernel.early())
        if name == kernel.does.out:
            yield Use(buffer, write=True, quarters=argument.quarters)
