"""Rows of coordinates as single numbers: comparing and sorting these is much faster."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Rows = np.ndarray[Any, Any]
_LARGEST = 1 << 62
_SPARSE = 8  # numbers for each row


def row_keys(rows: Rows) -> Rows:
    """One small number for each row: equal where the rows are equal, and in the order of the rows.

    Args:
        rows: integers, a row for each element and at least one row.

    Returns:
        Numbers from 0 on, of which at most `_SPARSE` for each row are left out: they can be counted and
        used as indices.
    """
    first, last = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    extents = [high - low + 1 for low, high in zip(first, last, strict=True)]
    size = math.prod(extents)
    if size > _LARGEST:  # the numbers below would wrap
        return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1]).reshape(-1)
    keys = np.zeros(len(rows), np.int64)
    for column, low, extent in zip(rows.T, first, extents, strict=True):
        keys = keys * extent + (column - low)
    return keys if size <= _SPARSE * len(rows) else np.asarray(np.unique(keys, return_inverse=True)[1])
