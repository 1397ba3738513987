"""What the text of a host function says at one launch, and host inputs that it admits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    ONE,
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    bool_sym,
    conjuncts,
    eq,
    evaluate,
    le,
    lt,
    mul,
    negate,
    render,
    substitute,
    substitution,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.host import (
    ARGUMENT,
    COUNTS,
    DEFINED,
    EXTENT,
    NUMEL,
    OPAQUE,
    RAISED,
    RANK,
    SPAN,
    STRIDE,
    TEST,
    TRUTHS,
    axis_of,
    host_extent,
    host_numel,
    host_rank,
    host_scalar,
    is_whole,
    owner,
    stated,
)
from tilecheck.ir.kernel import Kernel
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.ir.launch_ranks import map_launch, with_known_ranks
from tilecheck.model import Literal
from tilecheck.proof.goals.predicate import ranges
from tilecheck.proof.launches.inputs.equations import by_equations, by_factors
from tilecheck.proof.launches.inputs.inputs import Inputs
from tilecheck.proof.launches.inputs.shapes import some_shapes_have
from tilecheck.proof.launches.inputs.spans import pointers_of, span_facts, usual_layout
from tilecheck.proof.launches.inputs.values import host_values, ranks_of
from tilecheck.proof.solver.known_models import Assignment, Recall
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import Answer, Model, satisfiable

_LEAST = (1, 8, 70, 300, 2000, 0)  # how large host inputs are, at least: tried in turn, 0 last
_SEARCHES = 2  # for inputs of some size that may end undecided before no more are made
_NEAR = 4  # what is asked of few premises takes the fewer steps
# Of the budget of a question: launches have many, most of which take little.
_SHARE, _SEARCH, _QUICK = 10, 30, 50
# What a tuner out of view may choose: sizes of tiles, and other numbers, such as of tiles in a group.
_USUAL_TILES = (16, 32, 64, 128)
_USUAL_COUNTS = (1, 8, 1, 8)
MOST_BLOCKS = 65_535  # along grid axes 1 and 2: CUDA's limit
_MOST_AXES = 8
_PASSES = 3  # over equations, each of which may wait for what another one says
_LARGEST_TILE = 12  # log2
_BOUNDS = (8, 70, 300, 5000, 40_000)


@dataclass(frozen=True, slots=True)
class Broken:
    """What a launch breaks: a rule, the condition's text, and host inputs that show it."""

    rule: str  # TC402 | TC403
    text: str
    values: Mapping[str, int]
    concrete: Mapping[Symbol, int | bool]  # the same launch in the kernel's values
    expanded: tuple[str, ...] = ()  # parameters whose elements share memory
    is_condition: bool = True  # `text` is what does not hold; else it is what happens


def judge_of(kernel: Kernel, launch: Launch, session: Session) -> Judge:
    launch = with_known_ranks(launch, ranks_of(kernel, launch))
    if kernel.language == "triton":
        launch = replace(launch, facts=(*launch.facts, *span_facts(launch, pointers_of(kernel))))
    launch = _with_literals(replace(launch, facts=(*launch.facts, *_whole_numbers(kernel, launch))))
    usual = usual_layout(launch, [p.name for p in kernel.params if p.is_array])
    return Judge(kernel, launch, host_values(kernel, launch), session, usual)


def _with_literals(launch: Launch) -> Launch:
    """The launch with literals where its facts say that a value is one: `assert x.stride(1) == 1`."""
    said: dict[Expr, Expr] = {}
    for fact in launch.facts:
        if fact.op == "eq":
            literal, *others = sorted(fact.args, key=lambda e: e.value is None)
            if literal.value is not None and others[0].op == "sym" and others[0].args[0].kind is Kind.HOST:
                said.setdefault(others[0], literal)
    if not said:
        return launch
    kept = frozenset(eq(value, literal) for value, literal in said.items())
    written = substitution(said)
    return map_launch(launch, lambda e: e if e in kept else written(e))


def _whole_numbers(kernel: Kernel, launch: Launch) -> Iterator[Expr]:
    """That numbers are integers which are passed where the kernel has only them: with a fraction it does not
    compile."""
    asked = {s.name for s in symbols(*launch.facts) if s.origin == TEST}
    given = dict(launch.arguments)
    for param in kernel.params:
        value = given.get(param.name) if param.integer and not param.is_array else None
        passed = value.number if isinstance(value, HostTensor) else value
        stack = [(TRUE, passed)] if isinstance(passed, Expr) else []
        while stack:
            where, number = stack.pop()
            if number.op == "ite":
                test, first, second = number.args
                stack += [(all_of(where, test), first), (all_of(where, negate(test)), second)]
            elif number.op == "sym" and number.args[0].kind is Kind.HOST:
                whole = is_whole(number.args[0].name)
                if whole.args[0].name in asked:
                    yield any_of(negate(where), whole)


def _with_equations(values: dict[Symbol, int | bool], goal: Sequence[Expr]) -> dict[Symbol, int | bool]:
    """Values with those of which the goal says what they are equal to: strides by sizes, and what is made of
    them."""
    equations = [e.args for e in goal if e.op == "eq"]
    for _ in range(_PASSES):
        before = dict(values)
        for pair in equations:
            value, other = pair if pair[0].op == "sym" else pair[::-1]
            if value.op == "sym" and value.args[0].kind is Kind.HOST:
                values[value.args[0]] = Assignment(values).number(other)
        if values == before:
            break
    return values


@dataclass(frozen=True, eq=False)
class Judge:
    """One launch of one kernel, with the kernel's values written over the host's."""

    kernel: Kernel
    launch: Launch
    known: Mapping[Expr, Expr]
    session: Session
    usual: Mapping[Expr, Expr]  # free strides and spans, where the caller's tensors are contiguous

    @cached_property
    def rewritten(self) -> Callable[[Expr], Expr]:
        """A condition over the host's values."""
        return substitution(self.known)

    def in_usual(self, condition: Expr) -> Expr:
        """A condition over the host's values where the caller's tensors are contiguous."""
        return substitute(self.rewritten(condition), self.usual)

    def excludes(self, condition: Expr) -> bool:
        """Whether no host input meets a condition."""
        return not self.possible(self.rewritten(condition))

    def is_of_another_kernel(self) -> bool:
        """Whether the launch gives a parameter of compile time another value than is verified."""
        return any(r.specialises and self.excludes(r.condition) for r in self.kernel.requires)

    @cached_property
    def equal(self) -> tuple[frozenset[Expr], ...]:
        """Values of the host that its text says are equal."""
        found: list[frozenset[Expr]] = []
        for fact in sorted(stated(self.launch.facts), key=render):
            if fact.op == "eq" and all(side.op == "sym" for side in fact.args):
                joined = [one for one in found if not one.isdisjoint(fact.args)]
                found = [one for one in found if one not in joined]
                found.append(frozenset(fact.args).union(*joined))
        return tuple(found)

    @cached_property
    def with_elements(self) -> tuple[Expr, ...]:
        """That all tensors have elements. No launch is blamed for what goes wrong with empty ones alone."""
        spoken = symbols(*self.known.values(), *self.launch.facts, *(g for g in self.launch.grid or () if g))
        return tuple(le(1, sym(s)) for s in spoken if s.origin in (EXTENT, NUMEL, SPAN))

    @cached_property
    def tuned(self) -> tuple[Expr, ...]:
        """The compile-time parameters that a tuner out of view chooses."""
        found = []
        for name, value in self.launch.arguments:
            own = f"{self.kernel.name}.{name}"  # what the host reader calls such a value
            if isinstance(value, Expr) and value.op == "sym" and value.args[0].origin == OPAQUE:
                found += [value] if value.args[0].name.split(" ")[0] == own else []
        return tuple(found)

    @property
    def tilings(self) -> tuple[tuple[Expr, ...], ...]:
        """What a tuner out of view may choose; a single empty choice where there is none.

        A flag may follow from the arguments (`EVEN_K`) in code that is not read: both of its values are tried.
        """
        if not self.tuned:
            return ((),)
        sizes = {self.rewritten(size) for size in self.kernel.powers_of_two}
        flags = {self.rewritten(flag) for flag in _flags(self.kernel)}

        def value(parameter: Expr, k: int) -> int:
            if parameter in sizes:
                return _USUAL_TILES[k]
            return k % 2 if parameter in flags else _USUAL_COUNTS[k]

        return tuple(tuple(eq(p, value(p, k)) for p in self.tuned) for k in range(len(_USUAL_TILES)))

    def rests_on_tuner(self, condition: Expr) -> bool:
        """Whether a tuner out of view decides a condition."""
        return not set(symbols(self.rewritten(condition))).isdisjoint(symbols(*self.tuned))

    @cached_property
    def in_ordinary_call(self) -> Callable[[Expr], Expr]:
        """A condition over the host's values in a call with contiguous tensors and default numbers."""
        return substitution({**self.usual, **self.defaults})

    @cached_property
    def ordinary(self) -> Judge:
        """The launch in an ordinary call. Its strides and default numbers are written in, not only said to be
        equal: both have the same inputs, and this one takes fewer steps."""
        launch = map_launch(self.launch, self.in_ordinary_call)
        facts = dict.fromkeys(map(self.in_ordinary_call, (*self.launch.facts, *self.ordinarily)))
        known = {value: self.in_ordinary_call(given) for value, given in self.known.items()}
        launch = replace(launch, facts=tuple(f for f in facts if f is not TRUE))
        return Judge(self.kernel, launch, known, self.session, {})

    @cached_property
    def defaults(self) -> dict[Expr, Expr]:
        """The host function's own defaults of its numbers."""
        return {sym(host_scalar(name)): value for name, value in self.launch.defaults}

    @cached_property
    def ordinarily(self) -> tuple[Expr, ...]:
        """What holds in a call with contiguous tensors and default numbers, where nothing raises."""
        defaults = (eq(number, value) for number, value in self.defaults.items())
        spoken = symbols(*self.known.values(), *self.launch.facts)
        # A tensor of unknown origin has elements.
        made = (s for s in spoken if s.origin in (EXTENT, NUMEL) and owner(s) in self.launch.unread)
        return (*self.usually, *self.unraised, *defaults, *(le(1, sym(s)) for s in made))

    @cached_property
    def unraised(self) -> tuple[Expr, ...]:
        """That no exception ended a block before the launch early, and was held back: not where it stands in
        what runs after one."""
        raised = (bool_sym(s) for s in symbols(*self.launch.facts) if s.origin == RAISED)
        return tuple(negate(e) for e in raised if e not in self.launch.facts)

    @cached_property
    def usually(self) -> tuple[Expr, ...]:
        """What holds where the caller's tensors are contiguous, and no number that counts blocks is negative:
        two may be, where their product is a grid."""
        contiguous = (eq(value, size) for value, size in self.usual.items())
        counted = symbols(*(size for size in self.launch.grid or () if size is not None))
        counts = (le(0, sym(s)) for s in counted if s.origin == ARGUMENT)
        return (*contiguous, *counts, *self._sizes(), *(_is_power(size) for size in self._tiles))

    @cached_property
    def _tiles(self) -> tuple[Expr, ...]:
        """The sizes of tiles that the text leaves open."""
        sizes = dict.fromkeys(self.rewritten(size) for size in self.kernel.powers_of_two)
        return tuple(s for s in sizes if s.op == "sym" and s.args[0].kind is Kind.HOST)

    def _sizes(self) -> tuple[Expr, ...]:
        """A tensor of unknown rank has as many elements as the extents that are asked for say, or more. Its
        stride along the last axis that is asked for is as large as the axes after it."""
        said = (*self.known.values(), *self.usual.values(), *(g for g in self.launch.grid or () if g))
        spoken = symbols(*said, *self.launch.facts)
        numbers = [s for s in spoken if s.origin == NUMEL]
        counts = {owner(s) or "": sym(s) for s in numbers if s == host_numel(owner(s) or "")}
        axes: dict[str, list[int]] = {}
        for symbol in spoken:
            if symbol.origin == EXTENT:
                axes.setdefault(owner(symbol) or "", []).append(axis_of(symbol))
        found = [le(0, sym(s)) for s in spoken if s.origin == EXTENT]
        found += [le(1, sym(s)) for s in numbers if s != host_numel(owner(s) or "")]  # of some of its axes
        found += [le(1, sym(s)) for s in spoken if s.origin == STRIDE and sym(s) not in self.usual]
        for name, asked in axes.items():
            count = counts.get(name)
            ends = ([k for k in asked if k >= 0], [k for k in asked if k < 0])
            if count is not None:
                found += [le(mul(*(sym(host_extent(name, k)) for k in ks)), count) for ks in ends if ks]
                found += [_of_both_ends(name, *ends, count)] if all(ends) else []
            if any(k < 0 for k in asked):
                found += [_of_rank(name, rank, asked, count) for rank in self._ranks_asked(name, said)]
        return tuple(found)

    def _ranks_asked(self, name: str, said: Sequence[Expr]) -> tuple[int, ...]:
        """The ranks that the text asks a tensor for."""
        rank = sym(host_rank(name))
        asked = [n for n in walk(*said, *self.launch.facts) if n.op in ("eq", "ne") and rank in n.args]
        numbers = [a.value for n in asked for a in n.args if a.value is not None]
        return tuple(dict.fromkeys(n for n in numbers if 0 < n <= _MOST_AXES))

    def more_blocks(self) -> tuple[tuple[Expr, ...], ...]:
        """What is asked of the grid, in turn: where blocks overlap in flat memory, one alone does no harm."""
        several = [le(2, g) for g in self.launch.grid or () if g is not None and g is not ONE]
        if self.kernel.language != "triton" or not several:
            return ((),)
        return ((any_of(*several),), (all_of(*several),), ())[len(several) < 2 :]

    def models(
        self, premises: Sequence[Expr], rule: str, text: str, expanded: tuple[str, ...]
    ) -> Iterator[Broken]:
        """Host inputs that meet `premises`, in the kernel's values."""
        for model in self.inputs(premises):
            found = self.broken(rule, text, model, expanded)
            if found is not None:
                yield found

    def varied(self, premises: Sequence[Expr]) -> Iterator[Model]:
        """Host inputs that meet `premises`, drawn without a solver."""
        goal = (*self.premises, *premises)
        spoken = symbols(*goal, *self.known.values())
        for found in self._inputs.varied((*ranges(goal), *goal)):
            yield Model({s: found.value(s) for s in spoken}, found.cells)

    def inputs(self, premises: Sequence[Expr], *, empty: bool = True) -> Iterator[Model]:
        """Host inputs that meet `premises`, from larger and larger ones; last, if `empty`, tensors without
        elements."""
        inputs = [s for s in symbols(*premises, *self.premises, *self.known.values()) if s.kind is Kind.HOST]
        free = [s for s in inputs if s.origin not in (DEFINED, RANK) and sym(s) not in self.usual]
        numbers = [s for s in free if not any(n.op == "bsym" and n.args[0] is s for n in walk(*premises))]
        failed, largest = 0, max(_LEAST)
        seen: set[frozenset[tuple[Symbol, int | bool]]] = set()
        for least in _LEAST if empty else _LEAST[:-1]:
            if failed >= _SEARCHES or least > largest:
                continue
            large = tuple(le(least, sym(s)) for s in numbers if ".shape[" in s.name or least)
            model = self._near(least, (*self.premises, *premises, *large))
            if model is None:
                answer = self._search((*premises, *large))
                model = answer.model
                failed += answer.status == "unknown"
                largest = 0 if answer.status == "unsat" else largest  # what is larger is impossible as well
            values = frozenset() if model is None else frozenset(model.symbols.items())
            if model is not None and values not in seen:
                seen.add(values)
                yield model

    def _near(self, size: int, goal: Sequence[Expr]) -> Model | None:
        """Inputs that are all about as large, changed a little so that they meet `goal`."""
        goal = (*ranges(goal), *goal)
        spoken = symbols(*goal)
        near = Recall(self.session.work, _plain=[], _inner=Assignment({}, size=max(1, size)))
        tiles = {tile.args[0] for tile in self._tiles}
        for n in (size + 1, max(1, size)):
            power = 1 << min(n.bit_length() - 1, _LARGEST_TILE)
            near.learn(_with_equations({s: power if s in tiles else n for s in spoken}, goal), {})
        found = near.find(goal) or near.repaired(goal, wanted=True)
        return None if found is None else Model({s: found.value(s) for s in spoken}, dict(found.reads))

    # ---- the host's values ----------------------------------------------------------------------------

    @cached_property
    def cannot_start(self) -> str:
        """Why the launch does not compile or start, whatever its inputs are; empty if it may."""
        for size in self.kernel.powers_of_two:
            value = self.rewritten(size).value
            always = size.value is not None or le(1, size) in self.kernel.facts  # under no compile-time flag
            if always and value is not None and (value < 1 or value & (value - 1)):
                named = "" if size.value is not None else f" {render(size)}"
                return f"the tile size{named} is {value}, no power of two"
        if self.is_made:
            return ""
        for axis, blocks in enumerate(self.launch.grid or ()):
            if blocks is not None and axis and self._exceeds(blocks):
                return f"the grid has more than {MOST_BLOCKS:,} blocks along axis {axis}"
        return ""

    def _exceeds(self, blocks: Expr) -> bool:
        """Whether some input leads here, and each to more blocks than there may be."""
        text = tuple(f for f in self.launch.facts if f is not TRUE)
        statuses = []
        for bound in (le(blocks, MOST_BLOCKS), lt(MOST_BLOCKS, blocks)):
            goal = (*text, bound)
            statuses.append(self._answer((*ranges(goal), *goal), self.session.budget // _SHARE).status)
        return statuses == ["unsat", "sat"]

    @cached_property
    def premises(self) -> tuple[Expr, ...]:
        facts = tuple(f for f in self.launch.facts if f is not TRUE)
        grids = [g for g in self.launch.grid or () if g is not None]
        spoken = symbols(*facts, *grids, *self.known.values())
        counts = [s for s in spoken if s.kind is Kind.HOST and s.origin in COUNTS]
        # A launch with an empty grid does not run, and one above the device's limits fails; one with an empty
        # tile does not compile.
        limits = (le(g, MOST_BLOCKS) for g in (self.launch.grid or ())[1:] if g is not None)
        compiles = (f for f in map(self.rewritten, self.kernel.facts) if f is not TRUE and is_of_host(f))
        divided = _quotients((*facts, *grids, *self.known.values()))
        ran = (*(le(1, g) for g in grids), *limits)
        return (*facts, *compiles, *divided, *ran, *(le(0, sym(s)) for s in counts))

    def follows(self, wanted: Expr, *, quick: bool = False) -> bool:
        """Whether every host input meets `wanted`; with `quick` only what takes few steps is found."""
        return self._status((negate(wanted),), share=_QUICK if quick else _SHARE) == "unsat"

    def possible(self, wanted: Expr, *, quick: bool = False) -> bool:
        """Whether some host input may meet `wanted`; with `quick` as far as few steps tell."""
        return self._status((wanted,), share=_QUICK if quick else _SHARE) != "unsat"

    def impossible(self, more: Sequence[Expr]) -> bool:
        """Whether no host input meets `more`: then none of any size does."""
        return self._status(more) == "unsat"

    def _status(self, more: Sequence[Expr], *, share: int = _SHARE) -> str:
        """What the solver says of `more` and the premises that have to do with it.

        Launches of one kernel that differ in a choice ask much the same: equal questions are asked once.
        """
        about = self._about(more)
        near = tuple(self._nearest(about, more))
        if len(near) < len(about) and self._asked((*near, *more), share * _NEAR) == "unsat":
            return "unsat"
        written = by_equations(about, more)
        if written is not None and self._asked(written, share * _NEAR) == "unsat":
            return "unsat"
        found = self._asked((*about, *more), share)
        if found == "unknown" and (written := by_factors(about, more)) is not None:
            return "unsat" if self._asked(written, share) == "unsat" else found
        return found

    def _nearest(self, about: Sequence[Expr], asked: Sequence[Expr]) -> Iterator[Expr]:
        """The premises that speak of what is asked alone: they are mostly enough, and lead no further."""
        spoken, divided = set(symbols(*asked)), set(_divisions(*asked))
        for premise in about:
            if spoken.issuperset(symbols(premise)) and divided.issuperset(_divisions(premise)):
                yield premise

    def _asked(self, goal: tuple[Expr, ...], share: int) -> str:
        key = ("launch", frozenset(goal), share)
        answers = self.session.answers
        if key not in answers:
            budget = self.session.budget // share
            answers[key] = self._answer((*ranges(goal), *goal), budget).status
        return str(answers[key])

    def _about(self, asked: Sequence[Expr]) -> tuple[Expr, ...]:
        """The premises that share values with `asked`, or with others that do.

        The rest neither helps to refute it nor is in its way, unless it contradicts itself: see `is_made`.
        """
        reached = set(symbols(*asked))
        left = list(self._premises_by_symbols)
        found: set[Expr] = set()
        while True:
            near = [(p, s) for p, s in left if not s or not s.isdisjoint(reached)]
            if not near:
                return tuple(p for p in self.premises if p in found)
            found.update(p for p, _ in near)
            reached.update(*(s for _, s in near))
            left = [(p, s) for p, s in left if p not in found]

    @cached_property
    def _premises_by_symbols(self) -> tuple[tuple[Expr, frozenset[Symbol]], ...]:
        return tuple((p, frozenset(symbols(p))) for p in self.premises)

    @cached_property
    def _passed(self) -> frozenset[Symbol]:
        """The host's values that decide what is passed, and the ranks that the text asks for."""
        passed = symbols(*self.known.values(), *(g for g in self.launch.grid or () if g is not None))
        return frozenset((*passed, *(s for s in symbols(*self.launch.facts) if s.origin in (RANK, ARGUMENT))))

    def _is_of_shape(self, symbol: Symbol) -> bool:
        """Whether a value of the host says something of a shape that is passed."""
        if owner(symbol) in self._row_major:
            return True
        return symbol in self._passed and symbol.origin != STRIDE

    @cached_property
    def _row_major(self) -> frozenset[str | None]:
        """The tensors of unknown rank that are handed in, with strides that are asked for."""
        strides = [s for value in self.usual.values() for s in symbols(value) if s.origin == STRIDE]
        last = (s for value in self.usual for s in symbols(value) if s.origin == STRIDE and axis_of(s) < 0)
        return frozenset(owner(s) for s in (*strides, *last))

    @cached_property
    def is_made(self) -> bool:
        """Whether some host input may lead to this launch."""
        goal = (*ranges(self.premises), *self.premises)
        return self._answer(goal, self.session.budget // _SHARE).status != "unsat"

    def _answer(self, goal: Sequence[Expr], budget: int) -> Answer:
        """Whether nothing meets `goal`: the solver, which takes long where it cannot tell, is asked last."""

        def finds() -> Assignment | None:
            return self._inputs.find(goal)

        return satisfiable(goal, session=self.session, prove_only=True, budget=budget, finds=finds)

    @cached_property
    def _inputs(self) -> Inputs:
        return Inputs(self.premises, self.usual, self.session.work)

    def model(self, more: Sequence[Expr]) -> Model | None:
        """Host inputs that lead to this launch and meet `more`."""
        return self._search(more).model

    def _search(self, more: Sequence[Expr]) -> Answer:
        goal = (*self.premises, *more)
        return satisfiable(
            (*ranges(goal), *goal),
            session=self.session,
            budget=self.session.budget // _SEARCH,
            smallest=True,
            bounds=_BOUNDS,
        )

    def value_at(self, condition: Expr, broken: Broken) -> bool | None:
        """The truth of a condition at concrete inputs; None where they do not say."""
        try:
            return bool(evaluate(condition, broken.concrete.__getitem__))
        except (KeyError, ZeroDivisionError):
            return None

    def broken(self, rule: str, text: str, model: Model, expanded: tuple[str, ...] = ()) -> Broken | None:
        if not some_shapes_have({s: v for s, v in model.symbols.items() if self._is_of_shape(s)}):
            return None
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
        inputs: dict[str, int] = {
            Literal(s.name): bool(v) if s.origin in TRUTHS else int(v)
            for s, v in model.symbols.items()
            if s.kind is Kind.HOST
        }
        return Broken(rule, text, inputs, concrete, expanded)


def _flags(kernel: Kernel) -> Iterator[Expr]:
    """The parameters that a kernel asks for their truth."""
    asked = (*(a.guard for a in kernel.accesses), *(a.mask for a in kernel.accesses))
    return (sym(n.args[0]) for n in walk(*asked) if n.op == "bsym")


def _is_power(size: Expr) -> Expr:
    return any_of(*(eq(size, 1 << k) for k in range(_LARGEST_TILE + 1)))


def _of_both_ends(name: str, first: Sequence[int], last: Sequence[int], count: Expr) -> Expr:
    """What holds of the first axes and the last ones: where none is both, there are as many elements. Who asks
    for the first axis and the last one has two of them."""
    axes = {k: sym(host_extent(name, k)) for k in (*first, *last)}
    same = (eq(axes[k], axes[j]) for k in first for j in last if (k, j) != (0, -1))
    return any_of(*same, le(mul(*axes.values()), count))


def _of_rank(name: str, rank: int, asked: Sequence[int], count: Expr | None) -> Expr:
    """What holds of the axes of a tensor that has this rank."""
    ends = [eq(sym(host_extent(name, k)), sym(host_extent(name, k + rank))) for k in asked if -rank <= k < 0]
    whole = mul(*(sym(host_extent(name, k)) for k in range(rank)))
    ends += [eq(count, whole)] if count is not None else []
    return any_of(negate(eq(sym(host_rank(name)), rank)), all_of(*ends))


def is_of_host(rewritten: Expr) -> bool:
    """Whether all values in a condition are the host's."""
    return all(s.kind is Kind.HOST for s in symbols(rewritten)) and not any(
        n.op == "read" for n in walk(rewritten)
    )


def _divisions(*exprs: Expr) -> Iterator[tuple[Expr, ...]]:
    """What is divided by what."""
    return (e.args for e in walk(*exprs) if e.op in ("floordiv", "mod"))


def _quotients(exprs: Sequence[Expr]) -> Iterator[Expr]:
    """What is divided by a number that may be negative, and is none itself, gives none that is above 0, rounded
    down or towards 0."""
    stated = {part for e in exprs if e.is_bool for part in conjuncts(e)}
    for e in walk(*exprs):
        if e.op != "floordiv":
            continue
        number, divisor = e.args
        own = divisor.op == "sym" and divisor.args[0].origin in (ARGUMENT, OPAQUE)
        if own and stated.isdisjoint((le(1, divisor), lt(0, divisor))):
            yield any_of(le(1, divisor), lt(number, 0), le(e, 0))
