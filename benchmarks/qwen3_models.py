"""Qwen3 models with random weights: the published sizes, and one that the reference backend runs."""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from qwen3.checkpoint import Tensor
from qwen3.config import Config, Sampling

# hidden, layers, heads, kv_heads, width, intermediate, vocabulary, tied
SIZES = {
    "tiny": (16, 1, 2, 1, 16, 16, 64, True),
    "0.6B": (1024, 28, 16, 8, 128, 3072, 151_936, True),
    "1.7B": (2048, 28, 16, 8, 128, 6144, 151_936, True),
    "4B": (2560, 36, 32, 8, 128, 9728, 151_936, True),
    "8B": (4096, 36, 32, 8, 128, 12288, 151_936, False),
    "14B": (5120, 40, 40, 8, 128, 17408, 151_936, False),
    "32B": (5120, 64, 64, 8, 128, 25600, 151_936, False),
}
Array = np.ndarray[Any, Any]


def config_of(name: str) -> Config:
    hidden, layers, heads, kv_heads, width, intermediate, vocabulary, is_tied = SIZES[name]
    return Config(
        hidden=hidden, layers=layers, heads=heads, kv_heads=kv_heads, width=width, intermediate=intermediate,
        vocabulary=vocabulary, theta=1e6, eps=1e-6, is_tied=is_tied, positions=40_960, stops=(),
        sampling=Sampling(0.6, 20, 0.95),
    )  # fmt: skip


def prompt_of(config: Config, length: int, seed: int = 0) -> list[int]:
    """Random tokens, the same at each call: a shorter prompt is the beginning of a longer one."""
    found: list[int] = np.random.default_rng(seed).integers(0, config.vocabulary, length).tolist()
    return found


@dataclass(frozen=True, slots=True)
class Drawn:
    """Weights that every engine draws alike, tensor by tensor: none has to keep them for another.

    Queries and keys are scaled so that attention looks at few tokens: with even weights, thousands of keys
    average out, and a wrong position would not show. What a layer adds to what came in is a tenth of the
    embedding: with as much as the embedding, 28 layers make an error of rounding a hundred times larger, and
    logits in bfloat16 say nothing. The gain of the last norm has both signs: else the most probable token is
    the one that came in, of whose row in the output layer the hidden vector mostly consists.

    Args:
        device: of the draws: "cpu", or "cuda" where PyTorch draws on the GPU.
    """

    device: str

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A tensor as a checkpoint gives it."""
        found = self.drawn(name, shape)
        if isinstance(found, np.ndarray):
            return Tensor((found.view(np.uint32) >> 16).astype(np.uint16), "BF16")
        torch = sys.modules["torch"]
        return Tensor(found.view(torch.int16).cpu().numpy().view(np.uint16), "BF16")

    def drawn(self, name: str, shape: tuple[int, ...]) -> Any:
        """A tensor in bfloat16 on the GPU, or in float32 with the values of bfloat16 on the host."""
        mean, deviation = _spread(name, shape)
        seed = zlib.crc32(name.encode())
        if self.device == "cpu":
            values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) * deviation + mean
            return (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
        import torch

        made = torch.Generator("cuda").manual_seed(seed)
        drawn = torch.randn(shape, generator=made, device="cuda", dtype=torch.float32)
        return drawn.mul_(deviation).add_(mean).to(torch.bfloat16)


def _spread(name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Mean and standard deviation of a weight."""
    if name == "model.norm.weight":
        return 0.0, 1.0
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        return 2.0, 0.2
    if len(shape) == 1:
        return 1.0, 0.1
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        return 0.0, 0.1 * (shape[0] * shape[1]) ** -0.5
    return 0.0, shape[-1] ** -0.5


# ---- what a run has to read and compute ----------------------------------------------------------------------


def bytes_of_step(config: Config, context: float, batch: int) -> float:
    """Bytes that a step reads in bfloat16: the weights once, and the keys and values of each sequence."""
    return 2 * (config.step_weights + batch * context * config.token_cache)


def operations_of_prompt(config: Config, tokens: int, batch: int) -> float:
    """Multiplications and additions of the prompts up to the logits of their last tokens."""
    head = (config.vocabulary + 1) * config.hidden
    layers = config.step_weights - head
    attention = 2 * config.layers * config.heads * config.width * tokens  # half of the pairs, two products
    return 2.0 * batch * (tokens * (layers + attention / 2) + head)
