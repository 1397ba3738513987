"""The keys and values of a prompt, all of its tokens at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cuda.tile import cdiv

from qwen3.config import Config
from qwen3.machine import Machine
from qwen3.weights import Weights
from tilecheck import host
from tilecheck.kernels.add_rms_norm import add_rms_norm_kernel
from tilecheck.kernels.linear import TILE_K, TILE_M, TILE_N, linear_kernel
from tilecheck.kernels.rms_norm import rms_norm_kernel
from tilecheck.kernels.sizes import next_power_of_two
from tilecheck.kernels.triton.gated import gated_kernel
from tilecheck.kernels.triton.next_token import BLOCK, embed_kernel
from tilecheck.kernels.triton.prefill_attention import KEYS, QUERIES, prefill_attention_kernel
from tilecheck.kernels.triton.prefill_heads import TOKENS, prefill_heads_kernel

Caches = Sequence[tuple[host.Array, host.Array]]
Turns = tuple[host.Shared, host.Shared]
"""The cosines and sines of the angles of each position, [slots, width // 2]."""


def fill(
    machine: Machine,
    config: Config,
    weights: Weights,
    turns: Turns,
    caches: Caches,
    tokens: Sequence[int],
) -> None:
    """Put the keys and values of some first tokens into the caches, [1, kv_heads, slots, width] each.

    What the model says after them is not computed: that is the step of the token that follows.
    """
    launch, count, hidden, width = machine.launch, len(tokens), config.hidden, config.width
    heads, kv_heads, slots = config.heads, config.kv_heads, caches[0][0].shape[2]
    every = heads + 2 * kv_heads
    given = machine.constant(np.asarray(tokens, dtype=np.int32))
    residual, normed = (machine.zeros((count, hidden), "weight") for _ in range(2))
    qkv = machine.zeros((count, every * width), "weight")
    queries = machine.zeros((heads, count, width), "weight")
    attended = machine.zeros((count, heads * width), "weight")
    added = machine.zeros((count, hidden), "weight")
    both = machine.zeros((count, 2 * config.intermediate), "weight")
    feed = machine.zeros((count, config.intermediate), "weight")
    row = next_power_of_two(hidden)

    def product(x: host.Array, weight: host.Shared, out: host.Array) -> None:
        tiles = cdiv(count, TILE_M) * cdiv(out.shape[1], TILE_N)
        launch(linear_kernel, (min(machine.blocks, tiles),), (x, weight, out, TILE_M, TILE_N, TILE_K))

    table = (given, weights.embedding, residual, config.vocabulary, hidden, BLOCK, False)
    launch(embed_kernel, (count, cdiv(hidden, BLOCK)), table)
    first_gain = weights.layers[0].attention_gain
    launch(rms_norm_kernel, (count,), (residual, first_gain, normed, config.eps, 1, row))
    for number, (layer, (keys, values)) in enumerate(zip(weights.layers, caches, strict=True)):
        product(normed, layer.qkv, qkv)
        gains = (layer.q_gain, layer.k_gain, *turns)
        sizes = (count, heads, kv_heads, every, slots, config.eps, width // 2, TOKENS)
        launch(prefill_heads_kernel, (cdiv(count, TOKENS), every), (qkv, *gains, queries, keys, values, *sizes))
        if number == len(weights.layers) - 1:
            return  # what follows would only be read by a layer after this one
        scale = width**-0.5
        sizes = (count, slots, scale, config.group, width, QUERIES, KEYS)
        grid = (cdiv(count, QUERIES), config.group, kv_heads)
        launch(prefill_attention_kernel, grid, (queries, keys, values, attended, *sizes))
        product(attended, layer.output, added)
        launch(add_rms_norm_kernel, (count,), (added, residual, layer.feed_gain, normed, config.eps, 1, row))
        product(normed, layer.gate_up, both)
        grid = (count, cdiv(config.intermediate, BLOCK))
        launch(gated_kernel, grid, (both, feed, config.intermediate, BLOCK))
        product(feed, layer.down, added)
        gain = weights.layers[number + 1].attention_gain
        launch(add_rms_norm_kernel, (count,), (added, residual, gain, normed, config.eps, 1, row))
