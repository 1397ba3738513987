"""A `requires` may speak of numbers that the kernel itself does nothing with."""

from __future__ import annotations

from tilecheck import check_source

TEXT = """
import triton
import triton.language as tl


# tilecheck: requires rows <= numel(x)
# tilecheck: requires n <= rows
@triton.jit
def kernel(x, rows, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + at, 0, mask=at < n)
"""


def test_what_is_required_of_a_number_that_only_contracts_name_counts() -> None:
    [kernel] = check_source(TEXT, "kernel.py").kernels
    assert {str(o.verdict) for o in kernel.obligations} == {"proved"}
    assert not kernel.conditions
    assert {p.name for p in kernel.params if p.integer} >= {"rows", "n"}


def test_without_it_the_length_is_a_condition() -> None:
    text = TEXT.replace("# tilecheck: requires rows <= numel(x)\n", "")
    [kernel] = check_source(text, "kernel.py").kernels
    assert kernel.conditions == ("numel(x) >= n",)


CONVERTED = """
import triton
import triton.language as tl


# tilecheck: requires rows >= B
@triton.jit
def kernel(x, rows, B: tl.constexpr):
    start = tl.program_id(0) * rows.to(tl.int64)
    tl.store(x + start + tl.arange(0, B), 0)
"""


def _races(text: str) -> set[str]:
    [kernel] = check_source(text, "kernel.py").kernels
    return {str(o.verdict) for o in kernel.obligations if o.rule == "TC201"}


def test_a_number_that_a_contract_compares_with_an_integer_is_itself_where_it_is_converted() -> None:
    """Launches are asked for an integer then, so that nothing is rounded."""
    assert _races(CONVERTED) == {"proved"}
    [kernel] = check_source(CONVERTED, "kernel.py").kernels
    assert "rows" in {p.name for p in kernel.params if p.integer}


def test_any_other_number_is_not() -> None:
    assert "proved" not in _races(CONVERTED.replace("# tilecheck: requires rows >= B\n", ""))
    assert "proved" not in _races(CONVERTED.replace("rows >= B", "B >= 1"))
    assert "proved" not in _races(CONVERTED.replace("rows >= B", "rows >= B - 1"))
