"""Contents of arrays that keep the author's contracts: what a replay may put into memory.

Elements that a model fixes stay as they are; the others are chosen so that the contracts hold, if that is
possible at all. The finished contents are checked against every contract, so that a choice that does not
work out costs a replay, never a false counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count, pairwise, product
from typing import Any

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr
from tilecheck.ir.kernel import Contract
from tilecheck.ir.parts import WHOLE, Part

Contents = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Promise:
    """A contract with its bounds evaluated for one launch."""

    kind: str
    bounds: tuple[int, ...]
    part: Part = WHOLE


def promises(contracts: Sequence[Contract], array: str, value: Callable[[Expr], int]) -> tuple[Promise, ...]:
    """What one launch promises of an array."""
    mine = [c for c in contracts if c.array == array and c.kind not in _OF_SEVERAL]
    return tuple(Promise(c.kind, tuple(value(b) for b in c.bounds), c.part) for c in mine)


_OF_SEVERAL = (
    "prefix_sum",
    "chunks",
    "chunk_sums",
    "disjoint",
)  # what no single array can keep: see `fill_sums` and those after it; arrays here are apart


def fill_in(data: Contents, cells: Mapping[tuple[int, ...], int], promised: Sequence[Promise]) -> bool:
    """Choose the elements of `data` that `cells` does not fix; whether all promises hold then."""
    fixed = {at: v for at, v in cells.items() if _is_inside(at, data.shape)}
    if not all(_fits(v, data) for v in fixed.values()):
        return False
    for at, v in fixed.items():
        data[at] = v
    for part in dict.fromkeys((WHOLE, *(promise.part for promise in promised))):
        seen = _seen(data, part)
        if seen is None:
            return False
        places = list(np.ndindex(*seen.shape))
        there = {here: _place(here, part, data.shape) for here in places}
        inside = {here: fixed[at] for here, at in there.items() if at in fixed}
        for here, v in zip(places, _values(seen, places, inside, promised, part), strict=True):
            if not _fits(v, data):
                return False
            seen[here] = v
    return all(keeps(data, promise) for promise in promised)


def _seen(data: Contents, part: Part) -> Contents | None:
    """A view of a part of an array; None where the array has other axes than the part."""
    if part and len(part) != data.ndim:
        return None
    return data[tuple(_slice(first, step, size) for (first, step), size in zip(part, data.shape, strict=False))]


def _slice(first: int, step: int, size: int) -> slice:
    first = _counted(first, size)
    if first < 0:  # before the first one: there is none
        return slice(0, 0)
    return slice(first, None if step else first + 1, step or 1)


def _counted(first: int, size: int) -> int:
    """An index from the front, of one that may be counted from the end."""
    return first if first >= 0 else first + size


def _fits(value: int, data: Contents) -> bool:
    """Whether elements of this type hold a value."""
    return data.dtype.kind not in "iu" or np.iinfo(data.dtype).min <= value <= np.iinfo(data.dtype).max


def _place(here: tuple[int, ...], part: Part, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where in an array of this shape an element of the view is."""
    if not part:
        return here
    axes = zip(here, part, shape, strict=True)
    return tuple(_counted(first, size) + i * step for i, (first, step), size in axes)


def fill_sums(
    sums: Contents,
    items: Contents,
    cells: tuple[Mapping[tuple[int, ...], int], Mapping[tuple[int, ...], int]],
    promised: tuple[Sequence[Promise], Sequence[Promise]],
) -> bool:
    """Choose `items` and their prefix sums `sums` around the cells of both that are fixed; whether
    `sums[0] == 0`, `sums[i + 1] == sums[i] + items[i]`, `items[i] >= 0` and all promises hold then."""
    if sums.ndim != 1 or items.ndim != 1 or len(sums) != len(items) + 1:
        return False
    totals = {at[0]: v for at, v in cells[0].items() if _is_inside(at, sums.shape)}
    counts = {at[0]: v for at, v in cells[1].items() if _is_inside(at, items.shape)}
    known = {0: 0, **totals}
    for i in reversed(range(len(items))):
        if i + 1 in known and i in counts:
            known.setdefault(i, known[i + 1] - counts[i])
    last = max(known)
    high = min((p.bounds[1] - 1 for p in promised[0] if p.kind == "within"), default=None)
    sums[0] = 0
    for i in range(len(items)):
        free = int(sums[i]) + (counts.get(i, 0) if i < last else counts.get(i, _ITEM))
        sums[i + 1] = known.get(i + 1, free if high is None or i in counts else max(min(free, high), sums[i]))
        items[i] = sums[i + 1] - sums[i]
    kept = all(sums[i] == v for i, v in known.items()) and all(items[i] == v for i, v in counts.items())
    pairs = ((sums, promised[0]), (items, promised[1]))
    return kept and bool((items >= 0).all()) and all(keeps(data, p) for data, ps in pairs for p in ps)


def fill_chunks(
    table: Contents,
    starts: Contents,
    cells: Mapping[tuple[int, ...], int],
    size: int,
    promised: Sequence[Promise],
) -> bool:
    """Choose the pairs of `table` around the cells that are fixed: each is a chunk (n, k) that begins inside
    its sequence, `k * size < starts[n + 1] - starts[n]`, and no two are one; whether all promises hold then."""
    if table.ndim != 1 or starts.ndim != 1 or size < 1:
        return False
    lengths = [int(b) - int(a) for a, b in pairwise(starts)]
    free = [(n, k) for n, length in enumerate(lengths) for k in range(-(-length // size))]
    for row in range(table.size // 2):
        wanted = cells.get((2 * row,)), cells.get((2 * row + 1,))
        fitting = (p for p in free if all(w in (None, v) for w, v in zip(wanted, p, strict=True)))
        chosen = next(fitting, None)
        if chosen is None:
            return False
        free.remove(chosen)
        table[2 * row : 2 * row + 2] = chosen
    return all(keeps(table, promise) for promise in promised)


def fill_chunk_sums(
    sums: Contents,
    starts: Contents,
    cells: Mapping[tuple[int, ...], int],
    size: int,
    promised: Sequence[Promise],
) -> bool:
    """Let `sums` say how many chunks are before each sequence; whether that is what the cells that are fixed
    say, and all promises hold."""
    if sums.ndim != 1 or starts.ndim != 1 or size < 1 or len(sums) > len(starts):
        return False
    lengths = [int(b) - int(a) for a, b in pairwise(starts)]
    if min(lengths, default=0) < 0:
        return False
    total = 0
    for i in range(len(sums)):
        sums[i] = total
        total += -(-lengths[i] // size) if i < len(lengths) else 0
    kept = all(sums[at[0]] == v for at, v in cells.items() if _is_inside(at, sums.shape))
    return kept and all(keeps(sums, promise) for promise in promised)


_ITEM = 3  # an item that nothing else speaks of


def _is_inside(at: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(at) == len(shape) and all(0 <= i < n for i, n in zip(at, shape, strict=True))


def _values(
    data: Contents,
    places: Sequence[tuple[int, ...]],
    fixed: Mapping[tuple[int, ...], int],
    promised: Sequence[Promise],
    part: Part,
) -> Iterator[int]:
    own = [promise for promise in promised if promise.part in (part, WHOLE)]
    kinds = {promise.kind for promise in own if promise.part == part}
    low, high = _range(own)
    if "distinct_pairs" in kinds:
        flat = data.ndim == 1
        columns = [((k, 2),) if flat else ((0, 1), (k, 0)) for k in (0, 1)]
        ranges = [_range([p for p in promised if p.part in (WHOLE, column)]) for column in columns]
        pairs = [divmod(at[0], 2) if flat else at for at in places]
        known = {divmod(at[0], 2) if flat else at: v for at, v in fixed.items()}
        yield from _pairs(pairs, known, ranges)
    elif "increasing" in kinds:
        yield from _rising(places, fixed, low, high, step=int("distinct" in kinds))
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
    places: Sequence[tuple[int, ...]],
    fixed: Mapping[tuple[int, ...], int],
    low: int | None,
    high: int | None,
    step: int,
) -> Iterator[int]:
    """Values that rise by `step` at least, and evenly by up to `_SEGMENT` as far as there is room."""
    most: list[int | None] = []  # what each value may be at most, last first
    limit = None if high is None else high - 1
    for at in reversed(places):
        limit = fixed.get(at, limit)
        most.append(limit)
        limit = None if limit is None else limit - step
    first = next((fixed[at] for at in places if at in fixed), 0)
    current = (min(first - len(places) * step, 0) if low is None else low) - step
    room = _SEGMENT if high is None else (high - 1 - (low or 0)) // max(1, len(places) - 1)
    wide = max(step, min(_SEGMENT, max(1, room)))
    for number, (at, top) in enumerate(zip(places, reversed(most), strict=True)):
        free = current + (wide if number else step)
        current = fixed[at] if at in fixed else max(current + step, free if top is None else min(free, top))
        yield current


_SEGMENT = 3  # rows from one offset to the next where nothing says more: no whole number of tiles


def _pairs(
    places: Sequence[tuple[int, ...]],
    fixed: Mapping[tuple[int, ...], int],
    ranges: Sequence[tuple[int | None, int | None]],
) -> Iterator[int]:
    """In each row a pair that no other row has, two rows for each first entry where there is room, as tables of
    (sequence, chunk) have; any value in further columns."""
    rows = tuple(dict.fromkeys(at[0] for at in places))
    (low, width), (other, most) = ((b or 0, _width(b or 0, e, len(rows))) for b, e in ranges)
    taken = {(fixed.get((row, 0)), fixed.get((row, 1))) for row in rows}
    chosen: dict[int, tuple[int, int]] = {}
    for row in rows:
        a, b = fixed.get((row, 0)), fixed.get((row, 1))
        if a is not None and b is not None:
            chosen[row] = (a, b)
            continue
        few = min(2, most)
        places_of = product(range(width), range(few)), product(range(width), range(few, most))
        pairs = ((low + i if a is None else a, other + j if b is None else b) for i, j in chain(*places_of))
        chosen[row] = next((pair for pair in pairs if pair not in taken), (low, other))
        taken.add(chosen[row])
    for at in places:
        yield chosen[at[0]][at[1]] if at[1] < 2 else fixed.get(at, low)


def _width(low: int, high: int | None, rows: int) -> int:
    """How many values are tried in one column."""
    return rows if high is None else max(1, min(high - low, rows))


def _range(promised: Sequence[Promise]) -> tuple[int | None, int | None]:
    ranges = [promise.bounds[:2] for promise in promised if promise.kind in ("within", "within_or")]
    ranges += [(p.bounds[0], p.bounds[0] + 1) for p in promised if p.kind == "filled"]
    return max((b[0] for b in ranges), default=None), min((b[1] for b in ranges), default=None)


def keeps(data: Contents, promise: Promise) -> bool:
    """Whether an array keeps what one launch promises of it."""
    seen = _seen(data, promise.part)
    if seen is None:
        return False
    data = seen
    values = [int(v) for v in data.reshape(-1)]
    match promise.kind:
        case "filled":
            return all(v == promise.bounds[0] for v in values)
        case "within":
            low, high = promise.bounds
            return all(low <= v < high for v in values)
        case "within_or":
            low, high, skip = promise.bounds
            return all(low <= v < high or v == skip for v in values)
        case "distinct":
            kept = [v for v in values if v not in promise.bounds]
            return len(set(kept)) == len(kept)
        case "distinct_pairs":
            flat = data.reshape(-1)[: data.size // 2 * 2].reshape(-1, 2)  # a pair begun at the end is none
            rows = [tuple(row) for row in (data[:, :2] if data.ndim == 2 else flat).tolist()]
            return len(set(rows)) == len(rows)
        case "increasing":
            return all(a <= b for a, b in pairwise(values))
        case _:
            return False
