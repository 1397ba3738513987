"""Harm that a launch does: inputs that the host's text admits, replayed at the launch.

    inputs      host inputs at which a requirement fails, small ones first; then those that a model of an
                obligation names which is not proved at the launch
    small       a launch of few blocks and small arrays runs whole, and anything that goes wrong counts
    large       of any other launch a model of an open obligation, with the launch's numbers in it, names the
                blocks: these run, over arrays whose addresses are real and whose contents are not

A search that finds nothing says nothing: the launch stays undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from tilecheck.ir.expr import FALSE, TRUE, Expr, all_of, bool_sym, const, negate, substitute, sym, walk
from tilecheck.ir.kernel import block_symbol
from tilecheck.model import Witness
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import negation
from tilecheck.proof.launches.judge import Broken, Judge
from tilecheck.proof.launches.replays.replay import LaunchRun
from tilecheck.proof.launches.specialised import LaunchedKernel
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.refute.concrete import Concrete, launch_symbols
from tilecheck.proof.refute.replay import Block
from tilecheck.proof.solver.solver import Model, satisfiable

_INPUTS = 4  # of one kind that are replayed
_DRAWN = 12  # inputs without a solver
_OBLIGATIONS = 4  # whose models are sought at one input
_BOUNDS = (8, 70, 300, 5000, 1 << 17)
_SHARE = 4  # of the budget of one question


@dataclass(frozen=True, eq=False)
class Harm:
    """The search at one launch. `open_` are the obligations that are not proved there."""

    judge: Judge
    launched: LaunchedKernel
    open_: Sequence[Obligation]
    run: LaunchRun

    def found(self, failing: Sequence[Expr], given: Sequence[Expr]) -> tuple[Broken, Witness] | None:
        """Inputs that do harm where one of `failing`, if there are any, does not hold and all of `given` do."""
        fails = (*given, negate(all_of(*failing))) if failing else tuple(given)
        drawn = sorted(self.judge.varied(fails), key=_size)[:_DRAWN]
        sought = (islice(self.judge.inputs((*fails, *more)), _INPUTS) for more in self.judge.more_blocks())
        for model in chain(drawn, chain.from_iterable(sought)):
            broken = self.judge.broken("TC402", "", model)
            witness = None if broken is None else self._at(broken)
            if broken is not None and witness is not None:
                return broken, witness
        return self._by_models(given)

    def _at(self, broken: Broken) -> Witness | None:
        """What goes wrong at these inputs."""
        if self.run.is_small(broken):
            return self.run.whole(broken, self.open_)
        for obligation in self._asked():
            blocks = self._blocks(obligation, broken)
            witness = self.run.of_blocks(broken, obligation, blocks) if blocks else None
            if witness is not None:
                return witness
        return None

    def _by_models(self, given: Sequence[Expr]) -> tuple[Broken, Witness] | None:
        """Inputs, and blocks, at which an obligation fails by the solver's word."""
        for obligation in self._asked():
            mapped = self.launched.obligation(obligation)
            terms = negation(mapped.goal, self.launched.context(), mapped.assume)
            for model in islice(self.judge.inputs((*terms, *given), empty=False), _INPUTS):
                broken = self.judge.broken("TC402", "", model)
                if broken is None:
                    continue
                if self.run.is_small(broken):
                    witness = self.run.whole(broken, self.open_)
                else:
                    witness = self.run.of_blocks(broken, obligation, blocks_of(model))
                if witness is not None:
                    return broken, witness
        return None

    def _asked(self) -> Iterator[Obligation]:
        """The open obligations that no value in memory decides: what memory holds is no matter of a launch."""
        return islice((o for o in self.open_ if not reads_memory(o)), _OBLIGATIONS)

    def _blocks(self, obligation: Obligation, broken: Broken) -> tuple[Block, ...]:
        """The blocks at which an obligation fails with the numbers of one launch."""
        kernel = self.judge.kernel
        context = Context(kernel)
        settled = Concrete(broken.concrete).settled(kernel)
        names: dict[Expr, Expr] = {}
        for symbol in dict.fromkeys((*launch_symbols(context), *settled.values)):
            value = settled.value(symbol)
            names[sym(symbol)] = const(int(value))
            names[bool_sym(symbol)] = TRUE if value else FALSE
        terms = [substitute(t, names) for t in negation(obligation.goal, context, obligation.assume)]
        session = self.judge.session
        answer = satisfiable(
            terms, session=session, budget=session.budget // _SHARE, smallest=True, bounds=_BOUNDS
        )
        return () if answer.model is None else blocks_of(answer.model)


def _size(model: Model) -> int:
    return sum(abs(int(value)) for value in model.symbols.values())


def blocks_of(model: Model) -> tuple[Block, ...]:
    """The blocks that a model names."""
    found: dict[Block, None] = {}
    for instance in (0, 1, 2):
        ids = [replace(block_symbol(k), instance=instance) for k in range(3)]
        if any(b in model.symbols for b in ids):
            x, y, z = (int(model.symbols.get(b, 0)) for b in ids)
            found[x, y, z] = None
    return tuple(found) or ((0, 0, 0),)


def terms_of(obligation: Obligation) -> tuple[Expr, ...]:
    """What decides an obligation."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        return (obligation.assume, goal.goal, goal.given)
    if isinstance(goal, Disjoint):
        ends = (goal.first, goal.second)
        coordinates = (axis.coordinate for access in ends for axis in access.axes)
        return (obligation.assume, *(t for a in ends for t in (a.guard, a.mask)), *coordinates)
    return (obligation.assume,)


def reads_memory(obligation: Obligation) -> bool:
    """Whether a value in memory decides it."""
    return any(n.op == "read" for n in walk(*terms_of(obligation)))
