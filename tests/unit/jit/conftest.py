"""Arguments and records for the guard, without PyTorch and without the prover."""

from __future__ import annotations

import pytest

from tilecheck.jit.layouts import contiguous_strides
from tilecheck.jit.records import Argument, Record


class Tensor:
    """The part of PyTorch's interface that the guard reads."""

    def __init__(self, *shape, strides=None, at=0, itemsize=4, dtype="float32"):
        self.shape = shape
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.at = at
        self.itemsize = itemsize
        self.dtype = dtype

    def stride(self):
        return self.strides

    def data_ptr(self):
        return self.at

    def element_size(self):
        return self.itemsize


@pytest.fixture
def tensor():
    return Tensor


@pytest.fixture
def record():
    """Make a record: `out` is written, `x` and `y` are read, a list ends with `*`, other names are numbers."""

    def make(names, *conditions, **fields):
        given = {
            "name": "kernel",
            "file": "k.py",
            "line": 3,
            "sources": {"k.py": "0" * 64},
            "verdict": "conditional",
            "reason": None,
            "arguments": tuple(argument(name) for name in names.split()),
            "grid_axes": (0,),
            "conditions": conditions,
        }
        return Record(**{**given, **fields})

    def argument(name):
        if name.endswith("*"):
            return Argument(name[:-1], "shared", array=True, rank=1, members=True)
        if name in ("out", "x", "y"):
            return Argument(name, "mut" if name == "out" else "shared", array=True, rank=None)
        return Argument(name, "constant" if name.isupper() else "value")

    return make
