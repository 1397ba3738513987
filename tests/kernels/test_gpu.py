"""The host functions, launched: their grids, tile sizes and early returns, against PyTorch."""

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


def host(module: str, name: str = "") -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(
        importlib.import_module(f"tilecheck.kernels.{module}"), name or module
    )
    return function


def values(*shape: int, dtype: Any = torch.float16) -> Any:
    generator = torch.Generator("cuda").manual_seed(7)
    return torch.randn(*shape, device="cuda", generator=generator).to(dtype)


@pytest.mark.parametrize("n", [0, 1, 1024, 1025, 100_003])
def test_vector_add(n: int) -> None:
    x, y = values(n), values(n)
    torch.testing.assert_close(host("vector_add")(x, y), x + y)


@pytest.mark.parametrize(("rows", "columns"), [(0, 8), (3, 100), (200, 64), (1000, 5000)])
def test_rms_norm(rows: int, columns: int) -> None:
    x, weight = values(rows, columns), values(columns)
    expected = torch.nn.functional.rms_norm(x.float(), (columns,), weight.float(), 1e-6).half()
    torch.testing.assert_close(host("rms_norm")(x, weight), expected, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize(("rows", "columns"), [(3, 0), (3, 100), (700, 513), (5, 40_000)])
def test_softmax(rows: int, columns: int) -> None:
    x = values(rows, columns, dtype=torch.float32)
    x[:, : columns // 2] = float("-inf")
    torch.testing.assert_close(host("softmax")(x), torch.softmax(x, 1))


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (65, 127), (1000, 3000)])
def test_transpose(rows: int, columns: int) -> None:
    for x in (values(rows, columns), values(columns, rows).T):
        assert torch.equal(host("transpose")(x), x.T)


@pytest.mark.parametrize("shape", [(1, 8, 128, 64), (2, 3, 77, 80), (3, 2, 5, 128), (2, 0, 5, 64)])
def test_permute_heads(shape: tuple[int, ...]) -> None:
    x = values(*shape)
    assert torch.equal(host("permute_heads")(x), x.transpose(1, 2))


@pytest.mark.parametrize("name", ["matmul", "matmul_grouped", "matmul_persistent"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (129, 257, 65), (1000, 777, 333), (300, 2000, 0), (0, 5, 5)])
def test_matmul(name: str, shape: tuple[int, int, int]) -> None:
    rows, columns, depth = shape
    a, b = values(rows, depth), values(depth, columns)
    torch.testing.assert_close(host("matmul", name)(a, b), a @ b, atol=0.2, rtol=3e-2)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_embedding(dtype: Any) -> None:
    table = values(50, 300)
    ids = torch.arange(-3, 53, device="cuda", dtype=dtype)
    expected = torch.zeros(len(ids), 300, device="cuda", dtype=table.dtype)
    expected[3:-3] = table
    assert torch.equal(host("embedding")(ids, table), expected)
