"""Launches of the kernels: what each takes, and what it must leave in memory.

Not a test module: `conftest` registers it as `kernel_cases`. Every example of every module in `kernels/` is a
case; files `cases_*.py` beside this one add small ones, each in a dictionary `CASES` of functions.
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import cuda.tile as ct
import numpy as np

KERNELS = Path(__file__).parents[2] / "kernels"
MODULES = [path.stem for path in sorted(KERNELS.glob("*.py")) if path.stem != "__init__"]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One launch of one kernel. `arguments` are fresh arrays: a run may write them.

    `expected` holds the contents of every array that the launch writes, by parameter.
    """

    module: str
    kernel: str
    grid: tuple[int, int, int]
    arguments: Mapping[str, Any]
    expected: Mapping[str, Array]
    tolerance: float = 0.0

    @property
    def path(self) -> str:
        return str(KERNELS / f"{self.module}.py")


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def load(module: str) -> Any:
    return importlib.import_module(f"tilecheck.kernels.{module}")


def reference(module: str) -> Callable[..., Array]:
    function: Callable[..., Array] = load(module).reference
    return function


def values(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape, dtype=np.float32)


def poison(dtype: Any) -> Any:
    """What a result is not: an element that nobody writes, or that is read too early, stays visible."""
    return np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else np.nan


def poisoned(*shape: int, dtype: Any = np.float32) -> Array:
    return np.full(shape, poison(dtype), dtype=dtype)


def is_poisoned(array: Array) -> bool:
    return np.array_equal(array, np.full_like(array, poison(array.dtype)), equal_nan=array.dtype.kind == "f")


# ---- the examples of the modules -----------------------------------------------------------------------


def kernels(module: str) -> dict[str, Any]:
    """The kernel objects of a module by name."""
    return {name: value for name, value in vars(load(module)).items() if isinstance(value, ct.kernel)}


@functools.cache
def parameters(module: str, kernel: str) -> dict[str, bool]:
    """The parameters of a kernel in order, and whether each is a compile-time constant."""
    tree = ast.parse((KERNELS / f"{module}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            return {a.arg: "Constant" in ast.unparse(a.annotation or a) for a in node.args.args}
    raise LookupError(f"{module}.py defines no kernel {kernel}")


@functools.cache
def examples(module: str) -> list[tuple[str, Any]]:
    """The examples of a module with the names of their kernels. What `np.empty` makes is poisoned."""

    def poisoning(function: Callable[..., Array]) -> Callable[..., Array]:
        def made(*args: Any, **options: Any) -> Array:
            array = function(*args, **options)
            array[...] = poison(array.dtype)
            return array

        return made

    offered = getattr(load(module), "examples", tuple)
    names = {id(value): name for name, value in kernels(module).items()}
    with (
        mock.patch.object(np, "empty", poisoning(np.empty)),
        mock.patch.object(np, "empty_like", poisoning(np.empty_like)),
    ):
        return [(names[id(example.kernel)], example) for example in offered()]


def example_case(module: str, number: int) -> Case:
    kernel, example = examples(module)[number]
    given = [np.copy(a, order="K") if isinstance(a, np.ndarray) else a for a in example.args]
    arguments = dict(zip(parameters(module, kernel), given, strict=True))
    grid = (*example.grid, 1, 1)[:3]
    return Case(module, kernel, grid, arguments, example.expected, example.tolerance)


def example_cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    for module in MODULES:
        for number, (kernel, _) in enumerate(examples(module)):
            yield f"{kernel}-example-{number}", functools.partial(example_case, module, number)
