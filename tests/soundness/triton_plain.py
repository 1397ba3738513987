"""Runs the text of a Triton kernel as plain Python, program by program, with a stand-in for `triton.language`.

As `soundness_plain` does for the other language: tiles are NumPy arrays, scalars are Python's integers,
pointers are offsets into flat memory, and nothing of tilecheck is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
from soundness_plain import MISFITS, Lost, Memory, Refused, Tiles, clash, sizes, whole

Lane = tuple[tuple[int, ...], tuple[int, ...]]  # the shape of a tile, and a position in it


@dataclass
class Programs(Memory):
    """What a launch touched, and what the threads of one program touch in no order: two lanes, or the lanes of
    two tiles of different shapes, belong to different threads."""

    within: dict[tuple[str, int], list[tuple[Lane, str]]] = field(default_factory=dict)

    def touch_by(self, array: str, offset: int, lane: Lane, effect: str) -> None:
        self.touch(array, offset, effect)
        seen = self.within.setdefault((array, offset), [])
        if any(other != lane and clash(effect, was) for other, was in seen):
            self.wrong(f"two threads touch {array} at {offset}, one of them to {effect}, in no order")
        if (lane, effect) not in seen:
            seen.append((lane, effect))


@dataclass(frozen=True, eq=False)
class Pointer:
    """Pointers into the memory of an argument."""

    memory: Programs
    name: str
    data: np.ndarray[Any, Any]
    offset: Any = 0

    def __add__(self, other: Any) -> Pointer:
        if isinstance(other, Pointer) or np.asarray(other).dtype.kind not in "iub":
            raise TypeError("pointers move by integers")
        return replace(self, offset=self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Pointer:
        return self + -other

    def __getitem__(self, index: Any) -> Pointer:
        return replace(self, offset=self.offset[index])


@dataclass(frozen=True, eq=False)
class Block:
    """A block pointer: the tile of `sizes` elements that begins at `starts`."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    starts: tuple[int, ...]
    sizes: tuple[int, ...]

    def lanes(self, boundary_check: Sequence[int]) -> tuple[Pointer, Any]:
        """Its pointers, and which of them are inside along the axes that are checked."""
        offset, inside = np.zeros(self.sizes, np.int64), np.ones(self.sizes, bool)
        for axis, index in enumerate(np.indices(self.sizes)):
            place = index + self.starts[axis]
            offset = offset + place * self.strides[axis]
            if axis in boundary_check:
                inside &= (place >= 0) & (place < self.shape[axis])
        return self.base + offset, inside


class _Language(Tiles):
    """The functions of `triton.language`."""

    def __init__(self, memory: Programs) -> None:
        super().__init__(memory)
        self._programs = memory

    def load(self, where: Any, mask: Any = None, other: Any = None, boundary_check: Any = (), **_: Any) -> Any:
        pointer, mask = self._pointers(where, mask, boundary_check)
        if other is None:  # what is not loaded may be anything
            other = np.nan if pointer.data.dtype.kind == "f" else 7
        found = np.full(
            np.broadcast_shapes(np.shape(pointer.offset), np.shape(mask)), other, pointer.data.dtype
        )
        for lane, at in self._elements(pointer, mask, "read"):
            found[lane] = pointer.data[at]
        return found if found.shape else found.item()

    def store(self, where: Any, value: Any, mask: Any = None, boundary_check: Any = ()) -> None:
        pointer, mask = self._pointers(where, mask, boundary_check)
        shape = np.shape(pointer.offset)
        kept, values = np.broadcast_to(mask, shape), np.broadcast_to(value, shape)
        seen: set[int] = set()
        for lane, at in self._elements(pointer, kept, "write"):
            if at in seen:
                self._programs.wrong(f"two lanes at {at} of {pointer.name}")
            seen.add(at)
            pointer.data[at] = values[lane]

    def atomic_add(self, where: Any, value: Any, mask: Any = True) -> None:
        values = np.broadcast_to(value, np.broadcast_shapes(np.shape(where.offset), np.shape(mask)))
        for lane, at in self._elements(where, mask, "atomic"):
            where.data[at] += values[lane]

    def _pointers(self, where: Any, mask: Any, boundary_check: Any) -> tuple[Pointer, Any]:
        if isinstance(where, Block):
            return where.lanes(boundary_check)
        if not isinstance(where, Pointer):
            raise TypeError("not a pointer")
        return where, True if mask is None else mask

    def _elements(self, pointer: Pointer, mask: Any, effect: str) -> list[tuple[tuple[int, ...], int]]:
        """Per lane that takes part and lies inside the memory: its position and its offset."""
        offset, kept = np.broadcast_arrays(pointer.offset, mask)
        found = []
        for lane in np.ndindex(offset.shape):
            at = int(offset[lane])
            if not kept[lane]:
                continue
            if not 0 <= at < len(pointer.data):
                self._programs.wrong(f"{effect} at {at} of {pointer.name}, which has {len(pointer.data)}")
                continue
            self._programs.touch_by(pointer.name, at, (offset.shape, lane), effect)
            found.append((lane, at))
        return found

    def make_block_ptr(
        self, base: Pointer, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
    ) -> Block:
        numbers = (tuple(map(whole, part)) for part in (shape, strides, offsets))
        return Block(base, *numbers, sizes(block_shape))

    def advance(self, block: Block, by: Any) -> Block:
        return replace(block, starts=tuple(a + whole(b) for a, b in zip(block.starts, by, strict=True)))

    def cdiv(self, a: Any, b: Any) -> Any:
        return self.floordiv(a + b - 1, b)

    def floordiv(self, a: Any, b: Any) -> Any:
        """Rounded towards zero."""
        if np.any(np.asarray(b) == 0):
            self._programs.wrong("division by zero", lost=True)
        quotient = abs(a) // abs(b)
        return np.where((np.asarray(a) < 0) == (np.asarray(b) < 0), quotient, -quotient)[()]

    def mod(self, a: Any, b: Any) -> Any:
        """With the sign of the dividend."""
        return a - self.floordiv(a, b) * b

    def debug_barrier(self) -> None:
        self._programs.within.clear()


def _module(own: _Language) -> SimpleNamespace:
    names = "load store atomic_add make_block_ptr advance cdiv debug_barrier".split()
    return SimpleNamespace(
        **{name: getattr(own, name) for name in names},
        program_id=own.bid,
        num_programs=own.num_blocks,
        constexpr=lambda value: value,
        int32=np.int64,
        float32=np.float64,
        arange=lambda start, stop: start + np.arange(sizes(stop - start)[0]),
        zeros=lambda shape, dtype: np.zeros(sizes(shape)),
        full=lambda shape, value, dtype: np.full(sizes(shape), value),
        sum=np.sum,
        max=np.max,
        where=np.where,
        minimum=np.minimum,
        maximum=np.maximum,
        dot=lambda left, right, total: total + left @ right,
    )


def run(code: CodeType, name: str, grid: Sequence[int], arguments: Mapping[str, Any]) -> Memory:
    """Every program of one launch of the kernel `name`; arguments are integers and flat arrays. `code` is what
    `soundness_plain.compiled` makes of the text."""
    x, y, z = (*grid, 1, 1, 1)[:3]
    memory = Programs(grid=(x, y, z))
    own = _Language(memory)
    scope: dict[str, Any] = {f"_own_{n}": getattr(own, n) for n in ("floordiv", "mod", "range", "step")}
    scope |= {"tl": _module(own), "triton": SimpleNamespace(jit=lambda function: function)}
    exec(code, scope)
    kernel: Callable[..., None] = scope[name]
    given = {n: Pointer(memory, n, v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    for block in product(range(x), range(y), range(z)):
        memory.block, memory.steps = block, 0
        memory.within.clear()
        try:
            kernel(**given)
        except Lost:
            continue
        except MISFITS as problem:
            raise Refused(str(problem)) from problem
    return memory
