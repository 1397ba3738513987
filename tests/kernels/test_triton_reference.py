"""The Triton kernels of the library, run by the reference backend, compute what their NumPy references compute.

Triton need not be installed: the backend reads the kernels' text, and of their modules only `examples` and
`reference` are called.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tilecheck.reference import run
from tilecheck.reference.log import Launch

FOLDER = Path(__file__).parents[2] / "kernels" / "triton"
MODULES = [path.stem for path in sorted(FOLDER.glob("*.py")) if path.stem != "__init__"]
Array = np.ndarray[Any, Any]


@pytest.fixture
def module(request: pytest.FixtureRequest, without_triton: None) -> ModuleType:
    return importlib.import_module(f"tilecheck.kernels.triton.{request.param}")


def parameters(name: str, kernel: str) -> list[str]:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    (found,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel)
    return [a.arg for a in found.args.args]


def flat(array: Array) -> Array:
    """The elements from the first to the last that shape and strides reach, as Triton's pointers see them."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    base = array.base
    assert isinstance(base, np.ndarray)
    assert base.flags.c_contiguous
    return base.reshape(-1)


def kernels(name: str) -> set[str]:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.endswith("_kernel")}


@pytest.mark.parametrize("module", MODULES, indirect=True, ids=str)
@pytest.mark.parametrize("order", [iter, reversed], ids=["first-to-last", "last-to-first"])
def test_examples(module: ModuleType, order: Callable[[Any], Iterator[Any]]) -> None:
    name = Path(str(module.__file__)).stem
    launched = set()
    for example in module.examples():
        kernel = example.kernel.__name__
        arrays = [np.copy(a) if isinstance(a, np.ndarray) and a.base is None else a for a in example.args]
        arguments = dict(zip(parameters(name, kernel), arrays, strict=True))
        grid = (*example.grid, 1, 1)[:3]
        blocks = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
        given = {n: flat(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
        launch = Launch(str(FOLDER / f"{name}.py"), kernel, grid, given, blocks=list(order(blocks)))
        log = run(launch, record=False)
        assert log.undefined == []
        for output, expected in example.expected.items():
            np.testing.assert_allclose(
                arguments[output].astype(np.float64),
                expected.astype(np.float64),
                rtol=example.tolerance,
                atol=example.tolerance,
                err_msg=f"{kernel}: {output}",
            )
        launched.add(kernel)
    assert launched == kernels(name)


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    """Of the four best of a row, the last of which lies beyond the share of `top_p`."""
    sequences, temperature = 500, 0.8
    best = np.array([3.0, 2.2, 1.8, 0.5, -1.0], dtype=np.float32)
    tokens = np.array([40, 3, 77, 12, 5], dtype=np.int32)
    weights = np.exp(best[:4] / temperature)
    kept = np.cumsum(weights / weights.sum()) - weights / weights.sum() < 0.9
    expected = np.where(kept, weights, 0) / weights[kept].sum()
    assert list(kept) == [True, True, True, False]
    state = {
        name: np.zeros(sequences, dtype=np.int32) for name in ("token_ptr", "position_ptr", "finished_ptr")
    }
    arguments = {
        "best_ptr": np.tile(best, sequences),
        "candidate_ptr": np.tile(tokens, sequences),
        "seed_ptr": np.arange(sequences, dtype=np.int32),
        "stop_ptr": np.zeros(1, dtype=np.int32),
        **state,
        "history_ptr": np.zeros(sequences, dtype=np.int32),
        "candidates": 5,
        "stops": 0,
        "slots": 1,
        "temperature": temperature,
        "top_p": 0.9,
        "TOP": 4,
        "RANKS": 4,
        "CANDIDATES": 8,
        "STOPS": 1,
        "DEPENDENT": False,
    }
    launch = Launch(str(FOLDER / "next_token.py"), "sample_token_kernel", (sequences, 1, 1), arguments)
    assert run(launch, record=False).undefined == []
    counts = np.array([np.sum(state["token_ptr"] == token) for token in tokens[:4]])
    assert counts.sum() == sequences
    assert np.all(np.abs(counts - sequences * expected) <= 4 * np.sqrt(sequences * expected))
