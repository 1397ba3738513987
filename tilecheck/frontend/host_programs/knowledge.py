"""What is learned of a function over its readings, and how the reading of a path ends."""

from __future__ import annotations

import re
from dataclasses import field
from math import lcm

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import TilecheckError
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.ir import host_program as H
from tilecheck.ir.expr import Expr
from tilecheck.model import Site


class Unread(TilecheckError):
    """Something that is not understood and may touch streams, graphs or memory in play."""

    def __init__(self, site: Site, why: str) -> None:
        super().__init__(why)
        self.site, self.why = site, why


class TooLong(TilecheckError):
    """Reading the function takes more steps than it is worth."""

    def __init__(self, site: Site, why: str) -> None:
        super().__init__(why)
        self.site, self.why = site, why


class PathEnds(TilecheckError):
    """The path ends in an exception, as far as the values on it are followed."""


class Raises(PathEnds):
    """The text raises here, or asserts what does not hold."""


class LoopsOn(TilecheckError):
    """The path goes on in a loop for ever; its further rounds do what is read already."""

    def __init__(self, node: cst.CSTNode) -> None:
        super().__init__("loops on")
        self.node = node


class Leaves(TilecheckError):
    """The code that runs is left for other code of the same path."""


class BreakLoop(Leaves):
    """`break`."""


class ContinueLoop(Leaves):
    """`continue`."""


class Returned(Leaves):
    """`return`."""

    def __init__(self, value: V.Value, node: cst.CSTNode) -> None:
        super().__init__("return")
        self.value, self.node = value, node


class Relearn(TilecheckError):
    """The function must be read again with what was learned on this path."""


_NUMBERED = re.compile(r" \(\d+\)|\[\d+\]")  # what tells the values of a variable apart


def family(memory: str) -> str:
    """The variable behind memory: all that it gets in the rounds of a loop lies alike."""
    return _NUMBERED.sub("", memory)


@dataclass(slots=True)
class Knowledge:
    """What earlier readings of a function learned for the next ones. Mutable: it only grows."""

    places: dict[str, H.Place] = field(default_factory=dict)  # of memory that the caller made
    on_device: set[str] = field(default_factory=set)  # variables whose memory work on the device uses
    tensors: set[Site] = field(default_factory=set)  # calls of unknown functions that give a tensor
    rounds: dict[Site, int] = field(default_factory=dict)  # that a loop needs at least
    periods: dict[Site, int] = field(default_factory=dict)  # after so many rounds a loop's bindings recur
    # Numbers of loops whose values recur, or do not after all.
    recurring: dict[Site, dict[tuple[int, str], bool]] = field(default_factory=dict)
    counting: set[str] = field(default_factory=set)  # fields of an object that count the calls of a method
    repeats: int = 2  # calls of a method that stand for any number of them
    counts: dict[Expr, tuple[int, int]] = field(default_factory=dict)  # rounds and period of loops of one count
    replaying: set[Site] = field(default_factory=set)  # loops in which a graph is replayed
    carried: dict[Site, dict[tuple[int, str], Expr | None]] = field(
        default_factory=dict
    )  # growth of numbers by round
    tensor_names: set[str] = field(default_factory=set)  # values of the caller that are tensors
    spread: set[str] = field(default_factory=set)  # memory of which rounds of loops touch unlike parts
    opaque: set[cst.CSTNode] = field(default_factory=set)  # functions that are not read where they are called
    joins: bool = False  # branches that use no streams are run both ways in one path
    reads_helpers: bool = True  # functions that use no streams are read where they are called
    steps: int = 0
    ended: str = ""  # why a path ended early, if the text does not say so
    guessed: set[str] = field(default_factory=set)  # values that may be tensors, as arithmetic leaves open
    numbers: set[str] = field(default_factory=set)  # those that are used as numbers
    shown: set[str] = field(default_factory=set)  # those that are used as tensors
    objects: set[str] = field(default_factory=set)  # values of code that is not in view, which are called
    items: set[tuple[Site, object]] = field(default_factory=set)  # that lists have, where they are asked for
    missing: dict[tuple[Site, object], str] = field(default_factory=dict)  # those that a list has not

    def for_other_calls(self) -> Knowledge:
        """What holds for other calls of the same functions, too: it speaks of their text, not of values."""
        return Knowledge(tensors=self.tensors, rounds=self.rounds, periods=self.periods, opaque=self.opaque)

    def learn_period(self, loop: Site, period: int) -> None:
        """Raises: Relearn, if the loop is not read for this period yet."""
        known = self.periods.get(loop, 1)
        if lcm(known, period) != known:
            self.periods[loop] = lcm(known, period)
            raise Relearn

    def learn_rounds(self, loop: Site, rounds: int) -> None:
        """Raises: Relearn, if the loop is not read for so many rounds yet."""
        if self.rounds.get(loop, 0) < rounds:
            self.rounds[loop] = rounds
            raise Relearn

    def place_of(self, memory: str) -> H.Place:
        """Where memory of the caller lies."""
        return self.places.get(family(memory), H.Place.DEVICE)

    def learn_place(self, memory: str, place: H.Place) -> None:
        """Raises: Relearn, if it was taken to lie elsewhere."""
        if self.place_of(memory) is not place:
            self.places[family(memory)] = place
            raise Relearn


@dataclass(slots=True)
class Loop:
    """A loop that is running. `births` are the names given in it, with their rounds and their order, and `tail`
    is the first of the rounds that are read at its end, if their number is known."""

    site: Site
    name: str
    round: int = 0
    births: dict[str, tuple[int, int]] = field(default_factory=dict)
    tail: int | None = None
    items: dict[str, int] = field(
        default_factory=dict
    )  # what it met in which round in a list that stands for more
    count: int | None = None  # the rounds that are read, where their number is chosen
    number: Expr | None = None  # which they stand for
    behind: int = 0  # rounds at the end that conditions tell from the others


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a part of an axis starts in round 0 of a loop, and how far it moves in each round."""

    loop: Site | None
    slope: Expr
    start: Expr


@dataclass(slots=True)
class OpenCapture:
    """A capture that is running; `pool` is the graph in whose pool it allocates."""

    graph: str
    stream: str
    pool: str
    loops: tuple[Site, ...]
