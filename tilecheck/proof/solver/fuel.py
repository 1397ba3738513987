"""What the replays of one kernel may cost, in statements that the reference backend runs: a count, so that the
answer never depends on the machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tilecheck.cancellation import checkpoint
from tilecheck.proof.solver.work import STATEMENT, Work

if TYPE_CHECKING:
    from tilecheck.reference import Launch, Log

_KERNEL = 60_000  # a counterexample and the launches that confirm it take a few thousand

LAUNCHES = 10_000  # for the launches that are seen, and again for those that bind one buffer twice


class OutOfFuel(Exception):
    """No statement may be run any more."""


@dataclass
class Fuel:
    """Mutable: it counts down."""

    left: int = _KERNEL
    work: Work = field(default_factory=Work)

    def run(self, launch: Launch) -> Log:
        """Run a launch, with what is left.

        Raises:
            OutOfFuel: the launch did not come to its end with what was left.
            ReplayError: as `run` does.
        """
        from tilecheck.reference import StepLimit  # lazy: loads NumPy

        if self.left <= 0:
            raise OutOfFuel
        steps = min(launch.max_steps, self.left)
        try:
            return self.charge(replace(launch, max_steps=steps))
        except StepLimit as error:
            if steps < launch.max_steps:
                raise OutOfFuel from error
            raise

    def charge(self, launch: Launch) -> Log:
        """Run a launch within its own limit; what is left may become negative.

        Raises:
            ReplayError: as `run` does.
        """
        from tilecheck.reference import ReplayError, run  # lazy: loads NumPy

        checkpoint()
        try:
            log = run(launch)
        except ReplayError as error:
            self._count(error.steps)
            raise
        self._count(log.steps)
        return log

    def _count(self, steps: int) -> None:
        self.left -= steps
        self.work.charge(STATEMENT * steps)
