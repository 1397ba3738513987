"""Options of `python -m qwen3` that change how a run is seen, and not what comes out."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qwen3_folders import SMALLEST, make

pytest.importorskip("tokenizers", reason="tokenizers is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytestmark = pytest.mark.usefixtures("qwen3")

NEW = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("Qwen3-smallest"), **SMALLEST)


class Written(io.StringIO):
    """Notes what is written at a time. Mutable."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.parts.append(text)
        return super().write(text)


@pytest.fixture(scope="module")
def usual(folder: Path, qwen3: None) -> list[str]:
    """The parts in which a run without options writes its text."""
    return written(folder)


def run(folder: Path, *options: str) -> int:
    from qwen3.__main__ import main

    given = ("--model", str(folder), "--device", "reference", "--raw-prompt", "--prompt", "c")
    return main([*given, "--max-new-tokens", str(NEW), "--max-seq-len", "16", *options])


def written(folder: Path, *options: str) -> list[str]:
    with redirect_stdout(Written()) as out:
        assert run(folder, *options) == 0
    return [part for part in out.parts if part]


def test_text_comes_while_it_is_made(usual: list[str]) -> None:
    assert len(usual) == NEW + 1
    assert usual[-1] == "\n"


def test_text_comes_at_the_end(folder: Path, usual: list[str]) -> None:
    assert written(folder, "--no-stream") == ["".join(usual[:-1]), "\n"]


def test_the_host_finds_the_tokens_of_the_device(folder: Path, usual: list[str]) -> None:
    assert written(folder, "--host-argmax") == usual


@pytest.fixture
def altered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is done to logits before the host sees them."""
    from qwen3.decoder import Decoder

    changes: list[Any] = []
    whole = Decoder.logits

    def logits(decoder: Any) -> np.ndarray[Any, Any]:
        found = whole(decoder)
        for change in changes:
            change(found)
        return found

    monkeypatch.setattr(Decoder, "logits", logits)
    yield changes
    assert changes


def test_the_host_finds_another_token(
    folder: Path, altered: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    altered.append(lambda logits: logits.__setitem__((0, 7), 1e6))
    assert run(folder, "--host-argmax") == 1
    err = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"qwen3: after position 0 the device takes token \d+, and the host 7: .*", err)


def test_a_logit_is_no_number(folder: Path, altered: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    altered.append(lambda logits: logits.__setitem__((0, logits.argmin()), -np.inf))
    assert run(folder, "--host-argmax") == 1
    assert "of its 300 logits 299 are finite" in capsys.readouterr().err


def test_a_profile_says_where_the_time_went(
    folder: Path, usual: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "--profile") == 0
    out, err = capsys.readouterr()
    assert out == "".join(usual)
    parts = dict(re.findall(r"^  (\w+) +([\d.]+) s$", err, re.MULTILINE))
    assert list(parts) == ["files", "weights", "kernels", "capture", "prompt", "steps"]
    said = re.search(rf"prompt ([\d.]+) s, {NEW} tokens in ([\d.]+) s", err)
    assert said is not None
    assert float(parts["steps"]) == pytest.approx(float(said[2]), abs=0.006)
    assert float(parts["capture"]) + float(parts["prompt"]) >= float(said[1]) - 0.006
    assert err.splitlines()[-1] == "kernels of a step: not available on the reference backend"


def test_a_certificate_has_each_graph(
    folder: Path, tmp_path: Path, usual: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of short contexts, and that of the long ones after it; nothing that is only measured."""
    from qwen3 import decoder

    monkeypatch.setattr(decoder, "SHORT", 3)
    path = tmp_path / "run.json"
    assert written(folder, "--certificate", str(path), "--profile") == usual
    told = json.loads(path.read_text())
    short, long = ([node["name"] for node in graph["nodes"]] for graph in told["graphs"])
    assert "merge_kernel" in long
    assert "merge_kernel" not in short
    launches = {kernel["name"]: kernel["launches"] for kernel in told["kernels"]}
    for name, count in launches.items():  # each kernel first runs by itself, for both kinds of contexts
        assert count == 2 * (short + long).count(name)
    assert launches.keys() >= set(short + long)
