"""A position in memory may hold anything: tokens that do not fit in the cache leave it as it is."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_cases import KERNELS, reference, values

from tilecheck.reference import run
from tilecheck.reference.log import Launch

NUMBERS = np.iinfo(np.int32)


@pytest.mark.parametrize("tokens", [3, 9, 10])
@pytest.mark.parametrize("position", [NUMBERS.min, -3, -1, 1, 6, 7, 9, 10, NUMBERS.max - 1, NUMBERS.max])
def test_any_position(position: int, tokens: int) -> None:
    new, cache = values(tokens, 2, 4), 3 + values(9, 2, 4)
    arguments = {
        "keys": new,
        "values": -new,
        "key_cache": cache.copy(),
        "value_cache": -cache,
        "position": np.array([position], dtype=np.int32),
        "TILE_T": 2,
        "TILE_H": 2,
        "TILE_D": 4,
    }
    grid = (-(-tokens // 2), 1, 1)
    path = str(KERNELS / "kv_cache_update.py")
    log = run(Launch(path, "kv_cache_update_kernel", grid, arguments))
    expected = reference("kv_cache_update")(new, cache, position)
    assert log.undefined == []
    np.testing.assert_array_equal(arguments["key_cache"], expected)
    np.testing.assert_array_equal(arguments["value_cache"], -expected)
