"""Cross entropy of rows of logits against integer targets, in one pass over the logits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

if TYPE_CHECKING:
    import torch

LANES = 512
WIDTH = 8  # 16 bytes of half precision
LOG2E = 1.4426950408889634
LOWEST = -3.4028234663852886e38  # the least float32: a running maximum that never makes inf - inf


def power(exponent: ct.Tile) -> ct.Tile:
    """exp, as the hardware has it; the scaling comes after the subtraction, where LOWEST cannot overflow."""
    return ct.exp2(exponent * LOG2E, flush_to_zero=True)


@ct.kernel(occupancy=4)
def cross_entropy_kernel(
    logits: ct.Array,
    targets: ct.Array,
    losses: ct.Array,
    ignore_index: int,
    LANES: ct.Constant[int],
    WIDTH: ct.Constant[int],
) -> None:
    """One row per block. A lane keeps a maximum and sum of its own: the loop needs no barrier."""
    row = ct.bid(0)
    tile = (1, LANES * WIDTH)
    target = ct.load(targets, index=(row,), shape=(1,))
    loss = ct.zeros((1,), dtype=ct.float32)
    if target.item() != ignore_index:
        tops = ct.full((LANES, 1), LOWEST, dtype=ct.float32)
        totals = ct.zeros((LANES, 1), dtype=ct.float32)
        for j in range(ct.num_tiles(logits, axis=1, shape=tile)):
            values = ct.load(logits, index=(row, j), shape=tile, padding_mode=ct.PaddingMode.NEG_INF)
            values = ct.reshape(ct.astype(values, ct.float32), (LANES, WIDTH))
            higher = ct.maximum(tops, ct.max(values, axis=1, keepdims=True))
            totals = totals * power(tops - higher) + ct.sum(power(values - higher), axis=1, keepdims=True)
            tops = higher
        top = ct.max(tops, axis=0, keepdims=True)
        total = ct.sum(totals * power(tops - top), axis=0)
        picked = ct.gather(logits, (row, target), padding_value=-float("inf"))
        loss = ct.reshape(top, (1,)) + ct.log(total) - ct.astype(picked, ct.float32)
    ct.store(losses, index=(row,), tile=loss)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    """The loss of each row: 0 where its target is `ignore_index`, infinite where it is no column."""
    import torch

    if logits.ndim != 2 or targets.ndim != 1 or targets.is_floating_point():
        raise ValueError("cross_entropy needs a matrix of logits and a vector of integer targets")
    if targets.shape[0] != logits.shape[0] or logits.shape[1] == 0:
        raise ValueError("cross_entropy needs a target for each row, and at least one column")
    losses = torch.empty(logits.shape[0], dtype=torch.float32, device=logits.device)
    if logits.shape[0] == 0:
        return losses
    args = (logits, targets, losses, ignore_index, LANES, WIDTH)
    tilecheck.launch(torch.cuda.current_stream(), (logits.shape[0], 1, 1), cross_entropy_kernel, args)
    return losses


def reference(
    logits: np.ndarray[Any, Any], targets: np.ndarray[Any, Any], ignore_index: int = -100
) -> np.ndarray[Any, Any]:
    """What `cross_entropy` computes."""
    values = logits.astype(np.float32)
    top = values.max(axis=1)
    total = top + np.log(np.exp(values - top[:, None]).sum(axis=1))
    picked = np.full_like(total, -np.inf)
    known = (targets >= 0) & (targets < logits.shape[1])
    picked[known] = values[known, targets[known]]
    losses: np.ndarray[Any, Any] = np.where(targets == ignore_index, np.float32(0), total - picked)
    return losses


def examples() -> Iterator[tilecheck.Example]:
    """A vocabulary that is no multiple of a tile, with an ignored target."""
    rng = np.random.default_rng(0)
    logits = (4 * rng.standard_normal((5, 10_001))).astype(np.float16)
    targets = np.array([0, 10_000, -100, 4096, 77])
    args = (logits, targets, np.empty(5, dtype=np.float32), -100, LANES, WIDTH)
    yield tilecheck.Example(
        cross_entropy_kernel, (5,), args, {"losses": reference(logits, targets)}, tolerance=1e-5
    )
