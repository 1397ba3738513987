"""The contracts that are proposed for a whole kernel decide it, and ask for no more than callers keep."""

from __future__ import annotations

import re

import pytest
from proof_kernels import PAGE_TABLE

from tilecheck import check_source
from tilecheck.options import Options

HEAD = "import triton\nimport triton.language as tl\n\n\n"

PAGED = """
@triton.jit
def kernel(x, cache, slots, stride, D: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    slot = tl.load(slots + pid).to(tl.int64)
    row = tl.load(x + pid * D + lane, mask=lane < D)
    tl.store(cache + slot * stride + lane, row, mask=lane < D)
"""
PADDED = PAGED.replace("    row =", "    if slot < 0:\n        return\n    row =")
RAGGED = """
@triton.jit
def kernel(x, out, starts, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    start = tl.load(starts + pid)
    end = tl.load(starts + pid + 1)
    for first in range(start, end, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < end), mask=at < end)
"""
COUNTED = """
@triton.jit
def kernel(x, out, starts, counts, width, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    start = tl.load(starts + pid)
    count = tl.load(counts + pid).to(tl.int32)
    lane = tl.arange(0, BLOCK)
    tl.store(out + start + lane, tl.load(x + pid * width + lane, mask=lane < count), mask=lane < count)
"""
SORTED = """
@triton.jit
def kernel(x, tokens, out, used, n, stride, width, BLOCK: tl.constexpr, N: tl.constexpr, EACH: tl.constexpr):
    pid = tl.program_id(0)
    if pid * BLOCK >= tl.load(used):
        return
    token = tl.load(tokens + pid * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    lane = tl.arange(0, N)
    row = tl.load(x + (token // EACH)[:, None] * width + lane[None, :], mask=(token < n)[:, None])
    tl.store(out + token[:, None] * stride + lane[None, :], row, mask=(token < n)[:, None])
"""
LAST = """
@triton.jit
def kernel(x, lengths, out, stride):
    pid = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + pid).to(tl.int64)
    tl.store(out + pid, tl.load(x + pid * stride + length - 1))
"""
IGNORED = """
@triton.jit
def kernel(x, targets, out, stride, ignored, N: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + pid)
    if target == ignored:
        return
    tl.store(out + pid, tl.load(x + pid * stride + target))
"""
MASKED = """
@triton.jit
def kernel(x, targets, out, ignored, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(targets + at, mask=at < N, other=0)
    row = tl.load(x + target, mask=(target != ignored) & (at < N), other=0)
    tl.store(out + at, row, mask=at < N)
"""
MARKS = """
@triton.jit
def kernel(marks, chosen, K: tl.constexpr, stride):
    pid = tl.program_id(0)
    for k in range(K):
        at = tl.load(chosen + pid * K + k)
        tl.store(marks + pid * stride + at, 1)
"""


def proposed(text: str) -> set[str]:
    report = check_source(HEAD + text, "kernel.py", Options(propose=True))
    assert report.kernels[0].reason == "needs-contract"
    helps = " ".join(d.help or "" for d in report.diagnostics)
    return set(re.findall(r"`# tilecheck: requires (.*?) -- why`", helps))


@pytest.mark.parametrize(
    ("text", "contracts"),
    [
        (PAGED, {"within(slots, 0, numel(cache) // stride)", "distinct(slots)"}),
        (SORTED, {"within(tokens, 0, n + 1)", "distinct(tokens, skip=n)"}),
        (LAST, {"within(lengths, 1, stride + 1)"}),
        (LAST.replace("length - 1)", "length - 1, mask=length > 0)"), {"within(lengths, -1, stride + 1)"}),
        (
            LAST.replace("pid * stride + length - 1", "(length - 2) * stride"),
            {"within(lengths, 2, numel(x) // stride + 2)"},
        ),
        (LAST.replace("length - 1", "length + 1"), {"within(lengths, 0, stride)"}),
        (IGNORED, {"within(targets, 0, stride, skip=ignored)"}),
        (MASKED, {"within(targets, 0, numel(x), skip=ignored)"}),
        (MASKED.replace("target != ignored", "target != -100"), {"within(targets, 0, numel(x), skip=-100)"}),
        (PADDED, {"within(slots, -1, numel(cache) // stride)", "distinct(slots, skip=-1)"}),
        (
            RAGGED,
            {"within(starts, 0, numel(out) + 1)", "within(starts, 0, numel(x) + 1)", "increasing(starts)"},
        ),
        (
            PAGE_TABLE,
            {"within(lengths, 0, PAGE * table_stride + 1)", "within(pages, 0, numel(cache) // page_stride)"},
        ),
    ],
)
def test_what_is_proposed_decides_the_kernel(text: str, contracts: set[str]) -> None:
    assert proposed(text) == contracts
    stated = "".join(f"# tilecheck: requires {c}\n" for c in contracts)
    [kernel] = check_source(f"{HEAD}{stated}{text.lstrip()}", "kernel.py").kernels
    assert kernel.verdict.value == "conditional", kernel.reason


@pytest.mark.parametrize("dropped", range(2))
def test_each_of_them_is_needed(dropped: int) -> None:
    contracts = ["within(slots, 0, numel(cache) // stride)", "distinct(slots)"]
    stated = f"# tilecheck: requires {contracts[1 - dropped]}\n"
    [kernel] = check_source(f"{HEAD}{stated}{PAGED.lstrip()}", "kernel.py").kernels
    assert kernel.verdict.value in ("unknown", "violated")


IS_SKIPPED = "    if target == ignored:\n        return\n"


@pytest.mark.parametrize(
    "text",
    [
        IGNORED.replace(IS_SKIPPED, ""),
        IGNORED.replace("target == ignored", "target == ignored + 1"),
        IGNORED.replace("target == ignored", "target < ignored"),
        MASKED.replace("target != ignored", "target != ignored - 1"),
        MASKED.replace("(target != ignored)", "(target <= ignored)"),
        MASKED.replace("mask=(target != ignored) & (at < N)", "mask=at < N"),
    ],
)
def test_a_value_that_is_skipped_is_no_index_where_it_is_used(text: str) -> None:
    end = "numel(x)" if "BLOCK" in text else "stride"
    stated = f"# tilecheck: requires within(targets, 0, {end}, skip=ignored)\n"
    [kernel] = check_source(f"{HEAD}{stated}{text.lstrip()}", "kernel.py").kernels
    assert kernel.verdict.value in ("unknown", "violated")


def test_a_value_that_is_used_somewhere_is_not_proposed_as_skipped() -> None:
    text = MASKED + "    tl.store(out + at, tl.load(x + target, mask=at < N), mask=at < N)\n"
    assert proposed(text) == {"within(targets, 0, numel(x))"}


def test_rows_that_a_table_counts_are_a_sum_of_its_counts() -> None:
    assert "prefix_sum(starts, of=counts)" in proposed(COUNTED)


def test_elements_of_a_row_need_not_differ_between_rows() -> None:
    found = proposed(MARKS)
    assert "within(chosen, 0, stride)" in found
    assert not any(c.startswith("distinct") for c in found)


def test_segments_that_a_table_orders_are_in_order_too() -> None:
    text = """
@triton.jit
def kernel(x, out, order, starts, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    start = tl.load(starts + pid)
    for i in range(start, tl.load(starts + pid + 1)):
        row = tl.load(order + i).to(tl.int64)
        tl.store(out + row * stride + lane, tl.load(x + lane, mask=lane < stride), mask=lane < stride)
"""
    found = proposed(text)
    assert {"distinct(order)", "increasing(starts)"} <= found
    stated = "".join(f"# tilecheck: requires {c}\n" for c in found)
    [kernel] = check_source(f"{HEAD}{stated}{text.lstrip()}", "kernel.py").kernels
    assert kernel.verdict.value == "conditional"


def test_one_array_is_asked_for_the_same_in_all_of_a_report() -> None:
    """Also where something else is not decided even so."""
    text = PAGED.replace("stride, D", "marks, places, stride, D") + (
        "    at = tl.load(places + pid)\n    tl.store(marks + slot * at + lane, 1, mask=lane < D)\n"
    )
    found = {c for c in proposed(text) if c.startswith("within(slots")}
    assert found == {"within(slots, 0, numel(cache) // stride)"}


def test_tiles_are_no_rows() -> None:
    """Tiles of columns come first in the text: how many rows there are is no matter of their size."""
    text = """
@triton.jit
def kernel(x, counts, expert_stride, row_stride, N, BLOCK: tl.constexpr):
    count = tl.load(counts + tl.program_id(1))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = x + tl.program_id(1) * expert_stride + at
    for row in range(count):
        tl.store(rows + row * row_stride, 1, mask=at < N)
"""
    assert {c for c in proposed(text) if c.startswith("within")} == {
        "within(counts, 0, expert_stride // row_stride + 1)"
    }
