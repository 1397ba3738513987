"""`run`, `compile` and `--emit-verdicts`, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.tile", reason="cuda-tile is installed on Linux only")

MODULE = """import cuda.tile as ct
import numpy as np

from tilecheck import Example


@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)


def examples():
    x = np.arange(50, dtype=np.float32)
    yield Example(double, (4,), (x, np.zeros_like(x), 16), {"out": x * 2})
"""
RACE = MODULE.replace("ct.bid(0)", "ct.bid(0) // 2")
WRONG = MODULE.replace('{"out": x * 2}', '{"out": x * 3}')
SILENT = MODULE.replace("def examples", "def other")


def tilecheck(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilecheck", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "doubling.py"
    path.write_text(request.param)
    return path


@pytest.mark.parametrize("module", [MODULE], indirect=True)
def test_run_says_where_it_ran_and_how_near_it_came(module: Path) -> None:
    ran = tilecheck("run", "doubling.py", "--backend", "reference", cwd=module.parent)
    assert (ran.returncode, ran.stderr) == (0, "")
    first, last = ran.stdout.splitlines()
    assert first.startswith("agrees       doubling.py:8  double, grid (4,): within 0,")
    assert last == "ran 1 example on the reference backend (NumPy)"


@pytest.mark.parametrize("module", [WRONG], indirect=True)
def test_run_fails_where_the_result_differs(module: Path) -> None:
    ran = tilecheck("run", "doubling.py", "--backend", "reference", cwd=module.parent)
    assert ran.returncode == 1
    assert "differs      doubling.py:8  double, grid (4,): `out` is 0.333 off, where 0 is allowed" in ran.stdout


@pytest.mark.parametrize("module", [RACE], indirect=True)
@pytest.mark.parametrize("verb", [["run"], ["compile", "--arch", "sm_90", "-o", "made"]], ids=lambda v: v[0])
def test_a_kernel_that_is_not_verified_goes_no_further(module: Path, verb: list[str]) -> None:
    ran = tilecheck(*verb, "doubling.py", cwd=module.parent)
    assert ran.returncode == 1
    assert "not verified doubling.py:8  double: violated" in ran.stdout
    assert "error[TC201]" in ran.stderr
    assert not list(module.parent.glob("made/*.cubin"))


@pytest.mark.parametrize("module", [SILENT], indirect=True)
@pytest.mark.parametrize(
    ("verb", "code"), [(["run"], 2), (["compile", "--arch", "sm_90", "-o", "made"], 1)], ids=["run", "compile"]
)
def test_a_module_without_examples(module: Path, verb: list[str], code: int) -> None:
    ran = tilecheck(*verb, "doubling.py", cwd=module.parent)
    assert ran.returncode == code
    assert "no example says with which types `double` is launched" in ran.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODULE + "\nraise SystemExit(7)\n", "doubling.py cannot be imported: SystemExit: 7"),
        (
            MODULE.replace("x = np.arange", "x = np.range"),
            "examples() of doubling.py fails: AttributeError: module 'numpy' has no attribute 'range'",
        ),
        (MODULE + "\n\ndef examples():\n    yield 3\n", "examples() of doubling.py yields a int"),
    ],
)
def test_a_module_that_cannot_be_run(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "doubling.py").write_text(text)
    ran = tilecheck("run", "doubling.py", "--backend", "reference", cwd=tmp_path)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("module", [MODULE], indirect=True)
def test_run_on_a_gpu_that_is_not_there(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ran = tilecheck("run", "doubling.py", "--backend", "gpu", cwd=module.parent)
    assert ran.returncode == 2
    assert ran.stderr.startswith("tilecheck: there is no GPU to run on: ")


@pytest.mark.parametrize("module", [MODULE], indirect=True)
def test_compile_writes_cubins_tile_ir_and_a_manifest(module: Path) -> None:
    ran = tilecheck("compile", "doubling.py", "--arch", "sm_90", "-o", "made", cwd=module.parent)
    assert (ran.returncode, ran.stderr) == (0, "")
    made = module.parent / "made"
    manifest = json.loads((made / "kernels.json").read_text())
    (kernel,) = manifest["kernels"]
    assert (manifest["arch"], kernel["name"], kernel["verdict"]) == ("sm_90", "double", "conditional")
    assert len(kernel["variants"]) == 3
    for variant in kernel["variants"]:
        assert (made / variant["file"]).read_bytes().startswith(b"\x7fELF")
        assert (made / variant["file"]).with_suffix(".tileir").read_bytes().startswith(b"\x7fTileIR")
        assert variant["symbol"].encode() in (made / variant["file"]).read_bytes()


@pytest.mark.parametrize("module", [MODULE], indirect=True)
def test_compile_for_an_architecture_that_does_not_exist(module: Path) -> None:
    ran = tilecheck("compile", "doubling.py", "--arch", "sm_1", "-o", "made", cwd=module.parent)
    assert ran.returncode == 2
    assert "`double` of doubling.py does not compile for sm_1" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("module", [MODULE], indirect=True)
def test_emitted_verdicts_hold_what_a_launch_must_meet(module: Path) -> None:
    ran = tilecheck("verify", "doubling.py", "-q", "--emit-verdicts", "verdicts.json", cwd=module.parent)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    (kernel,) = json.loads((module.parent / "verdicts.json").read_text())["kernels"]
    assert kernel["conditions"] == ["grid[0] <= cdiv(x.shape[0], T)", "grid[0] <= cdiv(out.shape[0], T)"]
    assert list(kernel["sources"]) == ["doubling.py"]
