"""Transformers' Qwen3 with the same weights: what our engine is compared with, in time and in numbers.

Decoding is a `StaticCache` of just the slots that a cell needs and one CUDA graph for a step, with the token
fed back on the device. A prompt is one call without a mask, so PyTorch takes its flash attention.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from qwen3_models import Array, Drawn, config_of
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM, StaticCache

WRONG_THETA = 1e4  # what two public engines have
WARM = 3  # steps before a capture


class Transformers:
    """A model with the weights of `qwen3_models.Drawn`, in bfloat16. Mutable: it decodes.

    Args:
        model: its size.
        device: "cuda", or "reference" for the CPU, where nothing is captured.
    """

    name = "transformers"

    def __init__(self, model: str, device: str) -> None:
        self._is_cuda = device == "cuda"
        self._device = "cuda" if self._is_cuda else "cpu"
        self.variant = "graph" if self._is_cuda else "eager"
        self._config = config_of(model)
        self.model = _model(model, self._device)
        self._step: _Step | None = None
        self._is_flash = True

    def prepare(self, prompts: Sequence[Sequence[int]], new: int) -> None:
        """Capture the step of prompts and new tokens as many as these."""
        try:
            with torch.inference_mode():
                self._prefill(torch.tensor(prompts, device=self._device))
        except RuntimeError as error:
            print(f"PyTorch has no flash attention for these prompts, and chooses: {error}")
            self._is_flash = False
        self._step = None  # frees the cache before the next one is made
        self._step = _Step(
            self.model, len(prompts), _even(len(prompts[0]) + new), self._device, is_captured=self._is_cuda
        )

    def run(self, prompts: Sequence[Sequence[int]], new: int) -> tuple[float, float]:
        """Seconds until the first tokens are on the host, and from there until the last ones are.

        The prompts are of one length. That their keys and values go on to the other cache is not counted.
        """
        assert self._step is not None, "nothing was prepared"
        tokens = torch.tensor(prompts, device=self._device)
        with torch.inference_mode():
            self._wait()
            began = time.perf_counter()
            first = self._prefill(tokens)
            first.tolist()
            prompt = time.perf_counter() - began
            self._step.begin(tokens, first)
            self._wait()
            began = time.perf_counter()
            for _ in range(new - 1):
                self._step.run()
            self._step.token.tolist()
            return prompt, time.perf_counter() - began

    def _prefill(self, tokens: torch.Tensor) -> torch.Tensor:
        cache = DynamicCache(config=self.model.config) if _takes(DynamicCache, "config") else DynamicCache()
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION) if self._is_flash else contextlib.nullcontext():
            said = self.model(tokens, use_cache=True, logits_to_keep=1, **_cached(self.model, cache))
        return said.logits[:, -1].argmax(-1, keepdim=True)

    def _wait(self) -> None:
        if self._is_cuda:
            torch.cuda.synchronize()

    # ---- numbers ---------------------------------------------------------------------------------------------

    def logits(self, tokens: Sequence[int], positions: Sequence[int], *, theta: float | None = None) -> Array:
        """The logits after the first tokens of a text, for each number of them.

        Args:
            tokens: of the text.
            positions: after how many tokens.
            theta: of the positions' angles, if it is not that of the model.
        """
        given = torch.tensor([tokens[: max(positions)]], device=self._device)
        at = torch.tensor(positions, device=self._device) - 1
        with torch.inference_mode(), self._other_angles(theta):
            hidden = self.model.model(given, use_cache=False).last_hidden_state[0, at]
            rows = [self.model.lm_head(part).float().cpu().numpy() for part in hidden.split(64)]
        return np.concatenate(rows)

    @contextlib.contextmanager
    def _other_angles(self, theta: float | None) -> Iterator[None]:
        rotary = self.model.model.rotary_emb
        before = rotary.inv_freq.clone()
        if theta is not None:
            half = torch.arange(len(before), dtype=torch.float32, device=self._device) / len(before)
            rotary.inv_freq.copy_(theta**-half)
        yield
        rotary.inv_freq.copy_(before)

    def to_float32(self) -> None:
        """Compute in float32 from here on, with the same weights."""
        self._step = None
        self.model.float()


class _Step:
    """A step of decoding into a cache of a fixed size. Mutable: token and position go on with each run."""

    def __init__(self, model: Any, batch: int, slots: int, device: str, *, is_captured: bool) -> None:
        self._model = model
        options = {
            "config": model.config, "max_cache_len": slots, "max_batch_size": batch, "device": device,
            "dtype": torch.bfloat16,
        }  # fmt: skip
        self._cache = StaticCache(
            **{name: value for name, value in options.items() if _takes(StaticCache, name)}
        )
        self.token = torch.zeros((batch, 1), dtype=torch.long, device=device)
        self._position = torch.zeros((1, 1), dtype=torch.long, device=device)
        self._slots = torch.arange(slots, device=device)
        self._graph: Any = None
        with torch.inference_mode():
            self._forward(torch.zeros((batch, 1), dtype=torch.long, device=device), self._position)
            if is_captured:
                self._capture()

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                self._rewind(0)
                self._advance()
        torch.cuda.current_stream().wait_stream(stream)
        self._rewind(0)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._advance()

    def begin(self, tokens: torch.Tensor, first: torch.Tensor) -> None:
        """Take in prompts and the tokens after them."""
        self._rewind(0)
        count = tokens.shape[1]
        positions = torch.arange(count, device=tokens.device)[None]
        self._forward(tokens, positions)
        self._rewind(count)
        self.token.copy_(first)

    def run(self) -> None:
        """One step."""
        if self._graph is None:
            self._advance()
        else:
            self._graph.replay()

    def _rewind(self, position: int) -> None:
        self._position.fill_(position)
        for layer in getattr(self._cache, "layers", ()):
            if hasattr(layer, "cumulative_length"):  # counts by itself, in later versions
                layer.cumulative_length.fill_(position)

    def _advance(self) -> None:
        self.token.copy_(self._forward(self.token, self._position))
        self._position.add_(1)

    def _forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        seen = (self._slots <= positions[0][:, None])[None, None]  # [1, 1, tokens, slots]
        options = _cached(self._model, self._cache)
        if "past_key_values" in options:
            options["cache_position"] = positions[0]
        said = self._model(
            tokens, attention_mask=seen, position_ids=positions, use_cache=True, logits_to_keep=1, **options
        )
        return said.logits[:, -1].argmax(-1, keepdim=True)


def _even(slots: int) -> int:
    """At least so many slots: masks of a multiple of eight elements need not be copied."""
    return -(-slots // 8) * 8


def _takes(function: Any, name: str) -> bool:
    found = inspect.signature(function).parameters
    return name in found or (name in {"max_batch_size", "dtype", "device"} and "kwargs" in found)


def _cached(model: Any, cache: Any) -> dict[str, Any]:
    """A cache under the name that the version of Transformers has for it."""
    known = inspect.signature(inspect.unwrap(type(model.model).forward)).parameters
    return {"cache" if "cache" in known else "past_key_values": cache}


def _model(name: str, device: str) -> Any:
    config = config_of(name)
    settings = Qwen3Config(
        vocab_size=config.vocabulary, hidden_size=config.hidden, intermediate_size=config.intermediate,
        num_hidden_layers=config.layers, num_attention_heads=config.heads, num_key_value_heads=config.kv_heads,
        head_dim=config.width, rms_norm_eps=config.eps, tie_word_embeddings=config.is_tied,
        max_position_embeddings=config.positions, pad_token_id=None, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    settings.rope_theta = config.theta
    if hasattr(settings, "rope_parameters"):  # of later versions
        settings.rope_parameters = {"rope_type": "default", "rope_theta": config.theta}
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)  # `.to` would round the angles of positions, too
    try:
        with torch.device(device):
            made = Qwen3ForCausalLM(settings).eval()
    finally:
        torch.set_default_dtype(before)
    if made.model.rotary_emb.inv_freq.dtype is not torch.float32:
        raise RuntimeError("Transformers rounds the angles of positions: their logits are no measure")
    drawn = Drawn("cuda" if device == "cuda" else "cpu")
    for each, parameter in made.named_parameters():
        with torch.no_grad():
            parameter.copy_(torch.as_tensor(drawn.drawn(each, tuple(parameter.shape))))
    return made
