"""Each kernel, run by the reference backend, computes what its NumPy reference computes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from kernel_cases import MODULES, examples, is_poisoned, kernels

from tilecheck.reference import run
from tilecheck.reference.log import Launch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kernel_cases import Case

    from tilecheck.reference.log import Log

    Block = tuple[int, int, int]
    Make = Callable[[], Case]


def launched(case: Case, blocks: Sequence[Block] | None = None, *, record: bool = True) -> Log:
    return run(Launch(case.path, case.kernel, case.grid, case.arguments, blocks=blocks), record=record)


def blocks_of(case: Case) -> list[Block]:
    gx, gy, gz = case.grid
    return [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]


def check_outputs(case: Case) -> None:
    for name, expected in case.expected.items():
        wide = np.int64 if expected.dtype.kind in "iu" else np.float64
        np.testing.assert_allclose(
            case.arguments[name].astype(wide),
            expected.astype(wide),
            rtol=case.tolerance,
            atol=case.tolerance,
            err_msg=name,
        )


@pytest.fixture(scope="module")
def forward(make: Make) -> tuple[Case, Log]:
    """The case after its launch with the blocks in order, and everything that the launch did."""
    case = make()
    return case, launched(case)


def test_agrees_with_numpy(forward: tuple[Case, Log]) -> None:
    case, log = forward
    assert log.undefined == []
    check_outputs(case)


def test_agrees_with_numpy_in_reverse_order_of_blocks(make: Make) -> None:
    case = make()
    log = launched(case, blocks_of(case)[::-1], record=False)
    assert log.undefined == []
    check_outputs(case)


def test_each_output_element_is_written_once(make: Make, forward: tuple[Case, Log]) -> None:
    """All of an output that comes empty; of one that is updated in place, none twice."""
    before = make().arguments
    case, log = forward
    for name in case.expected:
        written = Counter(
            tuple(element)
            for access in log.accesses
            if access.array == name and access.effect == "write"
            for element in access.elements.tolist()
        )
        if is_poisoned(before[name]):
            assert written == Counter(np.ndindex(*before[name].shape))
        else:
            assert set(written.values()) <= {1}


def test_only_the_outputs_are_written(forward: tuple[Case, Log]) -> None:
    case, log = forward
    assert {access.array for access in log.accesses if access.effect != "read"} == set(case.expected)


def test_a_lost_block_is_seen(make: Make, forward: tuple[Case, Log]) -> None:
    _, log = forward
    lost = next(access.block for access in reversed(log.accesses) if access.effect != "read")
    case = make()
    launched(case, [block for block in blocks_of(case) if block != lost], record=False)
    with pytest.raises(AssertionError):
        check_outputs(case)


@pytest.mark.parametrize("module", MODULES)
def test_every_kernel_has_an_example(module: str) -> None:
    assert {name for name, _ in examples(module)} == set(kernels(module))
