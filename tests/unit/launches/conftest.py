"""Host functions as text: what the front end reads in them, and what they really do.

The second half is a torch of a few hundred bytes, enough to run host functions with: tensors are NumPy views,
and `ct.launch` writes down what it is given.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.launch import Launch

HEADER = """
import contextlib
import functools
import math
import operator
import cuda.tile as ct
import torch
import triton
from numpy import prod
from elsewhere import unread

T = 64

@ct.kernel
def copy(x, out, n: ct.Constant[int]):
    pass

@ct.kernel
def pair(x, out):
    pass

@ct.kernel
def other(x, out):
    pass

@ct.kernel
def fill(out):
    pass

def cdiv(a, b):
    return (a + b - 1) // b

def next_power_of_2(n):
    return 1 << (n - 1).bit_length() if n > 1 else 1
"""


def module_text(body: str) -> str:
    return HEADER + textwrap.dedent(body)


@pytest.fixture
def launches(tmp_path: Path) -> Callable[..., tuple[Launch, ...]]:
    """The launches in a module: the kernels above and the given functions."""

    def find(body: str, **siblings: str) -> tuple[Launch, ...]:
        for name, text in siblings.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        path = tmp_path / "host.py"
        path.write_text(module_text(body), encoding="utf-8")
        return find_launches(Project().add(load(path.as_posix())))

    return find


@pytest.fixture
def launch(launches: Callable[..., tuple[Launch, ...]]) -> Callable[..., Launch]:
    """The only launch in a module."""

    def find(body: str, **siblings: str) -> Launch:
        found = launches(body, **siblings)
        assert len(found) == 1, found
        return found[0]

    return find


# ---- running host functions ----------------------------------------------------------------------------------


@dataclass(eq=False)
class FakeTensor:
    """A view of a buffer; `buffer` is the allocation behind it."""

    array: np.ndarray
    buffer: object = field(default_factory=object)

    def _view(self, array: np.ndarray) -> FakeTensor:
        same = np.shares_memory(array, self.array) or array.size == 0
        return FakeTensor(array, self.buffer if same else object())

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    dim = lambda self: self.array.ndim  # noqa: E731
    numel = lambda self: self.array.size  # noqa: E731

    @property
    def dtype(self) -> str:
        return "float32"

    @property
    def device(self) -> str:
        return "cuda"

    @property
    def T(self) -> FakeTensor:
        return self._view(self.array.T)

    def t(self) -> FakeTensor:
        return self._view(self.array.T)

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis: int | None = None) -> Any:
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        return strides if axis is None else strides[axis]

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def contiguous(self) -> FakeTensor:
        return self if self.is_contiguous() else FakeTensor(np.ascontiguousarray(self.array))

    def view(self, *shape: Any) -> FakeTensor:
        return self._view(self.array.reshape(_flat(shape)))

    reshape = view

    def flatten(self, start: int = 0, end: int = -1) -> FakeTensor:
        shape = self.shape
        stop = end % self.ndim
        return self.view(*shape[:start], math.prod(shape[start : stop + 1]), *shape[stop + 1 :])

    def permute(self, *axes: Any) -> FakeTensor:
        return self._view(self.array.transpose(_flat(axes)))

    def transpose(self, a: int, b: int) -> FakeTensor:
        return self._view(self.array.swapaxes(a, b))

    def expand(self, *sizes: Any) -> FakeTensor:
        wanted = _flat(sizes)
        added = len(wanted) - self.ndim
        shape = [s if s != -1 else self.shape[k - added] for k, s in enumerate(wanted)]
        return self._view(np.broadcast_to(self.array, shape))

    def unsqueeze(self, axis: int) -> FakeTensor:
        return self._view(np.expand_dims(self.array, axis))

    def squeeze(self, axis: int) -> FakeTensor:
        return self._view(self.array.squeeze(axis) if self.shape[axis] == 1 else self.array)

    def narrow(self, axis: int, start: int, length: int) -> FakeTensor:
        index = [slice(None)] * self.ndim
        index[axis] = slice(start, start + length)
        return self._view(self.array[tuple(index)])

    def chunk(self, pieces: int, dim: int = 0) -> list[FakeTensor]:
        step = -(-self.shape[dim] // pieces)
        return [self.narrow(dim, k * step, step) for k in range(pieces)]

    def clone(self) -> FakeTensor:
        return FakeTensor(self.array.copy())

    def new_empty(self, *sizes: Any) -> FakeTensor:
        return empty(*sizes)

    def float(self) -> FakeTensor:
        return self

    def __getitem__(self, index: Any) -> FakeTensor:
        return self._view(self.array[index])

    def __mul__(self, other: Any) -> FakeTensor:
        return FakeTensor(self.array * 2)

    def __neg__(self) -> FakeTensor:
        return FakeTensor(-self.array)


def _flat(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes


def empty(*sizes: Any, **_: Any) -> FakeTensor:
    return FakeTensor(np.zeros(_flat(sizes), np.float32))


def _tensor(*shape: int, order: str = "C") -> FakeTensor:
    """An argument; with order F its strides are those of a transposed tensor."""
    return FakeTensor(np.zeros(shape, np.float32, order=order))


@dataclass(frozen=True)
class Seen:
    """What `ct.launch` was given."""

    grid: tuple[int, ...]
    kernel: str
    arguments: tuple[Any, ...]


def _cdiv(a: int, b: int) -> int:
    return -((-a) // b)


def _run_host(body: str, function: str, arguments: dict[str, Any]) -> list[Seen] | None:
    """The launches of one run of a host function; None if it raised, with what came before it lost."""
    seen: list[Seen] = []

    def launch(stream: Any, grid: Any, kernel: Any, kernel_args: Any) -> None:
        seen.append(Seen(tuple(grid), kernel.__name__, tuple(kernel_args)))

    ct = types.SimpleNamespace(cdiv=_cdiv, launch=launch, kernel=_kernel, Constant={int: int})
    sizes = types.SimpleNamespace(multi_processor_count=4)
    cuda = types.SimpleNamespace(current_stream=lambda: None, get_device_properties=lambda device: sizes)
    torch = types.SimpleNamespace(
        empty=empty,
        zeros=empty,
        ones=empty,
        full=lambda sizes, value: empty(sizes),
        empty_like=lambda t: FakeTensor(np.zeros_like(t.array)),
        zeros_like=lambda t: FakeTensor(np.zeros_like(t.array)),
        broadcast_to=lambda t, shape: t.expand(shape),
        cuda=cuda,
        no_grad=contextlib.nullcontext,
        float32="float32",
        float16="float16",
        Tensor=FakeTensor,
    )
    triton = types.SimpleNamespace(cdiv=_cdiv, next_power_of_2=lambda n: 1 << (n - 1).bit_length())
    names: dict[str, Any] = {"ct": ct, "torch": torch, "triton": triton, "math": math, "operator": operator}
    names.update(functools=functools, contextlib=contextlib, prod=math.prod, unread=lambda *a: a[0] if a else 3)
    lines = [line for line in module_text(body).splitlines() if not line.startswith(("import", "from"))]
    exec("\n".join(lines), names)  # text of these tests
    try:
        names[function](**arguments)
    except (AssertionError, ValueError, ZeroDivisionError, IndexError):
        return None
    return seen


def _kernel(function: Any) -> Any:
    function.replace_hints = lambda **hints: function
    function._pyfunc = function  # noqa: SLF001 - what kernels really have
    return function


@pytest.fixture
def run_host() -> Callable[..., list[Seen] | None]:
    return _run_host


@pytest.fixture
def tensor() -> Callable[..., FakeTensor]:
    return _tensor
