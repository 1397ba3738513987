"""Kernels that pin down cuTile: a real device agrees with the reference backend, and the log misses nothing."""

from __future__ import annotations

import ast
import copy
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilecheck.reference import Launch, Log, run

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


def arguments_of(name: str) -> dict[str, Any]:
    return {key: build(value) for key, value in ARGUMENTS[name].items() if key != "grid"}


def launch(name: str, arguments: dict[str, Any]) -> Log:
    return run(Launch(PATH.as_posix(), name, (ARGUMENTS[name].get("grid", 1), 1, 1), arguments))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_reference_runs_it(name: str) -> None:
    log = launch(name, arguments_of(name))
    expected = {"int32_arithmetic", "merged_constants"}
    assert {record.kind for record in log.undefined} <= ({"overflow", "divisor"} if name in expected else set())


def arrays(arguments: dict[str, Any]) -> dict[tuple[str, int | None], np.ndarray]:
    found: dict[tuple[str, int | None], np.ndarray] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            found[name, None] = value
        elif isinstance(value, list):
            found.update({(name, at): item for at, item in enumerate(value)})
    return found


def touched(log: Log, arguments: dict[str, Any], effects: set[str]) -> dict[tuple[str, int | None], np.ndarray]:
    """For each array, which elements the log says were touched with one of the effects."""
    marks = {key: np.zeros(data.shape, bool) for key, data in arrays(arguments).items()}
    for record in log.accesses:
        mark = marks[record.array, record.member]
        if record.effect not in effects:
            continue
        if record.raw:
            mark.reshape(-1)[record.elements[:, 0]] = True
        else:
            mark[tuple(record.elements.T)] = True
    return marks


@pytest.mark.parametrize("name", ARGUMENTS)
def test_memory_changes_only_where_the_log_says(name: str) -> None:
    before = arguments_of(name)
    after = copy.deepcopy(before)
    log = launch(name, after)
    written = touched(log, after, {"write", "atomic"})
    for key, data in arrays(after).items():
        assert not (data != arrays(before)[key])[~written[key]].any()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_memory_depends_only_on_what_the_log_says_was_read(name: str) -> None:
    plain = arguments_of(name)
    log = launch(name, plain)
    used = touched(log, plain, {"read", "atomic"})
    other = arguments_of(name)
    for key, data in arrays(other).items():
        data[~used[key]] += 1
    again = launch(name, other)
    written = touched(log, plain, {"write", "atomic"})
    for key, data in arrays(plain).items():
        np.testing.assert_array_equal(arrays(other)[key][written[key]], data[written[key]])
    assert [r.elements.tolist() for r in again.accesses] == [r.elements.tolist() for r in log.accesses]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_element_is_logged_twice_by_one_operation(name: str) -> None:
    for record in launch(name, arguments_of(name)).accesses:
        assert record.elements.shape[0] == record.lanes.shape[0]
        assert len(np.unique(record.lanes, axis=0)) == len(record.lanes) or not record.lanes.shape[1]


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
    reference = arguments_of(name)
    launch(name, reference)
    for key, value in reference.items():
        pairs = zip(value, device[key], strict=True) if isinstance(value, list) else [(value, device[key])]
        for ours, theirs in pairs:
            if isinstance(ours, np.ndarray):
                np.testing.assert_allclose(
                    ours, theirs.cpu().numpy(), rtol=2e-6, atol=1e-6, err_msg=f"{name}: {key}"
                )
