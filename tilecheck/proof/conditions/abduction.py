"""The `launch` rung: minimal launch conditions under which open obligations hold, weak ones first.

Counterexamples steer the search. Each one is a launch that the conditions must exclude, so only sets that
exclude all of those found so far are put to the solver; whatever set is left after that is proved in full
before it is accepted, and refused if it is degenerate (it would save the kernel by forbidding its use).
All limits are counts, so the same kernel always gets the same conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import combinations, count
from typing import Literal, Protocol

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    FALSE,
    Expr,
    Kind,
    Symbol,
    children,
    conjuncts,
    evaluate,
    negate,
    render,
    symbols,
    walk,
)
from tilecheck.proof.conditions.candidates import candidates, is_length, is_product, tile_symbols
from tilecheck.proof.conditions.degenerate import Decision, Valuation, is_degenerate
from tilecheck.proof.conditions.generators.last_block import last_blocks, lone_blocks, lone_groups
from tilecheck.proof.conditions.generators.layout import in_place, layouts
from tilecheck.proof.conditions.minimisation import sufficient
from tilecheck.proof.conditions.terms import Terms
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import inhabited, negation
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.premises.divisibility import is_multiple
from tilecheck.proof.premises.nested_quotients import whole_segments
from tilecheck.proof.rewrite.conditionals import Settle, widths
from tilecheck.proof.rewrite.whole_goals import Wholes

_QUERIES = 40  # per goal
_ALL_QUERIES = 3000  # per kernel
_UNDECIDED = 3  # queries per goal that may end without an answer
_ALL_UNDECIDED = 24  # per kernel; from then on a goal's first undecided query ends its search
_LENGTHS = 4  # conditions on the length of memory that are tried one by one
_NEW = 3  # conditions that one goal may add


Prove = Callable[[Obligation, tuple[Expr, ...]], bool]


@dataclass(frozen=True, slots=True)
class _Undecided:
    """For questions that count as satisfiable unless they are shown not to be."""

    status: Literal["unsat", "sat", "unknown"] = "sat"
    model: Valuation | None = None


_POSSIBLE = _Undecided()


class Decide(Protocol):
    """Decides a conjunction; `refutes` may show it unsatisfiable in another way, before a solver is asked.
    Without `solver` none is, and with `quick` for a few steps only; with neither, no model is sought."""

    def __call__(
        self,
        assertions: Sequence[Expr],
        refutes: Callable[[], bool] | None = None,
        /,
        *,
        solver: bool = True,
        quick: bool = False,
    ) -> Decision: ...


@dataclass(frozen=True, slots=True)
class Derivation:
    """`conditions` is the union, grid axes first; `used` has, for each obligation in the order given, the
    conditions that its proof rests on, or None where none were found. `refuted` says of the latter that
    launches break the obligation under every set of candidate conditions; where it is False the search
    itself gave up, so that a counterexample may only show that a condition was missed."""

    conditions: tuple[Expr, ...]
    used: tuple[tuple[Expr, ...] | None, ...]
    refuted: tuple[bool, ...] = ()


def derive(
    open_: Sequence[Obligation],
    context: Context,
    prove: Prove,
    satisfiable: Decide,
    stopped: Callable[[], bool] = lambda: False,
    *,
    solver: bool = True,
    spare: Callable[[], Callable[[], bool]] = lambda: lambda: True,
    settle: Settle = lambda obligation, _: obligation,
    wholes: Wholes | None = None,
    groups: bool = False,
) -> Derivation:
    """Find launch conditions for obligations that do not follow from the kernel's text.

    Args:
        open_: the obligations, each not provable under `context` alone.
        context: the premises; its own conditions are kept and not reported.
        prove: whether an obligation holds under more conditions; asked where `satisfiable` cannot tell.
        satisfiable: decides a conjunction; a "sat" answer must come with a model, "unsat" is a proof.
        stopped: whether nothing more is to be tried.
        solver: whether one may be asked for proofs.
        spare: called for each goal; what it returns says whether more may be spent on that.
        settle: an obligation that says the same under the conditions of a context, written plainer.
        wholes: says which of the obligations are tried; those it leaves out count as cut short.
        groups: whether groups may be asked to have one block each, and nothing else is tried but layouts.
    """
    order = sorted(range(len(open_)), key=lambda i: (open_[i].stage, _reads(open_[i], context), i))
    tiles = tile_symbols(context.kernel)
    rest = stopped, solver, spare, settle, wholes, groups
    search = _Search(context, prove, satisfiable, tiles, *rest)
    search.solve_all(open_, order)
    contested = [i for i in order if i in search.contested and i not in search.found]
    if contested:
        # Conditions found for others left no launch for these: let them choose first.
        again = _Search(context, prove, satisfiable, tiles, *rest)
        again.solve_all(open_, [*contested, *(i for i in order if i not in contested)])
        search = again if len(again.found) > len(search.found) else search
    search.simplify()
    used = tuple(_sorted(search.found[i], context) if i in search.found else None for i in range(len(open_)))
    refuted = tuple(i not in search.found and i not in search.cut for i in range(len(open_)))
    return Derivation(_sorted(tuple(search.base), context), used, refuted)


@dataclass
class _Search:
    """The conditions found so far. Mutable: obligations are solved one after another on it."""

    context: Context
    prove: Prove
    satisfiable: Decide
    tiles: frozenset[Symbol]
    stopped: Callable[[], bool]
    solver: bool
    spare: Callable[[], Callable[[], bool]]
    settle: Settle
    wholes: Wholes | None = None
    groups: bool = False
    base: dict[Expr, None] = field(default_factory=dict)
    found: dict[int, tuple[Expr, ...]] = field(default_factory=dict)
    cut: dict[int, None] = field(default_factory=dict)  # obligations whose search met a limit
    contested: dict[int, None] = field(default_factory=dict)  # saved but for conditions found before
    queries: int = 0
    undecided: int = 0
    _met_limit: bool = False
    _crowded_out: bool = False
    _may_go_on: Callable[[], bool] = lambda: True

    def solve_all(self, obligations: Sequence[Obligation], order: Sequence[int]) -> None:
        """Solve obligations in turn; once more where later ones added what earlier ones lacked. Without a
        solver that is left to the search with one."""
        for _ in range(2 if self.solver else 1):
            before = len(self.base)
            for i in order:
                if i not in self.found:
                    self._try(i, obligations[i])
            if len(self.base) == before:
                return

    def _try(self, number: int, obligation: Obligation) -> None:
        if self.wholes is None:
            self.solve(number, obligation)
        elif self.wholes.is_tried(obligation):
            self.solve(number, obligation)
            self.wholes.note(obligation, saved=number in self.found)
        else:
            self.cut[number] = None

    def solve(self, number: int, obligation: Obligation) -> None:
        """Find conditions for one obligation; on failure nothing is kept."""
        before = dict(self.base)
        used: dict[Expr, None] = {}
        self._met_limit = self._crowded_out = False
        self.cut.pop(number, None)
        for part in _parts(obligation):
            stopped = self.stopped()
            conditions = None if stopped else self._conditions(self._settled(part))
            if conditions is None:
                self.base = before
                if self._met_limit or stopped:
                    self.cut[number] = None
                if self._crowded_out:
                    self.contested[number] = None
                return
            used.update(dict.fromkeys(conditions))
            self.base.update(dict.fromkeys(conditions))
        self.found[number] = tuple(used) or tuple(self.base)

    def _settled(self, part: Obligation) -> Obligation:
        """The goal as it reads under the conditions found so far, and where that makes it plainer, under those
        that looked-up numbers fit into the types that they are cast to."""
        settled = self.settle(part, self.context.under(*self.base))
        for condition in widths(settled, self.context):
            if condition not in self.base:
                plainer = self.settle(settled, self.context.under(*self.base, condition))
                if plainer is not settled:
                    self.base.update(dict.fromkeys(conjuncts(condition)))
                    settled = plainer
        return settled

    def _conditions(self, part: Obligation) -> tuple[Expr, ...] | None:
        """What one goal needs, on top of what earlier goals got: those it may lean on from the start, as
        its own text may only be defined under them."""
        self._may_go_on = self.spare()
        old = tuple(self.base)
        found = self._laid_out(part, old)
        if found is not None or self.groups:
            return found
        if self.solver and self._is_told_by_contents(part):
            self._met_limit = True
            return None
        choices = candidates(part, self.context.kernel, self.tiles)
        pool = _Pool(c for c in choices if c not in old)
        undecided = queries = 0
        reduced = False  # whether all of the choices were tried at once
        for chosen in pool.sets():
            queries += 1
            allowed = _UNDECIDED if self.undecided <= _ALL_UNDECIDED else 0
            if queries > _QUERIES or undecided > allowed or self.queries > _ALL_QUERIES:
                self._met_limit = True
                return None if reduced else self._reduced(part, old, pool)
            if not self._may_go_on():
                self._met_limit = True
                return None
            answer = self._refuted(part, (*old, *chosen), solver=reduced)
            if answer.status == "unknown" and not reduced:
                reduced = True
                found = self._reduced(part, old, pool)
                if found is not None:
                    return found
                if not self.solver:  # what all choices together do not show, some of them do not either
                    self._met_limit = True
                    return None
                answer = self._refuted(part, (*old, *chosen))
            if answer.status == "sat" and answer.model is not None:
                pool.exclude(answer.model.symbols)
                continue
            undecided += answer.status == "unknown"
            self.undecided += answer.status == "unknown"
            if answer.status == "unsat" or self.prove(part, (*old, *chosen)):
                if not chosen or not self._is_degenerate(part, (*old, *chosen)):
                    return self._concerning(part, old, chosen)
                pool.forbid(chosen)
                if old and not self._is_degenerate(part, chosen):
                    self._crowded_out = True
        self._met_limit |= undecided > 0
        return None if reduced or pool.is_lost else self._reduced(part, old, pool)

    def _laid_out(self, part: Obligation, old: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
        """What a race needs of a row-major layout, where that is enough. How long memory is says nothing of who
        touches which element, but where tables tell the elements, that these exist."""
        goal = part.goal
        if not isinstance(goal, Disjoint) or not (goal.first.flat and goal.second.flat):
            return None
        terms = Terms(self.tiles)
        accesses = dict.fromkeys((goal.first, goal.second))
        segments = whole_segments(accesses)
        inside = goal.between is not Between.BLOCKS
        plain = [w for a in accesses for w in layouts(a, self.context.kernel, terms, one_block=inside)]
        found = [(*segments, *whole) for whole in plain or ([()] if segments else [])]
        tables = {n.args[0] for n in walk(*_expressions(part)) if n.op == "read"}
        known = tuple(c for c in old if _lengths(c) <= tables)
        kernel = self.context.kernel
        groups = lone_groups(accesses, kernel, terms) if self.groups else ()
        # Of groups that have one block for another race.
        is_asked = bool(groups) and all(c in old for c in groups)
        if (not tables or is_asked) and self.prove(part, known):
            return self._concerning(part, known, ())
        # Where all that was thought of is not enough, no part of it is: where tables tell, which makes a proof
        # dear, nothing else is tried, and of other sets inside each other the largest alone.
        together = tuple(dict.fromkeys(c for whole in found for c in whole))
        sets = [frozenset(whole) for whole in found]
        largest = [whole for whole in found if not any(frozenset(whole) < other for other in sets)]
        order = (together, *sorted(found, key=len)) if tables else (*largest, together)
        if same := in_place(goal.first, goal.second, terms):
            order = (*order, *((*same, *whole) for whole in largest or [()]))
        for few in (last_blocks(accesses, terms), lone_blocks(accesses, kernel), groups):
            order = (*order, *((*few, *whole) for whole in (largest or [()]) if few))
        if tables and groups:
            order = (groups, (*groups, *together), *order)  # most need no more than these
        for whole in dict.fromkeys(order):
            needed = tuple(c for c in whole if c not in old)
            is_all = bool(tables) and whole == (*groups, *together)
            if (not needed and not is_all) or not self.prove(part, (*known, *needed)):
                if is_all:
                    return None
                continue
            # Nothing was enough without one block for each group: all else is left out first, few blocks most.
            for condition in sorted(needed, key=lambda c: (c in groups, not _bounds_grid(c)) if groups else ()):
                fewer = tuple(c for c in needed if c is not condition)
                needed = fewer if self.prove(part, (*known, *fewer)) else needed
            if not needed or not self._is_degenerate(part, (*old, *needed)):
                return self._concerning(part, known, needed)
        return None

    def _is_degenerate(self, part: Obligation, conditions: tuple[Expr, ...]) -> bool:
        """A quick look, where what is refused is looked at once more with a solver for proofs too. Conditions
        that are refused since the solver did not decide are no evidence that nothing saves the kernel."""
        is_open = False

        def decides(assertions: Sequence[Expr]) -> Decision:
            nonlocal is_open
            found = self.satisfiable(assertions, quick=not self.solver)
            is_open |= found.status == "unknown"
            return found

        refused = is_degenerate(part, self.context, conditions, decides)
        self._met_limit |= refused and is_open
        return refused

    def _reduced(self, part: Obligation, old: tuple[Expr, ...], pool: _Pool) -> tuple[Expr, ...] | None:
        """What it needs of all choices at once, as far as no solver is needed to say so."""

        def proves(some: tuple[Expr, ...]) -> bool:
            return self._may_go_on() and self.prove(part, (*old, *some))

        def possible(assertions: Sequence[Expr]) -> Decision:
            found = self.satisfiable(assertions, solver=False, quick=True)
            return found if found.status == "unsat" else _POSSIBLE

        def refused(choice: Expr) -> bool:
            # Races are proved most easily where few blocks are left, and no other condition brings them back.
            if not is_race or not _bounds_grid(choice):
                return False
            return not self._may_go_on() or is_degenerate(part, self.context, (*old, choice), possible)

        is_race = isinstance(part.goal, Disjoint)
        for some in (*_with_signs(pool.choices), pool.choices):
            for chosen in sufficient(proves, some, refused):
                if not self._is_degenerate(part, (*old, *chosen)):
                    return self._concerning(part, old, chosen)
        return None

    def _refuted(self, part: Obligation, conditions: tuple[Expr, ...], *, solver: bool = True) -> Decision:
        """Whether some launch that meets `conditions` breaks the goal."""
        solver = solver and self.solver
        self.queries += solver
        assertions = negation(part.goal, self.context.under(*conditions), part.assume)
        if isinstance(part.goal, Holds):
            return self.satisfiable(assertions, solver=solver)
        return self.satisfiable(assertions, lambda: self.prove(part, conditions), solver=solver)

    def _is_told_by_contents(self, part: Obligation) -> bool:
        """Whether each block of a race finds its elements through numbers in memory of which no contract says
        anything: where the rungs show nothing, some numbers have the blocks meet, whatever the launch."""
        goal = part.goal
        if not isinstance(goal, Disjoint) or goal.between is not Between.BLOCKS:
            return False
        known = {c.array for c in self.context.kernel.contracts}
        places = [axis.coordinate for access in (goal.first, goal.second) for axis in access.axes]
        tables = [node for node in walk(*places) if node.op == "read" and node.args[0] not in known]
        return any(s.kind is Kind.BLOCK for s in symbols(*tables))

    def _concerning(
        self, part: Obligation, old: tuple[Expr, ...], chosen: tuple[Expr, ...]
    ) -> tuple[Expr, ...]:
        """`chosen`, and what the proof may owe to `old`: the conditions that speak of the goal's own extents,
        scalars and constants, or of those of a condition that does."""
        own = self._subjects(*_expressions(part), *chosen)
        kept: dict[Expr, None] = {}
        for _ in old:
            fresh = [c for c in old if c not in kept and own & self._subjects(c)]
            kept.update(dict.fromkeys(fresh))
            own = own.union(*(self._subjects(c) for c in fresh))
        related = tuple(c for c in old if c in kept)
        return (*related, *chosen)

    def _subjects(self, *expressions: Expr) -> frozenset[Symbol]:
        found = symbols(*expressions)
        return frozenset(s for s in found if s.kind <= Kind.HOST and s.kind is not Kind.GRID) - self.tiles

    def simplify(self) -> None:
        """Drop conditions that the others imply, long ones first.

        What was proved under a condition holds under conditions that imply it, so nothing is proved again.
        """
        for condition in sorted(self.base, key=lambda c: (-len(render(c)), render(c))):
            others = tuple(c for c in self.base if c is not condition)
            if not self._implied(condition, others):
                continue
            del self.base[condition]
            left: dict[tuple[Expr, ...], tuple[Expr, ...]] = {}  # of many goals that use the same
            for number, used in self.found.items():
                if condition in used:
                    left[used] = left.get(used) or self._without(condition, used, others)
                    self.found[number] = left[used]

    def _without(self, condition: Expr, used: tuple[Expr, ...], others: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """`used` with the conditions that imply `condition` in its place."""
        kept = tuple(c for c in used if c is not condition)
        for extra in [(), *((c,) for c in others if c not in kept)]:
            if self._implied(condition, (*kept, *extra)):
                return (*kept, *extra)
        return tuple(dict.fromkeys((*kept, *others)))

    def _implied(self, condition: Expr, others: tuple[Expr, ...]) -> bool:
        facts = inhabited(self.context.under(*others))
        return self.satisfiable((*facts, negate(condition)), quick=True).status == "unsat"


def _bounds_grid(condition: Expr) -> bool:
    return condition.op == "le" and any(s.kind is Kind.GRID for s in symbols(condition.args[0]))


def _with_signs(choices: Sequence[Expr]) -> Iterator[tuple[Expr, ...]]:
    """Each of the first conditions on how long memory is, along with all that numbers are not negative and
    that sizes are multiples: most bounds need no more, and other lengths only lead a proof astray."""
    signs = tuple(c for c in choices if _is_sign(c) or is_multiple(c))
    lengths = [c for c in choices if is_length(c) or is_product(c) or _is_plain_length(c)]
    for length in lengths[:_LENGTHS]:
        yield (length, *signs)


def _is_sign(condition: Expr) -> bool:
    """`0 <= n` or `1 <= n`."""
    return condition.op == "le" and condition.args[0].value in (0, 1) and condition.args[1].op == "sym"


def _is_plain_length(condition: Expr) -> bool:
    """`x.shape[0] >= n`."""
    sides = condition.args if condition.op == "le" else ()
    return [side.args[0].kind for side in sides if side.op == "sym"] == [Kind.SCALAR, Kind.EXTENT]


class _Pool:
    """Conditions to choose from and the launches to exclude. Mutable: it learns while sets are drawn, and draws
    conditions from their source when they are needed: most goals take one of the first."""

    def __init__(self, source: Iterator[Expr]) -> None:
        self._source = source
        self._choices: list[Expr] = []
        self._launches: list[dict[Symbol, int | bool]] = []
        self._excluders: list[int] = []  # per launch, a bit for each condition that it breaks
        self._forbidden: list[int] = []

    @property
    def choices(self) -> tuple[Expr, ...]:
        """All of them, drawn if need be."""
        while self._draw():
            pass
        return tuple(self._choices)

    @property
    def is_lost(self) -> bool:
        """Whether some launch is excluded by no choice. Only says so when all are drawn."""
        return any(excluders == 0 for excluders in self._excluders)

    def sets(self) -> Iterator[tuple[Expr, ...]]:
        """Sets that exclude every launch found so far, small ones first, then in the order of the choices."""
        if self._is_promising(()):
            yield ()
        for number in count():
            if number == len(self._choices):
                self._draw()
            if number == len(self._choices):
                break
            if self._is_promising((number,)):
                yield (self._choices[number],)
        for size in range(2, _NEW + 1):
            for chosen in combinations(range(len(self._choices)), size):
                if self.is_lost:
                    return
                if self._is_promising(chosen):
                    yield tuple(self._choices[i] for i in chosen)

    def _draw(self) -> bool:
        """Takes one more condition; whether there was one."""
        choice = next(self._source, None)
        if choice is None:
            return False
        bit = 1 << len(self._choices)
        self._choices.append(choice)
        for number, launch in enumerate(self._launches):
            if not _holds(choice, launch):
                self._excluders[number] |= bit
        return True

    def _is_promising(self, chosen: tuple[int, ...]) -> bool:
        """Whether the set excludes every launch, needs each of its conditions for that, and is not forbidden.

        A condition that excludes no launch of its own may help the solver, but the kernel does not need it.
        """
        bits = sum(1 << i for i in chosen)
        hits = [bits & excluders for excluders in self._excluders]
        if not all(hits) or any(bits & bad == bad for bad in self._forbidden):
            return False
        return all(1 << i in hits for i in chosen)

    def exclude(self, launch: dict[Symbol, int | bool]) -> None:
        """From now on draw only sets with a condition that this launch breaks."""
        self._launches.append(launch)
        self._excluders.append(sum(1 << i for i, c in enumerate(self._choices) if not _holds(c, launch)))

    def forbid(self, chosen: tuple[Expr, ...]) -> None:
        """Draw no superset of a degenerate set: it forbids at least as much."""
        self._forbidden.append(sum(1 << i for i, c in enumerate(self._choices) if c in chosen))


def _lengths(condition: Expr) -> set[str]:
    """The arrays of which a condition says how long they are."""
    return {s.name.partition(".")[0] for s in symbols(condition) if s.kind is Kind.EXTENT}


def _holds(condition: Expr, launch: dict[Symbol, int | bool]) -> bool:
    """Whether a launch surely satisfies a condition: a symbol without a value could be anything."""
    if any(s not in launch for s in symbols(condition)):
        return False
    try:
        return bool(evaluate(condition, launch.__getitem__))
    except ZeroDivisionError:
        return False


def _reads(obligation: Obligation, context: Context) -> int:
    """Through how many tables its elements are found: what a contract says of an element needs that the element
    exists, so those come first that say so."""
    if not context.kernel.contracts:
        return 0
    depth = 0
    inside = _expressions(obligation)
    while reads := [node for node in walk(*inside) if node.op == "read"]:
        inside = tuple(index for node in reads for index in children(node))
        depth += 1
    return depth


def _expressions(part: Obligation) -> tuple[Expr, ...]:
    """What the goal itself speaks of, without the premises of the kernel."""
    if isinstance(part.goal, Holds):
        return part.goal.goal, part.goal.given, part.assume
    accesses = (part.goal.first, part.goal.second)
    places = [axis.coordinate for access in accesses for axis in access.axes]
    return (*(access.happens for access in accesses), *places, part.assume)


def _parts(obligation: Obligation) -> tuple[Obligation, ...]:
    """One obligation for each conjunct of the goal: together they say the same, apart they need less."""
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint):
        return (replace(obligation, goal=Holds(FALSE, negate(FALSE))),)
    if isinstance(goal, Disjoint):
        return (obligation,)
    return tuple(replace(obligation, goal=replace(goal, goal=part)) for part in conjuncts(goal.goal))


# ---------------------------------------------------------------------------------------------------------


def condition_kind(condition: Expr) -> str:
    """The design's letter: (a) grid, (b) divisibility, (c) layout, (d) agreement of arguments."""
    if condition.op == "eq" and any(x.op == "mod" for x in condition.args):
        return "b"
    if condition.op == "le" and any(s.kind is Kind.GRID for s in symbols(condition.args[0])):
        return "d" if is_length(condition) else "a"
    return "c" if any(s.kind is Kind.STRIDE for s in symbols(condition)) else "d"


def condition_text(condition: Expr) -> str:
    """The condition as a `requires` would say it: what is limited stands on the left."""
    if condition.op == "le" and condition_kind(condition) != "a" and condition.args[1].value is None:
        low, high = condition.args
        return f"{render(high)} >= {render(low)}"
    if condition.op == "lt":
        low, high = condition.args
        return f"{render(high)} > {render(low)}"
    return render(condition)


def _sorted(conditions: tuple[Expr, ...], context: Context) -> tuple[Expr, ...]:
    """Grid axes first, then in the order of the parameters, then by text."""
    names = [p.name for p in context.kernel.params]

    def rank(condition: Expr) -> tuple[str, int, int, str]:
        kind = condition_kind(condition)
        grid = min((s.name for s in symbols(condition) if s.kind is Kind.GRID), default="~")
        side = condition.args[1] if condition.op == "le" else condition
        arrays = [s.name.partition(".")[0] for s in symbols(side) if s.kind in (Kind.EXTENT, Kind.STRIDE)]
        position = min((names.index(a) for a in arrays if a in names), default=len(names))
        return grid if kind == "a" else "~", "abcd".index(kind), position, condition_text(condition)

    return tuple(sorted(conditions, key=rank))
