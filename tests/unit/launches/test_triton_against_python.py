"""Every host function here is read, and also run: both must tell of the same launches of Triton kernels.

For each launch that really happens there must be one that was found whose facts hold, and whose grid, numbers,
and spans of tensors are those that were really passed. Of a tuned kernel every configuration happens.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.launches.test_against_python import _cases, _holds, _solutions, _values
from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.expr import Expr, Symbol, evaluate, symbols
from tilecheck.ir.host import SPAN, TEST
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.proof.launches.inputs.spans import span, span_facts

HEADER = """
import torch
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, y_ptr, sx, sy, n, BLOCK: tl.constexpr):
    pass

@triton.jit
def flat(x_ptr, y_ptr, n, BLOCK: tl.constexpr = 64):
    pass

def configs(split):
    found = []
    for size in (2, 4):
        found.append(triton.Config({"BLOCK": size, "SPLIT": split}, num_stages=3))
    return found

@triton.autotune(configs=configs(1) + [triton.Config({"BLOCK": 8, "SPLIT": 2})], key=["n"])
@triton.jit
def tuned(x_ptr, y_ptr, n, BLOCK: tl.constexpr, SPLIT: tl.constexpr):
    pass

@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b in [2, 4] for w in (1, 2)], key=[])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "WIDE": lambda args: args["n"] + 1})
@triton.jit
def sized(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr):
    pass
"""
POINTERS = ("x_ptr", "y_ptr")
HOSTS = _cases("triton_hosts.txt")


class Kernel:
    """A kernel that writes down its launches, one for each configuration."""

    def __init__(self, function: Any, seen: list[Any]) -> None:
        self.function, self.seen = function, seen
        self.configs: list[dict[str, Any]] = [{}]
        self.heuristics: dict[str, Any] = {}

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        code = self.function.__code__
        names = code.co_varnames[: code.co_argcount]
        defaults = dict(zip(reversed(names), reversed(self.function.__defaults__ or ()), strict=False))

        def launch(*args: Any, **kwargs: Any) -> None:
            for config in self.configs:
                given = defaults | dict(zip(names, args, strict=False)) | kwargs | config
                for name, heuristic in self.heuristics.items():
                    given[name] = heuristic(given)
                size = grid(given) if callable(grid) else grid
                size = tuple(size) if isinstance(size, tuple | list) else (size,)
                self.seen.append((self.function.__name__, size, {n: given[n] for n in names}))

        return launch


def run_host(body: str, arguments: dict[str, Any]) -> list[Any] | None:
    """The launches of one run; None if it raised."""
    seen: list[Any] = []
    tensor = type(arguments["x"])

    def empty(*sizes: Any) -> Any:
        return tensor(np.zeros(sizes[0] if isinstance(sizes[0], tuple) else sizes, np.float32))

    def like(t: Any) -> Any:
        return tensor(np.zeros_like(t.array))

    def autotune(configs: Any, key: Any) -> Any:
        def decorate(kernel: Kernel) -> Kernel:
            kernel.configs = configs
            return kernel

        return decorate

    def heuristics(values: Any) -> Any:
        def decorate(kernel: Kernel) -> Kernel:
            kernel.heuristics = values
            return kernel

        return decorate

    names: dict[str, Any] = {
        "torch": types.SimpleNamespace(empty=empty, zeros=empty, empty_like=like),
        "tl": types.SimpleNamespace(constexpr=int),
        "triton": types.SimpleNamespace(
            jit=lambda function: Kernel(function, seen),
            Config=lambda values, **options: values,
            autotune=autotune,
            heuristics=heuristics,
            cdiv=lambda a, b: -((-a) // b),
            next_power_of_2=lambda n: 1 << (n - 1).bit_length(),
        ),
    }
    lines = [line for line in (HEADER + body).splitlines() if not line.startswith("import")]
    exec("\n".join(lines), names)  # text of these tests
    try:
        names["host"](**arguments)
    except AssertionError:
        return None
    return seen


def real_span(t: Any) -> int:
    if 0 in t.shape:
        return 0
    return 1 + sum((n - 1) * t.stride(k) for k, n in enumerate(t.shape))


def known(arguments: dict[str, Any]) -> Callable[[Symbol], int | bool]:
    usual = _values(arguments)

    def value(symbol: Symbol) -> int | bool:
        if symbol.origin == SPAN and "`" not in symbol.name:
            return real_span(arguments[symbol.name.rpartition(".")[0]])
        if symbol.origin == TEST:
            return False
        return usual(symbol)

    return value


def agrees(launch: Launch, real: Any, of: Callable[[Symbol], int | bool]) -> bool:
    kernel, grid, given = real
    if launch.kernel != kernel or launch.grid is None or len(launch.grid) != len(grid):
        return False
    if any(g is None or evaluate(g, of) != size for g, size in zip(launch.grid, grid, strict=True)):
        return False
    return list(given) == [name for name, _ in launch.arguments] and all(
        is_passed(name, value, given[name], of) for name, value in launch.arguments
    )


def is_passed(name: str, value: Any, real: Any, of: Callable[[Symbol], int | bool]) -> bool:
    match value:
        case HostTensor() if isinstance(real, int):
            return value.number is not None and evaluate(value.number, of) == real
        case HostTensor():
            reach = span(value, name)
            if any(s.name.startswith("`") for s in symbols(reach)):
                return True  # nothing is said of it
            return bool(evaluate(reach, of) == real_span(real))
        case Expr():
            return bool(evaluate(value, of) == real)
        case _:
            return False


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_host(name: str, order: str, tensor: Any, tmp_path: Path) -> None:
    path = tmp_path / "host.py"
    path.write_text(HEADER + HOSTS[name], encoding="utf-8")
    found = [la for la in find_launches(Project().add(load(path.as_posix()))) if la.function == "host"]
    assert all(la.problem is None for la in found)
    happened = 0
    for shape, other, k in (((4, 6), (4, 6), 2), ((2, 3), (5, 3), 3), ((1, 4), (1, 4), 0)):
        if order == "F" and 1 in shape:
            continue  # a stride that selects nothing is taken for that of row-major order
        arguments = {"x": tensor(*shape, order=order), "y": tensor(*other), "k": k}
        for real in run_host(HOSTS[name], dict(arguments)) or ():
            happened += 1
            told = (
                agrees(la, real, of) and all(_holds(fact, of) for fact in span_facts(la, POINTERS))
                for la in found
                for of in _solutions(la, known(arguments))
            )
            assert any(told), (real, [la for la in found if la.kernel == real[0]])
    assert happened or order == "F"
