"""Whether a visible launch meets what a kernel needs.

Each condition is rewritten over the host function's values and decided under what its text establishes:

    holds    it follows for every host input
    broken   some host input, with caller tensors that agree as the kernel asks, breaks it, and the launch
             with these inputs was replayed and went wrong
    unknown  some host input breaks it, but every such launch that was tried is too large to be replayed
    caller   neither: the caller of the host function answers for it

Who must meet a condition? The host function, where its own text decides: a condition that bounds the grid or
asks for divisibility, and any condition about a tensor that the function allocates itself. A relation between
two tensors (or a tensor and a number) that the caller hands in is the caller's, and so is a least size such as
`x.shape[0] >= 1`, unless the text contradicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from tilecheck.analysis.ordering import WARP, laid_out_alike, large_tiles
from tilecheck.analysis.ranges import INT32_MAX
from tilecheck.ir.expr import FALSE, Expr, Kind, all_of, le, lt, mul, negate, render, sym, symbols
from tilecheck.ir.host import EXTENT, NUMEL, SPAN, owner
from tilecheck.ir.kernel import Contract, Effect, Kernel, grid_symbol
from tilecheck.ir.launch import HostList, HostTensor, HostValue, Launch
from tilecheck.ir.overlap import Overlap, overlap
from tilecheck.proof.conditions import condition_text
from tilecheck.proof.launch_judge import Broken, Judge, is_of_host, judge_of
from tilecheck.proof.launch_unread import rests_on_unread
from tilecheck.proof.predicate import ranges
from tilecheck.proof.session import Session
from tilecheck.proof.solver import satisfiable

_HUNTS = 2  # for harm that one broken condition does at one call, without any
_INPUTS, _ALL = 3, 99  # that are run for one broken condition, with several blocks and with any
_SHARED = (Overlap.SAME, Overlap.PARTLY)
_LARGE = 64  # an extent that asks for nothing in particular


@dataclass(frozen=True, slots=True)
class LaunchCheck:
    """One launch, judged: the status of each condition, and what is broken."""

    launch: Launch
    conditions: tuple[tuple[str, str], ...]  # text, status
    broken: tuple[Broken, ...]


Replayed = Callable[[Broken], bool | None]  # whether harm was seen; None if it could not be run


def check_launch(
    kernel: Kernel, conditions: Sequence[Expr], launch: Launch, session: Session, replayed: Replayed
) -> LaunchCheck | None:
    """Judge one launch; `replayed` says whether a broken condition was seen to do harm.

    None if the launch is of another specialisation than the kernel that was verified.
    """
    if launch.problem is not None:
        return LaunchCheck(launch, tuple((condition_text(c), "caller") for c in conditions), ())
    judge = judge_of(kernel, launch, session)
    launch = judge.launch
    if judge.is_of_another_kernel():
        return None
    check = _Check(judge, replayed)
    all_ = tuple(map(judge.rewritten, conditions))
    agreed = tuple(wanted for c, wanted in zip(conditions, all_, strict=True) if not judge.is_hosts(c))
    agreed += tuple(judge.rewritten(r.condition) for r in kernel.requires)
    statuses, broken = [], []
    for condition in conditions:
        status, found = check.decide(condition, agreed, all_)
        statuses.append((condition_text(condition), status))
        broken += [] if found is None else [found]
    for requirement in kernel.requires:
        status, found = check.requirement(requirement.condition, requirement.text)
        statuses.append((requirement.text, status))
        broken += [] if found is None else [found]
    for contract in kernel.contracts:
        if contract.kind == "disjoint":
            status, found = check.disjoint(contract)
            statuses.append((contract.text, status))
            broken += [] if found is None else [found]
    harmed, open_ = check.standing()
    return LaunchCheck(launch, (*statuses, *open_), (*broken, *harmed))


@dataclass(frozen=True, slots=True)
class _Check:
    """Conditions held against one launch; `replayed` says whether a broken one was seen to do harm."""

    judge: Judge
    replayed: Replayed

    def decide(
        self, condition: Expr, agreed: Sequence[Expr], all_: Sequence[Expr]
    ) -> tuple[str, Broken | None]:
        """The status of a derived condition.

        Args:
            condition: the condition, in the kernel's values.
            agreed: the conditions that the caller answers for, in the host's values.
            all_: all conditions, in the host's values.
        """
        judge = self.judge
        wanted = judge.rewritten(condition)
        usual = judge.in_usual(condition)
        unread = rests_on_unread(judge.launch, usual) or any(s.origin == SPAN for s in symbols(usual))
        hosts = judge.is_hosts(condition)
        callers = not hosts or unread or not is_of_host(wanted)
        if judge.follows(wanted, quick=callers) or not judge.is_made:
            return "holds", None
        if not is_of_host(wanted) or (callers and judge.possible(wanted)):
            return "caller", None
        # What is left to the caller may be assumed here, even where it says the same in the host's values.
        others = tuple(agreed) if hosts else tuple(a for a in agreed if a is not wanted)
        if self._is_of_small_inputs(wanted, others):
            return "caller", None
        text = condition_text(condition)
        # This condition is to blame for what goes wrong where all others are met. Only if they never are does
        # it answer for what they ask as well.
        met = dict.fromkeys((*others, *(c for c in all_ if c is not wanted and is_of_host(c))))
        for given in (tuple(met), others):
            goal = (*given, *judge.usually, negate(wanted))
            if judge.impossible(goal):
                continue
            # One call may stand for many launches: what did no harm in some of them is not sought in all.
            failed = ("harmless", judge.launch.site, text)
            answers = judge.session.answers
            if answers.get(failed, 0) >= _HUNTS:
                return "caller", None
            found, ran = self._harm("TC402", text, goal, ())
            if found is not None:
                return "broken", found
            answers[failed] = answers.get(failed, 0) + ran
            return ("caller" if ran else "unknown"), None
        return "caller", None

    def _is_of_small_inputs(self, wanted: Expr, others: Sequence[Expr]) -> bool:
        """Whether a condition asks no more of the caller's tensors than a least size, in whatever words."""
        judge = self.judge
        spoken = [s for s in symbols(judge.in_usual(wanted)) if s.kind is Kind.HOST and s.origin == EXTENT]
        sizes = (*(le(_LARGE, sym(s)) for s in spoken), *_of_more_axes(judge.in_usual(wanted)))
        large = (*others, *judge.usually, *sizes)
        if not spoken or judge.possible(all_of(*large, negate(wanted)), quick=True):
            return False
        return judge.possible(all_of(*large), quick=True)

    def requirement(self, condition: Expr, text: str) -> tuple[str, Broken | None]:
        """The author's own precondition: broken only where the host's text contradicts it."""
        wanted = self.judge.rewritten(condition)
        if self.judge.follows(wanted):
            return "holds", None
        model = None if self.judge.possible(wanted) else self.judge.model(())
        if model is None:
            return "caller", None
        return "broken", self.judge.broken("TC402", text, model)

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

    def standing(self) -> tuple[tuple[Broken, ...], tuple[tuple[str, str], ...]]:
        """S2 and S3 at this launch: what is broken, and what could not be judged."""
        written = {a.array for a in self.judge.kernel.accesses if a.effect is not Effect.READ}
        found: list[Broken] = []
        open_: list[tuple[str, str]] = []
        for name, value in self.judge.launch.arguments:
            # A Triton kernel is given the strides, or takes none: its conditions speak of them.
            repeats = (
                isinstance(value, HostTensor) and value.expanded and self.judge.kernel.language != "triton"
            )
            if isinstance(value, HostTensor) and repeats and name in written:
                text = f"S2: `{name}` is written, but several of its indices share one element"
                self._standing(text, lt(1, mul(*(value.shape or ()))), (name,), found, open_)
        for axis in range(3 if written else 0):
            if axis not in self.judge.kernel.grid_axes:
                size = self.judge.rewritten(sym(grid_symbol(axis)))
                text = f"S3: grid[{axis}] is more than 1, but the kernel never reads axis {axis}"
                self._standing(text, lt(1, size), (), found, open_)
        return tuple(found), (*tuple(open_), *self._wraps(), *self._numbers(), *self._layouts())

    def _wraps(self) -> Iterator[tuple[str, str]]:
        """Values of 32 bits that wrap in some block of this launch, as far as its text says every number that
        they are computed from: S4 and S5 speak of launches that are not seen. So large a launch is not run."""
        judge = self.judge
        for operation in judge.kernel.arithmetic:
            wraps = (judge.rewritten(operation.guard), judge.rewritten(lt(INT32_MAX, operation.value)))
            goal = (*map(judge.rewritten, ranges(wraps)), *wraps)
            if FALSE in goal or any(s.kind not in (Kind.BLOCK, Kind.LANE) for s in symbols(*goal)):
                continue
            if satisfiable(goal, session=judge.session).status == "sat":
                yield f"S5: `{render(operation.value)}` fits in 32 bits", "unknown"

    def _numbers(self) -> tuple[tuple[str, str], ...]:
        """Arguments that the proof takes for integers, where the host's text does not show that they are: the
        guard refuses floats, and nobody else looks."""
        given = dict(self.judge.launch.arguments)
        integers = [p.name for p in self.judge.kernel.params if p.integer and not p.is_array]
        return tuple(
            (f"`{name}` is an integer", "caller")
            for name in integers
            if name in given and _may_be_no_integer(given[name])
        )

    def _layouts(self) -> Iterator[tuple[str, str]]:
        """S7 and S8: the host's text shows neither the types of tensors nor their addresses, and options of a
        launch are not read."""
        names = laid_out_alike(self.judge.kernel)
        if names:
            listed = ", ".join(f"`{name}`" for name in names)
            yield f"S7: {listed} have elements of one size, and are aligned alike", "caller"
        for size in large_tiles(self.judge.kernel):
            yield f"S8: {render(size)} >= {WARP} * num_warps", "caller"

    def _standing(
        self,
        text: str,
        harm: Expr,
        expanded: tuple[str, ...],
        found: list[Broken],
        open_: list[tuple[str, str]],
    ) -> None:
        if harm is FALSE or any(s.kind is not Kind.HOST for s in symbols(harm)):
            return
        if rests_on_unread(self.judge.launch, harm):
            return
        if self.judge.impossible((harm,)):
            return
        broken, ran = self._harm("TC403", text, (harm,), expanded)
        if broken is not None:
            found.append(broken)
        elif not ran:
            open_.append((text, "unknown"))

    def _harm(
        self, rule: str, text: str, premises: Sequence[Expr], expanded: tuple[str, ...]
    ) -> tuple[Broken | None, bool]:
        """Host inputs that break something and were seen to do harm, the smallest that are tried; and whether
        any were run (or there are none)."""
        tried = ran = False
        for more in self.judge.more_blocks():
            if ran and self._is_spent():
                break
            found, has_run, was_tried = self._tried(rule, text, (*premises, *more), expanded)
            if found is not None:
                return found, True
            tried, ran = tried or was_tried, ran or has_run
        return None, ran or not tried

    def _tried(
        self, rule: str, text: str, premises: Sequence[Expr], expanded: tuple[str, ...]
    ) -> tuple[Broken | None, bool, bool]:
        """Inputs that were seen to do harm, whether any were run, and whether there are any."""
        # Where several blocks were asked for, small inputs show what larger ones do.
        most = _INPUTS if self.judge.kernel.language == "triton" else _ALL
        tried, ran = False, 0
        for found in self.judge.models(premises, rule, text, expanded):
            if ran and self._is_spent():
                break
            tried = True
            harmful = self.replayed(found)
            if harmful:
                return found, True, True
            ran += harmful is not None
            if ran >= most:
                break
        return None, ran > 0, tried

    def _is_spent(self) -> bool:
        """Whether the kernel's launches had replays enough: each condition still gets one."""
        return self.judge.session.fuel.left <= 0


def _may_be_no_integer(value: HostValue) -> bool:
    """A truth is none: Triton makes a single bit of it."""
    return value is None or isinstance(value, str) or (isinstance(value, Expr) and value.is_bool)


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


def _of_more_axes(condition: Expr) -> Iterator[Expr]:
    """That tensors have more axes than the host asks for, where it does not say how many: that they do is left
    to the caller. A tensor of which the rank is known contradicts it, and then nothing follows."""
    sizes = {owner(s): sym(s) for s in symbols(condition) if s.origin in (NUMEL, SPAN)}
    for name, size in sizes.items():
        extents = [sym(s) for s in symbols(condition) if s.origin == EXTENT and owner(s) == name]
        if extents:
            yield le(mul(_LARGE, *extents), size)
