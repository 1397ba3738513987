"""Conditions of Triton kernels at visible launches: whether each holds, and who answers for it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.model import Report

KERNELS = """
import torch
import triton
import triton.language as tl
from elsewhere import unread

@triton.jit
def fill(o_ptr, BLOCK: tl.constexpr):
    tl.store(o_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)

@triton.jit
def masked(o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, 1, mask=offs < n)

@triton.jit
def rows(o_ptr, stride, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(o_ptr + tl.program_id(0) * stride + cols, 1, mask=cols < n)

@triton.jit
def with_bias(o_ptr, b_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if b_ptr is not None:
        tl.store(o_ptr + offs, tl.load(b_ptr + offs, mask=offs < n), mask=offs < n)

@triton.jit
def swap(o_ptr, b_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    o = tl.load(o_ptr + offs, mask=offs < n)
    b = tl.load(b_ptr + offs, mask=offs < n)
    tl.store(o_ptr + offs, b, mask=offs < n)
    tl.store(b_ptr + offs, o, mask=offs < n)

@triton.jit
def halved(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.store(x_ptr + offs, x * 0.5, mask=offs < n)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x, axis=0))
"""


@pytest.fixture
def verified(tmp_path: Path) -> Callable[[str, str], Report]:
    def run(kernel: str, body: str) -> Report:
        path = tmp_path / "host.py"
        path.write_text(KERNELS + textwrap.dedent(body), encoding="utf-8")
        return verify_paths([f"{path.as_posix()}::{kernel}"])

    return run


def statuses(report: Report) -> dict[str, str]:
    [at] = report.kernels[0].launches
    return {condition.text: condition.status for condition in at.conditions}


def worst(report: Report) -> str:
    found = set(statuses(report).values())
    return next(status for status in ("broken", "unmet", "unread", "caller", "holds") if status in found)


@pytest.mark.parametrize(
    ("grid", "out", "expected"),
    [
        ("triton.cdiv(n, 64)", "torch.empty(triton.cdiv(n, 64) * 64)", "holds"),
        ("n // 64", "torch.empty(n)", "holds"),
        ("min(8, n // 64)", "torch.zeros((n,), device='cuda')", "holds"),
        ("triton.cdiv(n, 64)", "torch.empty(n, 64)", "holds"),
        ("n", "torch.empty(n, 64).t()", "holds"),
        ("n // 64", "torch.empty(2 * n)[n:]", "holds"),
        ("triton.cdiv(n, 64)", "torch.empty(n)", "broken"),
        ("n // 64 + 1", "torch.empty(n)", "broken"),
        ("n // 64", "torch.empty(n)[1:]", "broken"),
        ("n // 64", "torch.empty(1).expand(n)", "broken"),
        ("n // 64", "unread(n)", "unread"),
        ("n // 64", "torch.empty(unread(n))", "unread"),
        ("unread(n)", "torch.empty(n)", "unread"),
    ],
)
def test_whole_blocks(grid: str, out: str, expected: str, verified) -> None:
    body = f"""
    def host(n: int):
        assert n > 64
        out = {out}
        fill[({grid},)](out, BLOCK=64)
    """
    assert worst(verified("fill", body)) == expected


MODULE = """
class Filled(torch.nn.Module):
    def __init__(self, blocks: int, weight, bias=False):
        super().__init__()
        {init}

    def forward(self):
        out = torch.empty({out})
        fill[({grid},)](out, BLOCK=64)
"""


@pytest.mark.parametrize(
    ("init", "grid", "out", "expected"),
    [
        ("self.n = blocks", "self.n", "64 * self.n", "holds"),
        ("self.n = blocks", "self.n + 1", "64 * self.n", "broken"),
        ("self.n, self.b = blocks, bias", "self.n + 1", "64 * self.n", "broken"),
        ("self.n = blocks; self.w = torch.randn(blocks) if bias else None", "self.n", "100", "broken"),
        # What the class tests, computes or stores again is not what was handed in.
        ("assert blocks < 2; self.n = blocks", "self.n", "100", "unread"),
        ("self.n = blocks\n        if self.n > 1: raise ValueError", "self.n", "100", "unread"),
        ("self.n = checked(blocks)", "self.n", "100", "unread"),
        ("self.n = blocks; check(blocks)", "self.n", "100", "unread"),
        ("blocks = 1; self.n = blocks", "self.n", "100", "unread"),
        ("self.n = blocks; self.n = 1", "self.n", "100", "unread"),
        ("self.n = min(blocks, 1)", "self.n", "100", "unread"),
    ],
)
def test_fields_of_a_module(init: str, grid: str, out: str, expected: str, verified) -> None:
    assert worst(verified("fill", MODULE.format(init=init, grid=grid, out=out))) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("class Other:\n    def __init__(self, n):\n        self.n = n", "broken"),
        ("class Heir(Filled):\n    def __init__(self):\n        self.n = 1", "unread"),
        ("class Heir(Filled): pass\nclass Last(Heir):\n    def __init__(self):\n        self.n = 1", "unread"),
        ("def small(module):\n    module.n = 1", "unread"),
        ("class Other:\n    def small(self, module):\n        for module.n in range(2): pass", "unread"),
    ],
)
def test_fields_that_other_code_stores(other: str, expected: str, verified) -> None:
    module = MODULE.format(init="self.n = blocks", grid="self.n", out="100")
    assert (
        worst(verified("fill", f"{other}\n{module}" if "Filled" not in other else module + other)) == expected
    )


def test_sizes_that_are_computed_from_others(verified) -> None:
    """Of a convolution: the output's size is a sum, and a factor of how much the launch writes."""
    kernel = """
    @triton.jit
    def planes(o, K, H, W, BLOCK: tl.constexpr):
        of, k, p = tl.program_id(0), tl.program_id(1), tl.program_id(2)
        parts = tl.cdiv(W, BLOCK)
        w = p % parts * BLOCK + tl.arange(0, BLOCK)
        tl.store(o + ((of * K + k) * H + p // parts) * W + w, 1, mask=w < W)

    def host(x, weight, stride: int, pad: int):
        n, c, h, w = x.shape
        k, _, r, s = weight.shape
        h, w = (h + 2 * pad - r) // stride + 1, (w + 2 * pad - s) // stride + 1
        planes[(n, k, h * triton.cdiv(w, 64){more})](torch.empty(n, k, h, w), k, h, w, BLOCK=64)
    """
    assert worst(verified("planes", kernel.replace("{more}", ""))) == "holds"
    assert worst(verified("planes", kernel.replace("{more}", " + 1"))) == "broken"


@pytest.mark.parametrize(
    "view", ["x.chunk(2, dim=-1)[0]", "x.chunk(unread(x))[1]", "x[unread(x)]", "x.view(unread(x))"]
)
def test_views_of_shapes_that_are_not_read(view: str, verified) -> None:
    """They have as many elements as they say of themselves; what else is asked of them nobody answers for."""
    body = f"""
    def host(x):
        a = {view}.contiguous()
        n = {{n}}
        with_bias[(triton.cdiv(n, 64),)](torch.empty_like(a), a, n, BLOCK=64)
    """
    assert worst(verified("with_bias", body.format(n="a.numel()"))) == "holds"
    assert worst(verified("with_bias", body.format(n="x.shape[0]"))) == "unread"


WINDOWS = """
@triton.jit
def windows(x, w, o, n, width, K: tl.constexpr, STEP, BLOCK: tl.constexpr):
    row, offs = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        total += tl.load(x + row * n + offs + k * STEP, mask=offs < width, other=0.0) * tl.load(w + k)
    tl.store(o + row * width + offs, total, mask=offs < width)

def host(x, w, step: int = 1):
    rows, n = x.shape
    k = w.shape[0]
    width = {width}
    windows[(rows, triton.cdiv(width, 64))](x.contiguous(), w, torch.empty(rows, width), n, width, k, step, 64)
"""


@pytest.mark.parametrize(("width", "expected"), [("n - step * (k - 1)", "caller"), ("n", "broken")])
def test_what_speaks_of_one_input_once_the_rest_cancels_out(width: str, expected: str, verified) -> None:
    """`rows * n + (k - 1) * step <= rows * n` asks nothing of `x`: no caller can pass a large enough one."""
    assert worst(verified("windows", WINDOWS.format(width=width))) == expected


SPREAD = """
@triton.jit
def spread(x, w, y, C, F, H, W, OH, OW, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr):
    n, f, i = tl.program_id(0), tl.program_id(1), tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    mask = i < OH * OW
    total = tl.zeros((BLOCK,), tl.float32)
    for c in range(C):
        for k in tl.static_range(K * K):
            h, v = i // OW + P - k // K, i % OW + P - k % K
            here = mask & (h % S == 0) & (v % S == 0) & (h >= 0) & (h // S < H) & (v >= 0) & (v // S < W)
            at = ((n * C + c) * H + h // S) * W + v // S
            total += tl.load(x + at, mask=here, other=0.0) * tl.load(w + (c * F + f) * K * K + k)
    tl.store(y + (n * F + f) * OH * OW + i, total, mask=mask)

def host(x, w, s: int = 2, p: int = 1):
    n, c, h, v = x.shape
    _, f, k, _ = w.shape
    height, width = (h - 1) * s - 2 * p + k, (v - 1) * s - 2 * p + k
    y = torch.empty(n, f, height, {width})
    grid = (n, f, triton.cdiv(height * width, 64))
    spread[grid](x.contiguous(), w.contiguous(), y, c, f, h, v, height, width, k, s, p, 64)
"""


@pytest.mark.parametrize(("width", "expected"), [("width", "caller"), ("width - 1", "broken")])
def test_a_number_that_is_right_by_default(width: str, expected: str, verified) -> None:
    """What does not rest on it follows from the other conditions, and is not asked with its default."""
    assert worst(verified("spread", SPREAD.format(width=width))) == expected


@pytest.mark.parametrize("made", ["torch.empty_like(x)", "torch.empty(a, b, c, d)", "x.contiguous().clone()"])
@pytest.mark.parametrize("sizes", ["a, b, c, d = x.shape", "assert x.dim() == 4\n        a, b, c, d = x.shape"])
def test_sizes_that_equations_fix(made: str, sizes: str, verified) -> None:
    """Inputs that do harm are found although strides, a rounded size and the rank follow from others."""
    body = f"""
    def host(x):
        {sizes}
        out = {made}
        rows[(a * b,)](out, triton.next_power_of_2(c * d), c * d, BLOCK=triton.next_power_of_2(c * d))
    """
    assert worst(verified("rows", body)) == "broken"


@pytest.mark.parametrize("test", ["is None", "is not None"])
def test_a_variable_of_a_library_may_be_none(test: str, verified) -> None:
    body = f"""
    def host(n: int):
        if torch.version.hip {test}:
            fill[(n,)](torch.empty(n), BLOCK=64)
    """
    assert worst(verified("fill", body)) == "broken"


@pytest.mark.parametrize(
    ("before", "call", "expected"),
    [
        ("x = x.contiguous()", "x, x.numel()", "holds"),
        ("assert x.is_contiguous()", "x, x.numel()", "holds"),
        ("x = x.contiguous().view(-1)", "x, x.shape[0]", "holds"),
        ("y = torch.empty_like(x)", "y, x.numel()", "holds"),
        ("y = x.clone()", "y, y.numel()", "holds"),
        ("y = torch.empty_like(x)", "y, x.numel() + 1", "broken"),
        ("x = x.contiguous()", "x, x.numel() + 1", "broken"),
        ("pass", "x, x.numel() + 1", "broken"),
        ("pass", "x, x.numel()", "caller"),  # x may be expanded
        ("pass", "x, k", "caller"),
        ("y = torch.empty_like(x)[k]", "y, x.numel()", "unread"),
        ("y = torch.empty_like(x).select(0, 0)", "y, x.numel()", "unread"),
    ],
)
def test_masked_by_a_number(before: str, call: str, expected: str, verified) -> None:
    body = f"""
    def host(x: torch.Tensor, k):
        {before}
        masked[(triton.cdiv(x.numel(), 64) + 1,)]({call}, BLOCK=64)
    """
    assert worst(verified("masked", body)) == expected


@pytest.mark.parametrize(
    ("before", "call", "expected"),
    [
        ("out = torch.empty((m, n))", "out, out.stride(0), n", "holds"),
        ("assert n > 0; out = torch.empty((m, n + 8))[:, :n]", "out, out.stride(0), n", "holds"),
        ("out = torch.empty((m, n + 8))[:, :n]", "out, out.stride(0), n", "holds"),  # no tile is empty
        ("out = torch.empty((m, n, 2)).view(m, -1)", "out, out.stride(0), n", "holds"),
        ("out = x.contiguous()", "out, out.stride(0), n", "holds"),
        ("out = torch.empty((n, m)).t()", "out, out.stride(0), n", "broken"),
        ("out = torch.empty((1, n)).expand(m, n)", "out, out.stride(0), n", "broken"),
        ("out = torch.empty((m, n))", "out, out.stride(1), n", "broken"),
        ("out = torch.empty((m, n // 2))", "out, out.stride(0), n", "broken"),
        ("out = torch.empty((m - 1, n))", "out, out.stride(0), n", "broken"),
        ("out = torch.empty_like(x)", "out, out.stride(0), n", "caller"),  # x may be transposed
        ("out = x", "out, out.stride(0), n", "caller"),
        ("out = x.view(m, n)", "out, out.stride(0), n", "caller"),
    ],
)
def test_rows(before: str, call: str, expected: str, verified) -> None:
    body = f"""
    def host(x: torch.Tensor):
        m, n = x.shape
        {before}
        rows[(m,)]({call}, BLOCK=triton.next_power_of_2(n))
    """
    assert worst(verified("rows", body)) == expected


@pytest.mark.parametrize(
    ("rows", "columns", "stride", "expected"),
    [(0, 1, 0, "caller"), (0, 1, 1, "broken"), (-2, -1, -2, "caller"), (-2, -1, -1, "broken")],
)
def test_rows_of_a_tensor_of_unknown_rank(
    rows: int, columns: int, stride: int, expected: str, verified
) -> None:
    """The strides of a contiguous tensor follow from each other, whatever its rank is."""
    body = f"""
    def host(x: torch.Tensor):
        m, n = x.shape[{rows}], x.shape[{columns}]
        rows[(m,)](x, x.stride({stride}), n, BLOCK=triton.next_power_of_2(n))
    """
    assert worst(verified("rows", body)) == expected


def test_the_parts_of_a_tensor_of_unknown_rank_make_up_the_whole(verified) -> None:
    """`x[0]` has as many elements as the axes after the first say, whatever these are."""
    body = """
    def host(x: torch.Tensor):
        x = x.contiguous()
        part = x[0].numel()
        rows[(x.size(0),)](x, part, part, BLOCK=triton.next_power_of_2(part))
    """
    assert worst(verified("rows", body)) == "holds"


def test_argument_that_is_none(verified) -> None:
    """What is not there is not read; what is passed is."""
    body = """
    def host(n: int):
        with_bias[(triton.cdiv(n, 64),)](torch.empty(n - 1), {}, n, BLOCK=64)
    """
    assert worst(verified("with_bias", body.format("None"))) != "broken"
    assert worst(verified("with_bias", body.format("torch.empty(n)"))) == "broken"


def test_arguments_that_may_be_none(verified) -> None:
    """Each of them is judged where it is there, without a launch for every combination."""
    body = """
    def host(n: int, a: bool, b: bool, c: bool):
        out = torch.empty({}) if a else None
        bias = torch.empty(n) if b else None
        assert out is not None
        with_bias[(triton.cdiv(n, 64),)](out, bias, n, BLOCK=64)
    """
    assert worst(verified("with_bias", body.format("n"))) == "holds"
    assert worst(verified("with_bias", body.format("n - 1"))) == "broken"


TWO = """
@triton.jit
def add(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    tl.store(o_ptr + offs, x + y, mask=offs < n)

@triton.jit
def third(x_ptr, o_ptr, n, columns, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs * columns + 2, mask=offs < n)
    tl.store(o_ptr + offs, x, mask=offs < n)

@triton.jit
def gather(x_ptr, at_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(at_ptr + offs, mask=offs < n)
    tl.store(o_ptr + offs, tl.load(x_ptr + at, mask=offs < n), mask=offs < n)
"""


def test_a_tensor_of_unknown_rank_has_as_many_elements_as_its_first_axis_says(verified) -> None:
    body = """
    def run(lengths, out):
        n = lengths.size(0)
        add[(triton.cdiv(n, 64),)](lengths, lengths, out, n, 64)
    """
    report = verified("add", TWO + textwrap.dedent(body))
    assert set(statuses(report).values()) == {"caller"}


@pytest.mark.parametrize(("before", "expected"), [("pass", "broken"), ("assert columns == 3", "holds")])
def test_a_number_of_columns_that_a_kernel_counts_on_is_the_hosts(before: str, expected: str, verified) -> None:
    """It depends on one tensor alone: the host can check it."""
    body = f"""
    def run(points):
        points = points.contiguous()
        n, columns = points.shape
        {before}
        out = torch.empty(n)
        third[(triton.cdiv(n, 64),)](points, out, n, columns, 64)
    """
    report = verified("third", TWO + textwrap.dedent(body))
    assert worst(report) == expected
    assert statuses(report)["numel(o_ptr) >= n"] == "holds"


def test_what_is_as_large_as_one_argument_must_agree_with_others_as_that_does(verified) -> None:
    body = """
    def run(q, k):
        n = k.numel()
        q_new = torch.empty_like(q)
        out = torch.empty(n)
        add[(triton.cdiv(n, 64),)](q_new, k, out, n, 64)
    """
    assert worst(verified("add", TWO + textwrap.dedent(body))) == "caller"


def test_a_buffer_that_is_too_small_for_the_argument_it_follows_is_broken(verified) -> None:
    body = """
    def run(q, k):
        n = k.numel()
        out = torch.empty(n // 2)
        add[(triton.cdiv(n, 64),)](q, k, out, n, 64)
    """
    assert statuses(verified("add", TWO + textwrap.dedent(body)))["numel(o_ptr) >= n"] == "broken"


def test_what_goes_wrong_where_nothing_is_proved_is_not_the_launchs_doing(verified) -> None:
    """The table holds anything: an index outside says nothing of a grid with blocks to spare."""
    body = """
    def run(x, at):
        n = at.numel()
        out = torch.empty(n)
        gather[(triton.cdiv(n, 64),)](x[: n // 2], at, out, n, 64)
    """
    report = verified("gather", TWO + textwrap.dedent(body))
    assert report.kernels[0].reason == "needs-contract"
    assert "broken" not in statuses(report).values()


SPLIT = """
@triton.jit
def split(x_ptr, o_ptr, p_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    part = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + part * n + offs, mask=offs < n)
    if PARTS == 1:
        tl.store(o_ptr + offs, x, mask=offs < n)
    else:
        tl.store(p_ptr + part * n + offs, x, mask=offs < n)

def host(x, parts: int):
    n = x.shape[1]
    out, partial = torch.empty(n), torch.empty({0} * n)
    split[(triton.cdiv(n, 64), {0})](x, out, partial, n, parts, 64)
"""


@pytest.mark.parametrize(("blocks", "expected"), [("parts", "holds"), ("parts + 1", "broken")])
def test_an_axis_that_a_flag_needs_one_block_of(verified, blocks: str, expected: str) -> None:
    report = verified("split", SPLIT.format(blocks))
    assert statuses(report)["PARTS != 1 or grid[1] <= 1"] == expected


SQUARES = """
@triton.jit
def squares(o_ptr, n, s, T: tl.constexpr):
    lane = tl.arange(0, T)
    tl.store(o_ptr + tl.program_id(0) * n * s + lane * s * s, lane)
"""


def test_a_factor_that_stands_twice_inside_and_once_outside(verified) -> None:
    (kernel,) = verified("squares", SQUARES).kernels
    assert (kernel.verdict.value, kernel.internal_error) == ("conditional", None)
    assert "grid[0] <= s // n" in kernel.conditions  # `pid * n + lane * s` has two digits where `pid * n < s`


def test_a_truth_of_the_host_is_shown_as_one(verified) -> None:
    body = """
    def host(x: torch.Tensor):
        assert x.is_contiguous()
        out = torch.empty(x.shape[0] // 2)
        masked[(triton.cdiv(x.shape[0], 64),)](out, x.shape[0], BLOCK=64)
    """
    (found,) = [d for d in verified("masked", body).diagnostics if d.code == "TC402"]
    assert found.witness is not None
    assert found.witness.values["x.is_contiguous()"] is True


def test_that_arrays_are_laid_out_alike_is_left_to_the_caller(verified: Callable[[str, str], Report]) -> None:
    """S7: neither element types nor addresses are in the text."""
    body = """
    def host(a, b):
        swap[(triton.cdiv(a.numel(), 64),)](a, b, a.numel(), 64)
    """
    found = verified("swap", body)
    assert "S7" in found.kernels[0].standing
    assert [p.name for p in found.kernels[0].params if p.alike] == ["o_ptr", "b_ptr"]
    [text] = [text for text in statuses(found) if text.startswith("S7")]
    assert text == "S7: `b_ptr`, `o_ptr` have elements of one size, and are aligned alike"
    assert statuses(found)[text] == "caller"


@pytest.mark.parametrize(("warps", "expected"), [("8", "holds"), ("16", "unmet"), ("unread(a)", "unread")])
def test_tiles_must_be_as_large_as_the_program(
    warps: str, expected: str, verified: Callable[[str, str], Report]
) -> None:
    """S8: by the number of warps that the launch chooses."""
    body = f"""
    def host(a, sums):
        halved[(triton.cdiv(a.numel(), 256),)](a, sums, a.numel(), 256, num_warps={warps})
    """
    found = verified("halved", body)
    assert "S8" in found.kernels[0].standing
    assert statuses(found)["S8: BLOCK >= 32 * num_warps"] == expected


def test_of_other_kernels_it_is_not_asked(verified: Callable[[str, str], Report]) -> None:
    body = """
    def host(a, b):
        with_bias[(triton.cdiv(a.numel(), 64),)](a, b, a.numel(), 64)
    """
    found = verified("with_bias", body)
    assert "S7" not in found.kernels[0].standing
    assert not any(text.startswith("S7") for text in statuses(found))
