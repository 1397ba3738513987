"""`benchmarks/qwen3.py` on the reference backend, and the figures that it makes of its runs."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from qwen3_folders import ROOT, write_stub

BENCHMARKS = ROOT / "benchmarks"
MODULES = ("qwen3_accuracy", "qwen3_card", "qwen3_engine", "qwen3_models", "qwen3_plots", "qwen3_records",
           "qwen3_tiles", "qwen3_timeline")  # fmt: skip


@pytest.fixture(scope="module")
def harness(qwen3: None) -> Iterator[ModuleType]:
    """`benchmarks/qwen3.py` as a module, on a machine without PyTorch and Transformers."""
    whole = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name in {"torch", "transformers"} else whole(name, package)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(BENCHMARKS)])  # behind `examples`, which has `qwen3`, too
        spec = importlib.util.spec_from_file_location("qwen3_harness", BENCHMARKS / "qwen3.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        for name in MODULES:
            importlib.import_module(name)
        patch.setattr(importlib.util, "find_spec", find_spec)
        yield module
        for name in MODULES:
            del sys.modules[name]


@pytest.fixture(scope="module")
def folder(harness: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of two sweeps."""
    made = tmp_path_factory.mktemp("runs")
    sweeps = ("--tg", "2", "--pp", "2", "4", "--new", "3", "--reps", "2", "--warmups", "0")
    given = ("run", "tiny", "--device", "reference", *sweeps, "--commit", "abc", "--out", str(made))
    assert harness.main(list(given)) == 0
    return made


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_run_is_a_line(folder: Path) -> None:
    runs = lines(folder / "run.jsonl")
    cells = [(run["name"], run["pp"], run["tg"], run["rep"]) for run in runs]
    swept = [("tg2", 18, 2), ("pp2", 2, 3), ("pp4", 4, 3)]
    assert cells == [(*cell, rep) for cell in swept for rep in (0, 1)]
    for run in runs:
        assert (run["engine"], run["variant"], run["model"], run["batch"]) == ("tilecheck", "graph", "tiny", 1)
        assert (run["prompt_tokens"], run["gen_tokens"]) == (run["pp"], run["tg"])
        assert run["e2e_ms"] == pytest.approx(run["prefill_ms"] + run["decode_ms"])
        assert min(run["prefill_ms"], run["decode_ms"], run["bytes_per_s"]) > 0
        assert (run["card"], run["commit"], run["operations_per_s"]) == ("the reference backend", "abc", None)
        assert {"numpy", "tilecheck"} <= run["versions"].keys()


def test_every_tile_of_every_product_is_timed(
    harness: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiles = sys.modules["qwen3_tiles"]
    for name, value in (("STEPS", 1), ("ROUNDS", 1), ("ONE", ((1, 2), (16,), (4,)))):
        monkeypatch.setattr(tiles, name, value)
    assert harness.main(["tiles", "tiny", "--device", "reference", "--layers", "1"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert "context 18, batch 1, with the tiles of `products.py`: " in first
    for line, name, column in zip(others, tiles.NAMES, ("16+0", "16+0", "16", "16"), strict=True):
        assert line.startswith(f"  {name}: ")
        assert {text.split()[0] for text in line.partition(": ")[2].split(", ")} == {"1", "2"}
        assert line.count(f"x {column} / 4 ") == 2


def test_runs_become_tables_and_plots(folder: Path) -> None:
    """In a process that needs neither a card nor Triton."""
    command = [sys.executable, str(BENCHMARKS / "qwen3.py"), "aggregate", str(folder)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    names = [Path(line).name for line in out.splitlines()]
    assert names == ["aggregate.md", "decode.svg", "prefill.svg", "aggregate.csv"]
    with (folder / "aggregate.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["runs"]) for row in rows] == [("tg2", "2"), ("pp2", "2"), ("pp4", "2")]
    text = (folder / "aggregate.md").read_text()
    assert "| tiny | pp4 | 1 | tilecheck, graph | 2 |" in text
    assert "vLLM and SGLang are not measured" in text
    for name in ("decode.svg", "prefill.svg"):
        ET.parse(folder / name)


def test_there_is_nothing_to_compare_with(
    harness: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("run", "tiny", "--device", "reference", "--engines", "transformers", "--out", str(tmp_path))
    assert harness.main(list(given)) == 0
    assert "no comparison with Transformers: torch and transformers not installed" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_runs_agree(
    harness: ModuleType,
    qwen3_verdicts: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Replays, single launches, and another process; there is no Transformers to compare logits with."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(write_stub(tmp_path)), str(ROOT)]))
    monkeypatch.setenv("TILECHECK_VERDICTS", str(qwen3_verdicts))
    sizes = ("--contexts", "3", "--first", "4", "--steps", "1", "--new", "2", "--batch", "2")
    given = ("accuracy", "tiny", "--device", "reference", *sizes, "--out", str(tmp_path))
    assert harness.main(list(given)) == 0
    (record,) = lines(tmp_path / "accuracy.jsonl")
    out = capsys.readouterr().out
    for who in ("a second run", "an eager run", "a second process"):
        (note,) = (note for note in record["notes"] if note.startswith(f"{who} makes the same tokens; "))
        assert note in out
        # NumPy's products round by where arrays lie, and that is the same in one process only.
        off = float(note.partition("its last logits are off by ")[2].removesuffix(" at most"))
        assert off <= (1e-6 if who == "a second process" else 0)
    assert record["is_right"]
    assert harness.main(["aggregate", str(tmp_path)]) == 0
    assert "tiny, batch 2: as it should be" in (tmp_path / "aggregate.md").read_text()


def test_logits_of_given_text_are_those_of_its_tokens(harness: ModuleType) -> None:
    """Step by step, and each from a prompt of its own."""
    engine = sys.modules["qwen3_engine"].Engine("tiny", "reference", 8, 1)
    text = [3, 50, 22, 61, 17]
    by_steps = list(engine.logits([], text, [2, 3, 4]))
    for count, found in zip((2, 3, 4), by_steps, strict=True):
        (alone,) = engine.logits([], text, [count])
        np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-5)
    assert np.abs(by_steps[0] - by_steps[1]).max() > 0.1


def test_kernels_cannot_be_seen_here(harness: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert harness.main(["timeline", "tiny", "--device", "reference", "--context", "1"]) == 0
    assert capsys.readouterr().out == "tiny, context 1, batch 1: kernels cannot be seen here\n"


# ---- figures -------------------------------------------------------------------------------------------------


def run_of(engine: str, decode_ms: float, prefill_ms: float = 4.0, **changes: Any) -> dict[str, Any]:
    return {
        "at": "now", "model": "4B", "name": "pp18", "pp": 18, "tg": 36, "batch": 2, "engine": engine,
        "variant": "graph", "decode_ms": decode_ms, "prefill_ms": prefill_ms,
        "e2e_ms": prefill_ms + decode_ms, "bytes_per_s": 4e12, "operations_per_s": 8e14, **changes,
    }  # fmt: skip


def test_figures_of_runs(harness: ModuleType) -> None:
    aggregate = sys.modules["qwen3_records"].aggregate
    ours = [run_of("tilecheck", 35 * ms) for ms in (2.0, 3.0, 4.0, 9.0)]
    theirs, other_call = run_of("transformers", 35 * 7.0, 6.0), run_of("transformers", 35.0, at="before")
    mine, second, third = aggregate([*ours, theirs, other_call])
    assert (mine["runs"], mine["step_ms"], mine["step_ms_q1"], mine["step_ms_q3"]) == (4, 3.5, 2.75, 5.25)
    weights = 36 * (2560 * (48 * 128 + 32 * 128 + 3 * 9728) + 2 * 2560 + 2 * 128) + 151_937 * 2560
    moved = 2 * (weights + 2 * 36 * 36 * 2 * 8 * 128)  # two sequences, a mean of 36 tokens, 36 layers, 8 heads
    assert mine["step_bytes"] == moved
    assert mine["decode_share"] == pytest.approx(moved / 3.5e-3 / 4e12)
    assert mine["roofline_tokens_per_s"] == pytest.approx(2 * 4e12 / moved)
    assert mine["decode_tokens_per_s"] == pytest.approx(2 / 3.5e-3)
    assert mine["request_tokens_per_s"] == pytest.approx(72 / (4e-3 + 35 * 3.5e-3))
    layers = 18 * (weights - 151_937 * 2560)
    pairs = 36 * 32 * 18 * 18 * 128  # half of the pairs of two products
    assert mine["prefill_share"] == pytest.approx(
        2 * 2 * (layers + pairs + 151_937 * 2560) / 4e-3 / 8e14, rel=1e-9
    )
    assert (mine["decode_speedup"], mine["prefill_speedup"]) == (2.0, 1.5)
    assert second["decode_speedup"] is third["decode_speedup"] is None


@pytest.mark.parametrize(
    ("model", "giga"), [("0.6B", 1.192), ("4B", 8.045), ("8B", 15.137), ("14B", 27.981), ("32B", 63.968)]
)
def test_bytes_of_the_published_sizes(harness: ModuleType, model: str, giga: float) -> None:
    models = sys.modules["qwen3_models"]
    assert models.bytes_of_step(models.config_of(model), 0, 1) / 1e9 == pytest.approx(giga, abs=6e-4)


def test_greedy_tokens_may_differ_where_bfloat16_cannot_tell(harness: ModuleType) -> None:
    greedy = sys.modules["qwen3_accuracy"].greedy_tokens
    exact = np.array([[1.0, 0.9, 0.0]] * 5)
    theirs = np.array([[1.0, 0.9, 0.2]] * 4 + [[1.0, 0.9, 0.05]])
    ours = np.array([[3.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    # The same; the second best; the third; the same; the second best where bfloat16 could tell.
    assert greedy(ours, theirs, exact) == {"same": 2, "close": 1, "wrong": 2}


def test_measures_of_logits(harness: ModuleType) -> None:
    accuracy = sys.modules["qwen3_accuracy"]
    even, odd = np.zeros(2), np.log([3.0, 1.0])
    assert accuracy.error(np.array([3.0, 5.0]), np.array([3.0, 4.0])) == pytest.approx(0.2)
    assert accuracy.divergence(odd, even) == pytest.approx(0.75 * np.log(1.5) + 0.25 * np.log(0.5))
    assert accuracy.surprise(odd + 100, 1) == pytest.approx(np.log(4))


def test_the_timeline_of_a_layer(harness: ModuleType) -> None:
    """Two steps of three layers of three kernels, the last of which starts while the one before it runs."""
    timeline, models = sys.modules["qwen3_timeline"], sys.modules["qwen3_models"]
    from qwen3.profile import Span

    names = ["embed", *["norm_gemv", "attention", "gemv_add"] * 3, "norm_gemv", "next"]
    assert timeline.period(names) == 3
    spans = []
    for step in range(2):
        starts = 1000.0 * step + np.cumsum([0, 10, 20, 30] + [12, 20, 28] + [30] * 5)
        spans += [Span(name, start, start + 20) for name, start in zip(names, starts, strict=True)]
    config = dataclasses.replace(models.config_of("4B"), layers=3)
    table = timeline.table(config, 1, names, spans, 4e12)
    share = 100 * 2 * 2560 * 48 * 128 / 20e-6 / 4e12
    assert table[2] == f"| norm_gemv | 20.00 | -8.00 | {share:.1f} % |"
    assert table[3] == "| attention | 20.00 | +0.00 |  |"
    assert table[4].startswith("| gemv_add | 20.00 | +8.00 |")
    assert table[-1] == "A layer takes 78.00 us, a step 290.0 us: 12 kernels."


def test_a_chart_shows_each_point(harness: ModuleType) -> None:
    plots = sys.modules["qwen3_plots"]
    text = plots.chart("a <b>", "x", "y", [plots.Series("s", ((18, 40.0), (512, 87.0)))])
    root = ET.fromstring(text)
    circles = [(float(e.get("cx")), float(e.get("cy"))) for e in root.iter() if e.tag.endswith("circle")]
    lowest, highest = plots.HEIGHT - plots.BOTTOM, plots.TOP
    assert [x for x, _ in circles] == [plots.LEFT, plots.WIDTH - plots.RIGHT]
    share = [(lowest - y) / (lowest - highest) for _, y in circles]
    assert share == pytest.approx([0.4, 0.87], abs=1e-3)  # of 100
    assert {"18", "512", "0", "100", "a <b>"} <= {e.text for e in root.iter() if e.tag.endswith("text")}
    assert plots.chart("", "", "", []) == ""


def test_our_logits_are_those_of_transformers(tmp_path: Path, qwen3_verdicts: Path) -> None:
    for name in ("torch", "transformers", "triton"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    sizes = ("--contexts", "4", "12", "--first", "3", "--steps", "4", "--new", "2")
    command = [sys.executable, str(BENCHMARKS / "qwen3.py"), "accuracy", "tiny", "--device", "reference"]
    ran = subprocess.run(
        [*command, *sizes, "--out", str(tmp_path)],
        env={**os.environ, "TILECHECK_VERDICTS": str(qwen3_verdicts)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (record,) = lines(tmp_path / "accuracy.jsonl")
    assert record["worst_error"] < 1e-5
    assert all(at["wrong_theta_error"] > 2e-2 for at in record["contexts"])
