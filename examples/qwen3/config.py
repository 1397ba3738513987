"""The sizes of a model and how it is asked, from `config.json` and `generation_config.json`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwen3.errors import UserError


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; the most probable one is taken if `temperature` is 0."""

    temperature: float
    top_k: int
    top_p: float


@dataclass(frozen=True, slots=True)
class Config:
    """The shape of a Qwen3 model without experts."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    width: int  # of a head
    intermediate: int
    vocabulary: int
    theta: float
    eps: float
    is_tied: bool  # the output layer is the embedding
    positions: int  # at most
    stops: tuple[int, ...]
    sampling: Sampling

    @property
    def group(self) -> int:
        """Heads of queries for each head of keys."""
        return self.heads // self.kv_heads

    @property
    def step_weights(self) -> int:
        """Elements of the weights that a step reads: all but an embedding that is not the output layer."""
        every = (self.heads + 2 * self.kv_heads) * self.width
        matrices = self.hidden * (every + self.heads * self.width + 3 * self.intermediate)
        gains = 2 * self.hidden + 2 * self.width
        return self.layers * (matrices + gains) + (self.vocabulary + 1) * self.hidden

    @property
    def weights(self) -> int:
        """Elements of all weights."""
        return self.step_weights + (0 if self.is_tied else self.vocabulary * self.hidden)

    @property
    def token_cache(self) -> int:
        """Elements of the keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.width


def read_config(folder: Path) -> Config:
    """The configuration of the model in a folder.

    Raises:
        UserError: a file is missing or is no configuration of a model that this program runs.
    """
    told = _File(folder / "config.json")
    generation = _File(folder / "generation_config.json", is_optional=True)
    _check_kind(told)
    hidden, heads = told.size("hidden_size"), told.size("num_attention_heads")
    config = Config(
        hidden=hidden,
        layers=told.size("num_hidden_layers"),
        heads=heads,
        kv_heads=told.size("num_key_value_heads"),
        width=told.size("head_dim", hidden // heads),
        intermediate=told.size("intermediate_size"),
        vocabulary=told.size("vocab_size"),
        theta=_theta(told),
        eps=told.number("rms_norm_eps"),
        is_tied=told.switch("tie_word_embeddings"),
        positions=told.size("max_position_embeddings"),
        stops=(generation if "eos_token_id" in generation else told).tokens("eos_token_id"),
        sampling=Sampling(
            temperature=generation.number("temperature", 1.0),
            top_k=generation.size("top_k", 50),
            top_p=generation.number("top_p", 1.0),
        ),
    )
    if config.heads % config.kv_heads:
        raise told.error(f"{config.heads} heads of queries cannot share {config.kv_heads} heads of keys")
    if config.width < 2 or config.width & (config.width - 1):
        raise told.error(f"heads of {config.width} elements are not supported, only powers of two")
    return config


def _check_kind(told: _File) -> None:
    kind = told.get("model_type")
    if kind != "qwen3":
        raise told.error(f"models of type {kind!r} are not supported, only 'qwen3'")
    if told.get("hidden_act", "silu") != "silu":
        raise told.error(f"the activation {told.get('hidden_act')!r} is not supported, only 'silu'")
    if told.switch("attention_bias"):
        raise told.error("attention with a bias is not supported")
    if told.switch("use_sliding_window") or "sliding_attention" in (told.get("layer_types") or ()):
        raise told.error("a sliding window is not supported")
    if told.get("quantization_config"):
        raise told.error("quantised weights (`quantization_config`) are not supported")
    for name in ("rope_scaling", "rope_parameters"):
        scaling = told.get(name) or {"type": "default"}
        if not isinstance(scaling, dict):
            raise told.error(f"`{name}` is {scaling!r}, and should be an object")
        if scaling.get("rope_type", scaling.get("type", "default")) != "default":
            raise told.error(f"scaled positions (`{name}`) are not supported")


def _theta(told: _File) -> float:
    later = told.get("rope_parameters")  # where later versions of the file keep it
    if "rope_theta" not in told and later:
        return told.number("rope_theta", later.get("rope_theta"))
    return told.number("rope_theta")


class _File:
    """A file that holds a JSON object, whose values are of the types that they should be of."""

    def __init__(self, path: Path, *, is_optional: bool = False) -> None:
        self._name = path.name
        self._told: dict[str, Any] = {}
        if is_optional and not path.exists():
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{path} does not exist: --model names the folder of a model") from None
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{path} cannot be read: {error}") from None
        if not isinstance(found, dict):
            raise UserError(f"{path} holds no JSON object")
        self._told = found

    def __contains__(self, name: str) -> bool:
        return self._told.get(name) is not None

    def error(self, text: str) -> UserError:
        return UserError(f"{self._name}: {text}")

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self._told[name] if name in self else otherwise

    def size(self, name: str, otherwise: int | None = None) -> int:
        value = self.get(name, otherwise)
        if type(value) is not int or value < 1:
            raise self.error(f"`{name}` is {value!r}, and should be a size of at least 1")
        return value

    def number(self, name: str, otherwise: float | None = None) -> float:
        value = self.get(name, otherwise)
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise self.error(f"`{name}` is {value!r}, and should be a number above 0")
        return float(value)

    def switch(self, name: str) -> bool:
        value = self.get(name, otherwise=False)
        if type(value) is not bool:
            raise self.error(f"`{name}` is {value!r}, and should be true or false")
        return value

    def tokens(self, name: str) -> tuple[int, ...]:
        value = self.get(name, ())
        found = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if any(type(token) is not int or not 0 <= token < 2**31 for token in found):
            raise self.error(f"`{name}` is {value!r}, and should be a token or a list of tokens")
        return found
