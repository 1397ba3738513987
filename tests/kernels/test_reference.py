"""Each kernel, run by the reference backend, computes what its NumPy reference computes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tilecheck.jit.reference import run
from tilecheck.jit.reference.log import Launch

if TYPE_CHECKING:
    from tests.kernels.conftest import Case
    from tilecheck.jit.reference.log import Log


def launched(case: Case, *, reverse: bool = False) -> Log:
    gx, gy, gz = case.grid
    blocks = [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]
    order = blocks[::-1] if reverse else blocks
    return run(Launch(case.path, case.kernel, case.grid, case.arguments, blocks=order))


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
def test_agrees_with_numpy_in_any_block_order(case: Case, reverse: bool) -> None:
    log = launched(case, reverse=reverse)
    assert log.undefined == []
    out = case.arguments[case.output]
    np.testing.assert_allclose(out, case.expected, rtol=case.tolerance, atol=case.tolerance)


def test_each_output_element_is_written_once(case: Case) -> None:
    log = launched(case)
    written = Counter(
        tuple(element)
        for access in log.accesses
        if access.effect == "write"
        for element in access.elements.tolist()
    )
    shape = case.arguments[case.output].shape
    assert written == Counter(np.ndindex(*shape))


def test_only_the_output_is_written(case: Case) -> None:
    log = launched(case)
    assert {access.array for access in log.accesses if access.effect != "read"} == {case.output}


def test_a_lost_block_is_seen(case: Case) -> None:
    """The poisoned output makes an element that no block writes visible."""
    gx, gy, gz = case.grid
    if gx * gy * gz == 1 or ("persistent" in case.kernel and gx > 3):
        pytest.skip("no block of this launch can be left out")
    blocks = [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)][1:]
    run(dataclasses.replace(Launch(case.path, case.kernel, case.grid, case.arguments), blocks=blocks))
    assert np.isnan(case.arguments[case.output]).any()
