"""Small concrete launches of a kernel, drawn at random from a seed, and what they do on the reference backend.

Extents are 0 to 9, or a few tiles wide; grids are 1 to 3; tile sizes 1, 2 or 4; scalars 0 to 5, or near a
literal of the kernel; memory holds small integers that meet the kernel's contracts. Some arrays have padded
rows or transposed strides.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tilecheck.ir.expr import Expr, Kind, Symbol, children, evaluate, symbols, walk
from tilecheck.ir.kernel import Contract, Kernel, Ownership, Param, extent_symbol, stride_symbol
from tilecheck.proof.goals.context import Context
from tilecheck.proof.refute.concrete import (
    Concrete,
    arguments,
    integer_arrays,
    kernel_expressions,
    launch_symbols,
)
from tilecheck.reference import Launch, Log, ReplayError, run

Values = dict[Symbol, int | bool]
Contents = Mapping[str, Any]  # per array its elements, per list a list of them
STEPS = 6_000  # the longest of 6,500 launches of fixtures that end takes 3,422; others wait for ever
_LARGEST_LITERAL = 300


@dataclass(frozen=True)
class Trial:
    """One launch that ran: its values, what memory held before it, and what it did."""

    kernel: Kernel
    path: str
    concrete: Concrete
    grid: tuple[int, int, int]
    contents: Contents
    arrays: Contents
    log: Log

    def describe(self) -> str:
        """Everything that is needed to run it again."""
        scalars = {s.name: v for s, v in self.concrete.values.items() if s.kind in (Kind.SCALAR, Kind.CONSTANT)}
        lines = [f"{self.path}::{self.kernel.name}  grid={self.grid}  scalars={scalars}"]
        for name, held in self.contents.items():
            for number, part in enumerate(held if isinstance(held, list) else [held]):
                member = f"[{number}]" if isinstance(held, list) else ""
                own = self.arrays[name][number] if isinstance(held, list) else self.arrays[name]
                strides = tuple(s // own.itemsize for s in own.strides)
                cells = part.reshape(-1)[:40].tolist()
                lines.append(f"  {name}{member}: shape {part.shape}, strides {strides}, {cells}")
        return "\n".join(lines)


def trials(kernel: Kernel, path: str, count: int, seed: str, *, attempts: int = 60) -> Iterator[Trial]:
    """Up to `count` launches that meet the kernel's facts and contracts."""
    rng = random.Random(seed)
    made = 0
    for number in range(attempts * count):
        if made == count:
            return
        concrete = draw(kernel, rng, plain=number % 3 == 0)
        if concrete is None:
            continue
        made += 1
        trial = execute(kernel, path, concrete, rng)
        if trial is not None:
            yield trial


def draw(
    kernel: Kernel, rng: random.Random, *, plain: bool, facts: Sequence[Expr] | None = None
) -> Concrete | None:
    """Values for everything that a launch fixes; None when they break a fact that no small change repairs."""
    context = Context(kernel)
    facts = context.uniform_facts if facts is None else facts
    values = _values(kernel, context, rng, plain=plain)
    for _ in range(6):
        concrete = Concrete(values, memory=_member_shapes(kernel, rng, values)).settled(kernel)
        broken = [f for f in facts if not _holds(f, concrete)]
        if not broken:
            return concrete
        repaired = [_repair(fact, values, concrete, rng) for fact in broken]
        if not any(repaired):
            return None
    return None


# ---- values ------------------------------------------------------------------------------------------------


def _values(kernel: Kernel, context: Context, rng: random.Random, *, plain: bool) -> Values:
    launch = launch_symbols(context)
    nodes = list(walk(*kernel_expressions(kernel), *context.uniform_facts))
    booleans = {n.args[0] for n in nodes if n.op == "bsym"}
    literals = [n.args[0] for n in nodes if n.op == "const" and 5 < n.args[0] <= _LARGEST_LITERAL]
    sizes = set(symbols(*kernel.powers_of_two))
    values: Values = {}
    for symbol in launch:
        if symbol in booleans:
            values[symbol] = rng.random() < 0.5
        elif symbol.kind is Kind.GRID:
            values[symbol] = rng.randint(1, 3)
        elif symbol in sizes:
            values[symbol] = rng.choice((1, 2, 2, 4))
        elif symbol.kind in (Kind.CONSTANT, Kind.SCALAR):
            values[symbol] = _number(rng, literals, 0 if plain else 0.2)
    widths = _widths(kernel, values)
    uniform = rng.randint(1, 4) if plain else None
    for symbol in launch:
        if symbol.kind is Kind.EXTENT:
            width = widths.get(symbol)
            if uniform is not None:
                values[symbol] = uniform * (width or 1)
            elif width is not None and (width > 4 or rng.random() < 0.6):
                values[symbol] = max(0, width * rng.randint(0, 4) + rng.choice((0, 0, 1, -1)))
            else:
                values[symbol] = _number(rng, literals, 0.1) if rng.random() < 0.3 else rng.randint(0, 9)
    if not plain:
        for param in kernel.params:
            values.update(_layout(param, values, rng))
    return values


def _number(rng: random.Random, literals: Sequence[int], share: float) -> int:
    if literals and rng.random() < share:
        return max(0, rng.choice(literals) + rng.choice((0, 0, 1, -1)))
    return rng.randint(0, 5)


def _widths(kernel: Kernel, values: Values) -> dict[Symbol, int]:
    """How wide the tiles along each array axis are."""
    found: dict[Symbol, int] = {}
    for access in kernel.accesses:
        for number, axis in enumerate(access.axes):
            size = axis.size if axis.size.value != 1 else axis.step
            if all(s in values for s in symbols(size)) and all(n.op != "read" for n in walk(size)):
                try:
                    width = int(evaluate(size, values.__getitem__))
                except ZeroDivisionError:
                    continue
                symbol = extent_symbol(access.array, number)
                found[symbol] = max(1, width, found.get(symbol, 1))
    return found


def _layout(param: Param, values: Values, rng: random.Random) -> Values:
    """Now and then strides that are not those of C order: padded rows, transposed, shared rows of an input."""
    rank = param.rank or 1
    if not param.is_array or param.is_list or rng.random() < 0.6:
        return {}
    shape = [int(values.get(extent_symbol(param.name, k), 4)) for k in range(rank)]
    order = list(range(rank))
    if rng.random() < 0.5:
        rng.shuffle(order)
    strides, reach = [0] * rank, rng.choice((1, 1, 2))
    for axis in reversed(order):
        strides[axis] = reach
        reach *= max(1, shape[axis]) + rng.choice((0, 0, 1))
    if param.ownership is not Ownership.MUT and rng.random() < 0.2:
        strides[rng.randrange(rank)] = 0
    return {stride_symbol(param.name, k): s for k, s in enumerate(strides)}


def _member_shapes(kernel: Kernel, rng: random.Random, values: Values) -> dict[str, dict[tuple[int, ...], int]]:
    cells: dict[str, dict[tuple[int, ...], int]] = {}
    for param in kernel.params:
        if param.is_list:
            length = values.setdefault(Symbol(f"len({param.name})", Kind.EXTENT), rng.randint(1, 3))
            for k in range(param.rank or 1):
                cells[f"{param.name}.shape[{k}]"] = {(i,): rng.randint(0, 9) for i in range(int(length))}
    return cells


def _holds(fact: Expr, concrete: Concrete) -> bool:
    def cell(array: str, at: tuple[int, ...]) -> int:
        return concrete.memory.get(array, {}).get(at, 0)

    try:
        return bool(evaluate(fact, concrete.value, cell))
    except ZeroDivisionError:
        return False


def _repair(fact: Expr, values: Values, concrete: Concrete, rng: random.Random) -> bool:
    """Make `symbol == e` or `symbol % c == 0` true by changing the symbol; whether something was changed."""
    if fact.op == "all":
        repaired = [_repair(part, values, concrete, rng) for part in fact.args]
        return any(repaired)
    if fact.op not in ("eq", "le", "lt"):
        return False
    sides = list(fact.args)
    rng.shuffle(sides)
    for side in sides:
        other = fact.args[1] if side is fact.args[0] else fact.args[0]
        if side.op == "mod" and children(side)[0].op == "sym" and fact.op == "eq":
            divisor = _value(side.args[1], concrete)
            if divisor and side.args[0].args[0].kind <= Kind.GRID:
                values[side.args[0].args[0]] = divisor * rng.randint(1, 3)
                return True
        target = _value(other, concrete)
        if side.op == "sym" and target is not None and target >= 0:
            shift = 0 if fact.op == "eq" else rng.randint(0, 2) + (fact.op == "lt")
            values[side.args[0]] = max(0, target - shift if side is fact.args[0] else target + shift)
            return True
    return False


def _value(e: Expr, concrete: Concrete) -> int | None:
    try:
        return int(evaluate(e, concrete.value))
    except (ZeroDivisionError, KeyError):
        return None


# ---- memory ------------------------------------------------------------------------------------------------


def made(kernel: Kernel, concrete: Concrete, rng: random.Random, *, integers: bool) -> dict[str, Any] | None:
    """The arguments of a launch, and values for the names that a kernel inside a function closes over."""
    given = arguments(Concrete(concrete.values, concrete.memory, integers=integers), kernel)
    if given is None or not fill(kernel, given, concrete, rng):
        return None
    captured = (s for s in concrete.values if s.kind is Kind.CONSTANT and s.name.isidentifier())
    return {**{s.name: concrete.values[s] for s in captured}, **given}


def fill(kernel: Kernel, given: Mapping[str, Any], concrete: Concrete, rng: random.Random) -> bool:
    """Put small integers into every array; False when its contracts cannot be met."""
    for name, value in given.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, np.ndarray) and part.size and not _fill(kernel, name, part, concrete, rng):
                return False
    if any(contract.kind == "chunks" for contract in kernel.contracts):
        return all(_share_out(c, given, concrete, rng) for c in kernel.contracts if c.kind == "chunks")
    for contract in kernel.contracts:
        if contract.kind == "chunk_sums" and not _count_chunks(contract, given, concrete):
            return False
    return all(_sum_up(kernel, contract, given, concrete) for contract in kernel.contracts)


def _share_out(contract: Contract, given: Mapping[str, Any], concrete: Concrete, rng: random.Random) -> bool:
    """Let a table list chunks of sequences; False where there are too few."""
    table, starts = (given[name] for name in contract.arrays)
    size = _value(contract.bounds[0], concrete)
    if not size or size < 1 or table.ndim != 1:
        return False
    lengths = np.diff(starts).astype(int).tolist()
    pairs = [(n, k) for n, length in enumerate(lengths) for k in range(-(-length // size))]
    if len(pairs) < table.size // 2:
        return False
    for row, pair in enumerate(rng.sample(pairs, table.size // 2)):
        table[2 * row : 2 * row + 2] = pair
    return True


def _count_chunks(contract: Contract, given: Mapping[str, Any], concrete: Concrete) -> bool:
    """Let an array say how many chunks the sequences before each have; False where it has more elements."""
    sums, starts = (given[name] for name in contract.arrays)
    size = _value(contract.bounds[0], concrete)
    if not size or size < 1 or sums.ndim != 1 or len(sums) > len(starts):
        return False
    sums[...] = [0, *np.cumsum(-(-np.diff(np.sort(starts)) // size))][: len(sums)]
    starts[...] = np.sort(starts)
    return True


def _sum_up(kernel: Kernel, contract: Contract, given: Mapping[str, Any], concrete: Concrete) -> bool:
    """Let an array hold the prefix sums of another; False when its other contracts forbid that."""
    if contract.kind != "prefix_sum":
        return True
    sums, items = (given[name] for name in contract.arrays)
    items[...] = np.abs(items)
    if len(sums) != len(items) + 1:
        return False
    sums[...] = [0, *np.cumsum(items)]
    for other in kernel.contracts:
        if other.kind == "within" and other.array == contract.array:
            low, high = (_value(b, concrete) for b in other.bounds)
            if low is None or high is None or not all(low <= v < high for v in sums.tolist()):
                return False
    return all(
        c.kind in ("within", "increasing", "prefix_sum") for c in kernel.contracts if c.array in contract.arrays
    )


def _fill(
    kernel: Kernel, name: str, part: np.ndarray[Any, Any], concrete: Concrete, rng: random.Random
) -> bool:
    mine = [c for c in kernel.contracts if c.array == name and c.is_about_values]
    if any(c.part for c in mine) or (part.ndim == 1 and any(c.kind == "distinct_pairs" for c in mine)):
        return _fill_parts(mine, part, concrete, rng)
    low, high = -1, 6
    for contract in mine:
        bounds = [_value(b, concrete) for b in contract.bounds]
        if None in bounds:
            return False
        if contract.kind == "within":
            low, high = bounds[0] or 0, (bounds[1] or 0) - 1
    if low > high:
        return False
    kinds = {c.kind for c in mine}
    cells = [rng.randint(low, high) for _ in range(part.size)]
    if "distinct" in kinds:
        reach = high if "within" in kinds else max(high, part.size + 3)
        pool = list(range(low, reach + 1))
        if len(pool) < part.size:
            return False
        cells = rng.sample(pool, part.size)
    if "increasing" in kinds:
        cells.sort()
    if "distinct_pairs" in kinds:
        pairs = list(product(range(low, high + 1), repeat=2))
        if part.ndim != 2 or part.shape[1] != 2 or len(pairs) < len(part):
            return False
        cells = [v for pair in rng.sample(pairs, len(part)) for v in pair]
    part[...] = np.array(cells).reshape(part.shape)
    if part.dtype.kind == "f" and not mine:  # what converts to an integer need not be one
        part[...] += np.array(rng.choices((0, 0, 0.5, 0.25), k=part.size)).reshape(part.shape)
    return True


def _fill_parts(
    mine: list[Contract], whole: np.ndarray[Any, Any], concrete: Concrete, rng: random.Random
) -> bool:
    """Draw columns of pairs, or elements, until what is said of them is so."""
    lows, highs = np.full(whole.shape, -1), np.full(whole.shape, 6)
    for contract in mine:
        bounds = [_value(b, concrete) for b in contract.bounds]
        if contract.kind == "within":
            if None in bounds:
                return False
            _cut(lows, contract)[...], _cut(highs, contract)[...] = bounds[0], (bounds[1] or 0) - 1
    if (lows > highs).any():
        return False
    for _ in range(_DRAWS):
        cells = [rng.randint(int(a), int(b)) for a, b in zip(lows.flat, highs.flat, strict=True)]
        whole[...] = np.array(cells).reshape(whole.shape)
        for contract in mine:
            if contract.kind == "increasing":
                _cut(whole, contract)[...] = np.sort(_cut(whole, contract))
        inside = ((lows <= whole) & (whole <= highs)).all()
        if inside and all(_is_kept(contract, _cut(whole, contract)) for contract in mine):
            return True
    return False


_DRAWS = 200


def _cut(whole: np.ndarray[Any, Any], contract: Contract) -> np.ndarray[Any, Any]:
    return whole[tuple(slice(a, None, s) if s else slice(a, a + 1) for a, s in contract.part)]


def _is_kept(contract: Contract, cells: np.ndarray[Any, Any]) -> bool:
    values = cells.reshape(-1).tolist()
    if contract.kind == "distinct_pairs":
        rows = [tuple(values[k : k + 2]) for k in range(0, len(values) - 1, 2)]
        return len(set(rows)) == len(rows)
    return contract.kind in ("within", "increasing") or (
        contract.kind == "distinct" and not contract.bounds and len(set(values)) == len(values)
    )


# ---- running -----------------------------------------------------------------------------------------------


def execute(kernel: Kernel, path: str, concrete: Concrete, rng: random.Random) -> Trial | None:
    """Run a launch; None when it cannot be made or the backend does not run it."""
    grid = concrete.grid(kernel)
    integers = integer_arrays(kernel)
    floats = not integers or rng.random() < 0.5
    for all_integers in (not floats, floats):
        given = made(kernel, concrete, rng, integers=all_integers)
        if given is None:
            return None
        trial = started(kernel, path, concrete, grid, given)
        if trial is not None:
            return trial  # else with other element types perhaps
    return None


# What a block does after it saw another's flag may be a race only where it comes first; and it may wait for
# ever where all of them come the other way round.
ORDERS: dict[str, Callable[[tuple[Any, ...]], tuple[Any, ...]]] = {
    "forwards": lambda blocks: blocks,
    "backwards": lambda blocks: blocks[::-1],
    "last first": lambda blocks: (blocks[-1], *blocks[:-1]),
}


def _copy(data: Any) -> Any:
    """A copy; of what is one cell in all its places, because it is too large to be made, that cell."""
    return data if data.strides == (0,) * data.ndim else data.copy()


def started(
    kernel: Kernel,
    path: str,
    concrete: Concrete,
    grid: tuple[int, int, int],
    given: Mapping[str, Any],
    *,
    order: str = "forwards",
    only: Sequence[tuple[int, ...]] = (),
) -> Trial | None:
    """Run a launch with these arguments, its blocks in one of `ORDERS`, or `only` some; None when the backend
    does not run it to its end."""
    arrays = {n: v for n, v in given.items() if isinstance(v, np.ndarray | list)}
    contents = {n: [p.copy() for p in v] if isinstance(v, list) else _copy(v) for n, v in arrays.items()}
    try:
        blocks = tuple((*b, 0, 0)[:3] for b in only) or ORDERS[order](tuple(np.ndindex(grid)))
        log = run(Launch(path, kernel.name, grid, given, blocks, STEPS))
    except ReplayError:
        return None
    return Trial(kernel, path, concrete, grid, contents, arrays, log)
