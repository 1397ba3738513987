"""The launches in view of one kernel, each judged by one judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tilecheck.ir.expr import Expr, Symbol, negate
from tilecheck.proof.goals.predicate import ranges
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

if TYPE_CHECKING:
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.proof.launches.judge import Judge
    from tilecheck.proof.solver.work import Work


class Judges:
    """One judge for each launch of a kernel, and the solver's state that all of them share. Mutable: what was
    found of a launch is kept. `work` counts what it takes. Close it when the kernel is done."""

    def __init__(self, kernel: Kernel, work: Work) -> None:
        self.session = Session(work=work)
        self.kernel = kernel
        # By identity: launches are large. Each is kept, so that no other one gets its identity.
        self._made: dict[int, tuple[Launch, Judge]] = {}
        self._flags: dict[int, tuple[Launch, Mapping[str, int]]] = {}

    def close(self) -> None:
        self.session.close()

    def of(self, launch: Launch) -> Judge:
        if id(launch) not in self._made:
            from tilecheck.proof.launches.judge import judge_of  # lazy: many kernels have no launch in view

            self._made[id(launch)] = launch, judge_of(self.kernel, launch, self.session)
        return self._made[id(launch)][1]

    def flags(self, launch: Launch) -> Mapping[str, int]:
        """The numbers and truth values that a launch passes and that its text decides, by parameter."""
        if id(launch) not in self._flags:
            self._flags[id(launch)] = launch, dict(self._decided(launch))
        return self._flags[id(launch)][1]

    def _decided(self, launch: Launch) -> Iterator[tuple[str, int]]:
        for name, value in launch.arguments:
            if not isinstance(value, Expr):
                continue
            if value.value is not None:
                yield name, value.value
            elif value.is_bool:
                for wanted, other in ((1, negate(value)), (0, value)):
                    goal = (*ranges((*launch.facts, other)), *launch.facts, other)
                    if satisfiable(goal, session=self.session, prove_only=True).status == "unsat":
                        yield name, wanted

    def ordinary_inputs(self, launch: Launch) -> Iterator[Mapping[Symbol, int | bool]]:
        """A launch in the kernel's values, at host inputs of several sizes: several blocks, contiguous
        tensors."""
        judge = self.of(launch)
        for broken in judge.models((*judge.usually, *judge.more_blocks()[0]), "TC401", "", ()):
            yield broken.concrete
