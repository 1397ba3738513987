"""The host functions of attention and of its products, launched, against PyTorch."""

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


def host(module: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(importlib.import_module(f"tilecheck.kernels.{module}"), module)
    return function


def values(*shape: int, seed: int = 7, dtype: Any = torch.float16) -> Any:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, device="cuda", generator=generator).to(dtype)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (3, 129, 257, 65), (7, 500, 300, 333), (2, 64, 64, 0), (0, 5, 5, 5)]
)
def test_batched_matmul(shape: tuple[int, int, int, int]) -> None:
    batches, rows, columns, depth = shape
    a, b = values(batches, rows, depth), values(batches, depth, columns)
    torch.testing.assert_close(host("batched_matmul")(a, b), a @ b, atol=0.2, rtol=3e-2)
    for left, right in ((a.mT.contiguous().mT, b), (a, b.mT.contiguous().mT)):
        torch.testing.assert_close(host("batched_matmul")(left, right), a @ b, atol=0.2, rtol=3e-2)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (16, 24, 8192), (130, 70, 5001), (2000, 1900, 100), (5, 5, 0), (0, 5, 5)]
)
def test_split_k_matmul(shape: tuple[int, int, int]) -> None:
    rows, columns, depth = shape
    a, b = values(rows, depth), values(depth, columns, seed=8)
    expected = (a.float() @ b.float()).half()
    result = host("split_k_matmul")(a, b)
    torch.testing.assert_close(result, expected, atol=0.2, rtol=3e-2)
    assert torch.equal(result, host("split_k_matmul")(a, b))


@pytest.mark.parametrize(
    ("tokens", "q_heads", "k_heads", "width"),
    [(0, 4, 2, 64), (1, 32, 8, 128), (777, 6, 2, 80), (5000, 1, 1, 64), (33, 71, 1, 64)],
)
def test_rope(tokens: int, q_heads: int, k_heads: int, width: int) -> None:
    """`q` and `k` are pieces of one array, as a projection leaves them."""
    half = width // 2
    joined = values(tokens, q_heads + k_heads + 1, width)
    angles = torch.outer(torch.arange(4096.0), 10000.0 ** (-torch.arange(half) / half)).cuda()
    positions = torch.randint(0, 4096, (tokens,), device="cuda")
    expected = joined.clone()
    c, s = (table[positions][:, None] for table in (angles.cos(), angles.sin()))
    first, second = joined[:, :-1].float().split(half, dim=2)
    expected[:, :-1] = torch.cat((first * c - second * s, second * c + first * s), dim=2).half()
    q, k = joined[:, :q_heads], joined[:, q_heads : q_heads + k_heads]
    host("rope")(q, k, angles.cos(), angles.sin(), positions)
    torch.testing.assert_close(joined, expected, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize(("tokens", "heads", "width"), [(1, 8, 128), (100, 5, 80), (1000, 1, 64)])
def test_kv_cache_update(tokens: int, heads: int, width: int) -> None:
    slots = tokens + 9
    keys, news = values(tokens, heads, width), values(tokens, heads, width, seed=8)
    for position in (-(2**31), -1, 0, 4, 9, 10, 2**31 - 1):
        caches = [values(slots, heads, width, seed=9), values(slots, heads, width, seed=10)]
        expected = [cache.clone() for cache in caches]
        if 0 <= position <= slots - tokens:
            for cache, new in zip(expected, (keys, news), strict=True):
                cache[position : position + tokens] = new
        place = torch.tensor([position], device="cuda", dtype=torch.int32)
        host("kv_cache_update")(keys, news, *caches, place)
        assert all(torch.equal(cache, want) for cache, want in zip(caches, expected, strict=True))


def test_kv_cache_update_in_a_graph() -> None:
    """One captured launch follows the position in memory from replay to replay, and stops at the end."""
    slots = 8
    keys, news = torch.zeros(2, 1, 2, 64, device="cuda", dtype=torch.float16)
    key_cache, value_cache = torch.zeros(2, slots, 2, 64, device="cuda", dtype=torch.float16)
    position = torch.full((1,), -1, device="cuda", dtype=torch.int32)
    args = (keys, news, key_cache, value_cache, position)
    host("kv_cache_update")(*args)  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        host("kv_cache_update")(*args)
        position.add_(1)
    position.zero_()
    for step in range(slots + 3):
        keys.fill_(step + 1)
        news.fill_(-step - 1)
        graph.replay()
    expected = torch.arange(1, slots + 1, device="cuda").half()
    assert torch.equal(key_cache[:, 0, 0], expected)
    assert torch.equal(value_cache[:, 1, 63], -expected)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("heads", [(1, 1), (8, 2), (6, 1)], ids=str)
@pytest.mark.parametrize(
    ("queries", "length", "width"),
    [(1, 1, 1), (128, 64, 64), (300, 300, 128), (77, 1000, 80), (1, 500, 128), (0, 5, 64), (200, 260, 256)],
)
def test_flash_attention(queries: int, length: int, width: int, heads: tuple[int, int], causal: bool) -> None:
    if causal and queries > length:
        pytest.skip("a query without keys")
    q = values(2, heads[0], queries, width)
    k, v = values(2, heads[1], length, width, seed=8), values(2, heads[1], length, width, seed=9)
    mask = torch.ones(queries, length, device="cuda", dtype=torch.bool)
    if causal:
        mask = mask.tril(length - queries)
    group = heads[0] // heads[1]
    keys, news = (x.float().repeat_interleave(group, dim=1) for x in (k, v))
    scores = (q.float() @ keys.mT / width**0.5).masked_fill(~mask, -float("inf"))
    expected = torch.softmax(scores, 3) @ news
    result = host("flash_attention")(q, k, v, causal=causal)
    torch.testing.assert_close(result.float(), expected, atol=5e-3, rtol=5e-3)


def test_flash_attention_of_tokens_first() -> None:
    """Arrays whose tokens come before their heads in memory, as projections leave them."""
    q, k, v = (values(2, 200, heads, 64, seed=heads).transpose(1, 2) for heads in (8, 4, 4))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    result = host("flash_attention")(q, k, v, causal=True)
    torch.testing.assert_close(result, expected, atol=5e-3, rtol=5e-3)
