"""The engine of `examples/qwen3` on the reference backend: a folder as published, and what users get wrong.

Triton need not be installed: the backend reads the kernels' text, and what stands in for Triton here only lets
their modules be imported.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qwen3_folders import CONFIG, GENERATION, changed, drawn, make, save

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")

pytestmark = pytest.mark.usefixtures("qwen3")

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def weights() -> dict[str, Array]:
    return drawn(CONFIG)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("Qwen3-tiny"))


def logits(config: dict[str, Any], weights: dict[str, Array], tokens: list[int]) -> Array:
    """What the model says after each token, in NumPy."""
    width, half, n = config["head_dim"], config["head_dim"] // 2, len(tokens)
    kv_heads, group = (
        config["num_key_value_heads"],
        config["num_attention_heads"] // config["num_key_value_heads"],
    )
    angle = np.arange(n)[:, None, None] * config["rope_theta"] ** (-np.arange(half) / half)

    def normed(x: Array, name: str) -> Array:
        out: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + config["rms_norm_eps"])
        return out * weights[f"{name}.weight"]

    def turned(x: Array) -> Array:
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate(
            [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1
        )

    def product(x: Array, name: str) -> Array:
        out: Array = x @ weights[f"{name}.weight"].T
        return out

    x = weights["model.embed_tokens.weight"][tokens].astype(np.float64)
    for number in range(config["num_hidden_layers"]):
        layer, attention = f"model.layers.{number}", f"model.layers.{number}.self_attn"
        y = normed(x, f"{layer}.input_layernorm")
        q, k, v = (product(y, f"{attention}.{name}_proj").reshape(n, -1, width) for name in "qkv")
        q, k = turned(normed(q, f"{attention}.q_norm")), turned(normed(k, f"{attention}.k_norm"))
        seen = np.zeros_like(q)
        for head in range(kv_heads * group):
            scores = q[:, head] @ k[:, head // group].T / np.sqrt(width)
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            seen[:, head] = powers / powers.sum(axis=1, keepdims=True) @ v[:, head // group]
        x = x + product(seen.reshape(n, -1), f"{attention}.o_proj")
        y = normed(x, f"{layer}.post_attention_layernorm")
        gate, up = product(y, f"{layer}.mlp.gate_proj"), product(y, f"{layer}.mlp.up_proj")
        x = x + product(gate / (1 + np.exp(-gate)) * up, f"{layer}.mlp.down_proj")
    head = "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head"
    return product(normed(x, "model.norm"), head)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Any, Any, Any]:
    """A machine, whose kernels are judged once, and the model on it."""
    from qwen3.checkpoint import Checkpoint
    from qwen3.config import read_config
    from qwen3.machine import Reference
    from qwen3.weights import load

    machine, config = Reference(), read_config(folder)
    return machine, config, load(Checkpoint(folder), config, machine)


@pytest.fixture
def decoder(loaded: tuple[Any, Any, Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes decoders of the model, whose contexts are split from five positions on."""
    from qwen3 import decoder as decoders

    monkeypatch.setattr(decoders, "SHORT", 5)
    machine, config, weights = loaded

    def made(slots: int, sequences: int = 1, *, stops: tuple[int, ...] = (), sampling: Any = None) -> Any:
        chosen = dataclasses.replace(config, stops=stops)
        return decoders.Decoder(machine, chosen, weights, slots, sampling, 0, sequences)

    return made


def test_each_step_says_what_the_model_says(weights: dict[str, Array], decoder: Callable[..., Any]) -> None:
    """Through the captured graphs of short and of long contexts, and across the change."""
    made = decoder(12)
    tokens = [3, 50, 222, 91]
    made.start([tokens])
    for _ in range(4):
        made.step()
        expected = logits(CONFIG, weights, tokens)[-1]
        np.testing.assert_allclose(made.logits()[0], expected, rtol=1e-4, atol=1e-4)
        tokens.append(int(made.history()[0, len(tokens) - 1]))
        assert tokens[-1] == int(expected.argmax())
    # A step is 5 launches a layer, or 6 where contexts are split; all but the first may start early.
    drawn = made.describe()
    made.start([tokens[:2]])  # by its own steps, token by token, it says the same
    for token in tokens[2:4]:
        made.step(following=[token])
    made.step()
    expected = logits(CONFIG, weights, tokens[:4])[-1]
    np.testing.assert_allclose(made.logits()[0], expected, rtol=1e-4, atol=1e-4)
    assert len(drawn.nodes) == 1 + 2 * 6 + 3
    assert [edge.programmatic for edge in drawn.edges] == [True] * (len(drawn.nodes) - 1)


def continued(weights: dict[str, Array], prompt: list[int], count: int) -> tuple[list[int], list[Array]]:
    """A prompt with the most probable tokens after it, and the logits that each was taken from, in NumPy."""
    tokens, said = list(prompt), []
    for _ in range(count):
        said.append(logits(CONFIG, weights, tokens)[-1])
        tokens.append(int(said[-1].argmax()))
    return tokens, said


def test_each_sequence_of_a_batch_says_what_it_says_alone(
    weights: dict[str, Array], decoder: Callable[..., Any]
) -> None:
    """One fills its slots before the others end, one meets its stop token, two go on, at other positions."""
    slots, given = 8, [[3, 50, 222, 91, 17, 40], [60], [250, 4], [8, 9, 10, 11]]
    alone, said = zip(*(continued(weights, prompt, 5) for prompt in given), strict=True)
    stop = alone[2][3]
    assert all(stop not in tokens for tokens in (*alone[:2], alone[2][:3], alone[3]))
    ends = [3, 5, 2, 5]  # steps after which a sequence stands still
    made = decoder(slots, 4, stops=(stop,))
    made.start(given)
    assert len(made.describe().nodes) == 1 + 2 * 6 + 3  # split, as one context is long
    histories = []
    for step in range(5):
        made.step()
        found = made.logits()
        for sequence, end in enumerate(ends):
            if step < end:
                np.testing.assert_allclose(found[sequence], said[sequence][step], rtol=1e-4, atol=1e-4)
        assert made.finished().tolist() == [step + 1 >= 3, False, step + 1 >= 2, step + 1 >= 5]
        histories.append(made.history())
    expected = histories[0].copy()
    for row, prompt, tokens, end in zip(expected, given, alone, ends, strict=True):
        row[len(prompt) - 1 :][:end] = tokens[len(prompt) :][:end]
    assert histories[-1].tolist() == expected.tolist()  # of each its tokens, and nothing else was written
    made.step(following=[5, 5, stop, 5])  # one that has stood still goes on from where it ended
    made.step()
    np.testing.assert_allclose(made.logits()[2], said[2][2], rtol=1e-4, atol=1e-4)


def test_a_batch_makes_the_tokens_of_its_prompts(
    weights: dict[str, Array], decoder: Callable[..., Any]
) -> None:
    """Up to a stop token, or as many as there are slots for, or as many as are asked for."""
    from qwen3.generate import generate_batch

    prompts = [[60], [3, 50, 222, 91, 17], [8, 9, 10]]
    alone = [continued(weights, prompt, 3)[0][len(prompt) :] for prompt in prompts]
    made = decoder(7, 3, stops=(alone[0][1],))
    assert generate_batch(made, prompts, 3) == [alone[0][:1], alone[1][:2], alone[2]]


def test_each_sequence_draws_its_own_tokens(decoder: Callable[..., Any]) -> None:
    from qwen3.config import Sampling
    from qwen3.generate import generate_batch

    made = decoder(6, 2, sampling=Sampling(temperature=5.0, top_k=6, top_p=1.0))
    one, other = generate_batch(made, [[60], [60]], 3)
    assert one != other


def run(folder: Path, *options: str) -> int:
    from qwen3.__main__ import main

    given = ["--model", str(folder), "--device", "reference", "--max-seq-len", "24", *options]
    return main(given)


def test_text_comes_out(folder: Path, weights: dict[str, Array], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--prompt", "of the", "--raw-prompt", "--max-new-tokens", "3") == 0
    out, err = capsys.readouterr()
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = tokenizer.encode("of the").ids
    for _ in range(3):
        token = int(logits(CONFIG, weights, tokens)[-1].argmax())
        if token in GENERATION["eos_token_id"]:
            break
        tokens.append(token)
    made = tokens[len(tokenizer.encode("of the").ids) :]
    assert out.rstrip("\n") == "".join(tokenizer.decode([token]) for token in made).rstrip("\n")
    assert f"{len(made)} tokens in" in err


def test_a_run_is_certified(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    given = ("--prompt", "of", "--raw-prompt", "--max-new-tokens", "1", "--certificate", str(path))
    assert run(folder, *given) == 0
    told = json.loads(path.read_text())
    assert {kernel["verdict"] for kernel in told["kernels"]} <= {"proved", "conditional"}
    (graph,) = told["graphs"]
    assert {node["name"] for node in graph["nodes"]} <= {kernel["name"] for kernel in told["kernels"]}
    assert all(kernel["conditions"] and not kernel["contracts"] for kernel in told["kernels"])


def test_the_same_seed_draws_the_same_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        options = ("--raw-prompt", "--max-new-tokens", "3", "--sample", "--top-k", "6", "--temperature", "2")
        assert run(folder, "--prompt", "a", *options, "--seed", seed) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_a_folder_of_several_files(tmp_path: Path, weights: dict[str, Array]) -> None:
    from qwen3.checkpoint import Checkpoint

    names = sorted(weights)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, held in files.items():
        save(tmp_path / file, {name: weights[name] for name in held})
    index = {"metadata": {}, "weight_map": {name: file for file, held in files.items() for name in held}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    found = Checkpoint(tmp_path)
    for name, values in weights.items():
        assert np.array_equal(found.tensor(name, values.shape).as_float32(), values)


WRONG = [
    ("config.json", None, "does not exist"),
    ("config.json", lambda data: data[:-1], "cannot be read"),
    ("config.json", {"model_type": "llama"}, "models of type 'llama'"),
    ("config.json", {"hidden_size": "48"}, "`hidden_size` is '48'"),
    ("config.json", {"head_dim": 24}, "heads of 24 elements"),
    ("config.json", {"num_key_value_heads": 3}, "cannot share 3"),
    ("config.json", {"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling"),
    ("config.json", {"num_hidden_layers": 3}, "no tensor `model.layers.2"),
    ("config.json", {"intermediate_size": 96}, "has the shape (80, 48)"),
    ("config.json", {"tie_word_embeddings": False}, "no tensor `lm_head.weight`"),
    ("config.json", {"vocab_size": 5}, "and the model knows 5"),
    ("model.safetensors", None, "holds neither"),
    ("model.safetensors", lambda data: b"", "cannot be read"),
    ("model.safetensors", lambda data: data[:100], "damaged"),
    ("model.safetensors", lambda data: data[:-2], "damaged"),
    ("model.safetensors", lambda data: data.replace(b'"BF16"', b'"I8"  ', 1), "tensors of type I8"),
    ("tokenizer.json", None, "does not exist"),
    ("tokenizer.json", lambda data: data[:50], "is no tokenizer"),
    ("tokenizer_config.json", {"chat_template": "{% for"}, "chat template"),
]


@pytest.mark.parametrize(("file", "change", "text"), WRONG)
def test_what_is_wrong_with_a_folder(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, change: Any, text: str
) -> None:
    assert run(changed(folder, tmp_path, file, change), "--prompt", "of the") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err
    assert err.splitlines()[-1].startswith("qwen3: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--prompt", "of the " * 30), "there are 24 slots: raise --max-seq-len"),
        (("--prompt", "", "--raw-prompt"), "the prompt is empty"),
        (("--prompt", "a", "--sample", "--top-k", "500"), "--top-k is 500"),
        (("--prompt", "a", "--sample", "--temperature", "0"), "have to be above 0"),
        (("--prompt", "a", "--max-new-tokens", "0"), "at least 1"),
    ],
)
def test_what_is_wrong_with_a_command(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], text: str
) -> None:
    assert run(folder, *options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err
