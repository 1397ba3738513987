"""Steps of decoding of Qwen3 models with random weights, beside the bandwidth of the card and Transformers.

    python benchmarks/qwen3.py 0.6B [4B ...] [--steps N] [--contexts 18 ...]

Needs an NVIDIA GPU, PyTorch, Triton and Transformers. For each model: the logits after a prompt against those
of Transformers with the same weights, both in bfloat16, and the time of a step with its token fed back on the
device.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from qwen3.checkpoint import Tensor
from qwen3.config import Config, Sampling
from qwen3.decoder import Decoder
from qwen3.machine import Cuda
from qwen3.weights import load

# hidden, layers, heads, kv_heads, intermediate, tied
SIZES = {
    "0.6B": (1024, 28, 16, 8, 3072, True),
    "1.7B": (2048, 28, 16, 8, 6144, True),
    "4B": (2560, 36, 32, 8, 9728, True),
    "8B": (4096, 36, 32, 8, 12288, False),
    "14B": (5120, 40, 40, 8, 17408, False),
    "32B": (5120, 64, 64, 8, 25600, False),
}
VOCABULARY, WIDTH = 151_936, 128


def config_of(name: str) -> Config:
    hidden, layers, heads, kv_heads, intermediate, is_tied = SIZES[name]
    return Config(
        hidden=hidden, layers=layers, heads=heads, kv_heads=kv_heads, width=WIDTH, intermediate=intermediate,
        vocabulary=VOCABULARY, theta=1e6, eps=1e-6, is_tied=is_tied, positions=40_960, stops=(),
        sampling=Sampling(0.6, 20, 0.95),
    )  # fmt: skip


def bytes_read(config: Config) -> int:
    """Of weights, in a step: all but an embedding that is not the output layer."""
    heads = (config.heads + 2 * config.kv_heads) * config.width
    of_layer = config.hidden * (heads + config.heads * config.width + 3 * config.intermediate)
    return 2 * (config.layers * of_layer + config.vocabulary * config.hidden)


def bandwidth() -> float:
    """Bytes a second of reading 4 GiB."""
    data = torch.empty(2**30, dtype=torch.float32, device="cuda")
    taken = []
    for _ in range(12):
        torch.cuda.synchronize()
        began = time.perf_counter()
        data.sum()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return data.numel() * 4 / statistics.median(taken[2:])


class Weights:
    """The weights of a model of Transformers, as a checkpoint gives them."""

    def __init__(self, model: Any) -> None:
        self._found = model.state_dict()

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        found = self._found[name]
        assert tuple(found.shape) == shape, name
        return Tensor(found.contiguous().view(torch.int16).cpu().numpy().view(np.uint16), "BF16")


def reference(config: Config) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    told = Qwen3Config(
        vocab_size=config.vocabulary, hidden_size=config.hidden, intermediate_size=config.intermediate,
        num_hidden_layers=config.layers, num_attention_heads=config.heads, num_key_value_heads=config.kv_heads,
        head_dim=config.width, rms_norm_eps=config.eps, rope_theta=config.theta,
        tie_word_embeddings=config.is_tied, max_position_embeddings=config.positions,
    )  # fmt: skip
    if hasattr(told, "rope_parameters"):  # of later versions
        told.rope_parameters = {"rope_type": "default", "rope_theta": config.theta}
    torch.manual_seed(0)
    with torch.device("cuda"):
        return Qwen3ForCausalLM(told).to(torch.bfloat16).eval()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["0.6B"], choices=SIZES)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--contexts", type=int, nargs="*", default=[18, 512])
    parser.add_argument("--by-steps", action="store_true", help="take prompts in token by token")
    given = parser.parse_args()
    read = bandwidth()
    print(
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, reads {read / 1e12:.2f} TB/s", flush=True
    )
    for name in given.models:
        config, machine = config_of(name), Cuda()
        model = reference(config)
        decoder = Decoder(machine, config, load(Weights(model), config, machine), 1024, None, 0)
        prompt = np.random.default_rng(0).integers(0, VOCABULARY, max(given.contexts)).tolist()
        for context in given.contexts:
            decoder.start(prompt[:1] if given.by_steps else prompt[:context])
            for token in prompt[1:context] if given.by_steps else ():
                decoder.step(following=token)
            decoder.step()
            found = torch.tensor(decoder.logits())
            tokens = torch.tensor([prompt[:context]], device="cuda")
            with torch.no_grad():
                theirs = model(tokens).logits[0, -1].float().cpu()
                expected = model.float()(tokens).logits[0, -1].cpu()
                model.bfloat16()
            error, their_error = (((x - expected).norm() / expected.norm()).item() for x in (found, theirs))
            began = time.perf_counter()
            for _ in range(given.steps):
                decoder.step()
            decoder.history()
            taken = (time.perf_counter() - began) / given.steps
            share = 100 * bytes_read(config) / taken / read
            print(f"{name} context {context}: {taken * 1e6:.0f} us, {1 / taken:.0f} steps/s, {share:.1f} %")
            print(f"    logits off by {error:.4f} from those in float32, theirs by {their_error:.4f}")
            print(f"    the same token: {bool(found.argmax() == expected.argmax())}")
            sys.stdout.flush()
        del decoder, model
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
