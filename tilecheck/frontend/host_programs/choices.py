"""All paths through a host function, each read from its start: a path is the list of choices made on it."""

from __future__ import annotations

from dataclasses import field

from tilecheck.dataclass import dataclass


@dataclass(slots=True)
class Choices:
    """The choices of one path: those of `planned` first, then the first way of each. Mutable."""

    planned: list[int] = field(default_factory=list)
    made: list[tuple[int, int]] = field(default_factory=list)  # which way, of how many

    def pick(self, ways: int) -> int:
        """One of `ways` ways to go on."""
        at = len(self.made)
        way = self.planned[at] if at < len(self.planned) else 0
        self.made.append((way, ways))
        return way

    def share_before(self) -> float:
        """How much of all paths lies before this one, if each way of a choice leads to as many."""
        share, width = 0.0, 1.0
        for way, ways in self.made:
            width /= ways
            share += way * width
        return share

    def next(self) -> Choices | None:
        """The choices of the next path; None behind the last one."""
        made = list(self.made)
        while made:
            way, ways = made.pop()
            if way + 1 < ways:
                return Choices([*(w for w, _ in made), way + 1])
        return None


class Undecided(Exception):
    """A choice where there is none to make."""


class NoChoices(Choices):
    """Asks what is decided already."""

    def pick(self, ways: int) -> int:
        """Raises: Undecided, whenever it is asked."""
        raise Undecided


class TooManyPaths(Exception):
    """There are more paths than it is worth to read."""
