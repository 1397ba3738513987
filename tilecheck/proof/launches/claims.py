"""Whether a visible launch makes a claim come true.

A counterexample shows that some launch goes wrong. Where the text shows how a kernel is launched, one of these
launches must: what goes wrong only with a grid, with numbers or with values in memory that no launch passes is
not the kernel's fault, and stays undecided. A kernel of which no launch is read, or could be run, is judged by
itself.

    inputs     the solver's host inputs for the negated goal, written over the host's values; if it finds none
               and does not know that there are none, ordinary inputs of several sizes
    memory     what decides the claim must not be computed by the host function, and whatever fills the
               caller's arrays, the accesses that are performed must show it
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod

from tilecheck.ir.expr import Expr, Kind, Symbol, substitute, walk
from tilecheck.ir.kernel import Kernel, block_symbol, extent_symbol
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.model import Reason
from tilecheck.proof.decide import Decision, Settled
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import negation
from tilecheck.proof.launches.judge import Judge
from tilecheck.proof.launches.visible import Judges
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.refute.concrete import FILLS, Concrete, arguments, layouts, memory_name
from tilecheck.proof.refute.confirmation import is_performed
from tilecheck.proof.refute.replay import Block, at_site, seen
from tilecheck.proof.solver.fuel import Fuel, OutOfFuel
from tilecheck.proof.solver.solver import Model
from tilecheck.reference import Launch as Run
from tilecheck.reference import Log, NotInterpretable, ReplayError

_LAUNCHES = 8  # of one kernel that are looked at
_INPUTS = 4  # of one launch that are tried, of each kind
_STEPS = 20_000
_CELLS = 4096  # of an array that are set
_MOST_BLOCKS = 100  # larger grids run only the blocks at their corners


def upheld(
    kernel: Kernel, decision: Decision, launches: Sequence[Launch], judges: Judges, path: str
) -> Decision:
    """The decision without the claims that no visible launch makes come true."""
    seen_ = [la for la in launches if la.problem is None and la.grid is not None and None not in la.grid]
    if not seen_ or all(s.status != "violated" for s in decision.settled):
        return decision
    context = Context(kernel).under(*decision.conditions)
    settled = []
    own = (judge for judge in map(judges.of, seen_) if not judge.is_of_another_kernel())
    all_, fuel = list(islice(own, _LAUNCHES)), Fuel(work=judges.session.work)
    for one in decision.settled:
        if one.status == "violated":
            answers = [_Claim(one.obligation, context, judge, path, fuel).comes_true() for judge in all_]
            if False in answers and True not in answers:
                one = _open(one)  # noqa: PLW2901
        settled.append(one)
    return replace(decision, settled=tuple(settled))


def _open(settled: Settled) -> Settled:
    reason = Reason.NEEDS_CONTRACT if _decisive(settled.obligation) else Reason.NONLINEAR
    return replace(settled, status="unknown", witness=None, reason=reason.value)


def _decisive(obligation: Obligation) -> frozenset[str]:
    """The arrays whose contents decide the claim."""
    goal = obligation.goal
    terms: list[Expr] = []
    if isinstance(goal, Holds):
        terms = [goal.goal, goal.given]
    elif isinstance(goal, Disjoint):
        for access in (goal.first, goal.second):
            terms += [access.guard, access.mask, *(axis.coordinate for axis in access.axes)]
    found: set[str] = set()
    for node in walk(*terms):
        if node.op == "read":
            found.add(memory_name(node.args[0]))
        elif node.op in ("sym", "bsym") and node.args[0].origin.startswith("memory:"):
            found.update(node.args[0].origin.removeprefix("memory:").split(","))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Claim:
    """One claim at one launch."""

    obligation: Obligation
    context: Context
    judge: Judge
    path: str
    fuel: Fuel

    def comes_true(self) -> bool | None:
        """Whether a replay of the launch shows it; None if the launch could not be run, or does not perform
        the accesses."""
        given = dict(self.judge.launch.arguments)
        arrays = _decisive(self.obligation)
        if any(not self._is_callers(given.get(name)) for name in arrays):
            return None if self._is_of_threads() else False
        negated = self._negated()
        if self.judge.impossible(negated):
            asked = tuple(map(self.judge.rewritten, self.context.conditions))
            return None if self.judge.impossible(asked) else False  # a launch that breaks them says nothing
        fills = FILLS if arrays else FILLS[1:2] if self._is_synchronised() else FILLS[:1]
        # What contents decide, a contract could keep from happening: then a launch has to show it.
        answer = False if arrays and not self._is_of_threads() else None
        try:
            for values, blocks in self._inputs(negated):
                trials = [Concrete(values, fill=fill) for fill in fills]
                if arrays:
                    trials.append(self._with_zeros(trials[-1], arrays))
                shows = self._shows(trials, blocks)
                if shows:
                    return True
                answer = False if shows is False else answer
        except OutOfFuel:
            return answer
        return answer

    def _is_callers(self, value: object) -> bool:
        unread = self.judge.launch.unread
        return isinstance(value, HostTensor) and not value.fresh and value.storage not in unread

    def _is_of_threads(self) -> bool:
        """Whether it is about the order of the threads of one program."""
        goal = self.obligation.goal
        return isinstance(goal, Disjoint) and goal.between in (Between.PROGRAM, Between.THREADS)

    def _is_synchronised(self) -> bool:
        """Whether atomics order the accesses: their counters start at zero."""
        goal = self.obligation.goal
        return isinstance(goal, Disjoint) and (goal.first.synchronised or goal.second.synchronised)

    # ---- inputs -------------------------------------------------------------------------------------

    def _negated(self) -> tuple[Expr, ...]:
        """The negated goal, written over the host's values."""
        terms = negation(self.obligation.goal, self.context, self.obligation.assume)
        return tuple(substitute(term, self.judge.known) for term in terms)

    def _inputs(
        self, negated: Sequence[Expr]
    ) -> Iterator[tuple[Mapping[Symbol, int | bool], tuple[Block, ...]]]:
        """Values of the launch, and the blocks that they speak of."""
        judge = self.judge
        found = False
        for model in islice(judge.inputs((*negated, *judge.usually), empty=False), _INPUTS):
            broken = judge.broken("", "", model)
            if broken is not None:
                found = True
                yield {**_own(model), **broken.concrete}, _blocks(model)
        if not found:
            asked = tuple(substitute(c, judge.known) for c in self.context.uniform_facts)
            premises = (*asked, *judge.usually, *judge.more_blocks()[0])
            for model in islice(judge.inputs(premises, empty=False), _INPUTS):
                broken = judge.broken("", "", model)
                if broken is not None:
                    yield {**_own(model), **broken.concrete}, ()

    # ---- replay -------------------------------------------------------------------------------------

    def _with_zeros(self, concrete: Concrete, arrays: Collection[str]) -> Concrete:
        """The same launch where what decides the claim is zero and everything else is not."""
        settled = concrete.settled(self.context.kernel)
        memory: dict[str, dict[tuple[int, ...], int]] = {}
        for param in self.context.kernel.params:
            if param.name in arrays:
                shape = [int(settled.value(extent_symbol(param.name, k))) for k in range(param.rank or 1)]
                cells = islice(product(*map(range, shape)), _CELLS)
                memory[param.name] = dict.fromkeys(cells, 0)
        return replace(concrete, memory=memory)

    def _shows(self, trials: Sequence[Concrete], blocks: tuple[Block, ...]) -> bool | None:
        """Whether every run in which the accesses are performed shows it; None if there is none.

        Two threads that a barrier should keep apart meet where the contents lead them: one run is enough.
        """
        answers = [self._shown(trial, blocks) for trial in trials]
        if self._is_of_threads():
            return True if True in answers else False if False in answers else None
        return False if False in answers else True if True in answers else None

    def _shown(self, concrete: Concrete, blocks: tuple[Block, ...]) -> bool | None:
        """The same of one run; None if the accesses are not performed or it cannot be run. Which arrays hold
        integers is a guess: where it is wrong, all of them do."""
        try:
            return self._ran(concrete, blocks)
        except NotInterpretable:
            try:
                return self._ran(replace(concrete, integers=True), blocks)
            except NotInterpretable:
                return None

    def _ran(self, concrete: Concrete, blocks: tuple[Block, ...]) -> bool | None:
        kernel = self.context.kernel
        concrete = concrete.settled(kernel)
        grid = concrete.grid(kernel)
        if 0 in grid:
            return None
        answer = None
        for order in _orders(grid, blocks, both=self._is_synchronised()):
            given = arguments(concrete, kernel)
            if given is None:
                return None
            try:
                log = self.fuel.run(Run(self.path, kernel.name, grid, given, order, _STEPS))
            except NotInterpretable:
                raise
            except ReplayError:
                return None
            if seen(self.obligation, log, layouts(given)) is not None:
                return True
            if self._is_performed(log):
                answer = False
        return answer

    def _is_performed(self, log: Log) -> bool:
        """Whether the accesses were reached. One block is enough: a launch may have no more."""
        goal = self.obligation.goal
        if not isinstance(goal, Disjoint):
            return is_performed(self.obligation, log, self.context.kernel)
        accesses = (goal.first, goal.second)
        return all(any(len(r.elements) for r in at_site(a.site, log.accesses)) for a in accesses)


def _own(model: Model) -> dict[Symbol, int | bool]:
    """The values of the kernel that the launch's text leaves open."""
    return {s: v for s, v in model.symbols.items() if not s.varies and s.kind is not Kind.HOST}


def _blocks(model: Model) -> tuple[Block, ...]:
    """The blocks that a model speaks of."""
    found: dict[Block, None] = {}
    for instance in (0, 1, 2):
        ids = [replace(block_symbol(k), instance=instance) for k in range(3)]
        if any(b in model.symbols for b in ids):
            x, y, z = (int(model.symbols.get(b, 0)) for b in ids)
            found[x, y, z] = None
    return tuple(found)


def _orders(grid: Block, blocks: tuple[Block, ...], *, both: bool) -> Iterator[tuple[Block, ...] | None]:
    """In which order blocks run: of a large grid those of the model and at the corners; with `both` backwards
    as well."""
    x, y, z = grid
    if prod(grid) > _MOST_BLOCKS:
        ends = [tuple(sorted({0, min(1, n - 1), n - 1})) for n in grid]
        corners = [(i, j, k) for i, j, k in product(*ends)]
        inside = [b for b in blocks if all(i < n for i, n in zip(b, grid, strict=True))]
        few = tuple(dict.fromkeys((*inside, *corners)))
        yield few
        if both:
            yield few[::-1]
        return
    yield None
    if both:
        yield tuple((i, j, k) for k in range(z) for j in range(y) for i in range(x))[::-1]
