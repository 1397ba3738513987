"""What a proof may assume about one kernel."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr
from tilecheck.ir.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Context:
    """The premises of every proof about `kernel`: its facts, its `requires`, and launch `conditions`.

    All are boolean expressions over launch values only (no block, loop, lane or opaque symbol).
    """

    kernel: Kernel
    conditions: tuple[Expr, ...] = ()

    @cached_property
    def uniform_facts(self) -> tuple[Expr, ...]:
        """Everything that holds for the launch as a whole."""
        required = tuple(r.condition for r in self.kernel.requires)
        return self.kernel.facts + required + self.conditions

    @cached_property
    def names(self) -> dict[Expr, Expr]:
        """For numbers of the launch that conditions say are equal to another one, which that is."""
        found: dict[Expr, Expr] = {}
        required = tuple(r.condition for r in self.kernel.requires)
        for condition in (*self.conditions, *required):
            if condition.op == "eq" and all(side.op == "sym" for side in condition.args):
                a, b = (found.get(side, side) for side in condition.args)
                if a is not b:
                    found = {name: a if other is b else other for name, other in found.items()} | {b: a}
        return found

    def under(self, *conditions: Expr) -> Context:
        """The same context with more launch conditions assumed."""
        return replace(self, conditions=self.conditions + conditions)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The ladder's answer: proved by `rung`, or open (`rung` is "none") with a reason word of `Reason`.

    `queries` are those that the solver refuted to prove it, where the session keeps them."""

    proved: bool
    rung: str
    time_ms: float
    reason: str = ""
    queries: tuple[str, ...] = ()
