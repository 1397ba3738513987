"""Numbers that are no signed integers: unsigned ones, single bits, and floats that are folded like integers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import verify_paths

TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def k(out_ptr, t_ptr, v, n, B: tl.constexpr):
    pid = tl.program_id(0)
{body}
"""
CUTILE = """
import cuda.tile as ct

@ct.kernel
def k(t, out):
    pid = ct.bid(0)
{body}
"""


def verdict(tmp_path: Path, template: str, body: str, host: str = "") -> str:
    path = tmp_path / "k.py"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    path.write_text(template.format(body=lines) + host, encoding="utf-8")
    (kernel,) = verify_paths([path.as_posix()]).kernels
    assert kernel.internal_error is None
    return kernel.verdict.value


STORE = "\ntl.store(out_ptr + at, pid, mask=pid < n)"


@pytest.mark.parametrize(
    "body",
    [
        # Unsigned: 0 - 1 is large, and so are its minimum, remainder and quotient.
        "at = tl.minimum(pid.to(tl.uint32) - 1, 6) + 1" + STORE,
        "at = (pid.to(tl.uint32) - 3) % 5 + 4" + STORE,
        "at = ((pid.to(tl.uint64) - 1).to(tl.int64) > 100) * pid" + STORE,
        "at = tl.where(tl.full([1], 0, dtype=tl.uint32) - 1 > 100, 0, pid)" + STORE,
        # Of floats v + 1 - v need not be 1, nor v % 1 be 0, nor v - v be equal to 0.
        "v = tl.load(t_ptr)\nat = (v + pid - v).to(tl.int32)" + STORE,
        "v = tl.load(t_ptr)\nat = tl.where(v + 1 - v == 1, pid, 0)" + STORE,
        "v = tl.load(t_ptr)\nat = tl.where(v % 1 == 0, pid, 0)" + STORE,
        "v = tl.load(t_ptr)\nat = tl.where(v - v == 0, pid, 0)" + STORE,
        # The product of an integer and of what memory holds need not be its multiple.
        "w = tl.load(t_ptr)\nat = tl.where((w * n).to(tl.int64) % n == 0, pid, 0)" + STORE,
        "at = tl.where((v * n).to(tl.int32) % n == 0, pid, 0)" + STORE,
        # The zero of an array's type may be a float's: a sum with it is rounded, and may leave an element out.
        "z = tl.zeros([], dtype=t_ptr.dtype.element_ty)\nat = (z + pid).to(tl.int32)" + STORE,
        "z = tl.zeros([], dtype=t_ptr.dtype.element_ty)\nat = tl.where(z * v == 0, pid, 0)" + STORE,
        "z = tl.zeros([1], dtype=t_ptr.dtype.element_ty)\nat = (z + pid).to(tl.int32)" + STORE,
        "t = tl.load(t_ptr)\nz = tl.zeros([], dtype=t.dtype)\nat = (z + pid).to(tl.int32)" + STORE,
        # Two single bits are added without a carry.
        "a = pid == 0\nat = pid - 1 + (a + a) * n" + STORE,
        # So are products of them, minima and maxima, which are single bits, too.
        "a = (pid == 0) * (n > 0)\nat = pid - 1 + (a + a) * n" + STORE,
        "a = (pid == 0) * True\nat = pid - 1 + (a + a) * n" + STORE,
        "a = tl.maximum(pid == 0, n < 0)\nat = pid - 1 + (a + a) * n" + STORE,
        "a = tl.minimum(pid == 0, n > 0)\nat = pid - 1 + (a + a) * n" + STORE,
        # What memory holds in 64 bits is cut off.
        "w = tl.load(t_ptr).to(tl.int64)\nat = tl.where(w >= 4, w.to(tl.int32) - 4 + pid, pid)" + STORE,
    ],
)
def test_triton(tmp_path: Path, body: str) -> None:
    assert verdict(tmp_path, TRITON, body) in ("unknown", "violated")


@pytest.mark.parametrize(
    "body",
    [
        "at = ct.minimum(ct.astype(pid, ct.uint32) - 1, 6) + 1\nif pid < 8:\n    ct.scatter(out, at, 1.0)",
        "v = ct.gather(t, 0)\nat = pid\nif v - v != 0:\n    at = 0\nct.scatter(out, at, 1.0)",
        "v = ct.gather(t, 0)\nct.scatter(out, ct.astype(v + pid - v, ct.int32), 1.0)",
    ],
)
def test_cutile(tmp_path: Path, body: str) -> None:
    assert verdict(tmp_path, CUTILE, body) in ("unknown", "violated")


def test_an_integer_may_still_be_cancelled(tmp_path: Path) -> None:
    body = "s = tl.load(t_ptr).to(tl.int32)\nat = s + pid - s" + STORE
    assert verdict(tmp_path, TRITON, body) == "conditional"


def test_a_product_of_sizes_may_be_made_wide(tmp_path: Path) -> None:
    body = "rows = (v * n).to(tl.int64)\nat = pid * rows + tl.arange(0, B)"
    store = "\ntl.store(out_ptr + at, pid, mask=tl.arange(0, B) < rows)"
    assert verdict(tmp_path, TRITON, body + store + "\ntl.store(t_ptr, 0, mask=pid == n)") == "conditional"


@pytest.mark.parametrize("moved", ["pid - v", "pid + v * n"])
@pytest.mark.parametrize("given", ["0.5", "out.shape[0] / 2"])
def test_a_float_is_not_said_to_be_an_integer(tmp_path: Path, given: str, moved: str) -> None:
    host = f"""
def host(t):
    out = torch.zeros(64)
    k[(64,)](out, t, {given}, 64, 1)
"""
    path = tmp_path / "k.py"
    body = f"    at = ({moved}).to(tl.int64)\n    tl.store(out_ptr + at, pid, mask=(at >= 0) & (at < n))\n"
    path.write_text(TRITON.format(body=body) + host, encoding="utf-8")
    (kernel,) = verify_paths([path.as_posix()]).kernels
    (launch,) = kernel.launches
    if given == "0.5":  # every launch passes a float: the kernel is judged with one
        assert kernel.verdict.value == "unknown"
    else:
        assert ("`v` is an integer", "unread") in [(c.text, c.status) for c in launch.conditions]


@pytest.mark.parametrize("size", ["0", "t.shape[0] - t.shape[0]"])
def test_the_next_power_of_two_of_nothing_is_nothing(tmp_path: Path, size: str) -> None:
    host = f"""
def host(t):
    p = triton.next_power_of_2({size})
    out = torch.zeros(4 * p + 16)
    k[(4,)](out, t, p, 4, 1)
"""
    assert verdict(tmp_path, TRITON, "at = pid * v" + STORE, host) == "violated"


@pytest.mark.parametrize(("at", "tables"), [("tl.load(t_ptr + pid)", True), ("pid", False)])
def test_that_tables_hold_signed_integers_of_32_bits_or_more_is_a_standing_obligation(tmp_path, at, tables):
    path = tmp_path / "k.py"
    path.write_text(TRITON.format(body=f"    tl.atomic_add(out_ptr + {at}, 1)\n"), encoding="utf-8")
    (kernel,) = verify_paths([path.as_posix()]).kernels
    assert ("S6" in kernel.standing) is tables


@pytest.mark.parametrize(
    ("test", "integer"),
    [
        ("v > 0", False),
        ("v != 0", False),
        ("(v != 0) & (v == 1)", False),
        ("(v > 0) & (v < 1)", True),  # no integer answers both as 0.5 does
        ("(v > 0) | (v == 1)", True),
        ("v + v > 1", True),
        ("v > n", True),
    ],
)
def test_one_question_asks_no_integer(tmp_path: Path, test: str, integer: bool) -> None:
    host = """
def host(t):
    out = torch.zeros(64)
    k[(64,)](out, t, out.shape[0] / 2, 64, 1)
"""
    path = tmp_path / "k.py"
    body = f"    if {test}:\n        tl.store(out_ptr + pid, pid, mask=pid < n)\n"
    path.write_text(TRITON.format(body=body) + host, encoding="utf-8")
    (kernel,) = verify_paths([path.as_posix()]).kernels
    (launch,) = kernel.launches
    assert (("`v` is an integer", "unread") in [(c.text, c.status) for c in launch.conditions]) == integer
