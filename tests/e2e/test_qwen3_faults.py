"""What goes wrong with a run of `examples/qwen3`: one clear line, an exit code, and the next run works."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from qwen3_folders import ROOT, SMALLEST, changed, header_of, make, with_header, write_stub

pytest.importorskip("tokenizers", reason="tokenizers is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytestmark = pytest.mark.usefixtures("qwen3")

FOREVER = {"max_position_embeddings": 4096}
SECONDS = 60  # until something that takes two is taken for hanging


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("Qwen3-smallest"), **SMALLEST, **FOREVER)


def run(folder: Path, *options: str, slots: str = "24") -> int:
    from qwen3.__main__ import main

    return main(["--model", str(folder), "--device", "reference", "--max-seq-len", slots, *options])


def assert_one_line(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Nothing on standard output, and on standard error one line of an error, maybe behind the run's first."""
    out, err = capsys.readouterr()
    *before, last = err.splitlines()
    assert out.strip() == ""
    assert last.startswith("qwen3: ")
    assert text in last
    assert all(line.endswith("on the reference backend") for line in before)


def of_header(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    def changed_file(file: bytes) -> bytes:
        header, data = header_of(file)
        return with_header(change(header) or header, data)

    return changed_file


def place(name: str, start: int, end: int) -> Callable[[bytes], bytes]:
    """Other offsets of a tensor of the first file: relative to those that it has."""

    def change(header: dict[str, Any]) -> None:
        found = header[name]["data_offsets"]
        header[name]["data_offsets"] = [found[0] + start, found[1] + end]

    return of_header(change)


def entry(name: str, **values: Any) -> Callable[[bytes], bytes]:
    return of_header(lambda header: header[name].update(values))


NORM = "model.norm.weight"  # 16 elements
DEEP = b"[" * 100_000
WRONG: list[tuple[str, Any, str]] = [
    # ---- SafeTensors
    ("model.safetensors", lambda file: (2**40).to_bytes(8, "little") + file[8:], "its header is longer"),
    ("model.safetensors", lambda file: file[:7], "its header is longer"),
    ("model.safetensors", lambda file: (100).to_bytes(8, "little") + file[8:], "damaged"),
    ("model.safetensors", lambda file: file + b"\0\0", "its tensors take"),
    ("model.safetensors", lambda file: file[:-2], "its tensors take"),
    ("model.safetensors", of_header(lambda header: [header]), "damaged"),
    ("model.safetensors", lambda file: len(DEEP).to_bytes(8, "little") + DEEP, "damaged"),
    ("model.safetensors", place(NORM, -2, 0), "overlap or leave a gap"),
    ("model.safetensors", place(NORM, 2, 0), "overlap or leave a gap"),
    ("model.safetensors", place(NORM, -2, -2), "overlap or leave a gap"),
    ("model.safetensors", place(NORM, 0, 2**40), "overlap or leave a gap"),
    ("model.safetensors", place(NORM, -(2**40), 0), "overlap or leave a gap"),
    ("model.safetensors", place(NORM, 0, -34), "overlap or leave a gap"),  # ends before it starts
    ("model.safetensors", entry(NORM, data_offsets=["0", "32"]), "damaged"),
    ("model.safetensors", entry(NORM, data_offsets=[0]), "damaged"),
    ("model.safetensors", entry(NORM, shape=[15]), "does not take 32 bytes"),
    ("model.safetensors", entry(NORM, shape=[-4, -4]), "no number"),
    ("model.safetensors", entry(NORM, shape=[2.0, 8]), "no number"),
    ("model.safetensors", entry(NORM, shape=[4, 4]), f"`{NORM}` has the shape (4, 4)"),
    ("model.safetensors", entry(NORM, dtype="F32"), "does not take 32 bytes"),
    ("model.safetensors", entry(NORM, dtype="F8_E4M3"), "tensors of type F8_E4M3"),
    ("model.safetensors", of_header(lambda header: header.update(x=header.pop(NORM))), f"no tensor `{NORM}`"),
    # ---- configuration
    ("config.json", {"num_hidden_layers": None}, "`num_hidden_layers` is None"),
    ("config.json", {"num_hidden_layers": True}, "`num_hidden_layers` is True"),
    ("config.json", {"head_dim": None, "num_attention_heads": 64}, "`head_dim` is 0"),
    ("config.json", {"rope_theta": float("inf")}, "`rope_theta` is inf"),
    ("config.json", {"rope_theta": None}, "`rope_theta` is None"),
    ("config.json", {"rms_norm_eps": "1e-6"}, "`rms_norm_eps` is '1e-6'"),
    ("config.json", {"tie_word_embeddings": "false"}, "`tie_word_embeddings` is 'false'"),
    ("config.json", {"model_type": None}, "models of type None"),
    ("config.json", {"hidden_act": "gelu"}, "the activation 'gelu'"),
    ("config.json", {"attention_bias": True}, "with a bias"),
    ("config.json", {"use_sliding_window": True}, "sliding window"),
    ("config.json", {"layer_types": ["full_attention", "sliding_attention"]}, "sliding window"),
    ("config.json", {"quantization_config": {"quant_method": "fp8"}}, "quantised"),
    ("config.json", {"rope_scaling": "yarn"}, "should be an object"),
    ("config.json", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6}}, "`rope_parameters`"),
    ("config.json", lambda file: b"[]", "no JSON object"),
    ("config.json", lambda file: DEEP, "cannot be read"),
    ("config.json", lambda file: b"\xff", "cannot be read"),
    ("generation_config.json", {"eos_token_id": "x"}, "`eos_token_id` is 'x'"),
    ("generation_config.json", {"eos_token_id": [1, 2.5]}, "`eos_token_id` is [1, 2.5]"),
    ("generation_config.json", {"temperature": "hot"}, "`temperature` is 'hot'"),
    ("generation_config.json", lambda file: b"{", "cannot be read"),
    # ---- text
    ("tokenizer_config.json", {"chat_template": "{{ messages + 1 }}"}, "try --raw-prompt"),
    ("tokenizer_config.json", {"chat_template": "{{ raise() }}"}, "try --raw-prompt"),
    ("tokenizer_config.json", {"chat_template": ["x"]}, "`chat_template` is no text"),
    ("tokenizer_config.json", lambda file: b"\xff", "cannot be read"),
]


@pytest.mark.parametrize(("file", "change", "text"), WRONG)
def test_a_folder_is_damaged_or_of_another_model(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, change: Any, text: str
) -> None:
    assert run(changed(folder, tmp_path, file, change), "--prompt", "of") == 2
    assert_one_line(capsys, text)


def split(folder: Path, into: Path, index: Any, files: dict[str, bytes]) -> Path:
    """A copy of a folder whose weights are in files with an index."""
    changed(folder, into, "model.safetensors", None)
    (into / "model.safetensors.index.json").write_text(json.dumps(index))
    for name, data in files.items():
        (into / name).write_bytes(data)
    return into


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ({"weight_map": {NORM: "first.safetensors", "x": "second.safetensors"}}, "second.safetensors"),
        ({"weight_map": {NORM: "../first.safetensors"}}, "is no index"),
        ({"weight_map": {NORM: 1}}, "is no index"),
        ({"weight_map": [NORM]}, "is no index"),
        ({}, "is no index"),
        ([], "is no index"),
        ({"weight_map": {NORM: "first.safetensors", "x": "same.safetensors"}}, "which another file holds too"),
    ],
)
def test_an_index_is_wrong(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], index: Any, text: str
) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    files = {"first.safetensors": whole, "same.safetensors": whole}
    assert run(split(folder, tmp_path, index, files), "--prompt", "of") == 2
    assert_one_line(capsys, text)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--prompt", "\udcff"), "no text in UTF-8"),
        (("--prompt", "a", "--sample", "--host-argmax"), "leave one out"),
        (("--prompt", "a", "--top-k", "5"), "--top-k is of use with --sample alone"),
        (("--prompt", "a", "--sample", "--temperature", "nan"), "have to be numbers"),
        (("--prompt", "of the " * 30), "there are 24 slots: raise --max-seq-len"),
    ],
)
def test_a_command_is_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], text: str
) -> None:
    assert run(folder, *options) == 2
    assert_one_line(capsys, text)


def test_a_certificate_cannot_be_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said before the model is loaded."""
    path = tmp_path / "none" / "run.json"
    assert run(folder, "--prompt", "a", "--certificate", str(path)) == 2
    assert_one_line(capsys, f"{path} cannot be written: No such file or directory")


def test_a_run_that_fails_leaves_no_certificate_of_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qwen3.errors import UserError
    from qwen3.machine import Reference

    def zeros(*_: object) -> None:
        raise UserError("no")

    path = tmp_path / "run.json"
    path.write_text("{}")
    monkeypatch.setattr(Reference, "zeros", zeros)
    assert run(folder, "--prompt", "a", "--certificate", str(path)) == 2
    assert path.read_text() == ""


# ---- memory --------------------------------------------------------------------------------------------------


def test_memory_runs_out(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """More slots than a process has addresses."""
    endless = changed(folder, tmp_path, "config.json", {"max_position_embeddings": 10**15})
    assert run(endless, "--prompt", "a", slots=str(10**15)) == 2
    assert_one_line(capsys, f"the keys and values of {10**15} tokens 128000000.00 GB")


class OutOfMemoryError(RuntimeError):
    """As PyTorch names it."""


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        MemoryError(),
        RuntimeError("cuGraphInstantiate: out of memory"),
        RuntimeError("Triton Error [CUDA]: out of memory"),
        RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: the API call failed"),
    ],
)
def test_memory_of_the_machine_runs_out(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    from qwen3.machine import Reference

    def zeros(*_: object) -> None:
        raise error

    monkeypatch.setattr(Reference, "zeros", zeros)
    assert run(folder, "--prompt", "a") == 2
    assert_one_line(capsys, "not enough memory: the weights take 0.00 GB")


def test_what_is_no_want_of_memory_is_not_taken_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qwen3.machine import Reference

    def zeros(*_: object) -> None:
        raise RuntimeError("an error of ours")

    monkeypatch.setattr(Reference, "zeros", zeros)
    with pytest.raises(RuntimeError, match="an error of ours"):
        run(folder, "--prompt", "a")


# ---- signals -------------------------------------------------------------------------------------------------


def started(folder: Path, scratch: Path, verdicts: Path | None, *options: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(write_stub(scratch)), str(ROOT / "examples"), str(ROOT)])
    command = [sys.executable, "-m", "qwen3", "--model", str(folder), "--device", "reference", "--raw-prompt"]
    return subprocess.Popen(
        [*command, *options],
        env={**os.environ, "PYTHONPATH": path, "TILECHECK_VERDICTS": str(verdicts or "")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


ENDLESS = ("--prompt", "a", "--sample", "--temperature", "9", "--max-new-tokens", "4000")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_is_killed_while_it_generates(
    folder: Path, tmp_path: Path, qwen3_verdicts: Path, number: signal.Signals, code: int
) -> None:
    process = started(folder, tmp_path, qwen3_verdicts, *ENDLESS)
    assert process.stdout is not None
    assert process.stdout.read(1)  # text has begun
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert err.splitlines()[-1] == f"qwen3: stopped by {number.name}"
    assert "Traceback" not in err
    assert run(folder, "--prompt", "a", "--raw-prompt", "--max-new-tokens", "1") == 0


def test_a_run_is_killed_while_it_verifies(folder: Path, tmp_path: Path) -> None:
    process = started(folder, tmp_path, None, *ENDLESS)
    assert process.stderr is not None
    assert process.stderr.readline().endswith("on the reference backend\n")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 143
    assert err == "qwen3: stopped by SIGTERM\n"


def test_who_reads_the_text_has_seen_enough(folder: Path, tmp_path: Path, qwen3_verdicts: Path) -> None:
    process = started(folder, tmp_path, qwen3_verdicts, *ENDLESS)
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.stdout.close()
    assert process.wait(timeout=SECONDS) == 128 + signal.SIGPIPE
    assert process.stderr is not None
    assert process.stderr.read().count("\n") == 1
    process.stderr.close()
