"""The reference backend and a real device give the same memory after the same launch."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilecheck.jit.reference import Launch, Log, run

PATH = Path(__file__).with_name("device_kernels.py")


def _arguments() -> dict[str, dict[str, Any]]:
    """The table at the end of the kernels' file, read as text: the file is not imported here."""
    for node in ast.parse(PATH.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ARGUMENTS":
            arguments: dict[str, dict[str, Any]] = ast.literal_eval(node.value)
            return arguments
    raise AssertionError


ARGUMENTS = _arguments()


def build(description: Any) -> Any:
    """An argument from its description."""
    if isinstance(description, list):
        return [build(item) for item in description]
    if not isinstance(description, tuple):
        return description
    dtype, *shape = description
    contents = shape.pop() if not isinstance(shape[-1], int) else "zeros"
    size = int(np.prod(shape))
    values = {"zeros": np.zeros(size), "count": np.arange(size), "mixed": np.arange(size) * 7 % 11 - 4}
    data = np.array(contents) if isinstance(contents, list) else values[contents]
    return data.astype(dtype).reshape(shape)


def on_reference(name: str) -> tuple[dict[str, Any], Log]:
    arguments = {key: build(value) for key, value in ARGUMENTS[name].items() if key != "grid"}
    log = run(Launch(PATH.as_posix(), name, (ARGUMENTS[name].get("grid", 1), 1, 1), arguments))
    return arguments, log


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_reference_runs_it(name: str) -> None:
    _, log = on_reference(name)
    expected = {"int32_arithmetic", "merged_constants"}
    assert {record.kind for record in log.undefined} <= ({"overflow", "divisor"} if name in expected else set())


@pytest.mark.gpu
@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_device_agrees(name: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tile = pytest.importorskip("cuda.tile", reason="needs cuda-tile")
    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    spec = importlib.util.spec_from_file_location("device_kernels", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def move(value: Any) -> Any:
        if isinstance(value, list):
            return [move(item) for item in value]
        return torch.from_numpy(value).cuda() if isinstance(value, np.ndarray) else value

    described = ARGUMENTS[name]
    device = {key: move(build(value)) for key, value in described.items() if key != "grid"}
    grid = (described.get("grid", 1), 1, 1)
    tile.launch(torch.cuda.current_stream(), grid, getattr(module, name), tuple(device.values()))
    torch.cuda.synchronize()
    reference, _ = on_reference(name)
    for key, value in reference.items():
        pairs = zip(value, device[key], strict=True) if isinstance(value, list) else [(value, device[key])]
        for ours, theirs in pairs:
            if isinstance(ours, np.ndarray):
                np.testing.assert_allclose(
                    ours, theirs.cpu().numpy(), rtol=2e-6, atol=1e-6, err_msg=f"{name}: {key}"
                )
