"""Contracts on what is in memory, held against the arrays of a launch that asks for it.

The proof takes them for the author's word. A launch that asks copies the arrays to the host, and waits for that
until the device has done all its work, which costs more than most launches.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilecheck.jit.conditions import Condition
from tilecheck.jit.layouts import Layout, contiguous_strides, share_memory, solid
from tilecheck.model import StatedContract

MOST_ELEMENTS = 1 << 16  # of an array that is copied, unless the caller allows for more

Member = tuple[str, int, Layout]  # name, address and layout of an array
Part = Sequence[tuple[int, int]]  # for each axis the first index and the step, as in `ir.parts`


class Broken(Exception):
    """A contract does not hold, or cannot be looked at; `notes` say which and why."""

    def __init__(self, stated: StatedContract, why: str) -> None:
        self.notes = (stated.text, why)
        super().__init__(stated.text)


class Unreadable(Exception):
    """The values of an array cannot be looked at."""


class Contracts:
    """What a launch holds against the arrays that it is given."""

    def __init__(self, stated: Mapping[StatedContract, Sequence[Condition]], most: int, *, flat: bool) -> None:
        self.stated = stated  # the contracts, with their numbers
        self.most = most  # how many elements an array may have
        self.flat = flat  # whether arrays have one axis, whatever the shape of a tensor

    def numbers(self) -> list[Condition]:
        """The expressions over launch values that contracts hold."""
        return [number for numbers in self.stated.values() for number in numbers]

    def check(self, given: Mapping[str, tuple[Any, Sequence[Member]]], scope: dict[str, Any]) -> None:
        """Look at the arrays; `given` are the arguments by name, with the layouts of those the kernel touches.

        A contract about arrays that it does not touch says nothing, nor does one about None; one
        about two arrays of which it touches one is used by the proof.

        Raises:
            Broken: a contract does not hold.
        """
        copied: dict[str, list[Any]] = {}  # several contracts may speak of one array
        for stated, numbers in self.stated.items():
            members = [member for name in stated.arrays for member in given[name][1]]
            if stated.kind == "disjoint":
                problem = _meeting([(n, at, solid(x)) if self.flat else (n, at, x) for n, at, x in members])
            elif not members:
                continue
            elif len(members) < len(stated.arrays):
                raise Broken(stated, "the kernel touches only some of its arrays: the others are not looked at")
            else:
                self._check_axes(stated, members)
                for member in members:
                    name = member[0]
                    if name not in copied:
                        copied[name] = self._values(stated, given[name][0], member)
                values = [copied[name] for name in stated.arrays]
                bounds = [_number(stated, number, scope) for number in numbers]
                problem = next(_BROKEN[stated.kind](stated.arrays, values, bounds, stated.part), None)
            if problem is not None:
                raise Broken(stated, f"here {problem}")

    def _values(self, stated: StatedContract, value: Any, member: Member) -> list[Any]:
        name, _, layout = member
        try:
            return values_of(value, layout, self.most, flat=self.flat)
        except Unreadable as error:
            raise Broken(stated, f"`{name}` cannot be looked at: {error}") from None

    def _check_axes(self, stated: StatedContract, members: Sequence[Member]) -> None:
        rank = len(stated.part) or _RANKS.get(stated.kind)
        if self.flat and stated.kind == "distinct_pairs":
            rank = 1  # pairs that lie one after the other
        for name, _, layout in members:
            axes = 1 if self.flat else len(layout.shape)
            if rank not in (None, axes):
                raise Broken(stated, f"`{name}` has {axes} axes where it needs {rank}")


def _number(stated: StatedContract, number: Condition, scope: dict[str, Any]) -> int:
    try:
        return operator.index(eval(number.code, scope))  # noqa: S307 - only the whitelisted nodes of `conditions`
    except Exception as error:  # noqa: BLE001 - what cannot be evaluated does not hold
        raise Broken(stated, f"it cannot be evaluated: {error}") from None


def limit_of(check_contracts: bool | int) -> int | None:
    """The most elements of an array that is checked; None when none is."""
    if check_contracts is False:
        return None
    return MOST_ELEMENTS if check_contracts is True else check_contracts


# ---- what is in an array -------------------------------------------------------------------------------------


def values_of(value: Any, layout: Layout, most: int, *, flat: bool) -> list[Any]:
    """The elements of an array, as nested lists of integers; if `flat`, those from its first to its last in
    memory, with what lies between its rows.

    Raises:
        Unreadable: they are too many, or no integers, or cannot be copied.
    """
    count = layout.reach if flat else layout.size
    if count > most:
        raise Unreadable(f"it has {count} elements, more than {most}; `check_contracts={count}` allows them")
    _wait(value)
    found = _copied(value, layout, flat=flat)
    if not all(type(element) is int for _, element in elements(found)):
        raise Unreadable("its elements are no integers")
    return found


def elements(values: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Each element of nested lists, with its position."""
    if not isinstance(values, list):
        yield at, values
        return
    for number, part in enumerate(values):
        if isinstance(part, list):
            yield from elements(part, (*at, number))
        else:
            yield (*at, number), part


def _wait(value: Any) -> None:
    """Until nothing that was launched before, on any stream, can change it."""
    if hasattr(value, "is_cuda"):
        if value.is_cuda:
            sys.modules["torch"].cuda.synchronize(value.device)
    elif hasattr(value, "__cuda_array_interface__"):
        from tilecheck.jit.driver import call  # lazy: only where something runs

        call("cuCtxSynchronize")


def _copied(value: Any, layout: Layout, *, flat: bool) -> list[Any]:
    if not hasattr(value, "tolist"):
        if not hasattr(value, "download"):
            raise Unreadable(f"a {type(value).__name__} has no `tolist`")
        value = value.download()
    if not flat:
        found: list[Any] = value.tolist()
        return found
    if layout.strides == contiguous_strides(layout.shape) or layout.size <= 1:
        return [element for _, element in elements(value.tolist())]
    if not hasattr(value, "as_strided"):
        raise Unreadable("it has gaps, and no `as_strided` to see what is in them")
    between: list[Any] = value.as_strided((layout.reach,), (1,)).tolist()
    return between


# ---- the contracts -------------------------------------------------------------------------------------------


def _filled(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    for at, element in _cells(values[0], part):
        if element != bounds[0]:
            yield f"{_cell(names[0], at, element)}, which is not {bounds[0]}"


def _within(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    low, high = bounds
    for at, element in _cells(values[0], part):
        if not low <= element < high:
            yield f"{_cell(names[0], at, element)}, which is not in [{low}, {high})"


def _within_or(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    low, high, skip = bounds
    for at, element in _cells(values[0], part):
        if not low <= element < high and element != skip:
            yield f"{_cell(names[0], at, element)}, which is not in [{low}, {high}) and not {skip}"


def _distinct(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    seen: dict[Any, tuple[int, ...]] = {}
    for at, element in _cells(values[0], part):
        if element in bounds:  # the one that stands for none
            continue
        if element in seen:
            yield f"{_cell(names[0], seen[element], element)} and {_cell(names[0], at, element)}"
        seen[element] = at


def _increasing(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    for (one, before), (other, after) in itertools.pairwise(_cells(values[0], part)):
        if after < before:
            yield f"{_cell(names[0], one, before)} and {_cell(names[0], other, after)}"


def _distinct_pairs(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    seen: dict[tuple[int, ...], int] = {}
    (rows,) = values
    if rows and not isinstance(rows[0], list):
        rows = [rows[k : k + 2] for k in range(0, len(rows) - 1, 2)]  # a pair begun at the end is none
    for row, pair in enumerate(rows):
        if tuple(pair) in seen:
            yield f"{names[0]}[{seen[tuple(pair)]}] = {pair} and {names[0]}[{row}] = {pair}"
        seen[tuple(pair)] = row


def _prefix_sum(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    (sums, counts), (name, other) = values, names
    if len(sums) != len(counts) + 1:
        yield f"{name} has {len(sums)} elements and {other} has {len(counts)}"
        return
    if sums[0] != 0:
        yield f"{name}[0] = {sums[0]}, which is not 0"
    for i, count in enumerate(counts):
        if count < 0:
            yield f"{other}[{i}] = {count}, which is negative"
        if sums[i + 1] != sums[i] + count:
            yield f"{name}[{i}] = {sums[i]}, {other}[{i}] = {count} and {name}[{i + 1}] = {sums[i + 1]}"


def _chunks(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    (table, starts), name = values, names[0]
    if bounds[0] < 1:
        yield f"a chunk has {bounds[0]} rows"
    yield from _distinct_pairs(names[:1], [table], (), part)
    for row in range(0, len(table) - 1, 2):
        n, k = table[row : row + 2]
        if not 0 <= n < len(starts) - 1:
            yield f"{_cell(name, (row,), n)}, and {names[1]} has {len(starts)} elements"
        elif k < 0 or k * bounds[0] >= starts[n + 1] - starts[n]:
            length = starts[n + 1] - starts[n]
            yield f"{_cell(name, (row + 1,), k)}, but sequence {n} has {length} rows, and a chunk {bounds[0]}"


def _chunk_sums(
    names: Sequence[str], values: Sequence[list[Any]], bounds: Sequence[int], part: Part
) -> Iterator[str]:
    (sums, starts), (name, other), size = values, names, bounds[0]
    if size < 1:
        yield f"a chunk has {size} rows"
        return
    if sums and sums[0] != 0:
        yield f"{name}[0] = {sums[0]}, which is not 0"
    for i in range(min(len(sums), len(starts)) - 1):
        number = -(-(starts[i + 1] - starts[i]) // size)
        if sums[i + 1] - sums[i] != number:
            told = sums[i + 1] - sums[i]
            yield f"{name}[{i + 1}] - {name}[{i}] = {told}, and sequence {i} has {number} chunks"
    for table, values_of in ((name, sums), (other, starts)):
        yield from _increasing((table,), (values_of,), (), ())


_Broken = Callable[[Sequence[str], Sequence[list[Any]], Sequence[int], Part], Iterator[str]]
_BROKEN: dict[str, _Broken] = {
    "filled": _filled,
    "within": _within,
    "within_or": _within_or,
    "distinct": _distinct,
    "increasing": _increasing,
    "distinct_pairs": _distinct_pairs,
    "prefix_sum": _prefix_sum,
    "chunks": _chunks,
    "chunk_sums": _chunk_sums,
}
# How many axes the arrays of a contract have; those of the others have any number.
_RANKS = {"distinct": 1, "increasing": 1, "distinct_pairs": 2, "prefix_sum": 1, "chunks": 1, "chunk_sums": 1}


def _meeting(members: Sequence[Member]) -> str | None:
    """What breaks `disjoint`: two arrays that share memory, or may."""
    for (name, at, layout), (other, there, second) in itertools.combinations(members, 2):
        shared = share_memory(layout, second, there - at)
        if shared is not False:
            return f"{name} and {other} {'overlap' if shared else 'may overlap'}"
    return None


def _cells(values: list[Any], part: Part) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The elements of a part, with their positions in the array. One that is counted from the end is told by
    what stands there: along each axis all lists are of one length."""
    lengths: list[int] = []
    inner: Any = values
    while isinstance(inner, list):
        lengths.append(len(inner))
        inner = inner[0] if inner else None
    axes = [(first if first >= 0 else first + n, step) for (first, step), n in zip(part, lengths, strict=False)]
    for at, element in elements(values):
        if all(_is_taken(i, first, step) for i, (first, step) in zip(at, axes, strict=bool(part))):
            yield at, element


def _is_taken(index: int, first: int, step: int) -> bool:
    return index == first if step == 0 else index >= first and (index - first) % step == 0


def _cell(name: str, at: tuple[int, ...], element: int) -> str:
    return f"{name}[{', '.join(map(str, at))}] = {element}"
