"""The sizes of a model and how it is asked, from `config.json` and `generation_config.json`."""

from __future__ import annotations

import json
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


def read_config(folder: Path) -> Config:
    """The configuration of the model in a folder.

    Raises:
        UserError: a file is missing or is no configuration of a model that this program runs.
    """
    told = _read(folder / "config.json")
    generation = (
        _read(folder / "generation_config.json") if (folder / "generation_config.json").exists() else {}
    )
    _check_kind(told)
    hidden, heads = _size(told, "hidden_size"), _size(told, "num_attention_heads")
    stops = generation.get("eos_token_id", told.get("eos_token_id", ()))
    config = Config(
        hidden=hidden,
        layers=_size(told, "num_hidden_layers"),
        heads=heads,
        kv_heads=_size(told, "num_key_value_heads"),
        width=_size(told, "head_dim") if "head_dim" in told else hidden // heads,
        intermediate=_size(told, "intermediate_size"),
        vocabulary=_size(told, "vocab_size"),
        theta=_number(told, "rope_theta"),
        eps=_number(told, "rms_norm_eps"),
        is_tied=bool(told.get("tie_word_embeddings", False)),
        positions=_size(told, "max_position_embeddings"),
        stops=tuple(stops) if isinstance(stops, (list, tuple)) else (int(stops),),
        sampling=Sampling(
            temperature=float(generation.get("temperature", 1.0)),
            top_k=int(generation.get("top_k", 50)),
            top_p=float(generation.get("top_p", 1.0)),
        ),
    )
    if config.heads % config.kv_heads:
        raise UserError(
            f"config.json: {config.heads} heads of queries cannot share {config.kv_heads} heads of keys"
        )
    if config.width < 2 or config.width & (config.width - 1):
        raise UserError(f"config.json: heads of {config.width} elements are not supported, only powers of two")
    return config


def _check_kind(told: dict[str, Any]) -> None:
    kind = told.get("model_type")
    if kind != "qwen3":
        raise UserError(f"config.json: models of type {kind!r} are not supported, only 'qwen3'")
    if told.get("hidden_act", "silu") != "silu":
        raise UserError(f"config.json: the activation {told['hidden_act']!r} is not supported, only 'silu'")
    if told.get("attention_bias"):
        raise UserError("config.json: attention with a bias is not supported")
    if told.get("use_sliding_window"):
        raise UserError("config.json: a sliding window is not supported")
    scaling = told.get("rope_scaling")
    if scaling and scaling.get("rope_type", scaling.get("type")) != "default":
        raise UserError("config.json: scaled positions (`rope_scaling`) are not supported")


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: --model names the folder of a model") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no JSON object")
    return found


def _size(told: dict[str, Any], name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(f"config.json: `{name}` is {value!r}, and should be a size of at least 1")
    return value


def _number(told: dict[str, Any], name: str) -> float:
    value = told.get(name)
    if value is None and name == "rope_theta":  # later versions of the file keep it here
        value = (told.get("rope_parameters") or {}).get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise UserError(f"config.json: `{name}` is {value!r}, and should be a number above 0")
    return float(value)
