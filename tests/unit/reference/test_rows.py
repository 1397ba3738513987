"""Rows as single numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference.values.rows import row_keys

WIDEST = 2**62


@pytest.mark.parametrize("columns", [0, 1, 2, 3])
@pytest.mark.parametrize("largest", [1, 3, 200, 2**40, WIDEST])
@pytest.mark.parametrize("count", [1, 2, 60])
def test_numbers_are_equal_and_ordered_as_the_rows_are(columns: int, largest: int, count: int) -> None:
    rows = np.random.default_rng(columns + count).integers(-largest, largest, (count, columns), np.int64)
    rows = np.concatenate([rows, rows[::2]])  # some stand twice
    keys = row_keys(rows).tolist()
    plain = [tuple(row) for row in rows.tolist()]
    assert [keys[i] < keys[j] for i in range(len(keys)) for j in range(len(keys))] == [
        first < second for first in plain for second in plain
    ]
    assert 0 <= min(keys) <= max(keys) < 8 * len(rows)
