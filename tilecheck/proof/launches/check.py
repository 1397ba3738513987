"""Whether a visible launch meets what a kernel needs.

The launch is decided as a whole: the host's values are put into the kernel's open obligations. Each requirement
gets a status:

    holds    it follows from the host's text for every admitted input
    broken   an admitted input breaks it, the launch was replayed there, and an obligation was seen to fail
    unmet    the text admits inputs that break it, and neither a proof nor harm was found
    caller   only the caller can meet it, and an ordinary call does (`callers`)
    unread   it rests on values that are not understood

A derived condition is sufficient, not necessary: where one does not follow, the obligations themselves are
asked with the launch's values. If they are proved, the condition is not needed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from tilecheck.ir.expr import Expr, Kind, all_of, le, negate, sym, symbols
from tilecheck.ir.host import ARGUMENT
from tilecheck.ir.kernel import Contract, Kernel
from tilecheck.ir.launch import HostList, HostTensor, HostValue, Launch
from tilecheck.ir.overlap import Overlap, overlap
from tilecheck.model import Witness
from tilecheck.proof.conditions.abduction import condition_text
from tilecheck.proof.goals.context import Context
from tilecheck.proof.launches.callers import callers, is_of_given_layout, is_of_own_outputs, relates_inputs
from tilecheck.proof.launches.contracts import judge_contracts
from tilecheck.proof.launches.inputs.unread import is_made_of_unread, rests_on_unread
from tilecheck.proof.launches.judge import Broken, Judge
from tilecheck.proof.launches.replays.harm import Harm, reads_memory, terms_of
from tilecheck.proof.launches.replays.replay import LaunchRun
from tilecheck.proof.launches.specialised import LaunchedKernel
from tilecheck.proof.launches.standing import Standing
from tilecheck.proof.launches.visible import Judges
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.proof.rewrite.access_families import unproved
from tilecheck.proof.rewrite.case_split import cases
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.fuel import Fuel

_SHARED = (Overlap.SAME, Overlap.PARTLY)
_SHARE = 5  # of a budget, for one obligation at a launch


def _is_of_grid(condition: Expr) -> bool:
    return any(s.kind is Kind.GRID for s in symbols(condition))


@dataclass(frozen=True, slots=True)
class LaunchCheck:
    """One launch, judged: the status of each requirement, and what is broken, with what was seen."""

    launch: Launch
    conditions: tuple[tuple[str, str], ...]  # text, status
    broken: tuple[tuple[Broken, Witness | None], ...] = ()
    unread: str = ""  # what is not understood of it
    cannot_start: str = ""  # why it does not compile or start, whatever its inputs are


def check_launch(
    kernel: Kernel,
    conditions: Sequence[Expr],
    proved: Sequence[Obligation],
    obligations: Sequence[Obligation],
    undecided: Sequence[Obligation],
    trusted: Sequence[Obligation],
    launch: Launch,
    judges: Judges,
    fuel: Fuel,
    path: str,
) -> LaunchCheck | None:
    """Judge one launch.

    Args:
        kernel: the kernel that is launched.
        conditions: the launch conditions of its proof.
        proved: the obligations that are proved whatever the launch.
        obligations: those that are proved under `conditions` only.
        undecided: those that no conditions were found for.
        trusted: those that the author answers for.
        launch: the launch.
        judges: of the kernel's launches.
        fuel: of replays, shared by the launches of a kernel.
        path: the kernel's file.

    Returns:
        None if the launch is of another specialisation than the kernel that was verified.
    """
    if launch.problem is not None:
        return LaunchCheck(launch, (), unread=launch.problem)
    judge = judges.of(launch)
    if judge.is_of_another_kernel():
        return None
    given = dict(launch.arguments)
    lists = (p.name for p in kernel.params if p.is_list)
    unknown = frozenset(name for name in lists if not isinstance(given.get(name), HostList))
    run = LaunchRun(kernel, path, fuel, unknown)
    return _Check(judge, conditions, proved, obligations, undecided, trusted, run).result()


@dataclass(eq=False)
class _Check:
    """The requirements of one launch. Mutable: it collects what it finds."""

    judge: Judge
    conditions: Sequence[Expr]
    proved: Sequence[Obligation]
    obligations: Sequence[Obligation]
    undecided: Sequence[Obligation]
    trusted: Sequence[Obligation]
    run: LaunchRun
    statuses: list[tuple[str, str]] = field(default_factory=list)
    broken: list[tuple[Broken, Witness | None]] = field(default_factory=list)

    def result(self) -> LaunchCheck:
        if not self.judge.is_made or self.judge.cannot_start:  # no input leads to a launch that runs
            held = tuple((text, "holds") for text in self._texts)
            return LaunchCheck(self.judge.launch, held, cannot_start=self.judge.cannot_start)
        self._derived()
        self._undecided()
        self._required()
        for contract in self.judge.kernel.contracts:
            if contract.kind == "disjoint":
                self._note(contract.text, *self.disjoint(contract))
        self._contents()
        standing = Standing(self.judge, self.run, (*self.undecided, *self.trusted))
        standing.judge_all()
        self.statuses += standing.statuses
        self.broken += standing.broken
        unread = [text for text, status in self.statuses if status == "unread"]
        return LaunchCheck(self.judge.launch, tuple(self.statuses), tuple(self.broken), "; ".join(unread))

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        required = (r.text for r in self.judge.kernel.requires)
        return (*map(condition_text, self.conditions), *required)

    def _note(self, text: str, status: str, found: Broken | None) -> None:
        self.statuses.append((text, status))
        if found is not None:
            self.broken.append((found, None))

    # ---- derived conditions ---------------------------------------------------------------------------

    def _derived(self) -> None:
        judge = self.judge
        left = [c for c in self.conditions if not judge.follows(judge.rewritten(c))]
        statuses = self._judged(left) if left else {}
        for condition in self.conditions:
            if statuses is not None or condition not in left:
                self.statuses.append((condition_text(condition), (statuses or {}).get(condition, "holds")))
        if statuses is None:
            text = f"every obligation of `{judge.kernel.name}`, decided with the values of this launch"
            self.statuses.append((text, "holds"))

    def _judged(self, left: Sequence[Expr]) -> dict[Expr, str] | None:
        """The statuses of conditions that do not follow; None where all obligations are proved without them."""
        judge = self.judge
        # What is false whatever the unread values are is not excused by them.
        unread = [c for c in left if rests_on_unread(judge, c) and judge.possible(judge.rewritten(c))]
        # Unread code may turn sizes away: a layout that suits all of them is the caller's nevertheless.
        layouts = [c for c in unread if not is_made_of_unread(judge, c) and is_of_given_layout(judge, c)]
        of_callers = callers(judge, [c for c in left if c not in unread or c in layouts])
        unread = [c for c in unread if c not in of_callers]
        own = [c for c in left if c not in unread and c not in of_callers]
        found = dict.fromkeys(unread, "unread") | dict.fromkeys(of_callers, "caller")
        if not own:
            return found if self._is_any_open(left) else None
        # A grid must fit the outputs that the host allocates, whatever else it asks of the inputs.
        fits = any(is_of_own_outputs(judge, c) for c in own)
        others = [*(c for c in of_callers if not (fits and _is_of_grid(c))), *unread]
        given = tuple(map(judge.rewritten, others))
        followed = [c for c in self.conditions if c not in left]
        still = tuple(self._open(self._without(*followed, *others), *given))
        if not still:  # met where the others are
            met = dict.fromkeys(own, "unread" if unread else "caller")
            return found | met if given and self._is_any_open(left) else None
        if judge.unraised and not any(self._open(still, *given, *judge.unraised)):
            return found | dict.fromkeys(own, "unread")  # an exception may have turned away what breaks them
        still = tuple(self._open(still, *map(judge.in_ordinary_call, given), of=self._ordinary))
        if not still:
            return found | dict.fromkeys(own, "caller")
        # What undecided obligations ask of callers for their arrays, no condition says.
        open_arrays = {o.array for o in self.undecided}
        shown = tuple(o for o in still if o.array not in open_arrays)
        harm = self._harm(own, given, shown) if shown else None
        if harm is not None:
            broken, witness = harm
            blamed = next((c for c in own if self._fails(c, broken)), own[0])
            self.broken.append((replace(broken, text=condition_text(blamed)), witness))
            return found | {c: "broken" if self._fails(c, broken) else "unmet" for c in own}
        of_tuner = [c for c in own if judge.tuned and judge.rests_on_tuner(c)]
        return found | dict.fromkeys(own, "unmet") | dict.fromkeys(of_tuner, "unread")

    def _harm(
        self, own: Sequence[Expr], given: Sequence[Expr], still: Sequence[Obligation]
    ) -> tuple[Broken, Witness] | None:
        """Inputs that do harm: in an ordinary call, or with other numbers where numbers alone decide. Where a
        tuner out of view chooses tile sizes, each of the usual ones must do harm.

        None once the work is spent: a condition that was not asked may follow, or be the caller's."""
        judge = self.judge
        if judge.session.work.is_spent:
            return None
        launched = self._launched
        harm = Harm(judge, launched, still, self.run)
        given = (*given, *judge.with_elements)
        wanted = tuple(map(judge.rewritten, own))
        of_none = [w for w in wanted if self._breaks_for_none_alone(w)]
        wanted, given = tuple(w for w in wanted if w not in of_none), (*given, *of_none)
        if own and not wanted:
            return None
        found = None
        for chosen in judge.tilings:
            found = harm.found(wanted, (*given, *judge.ordinarily, *chosen))
            if found is None and judge.defaults:
                found = harm.found(wanted, (*given, *judge.usually, *chosen))
            if found is None:
                return None
        return found

    def _breaks_for_none_alone(self, wanted: Expr) -> bool:
        """Whether a condition is met wherever the numbers in it that are handed in are above 0: like an empty
        tensor, a size of 0 is nothing that a launch is blamed for."""
        sizes = [le(1, sym(s)) for s in symbols(wanted) if s.kind is Kind.HOST and s.origin == ARGUMENT]
        return bool(sizes) and not self.judge.ordinary.possible(all_of(*sizes, negate(wanted)))

    def _undecided(self) -> None:
        """Harm where no conditions were found under which an obligation holds.

        The launch is blamed where the host answers for all that decides it: see `callers`.
        """
        judge = self.judge
        own = [o for o in self.undecided if not reads_memory(o) and self._is_own(o)]
        given = (*map(judge.rewritten, self.conditions), *judge.ordinarily)
        still = tuple(self._open(own, *given)) if own else ()
        harm = self._harm((), given, still) if still else None
        if harm is not None:
            broken, witness = harm
            shown = next((o for o in still if _is_shown(o, witness)), still[0])
            self.broken.append((replace(broken, text=shown.cause, is_condition=False), witness))

    def _is_own(self, obligation: Obligation) -> bool:
        judge, spoken = self.judge, all_of(*terms_of(obligation))
        wanted = judge.in_ordinary_call(judge.rewritten(spoken))
        return not rests_on_unread(judge, spoken) and not relates_inputs(judge, wanted)

    def _fails(self, condition: Expr, broken: Broken) -> bool:
        """Whether a condition is false at these inputs."""
        value = self.judge.value_at(condition, broken)
        return value is False

    @cached_property
    def _launched(self) -> LaunchedKernel:
        return LaunchedKernel(self.judge.kernel, self.judge.known, self.judge.premises)

    @cached_property
    def _ordinary(self) -> LaunchedKernel:
        """The same in a call with contiguous tensors and default numbers."""
        ordinary = self.judge.ordinary
        return LaunchedKernel(ordinary.kernel, ordinary.known, ordinary.premises)

    def _is_any_open(self, left: Sequence[Expr]) -> bool:
        """Whether some obligation does not follow at this launch. What speaks of the arrays of the conditions
        that are `left` is asked first: one of them is enough, and mostly found there."""
        arrays = {s.name.partition(".")[0] for s in symbols(*left)}
        return any(self._open(sorted(self.obligations, key=lambda o: o.array not in arrays)))

    def _open(
        self, asked: Sequence[Obligation], *given: Expr, of: LaunchedKernel | None = None
    ) -> Iterator[Obligation]:
        """The obligations that do not follow at this launch from its text and `given`."""
        launched = of or self._launched
        return self._unproved(asked, launched.context(*given), launched.obligation)

    def _without(self, *conditions: Expr) -> tuple[Obligation, ...]:
        """The obligations that some conditions of the kernel do not prove, whatever the launch."""
        context = Context(self.judge.kernel).under(*conditions)
        return tuple(self._unproved(self.obligations, context, lambda obligation: obligation))

    def _unproved(
        self, asked: Sequence[Obligation], context: Context, written: Callable[[Obligation], Obligation]
    ) -> Iterator[Obligation]:
        """The obligations that are not proved in a context, `written` in its terms."""
        session = self.judge.session

        def is_proved(obligation: Obligation) -> bool:
            parts, budget = cases(written(obligation)), session.budget // _SHARE
            return all(prove(part, context, session, budget=budget).proved for part in parts)

        return unproved(asked, self.judge.kernel, is_proved)

    # ---- values in memory -----------------------------------------------------------------------------------

    def _contents(self) -> None:
        """Contracts about values that the host makes. What is left to the caller is a promise: it stands among
        the premises."""
        seen: dict[int, Witness] = {}

        def harmed(broken: Broken, values: Mapping[str, tuple[int, ...]]) -> bool:
            from tilecheck.proof.launches.replays.contents import (  # lazy: few kernels have contracts
                replay_with,
            )

            claims = (*self.proved, *self.obligations)
            run = self.run
            witness = replay_with(self.judge.kernel, broken, values, run.path, run.fuel, claims)
            if witness is not None:
                seen[id(broken)] = witness
            return witness is not None

        kept, refuted = judge_contracts(self.judge, harmed)
        self.statuses += [(text, status) for text, status in kept.items() if status != "caller"]
        self.broken += [(broken, seen.get(id(broken))) for broken in refuted]

    # ---- what the author asks ---------------------------------------------------------------------------

    def _required(self) -> None:
        """The author's own preconditions are premises of the proof: nothing at the launch is proved without
        them, so one that neither holds nor is the caller's is not met."""
        judge = self.judge
        left = [r for r in judge.kernel.requires if not judge.follows(judge.rewritten(r.condition))]
        of_callers = callers(judge, [r.condition for r in left])
        for requirement in judge.kernel.requires:
            condition, text = requirement.condition, requirement.text
            if requirement not in left:
                self.statuses.append((text, "holds"))
            elif rests_on_unread(judge, condition):
                self.statuses.append((text, "unread"))
            elif not judge.possible(judge.rewritten(condition)):
                model = judge.model(())
                found = None if model is None else judge.broken("TC402", text, model)
                self._note(text, "unmet" if found is None else "broken", found)
            else:
                self.statuses.append((text, "caller" if condition in of_callers else "unmet"))

    def disjoint(self, contract: Contract) -> tuple[str, Broken | None]:
        """Whether the arrays of a contract share no memory: broken where the text passes one tensor twice."""
        given = dict(self.judge.launch.arguments)
        tensors = [t for name in contract.arrays for t in _tensors_in(given.get(name))]
        facts, all_apart = self.judge.launch.facts, True
        for a, b in combinations(tensors, 2):
            found = overlap(a, b, facts)
            all_apart &= found is Overlap.APART
            model = self.judge.model(_with_elements(a, b)) if found in _SHARED else None
            if model is not None:
                return "broken", self.judge.broken("TC402", contract.text, model)
        understood = all(name in given and _is_read(given[name]) for name in contract.arrays)
        return ("holds" if understood and all_apart else "caller"), None


def _is_shown(obligation: Obligation, witness: Witness) -> bool:
    """Whether it is what a witness shows: two blocks, or the threads of one."""
    goal = obligation.goal
    of_blocks = isinstance(goal, Disjoint) and goal.between is Between.BLOCKS
    alike = (obligation.array, obligation.kind) == (witness.array, witness.kind)
    return alike and (not isinstance(goal, Disjoint) or of_blocks == (len(witness.blocks) > 1))


def _tensors_in(value: HostValue) -> Iterator[HostTensor]:
    if isinstance(value, HostTensor):
        yield value
    elif isinstance(value, HostList):
        for item in value.items:
            yield from _tensors_in(item)


def _is_read(value: HostValue) -> bool:
    """Whether all tensors behind an argument are known."""
    if isinstance(value, HostList):
        return all(map(_is_read, value.items))
    return isinstance(value, HostTensor)


def _with_elements(*tensors: HostTensor) -> tuple[Expr, ...]:
    """That tensors are passed and have elements, where the text says how many: empty ones share none."""
    present = (negate(t.absent) for t in tensors if t.absent is not None)
    return (*present, *(le(1, size) for t in tensors for size in t.shape or ()))
