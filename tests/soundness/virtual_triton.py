"""Runs Triton kernels as plain Python: `triton` and `triton.language` for one machine."""

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
    joined,
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

_WARPS = 4


class Pointer:
    """A tile of addresses into the memory behind a tensor."""

    def __init__(self, tensor: Tensor, offsets: np.ndarray) -> None:
        self.tensor, self.offsets = tensor, offsets

    shape = property(lambda self: self.offsets.shape)
    dtype = property(lambda self: SimpleNamespace(element_ty=element_type(self.tensor)))

    def __add__(self, other: Any) -> Pointer:
        return Pointer(self.tensor, self.offsets + lift(other).data.astype(np.int64))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Pointer:
        return Pointer(self.tensor, self.offsets - lift(other).data.astype(np.int64))

    def __getitem__(self, index: Any) -> Pointer:
        return Pointer(self.tensor, self.offsets[index])


def element_type(tensor: Tensor) -> Any:
    return TYPES.get(tensor.dtype.name, TYPES["float32"])


class Jit:
    """A kernel, or a function that kernels call."""

    def __init__(self, machine: Machine, function: Any) -> None:
        self.machine, self.fn = machine, function
        self.__name__ = function.__name__
        self.signature = inspect.signature(function)
        names = (p.annotation for p in self.signature.parameters.values())
        self.constants = [str(getattr(a, "__name__", a)).rpartition(".")[2] == "constexpr" for a in names]

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.fn(*given, **named)

    def __getitem__(self, grid: Any) -> Any:
        return lambda *given, **named: self.run(*given, grid=grid, **named)

    def run(self, *given: Any, grid: Any, warmup: bool = False, **named: Any) -> None:
        warps = named.pop("num_warps", _WARPS)
        for option in ("num_stages", "num_ctas", "maxnreg"):
            named.pop(option, None)
        bound = self.signature.bind(*given, **named)
        bound.apply_defaults()
        meta = dict(bound.arguments)
        sizes = grid(meta) if callable(grid) else grid
        arguments = {k: _bound(v, c) for (k, v), c in zip(meta.items(), self.constants, strict=True)}
        sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
        self.machine.launch(self.__name__, sizes, lambda: self.fn(**arguments), 32 * int(warps), meta)


def _bound(value: Any, constant: bool) -> Any:
    if isinstance(value, Tensor):
        return Pointer(value, np.full((), value.offset, np.int64))
    if constant or value is None or isinstance(value, (str, bool)):
        return value
    return lift(value)


class Config:
    def __init__(
        self, kwargs: dict[str, Any], num_warps: int = _WARPS, num_stages: int = 2, pre_hook: Any = None
    ) -> None:
        self.kwargs, self.num_warps, self.num_stages, self.pre_hook = kwargs, num_warps, num_stages, pre_hook


class Tuned:
    """An autotuned kernel: a launch runs each configuration."""

    def __init__(self, inner: Any, configs: list[Config], prune: Any = None) -> None:
        self.inner, self.configs, self.prune = inner, configs, prune
        self.signature, self.__name__ = inner.signature, inner.__name__

    def __getitem__(self, grid: Any) -> Any:
        return lambda *given, **named: self.run(*given, grid=grid, **named)

    def run(self, *given: Any, grid: Any, **named: Any) -> None:
        for config in self.configs:
            if any(k in named for k in config.kwargs):
                raise CannotStart("a tuned parameter that is given")
            self.inner.run(*given, grid=grid, **{"num_warps": config.num_warps, **named, **config.kwargs})


class Heuristics:
    """A kernel, some of whose constants are computed from its arguments."""

    def __init__(self, inner: Any, rules: dict[str, Any]) -> None:
        self.inner, self.rules = inner, rules
        self.signature, self.__name__ = inner.signature, inner.__name__

    def __getitem__(self, grid: Any) -> Any:
        return lambda *given, **named: self.run(*given, grid=grid, **named)

    def run(self, *given: Any, grid: Any, **named: Any) -> None:
        known = {**dict(self.signature.bind_partial(*given).arguments)}
        known.update(named)
        found = dict(named)
        for name, rule in self.rules.items():
            found[name] = known[name] = rule(known)
        self.inner.run(*given, grid=grid, **found)


# ---- the language --------------------------------------------------------------------------------------------


class Language:
    """`triton.language` for one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    constexpr = type("constexpr", (), {"__init__": lambda self, value=None: None})
    cdiv, where, minimum, maximum = (staticmethod(f) for f in (cdiv, where, minimum, maximum))
    sum, max, min = (staticmethod(reduced(f)) for f in (np.sum, np.max, np.min))
    exp = exp2 = log = log2 = sqrt = rsqrt = sigmoid = abs = sort = cumsum = flip = staticmethod(unary)
    multiple_of = max_contiguous = max_constancy = erf = staticmethod(unary)
    static_range = range = staticmethod(lambda *given, **options: range(*(int(g) for g in given)))
    float16, bfloat16, float32, int32, int64 = (
        TYPES[n] for n in "float16 bfloat16 float32 int32 int64".split()
    )
    int1 = TYPES["int1"]

    def program_id(self, axis: int) -> Value:
        return Value(np.asarray(self.machine.block[axis], np.int64), "i")

    def num_programs(self, axis: int) -> Value:
        return Value(np.asarray(self.machine.grid[axis], np.int64), "i")

    def arange(self, low: int, high: int) -> Value:
        return numbers(int(low), int(high))

    def zeros(self, shape: Any, dtype: Any = TYPES["float32"]) -> Value:
        return filled(shape, 0, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = TYPES["float32"]) -> Value:
        return filled(shape, value, dtype)

    def dot(self, a: Value, b: Value, acc: Any = None, **options: Any) -> Value:
        return Value(nothing((a.shape[0], b.shape[1])), "f")

    def trans(self, a: Value, *axes: int) -> Value:
        return Value(a.data.T, a.kind)

    def reshape(self, a: Value, *sizes: Any) -> Value:
        return a.reshape(*sizes)

    def broadcast_to(self, a: Value, *sizes: Any) -> Value:
        shape = sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
        return Value(np.broadcast_to(a.data, tuple(int(s) for s in shape)), a.kind)

    def debug_barrier(self) -> None:
        self.machine.loaded = []

    def static_assert(self, condition: Any, message: str = "") -> None:
        if not condition:
            raise CannotStart("a static assert")

    def device_assert(self, condition: Any, message: str = "") -> None: ...

    def _touch(self, effect: str, pointer: Pointer, mask: Any, other: Any = 0) -> np.ndarray:
        shape = pointer.offsets.shape
        shape = joined(shape, lift(other).shape) if effect != "read" else shape
        if mask is None:
            at = np.broadcast_to(pointer.offsets, shape)
        else:
            taken = lift(mask).data.astype(bool)
            shape = joined(shape, taken.shape)
            check_tile(shape)
            at = np.broadcast_to(pointer.offsets, shape)[np.broadcast_to(taken, shape)]
        return self.machine.access(effect, pointer.tensor.storage, at, pointer.tensor.span)

    def load(self, pointer: Pointer, mask: Any = None, other: Any = None, **options: Any) -> Value:
        self._touch("read", pointer, mask)
        tensor = pointer.tensor
        shape = pointer.shape if mask is None else joined(pointer.shape, lift(mask).shape)
        if not tensor.dtype.integer:
            return Value(nothing(shape), "f")
        return self._integers(pointer, mask, shape, kind_of(tensor.dtype))

    def _integers(self, pointer: Pointer, mask: Any, shape: Any, kind: str) -> Value:
        values, size = pointer.tensor.storage.values, pointer.tensor.storage.size
        found = np.zeros(shape, np.int64)
        if values is not None and size:
            at = np.broadcast_to(pointer.offsets, shape)
            found = values[np.clip(at, 0, size - 1)]
            if mask is not None:
                found = np.where(np.broadcast_to(lift(mask).data.astype(bool), shape), found, 0)
        return Value(np.asarray(found, np.int64), kind)

    def store(self, pointer: Pointer, value: Any, mask: Any = None, **options: Any) -> None:
        self._touch("write", pointer, mask, value)

    def _atomic(self, pointer: Pointer, value: Any, mask: Any = None, **options: Any) -> Value:
        self._touch("atomic", pointer, mask, value)
        return Value(np.zeros(pointer.shape, np.int64), kind_of(pointer.tensor.dtype))

    atomic_add = atomic_max = atomic_min = atomic_xchg = _atomic


def triton_modules(machine: Machine) -> dict[str, Any]:
    """The modules `triton` and `triton.language`."""
    language = Language(machine)

    def jit(function: Any = None, **options: Any) -> Any:
        return Jit(machine, function) if function is not None else lambda f: Jit(machine, f)

    def autotune(configs: list[Config], key: Any = None, **options: Any) -> Any:
        return lambda kernel: Tuned(kernel, configs, options.get("prune_configs_by"))

    module = SimpleNamespace(
        jit=jit,
        autotune=autotune,
        heuristics=lambda rules: lambda kernel: Heuristics(kernel, rules),
        Config=Config,
        cdiv=cdiv,
        next_power_of_2=lambda n: 1 << max(0, int(n) - 1).bit_length(),
        language=language,
    )
    return {"triton": module, "triton.language": language}
