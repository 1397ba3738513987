"""What the analysis of one kernel may cost.

Work is counted in units of about the time of one resource unit of the solver (an eighth of a microsecond on the
machine where the weights were measured): what the solver spends itself, the questions that are written for it,
and what the rungs without a solver do. All of it are counts, so that the answer never depends on the machine.
When a kernel's work is done, whatever is not settled stays undecided: that never turns anything into a proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# Found by a fit to the processor time of 55 published kernels.
QUERY = 15_000  # one check of the solver, besides what it counts itself
CHARACTER = 2  # of the text of a query
ATOM = 100  # an atom or inequality of premises that are copied
FORM = 150  # a premise that is brought into canonical form
NODE = 100  # a remainder that the search for a sum looks at
TERM = 25  # of such a remainder
EVALUATION = 60  # of an assertion under an assignment
STATEMENT = 300  # that is replayed
OBLIGATION = 3_000  # that is brought into the form in which it is decided

# In budgets of one question. Most kernels that are decided need less than 4; to find that no conditions save a
# race may take 10. What the kernel needs is asked of each launch, in the host's values.
_KERNEL = 16
_LAUNCHES = 6
_LAUNCH = 3  # for each launch, if there are many
_MANY = 36  # for many launches


@dataclass
class Work:
    """Mutable: it counts. Without a limit nothing ends it."""

    limit: int | None = None
    spent: int = 0

    @classmethod
    def of_kernel(cls, budget: int) -> Work:
        """For deciding one kernel."""
        return cls(_KERNEL * budget)

    @staticmethod
    def of_launches(budget: int, count: int) -> int:
        """The units for what so many launches make of a decision."""
        return max(_LAUNCHES, min(_MANY, _LAUNCH * count)) * budget

    @property
    def most_obligations(self) -> int | None:
        """How many obligations are decided at all, whatever was spent before; None: any number."""
        return None if self.limit is None else self.limit // OBLIGATION

    def charge(self, units: int) -> None:
        self.spent += units

    @contextmanager
    def limited(self, units: int) -> Iterator[None]:
        """Allow so much for a while, whatever was spent and may be spent after it."""
        limit = self.limit
        self.limit = self.spent + units
        try:
            yield
        finally:
            self.limit = limit

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and self.spent > self.limit
