"""A launch with every value fixed: what a model of the solver becomes before it is replayed.

Values that no model fixes get defaults. The result is only used if the kernel's facts, its preconditions and
the launch conditions evaluate to true on it, memory keeps the contracts, tile sizes are powers of two, and no
written array overlaps itself.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from math import prod
from typing import Any

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Kind, Symbol, evaluate, symbols, walk
from tilecheck.ir.kernel import (
    Contract,
    Kernel,
    Ownership,
    Param,
    extent_symbol,
    grid_symbol,
    made_of,
    stride_symbol,
)
from tilecheck.proof.goals.context import Context
from tilecheck.proof.refute.replay import Layout
from tilecheck.proof.refute.table_contents import (
    Promise,
    fill_chunk_sums,
    fill_chunks,
    fill_in,
    fill_sums,
    promises,
)

Memory = Mapping[str, Mapping[tuple[int, ...], int]]
FILLS = ("ramp", "zeros", "ones")  # what memory holds where no model says
ROWS = "rows"  # other fills: each element of an array is its index along the first axis,
SPACED = "spaced"  # or some way behind the element before it, as the starts of parts are
_MOST_ELEMENTS = 1 << 22
_VIRTUAL = 1 << 40
_EXTENT = 4  # of an array that nothing else speaks of
_MOST_PROMISED = 1 << 14  # elements of an array with contracts
_MOST_MEMBERS = 64
_SPACE = 16  # between values that are spaced
_TOO_LARGE = 1 << 62  # for any launch value
_MEMBERS = 2  # of a list that nothing else speaks of


@dataclass(frozen=True, slots=True)
class Concrete:
    """Values of launch symbols, memory contents, and what fills the rest of memory.

    `memory` maps an array to the values of single elements; the extents of list members are cells of
    `xs.shape[k]`. With `integers`, every array holds integers. With `virtual`, arrays too large to allocate
    have all their elements in one cell: their addresses are real, their contents mean nothing.
    """

    values: Mapping[Symbol, int | bool]
    memory: Memory = field(default_factory=dict)
    fill: str = FILLS[0]
    fills: Mapping[str, str] = field(default_factory=dict)  # of single arrays, by name
    integers: bool = False
    virtual: bool = False

    def changed(self, symbol: Symbol, value: int | bool) -> Concrete:
        return replace(self, values={**self.values, symbol: value})

    def value(self, symbol: Symbol) -> int | bool:
        """The value of a launch symbol, or its default; of a power of two what it is made of makes it."""
        made = made_of(symbol)
        if made is not None:
            number = self.number(made.name)
            power = made.of(number)
            return power if power is not None else 0 if number + made.added < 0 else _TOO_LARGE
        found = self.values.get(symbol)
        if found is not None:
            return found
        if symbol.kind is Kind.EXTENT:
            return _MEMBERS if symbol.name.startswith("len(") else _EXTENT
        return 1

    def number(self, name: str) -> int:
        """The value of a scalar or constant that is a number."""
        for symbol, value in self.values.items():
            if symbol.name == name and symbol.kind in (Kind.CONSTANT, Kind.SCALAR):
                return int(value)
        return 1

    def settled(self, kernel: Kernel) -> Concrete:
        """The same launch with the values that follow from others: sizes of storage, numbers of axes, powers
        of two."""
        derived: dict[Symbol, int | bool] = {s: self.value(s) for s in self.values if made_of(s) is not None}
        for param in kernel.params:
            if param.is_list:
                shapes = [member_shape(param, self, number) for number in range(length_of(param, self))]
                for k in range(_rank(param)):
                    least = min((shape[k] for shape in shapes), default=0)
                    derived[extent_symbol(f"{param.name}[*]", k)] = least
            if param.is_array and not param.is_list:
                shape = tuple(int(self.value(extent_symbol(param.name, k))) for k in range(_rank(param)))
                strides = self.strides(param.name, shape)
                derived[Symbol(f"numel({param.name})", Kind.EXTENT)] = span_of(shape, strides)
                derived[Symbol(f"{param.name}.ndim", Kind.CONSTANT)] = len(shape)
                derived |= {stride_symbol(param.name, k): s for k, s in enumerate(strides)}
        return replace(self, values={**self.values, **derived})

    def strides(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The strides that a model fixes; others are those of C order."""
        wanted = (self.values.get(stride_symbol(name, k)) for k in range(len(shape)))
        pairs = zip(wanted, contiguous(shape), strict=True)
        return tuple(own if stride is None else int(stride) for stride, own in pairs)

    def grid(self, kernel: Kernel) -> tuple[int, int, int]:
        """The grid; an axis that the kernel never reads has one block (standing obligation S3)."""
        x, y, z = (int(self.value(grid_symbol(k))) if k in kernel.grid_axes else 1 for k in range(3))
        return x, y, z


@functools.lru_cache(maxsize=8)
def launch_symbols(context: Context) -> tuple[Symbol, ...]:
    """The launch values of a kernel, in order of appearance: grid, extents, scalars, constants, and the scalars
    that only unknowns are computed from."""
    kernel = context.kernel
    found = dict.fromkeys(grid_symbol(axis) for axis in kernel.grid_axes)
    mentioned = symbols(*kernel_expressions(kernel), *context.uniform_facts)
    found.update(dict.fromkeys(s for s in mentioned if s.kind <= Kind.GRID))
    for param in kernel.params:
        if param.is_array and not param.is_list:
            found.update(dict.fromkeys(extent_symbol(param.name, k) for k in range(param.rank or 1)))
    found.update(dict.fromkeys(s for _, s in kernel.constants if s in found))
    behind = {name for s in mentioned if s.kind is Kind.OPAQUE for name in s.memory}
    named = {s.name for s in found}
    numbers = [p.name for p in kernel.params if not p.is_array and p.name in behind - named]
    found.update(dict.fromkeys(Symbol(name, Kind.SCALAR, origin="untyped") for name in numbers))
    return tuple(found)


def kernel_expressions(kernel: Kernel) -> Iterator[Expr]:
    """Every expression of a kernel."""
    for access in kernel.accesses:
        yield from (access.guard, access.mask, access.unchecked)
        for axis in access.axes:
            yield from (axis.index, axis.step, axis.size, axis.extent, axis.base)
        if access.member is not None:
            yield access.member
    for check in kernel.checks:
        yield from (check.goal, check.guard)
    for arithmetic in kernel.arithmetic:
        yield from (arithmetic.value, arithmetic.guard)
    yield from kernel.facts
    yield from kernel.powers_of_two


def integer_arrays(kernel: Kernel) -> frozenset[str]:
    """The arrays whose contents the kernel uses as integers."""
    names: set[str] = set()
    for node in walk(*kernel_expressions(kernel)):
        if node.op == "read":
            names.add(memory_name(node.args[0]))
        elif node.op in ("sym", "bsym") and node.args[0].origin.startswith("memory:"):
            names.add(node.args[0].origin.removeprefix("memory:"))
    return frozenset(names)


def memory_name(name: str) -> str:
    """The array behind the name of a `read`: `t:int` is `t` converted to an integer."""
    return name.removesuffix(":int")


# ---------------------------------------------------------------------------------------------------------


def is_admitted(concrete: Concrete, context: Context) -> bool:
    """Whether the launch meets the kernel's facts, preconditions and conditions."""
    if not all(_in_range(s, concrete.value(s), concrete.virtual) for s in launch_symbols(context)):
        return False
    # Conditions, which stand last, are what fails most.
    return _meets(concrete, context, reversed(context.uniform_facts))


def is_admitted_by_shapes(concrete: Concrete, context: Context) -> bool:
    """The same of what does not depend on the grid: where it is not met, no grid is worth a trial."""
    return _meets(concrete, context, _without_grid(context))


def is_admitted_by_grid(concrete: Concrete, context: Context) -> bool:
    """What `is_admitted` asks of a launch besides `is_admitted_by_shapes`: ranges, and facts about the grid."""
    if not all(_in_range(s, concrete.value(s), concrete.virtual) for s in launch_symbols(context)):
        return False
    return _meets(concrete, context, _with_grid(context))


@functools.lru_cache(maxsize=8)
def _without_grid(context: Context) -> tuple[Expr, ...]:
    return tuple(fact for fact in reversed(context.uniform_facts) if not _asks_of_grid(fact))


@functools.lru_cache(maxsize=8)
def _with_grid(context: Context) -> tuple[Expr, ...]:
    return tuple(fact for fact in reversed(context.uniform_facts) if _asks_of_grid(fact))


def _asks_of_grid(fact: Expr) -> bool:
    return any(s.kind is Kind.GRID for s in symbols(fact))


def _meets(concrete: Concrete, context: Context, facts: Iterable[Expr]) -> bool:
    known: dict[Expr, int | bool] = {}  # values of parts that several facts share

    def cell(array: str, at: tuple[int, ...]) -> int:
        return concrete.memory.get(memory_name(array), {}).get(at, _EXTENT if ".shape[" in array else 0)

    def holds(fact: Expr) -> bool:
        try:
            return bool(evaluate(fact, concrete.value, cell, known))
        except ZeroDivisionError:
            return False

    def is_power(size: Expr) -> bool:
        if any(s.varies for s in symbols(size)):
            return True  # checked where the tile is made
        try:
            value = int(evaluate(size, concrete.value, cell, known))
        except ZeroDivisionError:
            return False
        return value > 0 and value & (value - 1) == 0

    return all(map(holds, facts)) and all(map(is_power, context.kernel.powers_of_two))


def _in_range(symbol: Symbol, value: int | bool, virtual: bool) -> bool:
    if symbol.kind is Kind.GRID:
        return 1 <= value < 1 << 16
    if virtual and symbol.kind in (Kind.EXTENT, Kind.STRIDE):
        return 0 <= value < _VIRTUAL
    low = 0 if symbol.kind is Kind.EXTENT else -(1 << 31)
    return low <= value < 1 << 31


def arguments(concrete: Concrete, kernel: Kernel) -> dict[str, Any] | None:
    """A value for every parameter, or None when the launch cannot be made."""
    try:
        return _arguments(concrete, kernel)
    except (ZeroDivisionError, OverflowError):
        # A contract divides by a size that is 0, or asks for numbers that no element holds.
        return None


def _arguments(concrete: Concrete, kernel: Kernel) -> dict[str, Any] | None:
    tables = {array for c in kernel.contracts if c.is_about_values for array in c.arrays}
    integers = integer_arrays(kernel) | tables
    found: dict[str, Any] = {}
    for param in kernel.params:
        value = _argument(param, concrete, concrete.integers or param.name in integers)
        promised = promises(kernel.contracts, param.name, lambda e: int(evaluate(e, concrete.value)))
        if promised and not (isinstance(value, np.ndarray) and _keeps(value, param, concrete, promised)):
            return None
        if isinstance(value, _Impossible):
            return None
        found[param.name] = value
    return found if _keeps_sums(found, concrete, kernel) else None


def _keeps_sums(given: Mapping[str, Any], concrete: Concrete, kernel: Kernel) -> bool:
    """Let the arrays of contracts that speak of two keep them; whether that is possible."""
    for contract in kernel.contracts:
        if contract.kind == "prefix_sum":
            sums, items = (given[name] for name in contract.arrays)
            if (
                not (isinstance(sums, np.ndarray) and isinstance(items, np.ndarray))
                or sums.size > _MOST_PROMISED
            ):
                return False
            cells = tuple(concrete.memory.get(name, {}) for name in contract.arrays)
            single = [
                promises(kernel.contracts, name, lambda e: int(evaluate(e, concrete.value)))
                for name in contract.arrays
            ]
            if not fill_sums(sums, items, (cells[0], cells[1]), (single[0], single[1])):
                return False
        if contract.kind in _OF_CHUNKS and not _keeps_chunks(contract, given, concrete, kernel):
            return False
    return True


def _keeps_chunks(contract: Contract, given: Mapping[str, Any], concrete: Concrete, kernel: Kernel) -> bool:
    table, starts = (given[name] for name in contract.arrays)
    if not (isinstance(table, np.ndarray) and isinstance(starts, np.ndarray)) or table.size > _MOST_PROMISED:
        return False
    (size,) = (int(evaluate(b, concrete.value)) for b in contract.bounds)
    promised = promises(kernel.contracts, contract.array, lambda e: int(evaluate(e, concrete.value)))
    return _OF_CHUNKS[contract.kind](table, starts, concrete.memory.get(contract.array, {}), size, promised)


_OF_CHUNKS = {"chunks": fill_chunks, "chunk_sums": fill_chunk_sums}


def _keeps(data: np.ndarray[Any, Any], param: Param, concrete: Concrete, promised: tuple[Promise, ...]) -> bool:
    return data.size <= _MOST_PROMISED and fill_in(data, concrete.memory.get(param.name, {}), promised)


@dataclass(frozen=True, slots=True)
class _Impossible:
    """An argument that cannot be made: too large, or a written array that overlaps itself."""


def _argument(param: Param, concrete: Concrete, integers: bool) -> Any:
    if param.is_list:
        length = length_of(param, concrete)
        if length > _MOST_MEMBERS:
            return _Impossible()
        members = [_member(param, concrete, integers, number) for number in range(length)]
        return _Impossible() if any(isinstance(m, _Impossible) for m in members) else members
    if param.is_array:
        shape = tuple(int(concrete.value(extent_symbol(param.name, k))) for k in range(_rank(param)))
        strides = concrete.strides(param.name, shape)
        return _array(param, concrete, integers, shape, strides, concrete.memory.get(param.name, {}))
    return _scalar(param, concrete)


def _rank(param: Param) -> int:
    return 1 if param.rank is None else param.rank


def length_of(param: Param, concrete: Concrete) -> int:
    """The number of members of a list."""
    return int(concrete.value(Symbol(f"len({param.name})", Kind.EXTENT)))


def member_shape(param: Param, concrete: Concrete, number: int) -> tuple[int, ...]:
    """The shape of one member of a list: what a model fixes, but nothing below what all members have."""
    least = [int(concrete.values.get(extent_symbol(f"{param.name}[*]", k), 0)) for k in range(_rank(param))]
    cells = [concrete.memory.get(f"{param.name}.shape[{k}]", {}) for k in range(_rank(param))]
    return tuple(max(low, cell.get((number,), _EXTENT)) for low, cell in zip(least, cells, strict=True))


def _member(param: Param, concrete: Concrete, integers: bool, number: int) -> Any:
    shape = member_shape(param, concrete, number)
    cells = {at[1:]: v for at, v in concrete.memory.get(param.name, {}).items() if at[:1] == (number,)}
    return _array(param, concrete, integers, shape, contiguous(shape), cells)


def _array(
    param: Param,
    concrete: Concrete,
    integers: bool,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    cells: Mapping[tuple[int, ...], int],
) -> Any:
    """An array of that shape and layout, filled, then set to the cells that a model fixes."""
    span = span_of(shape, strides)
    if any(n < 0 for n in (*shape, *strides)) or (span > _MOST_ELEMENTS and not concrete.virtual):
        return _Impossible()
    if param.ownership is Ownership.MUT and overlaps_itself(shape, strides):
        return _Impossible()
    dtype = np.dtype(np.int32 if integers else np.float32)
    if span > _MOST_ELEMENTS:
        if prod(shape) * dtype.itemsize > sys.maxsize:
            return _Impossible()  # NumPy has no such shape, not even in one cell
        return np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, (0,) * len(shape))
    fill = concrete.fills.get(param.name, concrete.fill)
    base = _filled(max(1, span), fill, strides[0] if strides else 1).astype(dtype)
    data = np.lib.stride_tricks.as_strided(base, shape, tuple(s * dtype.itemsize for s in strides))
    for at, value in cells.items():
        inside = len(at) == len(shape) and all(0 <= i < n for i, n in zip(at, shape, strict=True))
        if inside and -(1 << 31) <= value < 1 << 31:
            data[at] = value
    return data


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of C order, in elements."""
    strides = [1] * len(shape)
    for k in range(len(shape) - 2, -1, -1):
        strides[k] = strides[k + 1] * max(1, shape[k + 1])
    return tuple(strides)


def span_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The number of elements from the first to the last, 0 for an empty array."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two indices may share an element, as the standing obligation S2 excludes (sufficient test)."""
    reach = 0
    for stride, extent in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (extent - 1)
    return False


def _filled(span: int, fill: str, row: int) -> np.ndarray[Any, Any]:
    if fill == ROWS:
        return np.arange(span) // max(1, row)
    if fill == SPACED:
        return np.arange(span) * _SPACE
    if fill == "ramp":
        return np.arange(span) % 7
    return np.zeros(span, np.int64) if fill == "zeros" else np.ones(span, np.int64)


def _scalar(param: Param, concrete: Concrete) -> Any:
    """The value of a scalar or constant; None where a model says that the parameter `is None`."""
    for symbol, value in concrete.values.items():
        if symbol.name == f"{param.name} is None" and value is True:
            return None
    for symbol, value in concrete.values.items():
        if symbol.name == param.name and symbol.kind in (Kind.CONSTANT, Kind.SCALAR):
            return bool(value) if isinstance(value, bool) else int(value)
    return 1


def holds_its_cells(concrete: Concrete, kernel: Kernel) -> bool:
    """Whether every element whose value matters lies inside its array."""
    for param in kernel.params:
        if param.is_array and not param.is_list:
            shape = [int(concrete.value(extent_symbol(param.name, k))) for k in range(_rank(param))]
            for at in concrete.memory.get(param.name, {}):
                if len(at) == len(shape) and not all(0 <= i < n for i, n in zip(at, shape, strict=True)):
                    return False
    return True


def layouts(given: Mapping[str, Any]) -> dict[str, tuple[Layout, ...]]:
    """The shapes and strides of the arrays among launch arguments."""
    return {
        name: tuple(_layout(a) for a in _arrays(value))
        for name, value in given.items()
        if isinstance(value, np.ndarray | list)
    }


def _arrays(value: Any) -> Iterable[np.ndarray[Any, Any]]:
    return value if isinstance(value, list) else (value,)


def _layout(array: np.ndarray[Any, Any]) -> Layout:
    return Layout(array.shape, tuple(s // array.itemsize for s in array.strides))
