"""Bounds that were proved are used of the elements that later goals look up, and of no others."""

from __future__ import annotations

import pytest
from proof_kernels import PAGE_TABLE

from tilecheck import check_source

PAGES = f"""import triton
import triton.language as tl


# tilecheck: requires within(lengths, 0, PAGE * table_stride + 1)
# tilecheck: requires within(pages, 0, numel(cache) // page_stride){PAGE_TABLE}"""
# The pages of a tile of positions, each looked up by a lane of its own.
LANES = PAGES.replace("for n in range(length):", "for first in range(0, length, BLOCK):").replace(
    """        page = tl.load(pages + pid * table_stride + n // PAGE).to(tl.int64)
        total += tl.load(cache + page * page_stride + n % PAGE * D + lane)
""",
    """        n = first + tl.arange(0, BLOCK)
        page = tl.load(pages + pid * table_stride + n // PAGE, mask=n < length, other=0).to(tl.int64)
        at = (page * page_stride + n % PAGE * D)[:, None] + lane[None, :]
        total += tl.sum(tl.load(cache + at, mask=(n < length)[:, None], other=0.0), 0)
""",
)
LANES = LANES.replace("PAGE: tl.constexpr)", "PAGE: tl.constexpr, BLOCK: tl.constexpr)")


def decided(text: str) -> tuple[str, str]:
    [kernel] = check_source(text, "kernel.py").kernels
    return kernel.verdict.value, " and ".join(kernel.conditions)


@pytest.mark.parametrize("text", [PAGES, LANES])
def test_pages_that_a_table_tells_are_inside(text: str) -> None:
    verdict, conditions = decided(text)
    assert verdict == "conditional"
    assert "table_stride * grid[0] <= numel(pages)" in conditions
    assert "page_stride >= " in conditions


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("PAGE * table_stride + 1", "PAGE * table_stride + 2"),  # one position beyond the last page
        ("numel(cache) // page_stride)", "numel(cache) // page_stride + 1)"),  # one page beyond the last
        ("n % PAGE * D", "(n % PAGE + 1) * page_stride"),  # rows of the next page
        ("# tilecheck: requires within(lengths, 0, PAGE * table_stride + 1)\n", ""),
    ],
)
def test_what_may_leave_them_is_not_proved(right: str, wrong: str) -> None:
    assert right in PAGES
    assert decided(PAGES.replace(right, wrong))[0] not in ("proved", "conditional")


def test_a_page_that_another_lane_looked_up_is_not_known_to_be_inside() -> None:
    """The bound holds where `n < length` does: without that mask the place is not in the table."""
    other = LANES.replace(
        "mask=(n < length)[:, None], other=0.0", "mask=(n < length + PAGE)[:, None], other=0.0"
    )
    assert other != LANES
    assert decided(other)[0] not in ("proved", "conditional")
