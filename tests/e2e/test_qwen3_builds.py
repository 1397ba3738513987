"""The Triton kernels of the engine compile for Hopper, with the types and tiles that it launches them with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed")
ROOT = Path(__file__).parents[2]
KERNELS = 17  # that the engine has in Triton


def test_every_kernel_of_the_engine_compiles() -> None:
    script = Path(__file__).with_name("qwen3_builds.py")
    given = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("examples", "benchmarks")),
    }
    ran = subprocess.run(
        [sys.executable, script], env=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert len({line.split()[0] for line in ran.stdout.splitlines()}) == KERNELS
