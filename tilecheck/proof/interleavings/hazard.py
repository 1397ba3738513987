"""What the oracle answers: two actions that collide, and the steps of the machine that make them collide."""

from __future__ import annotations

import enum

from tilecheck.dataclass import dataclass

BEFORE = -1  # the index of the caller's own work before the first action

Path = tuple[int, ...]


class Verb(enum.Enum):
    """One step of the machine."""

    HOST = "host"  # the host does an action
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Step:
    """A step, and the action that it belongs to: of a replayed graph, the replay and the captured action."""

    verb: Verb
    path: Path

    def __str__(self) -> str:
        return f"{self.verb.value} {' in '.join(map(str, reversed(self.path)))}"


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two actions of a program that may collide.

    `first` and `second` are indices of actions, the smaller one first: -1 is the caller's work before the
    program, the number of actions its work after it. `memory` names the memory, or the graph, variable or
    kept result where the hazard is of none. `element` is one element that both touch, if its position is
    known. `exact` is false where a region that may reach less than it says has part in it. `schedule` leads
    to the moment; it holds no step that could be left out.
    """

    code: str
    first: int
    second: int
    memory: str
    element: tuple[int, ...] | None = None
    exact: bool = True
    schedule: tuple[Step, ...] = ()

    @property
    def key(self) -> tuple[str, int, int, str]:
        """What makes it a hazard of its own."""
        return self.code, self.first, self.second, self.memory
