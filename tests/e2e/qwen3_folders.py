"""Folders of models as Qwen publishes them: small random weights, and a tokenizer of the licence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
Array = np.ndarray[Any, Any]

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "eos_token_id": 1,
    "head_dim": 32,
    "hidden_act": "silu",
    "hidden_size": 48,
    "intermediate_size": 80,
    "max_position_embeddings": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 300,
}
SMALLEST = {
    "head_dim": 16,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "num_key_value_heads": 1,
}
GENERATION: dict[str, Any] = {
    "do_sample": True,
    "eos_token_id": [1, 2],
    "temperature": 0.6,
    "top_k": 20,
    "top_p": 0.95,
}
TEMPLATE = (
    "{%- for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, width, inner = config["hidden_size"], config["head_dim"], config["intermediate_size"]
    queries, keys = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens": (config["vocab_size"], hidden),
        "model.norm": (hidden,),
    }
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        found |= {
            f"{name}.input_layernorm": (hidden,),
            f"{name}.self_attn.q_proj": (queries, hidden),
            f"{name}.self_attn.k_proj": (keys, hidden),
            f"{name}.self_attn.v_proj": (keys, hidden),
            f"{name}.self_attn.q_norm": (width,),
            f"{name}.self_attn.k_norm": (width,),
            f"{name}.self_attn.o_proj": (hidden, queries),
            f"{name}.post_attention_layernorm": (hidden,),
            f"{name}.mlp.gate_proj": (inner, hidden),
            f"{name}.mlp.up_proj": (inner, hidden),
            f"{name}.mlp.down_proj": (hidden, inner),
        }
    if not config["tie_word_embeddings"]:
        found["lm_head"] = (config["vocab_size"], hidden)
    return {f"{name}.weight": shape for name, shape in found.items()}


def drawn(config: dict[str, Any]) -> dict[str, Array]:
    """Weights that bfloat16 holds exactly."""
    rng = np.random.default_rng(5)
    found = {}
    for name, shape in shapes(config).items():
        values = rng.standard_normal(shape).astype(np.float32) * (1 if len(shape) == 1 else shape[-1] ** -0.5)
        found[name] = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return found


def save(path: Path, tensors: dict[str, Array]) -> None:
    """A SafeTensors file of bfloat16."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, values in tensors.items():
        raw = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": values.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    path.write_bytes(with_header(header, data))


def with_header(header: Any, data: bytes) -> bytes:
    """The bytes of a SafeTensors file."""
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def header_of(file: bytes) -> tuple[Any, bytes]:
    """Header and data of a SafeTensors file."""
    length = int.from_bytes(file[:8], "little")
    return json.loads(file[8 : 8 + length]), file[8 + length :]


def train(folder: Path, vocabulary: int) -> None:
    """A tokenizer of bytes, trained on the licence, which does not change."""
    import tokenizers  # lazy: not everywhere installed

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|endoftext|>", "<|im_end|>", "<|im_start|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([(ROOT / "LICENSE").read_text(encoding="utf-8")], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))


def make(folder: Path, **changes: Any) -> Path:
    """A whole folder; `changes` are of its configuration."""
    config = {**CONFIG, **changes}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps(GENERATION))
    save(folder / "model.safetensors", drawn(config))
    train(folder, config["vocab_size"])
    return folder


def changed(folder: Path, into: Path, file: str, change: Any) -> Path:
    """A copy of a folder with one file changed: without it (None), by a function of its bytes, or by new values
    of its JSON object."""
    for path in folder.iterdir():
        (into / path.name).write_bytes(path.read_bytes())
    if change is None:
        (into / file).unlink()
    elif callable(change):
        (into / file).write_bytes(change((into / file).read_bytes()))
    else:
        told = json.loads((into / file).read_text())
        (into / file).write_text(json.dumps({**told, **change}))
    return into


def write_stub(folder: Path) -> Path:
    """What lets processes import modules of Triton kernels, with or without Triton: a folder for their path."""
    package = folder / "triton_stub" / "triton"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("def jit(function):\n    return function\n")
    (package / "language.py").write_text("constexpr = int\n")
    return package.parent
