"""What was found out about one set of premises, for all copies of them.

Many questions are asked of the same premises again: before and after a model is sought, once for each set of
launch conditions of which most say nothing of a goal, in each round of a search. A copy is told apart from the
others by what was done to it since it was the same as they were: each new atom, in order, and each fact or
inequality that it was told. So what is known of one copy is known of another in which all of that is the same,
and whatever a copy is told more has answers of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST = 50_000  # answers that are remembered


@dataclass
class Answers:
    """Mutable: it grows with every question, and numbers what is done to copies."""

    found: dict[object, bool] = field(default_factory=dict)
    _numbers: dict[tuple[int, object], int] = field(default_factory=dict)

    def after(self, number: int, change: object) -> int:
        """The number of what is made by a change of what has the number `number`."""
        return self._numbers.setdefault((number, change), len(self._numbers) + 1)

    def keep(self, question: object, answer: bool) -> None:
        if len(self.found) >= _MOST:
            self.found.clear()
        self.found[question] = answer
