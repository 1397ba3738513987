"""What was worked out from the premises of a kernel, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilecheck.ir.expr import Expr
from tilecheck.proof.premises.guarded_contracts import about_ends, learn_ends, learn_guarded
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rewrite.covers import Covers
from tilecheck.proof.solver.work import ATOM, FORM, Work

_KNOWN = 200  # sets of premises that are remembered


@dataclass
class KnownPremises:
    """What was worked out for one kernel, by assertions. Each caller gets a copy, so that no question leaves
    anything behind for another. Mutable: it remembers."""

    work: Work = field(default_factory=Work)
    covers: Covers = field(default_factory=Covers)
    _known: dict[tuple[Expr, ...], Premises] = field(default_factory=dict)
    _ends: dict[tuple[Expr, ...], dict[Expr, Expr]] = field(default_factory=dict)

    def of(self, assertions: Sequence[Expr]) -> Premises:
        wanted = tuple(assertions)
        found = self._known.get(wanted)
        if found is None:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            found = self._known[wanted] = Premises.of(wanted)
            found.work = self.work
            self.work.charge(FORM * len(found.facts))
            for fact, told in self._told(wanted).items():
                found.alternatives[fact] = (told,)
                found.assume(told)
            learn_guarded(found)
        self.work.charge(ATOM * (len(found.forms.atoms) + len(found.inequalities)))
        return found.copy()

    def _told(self, assertions: tuple[Expr, ...]) -> dict[Expr, Expr]:
        """What searches tell of their ends by the assertions that speak of these, the same for many goals."""
        near = about_ends(assertions)
        if near not in self._ends:
            if len(self._ends) >= _KNOWN:
                self._ends.clear()
            premises = Premises.of(near)
            premises.work = self.work
            self.work.charge(FORM * len(premises.facts))
            self._ends[near] = learn_ends(premises) if near else {}
        return self._ends[near]
