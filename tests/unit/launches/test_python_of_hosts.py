"""What Python and torch do in host code that is easily taken for something plainer."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def fill(o_ptr, B: tl.constexpr):
    tl.store(o_ptr + tl.program_id(0) * B + tl.arange(0, B), 1)
"""


@pytest.fixture
def status(tmp_path: Path) -> Callable[[str, str], str]:
    """What becomes of `B * grid[0] <= numel(o_ptr)` at the one launch of a host function."""

    def run(head: str, body: str) -> str:
        text = KERNEL + f"\ndef host({head}):\n" + textwrap.indent(textwrap.dedent(body), "    ")
        path = tmp_path / "host.py"
        path.write_text(text, encoding="utf-8")
        [at] = verify_paths([f"{path.as_posix()}::fill"]).kernels[0].launches
        return at.conditions[0].status

    return run


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for b in (16, 32):\n    if k == b: break\nelse:", "unread"),
        ("for b in range(k):\n    if k == b * b: break\nelse:", "unread"),
        ("while k > 0:\n    k -= 1\n    if k == 7: break\nelse:", "unread"),
        ("for b in (16, 32):\n    k += b\nelse:", "holds"),
        ("while k > 0:\n    k -= 1\nelse:", "holds"),
    ],
)
def test_a_loop_that_is_left_runs_no_else(loop: str, expected: str, status) -> None:
    body = f"""
{loop}
    if n % 256 != 0:
        raise ValueError
y = torch.empty(n)
fill[(triton.cdiv(n, 256),)](y, B=256)
"""
    assert status("n, k", body) == expected


def test_after_an_else_that_raises_the_launch_is_still_judged(status) -> None:
    body = """
    for b in (16, 32):
        if k == b:
            break
    else:
        raise ValueError
    y = torch.empty(n)
    fill[(triton.cdiv(n, 256),)](y, B=256)
    """
    assert status("n, k", body) == "broken"


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        ("f", "n = int(f * 256)\ny = torch.empty(n)\nfill[(triton.cdiv(n, 256),)](y, B=256)", "unread"),
        ("n, r", "assert r > 0\ny = torch.empty(int(n * r) * 256)\nfill[(n,)](y, B=256)", "unread"),
        ("n, r", "y = torch.empty(int(n * r) * 256)\nfill[(int(n * r),)](y, B=256)", "holds"),
        ("q", "y = torch.empty(int(q) * 2 * 256)\nfill[(int(q * 2),)](y, B=256)", "unread"),
        ("q", "if q > 0:\n    fill[(1,)](torch.empty(int(q) * 256), B=256)", "unread"),
        ("q", "y = torch.empty(int(q) * 256)\nfill[(int(q),)](y, B=256)", "holds"),
        ("q", "x = torch.empty(q)\ny = torch.empty(int(q) * 256)\nfill[(q,)](y, B=256)", "holds"),
        ("n: int", "y = torch.empty(int(n * 256))\nfill[(n,)](y, B=256)", "holds"),
        ("n, s", "x = torch.arange(0, n, s)\ny = torch.empty(x.numel() * 256)\nfill[(n,)](y, B=256)", "unread"),
        ("n", "x = torch.arange(0, n, 2)\ny = torch.empty(x.numel() * 512)\nfill[(n,)](y, B=256)", "holds"),
    ],
)
def test_numbers_that_may_be_fractions(head: str, body: str, expected: str, status) -> None:
    assert status(head, body) == expected


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        ("n", "y = torch.empty(n).narrow(0, -4, 4)\nfill[(y.shape[0],)](y, B=256)", "broken"),
        ("n", "y = torch.empty(n).narrow(0, -256, 256)\nfill[(1,)](y, B=256)", "holds"),
        ("n", "y = torch.empty(n).narrow(0, 4, 512)\nfill[(2,)](y, B=256)", "holds"),
        ("n", "y = torch.empty(n)\nc = y.chunk(4)\nfill[(n // 256 + 4 - len(c),)](y, B=256)", "unread"),
        ("n", "y = torch.empty(4 * n + 1).chunk(8)[-1]\nfill[(y.shape[0],)](y, B=256)", "broken"),
        ("n", "a, b = torch.empty(512 * n).chunk(2)\nfill[(n,)](b, B=256)", "holds"),
        ("n", "a, b = torch.empty(n).chunk(2)\nfill[(b.shape[0] // 256,)](b, B=256)", "holds"),
        ("w, n: int", "y = torch.empty(1, n) + w * 2\nfill[(y.shape[0],)](torch.empty(256), B=256)", "broken"),
        ("w, n", "y = torch.empty(1, 5) * (w != 0)\nfill[(y.shape[0],)](torch.empty(256), B=256)", "broken"),
        ("w, n", "y = torch.empty(1, 5) + (w > 0)\nfill[(y.shape[0],)](torch.empty(256), B=256)", "broken"),
        ("w: int", "y = torch.empty(1, 5) + w * 2\nfill[(y.shape[0],)](torch.empty(256), B=256)", "holds"),
        (
            "w, x",
            "y = torch.empty(1, 5) * w\nfill[(x.size(0),)](torch.empty(y.size(0) * 256), B=256)",
            "caller",
        ),
    ],
)
def test_pieces_and_sums_of_tensors(head: str, body: str, expected: str, status) -> None:
    assert status(head, body) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("x.contiguous()", "holds"),
        ("x.contiguous(memory_format=torch.contiguous_format)", "holds"),
        ("x.contiguous(memory_format=torch.channels_last)", "unread"),
        ("x.contiguous().to(torch.float16, memory_format=torch.channels_last)", "unread"),
        ("x.contiguous().clone(memory_format=torch.preserve_format)", "holds"),
        ("torch.empty_like(x, memory_format=torch.contiguous_format)", "holds"),
        ("torch.empty(n, c, h, w)", "holds"),
        ("x.contiguous().transpose(0, 1).to(memory_format=torch.contiguous_format)", "unread"),
        ("torch.empty(n, c, h, w, memory_format=torch.channels_last)", "unread"),
        ("torch.empty(n, c, h, w, memory_format=fmt)", "unread"),
    ],
)
def test_memory_formats(made: str, expected: str, status) -> None:
    body = f"""
    n, c, h, w = x.shape
    y = {made}
    z = torch.empty(y.stride(1) * 256)
    fill[(h * w,)](z, B=256)
    """
    assert status("x, fmt", body) == expected


def test_a_changed_shape_is_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "host.py"
    body = "\ndef host(x):\n    a, b = x.shape\n    x.swapdims_(0, 1)\n    z = torch.empty(a * 256)\n"
    path.write_text(KERNEL + body + "    fill[(x.shape[0],)](z, B=256)\n", encoding="utf-8")
    launches = verify_paths([f"{path.as_posix()}::fill"]).kernels[0].launches
    assert not any(c.status in ("holds", "broken") for at in launches for c in at.conditions)
