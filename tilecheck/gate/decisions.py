"""What was decided of one kernel, for others that ask the same.

Generators write many kernels that differ in their values, names and comments, and read and write memory alike.
They have the same IR but for the places in the text, and the same obligations. What was decided of one holds
for the other: the prover reads nothing else of a kernel until it looks for a counterexample, which runs the
text. So decisions are kept only of kernels that needed none. The prover starts afresh for each kernel and
counts its work, so the answer is the one that it would have given again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import field, replace

from tilecheck.cache.canonical import digest_of
from tilecheck.cache.keys import NoKey
from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr
from tilecheck.ir.kernel import Kernel
from tilecheck.model import Site
from tilecheck.proof.decide import Decision, Settled, as_decided, decide
from tilecheck.proof.obligation import Obligation
from tilecheck.proof.solver.work import Work

_KEPT = ("proved", "conditional", "trusted")
_MOST = 500  # decisions: the latest


@dataclass(frozen=True, slots=True)
class _Known:
    """A decision without the obligations that it settled, which stand in one text."""

    settled: tuple[tuple[str, str], ...]  # status and rung of each
    conditions: tuple[Expr, ...]
    spent: int
    work: int

    def of(self, obligations: Sequence[Obligation]) -> Decision:
        pairs = zip(obligations, self.settled, strict=True)
        settled = tuple(Settled(obligation, status, rung, 0.0) for obligation, (status, rung) in pairs)
        return Decision(settled, self.conditions, spent=self.spent, work=self.work)


@dataclass(slots=True)
class Decisions:
    """What was decided lately. Mutable: remembers and forgets."""

    _known: OrderedDict[str, _Known] = field(default_factory=OrderedDict)
    found: int = 0  # so many were known

    def decide(
        self,
        kernel: Kernel,
        obligations: Sequence[Obligation],
        path: str,
        *,
        without: frozenset[str],
        budget: int,
        work: Work,
    ) -> Decision:
        """What `proof.decide` says, from it or from memory."""
        try:
            key = _key(kernel, obligations, without, budget, work)
        except NoKey:
            return decide(kernel, obligations, path, without=without, budget=budget, work=work)
        known = self._known.get(key)
        if known is not None:
            self.found += 1
            self._known.move_to_end(key)
            work.spent = known.work
            return known.of(as_decided(kernel, obligations))
        decision = decide(kernel, obligations, path, without=without, budget=budget, work=work)
        if not decision.vacuous and all(s.status in _KEPT for s in decision.settled):
            settled = tuple((s.status, s.rung) for s in decision.settled)
            self._known[key] = _Known(settled, decision.conditions, decision.spent, decision.work)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return decision


def _key(
    kernel: Kernel, obligations: Sequence[Obligation], without: frozenset[str], budget: int, work: Work
) -> str:
    """All that a decision depends on, but for the text. Places are numbered as they come: the prover only asks
    whether two of them are the same.

    Raises:
        NoKey: there is none.
    """
    numbers: dict[Site, str] = {}

    def place(site: Site) -> str:
        return numbers.setdefault(site, str(len(numbers)))

    bare = replace(kernel, name="", files=())
    return digest_of((bare, tuple(obligations), without, budget, work.limit, work.spent), place)
