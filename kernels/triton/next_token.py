"""The ends of a decoding step: the row of a token in the embedding, and the next token, most probable or drawn.

All state is on the device, so that steps follow one another without the host: the token that a step finds is
the next one's input, positions count up, and a sequence that met a stop token or filled its slots stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

if TYPE_CHECKING:
    import torch

BLOCK = 1024
MAX_TOP = 64
LAST = tl.constexpr(2**31 - 1)


@triton.jit
def embed_kernel(token_ptr, table_ptr, out_ptr, tokens, columns, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr):
    """The row of the token of each sequence; zeros for a token that the table does not have."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    sequence = tl.program_id(0).to(tl.int64)
    lanes = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    token = tl.load(token_ptr + sequence).to(tl.int64)
    known = (token >= 0) & (token < tokens) & (lanes < columns)
    row = tl.load(table_ptr + token * columns + lanes, mask=known, other=0.0)
    tl.store(out_ptr + sequence * columns + lanes, row, mask=lanes < columns)


@triton.jit
def argmax_blocks_kernel(
    logits_ptr, best_ptr, candidate_ptr, tokens, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr
):
    """The largest logit of each block of each sequence, and its token: the first of equals."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    sequence = tl.program_id(1).to(tl.int64)
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    logits = tl.load(logits_ptr + sequence * tokens + token, mask=token < tokens, other=-float("inf")).to(
        tl.float32
    )
    best = tl.max(logits, axis=0)
    first = tl.min(tl.where((logits == best) & (token < tokens), token, LAST), axis=0)
    at = sequence * tl.num_programs(0) + tl.program_id(0)
    tl.store(best_ptr + at, best)
    tl.store(candidate_ptr + at, first)


@triton.jit
def take(
    token,
    stop_ptr,
    token_ptr,
    position_ptr,
    finished_ptr,
    history_ptr,
    stops,
    slots,
    sequence,
    STOPS: tl.constexpr,
):
    """Let a sequence that has not finished go on with a token."""
    stop = tl.arange(0, STOPS)
    is_stop = (tl.load(stop_ptr + stop, mask=stop < stops, other=-1) == token) & (stop < stops)
    finished = tl.load(finished_ptr + sequence)
    position = tl.minimum(tl.maximum(tl.load(position_ptr + sequence), 0), slots - 1)
    tl.debug_barrier()  # every thread has loaded the state before one stores the next
    if finished == 0:
        tl.store(token_ptr + sequence, token)
        tl.store(history_ptr + sequence * slots + position, token)
        tl.store(position_ptr + sequence, position + 1)
        if (tl.max(is_stop.to(tl.int32), axis=0) == 1) | (position + 1 >= slots):
            tl.store(finished_ptr + sequence, 1)


@triton.jit
def next_token_kernel(
    best_ptr,
    candidate_ptr,
    stop_ptr,
    token_ptr,
    position_ptr,
    finished_ptr,
    history_ptr,
    blocks,
    stops,
    slots,
    BLOCKS: tl.constexpr,
    STOPS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """The most probable token of each sequence goes into its history, and is its next input."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    sequence = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, BLOCKS)
    best = tl.load(best_ptr + sequence * blocks + block, mask=block < blocks, other=-float("inf"))
    candidate = tl.load(candidate_ptr + sequence * blocks + block, mask=block < blocks, other=LAST)
    token = tl.min(tl.where(best == tl.max(best, axis=0), candidate, LAST), axis=0)
    take(token, stop_ptr, token_ptr, position_ptr, finished_ptr, history_ptr, stops, slots, sequence, STOPS)


@triton.jit
def top_blocks_kernel(
    logits_ptr,
    best_ptr,
    candidate_ptr,
    tokens,
    TOP: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """The `TOP` largest logits of each block of each sequence, and their tokens, the first of equals first."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    sequence = tl.program_id(1).to(tl.int64)
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    logits = tl.load(logits_ptr + sequence * tokens + token, mask=token < tokens, other=-float("inf")).to(
        tl.float32
    )
    at = (sequence * tl.num_programs(0) + tl.program_id(0)) * TOP
    for rank in range(TOP):
        best = tl.max(logits, axis=0)
        first = tl.min(tl.where((logits == best) & (token < tokens), token, LAST), axis=0)
        tl.store(best_ptr + at + rank, best)
        tl.store(candidate_ptr + at + rank, first)
        logits = tl.where(token == first, -float("inf"), logits)


@triton.jit
def sample_token_kernel(
    best_ptr,
    candidate_ptr,
    seed_ptr,
    stop_ptr,
    token_ptr,
    position_ptr,
    finished_ptr,
    history_ptr,
    candidates,
    stops,
    slots,
    temperature,
    top_p,
    TOP: tl.constexpr,
    RANKS: tl.constexpr,
    CANDIDATES: tl.constexpr,
    STOPS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """A token of each sequence, drawn from its `TOP` most probable ones, less those beyond the share `top_p`.

    The draw is the largest sum of a logit and a number of Gumbel's distribution, made from the seed, the
    position and the rank.
    """
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    sequence = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, CANDIDATES)
    at = sequence * candidates + lanes
    values = tl.load(best_ptr + at, mask=lanes < candidates, other=-float("inf"))
    tokens = tl.load(candidate_ptr + at, mask=lanes < candidates, other=LAST)
    rank = tl.arange(0, RANKS)
    top = tl.full((RANKS,), -float("inf"), tl.float32)
    chosen = tl.full((RANKS,), LAST, tl.int32)
    for place in range(TOP):
        best = tl.max(values, axis=0)
        first = tl.min(tl.where(values == best, tokens, LAST), axis=0)
        top = tl.where(rank == place, best, top)
        chosen = tl.where(rank == place, first, chosen)
        values = tl.where(tokens == first, -float("inf"), values)
    scaled = (top - tl.max(top, axis=0)) / temperature
    weights = tl.exp(scaled)
    weights = weights / tl.sum(weights, axis=0)
    kept = tl.cumsum(weights, axis=0) - weights < top_p
    position = tl.load(position_ptr + sequence)
    drawn = tl.rand(tl.load(seed_ptr + sequence) + position, rank)
    score = scaled - tl.log(-tl.log(tl.maximum(drawn, 1e-10)))
    score = tl.where(kept & (rank < TOP), score, -float("inf"))
    token = tl.min(tl.where(score == tl.max(score, axis=0), chosen, LAST), axis=0)
    take(token, stop_ptr, token_ptr, position_ptr, finished_ptr, history_ptr, stops, slots, sequence, STOPS)


def embed(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """The rows of `table` [rows, columns] for int32 `tokens` [sequences]; zeros for tokens outside it."""
    import torch

    if tokens.ndim != 1 or table.ndim != 2 or tokens.dtype != torch.int32:
        raise ValueError("embed needs a vector of int32 and a matrix")
    if not tokens.is_contiguous() or not table.is_contiguous():
        raise ValueError("embed needs contiguous tensors")
    rows, columns = table.shape
    out = torch.empty((tokens.shape[0], columns), dtype=table.dtype, device=table.device)
    if tokens.shape[0] == 0 or columns == 0:
        return out
    tilecheck.verified(embed_kernel)[(tokens.shape[0], triton.cdiv(columns, BLOCK))](
        tokens, table, out, rows, columns, BLOCK=BLOCK, DEPENDENT=False
    )
    return out


def next_token(
    logits: torch.Tensor,
    stops: torch.Tensor,
    tokens: torch.Tensor,
    positions: torch.Tensor,
    finished: torch.Tensor,
    history: torch.Tensor,
) -> None:
    """Take the most probable token of every sequence that has not finished.

    Args:
        logits: [sequences, tokens of the vocabulary].
        stops: tokens that end a sequence, int32, [stops].
        tokens: the next inputs, int32, [sequences].
        positions: of the tokens just taken in, int32, [sequences]; they count up.
        finished: 0, or 1 for sequences that have ended, int32, [sequences].
        history: the token after each position, int32, [sequences, slots].
    """
    import torch

    if logits.ndim != 2 or stops.ndim != 1 or history.ndim != 2:
        raise ValueError(
            "next_token needs matrices of logits and of tokens so far, and a vector of stop tokens"
        )
    sequences, vocabulary = logits.shape
    slots = history.shape[1]
    if history.shape[0] != sequences or slots < 1:
        raise ValueError("next_token needs a slot for each sequence")
    if tokens.shape != (sequences,) or positions.shape != (sequences,) or finished.shape != (sequences,):
        raise ValueError("next_token needs a token, a position and a flag for each sequence")
    for state in (stops, tokens, positions, finished, history):
        if state.dtype != torch.int32:
            raise ValueError("next_token needs tokens, positions and flags of type int32")
    for tensor in (logits, stops, tokens, positions, finished, history):
        if not tensor.is_contiguous():
            raise ValueError("next_token needs contiguous tensors")
    if sequences == 0 or vocabulary == 0:
        return
    blocks = triton.cdiv(vocabulary, BLOCK)
    best = torch.empty((sequences, blocks), dtype=torch.float32, device=logits.device)
    candidates = torch.empty((sequences, blocks), dtype=torch.int32, device=logits.device)
    tilecheck.verified(argmax_blocks_kernel)[(blocks, sequences)](
        logits, best, candidates, vocabulary, BLOCK=BLOCK, DEPENDENT=False
    )
    tilecheck.verified(next_token_kernel)[(sequences,)](
        best,
        candidates,
        stops,
        tokens,
        positions,
        finished,
        history,
        blocks,
        stops.shape[0],
        slots,
        BLOCKS=triton.next_power_of_2(blocks),
        STOPS=triton.next_power_of_2(stops.shape[0] + 1),
        DEPENDENT=False,
    )


def sample_token(
    logits: torch.Tensor,
    seeds: torch.Tensor,
    stops: torch.Tensor,
    tokens: torch.Tensor,
    positions: torch.Tensor,
    finished: torch.Tensor,
    history: torch.Tensor,
    temperature: float,
    top_k: int,
    top_p: float,
) -> None:
    """Draw a token for every sequence that has not finished.

    Args:
        logits: [sequences, tokens of the vocabulary].
        seeds: of the draws, int32, [sequences].
        stops: as for `next_token`, like `tokens`, `positions`, `finished` and `history`.
        tokens: the next inputs, int32, [sequences].
        positions: of the tokens just taken in, int32, [sequences]; they count up.
        finished: 0, or 1 for sequences that have ended, int32, [sequences].
        history: the token after each position, int32, [sequences, slots].
        temperature: divides the logits; above 0.
        top_k: how many of the most probable tokens are drawn from, at most `MAX_TOP`.
        top_p: tokens beyond this share of the probability of these are left out, but for the first; above 0.
    """
    import torch

    if temperature <= 0 or top_p <= 0 or top_k < 1 or top_k > MAX_TOP:
        raise ValueError(
            f"sample_token needs a temperature and a share above 0, and a top_k from 1 to {MAX_TOP}"
        )
    if logits.ndim != 2 or stops.ndim != 1 or history.ndim != 2:
        raise ValueError(
            "sample_token needs matrices of logits and of tokens so far, and a vector of stop tokens"
        )
    sequences, vocabulary = logits.shape
    slots = history.shape[1]
    if history.shape[0] != sequences or slots < 1:
        raise ValueError("sample_token needs a slot for each sequence")
    for state in (seeds, tokens, positions, finished):
        if state.shape != (sequences,):
            raise ValueError("sample_token needs a seed, a token, a position and a flag for each sequence")
    for state in (seeds, stops, tokens, positions, finished, history):
        if state.dtype != torch.int32:
            raise ValueError("sample_token needs seeds, tokens, positions and flags of type int32")
    for tensor in (logits, seeds, stops, tokens, positions, finished, history):
        if not tensor.is_contiguous():
            raise ValueError("sample_token needs contiguous tensors")
    if sequences == 0 or vocabulary == 0:
        return
    blocks = triton.cdiv(vocabulary, BLOCK)
    best = torch.empty((sequences, blocks * top_k), dtype=torch.float32, device=logits.device)
    candidates = torch.empty((sequences, blocks * top_k), dtype=torch.int32, device=logits.device)
    tilecheck.verified(top_blocks_kernel)[(blocks, sequences)](
        logits, best, candidates, vocabulary, TOP=top_k, BLOCK=BLOCK, DEPENDENT=False
    )
    tilecheck.verified(sample_token_kernel)[(sequences,)](
        best,
        candidates,
        seeds,
        stops,
        tokens,
        positions,
        finished,
        history,
        blocks * top_k,
        stops.shape[0],
        slots,
        temperature,
        top_p,
        TOP=top_k,
        RANKS=triton.next_power_of_2(top_k),
        CANDIDATES=triton.next_power_of_2(blocks * top_k),
        STOPS=triton.next_power_of_2(stops.shape[0] + 1),
        DEPENDENT=False,
    )


def reference(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The token that `next_token` takes for each sequence."""
    out: np.ndarray[Any, Any] = np.argmax(logits.astype(np.float32), axis=1).astype(np.int32)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Tokens outside the table; equal logits; sequences that go on, stop, have stopped, are full."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((5, 40)).astype(np.float16)
    tokens = np.array([3, 7, -1], dtype=np.int32)
    rows = np.zeros((3, 40), dtype=np.float16)
    rows[0] = table[3]
    args: tuple[Any, ...] = (tokens, table, np.empty_like(rows), 5, 40, 32, False)
    yield tilecheck.Example(embed_kernel, (3, 2), args, {"out_ptr": rows})
    logits = rng.standard_normal((4, 70)).astype(np.float32)
    logits[0, [11, 69]] = 9.0
    found = reference(logits)
    parts = np.pad(logits, ((0, 0), (0, 26)), constant_values=-np.inf).reshape(4, 3, 32)
    best, candidates = parts.max(axis=2), (parts.argmax(axis=2) + 32 * np.arange(3)).astype(np.int32)
    args = (logits, np.empty_like(best), np.empty_like(candidates), 70, 32, False)
    expected = {"best_ptr": best, "candidate_ptr": candidates}
    yield tilecheck.Example(argmax_blocks_kernel, (3, 4), args, expected)
    stops = found[[1]].copy()
    state = [np.array(values, dtype=np.int32) for values in ([0, 0, 0, 0], [4, 4, 4, 5], [0, 0, 1, 0])]
    history = np.full((4, 6), -7, dtype=np.int32)
    taken = np.where([True, True, False, True], found, 0).astype(np.int32)
    filled = history.copy()
    filled[[0, 1, 3], [4, 4, 5]] = found[[0, 1, 3]]
    expected = {
        "token_ptr": taken,
        "position_ptr": np.array([5, 5, 4, 6], dtype=np.int32),
        "finished_ptr": np.array([0, 1, 1, 1], dtype=np.int32),
        "history_ptr": filled,
    }
    args = (best, candidates, stops, *state, history, 3, 1, 6, 4, 2, False)
    yield tilecheck.Example(next_token_kernel, (4,), args, expected)
    args = (logits, np.empty((4, 3, 2), np.float32), np.empty((4, 3, 2), np.int32), 70, 2, 32, False)
    order = np.argsort(-parts, axis=2, kind="stable")[:, :, :2]
    top = np.take_along_axis(parts, order, axis=2)
    chosen = (order + 32 * np.arange(3)[:, None]).astype(np.int32)
    expected = {"best_ptr": top, "candidate_ptr": chosen}
    yield tilecheck.Example(top_blocks_kernel, (3, 4), args, expected)
    state = [np.array(values, dtype=np.int32) for values in ([0, 0, 0, 0], [4, 4, 4, 5], [0, 0, 1, 0])]
    args = (top, chosen, np.arange(4, dtype=np.int32), stops, *state, history.copy(), 6, 1, 6, 0.7, 1e-9)
    expected = {"token_ptr": taken, "history_ptr": filled}
    yield tilecheck.Example(sample_token_kernel, (4,), (*args, 2, 2, 8, 2, False), expected)
