"""Triton kernels through `tilecheck.verified` on the GPU: results, refusals, and what else is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    pytest.skip("no NVIDIA GPU", allow_module_level=True)

pytestmark = pytest.mark.gpu
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(*command: str) -> str:
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_kernels_and_the_guard(tmp_path: Path) -> None:
    emitted = str(tmp_path / "verdicts.json")
    sources = ("kernels/triton", str(HERE / "triton_tuned.py"))
    run(sys.executable, "-m", "tilecheck", "verify", *sources, "--emit-verdicts", emitted)
    assert run(sys.executable, str(HERE / "triton_on_gpu.py"), emitted).endswith("\n0 wrong\n")


def test_the_examples() -> None:
    assert "differs" not in run(sys.executable, "-m", "tilecheck", "run", "--backend", "gpu", "kernels/triton")
