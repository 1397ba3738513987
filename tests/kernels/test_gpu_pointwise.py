"""Element-wise kernels, normalisations and the loss, launched by their host functions, against PyTorch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("no NVIDIA GPU", allow_module_level=True)

pytestmark = pytest.mark.gpu

FLOATS = [torch.float16, torch.bfloat16, torch.float32]


def host(module: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(importlib.import_module(f"tilecheck.kernels.{module}"), module)
    return function


def values(*shape: int, dtype: Any = torch.float16, seed: int = 7) -> Any:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, device="cuda", generator=generator).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 2048, 2049, 100_003])
def test_axpy(n: int, dtype: Any) -> None:
    x, y = values(n, dtype=dtype), values(n, dtype=dtype, seed=8)
    torch.testing.assert_close(host("axpy")(-1.7, x, y), (-1.7 * x.float() + y.float()).to(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "columns"), [(0, 8), (5, 0), (1, 1), (3, 100), (200, 64), (130, 14_336)])
def test_silu_mul(rows: int, columns: int, dtype: Any) -> None:
    packed = 8 * values(rows, 2 * columns, dtype=dtype)
    gate, up = packed[:, :columns], packed[:, columns:]
    expected = (torch.nn.functional.silu(gate.float()) * up.float()).to(dtype)
    torch.testing.assert_close(host("silu_mul")(gate, up), expected)
    torch.testing.assert_close(host("silu_mul")(gate.contiguous(), up.contiguous()), expected)


def test_silu_mul_saturates() -> None:
    gate = torch.tensor([[-1e30, -200.0, -90.0, 0.0, 90.0, 1e30]], device="cuda")
    up = torch.ones_like(gate)
    torch.testing.assert_close(host("silu_mul")(gate, up), torch.nn.functional.silu(gate))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "columns"), [(0, 8), (3, 100), (1001, 64), (1000, 4096), (5, 16_384)])
def test_add_rms_norm(rows: int, columns: int, dtype: Any) -> None:
    x, residual = values(rows, columns, dtype=dtype), values(rows, columns, dtype=dtype, seed=8)
    weight = values(columns, dtype=dtype, seed=9)
    new = x + residual
    expected = torch.nn.functional.rms_norm(new.float(), (columns,), weight.float(), 1e-6).to(dtype)
    torch.testing.assert_close(host("add_rms_norm")(x, residual, weight), expected)
    assert torch.equal(residual, new)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "columns"), [(0, 8), (3, 100), (1001, 64), (1000, 4096), (5, 16_384)])
def test_layer_norm(rows: int, columns: int, dtype: Any) -> None:
    x = values(rows, columns, dtype=dtype) + 10
    weight, bias = values(columns, dtype=dtype, seed=8), values(columns, dtype=dtype, seed=9)
    expected = torch.nn.functional.layer_norm(x.float(), (columns,), weight.float(), bias.float()).to(dtype)
    accuracy = {"atol": 1e-4, "rtol": 1e-4} if dtype is torch.float32 else {}
    torch.testing.assert_close(host("layer_norm")(x, weight, bias), expected, **accuracy)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize(("rows", "columns"), [(0, 8), (7, 1), (300, 1000), (33, 4096), (40, 128_256)])
def test_cross_entropy(rows: int, columns: int, index: Any, dtype: Any) -> None:
    logits = 5 * values(rows, columns, dtype=dtype)
    logits[:, : columns // 3] = float("-inf")
    targets = (columns - 1 - torch.arange(rows, device="cuda") % max(1, columns // 2)).to(index)
    targets[1::4] = -100
    expected = torch.nn.functional.cross_entropy(logits.float(), targets.long(), reduction="none")
    torch.testing.assert_close(host("cross_entropy")(logits, targets), expected, atol=1e-4, rtol=1e-5)


def test_cross_entropy_of_unknown_targets() -> None:
    targets = torch.tensor([-1, 50, 2**40, -(2**40), 2**32, -100, 49], device="cuda")
    losses = host("cross_entropy")(values(7, 50), targets)
    assert torch.isinf(losses).tolist() == [True] * 5 + [False] * 2
    assert losses[5] == 0


def test_cross_entropy_of_another_ignored_index() -> None:
    logits, targets = values(4, 50), torch.tensor([3, 0, 49, 3], device="cuda")
    expected = torch.nn.functional.cross_entropy(logits.float(), targets, ignore_index=3, reduction="none")
    torch.testing.assert_close(host("cross_entropy")(logits, targets, 3), expected, atol=1e-4, rtol=1e-5)
