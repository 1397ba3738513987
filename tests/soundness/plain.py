"""Runs the text of a kernel as plain Python, block by block, with a stand-in for `cuda.tile`.

Tiles are NumPy arrays and scalars are Python's integers. Nothing of the front end, the prover or the reference
backend is used, so that all three can be wrong together and are still found out. Only what random kernels are
made of is known here.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

Block = tuple[int, int, int]
# What Python says of types, shapes and names that no compiler takes.
MISFITS = (TypeError, ValueError, LookupError, NameError, AttributeError, OverflowError, RecursionError)
_MOST_STEPS = 4000  # of the loops of one block


class Refused(Exception):
    """A launch that the compiler would refuse, or that is too long to look at."""


class Endless(Refused):
    """A block took more steps than any sensible one."""


class Lost(Exception):
    """The rest of a block means nothing."""


@dataclass
class Memory:
    """What a launch touched. Mutable: blocks add to it one after another."""

    touched: dict[tuple[str, int], list[tuple[Block, str]]] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)
    lost: bool = False  # whether what some block touched afterwards means nothing
    block: Block = (0, 0, 0)
    grid: Block = (1, 1, 1)
    steps: int = 0

    def touch(self, array: str, offset: int, effect: str) -> None:
        seen = self.touched.setdefault((array, offset), [])
        if (self.block, effect) not in seen:
            seen.append((self.block, effect))

    def wrong(self, what: str, *, lost: bool = False) -> None:
        self.undefined.append(f"{what} in block {self.block}")
        if lost:
            self.lost = True
            raise Lost

    def races(self) -> list[str]:
        """The elements that two blocks touch, one of them not to read, and not both by atomics."""
        found = []
        for (array, offset), seen in self.touched.items():
            for one, effect in seen:
                other = next((s for s in seen if s[0] != one and clash(effect, s[1])), None)
                if other is not None:
                    found.append(f"{effect} of {array} at {offset} by {one}, {other[1]} by {other[0]}")
                    break
        return found


def clash(one: str, two: str) -> bool:
    return (one, two) not in (("read", "read"), ("atomic", "atomic"))


# ---- arrays --------------------------------------------------------------------------------------------------


@dataclass
class Array:
    """An array argument or a slice of one: `data` is a view, `offset` the place of its first element."""

    memory: Memory
    name: str
    data: np.ndarray[Any, Any]
    offset: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def ndim(self) -> int:
        return self.data.ndim

    def stride(self, axis: int) -> int:
        return self.data.strides[axis] // self.data.itemsize

    def touch(self, at: Sequence[int], effect: str) -> None:
        self.memory.touch(self.name, self.offset + sum(i * self.stride(k) for k, i in enumerate(at)), effect)

    def slice(self, axis: int, start: Any, stop: Any) -> Array:
        start, stop, extent = whole(start), whole(stop), self.shape[axis]
        if not (0 <= start < extent and start <= stop <= extent):
            self.memory.wrong(f"slice {start}:{stop} of {self.name}, extent {extent}", lost=True)
        cut = tuple(slice(start, stop) if k == axis else slice(None) for k in range(self.ndim))
        return Array(self.memory, self.name, self.data[cut], self.offset + start * self.stride(axis))

    def tiled_view(self, shape: Any, traversal_steps: Any = None) -> View:
        own = sizes(shape)
        steps = own if traversal_steps is None else tuple(map(whole, traversal_steps))
        if min(steps, default=1) < 1:
            raise Refused(f"traversal steps {steps}")
        return View(self, own, steps)

    def get_raw_memory(self) -> Raw:
        return Raw(self)


@dataclass(frozen=True)
class View:
    """Tiles of `sizes` elements that lie `steps` apart."""

    array: Array
    sizes: tuple[int, ...]
    steps: tuple[int, ...]

    def num_tiles(self, axis: int) -> int:
        return -(-self.array.shape[axis] // self.steps[axis])

    def load(self, index: Any, *, check_bounds: bool = True, **_: Any) -> Any:
        box = self._box(index, check_bounds=check_bounds)
        found = np.full(self.sizes, 7, self.array.data.dtype)  # padding: no value that anybody may rely on
        if box is not None:
            self._touch(box, "read")
            found[tuple(slice(0, b.stop - b.start) for b in box)] = self.array.data[box]
        return found

    def store(self, index: Any, tile: Any, *, check_bounds: bool = True, **_: Any) -> None:
        box = self._box(index, check_bounds=check_bounds)
        if box is not None:
            self._touch(box, "write")
            data = np.broadcast_to(np.asarray(tile), self.sizes)
            self.array.data[box] = data[tuple(slice(0, b.stop - b.start) for b in box)]

    def _box(self, index: Any, *, check_bounds: bool) -> tuple[slice, ...] | None:
        """The elements inside the array; None for a tile that lies outside as a whole."""
        tiles = [whole(i) for i in (index if isinstance(index, tuple) else (index,))]
        starts = [i * s for i, s in zip(tiles, self.steps, strict=True)]
        box = []
        for tile, start, size, extent in zip(tiles, starts, self.sizes, self.array.shape, strict=True):
            if tile < 0 or start >= extent:
                self.array.memory.wrong(f"tile {tuple(tiles)} outside {self.array.name} {self.array.shape}")
                return None
            if start + size > extent and not check_bounds:
                self.array.memory.wrong(f"part of tile {tuple(tiles)} outside {self.array.name}")
            box.append(slice(start, min(start + size, extent)))
        return tuple(box)

    def _touch(self, box: tuple[slice, ...], effect: str) -> None:
        for at in product(*(builtins.range(b.start, b.stop) for b in box)):
            self.array.touch(at, effect)


@dataclass(frozen=True)
class Raw:
    """The memory of an array by offset."""

    array: Array

    def store_offset(self, offset: Any, value: Any, mask: Any = True) -> None:
        array = self.array
        ends = [(n - 1) * array.stride(k) for k, n in enumerate(array.shape)]
        length = 1 + sum(ends) if all(array.shape) else 0
        seen: set[int] = set()
        for at, kept in zip(*map(np.ravel, np.broadcast_arrays(offset, mask)), strict=True):
            if not kept:
                continue
            if not 0 <= at < length:
                array.memory.wrong(f"offset {at} of {array.name}, which has {length}")
            if int(at) in seen:
                array.memory.wrong(f"two lanes at offset {at} of {array.name}")
            seen.add(int(at))
            array.memory.touch(array.name, int(at), "write")


def _elements(
    array: Array, index: Any, mask: Any, *, check_bounds: bool = True
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Per lane that takes part and lies inside: its position in the tile and its element."""
    parts = index if isinstance(index, tuple) else (index,)
    *places, kept = np.broadcast_arrays(*parts, True if mask is None else mask)
    found = []
    for lane in np.ndindex(kept.shape):
        at = tuple(int(p[lane]) for p in places)
        if not kept[lane]:
            continue
        if all(0 <= i < n for i, n in zip(at, array.shape, strict=True)):
            found.append((lane, at))
        elif not check_bounds:
            array.memory.wrong(f"element {at} of {array.name} {array.shape}")
    return found


def whole(value: Any) -> int:
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, bool | np.bool_) or int(value) != value:
        raise Refused(f"{value!r} as an integer")
    return int(value)


def sizes(shape: Any) -> tuple[int, ...]:
    found = tuple(map(whole, shape if isinstance(shape, tuple) else (shape,)))
    if any(size < 1 or size & (size - 1) for size in found):
        raise Refused(f"tile shape {found}")
    return found


# ---- the stand-in for the module -----------------------------------------------------------------------------


class _Constant:
    """`ct.Constant[int]`."""

    def __class_getitem__(cls, _: object) -> object:
        return object


class Tiles:
    """The functions of `cuda.tile` that need to know the launch."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def bid(self, axis: int) -> int:
        return self._memory.block[axis]

    def num_blocks(self, axis: int) -> int:
        return self._memory.grid[axis]

    def load(self, array: Array, index: Any, shape: Any, **options: Any) -> Any:
        if shape == ():
            tile = View(array, (1,) * array.ndim, (1,) * array.ndim).load(index, **options)
            return tile.reshape(())
        return array.tiled_view(shape).load(index, **options)

    def store(self, array: Array, index: Any, tile: Any, **options: Any) -> None:
        array.tiled_view(np.shape(tile) or (1,) * array.ndim).store(index, tile, **options)

    def num_tiles(self, array: Array, axis: int, shape: Any) -> int:
        return array.tiled_view(shape).num_tiles(axis)

    def gather(
        self,
        array: Array,
        index: Any,
        *,
        mask: Any = None,
        padding_value: Any = 0,
        check_bounds: bool = True,
        **_: Any,
    ) -> Any:
        shape = np.broadcast_shapes(*map(np.shape, index if isinstance(index, tuple) else (index,)))
        found = np.full(shape, padding_value, array.data.dtype)
        for lane, at in _elements(array, index, mask, check_bounds=check_bounds):
            array.touch(at, "read")
            found[lane] = array.data[at]
        return found

    def scatter(
        self, array: Array, index: Any, value: Any, *, mask: Any = None, check_bounds: bool = True, **_: Any
    ) -> None:
        seen: set[tuple[int, ...]] = set()
        for _lane, at in _elements(array, index, mask, check_bounds=check_bounds):
            if at in seen:
                self._memory.wrong(f"two lanes at {at} of {array.name}")
            seen.add(at)
            array.touch(at, "write")

    def atomic_add(self, array: Array, index: Any, value: Any, **_: Any) -> None:
        for _lane, at in _elements(array, index, None):
            array.touch(at, "atomic")

    def cdiv(self, a: Any, b: Any) -> Any:
        return self.floordiv(a + b - 1, b)

    def floordiv(self, a: Any, b: Any) -> Any:
        if np.any(np.asarray(b) < 1):
            self._memory.wrong(f"division by {b}", lost=True)
        return a // b

    def mod(self, a: Any, b: Any) -> Any:
        if np.any(np.asarray(b) < 1):
            self._memory.wrong(f"remainder by {b}", lost=True)
        return a % b

    def range(self, *ends: Any) -> builtins.range:
        start, stop, step = (*map(whole, ends), 1)[:3] if len(ends) > 1 else (0, whole(ends[0]), 1)
        if step < 1:
            self._memory.wrong(f"a step of {step}", lost=True)
        return builtins.range(start, stop, step)

    def step(self) -> bool:
        self._memory.steps += 1
        if self._memory.steps > _MOST_STEPS:
            raise Endless
        return True


def _module(memory: Memory) -> SimpleNamespace:
    own = Tiles(memory)
    names = "bid num_blocks load store num_tiles gather scatter atomic_add cdiv".split()
    return SimpleNamespace(
        **{name: getattr(own, name) for name in names},
        kernel=lambda function: function,
        Constant=_Constant,
        PaddingMode=SimpleNamespace(ZERO=0),
        int32=np.int64,
        float32=np.float64,
        arange=lambda n, dtype: np.arange(sizes(n)[0]),
        zeros=lambda shape, dtype: np.zeros(sizes(shape)),
        ones=lambda shape, dtype: np.ones(sizes(shape)),
        full=lambda shape, value, dtype: np.full(sizes(shape), value, dtype),
        where=np.where,
        minimum=np.minimum,
        maximum=np.maximum,
        reshape=np.reshape,
        transpose=np.transpose,
        broadcast_to=np.broadcast_to,
        extract=_extract,
        mma=lambda left, right, total: total + left @ right,
    )


def _extract(tile: Any, index: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    return tile[tuple(slice(i * n, i * n + n) for i, n in zip(index, shape, strict=True))]


class _Rewrite(ast.NodeTransformer):
    """Divisions and ranges are looked at, loops are counted, and the stand-in is not imported."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = {ast.FloorDiv: "floordiv", ast.Mod: "mod"}.get(type(node.op))
        return node if name is None else _call(f"_own_{name}", [node.left, node.right])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "range":
            return _call("_own_range", node.args)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("_own_step", [])))
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("_own_step", [])))
        return node

    def visit_Import(self, node: ast.Import) -> None:
        return None


def _call(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), args, [])


def compiled(text: str) -> CodeType:
    """The text of a file, ready to be run any number of times."""
    return compile(ast.fix_missing_locations(_Rewrite().visit(ast.parse(text))), "<kernel>", "exec")


def run(code: CodeType, name: str, grid: Sequence[int], arguments: Mapping[str, Any]) -> Memory:
    """Every block of one launch of the kernel `name`; arguments are integers and NumPy arrays."""
    x, y, z = (*grid, 1, 1, 1)[:3]
    memory = Memory(grid=(x, y, z))
    module, own = _module(memory), Tiles(memory)
    scope: dict[str, Any] = {f"_own_{n}": getattr(own, n) for n in ("floordiv", "mod", "range", "step")}
    scope["ct"] = module
    exec(code, scope)
    kernel: Callable[..., None] = scope[name]
    given = {n: Array(memory, n, v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    for block in product(builtins.range(x), builtins.range(y), builtins.range(z)):
        memory.block, memory.steps = block, 0
        try:
            kernel(**given)
        except Lost:
            continue
        except MISFITS as problem:
            raise Refused(str(problem)) from problem
    return memory
