"""The process that analyses one file dies: its kernels are lost, those of other files are judged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

KERNEL = """import triton
import triton.language as tl


@triton.jit
def {name}(out_ptr, n):
    tl.store(out_ptr + tl.program_id(0), 1.0)
"""
# Stands for a crash in a native library, which no input that we know causes any more.
RUN = """import os, signal, sys
import tilecheck.verify.files as analysis

whole = analysis.verify_kernel


def verify_kernel(definition, *rest):
    if definition.name == "deadly":
        os.kill(os.getpid(), signal.SIGSEGV)
    return whole(definition, *rest)


analysis.verify_kernel = verify_kernel
from tilecheck.cli import main

sys.exit(main(["verify", "--no-cache", "-j", "2", "--format", "concise", "."]))
"""


def test_the_kernels_of_one_file_are_lost_and_all_others_are_judged(tmp_path: Path) -> None:
    for k in range(7):
        (tmp_path / f"k{k}.py").write_text(KERNEL.format(name=f"good_{k}"))
    (tmp_path / "k3.py").write_text(KERNEL.format(name="deadly"))
    command = [sys.executable, "-c", RUN]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 4, ran.stderr
    lines = ran.stdout.splitlines()
    judged = [line.split()[-1] for line in lines if line.startswith("conditional")]
    assert judged == ["good_0", "good_1", "good_2", "good_4", "good_5", "good_6"]
    assert [line.split()[-1] for line in lines if line.startswith("unknown")] == ["deadly"]
    assert "because internal" in ran.stdout
