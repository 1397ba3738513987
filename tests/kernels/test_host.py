"""The host functions choose grids, tiles and kernels that compute their references.

There is no GPU and no PyTorch here: tensors are NumPy arrays behind the few names of PyTorch that the host
functions use, and a launch goes to the reference backend.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kernel_cases import MODULES, Array, kernels, load, poisoned, values

import tilecheck
from tilecheck.reference import run
from tilecheck.reference.log import Launch

MULTIPROCESSORS = 3  # few, so that persistent blocks have several tiles


@dataclass(frozen=True)
class Tensor:
    array: Array
    device: str = "none"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def is_floating_point(self) -> bool:
        return self.array.dtype.kind == "f"

    def view(self, *shape: Any) -> Tensor:
        return Tensor(self.array.reshape(*shape))


def empty(shape: Any, *, dtype: Any, device: str) -> Tensor:
    return Tensor(poisoned(*np.atleast_1d(shape), dtype=dtype))


TORCH = SimpleNamespace(
    Tensor=Tensor,
    empty=empty,
    empty_like=lambda x: empty(x.shape, dtype=x.dtype, device=x.device),
    zeros_like=lambda x: Tensor(np.zeros_like(x.array)),
    **{name: np.dtype(name) for name in ("float32", "int32", "int64")},
    cuda=SimpleNamespace(
        current_stream=lambda: 0,
        get_device_properties=lambda _: SimpleNamespace(multi_processor_count=MULTIPROCESSORS),
        get_device_capability=lambda _: (9, 0),
    ),
)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that were launched."""
    kernels: list[Any] = []

    def launch(
        _: Any,
        grid: tuple[int, int, int],
        kernel: Any,
        args: Sequence[Any],
        *,
        programmatic_dependent_launch: bool = False,  # of one after another, as these are
    ) -> None:
        function = kernel._pyfunc  # noqa: SLF001 - as `tilecheck.launch` finds it
        given = [a.array if isinstance(a, Tensor) else a for a in args]
        arguments = dict(zip(inspect.signature(function).parameters, given, strict=True))
        log = run(Launch(function.__code__.co_filename, function.__name__, grid, arguments), record=False)
        assert log.undefined == []
        kernels.append(kernel)

    monkeypatch.setitem(sys.modules, "torch", TORCH)
    monkeypatch.setattr(tilecheck, "launch", launch)
    return kernels


@dataclass(frozen=True)
class Call:
    """The arguments of a host function, and what it must return and leave in some of them."""

    module: str
    args: tuple[Any, ...]
    expected: Any
    changed: dict[int, Array]


def call(module: str, *args: Any) -> Call:
    return Call(module, args, load(module).reference(*args), {})


def half(*shape: int) -> Array:
    return values(*shape).astype(np.float16)


def add_rms_norm(rows: int, columns: int) -> Call:
    args = (half(rows, columns), half(rows, columns)[::-1], half(columns))
    out, residual = load("add_rms_norm").reference(*args)
    return Call("add_rms_norm", args, out, {1: residual})


def activation(function: str, n: int) -> Call:
    x = half(n)
    return Call("activations", (x,), getattr(load("activations"), f"reference_{function}")(x), {})


def layer_norm_backward(rows: int) -> Call:
    args = (half(rows, 300), half(rows, 300)[::-1].copy(), half(300))
    expected = load("layer_norm_backward").reference(*args)
    return Call("layer_norm_backward", args, tuple(x.astype(np.float16) for x in expected), {})


def rope(heads: int, kv_heads: int, width: int) -> Call:
    q, k = half(19, heads, width), half(19, kv_heads, width)
    cos, sin = np.cos(values(30, width // 2)), np.sin(values(30, width // 2))
    positions = np.arange(19, dtype=np.int32)[::-1] + 11
    q_then, k_then = (load("rope").reference(x, cos, sin, positions) for x in (q, k))
    return Call("rope", (q, k, cos, sin, positions), None, {0: q_then, 1: k_then})


def kv_cache_update(tokens: int, heads: int, width: int) -> Call:
    keys, cache = half(tokens, heads, width), half(40, heads, width)
    position = np.array([7], dtype=np.int32)
    args = (keys, keys + 1, cache, cache + 2, position)
    changed = {i + 2: load("kv_cache_update").reference(args[i], args[i + 2], 7) for i in range(2)}
    return Call("kv_cache_update", args, None, changed)


def ids(low: int, high: int, count: int) -> Array:
    return np.random.default_rng(3).integers(low, high, count)


def matmul(rows: int, depth: int) -> Call:
    return call("matmul", half(rows, depth), half(depth, 250))


def flash_attention(heads: int, length: int) -> Call:
    keys = half(1, 2, length, 64)
    return call("flash_attention", half(1, heads, 150, 64), keys, keys + 1)


# Of each host function: how a call is made of sizes, and sizes.
CALLS: dict[str, tuple[Callable[..., Call], list[tuple[int, ...]]]] = {
    "vector_add": (lambda n: call("vector_add", half(n), half(n)), [(0,), (1,), (5000,)]),
    "axpy": (lambda n: call("axpy", 1.5, half(n), half(n)), [(0,), (1,), (5000,)]),
    "silu_mul": (lambda m, n: call("silu_mul", half(m, n), half(m, n)), [(7, 0), (7, 5), (7, 1500)]),
    "rms_norm": (lambda m: call("rms_norm", half(m, 300), half(300)), [(0,), (3,), (100,)]),
    "layer_norm": (lambda m: call("layer_norm", half(m, 300), half(300), half(300)), [(0,), (3,), (100,)]),
    "relu": (lambda n: activation("relu", n), [(0,), (5000,)]),
    "gelu": (lambda n: activation("gelu", n), [(0,), (5000,)]),
    "layer_norm_backward": (layer_norm_backward, [(0,), (3,), (100,)]),
    "linear": (lambda m, k: call("linear", half(m, k), half(300, k)), [(0, 9), (200, 150)]),
    "add_rms_norm": (lambda m: add_rms_norm(m, 300), [(0,), (3,), (100,)]),
    "softmax": (lambda m, n: call("softmax", half(m, n)), [(0, 5), (300, 300), (2, 20_000)]),
    "cross_entropy": (lambda m: call("cross_entropy", half(m, 9001), ids(0, 9001, m)), [(0,), (3,)]),
    "embedding": (lambda n: call("embedding", ids(-2, 52, n), half(50, 200)), [(0,), (21,)]),
    "transpose": (lambda m, n: call("transpose", half(m, n)), [(0, 9), (1, 1), (150, 100)]),
    "permute_heads": (lambda *shape: call("permute_heads", half(*shape)), [(2, 3, 0, 80), (2, 3, 77, 80)]),
    "rope": (rope, [(2, 2, 80), (6, 2, 80)]),
    "kv_cache_update": (kv_cache_update, [(0, 5, 80), (1, 5, 80), (29, 5, 80)]),
    "matmul": (matmul, [(0, 9), (200, 0), (60, 150), (200, 150)]),
    "matmul_grouped": (matmul, [(0, 9), (200, 150)]),
    "matmul_persistent": (matmul, [(0, 9), (200, 150)]),
    "batched_matmul": (
        lambda b, m, k: call("batched_matmul", half(b, m, k), half(b, k, 136)),
        [(0, 5, 5), (2, 150, 80)],
    ),
    "split_k_matmul": (lambda m, k: call("split_k_matmul", half(m, k), half(k, 140)), [(50, 0), (50, 300)]),
    "flash_attention": (flash_attention, [(0, 100), (4, 100)]),
}


def called(function: str, made: Call) -> tuple[list[Any], Any]:
    """Copies of the arguments after the call, and what it returned."""
    given = [Tensor(a.copy()) if isinstance(a, np.ndarray) else a for a in made.args]
    return given, getattr(load(made.module), function)(*given)


@pytest.mark.parametrize(
    ("function", "sizes"), [(name, sizes) for name, (_, every) in CALLS.items() for sizes in every], ids=str
)
@pytest.mark.usefixtures("launched")
def test_computes_its_reference(function: str, sizes: tuple[int, ...]) -> None:
    made = CALLS[function][0](*sizes)
    given, result = called(function, made)
    pairs = [(given[i].array, expected) for i, expected in made.changed.items()]
    if isinstance(made.expected, tuple):
        pairs += [(found.array, expected) for found, expected in zip(result, made.expected, strict=True)]
    elif made.expected is not None:
        pairs.append((result.array, made.expected))
    for actual, expected in pairs:
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual.astype(float), expected.astype(float), rtol=4e-3, atol=4e-3)


def test_every_kernel_is_launched(launched: list[Any]) -> None:
    for function, (make, every) in CALLS.items():
        for sizes in every:
            called(function, make(*sizes))
    assert set(launched) == {kernel for module in MODULES for kernel in kernels(module).values()}
