"""The one door to z3: a context per kernel, SMT-LIB text in, an answer out.

z3 is imported when the first query runs, so a kernel that the cheap rungs prove never pays for it. Limits
are resource counts (`rlimit`), never wall-clock time: the same text gets the same answer on a busy machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tilecheck.cancellation import checkpoint, interruptible
from tilecheck.garbage import keep_freed
from tilecheck.proof.premises.shared import KnownPremises
from tilecheck.proof.solver.fuel import Fuel
from tilecheck.proof.solver.interrupts import (
    deferred_interrupts,
    given_up_by_interrupts,
    is_interrupted,
    stop_watching,
)
from tilecheck.proof.solver.known_models import Recall
from tilecheck.proof.solver.work import CHARACTER, QUERY, Work

_DEFINED = re.compile(r"\(define-fun (\w+) \(\) \w+\s+(\(- )?(\w+)")

_GUESSES = 4  # one in so many must find something

Status = Literal["unsat", "sat", "unknown"]
DEFAULT_BUDGET = 3_000_000  # resource units of z3 for one question; most need a few thousand


def load_solver() -> None:
    """Import z3 now, where somebody would notice waiting for it at the first question."""
    import z3  # noqa: F401  # lazy: what the cheap rungs prove needs no solver


@dataclass
class Session:
    """The solver state of one kernel: a z3 context of its own, and the answers given so far.

    Mutable because it counts and remembers. A fresh context per kernel keeps answers independent of what
    was verified before it in the same process. `budget` is for one question; `checks` and `spent` say what
    the kernel cost. Close it when the kernel is done (`contextlib.closing`). With `keep`, answers carry the
    queries that the solver refuted. `fuel` is for replays, `work` counts all that is done.
    """

    budget: int = DEFAULT_BUDGET
    keep: bool = False
    checks: int = 0
    spent: int = 0
    guesses: int = 0  # quick searches for a model
    guessed: int = 0  # those that found one
    answers: dict[object, Any] = field(default_factory=dict)
    models: Recall = field(init=False)
    premises: KnownPremises = field(init=False)
    fuel: Fuel = field(default_factory=Fuel)
    work: Work = field(default_factory=Work)
    _context: Any = None

    def __post_init__(self) -> None:
        self.models = Recall(self.work)
        self.premises = KnownPremises(self.work)
        self.fuel.work = self.work

    def close(self) -> None:
        """Let go of the context, where no interrupt can land in the middle of it."""
        with deferred_interrupts():
            self._context = None
            stop_watching()

    def query(self, text: str) -> Query:
        """A solver that holds `text`."""
        checkpoint()
        if is_interrupted():  # a text can be long: reading it would keep Ctrl-C waiting
            raise KeyboardInterrupt
        import z3  # lazy: what the cheap rungs prove needs no solver

        if self._context is None:
            keep_freed()
            self._context = z3.Context()
        # SimpleSolver, not Solver: choosing a tactic costs more than these queries do.
        solver = z3.SimpleSolver(ctx=self._context)
        # With its own handler z3 would swallow Ctrl-C and answer "canceled", as it does for a spent budget.
        # Without it the interrupt reaches Python, where `deferred_interrupts` holds it until the question ends.
        solver.set("ctrl_c", False)
        # Groebner bases cost much and are not counted well by the limit; no pattern needs them.
        solver.set("arith.nl.grobner", False)
        solver.from_string(text)
        self.work.charge(CHARACTER * len(text))
        return Query(self, solver)

    @property
    def guesses_pay(self) -> bool:
        """Whether a model is to be looked for before a proof: not where the last questions had none."""
        return self.guesses < _GUESSES or self.guessed * _GUESSES >= self.guesses

    def note(self, spent: int) -> None:
        self.checks += 1
        self.work.charge(QUERY + max(0, spent - self.spent))
        self.spent = max(self.spent, spent)


@dataclass
class Query:
    """One solver with its assertions; more can be tried on it without asserting the rest again."""

    session: Session
    _solver: Any
    _model: Any = None

    def check(self, budget: int, also: str = "") -> Status:
        """Decide the assertions, together with the SMT-LIB text `also` (which may not declare anything),
        with at most `budget` resource units."""
        import z3  # lazy: what the cheap rungs prove needs no solver

        if is_interrupted():
            return "unknown"
        self._solver.set("rlimit", max(1, budget))  # 0 would mean no limit
        if also:
            self._solver.push()
            self._solver.from_string(also)
        with interruptible(self._solver.ctx.interrupt), given_up_by_interrupts(self._solver.ctx.interrupt):
            answer = self._solver.check()
        self.session.note(self._spent())
        self._model = self._solver.model() if answer == z3.sat else None
        if also:
            self._solver.pop()
        if answer == z3.unsat:
            return "unsat"
        return "sat" if answer == z3.sat else "unknown"

    def core(self, budget: int, names: Sequence[str]) -> frozenset[str] | None:
        """Names of boolean constants that cannot all be true, if the solver finds that so."""
        import z3  # lazy: as above

        if is_interrupted():
            return None
        self._solver.set("rlimit", max(1, budget))
        with interruptible(self._solver.ctx.interrupt), given_up_by_interrupts(self._solver.ctx.interrupt):
            answer = self._solver.check(*(z3.Bool(name, self._solver.ctx) for name in names))
        self.session.note(self._spent())
        return frozenset(map(str, self._solver.unsat_core())) if answer == z3.unsat else None

    def values(self) -> Iterator[tuple[str, int | bool]]:
        """The constants that the model of the last satisfiable check fixes."""
        text = "" if self._model is None else self._model.sexpr()  # one call, where reading each takes ten
        for name, negative, value in _DEFINED.findall(text):
            if value in ("true", "false"):
                yield name, value == "true"
            else:
                yield name, -int(value) if negative else int(value)

    def _spent(self) -> int:
        """What the context has spent so far."""
        statistics = self._solver.statistics()
        for index in reversed(range(len(statistics))):
            name, value = statistics[index]
            if name == "rlimit count":
                return int(value)
        return 0
