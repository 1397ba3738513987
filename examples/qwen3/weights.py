"""The weights of a model on a machine, joined as the kernels take them."""

from __future__ import annotations

from dataclasses import dataclass

from qwen3.checkpoint import Checkpoint
from qwen3.config import Config
from qwen3.machine import Machine
from tilecheck import host


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of one layer: matrices are [outputs, inputs]."""

    attention_gain: host.Shared
    qkv: host.Shared  # queries, keys and values, one below the other
    q_gain: host.Shared
    k_gain: host.Shared
    output: host.Shared
    feed_gain: host.Shared
    gate_up: host.Shared
    down: host.Shared


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights of a model."""

    embedding: host.Shared
    layers: tuple[Layer, ...]
    gain: host.Shared
    head: host.Shared


def load(checkpoint: Checkpoint, config: Config, machine: Machine) -> Weights:
    """Bring the weights of a checkpoint to a machine.

    Raises:
        UserError: a tensor is missing, or has not the shape that the configuration says.
    """
    hidden, width, intermediate = config.hidden, config.width, config.intermediate
    queries, keys = config.heads * width, config.kv_heads * width

    def joined(*parts: tuple[str, tuple[int, ...]]) -> host.Shared:
        return machine.weight([checkpoint.tensor(f"{name}.weight", shape) for name, shape in parts])

    def layer(number: int) -> Layer:
        name = f"model.layers.{number}"
        attention = f"{name}.self_attn"
        return Layer(
            attention_gain=joined((f"{name}.input_layernorm", (hidden,))),
            qkv=joined(
                (f"{attention}.q_proj", (queries, hidden)),
                (f"{attention}.k_proj", (keys, hidden)),
                (f"{attention}.v_proj", (keys, hidden)),
            ),
            q_gain=joined((f"{attention}.q_norm", (width,))),
            k_gain=joined((f"{attention}.k_norm", (width,))),
            output=joined((f"{attention}.o_proj", (hidden, queries))),
            feed_gain=joined((f"{name}.post_attention_layernorm", (hidden,))),
            gate_up=joined(
                (f"{name}.mlp.gate_proj", (intermediate, hidden)),
                (f"{name}.mlp.up_proj", (intermediate, hidden)),
            ),
            down=joined((f"{name}.mlp.down_proj", (hidden, intermediate))),
        )

    table = (config.vocabulary, hidden)
    embedding = joined(("model.embed_tokens", table))
    return Weights(
        embedding=embedding,
        layers=tuple(map(layer, range(config.layers))),
        gain=joined(("model.norm", (hidden,))),
        head=embedding if config.is_tied else joined(("lm_head", table)),
    )
