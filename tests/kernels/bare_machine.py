"""The library's compiled kernels on a machine with a GPU and little else: no compiler, no solver, no parser.

    tilecheck compile kernels/ --arch sm_90 -o DIR    # anywhere
    python bare_machine.py DIR [--refusals] [--seed N]

Not a test module, so that it runs where pytest is not: it needs NumPy, PyTorch with its cuda-bindings, and
tilecheck installed without its dependencies. Every kernel of DIR is launched with random inputs in each variant
and compared with PyTorch in float32; then launches that the guard must refuse, and some that it must not, are
tried (alone with `--refusals`). Ends with 1 if a result is wrong, a variant was never taken, a launch was
refused or accepted wrongly, a kernel has no case here, or a library was imported that such a machine lacks.
"""

# ruff: noqa: T201 - prints its results

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

import tilecheck
from tilecheck.jit import cubin

DEVICE = "cuda"
UNWANTED = ("z3", "libcst", "networkx", "cuda.tile")
WIDTH = 16  # bytes: what an aligned address is a multiple of
LOG2E = 1.4426950408889634
# How far a result may lie off, relative to itself plus the root mean square of all. A case has a factor.
ROUNDING = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-5}

Arrays = dict[str, Any]
Sizes = list[tuple[int, ...]]


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def multiprocessors() -> int:
    count: int = torch.cuda.get_device_properties(DEVICE).multi_processor_count
    return count


# ---- arguments -----------------------------------------------------------------------------------------------


@dataclass
class Given:
    """Makes the arrays of one launch, in the element types and for the constants of a variant.

    Args:
        forms: the variant's, by parameter.
        placement: `plain` arrays are contiguous at aligned addresses. The rows of `padded` ones begin at
            aligned addresses too, with room between them; those of `shifted` ones begin anywhere.

    `memory` is what each array was cut from: around its elements it is poisoned.
    """

    forms: Mapping[str, cubin.Form]
    placement: str = "plain"
    memory: Arrays = field(default_factory=dict)

    def __getitem__(self, constant: str) -> Any:
        return self.forms[constant].value

    def empty(self, name: str, *shape: int) -> Any:
        """An array for a parameter, all poison."""
        dtype = getattr(torch, self.forms[name].dtype.rstrip("_"))
        step = WIDTH // dtype.itemsize
        *outer, last = shape
        before, row = {
            "plain": (0, last),
            "padded": (0, cdiv(last, step) * step + step),
            "shifted": (1, last + 3),
        }[self.placement]
        base = torch.full((before + math.prod(outer) * row + step,), poison(dtype), dtype=dtype, device=DEVICE)
        strides = [math.prod((*outer[axis + 1 :], row)) for axis in range(len(outer))]
        self.memory[name] = base
        return base.as_strided(shape, (*strides, 1), before)

    def filled(self, name: str, values: Any) -> Any:
        return self.empty(name, *values.shape).copy_(values)

    def normal(self, name: str, *shape: int, around: float = 0.0) -> Any:
        return self.filled(name, torch.randn(shape, device=DEVICE) + around)

    def integers(self, name: str, low: int, high: int, *shape: int) -> Any:
        return self.filled(name, torch.randint(low, high, shape, device=DEVICE))


def poison(dtype: torch.dtype) -> Any:
    return float("nan") if dtype.is_floating_point else torch.iinfo(dtype).max // 3


@dataclass(frozen=True)
class Launch:
    """`expected` holds the contents of every array that the launch writes, by parameter."""

    grid: tuple[int, ...]
    args: Mapping[str, Any]
    expected: Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """How a kernel is launched.

    Args:
        make: a launch, of sizes, with the grid that the host function has for them.
        sizes: for the constants of a variant: ragged sizes, of which the first have several tiles along every
            axis; and sizes whose rows are multiples of 16 elements.
        factor: of the tolerance.
        shortened: the array whose first axis a condition speaks of; by default the first that is written.
        any_grid: no number of blocks along the first axis is too large.
    """

    make: Callable[..., Launch]
    sizes: Callable[[Given], tuple[Sizes, Sizes]]
    factor: float = 1
    shortened: str = ""
    any_grid: bool = False


def widths(tile: int) -> tuple[int, int]:
    """Ragged extents for which a host function chooses this power of two as the tile."""
    return max(tile // 2 + 1, tile - 3), tile // 2 + 1


def even(tile: int) -> tuple[int, int]:
    """Such extents that are multiples of 16."""
    return max(tile - 16, tile // 2 + 16) if tile > 16 else tile, tile


# ---- element-wise --------------------------------------------------------------------------------------------


def vector_add(given: Given, n: int) -> Launch:
    x, y = given.normal("x", n), given.normal("y", n)
    args = {"x": x, "y": y, "out": given.empty("out", n)}
    return Launch((cdiv(n, given["TILE"]), 1, 1), args, {"out": x.float() + y.float()})


def axpy(given: Given, n: int) -> Launch:
    x, y = given.normal("x", n), given.normal("y", n)
    args = {"a": -1.7, "x": x, "y": y, "out": given.empty("out", n)}
    return Launch((cdiv(n, given["TILE"]), 1, 1), args, {"out": -1.7 * x.float() + y.float()})


def vectors(given: Given) -> tuple[Sizes, Sizes]:
    tile = given["TILE"]
    return [(5 * tile + 377,), (1,), (tile - 1,)], [(4 * tile + 48,), (tile,), (16,)]


def relu(given: Given, n: int) -> Launch:
    x = given.normal("x", n)
    return Launch(
        (cdiv(n, given["TILE"]), 1, 1), {"x": x, "out": given.empty("out", n)}, {"out": F.relu(x.float())}
    )


def gelu(given: Given, n: int) -> Launch:
    x = given.normal("x", n)
    expected = {"out": F.gelu(x.float(), approximate="tanh")}
    return Launch((cdiv(n, given["TILE"]), 1, 1), {"x": x, "out": given.empty("out", n)}, expected)


def gated(gate: Any, up: Any) -> Any:
    return F.silu(gate.float()) * up.float()


def silu_mul(given: Given, rows: int, columns: int) -> Launch:
    gate, up = (given.normal(name, rows, columns) for name in ("gate", "up"))
    args = {"gate": gate, "up": up, "out": given.empty("out", rows, columns)}
    blocks = cdiv(rows, given["TILE_M"]) * cdiv(columns, given["TILE_N"])
    return Launch((blocks, 1, 1), args, {"out": gated(gate, up)})


def silu_mul_sizes(given: Given) -> tuple[Sizes, Sizes]:
    rows, columns = 3 * given["TILE_M"] + 1, given["TILE_N"]
    return [(rows, 2 * columns + 451), (1, widths(columns)[1])], [(rows, 2 * columns + 48), (rows, columns)]


# ---- rows ----------------------------------------------------------------------------------------------------


def norm_of(x: Any, weight: Any, eps: float) -> Any:
    return F.rms_norm(x.float(), weight.shape, weight.float(), eps)


def rms_norm(given: Given, rows: int, columns: int) -> Launch:
    x, weight = given.normal("x", rows, columns), given.normal("weight", columns)
    args = {"x": x, "weight": weight, "out": given.empty("out", rows, columns), "eps": 1e-6}
    return Launch((cdiv(rows, given["TILE_M"]), 1, 1), args, {"out": norm_of(x, weight, 1e-6)})


def layer_norm(given: Given, rows: int, columns: int) -> Launch:
    x = given.normal("x", rows, columns, around=10)
    weight, bias = (given.normal(name, columns) for name in ("weight", "bias"))
    args = {"x": x, "weight": weight, "bias": bias, "out": given.empty("out", rows, columns), "eps": 1e-5}
    expected = F.layer_norm(x.float(), weight.shape, weight.float(), bias.float(), 1e-5)
    return Launch((cdiv(rows, given["TILE_M"]), 1, 1), args, {"out": expected})


def layer_norm_backward(given: Given, rows: int, columns: int) -> Launch:
    grad, x = given.normal("grad", rows, columns), given.normal("x", rows, columns, around=3)
    weight = given.normal("weight", columns)
    blocks = min(rows, 2 * multiprocessors())
    parts = {name: given.empty(name, blocks, columns) for name in ("weight_parts", "bias_parts")}
    args = {"grad": grad, "x": x, "weight": weight, "grad_x": given.empty("grad_x", rows, columns)}
    centred = x.float() - x.float().mean(1, keepdim=True)
    scale = (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()
    normalised, scaled = centred * scale, grad.float() * weight.float()
    along = (scaled * normalised).mean(1, keepdim=True)
    expected = {"grad_x": (scaled - scaled.mean(1, keepdim=True) - normalised * along) * scale}
    for name, values in (("weight_parts", grad.float() * normalised), ("bias_parts", grad.float())):
        expected[name] = torch.stack([values[part::blocks].sum(0) for part in range(blocks)])
    return Launch((blocks, 1, 1), {**args, **parts, "eps": 1e-5}, expected)


def layer_norm_backward_sizes(given: Given) -> tuple[Sizes, Sizes]:
    (wide, narrow), (some, all_) = widths(given["TILE_N"]), even(given["TILE_N"])
    return [(4 * multiprocessors() + 3, wide), (1, narrow)], [(33, some), (5, all_)]


def sum_parts(given: Given, parts: int, columns: int) -> Launch:
    x = given.normal("parts", parts, columns)
    args = {"parts": x, "out": given.empty("out", columns)}
    return Launch((cdiv(columns, given["TILE_COLUMNS"]), 1, 1), args, {"out": x.float().sum(0)})


def sum_parts_sizes(given: Given) -> tuple[Sizes, Sizes]:
    rows, columns = given["TILE_PARTS"], given["TILE_COLUMNS"]
    return [(3 * rows + 5, 2 * columns + 13), (1, 1)], [(2 * rows, 3 * columns), (7, 16)]


def add_rms_norm(given: Given, rows: int, columns: int) -> Launch:
    x, residual = (given.normal(name, rows, columns) for name in ("x", "residual"))
    weight = given.normal("weight", columns)
    args = {"x": x, "residual": residual, "weight": weight, "out": given.empty("out", rows, columns)}
    new = (residual.float() + x.float()).to(residual.dtype)
    expected = {"out": norm_of(new, weight, 1e-6), "residual": new}
    return Launch((cdiv(rows, given["TILE_M"]), 1, 1), {**args, "eps": 1e-6}, expected)


def softmax(given: Given, rows: int, columns: int) -> Launch:
    x = torch.randn(rows, columns, device=DEVICE)
    x[0, : columns // 2] = -float("inf")
    x = given.filled("x", x)
    args = {"x": x, "out": given.empty("out", rows, columns)}
    grid = (min(4 * multiprocessors(), cdiv(rows, given["TILE_M"])), 1, 1)
    return Launch(grid, args, {"out": torch.softmax(x.float(), 1)})


def softmax_online(given: Given, rows: int, columns: int) -> Launch:
    x = torch.randn(rows, columns, device=DEVICE)
    x[0, : columns // 2] = -float("inf")
    x = given.filled("x", x)
    args = {"x": x, "out": given.empty("out", rows, columns)}
    return Launch((rows, 1, 1), args, {"out": torch.softmax(x.float(), 1)})


def rows_of_tiles(*many: Callable[[int], int]) -> Callable[[Given], tuple[Sizes, Sizes]]:
    """Rows that fit in one tile; numbers of rows: each of `many` for a tile's, and one."""

    def sizes(given: Given) -> tuple[Sizes, Sizes]:
        (wide, narrow), (some, all_) = widths(given["TILE_N"]), even(given["TILE_N"])
        counts = [count(given["TILE_M"]) for count in many]
        ragged = [*((rows, wide) for rows in counts), (1, narrow)]
        return ragged, [(counts[0], some), (given["TILE_M"], all_)]

    return sizes


def softmax_online_sizes(given: Given) -> tuple[Sizes, Sizes]:
    tile = given["TILE_N"]
    return [(3, 4 * tile + 3617), (1, 4 * tile + 1)], [(3, 5 * tile + 48), (2, 5 * tile)]


def cross_entropy(given: Given, rows: int, columns: int) -> Launch:
    values = 4 * torch.randn(rows, columns, device=DEVICE)
    values[0, : columns // 2] = -float("inf")
    logits = given.filled("logits", values)
    targets = given.integers("targets", 0, columns, rows)
    targets[0] = columns - 1
    targets[1:2] = -100
    targets[2:3] = columns
    targets[3:4] = -1
    args = {"logits": logits, "targets": targets, "losses": given.empty("losses", rows), "ignore_index": -100}
    losses = F.cross_entropy(logits.float(), targets.long().clamp(0, columns - 1), reduction="none")
    losses[(targets < 0) | (targets >= columns)] = float("inf")
    losses[targets == -100] = 0
    return Launch((rows, 1, 1), args, {"losses": losses})


def cross_entropy_sizes(given: Given) -> tuple[Sizes, Sizes]:
    tile = given["LANES"] * given["WIDTH"]
    return [(5, 2 * tile + 1809), (1, 3), (33, tile - 1)], [(16, 3 * tile + 16), (48, tile)]


# ---- rows picked and moved -----------------------------------------------------------------------------------


def embedding(given: Given, count: int, rows: int, columns: int) -> Launch:
    table = given.normal("table", rows, columns)
    ids = given.integers("ids", -2, rows + 2, count)
    args = {"ids": ids, "table": table, "out": given.empty("out", count, columns)}
    known = ((ids >= 0) & (ids < rows))[:, None]
    expected = torch.where(known, F.embedding(ids.clamp(0, rows - 1), table), 0)
    grid = (cdiv(count, given["TILE_T"]), cdiv(columns, given["TILE_D"]), 1)
    return Launch(grid, args, {"out": expected})


def embedding_sizes(given: Given) -> tuple[Sizes, Sizes]:
    count, columns = 3 * given["TILE_T"] - 3, given["TILE_D"]
    return [(count, 50, columns + 72), (1, 3, 5)], [(48, 50, 2 * columns + 16), (16, 7, columns)]


def transpose(given: Given, rows: int, columns: int) -> Launch:
    x = given.normal("x", rows, columns)
    args = {"x": x, "out": given.empty("out", columns, rows)}
    return Launch((cdiv(rows, given["TILE_M"]), cdiv(columns, given["TILE_N"]), 1), args, {"out": x.T})


def transpose_sizes(given: Given) -> tuple[Sizes, Sizes]:
    m, n = given["TILE_M"], given["TILE_N"]
    return [(2 * m + 23, n + 37), (1, 1), (m + 1, 2 * n - 1)], [(2 * m + 16, 3 * n), (m, n)]


def permute_heads(given: Given, batches: int, heads: int, tokens: int, width: int) -> Launch:
    x = given.normal("x", batches, heads, tokens, width)
    args = {"x": x, "out": given.empty("out", batches, tokens, heads, width)}
    grid = (batches * heads, cdiv(tokens, given["TILE_M"]), 1)
    return Launch(grid, args, {"out": x.transpose(1, 2)})


def permute_heads_sizes(given: Given) -> tuple[Sizes, Sizes]:
    tokens, (wide, narrow), (some, all_) = (
        2 * given["TILE_M"] + 13,
        widths(given["TILE_D"]),
        even(given["TILE_D"]),
    )
    return [(2, 3, tokens, wide), (1, 1, 1, narrow)], [(2, 3, tokens, some), (3, 2, 5, all_)]


def kv_cache_update(given: Given, tokens: int, heads: int, width: int, slots: int, first: int) -> Launch:
    new = {name: given.normal(name, tokens, heads, width) for name in ("keys", "values")}
    caches = {name: given.normal(name, slots, heads, width) for name in ("key_cache", "value_cache")}
    # The position of a decoder stands alone. The variant for multiples of 16 wants 16 of them.
    position = given.empty("position", 16 if width % 16 == 0 and given.placement == "plain" else 1)
    position[0] = first
    expected = {name: cache.clone() for name, cache in caches.items()}
    if 0 <= first <= slots - tokens:
        for cache, tensor in zip(expected.values(), new.values(), strict=True):
            cache[first : first + tokens] = tensor
    return Launch((cdiv(tokens, given["TILE_T"]), 1, 1), {**new, **caches, "position": position}, expected)


def kv_cache_update_sizes(given: Given) -> tuple[Sizes, Sizes]:
    tokens, (heads, few) = 2 * given["TILE_T"] + 3, widths(given["TILE_H"])
    (wide, narrow), (some, all_) = widths(given["TILE_D"]), even(given["TILE_D"])
    positions = (29, 0, 12, -1, 30, -(2**31), 2**31 - 1)
    ragged = [(tokens, heads, wide, tokens + 29, first) for first in positions]
    return [*ragged, (1, few, narrow, 3, 1)], [(tokens, heads, some, 40, 7), (5, given["TILE_H"], all_, 9, 4)]


def turned(x: Any, cos: Any, sin: Any, positions: Any) -> Any:
    """What becomes of (tokens, heads, 2, half)."""
    known = ((positions >= 0) & (positions < cos.shape[0]))[:, None]
    rows = positions.clamp(0, cos.shape[0] - 1)
    c, s = (torch.where(known, table[rows], 0).float()[:, None] for table in (cos, sin))
    first, second = x.float().unbind(2)
    return torch.stack((first * c - second * s, second * c + first * s), 2)


def rope(given: Given, tokens: int, q_heads: int, k_heads: int, half: int) -> Launch:
    q, k = given.normal("q", tokens, q_heads, 2, half), given.normal("k", tokens, k_heads, 2, half)
    frequencies = 10000.0 ** (-torch.arange(half, device=DEVICE) / half)
    angles = torch.outer(torch.arange(64, device=DEVICE), frequencies)
    cos, sin = given.filled("cos", angles.cos()), given.filled("sin", angles.sin())
    positions = given.integers("positions", 0, 64, tokens)
    positions[1:2] = -1
    positions[2:3] = 64
    args = {"q": q, "k": k, "cos": cos, "sin": sin, "positions": positions}
    expected = {name: turned(x, cos, sin, positions) for name, x in (("q", q), ("k", k))}
    return Launch((cdiv(tokens, given["TILE_T"]), 1, 1), args, expected)


def rope_sizes(given: Given) -> tuple[Sizes, Sizes]:
    (wide, narrow), (some, all_) = widths(given["TILE_D"]), even(given["TILE_D"])
    (q, few), (k, one) = widths(given["TILE_Q"]), widths(given["TILE_K"])
    tokens = 3 * given["TILE_T"] - 1
    return [(tokens, q, k, wide), (1, few, one, narrow)], [(32, q, k, some), (16, few, given["TILE_K"], all_)]


# ---- products ------------------------------------------------------------------------------------------------


def product(given: Given, rows: int, columns: int, depth: int) -> tuple[Arrays, Any]:
    a, b = given.normal("a", rows, depth), given.normal("b", depth, columns)
    return {"a": a, "b": b}, a.float() @ b.float()


def tiles(given: Given, rows: int, columns: int) -> tuple[int, int]:
    return cdiv(rows, given["TILE_M"]), cdiv(columns, given["TILE_N"])


def matmul(given: Given, *extents: int) -> Launch:
    factors, expected = product(given, *extents)
    out = given.empty("out", *expected.shape)
    return Launch((*tiles(given, *expected.shape), 1), {**factors, "out": out}, {"out": expected})


def matmul_grouped(given: Given, *extents: int) -> Launch:
    plain = matmul(given, *extents)
    return dataclasses.replace(plain, grid=(math.prod(plain.grid), 1, 1))


def matmul_persistent(given: Given, *extents: int) -> Launch:
    plain = matmul(given, *extents)
    return dataclasses.replace(plain, grid=(min(multiprocessors(), math.prod(plain.grid)), 1, 1))


def matmul_sizes(given: Given) -> tuple[Sizes, Sizes]:
    m, n, k = given["TILE_M"], given["TILE_N"], given["TILE_K"]
    ragged = [(m + 72, 2 * n + 45, 2 * k + 23), (1, 1, 1), (9 * m + 5, 2 * n + 5, k + 3)]
    side = math.isqrt(multiprocessors()) + 1  # more tiles than multiprocessors
    return [*ragged, (side * m - 5, side * n - 3, k + 1)], [(2 * m, 2 * n + 48, 2 * k + 32), (m, n, k)]


def linear(given: Given, rows: int, columns: int, depth: int) -> Launch:
    x, weight = given.normal("x", rows, depth), given.normal("weight", columns, depth)
    blocks = min(multiprocessors(), math.prod(tiles(given, rows, columns)))
    args = {"x": x, "weight": weight, "out": given.empty("out", rows, columns)}
    return Launch((blocks, 1, 1), args, {"out": x.float() @ weight.float().T})


def batched_matmul(given: Given, batches: int, rows: int, columns: int, depth: int) -> Launch:
    a, b = given.normal("a", batches, rows, depth), given.normal("b", batches, depth, columns)
    args = {"a": a, "b": b, "out": given.empty("out", batches, rows, columns)}
    blocks = min(multiprocessors(), batches * math.prod(tiles(given, rows, columns)))
    return Launch((blocks, 1, 1), args, {"out": a.float() @ b.float()})


def batched_matmul_sizes(given: Given) -> tuple[Sizes, Sizes]:
    m, n, k = given["TILE_M"], given["TILE_N"], given["TILE_K"]
    return [(2, m + 22, n + 9, k + 17), (3, 1, 1, 1)], [(2, m + 7, n + 16, k + 16), (1, m, n, k)]


def split_k_partial(given: Given, rows: int, columns: int, depth: int) -> Launch:
    factors, _ = product(given, rows, columns, depth)
    m, n = tiles(given, rows, columns)
    splits = max(1, min(multiprocessors() // (m * n), cdiv(depth, given["TILE_K"])))
    a, b = factors["a"].float(), factors["b"].float()
    turn = torch.arange(depth, device=DEVICE) // given["TILE_K"] % splits
    expected = torch.stack([a[:, turn == s] @ b[turn == s] for s in range(splits)])
    args = {**factors, "partial": given.empty("partial", splits, rows, columns)}
    return Launch((m, n, splits), args, {"partial": expected})


def split_k_partial_sizes(given: Given) -> tuple[Sizes, Sizes]:
    m, n, k = given["TILE_M"], given["TILE_N"], given["TILE_K"]
    return [(m // 2 - 1, n + 13, 4 * k + 45), (1, 1, 1), (m + 1, n, 70 * k + 1)], [
        (m, n + 16, 5 * k),
        (m, n, k),
    ]


def split_k_reduce(given: Given, splits: int, rows: int, columns: int) -> Launch:
    partial = given.normal("partial", splits, rows, columns)
    args = {"partial": partial, "out": given.empty("out", rows, columns)}
    return Launch((rows, cdiv(columns, given["TILE_N"]), 1), args, {"out": partial.float().sum(0)})


def split_k_reduce_sizes(given: Given) -> tuple[Sizes, Sizes]:
    s, n = given["TILE_S"], given["TILE_N"]
    return [(3, 50, n + 13), (1, 1, 1), (s + 8, 7, 2 * n + 3)], [(5, 16, 2 * n), (s + 1, 9, n + 16)]


# ---- attention -----------------------------------------------------------------------------------------------


def attended(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    keys, values = (x.float().repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = q.float() @ keys.mT / q.shape[3] ** 0.5
    if causal:
        seen = torch.ones(scores.shape[2:], device=q.device, dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        scores = scores.masked_fill(~seen, -float("inf"))
    return torch.softmax(scores, 3) @ values


def flash_attention(given: Given, batches: int, kv_heads: int, queries: int, length: int, width: int) -> Launch:
    heads = given["GROUP"] * kv_heads
    q = given.normal("q", batches, heads, queries, width)
    k, v = (given.normal(name, batches, kv_heads, length, width) for name in ("k", "v"))
    args = {"q": q, "k": k, "v": v, "out": given.empty("out", *q.shape), "scale": LOG2E / width**0.5}
    expected = {"out": attended(q, k, v, causal=given["CAUSAL"])}
    return Launch((cdiv(queries, given["TILE_M"]), heads, batches), args, expected)


def flash_attention_sizes(given: Given) -> tuple[Sizes, Sizes]:
    m, n, (wide, narrow), (some, all_) = (
        given["TILE_M"],
        given["TILE_N"],
        widths(given["TILE_D"]),
        even(given["TILE_D"]),
    )
    longer = 2 * max(m, n) + 44
    ragged = [(2, 2, m + 22, longer, wide), (1, 1, 1, 1, narrow), (1, 3, 1, longer, wide)]
    if not given["CAUSAL"]:
        ragged.append((2, 1, 2 * m + 1, n - 28, wide))
    return ragged, [(2, 2, m + 22, longer, some), (1, 1, m, max(m, n), all_)]


CASES = {
    "vector_add_kernel": Case(vector_add, vectors),
    "axpy_kernel": Case(axpy, vectors),
    "relu_kernel": Case(relu, vectors, 0),
    "gelu_kernel": Case(gelu, vectors, 2),
    "silu_mul_kernel": Case(silu_mul, silu_mul_sizes, 2),
    "rms_norm_kernel": Case(rms_norm, rows_of_tiles(lambda m: 3 * m - 1, lambda m: 1001), 2),
    "layer_norm_kernel": Case(layer_norm, rows_of_tiles(lambda m: 3 * m - 1, lambda m: 1001), 2),
    "layer_norm_backward_kernel": Case(
        layer_norm_backward, layer_norm_backward_sizes, 4, shortened="weight_parts"
    ),
    "sum_parts_kernel": Case(sum_parts, sum_parts_sizes, 2),
    "add_rms_norm_kernel": Case(add_rms_norm, rows_of_tiles(lambda m: 3 * m - 1, lambda m: 1001), 2),
    "softmax_kernel": Case(
        softmax, rows_of_tiles(lambda m: 3 * m - 1, lambda m: 4 * multiprocessors() * m + 5), 2, any_grid=True
    ),
    "softmax_online_kernel": Case(softmax_online, softmax_online_sizes, 2),
    "cross_entropy_kernel": Case(cross_entropy, cross_entropy_sizes, 5),
    "embedding_kernel": Case(embedding, embedding_sizes, 0),
    "transpose_kernel": Case(transpose, transpose_sizes, 0),
    "permute_heads_kernel": Case(permute_heads, permute_heads_sizes, 0),
    "kv_cache_update_kernel": Case(kv_cache_update, kv_cache_update_sizes, 0, shortened="value_cache"),
    "rope_kernel": Case(rope, rope_sizes, 2),
    "matmul_kernel": Case(matmul, matmul_sizes, 2),
    "matmul_grouped_kernel": Case(matmul_grouped, matmul_sizes, 2),
    "matmul_persistent_kernel": Case(matmul_persistent, matmul_sizes, 2, shortened="b", any_grid=True),
    "linear_kernel": Case(linear, matmul_sizes, 2, shortened="weight", any_grid=True),
    "batched_matmul_kernel": Case(batched_matmul, batched_matmul_sizes, 2, any_grid=True),
    "split_k_partial_kernel": Case(split_k_partial, split_k_partial_sizes, 10),
    "split_k_reduce_kernel": Case(split_k_reduce, split_k_reduce_sizes, 2),
    "flash_attention_kernel": Case(flash_attention, flash_attention_sizes, 8),
}


# ---- launching and comparing ---------------------------------------------------------------------------------


class Watch:
    """Sees which variant a launch took: the cubin's function that was called last."""

    def __init__(self) -> None:
        self.function: Any = None
        plain = cubin._Plan.launch  # noqa: SLF001 - a launch does not tell, and should not

        def launch(plan: Any, *arguments: Any) -> None:
            plain(plan, *arguments)
            self.function = plan.function

        cubin._Plan.launch = launch  # type: ignore[method-assign]  # noqa: SLF001

    def variant(self, kernel: cubin.CompiledKernel) -> int:
        return next(i for i, v in enumerate(kernel._variants) if v._function is self.function)  # noqa: SLF001


@dataclass
class Tally:
    launches: int = 0
    failed: int = 0
    variants: set[tuple[str, int]] = field(default_factory=set)
    refused: int = 0

    def problem(self, text: str) -> None:
        self.failed += 1
        print(f"FAILED  {text}")


def launch(kernel: cubin.CompiledKernel, grid: Any, args: Mapping[str, Any], forms: Mapping[str, Any]) -> None:
    values = tuple(
        forms[a.name].value if isinstance(forms[a.name], cubin.ConstantForm) else args[a.name]
        for a in kernel.record.arguments
    )
    tilecheck.launch(torch.cuda.current_stream(), grid, kernel, values)


def error_of(actual: Any, expected: Any) -> float:
    """The largest distance, relative to the value plus the root mean square; equal infinities are 0 apart."""
    if actual.shape != expected.shape:
        return math.inf
    one, other = actual.float(), expected.float()
    finite = other[other.isfinite()]
    typical = finite.square().mean().sqrt() if finite.numel() else torch.zeros((), device=other.device)
    off = (one - other).abs() / (other.abs() + typical).clamp(min=1e-30)
    off = torch.where(one == other, 0, off).nan_to_num(math.inf, math.inf)
    return float(off.max()) if off.numel() else 0.0


def same_bytes(one: Any, other: Any) -> bool:
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def ran(kernel: cubin.CompiledKernel, made: Launch, given: Given, factor: float) -> tuple[float, str]:
    """Launch, and say how far the results lie off and what is wrong."""
    before = {name: base.clone() for name, base in given.memory.items()}
    launch(kernel, made.grid, made.args, given.forms)
    torch.cuda.synchronize()
    worst, problems = 0.0, []
    for name, expected in made.expected.items():
        found = made.args[name]
        off, allowed = error_of(found, expected), factor * ROUNDING.get(found.dtype, 0.0)
        worst = max(worst, off)
        if not off <= allowed:
            problems.append(f"`{name}` is {off:.2g} off, where {allowed:.2g} is allowed")
        if name in before:
            before[name].as_strided(found.shape, found.stride(), found.storage_offset()).copy_(found)
    problems += [
        f"`{name}` has changed outside of the results"
        for name, base in given.memory.items()
        if not same_bytes(base, before[name])
    ]
    return worst, "; ".join(problems)


def sets_of(kernel: cubin.CompiledKernel) -> list[tuple[dict[str, cubin.Form], list[int]]]:
    """The sets of element types and constants among the variants, with the variants of each."""
    names = [a.name for a in kernel.record.arguments]
    found: dict[Any, tuple[dict[str, cubin.Form], list[int]]] = {}
    for number, loaded in enumerate(kernel._variants):  # noqa: SLF001 - the manifest, as it was read
        forms = loaded.variant.forms
        key = tuple(
            (type(form.value), form.value) if isinstance(form, cubin.ConstantForm) else form.dtype
            for form in forms
        )
        found.setdefault(key, (dict(zip(names, forms, strict=True)), []))[1].append(number)
    return list(found.values())


def launches(case: Case, forms: Mapping[str, cubin.Form]) -> Iterator[tuple[Given, tuple[int, ...]]]:
    ragged, multiples = case.sizes(Given(forms))
    for placement, sizes in (
        ("plain", multiples),
        ("padded", ragged),
        ("shifted", ragged),
        ("plain", ragged),
        ("padded", multiples),
        ("shifted", multiples),
    ):
        for size in sizes:
            yield Given(forms, placement), size


def compare_all(kernels: Mapping[str, cubin.CompiledKernel], tally: Tally) -> None:
    watch = Watch()
    for name, kernel in kernels.items():
        if name not in CASES:
            tally.problem(f"{name}: no case is written for it")
            continue
        for forms, numbers in sets_of(kernel):
            for given, size in launches(CASES[name], forms):
                tally.launches += 1
                label = f"{name:<27} {given.placement:<7} {' x '.join(map(str, size)):<22}"
                try:
                    made = CASES[name].make(given, *size)
                    worst, problem = ran(kernel, made, given, CASES[name].factor)
                    number = watch.variant(kernel)
                except Exception as error:  # noqa: BLE001 - the next launch may tell more
                    tally.problem(f"{label} {type(error).__name__}: {error}\n{getattr(error, 'report', '')}")
                    continue
                tally.variants.add((name, number))
                if number not in numbers:
                    problem = f"variant {number} is of other types or constants; {problem}"
                told = f"{label} variant {number}, grid {made.grid}, error {worst:.2g}"
                if problem:
                    tally.problem(f"{told}: {problem}")
                else:
                    print(f"ok      {told}")
            for number in numbers:
                if (name, number) not in tally.variants:
                    tally.problem(f"{name}: variant {number} was never taken")


# ---- what is refused -----------------------------------------------------------------------------------------


def wrong_launches(case: Case, kernel: cubin.CompiledKernel, made: Launch) -> Iterator[tuple[str, Any, Arrays]]:
    """What is wrong, the grid, and arguments; all of it one change away from a launch that is accepted."""
    grid, args = made.grid, dict(made.args)
    written = [a.name for a in kernel.record.arguments if a.ownership == "mut"]
    arrays = [a.name for a in kernel.record.arguments if a.is_accessed]
    yield "no blocks", (0, *grid[1:]), args
    yield "a fourth axis of the grid", (*grid, 1), args
    yield "half a block more", (grid[0] + 0.5, *grid[1:]), args
    for axis in range(3):
        if axis not in kernel.record.grid_axes:
            yield f"blocks along axis {axis}, which is not read", (*grid[:axis], 2, *grid[axis + 1 :]), args
        elif not (case.any_grid and axis == 0):
            yield f"a block too many along axis {axis}", (*grid[:axis], grid[axis] + 1, *grid[axis + 1 :]), args
    for name in written:
        for other in (n for n in arrays if n != name):
            for step in (0, max(args[name].itemsize, args[other].itemsize)):
                shared = sharing(args[name], args[other], step)
                yield (
                    f"{name} over {other}, shifted {step} bytes",
                    grid,
                    {**args, name: shared[0], other: shared[1]},
                )
        axis = next(k for k, extent in enumerate(args[name].shape) if extent > 1)
        expanded = args[name].narrow(axis, 0, 1).clone().expand(args[name].shape)
        yield f"{name} expanded along axis {axis}", grid, {**args, name: expanded}
        yield f"{name} with one more axis", grid, {**args, name: args[name][None]}
        yield f"{name} as float64", grid, {**args, name: args[name].double()}
    short = case.shortened or written[0]
    yield f"{short} with an extent of 1", grid, {**args, short: args[short][:1].clone()}
    for name in arrays:
        yield f"{name} in the host's memory", grid, {**args, name: args[name].cpu()}
        yield f"{name} as a number", grid, {**args, name: 1.0}
    yield (
        "everything in the host's memory",
        grid,
        {name: value.cpu() if isinstance(value, torch.Tensor) else value for name, value in args.items()},
    )


def sharing(written: Any, other: Any, step: int) -> tuple[Any, Any]:
    """Both arrays, contiguous, in one piece of memory, the second `step` bytes after the first."""
    sizes = [t.numel() * t.itemsize for t in (written, other)]
    raw = torch.zeros(max(sizes[0], sizes[1] + step) + WIDTH, dtype=torch.uint8, device=DEVICE)
    first = raw[: sizes[0]].view(written.dtype).view(written.shape)
    second = raw[step : step + sizes[1]].view(other.dtype).view(other.shape)
    second.copy_(other)
    return first, second


def contents(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.cpu().clone() for name, value in args.items() if isinstance(value, torch.Tensor)}


def refuse_all(kernels: Mapping[str, cubin.CompiledKernel], tally: Tally) -> None:
    """Each wrong launch comes after a right one of the same shapes, so that what is remembered is tried too."""
    for name, kernel in kernels.items():
        if name not in CASES:
            continue
        for forms, _ in sets_of(kernel):
            given = Given(forms)
            made = CASES[name].make(given, *CASES[name].sizes(given)[0][0])
            wrong = list(wrong_launches(CASES[name], kernel, made))
            tally.launches += 1
            try:
                _, problem = ran(kernel, made, given, CASES[name].factor)
            except Exception as error:  # noqa: BLE001 - the others may tell more
                problem = f"{type(error).__name__}: {error}\n{getattr(error, 'report', '')}"
            if problem:
                tally.problem(f"{name}: {problem}")
                continue
            passed = 0
            for what, grid, args in wrong:
                before = contents(args)
                try:
                    launch(kernel, grid, args, forms)
                except tilecheck.LaunchRefused:
                    torch.cuda.synchronize()
                    after = contents(args)
                    if all(bytes_of(after[n]) == bytes_of(before[n]) for n in before):
                        passed += 1
                    else:
                        tally.problem(f"{name}: {what}: it was refused, and yet memory has changed")
                except Exception as error:  # noqa: BLE001 - whatever it is, it is no refusal
                    tally.problem(f"{name}: {what}: {type(error).__name__} instead of a refusal: {error}")
                else:
                    torch.cuda.synchronize()
                    tally.problem(f"{name}: {what}: it was launched")
            tally.refused += passed
            print(
                f"{'ok' if passed == len(wrong) else 'FAILED':<7} {name:<27} {passed} of {len(wrong)} refused"
            )


def bytes_of(tensor: Any) -> bytes:
    data: bytes = tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return data


# ---- what is not refused -------------------------------------------------------------------------------------


def columns(tensors: Sequence[Any]) -> list[Any]:
    """Copies of arrays that agree in their first extent, as matrices side by side in one packed buffer."""
    packed = torch.cat([t.reshape(t.shape[0], -1) for t in tensors], 1)
    return list(packed.split([t[0].numel() for t in tensors], 1))


def packed_gate(given: Given) -> Launch:
    rows, width = CASES["silu_mul_kernel"].sizes(given)[1][0]
    made = silu_mul(given, rows, width)
    gate, up, out = columns([made.args[name] for name in ("gate", "up", "out")])
    return dataclasses.replace(made, args={"gate": gate, "up": up, "out": out})


def packed_heads(given: Given) -> Launch:
    """Queries, keys, values and the result are columns of one buffer, whose rows are tokens."""
    width = even(given["TILE_D"])[1]
    batches, kv_heads, length = 2, 2, 2 * given["TILE_M"] + 22
    heads = given["GROUP"] * kv_heads
    made = flash_attention(given, batches, kv_heads, length, length, width)
    by_token = [made.args[name].transpose(1, 2).flatten(0, 1) for name in ("q", "k", "v", "out")]
    counts = (heads, kv_heads, kv_heads, heads)
    views = [
        part.unflatten(0, (batches, length)).unflatten(2, (count, width)).transpose(1, 2)
        for part, count in zip(columns(by_token), counts, strict=True)
    ]
    args = {**made.args, **dict(zip(("q", "k", "v", "out"), views, strict=True))}
    return dataclasses.replace(made, args=args)


def packed_turns(given: Given) -> Launch:
    """Both arrays are written, between one another."""
    made = rope(given, *CASES["rope_kernel"].sizes(given)[1][0])
    q, k = columns([made.args["q"], made.args["k"]])
    views = {name: part.unflatten(1, made.args[name].shape[1:]) for name, part in (("q", q), ("k", k))}
    return dataclasses.replace(made, args={**made.args, **views})


def neighbours(given: Given) -> Launch:
    """Vectors that touch end to end."""
    made = vector_add(given, 5 * given["TILE"] + 377)
    packed = torch.cat([made.args[name] for name in ("x", "y", "out")])
    return dataclasses.replace(made, args=dict(zip(("x", "y", "out"), packed.chunk(3), strict=True)))


PACKED = {
    "silu_mul_kernel": packed_gate,
    "flash_attention_kernel": packed_heads,
    "rope_kernel": packed_turns,
    "vector_add_kernel": neighbours,
}


def accept_all(kernels: Mapping[str, cubin.CompiledKernel], tally: Tally) -> None:
    for name, make in PACKED.items():
        for forms, _ in sets_of(kernels[name]) if name in kernels else ():
            given = Given(forms)
            tally.launches += 1
            try:
                made = make(given)
                bases = {a.untyped_storage().data_ptr() for n, a in made.args.items() if n in made.expected}
                assert len(bases) == 1, "the results are not in one buffer"
                worst, problem = ran(kernels[name], made, Given(forms), CASES[name].factor)
            except Exception as error:  # noqa: BLE001 - the others may tell more
                tally.problem(
                    f"{name}, packed: {type(error).__name__}: {error}\n{getattr(error, 'report', '')}"
                )
                continue
            if problem:
                tally.problem(f"{name}, packed: {problem}")
            else:
                print(f"ok      {name:<27} packed in one buffer, error {worst:.2g}")


# ---- the whole -----------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", metavar="DIR", help="written by `tilecheck compile -o DIR`")
    parser.add_argument("--refusals", action="store_true", help="only what must be refused and accepted")
    parser.add_argument("--seed", type=int, default=torch.seed() % 2**31, help="of the random inputs")
    arguments = parser.parse_args(argv)
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("highest")
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, seed {arguments.seed}")
    print(f"tilecheck {tilecheck.__version__} of {tilecheck.__file__}")
    if DEVICE == "cuda":
        print(f"on {torch.cuda.get_device_name()}, {multiprocessors()} multiprocessors")
    kernels = tilecheck.load_kernels(arguments.folder)
    tally = Tally()
    if not arguments.refusals:
        compare_all(kernels, tally)
    refuse_all(kernels, tally)
    accept_all(kernels, tally)
    imported = [name for name in UNWANTED if name in sys.modules]
    if imported:
        tally.problem(f"imported: {', '.join(imported)}")
    total = sum(len(numbers) for kernel in kernels.values() for _, numbers in sets_of(kernel))
    taken = "" if arguments.refusals else f", {len(tally.variants)} of {total} variants taken"
    print(
        f"{len(kernels)} kernels, {tally.launches} launches{taken}, {tally.refused} refusals: "
        f"{f'{tally.failed} FAILED' if tally.failed else 'all as they should be'}"
    )
    return 1 if tally.failed or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
