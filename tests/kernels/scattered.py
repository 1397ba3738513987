"""A kernel with a contract on values in memory, for launches that hold it."""

from __future__ import annotations

from collections.abc import Iterator

import cuda.tile as ct
import numpy as np

import tilecheck


# tilecheck: requires distinct(slots) -- each row goes to a slot of its own
@ct.kernel
def scatter_rows(x, slots, out, T: ct.Constant[int]):
    row = ct.bid(0)
    slot = ct.load(slots, index=(row,), shape=()).item()
    columns = ct.arange(T, dtype=ct.int32)
    values = ct.load(x, index=(row, 0), shape=(1, T))
    ct.scatter(out, (slot, columns), ct.reshape(values, (T,)))


def examples() -> Iterator[tilecheck.Example]:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    slots = np.array([4, 0, 2], dtype=np.int32)
    out = np.zeros((5, 4), dtype=np.float32)
    expected = out.copy()
    expected[slots] = x
    yield tilecheck.Example(scatter_rows, (3,), (x, slots, out, 4), {"out": expected})
