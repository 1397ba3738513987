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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import combinations

from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    eq,
    le,
    lt,
    mul,
    negate,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.host import DEFINED, EXTENT, NUMEL, SPAN, owner, owners
from tilecheck.ir.kernel import Contract, Effect, Kernel, extent_symbol, grid_symbol
from tilecheck.ir.launch import HostList, HostTensor, HostValue, Launch
from tilecheck.ir.launch_ranks import with_known_ranks
from tilecheck.proof.conditions import condition_kind, condition_text
from tilecheck.proof.launch_spans import pointers_of, span_facts, usual_layout
from tilecheck.proof.launch_unread import rests_on_unread
from tilecheck.proof.launch_values import host_values, ranks_of
from tilecheck.proof.predicate import ranges
from tilecheck.proof.session import Session
from tilecheck.proof.solver import Model, satisfiable

_LEAST = (1, 8, 70, 300, 2000, 0)  # how large host inputs are, at least: tried in turn
_SIZES = (EXTENT, NUMEL)
_LARGE = 64  # an extent that asks for nothing in particular
_BOUNDS = (8, 70, 300, 5000, 40_000)


@dataclass(frozen=True, slots=True)
class Broken:
    """What a launch breaks: a rule, the condition's text, and host inputs that show it."""

    rule: str  # TC402 | TC403
    text: str
    values: Mapping[str, int]
    concrete: Mapping[Symbol, int | bool]  # the same launch in the kernel's values
    expanded: tuple[str, ...] = ()  # parameters whose elements share memory


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
    judge = _judge(kernel, launch, session, replayed)
    launch = judge.launch
    if any(r.specialises and judge.excludes(r.condition) for r in kernel.requires):
        return None
    agreed = tuple(judge.rewritten(c) for c in conditions if not judge.is_hosts(c))
    agreed += tuple(judge.rewritten(r.condition) for r in kernel.requires)
    statuses, broken = [], []
    for condition in conditions:
        status, found = judge.decide(condition, agreed)
        statuses.append((condition_text(condition), status))
        broken += [] if found is None else [found]
    for requirement in kernel.requires:
        status, found = judge.requirement(requirement.condition, requirement.text)
        statuses.append((requirement.text, status))
        broken += [] if found is None else [found]
    for contract in kernel.contracts:
        if contract.kind == "disjoint":
            status, found = judge.disjoint(contract)
            statuses.append((contract.text, status))
            broken += [] if found is None else [found]
    harmed, open_ = judge.standing()
    return LaunchCheck(launch, (*statuses, *open_), (*broken, *harmed))


def _judge(kernel: Kernel, launch: Launch, session: Session, replayed: Replayed) -> _Judge:
    launch = with_known_ranks(launch, ranks_of(kernel, launch))
    usual: dict[Expr, Expr] = {}
    if kernel.language == "triton":
        launch = replace(launch, facts=(*launch.facts, *span_facts(launch, pointers_of(kernel))))
        usual = usual_layout(launch, pointers_of(kernel))
    return _Judge(kernel, launch, host_values(kernel, launch), session, replayed, usual)


def ordinary_inputs(kernel: Kernel, launch: Launch) -> Iterator[Mapping[Symbol, int | bool]]:
    """A launch in the kernel's values, at host inputs of several sizes: several blocks, contiguous tensors."""
    with closing(Session()) as session:
        judge = _judge(kernel, launch, session, lambda broken: None)
        for broken in judge.models((*judge.usually(), *judge.more_blocks()[0]), "TC401", "", ()):
            yield broken.concrete


def launch_flags(launch: Launch) -> dict[str, int | list[int]]:
    """The numbers and truth values that a launch passes and that its text decides, by parameter."""
    found: dict[str, int | list[int]] = {}
    with closing(Session()) as session:
        for name, value in launch.arguments:
            if not isinstance(value, Expr):
                continue
            if value.value is not None:
                found[name] = value.value
            elif value.is_bool:
                for wanted in (TRUE, FALSE):
                    other = value if wanted is FALSE else negate(value)
                    goal = (*launch.facts, other)
                    if satisfiable((*ranges(goal), *goal), session=session, prove_only=True).status == "unsat":
                        found[name] = int(wanted is TRUE)
    return found


@dataclass(frozen=True, slots=True)
class _Judge:
    """One launch of one kernel, with the kernel's values written over the host's."""

    kernel: Kernel
    launch: Launch
    known: Mapping[Expr, Expr]
    session: Session
    replayed: Replayed
    usual: Mapping[Expr, Expr]  # free strides and spans, where the caller's tensors are contiguous

    def rewritten(self, condition: Expr) -> Expr:
        return substitute(condition, self.known)

    def in_usual(self, condition: Expr) -> Expr:
        """A condition over the host's values where the caller's tensors are contiguous."""
        wanted = self.rewritten(condition)
        return substitute(wanted, self.usual) if self.usual else wanted

    def decide(self, condition: Expr, agreed: Sequence[Expr]) -> tuple[str, Broken | None]:
        """The status of a derived condition."""
        wanted = self.rewritten(condition)
        if self._follows(wanted):
            return "holds", None
        usual = self.in_usual(condition)
        unread = rests_on_unread(self.launch, usual) or any(s.origin == SPAN for s in symbols(usual))
        answers = self.is_hosts(condition) and not unread
        if not self._is_understood(condition) or (not answers and self._possible(wanted)):
            return "caller", None
        # What is left to the caller may be assumed here, even where it says the same in the host's values.
        others = agreed if self.is_hosts(condition) else tuple(a for a in agreed if a is not wanted)
        if self._is_of_small_inputs(wanted, others):
            return "caller", None
        found, ran = self._harm(
            "TC402", condition_text(condition), (*others, *self.usually(), negate(wanted)), ()
        )
        if found is not None:
            return "broken", found
        return ("caller" if ran else "unknown"), None

    def _is_of_small_inputs(self, wanted: Expr, others: Sequence[Expr]) -> bool:
        """Whether a condition asks no more of the caller's tensors than a least size, in whatever words."""
        spoken = [s for s in symbols(self.in_usual(wanted)) if s.kind is Kind.HOST and s.origin == EXTENT]
        large = (*others, *self.usually(), *(le(_LARGE, sym(s)) for s in spoken))
        if not spoken or not self._possible(all_of(*large)):
            return False
        return not self._possible(all_of(*large, negate(wanted)))

    def excludes(self, condition: Expr) -> bool:
        """Whether no host input meets a condition."""
        return not self._possible(self.rewritten(condition))

    def requirement(self, condition: Expr, text: str) -> tuple[str, Broken | None]:
        """The author's own precondition: broken only where the host's text contradicts it."""
        wanted = self.rewritten(condition)
        if self._follows(wanted):
            return "holds", None
        model = None if self._possible(wanted) else self._model(())
        if model is None:
            return "caller", None
        return "broken", self._broken("TC402", text, model)

    def disjoint(self, contract: Contract) -> tuple[str, Broken | None]:
        """Whether the arrays of a contract share no memory: broken where the text passes one tensor twice."""
        given = dict(self.launch.arguments)
        tensors = [t for name in contract.arrays for t in _tensors_in(given.get(name))]
        statuses = {_apart(a, b) for a, b in combinations(tensors, 2)}
        model = self._model(()) if "broken" in statuses else None
        if model is not None:
            return "broken", self._broken("TC402", contract.text, model)
        understood = all(name in given and _is_read(given[name]) for name in contract.arrays)
        return ("holds" if understood and statuses <= {"holds"} else "caller"), None

    def is_hosts(self, condition: Expr) -> bool:
        """Whether the host function itself must meet a condition."""
        tensors = self._tensors(condition)
        if any(t.fresh for t in tensors.values()):
            return not _is_least_size(condition) and not self._is_of_callers(condition, tensors)
        if self.kernel.language == "triton" and self._is_own_arithmetic(condition):
            return not _is_least_size(condition)
        asked = _under_flags(condition)
        if condition_kind(asked) not in "ab" or _is_least_size(asked):
            return False
        return len(owners(self.in_usual(condition))) <= 1

    def _is_of_callers(self, condition: Expr, tensors: Mapping[str, HostTensor]) -> bool:
        """Whether a condition relates several of the caller's values, of which each fresh tensor in it follows
        one: `torch.empty_like(q)` is as large as `q`, and must agree with `k` as `q` must."""
        if self.kernel.language != "triton" or len(owners(self.in_usual(condition))) < 2:
            return False
        spans = [self.in_usual(sym(extent_symbol(n, 0))) for n, t in tensors.items() if t.fresh]
        return all(len(owners(s)) == 1 and all(x.origin in _SIZES for x in symbols(s)) for s in spans)

    def _is_own_arithmetic(self, condition: Expr) -> bool:
        """Whether a condition is about numbers that the host computes from the extents of one tensor."""
        spoken = symbols(self.in_usual(condition))
        sizes = all(s.kind is Kind.HOST and s.origin in (*_SIZES, DEFINED) for s in spoken)
        return sizes and len(owners(self.in_usual(condition))) <= 1

    def usually(self) -> tuple[Expr, ...]:
        return (*(eq(value, size) for value, size in self.usual.items()), *self.sizes())

    def sizes(self) -> tuple[Expr, ...]:
        """A tensor of unknown rank has as many elements as the extents that are asked for say, or more."""
        spoken = symbols(*self.known.values(), *self.usual.values(), *(g for g in self.launch.grid or () if g))
        counts = {owner(s): s for s in spoken if s.origin == NUMEL}
        extents: dict[str, list[Expr]] = {}
        for symbol in spoken:
            whose = owner(symbol) if symbol.origin == EXTENT else None
            if whose in counts and "[-" not in symbol.name:
                extents.setdefault(whose or "", []).append(sym(symbol))
        return tuple(le(mul(*axes), sym(counts[name])) for name, axes in extents.items())

    def standing(self) -> tuple[tuple[Broken, ...], tuple[tuple[str, str], ...]]:
        """S2 and S3 at this launch: what is broken, and what could not be judged."""
        written = {a.array for a in self.kernel.accesses if a.effect is not Effect.READ}
        found: list[Broken] = []
        open_: list[tuple[str, str]] = []
        for name, value in self.launch.arguments:
            # A Triton kernel is given the strides, or takes none: its conditions speak of them.
            repeats = isinstance(value, HostTensor) and value.expanded and self.kernel.language != "triton"
            if isinstance(value, HostTensor) and repeats and name in written:
                text = f"S2: `{name}` is written, but several of its indices share one element"
                self._standing(text, lt(1, mul(*(value.shape or ()))), (name,), found, open_)
        for axis in range(3 if written else 0):
            if axis not in self.kernel.grid_axes:
                size = self.rewritten(sym(grid_symbol(axis)))
                text = f"S3: grid[{axis}] is more than 1, but the kernel never reads axis {axis}"
                self._standing(text, lt(1, size), (), found, open_)
        return tuple(found), tuple(open_)

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
        if rests_on_unread(self.launch, harm):
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
        if self._impossible(premises):
            return None, True
        tried = ran = False
        for more in self.more_blocks():
            if ran and self._is_spent():
                break
            found, has_run, was_tried = self._tried(rule, text, (*premises, *more), expanded)
            if found is not None:
                return found, True
            tried, ran = tried or was_tried, ran or has_run
        return None, ran or not tried

    def more_blocks(self) -> tuple[tuple[Expr, ...], ...]:
        """What is asked of the grid, in turn: where blocks overlap in flat memory, one alone does no harm."""
        if self.kernel.language != "triton":
            return ((),)
        sizes = [g for g in self.launch.grid or () if g is not None]
        return ((any_of(*(le(2, g) for g in sizes)),), ())

    def _tried(
        self, rule: str, text: str, premises: Sequence[Expr], expanded: tuple[str, ...]
    ) -> tuple[Broken | None, bool, bool]:
        """Inputs that were seen to do harm, whether any were run, and whether there are any."""
        tried = ran = False
        for found in self.models(premises, rule, text, expanded):
            if ran and self._is_spent():
                break
            tried = True
            harmful = self.replayed(found)
            if harmful:
                return found, True, True
            ran |= harmful is not None
        return None, ran, tried

    def _is_spent(self) -> bool:
        """Whether the kernel's launches had replays enough: each condition still gets one."""
        return self.session.fuel.left <= 0

    def models(
        self, premises: Sequence[Expr], rule: str, text: str, expanded: tuple[str, ...]
    ) -> Iterator[Broken]:
        """Host inputs that meet `premises`, from larger and larger ones."""
        inputs = [s for s in symbols(*premises, *self._premises(), *self.known.values()) if s.kind is Kind.HOST]
        free = [s for s in inputs if s.origin != DEFINED and sym(s) not in self.usual]
        numbers = [s for s in free if not any(n.op == "bsym" and n.args[0] is s for n in walk(*premises))]
        for least in _LEAST:
            large = (le(least, sym(s)) for s in numbers if ".shape[" in s.name or least)
            model = self._model((*premises, *large))
            found = None if model is None else self._broken(rule, text, model, expanded)
            if found is not None:
                yield found

    # ---- the host's values ----------------------------------------------------------------------------

    def _tensors(self, condition: Expr) -> dict[str, HostTensor]:
        names = {s.name.partition(".")[0] for s in symbols(condition) if s.kind in (Kind.EXTENT, Kind.STRIDE)}
        return {n: v for n, v in self.launch.arguments if n in names and isinstance(v, HostTensor)}

    def _is_understood(self, condition: Expr) -> bool:
        rewritten = self.rewritten(condition)
        return all(s.kind is Kind.HOST for s in symbols(rewritten)) and not any(
            n.op == "read" for n in walk(rewritten)
        )

    def _premises(self) -> tuple[Expr, ...]:
        facts = tuple(f for f in self.launch.facts if f is not TRUE)
        grids = [g for g in self.launch.grid or () if g is not None]
        lengths = [s for s in symbols(*facts, *grids, *self.known.values()) if ".shape[" in s.name]
        # A launch with an empty grid does not run.
        return (*facts, *(le(1, g) for g in grids), *(le(0, sym(s)) for s in lengths))

    def _follows(self, wanted: Expr) -> bool:
        return self._impossible((negate(wanted),))

    def _possible(self, wanted: Expr) -> bool:
        goal = (*self._premises(), wanted)
        return satisfiable((*ranges(goal), *goal), session=self.session).status != "unsat"

    def _impossible(self, more: Sequence[Expr]) -> bool:
        """Whether no host input meets `more`: then none of any size does."""
        goal = (*self._premises(), *more)
        return satisfiable((*ranges(goal), *goal), session=self.session, prove_only=True).status == "unsat"

    def _model(self, more: Sequence[Expr]) -> Model | None:
        goal = (*self._premises(), *more)
        answer = satisfiable((*ranges(goal), *goal), session=self.session, smallest=True, bounds=_BOUNDS)
        return answer.model

    def _broken(self, rule: str, text: str, model: Model, expanded: tuple[str, ...] = ()) -> Broken | None:
        concrete: dict[Symbol, int | bool] = {}
        for kernel_value, host_value in self.known.items():
            if any(n.op == "read" for n in walk(host_value)):
                continue
            if kernel_value.op == "bsym" and sym(kernel_value.args[0]) in self.known:
                continue  # a number that is also used as a truth value: the number is what is passed
            try:
                concrete[kernel_value.args[0]] = model.evaluate(host_value)
            except ZeroDivisionError:
                return None
        inputs = {s.name: int(v) for s, v in model.symbols.items() if s.kind is Kind.HOST}
        return Broken(rule, text, inputs, concrete, expanded)


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


def _apart(a: HostTensor, b: HostTensor) -> str:
    """Whether two tensors share memory, as far as the text tells."""
    if a.storage != b.storage:
        return "holds" if a.fresh or b.fresh else "caller"
    return "broken" if a.whole or b.whole or a.name == b.name else "caller"


def _under_flags(condition: Expr) -> Expr:
    """What a condition asks where the compile-time flags in it are set."""
    if condition.op != "any":
        return condition
    asked = [c for c in condition.args if any(s.kind is not Kind.CONSTANT for s in symbols(c))]
    return asked[0] if len(asked) == 1 else condition


def _is_least_size(condition: Expr) -> bool:
    """`x.shape[k] >= 3`, `n >= 1`: a bound by a literal or a tile size."""
    if condition.op != "le":
        return False
    low, high = condition.args
    return high.op == "sym" and all(s.kind is Kind.CONSTANT for s in symbols(low))
