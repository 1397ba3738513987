"""Runs cuTile kernels as plain Python: `cuda.tile` for one machine."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
from soundness_virtual_machine import CannotStart, Machine, check_tile
from soundness_virtual_tensors import Tensor
from soundness_virtual_values import (
    TYPES,
    Value,
    cdiv,
    filled,
    kind_of,
    lift,
    maximum,
    minimum,
    nothing,
    numbers,
    reduced,
    unary,
    where,
)


class Array:
    """An array parameter of a kernel."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    ndim = property(lambda self: self.tensor.ndim)
    dtype = property(lambda self: TYPES.get(self.tensor.dtype.name, TYPES["float32"]))
    shape = property(lambda self: tuple(lift(n) for n in self.tensor.shape))
    strides = property(lambda self: tuple(lift(n) for n in self.tensor.strides))

    def slice(self, axis: int, start: Any, stop: Any) -> Array:
        first, last = int(start), int(stop)
        return Array(self.tensor.narrow(axis, first, last - first))


class Kernel:
    def __init__(self, function: Any) -> None:
        self.function, self.__name__ = function, function.__name__
        self.signature = inspect.signature(function)
        names = function.__globals__
        marks = (p.annotation for p in self.signature.parameters.values())
        self.constants = ["Constant" in str(names.get(m, m) if isinstance(m, str) else m) for m in marks]


class _Constant:
    """`ct.Constant[int]`, whose text names it."""

    def __class_getitem__(cls, item: Any) -> str:
        return "Constant"


class Cutile:
    """The operations of `cuda.tile` for one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    Constant = _Constant
    PaddingMode = SimpleNamespace(ZERO="zero", UNDETERMINED="undetermined", NEG_INF="-inf")
    cdiv, where, minimum, maximum = (staticmethod(f) for f in (cdiv, where, minimum, maximum))
    sum, max, min = (staticmethod(reduced(f)) for f in (np.sum, np.max, np.min))
    exp = exp2 = log = log2 = sqrt = rsqrt = abs = tanh = cumsum = staticmethod(unary)
    add = staticmethod(lambda a, b, **options: lift(a) + b)
    mul = staticmethod(lambda a, b, **options: lift(a) * b)
    float16, bfloat16, float32, int32, int64 = (
        TYPES[n] for n in "float16 bfloat16 float32 int32 int64".split()
    )

    def kernel(self, function: Any = None, **options: Any) -> Any:
        return Kernel(function) if function is not None else Kernel

    @staticmethod
    def function(function: Any) -> Any:
        return function

    def launch(self, stream: Any, grid: Any, kernel: Kernel, args: tuple[Any, ...]) -> None:
        bound = self.kernel_arguments(kernel, args)
        given = dict(zip(kernel.signature.parameters, args, strict=False))
        before, Value.floors = Value.floors, True
        try:
            self.machine.launch(kernel.__name__, grid, lambda: kernel.function(*bound), 0, given)
        finally:
            Value.floors = before

    @staticmethod
    def kernel_arguments(kernel: Kernel, args: tuple[Any, ...]) -> list[Any]:
        bound: list[Any] = []
        for value, constant in zip(args, kernel.constants, strict=False):
            if isinstance(value, Tensor):
                bound.append(Array(value))
            elif constant or value is None or isinstance(value, (str, bool)):
                bound.append(value)
            else:
                bound.append(lift(value))
        return bound

    def bid(self, axis: int) -> Value:
        return Value(np.asarray(self.machine.block[axis], np.int64), "i")

    def num_blocks(self, axis: int) -> Value:
        return Value(np.asarray(self.machine.grid[axis], np.int64), "i")

    def num_tiles(self, array: Array, axis: int, shape: Any) -> Value:
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        return lift(-(-array.tensor.shape[axis] // sizes[axis]))

    def arange(self, count: int, dtype: Any = TYPES["int32"]) -> Value:
        made = numbers(0, int(count))
        made.kind = kind_of(dtype)
        return made

    def zeros(self, shape: Any, dtype: Any) -> Value:
        return filled(shape, 0, dtype)

    def full(self, shape: Any, value: Any, dtype: Any) -> Value:
        return filled(shape, value, dtype)

    def mma(self, a: Value, b: Value, acc: Value) -> Value:
        return acc

    matmul = staticmethod(lambda a, b: Value(nothing((a.shape[0], b.shape[1])), "f"))

    def transpose(self, a: Value, *axes: int) -> Value:
        return Value(a.data.T, a.kind)

    def reshape(self, a: Value, shape: Any) -> Value:
        return a.reshape(shape)

    def astype(self, a: Value, dtype: Any) -> Value:
        return a.to(dtype)

    # ---- tiles -----------------------------------------------------------------------------------------------

    def _tile(self, effect: str, array: Array, index: Any, shape: tuple[int, ...], checked: bool) -> np.ndarray:
        tensor = array.tensor
        indices = tuple(int(i) for i in (index if isinstance(index, (tuple, list)) else (index,)))
        check_tile(shape)
        if not len(indices) == len(shape) == tensor.ndim:
            raise CannotStart(f"a tile of {shape} at {indices} of an array of rank {tensor.ndim}")
        at = np.full((), tensor.offset, np.int64)
        for axis, (i, size) in enumerate(zip(indices, shape, strict=True)):
            first, extent = i * size, tensor.shape[axis]
            places = np.arange(first, first + size, dtype=np.int64)
            inside = places[(places >= 0) & (places < extent)]
            if i < 0 or inside.size == 0 or (not checked and inside.size < size):
                self.machine.harm("outside", first)
            at = at[..., None] + inside * tensor.strides[axis]
        return self.machine.access(effect, tensor.storage, at)

    def load(self, array: Array, index: Any, shape: Any, check_bounds: bool = True, **options: Any) -> Value:
        sizes = tuple(int(s) for s in (shape if isinstance(shape, (tuple, list)) else (shape,)))
        at = self._tile("read", array, index, sizes, check_bounds)
        if not array.tensor.dtype.integer:
            return Value(nothing(sizes), "f")
        found = np.zeros(sizes, np.int64)
        values = array.tensor.storage.values
        if values is not None and at.size == found.size:
            found = values[at].reshape(sizes)
        return Value(found, kind_of(array.tensor.dtype))

    def store(self, array: Array, index: Any, tile: Any, check_bounds: bool = True, **options: Any) -> None:
        tile = lift(tile)
        rank = array.tensor.ndim
        shape = tile.shape if tile.ndim else (1,) * rank
        self._tile("write", array, index, shape, check_bounds)

    # ---- elements --------------------------------------------------------------------------------------------

    def _elements(self, effect: str, array: Array, indices: Any, mask: Any, checked: bool) -> Any:
        tensor = array.tensor
        listed = [lift(i).data for i in (indices if isinstance(indices, (tuple, list)) else (indices,))]
        shape = np.broadcast_shapes(*(i.shape for i in listed), lift(mask).shape if mask is not None else ())
        taken = (
            np.ones(shape, bool)
            if mask is None
            else np.broadcast_to(lift(mask).data.astype(bool), shape).copy()
        )
        at = np.full(shape, tensor.offset, np.int64)
        for axis, i in enumerate(listed):
            inside = np.broadcast_to((i >= 0) & (i < tensor.shape[axis]), shape)
            if not checked and (taken & ~inside).any():
                self.machine.harm("outside", int(i.max()))
            taken &= inside
            at = at + i * tensor.strides[axis]
        self.machine.access(effect, tensor.storage, at[taken])
        return at, taken

    def gather(
        self, array: Array, indices: Any, *, mask: Any = None, check_bounds: bool = True, **options: Any
    ) -> Value:
        at, taken = self._elements("read", array, indices, mask, check_bounds)
        if not array.tensor.dtype.integer:
            return Value(nothing(at.shape), "f")
        values = array.tensor.storage.values
        found = np.zeros(at.shape, np.int64)
        if values is not None and values.size:
            found = np.where(taken, values[np.clip(at, 0, values.size - 1)], 0)
        return Value(np.asarray(found), kind_of(array.tensor.dtype))

    def scatter(
        self,
        array: Array,
        indices: Any,
        value: Any,
        *,
        mask: Any = None,
        check_bounds: bool = True,
        **options: Any,
    ) -> None:
        self._elements("write", array, indices, mask, check_bounds)

    def atomic_add(
        self, array: Array, indices: Any, update: Any, *, check_bounds: bool = True, **options: Any
    ) -> Value:
        at, _ = self._elements("atomic", array, indices, None, check_bounds)
        return Value(np.zeros(at.shape, np.int64), kind_of(array.tensor.dtype))

    atomic_max = atomic_min = atomic_add


def cutile_modules(machine: Machine) -> dict[str, Any]:
    """The modules `cuda` and `cuda.tile`."""
    tile = Cutile(machine)
    return {"cuda": SimpleNamespace(tile=tile), "cuda.tile": tile}
