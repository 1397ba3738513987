"""The guard of `tilecheck.launch` accepts every example of the library, and refuses one block too many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_cases import MODULES, examples

from tilecheck.errors import LaunchRefused
from tilecheck.jit.guard import compile_guard
from tilecheck.jit.verdicts import record_for


class OnDevice:
    """An array as another framework would hand it over."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}
        self.array = array


def guarded(example: Any, grid: tuple[int, ...]) -> None:
    check = compile_guard(record_for(example.kernel._pyfunc))  # noqa: SLF001 - as `tilecheck.launch` finds it
    check(grid, [OnDevice(a) if isinstance(a, np.ndarray) else a for a in example.args])


@pytest.mark.parametrize("module", MODULES)
def test_examples_are_accepted(module: str) -> None:
    for _, example in examples(module):
        guarded(example, example.grid)


@pytest.mark.parametrize("module", ["vector_add", "transpose", "embedding", "flash_attention"])
def test_a_block_too_many_is_refused(module: str) -> None:
    _, example = examples(module)[0]
    with pytest.raises(LaunchRefused, match="grid"):
        guarded(example, (example.grid[0] + 1, *example.grid[1:]))
