"""The examples of `examples/host`: by hand they are shown ordered, and on a GPU they give what they should."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "host").glob("*.py"))


def test_there_are_a_pipeline_a_graph_and_a_chain():
    assert [path.stem for path in EXAMPLES] == ["chain", "decode", "pipeline"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_is_ordered(path):
    """What goes through `tilecheck.host` is guarded; all else is shown before."""
    command = (sys.executable, "-m", "tilecheck", "verify", "--no-cache", "--require", "launches")
    command += ("--format", "json", str(path))
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    hosts = {each["name"]: each for each in report["hosts"]}
    assert hosts["by_hand"]["status"] == "ordered"
    assert {each["status"] for each in hosts.values()} == {"ordered", "guarded"}
    assert all(kernel["verdict"] in ("proved", "conditional") for kernel in report["kernels"])


def test_the_engine_and_its_kernels_pass_with_every_launch_decided():
    command = (sys.executable, "-m", "tilecheck", "verify", "--no-cache", "--require", "launches")
    command += ("--format", "json", "examples/qwen3", "kernels")
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    engine = [each for each in report["hosts"] if "qwen3" in each["file"]]
    assert {each["status"] for each in engine} == {"ordered", "guarded"}


@pytest.mark.gpu
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_runs(path):
    for name in ("torch", "triton", "cuda.core"):
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            pytest.skip(f"{name} is not installed")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    if path.stem == "chain" and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("dependent launches need a GPU of compute capability 9.0")
    ran = subprocess.run((sys.executable, str(path)), cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "expected" in ran.stdout
