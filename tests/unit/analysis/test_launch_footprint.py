"""What a launch certainly touches of its arguments."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from tilecheck.analysis.launch_footprint import kernel_footprint
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.expr import render
from tilecheck.ir.launch_footprint import KernelFootprint
from tilecheck.text import decode

HEAD = """
import triton
import triton.language as tl

@triton.jit
def k(x, y, n, start: int, FLAG: tl.constexpr, B: tl.constexpr):
"""


def footprint(body: str) -> KernelFootprint:
    table = Project().add(parse(decode("k.py", (HEAD + indent(dedent(body), "    ")).encode())))
    (definition,) = find_kernels(table)
    return kernel_footprint(lower(definition))


def texts(body: str) -> dict[str, tuple[bool, str]]:
    """Of each parameter that is written: whether its first element is touched, and how many are."""
    uses = (*footprint(body).before, *footprint(body).after)
    written = [use for use in uses if use.write]
    return {use.name: (use.certain, "" if use.prefix is None else render(use.prefix)) for use in written}


def test_a_masked_copy_touches_all_up_to_its_bound() -> None:
    assert texts(
        """
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
        """
    ) == {"y": (True, "min(grid[0] * B, n)")}


def test_one_program_touches_its_lanes() -> None:
    assert texts("tl.store(y + tl.arange(0, B), 1.0)") == {"y": (True, "B")}


def test_strides_leave_gaps() -> None:
    assert texts("tl.store(y + tl.arange(0, B) * n, 1.0)") == {"y": (True, "")}


@pytest.mark.parametrize(
    "body",
    [
        "i = start + tl.arange(0, B)\ntl.store(y + i, 1.0)",  # the launch says where
        "tl.store(y + tl.load(x), 1.0)",  # the data say where
        "if FLAG:\n    tl.store(y + tl.arange(0, B), 1.0)",  # a flag says whether
        "if tl.load(x) > 0:\n    tl.store(y + tl.arange(0, B), 1.0)",  # the data say whether
        "i = tl.arange(0, B)\ntl.store(y + i, 1.0, mask=i >= start)",  # not the first ones
    ],
)
def test_what_is_not_certain(body: str) -> None:
    assert texts(body) == {"y": (False, "")}


def test_accesses_around_the_wait() -> None:
    found = footprint(
        """
        a = tl.load(x)
        tl.extra.cuda.gdc_wait()
        tl.store(y, a)
        """
    )
    assert found.waits
    assert [(use.name, use.write) for use in found.before] == [("x", False)]
    assert [(use.name, use.write) for use in found.after] == [("y", True)]


def test_a_kernel_without_a_wait_touches_all_before() -> None:
    found = footprint("tl.store(y, tl.load(x))")
    assert not found.waits
    assert not found.after
    assert len(found.before) == 2
