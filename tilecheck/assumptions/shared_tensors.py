"""Launches that pass one tensor for two parameters, one of which the kernel writes.

What is proved of a kernel says nothing of them: it takes its arrays to be apart (S1). So the kernel is read
and decided once more with one array behind both parameters, as if its author had written one for both: no two
programs may meet in it. A Triton program itself does its accesses in the order of its text, whatever parameter
they go through; which of its threads does what, and so whether one waits for another, is left to the caller.
A kernel of cuTile is compiled on the promise that its arrays are apart, and nothing takes the place of that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.analysis.borrow import tensors
from tilecheck.errors import UnsupportedConstruct
from tilecheck.findings.wording import in_words_of
from tilecheck.ir.expr import Expr, negate, symbols
from tilecheck.ir.kernel import Effect, Ownership
from tilecheck.proof.conditions.abduction import condition_text
from tilecheck.proof.launches.judge import judge_of
from tilecheck.proof.launches.visible import Judges
from tilecheck.proof.obligation import Between, Disjoint, Obligation, Ordered
from tilecheck.proof.solver.work import Work

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import Alias
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.ir.kernel import Kernel
    from tilecheck.options import Options
    from tilecheck.proof.decide import Decision

_SHARE = 2  # it may take one part in so many of what a kernel may
_Constants = tuple[tuple[str, int | bool], ...]


class InPlace:
    """One kernel, and what is decided of it with one array behind two of its parameters. Mutable: it
    remembers."""

    def __init__(
        self, definition: Definition, kernel: Kernel, decision: Decision, judges: Judges, options: Options
    ) -> None:
        self._definition = definition
        self._kernel = kernel
        self._conditions = decision.conditions
        self._judges = judges
        self._options = options
        self._known: dict[tuple[str, str, _Constants], tuple[Kernel, Decision] | None] = {}

    def is_harmless(self, alias: Alias) -> bool:
        """Whether it is proved that no program of the launch meets another one in the tensor that is passed
        twice: what the kernel needs for that, with one array for it, follows from its own conditions at this
        launch."""
        if self._is_untouched(alias):
            return True
        if self._definition.language != "triton" or alias.partial:
            return False
        given = [t for _, value in alias.launch.arguments for t in tensors(value)]
        # Through a third parameter the tensor is read or written, too.
        if sum(t.storage == alias.buffer for t in given) > 2:
            return False
        constants = {p.name for p in self._kernel.params if p.ownership is Ownership.CONSTANT}
        flags = self._judges.flags(alias.launch).items()
        fixed = tuple((name, v) for name, v in flags if name in constants)
        return any(self._holds(alias, given) for given in dict.fromkeys(((), fixed)))

    def _is_untouched(self, alias: Alias) -> bool:
        """Whether what the launch passes lets the kernel touch the tensor through one of the parameters alone,
        or write it through none."""
        if alias.mutable == alias.other:  # members of one list
            return False
        judge = self._judges.of(alias.launch)
        with judge.session.work.limited(self._units):
            arrays = (alias.mutable, alias.other)
            own = [a for a in self._kernel.accesses if a.array in arrays]
            made = [a for a in own if not judge.impossible((judge.rewritten(a.guard),))]
        return len({a.array for a in made}) < 2 or all(a.effect is Effect.READ for a in made)

    def _holds(self, alias: Alias, constants: _Constants) -> bool:
        key = (alias.mutable, alias.other, constants)
        if key not in self._known:
            self._known[key] = self._decided(*key)
        found = self._known[key]
        if found is None:
            return False
        kernel, decision = found
        own = self._judges.of(alias.launch)
        met = tuple(own.rewritten(c) for c in self._conditions)
        with own.session.work.limited(self._units):
            judge = judge_of(kernel, alias.launch, own.session)
            return all(judge.impossible((*met, negate(judge.rewritten(c)))) for c in decision.conditions)

    @property
    def _units(self) -> int:
        return Work.of_launches(self._options.budget, 1)

    def _decided(self, mutable: str, other: str, constants: _Constants) -> tuple[Kernel, Decision] | None:
        """The kernel with one array, if all of it is proved, perhaps under conditions."""
        from tilecheck.assumptions.rerun import proved_again  # lazy, as above
        from tilecheck.frontend.kernels.definitions import Given  # lazy: few kernels come here

        site = self._definition.table.site(self._definition.node.name)
        # What the kernel needs anyway is taken for granted, as far as it can be said of this one.
        met = tuple(condition_text(c) for c in self._conditions if not _speaks_of(c, other))
        given = Given(in_words_of(self._kernel, met), constants, None, site, True)
        definition = replace(self._definition, given=(*self._definition.given, given), same=((other, mutable),))
        try:
            kernel, decision = proved_again(
                definition, (), self._options, share=_SHARE, asks=lambda o: not _is_inside(o)
            )
        except UnsupportedConstruct:
            return None
        races = [s for s in decision.settled if isinstance(s.obligation.goal, Disjoint)]
        decided = all(s.status in ("proved", "conditional") for s in races)
        return (kernel, decision) if decided and not decision.vacuous else None


def _speaks_of(condition: Expr, array: str) -> bool:
    return any(s.name.partition(".")[0] == array for s in symbols(condition))


def _is_inside(obligation: Obligation) -> bool:
    """Whether it is about the accesses of one program alone."""
    goal = obligation.goal
    return isinstance(goal, Ordered) or (isinstance(goal, Disjoint) and goal.between is not Between.BLOCKS)
