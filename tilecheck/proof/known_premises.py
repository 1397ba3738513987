"""What was worked out from the premises of a kernel, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilecheck.ir.expr import Expr
from tilecheck.proof.covers import Covers
from tilecheck.proof.guarded import learn_guarded
from tilecheck.proof.premises import Premises
from tilecheck.proof.work import ATOM, FORM, Work

_KNOWN = 200  # sets of premises that are remembered


@dataclass
class KnownPremises:
    """What was worked out for one kernel, by assertions. Each caller gets a copy, so that no question leaves
    anything behind for another. Mutable: it remembers."""

    work: Work = field(default_factory=Work)
    covers: Covers = field(default_factory=Covers)
    _known: dict[tuple[Expr, ...], Premises] = field(default_factory=dict)

    def of(self, assertions: Sequence[Expr]) -> Premises:
        wanted = tuple(assertions)
        found = self._known.get(wanted)
        if found is None:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            found = self._known[wanted] = Premises.of(wanted)
            found.work = self.work
            self.work.charge(FORM * len(found.facts))
            learn_guarded(found)
        self.work.charge(ATOM * (len(found.forms.atoms) + len(found.inequalities)))
        return found.copy()
