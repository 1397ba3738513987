"""Which loads may leave lanes undefined: those alone are run with other values in them."""

from __future__ import annotations

import pytest

from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.proof.initialisation.undefined_lanes import may_leave_undefined
from tilecheck.text import decode

TRITON = """
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, n, fill, B: tl.constexpr, NONE: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i{how}), mask=i < n)
"""
CUTILE = """
import cuda.tile as ct


@ct.kernel
def kernel(x, out, T: ct.Constant[int], mode: ct.Constant):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,){how}))
"""


@pytest.mark.parametrize(
    ("text", "how", "may"),
    [
        (TRITON, "", False),  # every lane is loaded
        (TRITON, ", mask=i < n", True),
        (TRITON, ", mask=i < n, other=None", True),
        (TRITON, ", mask=i < n, other=NONE", True),  # a launch may pass None
        (TRITON, ", mask=i < n, other=0.0", False),
        (TRITON, ', mask=i < n, other=float("-inf")', False),
        (TRITON, ", mask=i < n, other=0", False),
        (TRITON, ", mask=i < n, other=i", False),
        (CUTILE, "", True),
        (CUTILE, ", padding_mode=ct.PaddingMode.UNDETERMINED", True),
        (CUTILE, ", padding_mode=mode", True),
        (CUTILE, ", padding_mode=ct.PaddingMode.ZERO", False),
        (CUTILE, ", padding_mode=ct.PaddingMode.NEG_INF", False),
        (CUTILE, ", check_bounds=False", False),
    ],
)
def test_a_load_that_says_what_its_other_lanes_hold_leaves_none(text: str, how: str, may: bool) -> None:
    source = decode("kernel.py", text.format(how=how).encode())
    [definition] = find_kernels(Project().add(parse(source)))
    assert may_leave_undefined(lower(definition)) is may
