"""Whether two tensors of one launch share memory, as the text of a host function tells."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNEL = """
import functools
import torch
import triton
import triton.language as tl
from elsewhere import unread

# tilecheck: requires disjoint(a, b) -- in and out
@triton.jit
def shift(a, b, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(b + o, tl.load(a + o + 1, mask=o + 1 < n), mask=o < n)

@functools.lru_cache
def cached(n):
    return torch.empty(n)

def shared(n, buffer=torch.empty(64)):
    return buffer

KEPT = torch.empty(64)
"""


@pytest.fixture
def status(tmp_path: Path) -> Callable[[str, str], str]:
    """What becomes of `disjoint(a, b)` where the second text is passed beside `a`."""

    def run(before: str, pair: str) -> str:
        path = tmp_path / "host.py"
        body = f"def host(n: int, x, ctx, c1, c2, c3):\n{textwrap.indent(textwrap.dedent(before), '    ')}\n"
        launch = f"    shift[(triton.cdiv(n, 256),)]({pair}, n, B=256)\n"
        path.write_text(f"{KERNEL}\n{body}{launch}", encoding="utf-8")
        report = verify_paths([f"{path.as_posix()}::shift"])
        found = {c.status for at in report.kernels[0].launches for c in at.conditions if "disjoint" in c.text}
        return next(word for word in ("broken", "caller", "holds") if word in found)

    return run


@pytest.mark.parametrize(
    ("before", "pair", "expected"),
    [
        ("a = torch.empty(6, n)", "a[0], a[1]", "holds"),
        ("a = torch.empty(6, n)", "a[0], a[-1]", "holds"),
        ("a = torch.empty(6, n)", "a[0], a[-6]", "broken"),
        ("a = torch.empty(6, n)", "a[2:3], a[4:5]", "holds"),
        ("a = torch.empty(6, n)", "a[2:4], a[3:5]", "caller"),
        ("a = torch.empty(6, n)", "a[c1], a[c2]", "caller"),
        ("a = torch.empty(6, n)", "a[unread()], a[unread()]", "caller"),
        ("a = torch.empty(6, n)", "a[:, 0], a[:, 1]", "holds"),
        ("a = torch.empty(6, n).expand(6, n)\nb = torch.empty(1, n).expand(6, n)", "b[0], b[1]", "caller"),
        ("a = torch.empty(2 * n)", "a[:n], a[n:]", "holds"),
        ("a = torch.empty(2 * n)", "a, a[:n]", "broken"),
        ("a = torch.empty(64)", "a.narrow(0, 0, 32), a.narrow(0, 32, 32)", "holds"),
        ("a = torch.empty(64)", "a.narrow(0, -32, 32), a.narrow(0, 32, 32)", "broken"),
        ("a = torch.empty(64)", "a.narrow(0, 0, 33), a.narrow(0, 32, 32)", "caller"),
        ("a = torch.empty(64)\nb, c = a.chunk(2)", "b, c", "holds"),
        ("a = torch.empty(2 * n)", "a[:n], a[n - 3:]", "caller"),
        ("a = torch.empty(2, n)", "a[0].as_strided((n,), (1,), n), a[1]", "caller"),
        ("a = torch.empty(n)", "a, a.view(-1)", "broken"),
        ("a = torch.empty(n)", "a, +a", "broken"),
        ("a = torch.empty(n)", "a, -a", "holds"),
        ("a = torch.empty(n)", "a, a.half()", "caller"),
        ("a = torch.empty(n)\nb = a.half()", "b, b.view(-1)", "broken"),
        ("a = torch.empty(n)\nb = a\nif c1:\n    b = a.half()", "a, b", "broken"),
        ("a = torch.empty(n)\nb = a.half()\nif c1:\n    b = a", "a, b", "broken"),
        ("a = torch.empty(n, n)", "a, a.t().contiguous()", "caller"),
        ("a = torch.empty(0)", "a, a", "caller"),
    ],
)
def test_pieces_of_one_tensor(before: str, pair: str, expected: str, status) -> None:
    assert status(before, pair) == expected


@pytest.mark.parametrize(
    ("before", "pair", "expected"),
    [
        ("a = torch.empty(n)", "a, x", "holds"),
        ("a = torch.empty(n)", "a, ctx.kept", "holds"),
        ("a = torch.empty(n)\nctx.other = a", "a, ctx.kept", "caller"),
        ("a = torch.empty(n)\nunread(ctx, [a])", "a, ctx.kept", "caller"),
        ("a = torch.empty(n)\nunread(a)", "a, x", "holds"),
        ("a = torch.empty(n)", "a, unread(a)", "caller"),
        ("a = torch.empty(n)", "a, torch.empty_like(a)", "holds"),
        ("", "torch.zeros(n, out=x), x", "broken"),
        ("a = torch.empty(n)", "a, torch.add(a, 1, out=a)", "broken"),
        ("a = torch.empty(n)", "a, torch.add(a, 1, out=None)", "holds"),
        ("", "cached(n), cached(n)", "broken"),
        ("a = torch.empty(n)", "a, cached(n)", "holds"),
        ("", "shared(n), shared(n)", "broken"),
        ("", "KEPT, x", "caller"),
        (
            "a, b = torch.empty(n), torch.empty(n)\ny = a if c1 else (b if c2 else (a if c3 else b))",
            "a, y",
            "broken",
        ),
        (
            "a, b, c = (torch.empty(n) for _ in range(3))\ny = c if c1 else (b if c2 else (a if c3 else b))",
            "a, y",
            "broken",
        ),
        (
            "a, b, c, d = (torch.empty(n) for _ in range(4))\ny = c if c1 else (b if c2 else (a if c3 else d))",
            "a, y",
            "broken",
        ),
    ],
)
def test_storages_that_may_be_one(before: str, pair: str, expected: str, status) -> None:
    assert status(before, pair) == expected
