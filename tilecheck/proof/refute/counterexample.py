"""Counterexamples that were seen to happen: a model of the negated goal, replayed by the reference backend.

    model      the solver's values for the launch, the blocks and the memory that the goal reads
    launch     arrays and scalars with these values, everything else small and legal
    replay     all blocks of the grid, interpreted from the kernel's own text, every access logged
    sighting   the claim in the log: then, and only then, there is a witness
    minimise   smaller values, replayed each time

Opaque values (data that is not modelled) cannot be chosen: several fillings of memory are tried and the log
decides. When no model leads to a sighting, small launches are enumerated in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    TRUE,
    Expr,
    Kind,
    Symbol,
    add,
    any_of,
    bool_sym,
    eq,
    le,
    mul,
    ne,
    negate,
    sub,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import (
    ANY_ORDER,
    Effect,
    Kernel,
    block_symbol,
    extent_symbol,
    grid_symbol,
    stride_symbol,
)
from tilecheck.model import Witness
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import negation
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation, Ordered
from tilecheck.proof.refute.concrete import (
    FILLS,
    Concrete,
    arguments,
    holds_its_cells,
    is_admitted,
    launch_symbols,
    layouts,
    memory_name,
)
from tilecheck.proof.refute.minimise import minimise
from tilecheck.proof.refute.replay import Block, Sighting, seen
from tilecheck.proof.refute.small_launches import small_launches
from tilecheck.proof.refute.witness import witness
from tilecheck.proof.solver.fuel import OutOfFuel
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import Model, satisfiable
from tilecheck.reference import Launch, NotInterpretable, ReplayError, StepLimit

_BOUNDS = (2, 3, 8, 40, 300, 5000)
_WIDE, _WIDEST = 64, 65535  # grid extents: of ordinary launches, and of all
_MODELS = 6  # per set of premises
_REPLAYS = 60  # of models and enumerated launches, each
_SHRINKS = 40
_BLOCKS = 256  # larger grids run only the blocks of the model
_STEPS = 10_000  # statements of one launch
_STEPS_OF_WAITERS = 400  # where a block may wait for one that comes later, it would wait for ever
_HUNT = 6_000  # statements of one search, and of making what it found smaller
_STUCK = 4  # replays in a row that the backend cannot interpret, or that wait for ever
_LARGEST_TILE = 12  # log2


@dataclass(frozen=True, slots=True)
class Limits:
    """How much work a search may do; counts, so that the answer never depends on the machine."""

    models: int = _MODELS
    replays: int = _REPLAYS
    shrinks: int = _SHRINKS


def find(
    obligation: Obligation, context: Context, path: str, session: Session, limits: Limits | None = None
) -> Witness | None:
    """A replayed counterexample to `obligation`, or None.

    Args:
        obligation: what could not be proved.
        context: the premises, with the launch conditions that the counterexample must meet.
        path: the kernel's file; it is interpreted, never imported.
        session: the solver's state.
        limits: the budgets, in models and replays.
    """
    if not is_claimable(obligation, context):
        return None
    hunt = _Hunt(obligation, context, path, session, limits or Limits())
    found = hunt.by_models() or hunt.by_enumeration()
    if found is None:
        return None
    concrete, sighting = hunt.smallest(*found)
    return witness(obligation, context, concrete.settled(context.kernel), sighting)


def is_claimable(obligation: Obligation, context: Context) -> bool:
    """Whether a log can show that the obligation fails.

    An order between accesses of one block leaves no trace in a sequential replay. What stands behind a branch
    on an atomic's result may be ordered after another block: that is claimed of two blocks only, where the log
    tells what was ordered, which it does not where volatile loads are used to wait or the launch chooses the
    order. Iterations are told apart in the log only where one loop and one call lead to the operation.
    """
    goal = obligation.goal
    if isinstance(goal, Ordered):
        return False
    if isinstance(goal, Disjoint) and goal.between is Between.ITERATIONS:
        calls = [a for a in context.kernel.accesses if a.site == goal.first.site]
        if len(calls) != 1 or len(goal.first.loops) != 1:
            return False
    accesses = (goal.first, goal.second) if isinstance(goal, Disjoint) else (goal.access,)
    if isinstance(goal, Disjoint) and goal.between in (Between.PROGRAM, Between.THREADS):
        if context.kernel.splits_warps:  # whether a compiler makes use of that is not known
            return False
        # Of single elements, what a thread loads too late may matter nowhere: that is not known of all.
        lost = any(a is not None and a.effect is Effect.READ and a.feeds is None for a in accesses)
        if lost and not any(a is not None and a.lanes for a in accesses):
            return False
    if isinstance(goal, Disjoint) and goal.between is Between.BLOCKS and not _is_lost(context.kernel):
        return True
    return not any(access is not None and access.synchronised for access in accesses)


def _is_lost(kernel: Kernel) -> bool:
    """Whether a log does not tell what a Triton kernel's waiting orders: it has volatile loads, whose order on
    a machine is not that of the memory model, or atomics of an order that the launch chooses."""
    return kernel.language == "triton" and any(
        (a.effect is Effect.READ and a.order != "WEAK") or a.order == ANY_ORDER for a in kernel.accesses
    )


@dataclass
class _Hunt:
    """One search. Mutable: it counts replays and notes when the kernel cannot be interpreted."""

    obligation: Obligation
    context: Context
    path: str
    session: Session
    limits: Limits
    replays: int = 0
    stuck: int = 0  # replays in a row that the backend could not interpret
    _reserve: int = 0  # what must be left of the session's fuel for another replay

    def __post_init__(self) -> None:
        self._spare_the_rest()

    # ---- models -------------------------------------------------------------------------------------

    def by_models(self) -> tuple[Concrete, Sighting] | None:
        """Replay models of the negated goal, small and ordinary ones first."""
        self.replays = 0
        goal = self.obligation.goal
        negated = negation(goal, self.context, self.obligation.assume)
        for premises in (self._ordinary(negated), self._legal()):
            excluded: list[Expr] = []
            for _ in range(self.limits.models):
                answer = satisfiable(
                    (*negated, *premises, *excluded), session=self.session, smallest=True, bounds=_BOUNDS
                )
                if answer.model is None:
                    break
                found = self._try_model(answer.model)
                if found is not None or not self._goes_on(self.limits.replays):
                    return found
                excluded.append(_another(answer.model))
        return None

    def _try_model(self, model: Model) -> tuple[Concrete, Sighting] | None:
        virtual = self.obligation.kind == "overflow" and not self._is_data_dependent()
        concrete = Concrete(_launch_values(model), _memory(model), virtual=virtual)
        blocks = self._blocks(model)
        for fill in FILLS if self._is_data_dependent() else FILLS[:1]:
            for integers in (False, True):
                trial = replace(concrete, fill=fill, integers=integers)
                sighting = self._replay(trial, blocks)
                if sighting is not None:
                    return trial, sighting
                if self.stuck == 0:
                    break  # the types were right, other values are needed
        return None

    def _legal(self) -> tuple[Expr, ...]:
        """What every launch meets although the kernel's facts do not say so."""
        kernel = self.context.kernel
        premises: list[Expr] = []
        free = [e for e in kernel.powers_of_two if e.value is None and not any(s.varies for s in symbols(e))]
        premises += [any_of(*(eq(size, 1 << k) for k in range(_LARGEST_TILE))) for size in free]
        launch = launch_symbols(self.context)
        for symbol in launch:
            if symbol.kind is Kind.GRID:
                premises += [le(1, sym(symbol)), le(sym(symbol), _WIDEST)]
            elif symbol.kind is Kind.EXTENT:
                premises.append(le(0, sym(symbol)))
        arrays = [param for param in kernel.params if param.is_array and not param.is_list]
        premises += [_storage(array.name, array.rank or 1, launch) for array in arrays]
        return tuple(premises)

    def _ordinary(self, negated: Sequence[Expr]) -> tuple[Expr, ...]:
        """Launches that people make: no empty arrays, no scalars below 1, indices read from real elements."""
        kinds = (Kind.CONSTANT, Kind.SCALAR, Kind.EXTENT, Kind.STRIDE)
        mentioned = [s for s in launch_symbols(self.context) if s.kind in kinds]
        booleans = _booleans(self.context, self.obligation)
        inside = [n.args[0] for n in walk(*negated) if n.op == "ite" and _is_padding(n.args[2])]
        grid = [le(sym(grid_symbol(axis)), _WIDE) for axis in self.context.kernel.grid_axes]
        positive = [le(1, sym(s)) for s in mentioned if s not in booleans]
        return (*self._legal(), *grid, *positive, *inside)

    def _is_data_dependent(self) -> bool:
        negated = negation(self.obligation.goal, self.context, self.obligation.assume)
        opaque = any(s.kind is Kind.OPAQUE for s in symbols(*negated))
        return opaque or any(n.op == "read" for n in walk(*negated))

    def _blocks(self, model: Model) -> tuple[Block, ...]:
        """The blocks that the model speaks of."""
        found: dict[Block, None] = {}
        for instance in (0, 1, 2):
            ids = [replace(block_symbol(k), instance=instance) for k in range(3)]
            if any(b in model.symbols for b in ids):
                x, y, z = (int(model.symbols.get(b, 0)) for b in ids)
                found[x, y, z] = None
        return tuple(found) or ((0, 0, 0),)

    # ---- enumeration --------------------------------------------------------------------------------

    def by_enumeration(self) -> tuple[Concrete, Sighting] | None:
        """Replay small launches in a fixed order and look for the claim anywhere in the grid."""
        self.replays = self.stuck = 0
        for concrete in small_launches(self.context):
            if not self._goes_on(self.limits.replays):
                return None
            sighting = self._replay(concrete)
            if sighting is not None:
                return concrete, sighting
        return None

    def smallest(self, concrete: Concrete, sighting: Sighting) -> tuple[Concrete, Sighting]:
        self.replays = 0
        self._spare_the_rest()
        kernel = self.context.kernel
        return minimise(
            concrete,
            sighting,
            launch_symbols(self.context),
            lambda trial: self._replay(trial, sighting.blocks) if holds_its_cells(trial, kernel) else None,
            lambda: self._goes_on(self.limits.shrinks),
        )

    # ---- replay -------------------------------------------------------------------------------------

    def _goes_on(self, limit: int) -> bool:
        spent = self.session.fuel.left <= self._reserve
        return self.replays < limit and self.stuck < _STUCK and not spent

    def _spare_the_rest(self) -> None:
        self._reserve = max(0, self.session.fuel.left - _HUNT)

    def _steps(self) -> int:
        return _STEPS_OF_WAITERS if self.context.kernel.waits else _STEPS

    def _replay(self, concrete: Concrete, blocks: Sequence[Block] = ()) -> Sighting | None:
        """Run a launch and look for the claim; None also when the launch is not admitted."""
        kernel = self.context.kernel
        concrete = concrete.settled(kernel)
        if not is_admitted(concrete, self.context):
            return None
        given = arguments(concrete, kernel)
        if given is None:
            return None
        grid = concrete.grid(kernel)
        chosen = [b for b in blocks if all(i < n for i, n in zip(b, grid, strict=True))]
        few = chosen if prod(grid) > _BLOCKS else None
        self.replays += 1
        for order in self._orders(few, chosen, grid):
            fresh = given if order is few else arguments(concrete, kernel)  # a run changes its arrays
            sighting = self._run(Launch(self.path, kernel.name, grid, fresh or {}, order, self._steps()))
            if sighting is not None:
                return sighting
        return None

    def _orders(
        self, few: Sequence[Block] | None, chosen: Sequence[Block], grid: Block
    ) -> Iterator[Sequence[Block] | None]:
        """The orders in which blocks are run: as they are numbered, and where atomics may order them, also with
        each block of the model before the others."""
        yield few
        goal = self.obligation.goal
        if few is None and isinstance(goal, Disjoint) and (goal.first.synchronised or goal.second.synchronised):
            blocks = [(i, j, k) for k in range(grid[2]) for j in range(grid[1]) for i in range(grid[0])]
            for first in chosen:
                if first != blocks[0]:
                    yield [first, *(b for b in blocks if b != first)]

    def _run(self, launch: Launch) -> Sighting | None:
        kernel = self.context.kernel
        try:
            log = self.session.fuel.run(launch)
        except NotInterpretable:
            self.stuck += 1
            return None
        except StepLimit:
            self.stuck += bool(kernel.waits)
            return None
        except (ReplayError, OutOfFuel):
            return None
        self.stuck = 0
        return seen(self.obligation, log, layouts(launch.arguments))


def _storage(array: str, rank: int, launch: tuple[Symbol, ...]) -> Expr:
    """The size of an array's storage, from its shape and the strides that the kernel mentions."""
    storage = Symbol(f"numel({array})", Kind.EXTENT)
    shape = [sym(extent_symbol(array, k)) for k in range(rank)]
    strides = [stride_symbol(array, k) for k in range(rank)]
    if storage not in launch:
        return TRUE
    if not any(s in launch for s in strides):
        return eq(sym(storage), mul(*shape))
    steps = [sym(s) if s in launch else mul(*shape[k + 1 :]) for k, s in enumerate(strides)]
    return eq(sym(storage), add(1, *(mul(sub(n, 1), s) for n, s in zip(shape, steps, strict=True))))


def _is_padding(e: Expr) -> bool:
    """Whether `e` stands for what a read outside its array gives."""
    return e.op == "sym" and e.args[0].kind is Kind.OPAQUE and e.args[0].origin.startswith("memory:")


def _booleans(context: Context, obligation: Obligation) -> frozenset[Symbol]:
    """The launch values that are used as truth values."""
    goal = obligation.goal
    parts = (goal.goal, goal.given) if isinstance(goal, Holds) else (goal.first.happens, goal.second.happens)
    accesses = [a.happens for a in context.kernel.accesses]
    return frozenset(n.args[0] for n in walk(*parts, *accesses, *context.uniform_facts) if n.op == "bsym")


def _launch_values(model: Model) -> dict[Symbol, int | bool]:
    return {s: v for s, v in model.symbols.items() if not s.varies}


def _memory(model: Model) -> dict[str, dict[tuple[int, ...], int]]:
    cells: dict[str, dict[tuple[int, ...], int]] = {}
    for (array, at), value in model.reads.items():
        cells.setdefault(memory_name(array), {})[at] = value
    return cells


def _another(model: Model) -> Expr:
    """Some value that a user could choose is different from this model's."""
    values = [(s, v) for s, v in model.symbols.items() if s.kind is not Kind.OPAQUE]
    flips = [negate(bool_sym(s)) if v else bool_sym(s) for s, v in values if isinstance(v, bool)]
    return any_of(*(ne(sym(s), v) for s, v in values if not isinstance(v, bool)), *flips)
