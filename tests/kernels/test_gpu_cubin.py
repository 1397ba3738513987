"""Kernels compiled ahead of time leave the same bits as those that cuTile compiles at the launch."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from kernel_cases import KERNELS, MODULES, examples, kernels, parameters

import tilecheck

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilecheck.jit.cubin import CompiledKernel

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("no NVIDIA GPU", allow_module_level=True)

pytestmark = pytest.mark.gpu

EXAMPLES = [
    pytest.param(module, number, id=f"{kernel}-{number}")
    for module in MODULES
    for number, (kernel, _) in enumerate(examples(module))
]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CompiledKernel]:
    """The library's kernels, compiled for this GPU: here, or elsewhere into the folder TILECHECK_CUBINS."""
    elsewhere = os.environ.get("TILECHECK_CUBINS")
    if elsewhere:
        return tilecheck.load_kernels(elsewhere)
    folder = tmp_path_factory.mktemp("compiled")
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    command = ["compile", str(KERNELS), "--arch", arch, "--format", "cubin", "-o", str(folder)]
    run = [sys.executable, "-m", "tilecheck", *command]
    ran = subprocess.run(
        run, cwd=folder, capture_output=True, text=True
    )  # the installed package, not a checkout
    if "compiler is not installed" in ran.stderr:
        pytest.skip("tileiras is not installed")
    assert ran.returncode == 0, ran.stderr
    return tilecheck.load_kernels(folder)


def on_gpu(value: Any) -> Any:
    """A copy of an array, strides included; numbers are themselves."""
    if not isinstance(value, np.ndarray):
        return value
    strides = [step // value.itemsize for step in value.strides]
    filled = torch.from_numpy(np.ascontiguousarray(value))
    return torch.empty_strided(value.shape, strides, dtype=filled.dtype, device="cuda").copy_(filled)


def launched(example: Any, kernel: Any) -> list[Any]:
    """The arguments after a launch, arrays back in the host's memory."""
    given = tuple(map(on_gpu, example.args))
    tilecheck.launch(torch.cuda.current_stream(), example.grid, kernel, given)
    return [value.cpu().numpy() if isinstance(value, torch.Tensor) else value for value in given]


@pytest.mark.parametrize(("module", "number"), EXAMPLES)
def test_as_from_source(module: str, number: int, compiled: Mapping[str, CompiledKernel]) -> None:
    name, example = examples(module)[number]
    from_source = launched(example, example.kernel)
    from_cubin = launched(example, compiled[name])
    for parameter, one, other in zip(parameters(module, name), from_source, from_cubin, strict=True):
        if not isinstance(one, np.ndarray):
            continue
        assert one.tobytes() == other.tobytes(), parameter
        if parameter in example.expected:
            expected = example.expected[parameter]
            wide = np.int64 if expected.dtype.kind in "iu" else np.float64
            np.testing.assert_allclose(
                other.astype(wide),
                expected.astype(wide),
                rtol=example.tolerance,
                atol=example.tolerance,
                err_msg=parameter,
            )


def test_every_kernel_is_compiled(compiled: Mapping[str, CompiledKernel]) -> None:
    assert set(compiled) == {name for module in MODULES for name in kernels(module)}
