"""Host inputs at which the values that the host makes break a contract, and those values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.contents import Contents
from tilecheck.ir.expr import Expr, any_of, le
from tilecheck.ir.kernel import Contract
from tilecheck.ir.launch import HostTensor
from tilecheck.proof.launches.contracts import Harmed, Values, count_of
from tilecheck.proof.launches.judge import Broken, Judge
from tilecheck.proof.refute.table_contents import Promise, keeps
from tilecheck.proof.solver.solver import Model

_MOST_ELEMENTS = 1 << 16  # of a table whose values are written out
_MODELS = 4  # host inputs that are replayed for one contract


@dataclass(frozen=True, slots=True)
class Search:
    """Host inputs at which the host's own values break a contract and the launch goes wrong."""

    judge: Judge
    contract: Contract
    harmed: Harmed

    def found(self, broken: Expr) -> Broken | None:
        left = _MODELS
        for more in (*self._several_blocks(), *self.judge.more_blocks(), ()):
            for model in self.judge.inputs((broken, *self.judge.usually, *more)):
                if left == 0:
                    return None
                left -= 1
                for values in self._instances(model):
                    shown = self.judge.broken("TC402", self.contract.text, model)
                    if shown is not None and self.harmed(shown, values):
                        return shown
        return None

    def _several_blocks(self) -> Iterator[tuple[Expr, ...]]:
        sizes = [g for g in self.judge.launch.grid or () if g is not None]
        if sizes:
            yield (any_of(*(le(2, g) for g in sizes)),)

    def _instances(self, model: Model) -> Iterator[Values]:
        """Values of all tables that the host makes, where those of this one break the contract."""
        others: dict[str, tuple[int, ...]] = {}
        for name, t in self.judge.launch.arguments:
            if isinstance(t, HostTensor) and t.contents is not None and name != self.contract.array:
                others.update((name, values) for values in list(_values(t, model))[:1])
        t = dict(self.judge.launch.arguments)[self.contract.array]
        bounds = tuple(self.judge.rewritten(b) for b in self.contract.bounds)
        promise = Promise(self.contract.kind, tuple(int(model.evaluate(b)) for b in bounds), self.contract.part)
        for values in _values(t, model) if isinstance(t, HostTensor) else ():
            if not keeps(np.array(values, np.int64), promise):
                yield {**others, self.contract.array: values}


def _values(t: HostTensor, model: Model) -> Iterator[tuple[int, ...]]:
    """Elements that a tensor may have at host inputs, in row-major order."""
    count, contents = count_of(t), t.contents
    if count is None or contents is None:
        return
    number = int(model.evaluate(count))
    if not 0 <= number <= _MOST_ELEMENTS:
        return
    match contents.kind:
        case "fill" | "range":
            start, step = int(model.evaluate(contents.start)), int(model.evaluate(contents.step))
            yield tuple(start + step * i for i in range(number))
        case "listed" if len(contents.listed) == number:
            yield contents.listed
        case "some" if contents.own:
            yield from _samples(contents, number, model)


def _samples(contents: Contents, number: int, model: Model) -> Iterator[tuple[int, ...]]:
    """Elements that the host's text admits: rising and falling ones, or equal ones at either end."""
    if contents.low is None or contents.high is None:
        return
    low, high = int(model.evaluate(contents.low)), int(model.evaluate(contents.high))
    if contents.distinct:
        if high - low < number:
            return
        for first in dict.fromkeys((low, high - number)):
            rising = tuple(range(first, first + number))
            yield rising
            if not contents.increasing:
                yield rising[::-1]
    elif low < high:
        yield from dict.fromkeys(((low,) * number, (high - 1,) * number))
