"""Runs a visible launch at ordinary host inputs, to compare what two runs leave in memory.

A warning of the rules TC503 to TC505 is shown by such runs. Only a clean run counts, in which nothing is
undefined: what goes wrong otherwise is another finding, and the memory after it means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Kind, Symbol, conjuncts, symbols
from tilecheck.ir.host import DEFINED, EXTENT, axis_of
from tilecheck.ir.kernel import Kernel
from tilecheck.ir.launch import Launch
from tilecheck.model import Witness
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import ranges
from tilecheck.proof.launches.inputs.inputs import Inputs
from tilecheck.proof.launches.judge import Judge, is_of_host
from tilecheck.proof.refute.concrete import Concrete, arguments, is_admitted
from tilecheck.proof.solver.fuel import Fuel, OutOfFuel
from tilecheck.proof.solver.solver import Model
from tilecheck.reference import Call, Log, NotInterpretable, ReplayError, StepLimit
from tilecheck.reference import Launch as Run

_SIZES = (21, 9, 300, 2000)  # of inputs: no multiples of tiles
_UNLIKE = (13, 67)  # a size, and by how much each axis is longer than the one before it
_MOST = 4  # of one launch
_MOST_BLOCKS = 128
_MOST_ELEMENTS = 1 << 18  # of one array
_STEPS = 4000  # statements of the first run of a trial; another one that takes twice as many does not end


@dataclass(frozen=True, slots=True)
class Memory:
    """What one run did, and what it left. `arrays` are those of the launch, `ended` says that it came to its
    end."""

    log: Log
    arrays: Mapping[str, Any]
    ended: bool = True

    @property
    def is_clean(self) -> bool:
        return self.ended and not self.log.undefined

    def written(self, name: str) -> np.ndarray[Any, Any] | None:
        """Which elements of an array were stored or updated; None if accesses do not name elements."""
        found = np.zeros(self.arrays[name].shape, bool)
        for record in self.log.accesses:
            if record.array == name and record.effect != "read" and len(record.elements):
                if record.raw or record.elements.shape[1] != found.ndim:
                    return None
                found[tuple(record.elements.T)] = True
        return found

    def differs(self, other: Memory, but: str = "") -> bool:
        """Whether another run of the launch went wrong, did not end, or left other values; of the array `but`
        only what was written counts."""
        if not other.is_clean:
            return True
        arrays = [name for name, value in self.arrays.items() if isinstance(value, np.ndarray)]
        return any(not self._is_equal(other, name, only_written=name == but) for name in arrays)

    def _is_equal(self, other: Memory, name: str, *, only_written: bool) -> bool:
        mine, theirs = self.arrays[name], other.arrays[name]
        if only_written:
            stored = self.written(name)
            if stored is None:
                return True
            mine, theirs = mine[stored], theirs[stored]
        return bool(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"))


@dataclass(frozen=True, slots=True)
class Trial:
    """One launch with all its values. The arrays that are `blank` hold zeros if nothing else is asked for."""

    kernel: Kernel
    path: str
    concrete: Concrete
    values: Mapping[str, int]  # of the host function
    blank: tuple[str, ...]
    fuel: Fuel

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.concrete.grid(self.kernel)

    def run(
        self,
        filled: Mapping[str, int] | None = None,
        idle: int = 0,
        idle_at: Collection[Call] | None = None,
    ) -> Memory | None:
        """Run it; None if it cannot be run, or no run is left.

        Args:
            filled: what single arrays hold at the start.
            idle: what undefined lanes hold.
            idle_at: the loads whose undefined lanes hold that; None means all.
        """
        steps = _STEPS if idle == 0 and not any((filled or {}).values()) else 2 * _STEPS
        for integers in (False, True):
            given = arguments(replace(self.concrete, integers=integers), self.kernel)
            if given is None:
                return None
            for name, value in {**dict.fromkeys(self.blank, 0), **(filled or {})}.items():
                given[name][...] = value
            calls = None if idle_at is None else frozenset(idle_at)
            run = Run(self.path, self.kernel.name, self.grid, given, None, steps, idle, calls)
            try:
                return Memory(self.fuel.run(run), given)
            except NotInterpretable:
                continue
            except StepLimit:
                return Memory(Log(), given, ended=False)
            except (OutOfFuel, ReplayError):
                return None
        return None

    def witness(self, array: str, element: tuple[int, ...] | None, block: tuple[int, int, int]) -> Witness:
        axes = max((k for k in range(3) if self.grid[k] > 1), default=0) + 1
        return Witness("undefined", self.grid[:axes], (block[:axes],), dict(self.values), array, element)


@dataclass(slots=True)
class Seen:
    """In how many trials of a launch something was possible, and those that show it. Mutable."""

    possible: int = 0
    shown: list[tuple[Trial, Any]] = field(default_factory=list)

    def is_settled(self, trials: int) -> bool:
        """Whether more than so many trials would not change what is usual: the larger ones take most of the
        time."""
        left, shown = _MOST - trials, len(self.shown)
        may_be = 2 * (shown + left) >= self.possible + left
        return not may_be or (shown > 0 and 2 * shown >= self.possible + left)

    @property
    def is_usual(self) -> bool:
        """Whether at least half of those trials show it: tensors that do not belong together, or sizes that
        nobody passes, may show more than the launch does."""
        return bool(self.shown) and 2 * len(self.shown) >= self.possible


class Trials:
    """The launch at inputs of several sizes, small enough to be run as a whole, and a clean run of each.
    Mutable: each is made when it is first asked for, and kept."""

    def __init__(self, judge: Judge, path: str, blank: tuple[str, ...], fuel: Fuel) -> None:
        self._possible: list[Trial] = []
        self._more = islice(_trials(judge, path, blank, fuel), _MOST)
        self._run: list[tuple[Trial, Memory]] = []
        self._runs = self._clean()

    def possible(self) -> Iterator[Trial]:
        """All trials, whether or not their runs will be clean."""
        for number in range(_MOST):
            if number == len(self._possible):
                self._possible += islice(self._more, 1)
            if number == len(self._possible):
                return
            yield self._possible[number]

    def until(self, is_settled: Callable[[int], bool]) -> Iterator[tuple[Trial, Memory]]:
        """The trials, as long as what was seen in so many of them does not settle what is usual."""
        for number in range(_MOST):
            if is_settled(number):
                return
            if number == len(self._run):
                self._run += islice(self._runs, 1)
            if number == len(self._run):
                return
            yield self._run[number]

    def _clean(self) -> Iterator[tuple[Trial, Memory]]:
        for trial in self.possible():
            first = trial.run()
            if first is not None and first.is_clean:
                yield trial, first


def _trials(judge: Judge, path: str, blank: tuple[str, ...], fuel: Fuel) -> Iterator[Trial]:
    kernel = judge.kernel
    context = Context(kernel)
    for model in _models(judge):
        broken = judge.broken("", "", model)
        if broken is not None:
            concrete = Concrete(broken.concrete).settled(kernel)
            trial = Trial(kernel, path, concrete, broken.values, blank, fuel)
            if is_admitted(trial.concrete, context) and _is_small(trial):
                yield trial


def _models(judge: Judge) -> Iterator[Model]:
    """Host inputs that lead to the launch: tensors that are alike, then with axes of different lengths."""
    asked = (judge.rewritten(r.condition) for r in judge.kernel.requires)
    goal = (*judge.premises, *judge.usually, *(condition for condition in asked if is_of_host(condition)))
    goal = (*ranges(goal), *goal)
    spoken = tuple(s for s in symbols(*goal, *judge.known.values()) if s.kind is Kind.HOST)
    inputs = Inputs(judge.premises, judge.usual, judge.session.work)
    least, step = _UNLIKE
    unlike = {s: least + step * abs(axis_of(s)) for s in spoken if s.origin == EXTENT}
    seen: set[tuple[int, ...]] = set()
    chosen = _first_choices(judge)
    for size, values in (*((size, {}) for size in _SIZES), (least, unlike)):
        found = inputs.near(goal, {**values, **chosen}, size)
        numbers = () if found is None else tuple(int(found.value(s)) for s in spoken)
        if found is not None and numbers not in seen:
            seen.add(numbers)
            yield Model({s: found.value(s) for s in spoken}, dict(found.reads))


def _first_choices(judge: Judge) -> dict[Symbol, int | bool]:
    """The first of the configurations that a tuner may choose."""
    found: dict[Symbol, int | bool] = {}
    for premise in judge.premises:
        for part in conjuncts(premise.args[0]) if premise.op == "any" else ():
            if part.op == "eq" and part.args[0].op == "sym" and part.args[1].value is not None:
                found.setdefault(part.args[0].args[0], part.args[1].value)
    return {symbol: value for symbol, value in found.items() if symbol.origin == DEFINED}


def _is_small(trial: Trial) -> bool:
    if not 0 < prod(trial.grid) <= _MOST_BLOCKS:
        return False
    given = arguments(trial.concrete, trial.kernel)
    if given is None:
        return False
    arrays = (value for value in given.values() if isinstance(value, np.ndarray))
    return all(array.size <= _MOST_ELEMENTS for array in arrays)


def input_text(values: Mapping[str, int]) -> str:
    """Host inputs as a note: `with n = 70`."""
    listed = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"with {listed}" if listed else "whatever the inputs are"


def is_readable(launch: Launch) -> bool:
    """Whether the launch's text gives its grid and its arguments."""
    return launch.problem is None and launch.grid is not None and None not in launch.grid
