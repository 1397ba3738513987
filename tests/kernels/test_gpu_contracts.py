"""Contracts on values in memory, held at launches of cuTile kernels on the GPU: from source and from cubins."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilecheck
from tilecheck.errors import LaunchRefused

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("no NVIDIA GPU", allow_module_level=True)

pytestmark = pytest.mark.gpu
SOURCE = Path(__file__).with_name("scattered.py")


@pytest.fixture(scope="module", params=["source", "cubin"])
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "source":
        spec = importlib.util.spec_from_file_location("scattered", SOURCE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.scatter_rows
    folder = tmp_path_factory.mktemp("compiled")
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    command = ["compile", str(SOURCE), "--arch", arch, "--format", "cubin", "-o", str(folder)]
    ran = subprocess.run(
        [sys.executable, "-m", "tilecheck", *command], cwd=folder, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return tilecheck.load_kernels(folder)["scatter_rows"]


def launch(kernel: Any, slots: list[int], out: Any, *, check: bool | int) -> Any:
    """Scatter three rows to `slots` of `out`; the rows."""
    x = torch.arange(1, 13, dtype=torch.float32, device="cuda").reshape(3, 4)
    args = (x, torch.tensor(slots, dtype=torch.int32, device="cuda"), out, 4)
    tilecheck.launch(torch.cuda.current_stream(), (3,), kernel, args, check_contracts=check)
    return x


@pytest.fixture
def out() -> Any:
    return torch.zeros(5, 4, dtype=torch.float32, device="cuda")


@pytest.mark.parametrize("check", [False, True, 3])
def test_slots_that_keep_the_contract(kernel: Any, out: Any, check: bool | int) -> None:
    x = launch(kernel, [4, 0, 2], out, check=check)
    expected = torch.zeros_like(out)
    expected[[4, 0, 2]] = x
    assert torch.equal(out, expected)


def test_slots_that_break_it_are_refused_before_anything_runs(kernel: Any, out: Any) -> None:
    with pytest.raises(LaunchRefused, match=r"distinct\(slots\)"):
        launch(kernel, [4, 0, 4], out, check=True)
    assert not out.any()


def test_unless_it_is_asked_for_contracts_are_the_callers(kernel: Any, out: Any) -> None:
    x = launch(kernel, [4, 0, 4], out, check=False)
    assert torch.equal(out[0], x[1])


def test_more_elements_than_allowed_are_not_read(kernel: Any, out: Any) -> None:
    with pytest.raises(LaunchRefused, match="more than 2"):
        launch(kernel, [4, 0, 2], out, check=2)
    assert not out.any()
