"""Triton kernels are run, compiled and launched; with the real Triton and PyTorch where they are installed.

No GPU is needed: Triton compiles for one without it, and its interpreter runs kernels in NumPy. Where the
compiled kernel would be launched, the launch is looked at instead.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilecheck
from tilecheck.jit import verdicts

ROOT = Path(__file__).parents[2]
TUNED = ROOT / "tests" / "kernels" / "triton_tuned.py"
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
without_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is not None, reason="Triton is installed"
)

MODULE = """
import numpy as np
import tilecheck
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


def examples():
    x = np.arange(100, dtype=np.float32)
    yield tilecheck.Example(double, (2,), (x, np.empty_like(x), 100, 64), {"out_ptr": 2 * x})
"""
ALONE = MODULE.partition("def examples")[0]


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilecheck", *arguments]
    given = {**os.environ, **environment}
    return subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, timeout=300)


@pytest.fixture
def write(tmp_path):
    def write(text=MODULE):
        (tmp_path / "doubling.py").write_text(text)
        return tmp_path

    return write


# ---- where Triton is missing ---------------------------------------------------------------------------------


@without_triton
@pytest.mark.parametrize("command", [("run",), ("compile", "--arch", "sm_90", "-o", "built")])
def test_kernels_are_skipped_where_triton_is_missing(write, command):
    ran = run(*command, "doubling.py", cwd=write())
    assert ran.returncode == 2
    assert "skipped      doubling.py:9  double: Triton is not installed" in ran.stdout
    assert "pip install 'tilecheck[triton]'" in ran.stderr


# ---- run and compile -----------------------------------------------------------------------------------------


@needs_triton
def test_examples_run_on_the_reference_backend(write):
    ran = run("run", "--backend", "reference", "doubling.py", cwd=write())
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "agrees" in ran.stdout


@needs_triton
def test_a_strided_array_keeps_its_strides(write):
    text = MODULE.replace("np.arange(100, dtype=np.float32)", "np.arange(160.0).reshape(10, 16)[:, :10]")
    text = text.replace("np.empty_like(x), 100", "np.zeros((10, 16))[:, :10], 154").replace("(2,)", "(3,)")
    ran = run("run", "--backend", "reference", "doubling.py", cwd=write(text))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "agrees" in ran.stdout


@needs_triton
def test_examples_say_what_is_compiled(write):
    folder = write()
    ran = run("compile", "doubling.py", "--arch", "sm_90", "-o", "built", cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (kernel,) = json.loads((folder / "built" / "triton.json").read_text())["kernels"]
    (cubin,) = kernel["cubins"]
    assert cubin["signature"] == ["*fp32", "*fp32", "i32", "constexpr"]
    assert cubin["constants"] == {"BLOCK": 64}
    assert (folder / "built" / cubin["file"]).read_bytes().startswith(b"\x7fELF")
    assert kernel["language"] == "triton"
    assert not (folder / "built" / "kernels.json").exists()


@needs_triton
def test_a_signature_says_what_is_compiled(write):
    folder = write(ALONE)
    signature = "double=*fp16, *bf16, i64, 256"
    ran = run(*"compile doubling.py --arch sm_90 -o built --signature".split(), signature, cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (kernel,) = json.loads((folder / "built" / "triton.json").read_text())["kernels"]
    assert kernel["cubins"][0]["signature"] == ["*fp16", "*bf16", "i64", "constexpr"]


@needs_triton
@pytest.mark.parametrize(
    ("signature", "told"),
    [
        ("*fp32, *fp32, i32, 64", "names no kernel"),
        ("other=*fp32", "no verified Triton kernel"),
        ("double=*fp32, *fp32, i32", "has 3 parts"),
        ("double=*fp32, *fp32, int, 64", "not a type"),
        ("double=*fp32, *fp32, i32, i32", "not a constant"),
        ("double=*fp32, *fp32, i32, 63", "does not compile"),
    ],
)
def test_a_signature_that_does_not_fit_is_refused(write, signature, told):
    ran = run(*"compile doubling.py --arch sm_90 -o built --signature".split(), signature, cwd=write(ALONE))
    assert ran.returncode == 2
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


@needs_triton
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--arch", "gfx942"), 2, "no architecture"),
        (("--arch", "sm_90", "--format", "tileir"), 0, "no Tile IR"),
    ],
)
def test_what_triton_does_not_make(write, arguments, code, told):
    ran = run("compile", "doubling.py", "-o", "built", *arguments, cwd=write())
    assert ran.returncode == code
    assert told in ran.stdout + ran.stderr


@needs_triton
def test_a_kernel_without_an_example_is_named(write):
    ran = run("compile", "doubling.py", "--arch", "sm_90", "-o", "built", cwd=write(ALONE))
    assert ran.returncode == 1
    assert "no example" in ran.stdout


# ---- launches ------------------------------------------------------------------------------------------------


@needs_triton
@needs_torch
def test_the_kernels_of_the_library_run_in_tritons_interpreter(tmp_path):
    """The script that a machine with a GPU runs, without what needs one."""
    emitted = tmp_path / "verdicts.json"
    wrote = run("verify", "kernels/triton", str(TUNED), "--emit-verdicts", str(emitted), cwd=ROOT)
    assert wrote.returncode == 0, wrote.stdout + wrote.stderr
    script = TUNED.with_name("triton_on_gpu.py")
    ran = subprocess.run(
        [sys.executable, str(script), str(emitted), "--device", "cpu"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("\n0 wrong\n")
    assert ran.stdout.count("refused ") >= 25


@pytest.fixture
def launched(monkeypatch):
    """What Triton is asked to launch, after its own tuners and heuristics."""
    jit = pytest.importorskip("triton.runtime.jit", reason="Triton is not installed")
    tuner = pytest.importorskip("triton.runtime.autotuner", reason="Triton is not installed")
    found = []

    def run(self, *args, grid, warmup, **kwargs):
        named = {name: value for name, value in kwargs.items() if name in self.arg_names}
        bound = inspect.signature(self.fn).bind(*args, **named)
        bound.apply_defaults()
        found.append((grid(dict(bound.arguments)) if callable(grid) else grid, dict(bound.arguments)))

    def bench(call, quantiles):
        call()
        return [1.0, 1.0, 1.0]

    monkeypatch.setattr(jit.JITFunction, "run", run)
    monkeypatch.setattr(tuner.Autotuner, "do_bench", property(lambda self: bench))
    return found


@pytest.fixture
def kernels(monkeypatch):
    monkeypatch.setattr(verdicts, "_known", {})
    monkeypatch.setattr(verdicts, "_state", {"environment": True})
    spec = importlib.util.spec_from_file_location("triton_tuned", TUNED)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "triton_tuned", module)
    spec.loader.exec_module(module)
    return module


@needs_triton
@needs_torch
def test_tritons_own_objects(launched, kernels):
    import torch

    x, out = torch.zeros(5000), torch.zeros(5000)
    fill = tilecheck.verified(kernels.fill_kernel)
    fill[(19,)](out, 1.0, BLOCK=256, num_warps=2)
    assert launched.pop()[0] == (19,)
    with pytest.raises(tilecheck.LaunchRefused, match="grid"):
        fill[(20,)](out, 1.0, BLOCK=256)

    scaled = tilecheck.verified(kernels.scaled_kernel)
    for expected in ([256, 1024, 256], [256]):  # each is tried once, then the first is kept
        scaled[lambda meta: (-(-meta["n"] // meta["BLOCK"]),)](x, out, 5000, 2.0)
        assert [given["BLOCK"] for _, given in launched] == expected
        launched.clear()
    with pytest.raises(tilecheck.LaunchRefused, match="BLOCK = 512"):
        tilecheck.verified(kernels.unmasked_kernel)[(10,)](x, out, 1)

    biased = tilecheck.verified(kernels.biased_kernel)
    biased[(20,)](x, None, out, 5000, 0.5, BLOCK=256)
    biased[(20,)](x, None, out, 4096, 0.5, BLOCK=256)
    assert [given["EVEN"] for _, given in launched] == [False, True]
    launched.clear()
    with pytest.raises(tilecheck.LaunchRefused, match="not a kernel"):
        tilecheck.verified(kernels.doubled)[(1,)](x)
    assert launched == []


@needs_triton
@needs_torch
def test_text_that_was_replaced_is_refused(launched, kernels):
    import torch

    kernel = kernels.fill_kernel
    kernel._unsafe_update_src(kernel.src.replace("BLOCK +", "BLOCK + 1 +"))  # noqa: SLF001 - as programs do it
    with pytest.raises(tilecheck.LaunchRefused, match="text was replaced"):
        tilecheck.verified(kernel)[(1,)](torch.zeros(256), 1.0, BLOCK=256)
    assert launched == []
