"""Contents of arrays that keep the author's contracts: what a replay may put into memory.

Elements that a model fixes stay as they are; the others are chosen so that the contracts hold, if that is
possible at all. The finished contents are checked against every contract, so that a choice that does not
work out costs a replay, never a false counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import numpy as np

from tilecheck.ir.expr import Expr
from tilecheck.ir.kernel import Contract

Contents = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Promise:
    """A contract with its bounds evaluated for one launch."""

    kind: str
    bounds: tuple[int, ...]


def promises(contracts: Sequence[Contract], array: str, value: Callable[[Expr], int]) -> tuple[Promise, ...]:
    """What one launch promises of an array."""
    mine = [c for c in contracts if c.array == array]
    return tuple(Promise(c.kind, tuple(value(b) for b in c.bounds)) for c in mine)


def fill_in(data: Contents, cells: Mapping[tuple[int, ...], int], promised: Sequence[Promise]) -> bool:
    """Choose the elements of `data` that `cells` does not fix; whether all promises hold then."""
    fixed = {at: v for at, v in cells.items() if _is_inside(at, data.shape)}
    for at, v in fixed.items():
        data[at] = v
    places = list(np.ndindex(*data.shape))
    for at, v in zip(places, _values(data, places, fixed, promised), strict=True):
        data[at] = v
    return all(_keeps(data, promise) for promise in promised)


def _is_inside(at: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(at) == len(shape) and all(0 <= i < n for i, n in zip(at, shape, strict=True))


def _values(
    data: Contents,
    places: Sequence[tuple[int, ...]],
    fixed: Mapping[tuple[int, ...], int],
    promised: Sequence[Promise],
) -> Iterator[int]:
    kinds = {promise.kind for promise in promised}
    ranges = [promise.bounds for promise in promised if promise.kind == "within"]
    low = max((bounds[0] for bounds in ranges), default=None)
    high = min((bounds[1] for bounds in ranges), default=None)
    if "increasing" in kinds:
        yield from _rising(places, fixed, low, step=int("distinct" in kinds))
    elif "distinct" in kinds:
        fresh = (v for v in count(low or 0) if v not in fixed.values())
        yield from (fixed[at] if at in fixed else next(fresh) for at in places)
    else:
        for at in places:
            value = int(data[at])
            if at not in fixed and high is not None:
                value = min(value, high - 1)
            yield value if at in fixed or low is None else max(value, low)


def _rising(
    places: Sequence[tuple[int, ...]], fixed: Mapping[tuple[int, ...], int], low: int | None, step: int
) -> Iterator[int]:
    """Each element as small as the ones before it allow."""
    first = next((fixed[at] for at in places if at in fixed), 0)
    current = (min(first - len(places) * step, 0) if low is None else low) - step
    for at in places:
        current = fixed[at] if at in fixed else current + step
        yield current


def _keeps(data: Contents, promise: Promise) -> bool:
    values = [int(v) for v in data.reshape(-1)]
    match promise.kind:
        case "within":
            low, high = promise.bounds
            return all(low <= v < high for v in values)
        case "distinct":
            kept = [v for v in values if v not in promise.bounds]
            return len(set(kept)) == len(kept)
        case "increasing":
            return all(a <= b for a, b in pairwise(values))
        case _:
            return False
