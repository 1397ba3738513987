"""What becomes of S1 at a launch whose two arguments may be one tensor, and who answers for it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNEL = """
import functools
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from elsewhere import Module, get, keep, unread

@triton.jit
def shift(a, b, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(b + o, tl.load(a + (o + 1) % n, mask=o < n), mask=o < n)

def same(t):
    return t

@functools.cache
def cached(n, kind=0):
    return torch.empty(n)

MADE = {}

def remembered(k):
    if k not in MADE:
        MADE[k] = torch.empty(64)
    return MADE[k]

class Holder:
    def __init__(self, n):
        self.a = torch.empty(n)
        self.b = torch.empty(n)
        self.c = self.a

    def two(self):
        shift[(4,)](self.a, self.b, 64, B=16)

    def one(self):
        shift[(4,)](self.a, self.c, 64, B=16)
"""


@pytest.fixture
def status(tmp_path: Path) -> Callable[..., set[str]]:
    """The statuses of S1 at the launches of a host function; empty if none lists it."""

    def run(before: str, pair: str, *, host: str = "triton.cdiv") -> set[str]:
        path = tmp_path / "host.py"
        body = f"def host(n: int, m: int, x, y, obj):\n{textwrap.indent(textwrap.dedent(before), '    ')}\n"
        launch = f"    shift[(triton.cdiv(n, 16),)]({pair}, n, B=16)\n"
        path.write_text(f"{KERNEL}\n{body}{launch}", encoding="utf-8")
        (kernel,) = verify_paths([f"{path.as_posix()}::shift"]).kernels
        lines = path.read_text(encoding="utf-8").splitlines()
        return {
            c.status
            for la in kernel.launches
            for c in la.conditions
            if c.text.startswith("S1") and host in lines[_line(path, la.site.span.start)]
        }

    return run


def _line(path: Path, start: int) -> int:
    return path.read_bytes()[:start].count(b"\n")


@pytest.mark.parametrize(
    ("before", "pair"),
    [
        ("a = torch.empty(n)", "a, a.abs_()"),
        ("a = torch.empty(n)", "a, torch.Tensor.mul_(a, 2)"),
        ("a = torch.empty(n)", "a, F.relu(a, inplace=True)"),
        ("a = torch.empty(n)", "a, F.elu(a, 1.0, True)"),
        ("a = torch.empty(n)", "a, a.float()"),
        ("a = torch.empty(n)", "a, same(a)"),
        ("a = torch.empty(n)\nb = a\nb += 1", "a, b"),
        ("y = x\ny *= 2\nn = x.numel()", "x, y"),
        ("a = torch.empty(n)", "a, torch.from_numpy(a.numpy())"),
        ("", "cached(n), cached(n)"),
        ("a = torch.empty(n)\nboth = [None, a]\nboth[0] = a", "both[0], both[1]"),
        ("a = torch.empty(8, n)", "a.select(0, -2), a[6]"),
        ("a = torch.empty(256)\nn = 128", "a.as_strided((128,), (1,)), a[64:192]"),
        ("a = torch.empty(512)\nn = 64", "a.unflatten(0, (8, 64))[1], a[100:164]"),
        ("a = torch.empty(n, 1)", "a[:, :1].contiguous(), a"),
        ("a = torch.empty(1, n)", "a.t().contiguous(), a"),
    ],
)
def test_one_buffer_that_two_blocks_meet_in_is_broken(before: str, pair: str, status) -> None:
    assert status(before, pair) == {"broken"}


@pytest.mark.parametrize(
    ("before", "pair"),
    [
        ("a = torch.empty(n)", "a, a.to(x.device)"),
        ("a = torch.empty(n)", "a, F.dropout(a, 0.5, False)"),
        ("a = torch.empty(n)", "a, a.view(torch.int32)"),
        ("a = torch.empty(2 * n)", "a[:n], a[m : m + n]"),
    ],
)
def test_parts_of_a_buffer_of_the_host_that_may_meet_are_not_the_callers(
    before: str, pair: str, status
) -> None:
    assert status(before, pair) <= {"unmet", "broken"}
    assert status(before, pair)


@pytest.mark.parametrize(
    ("before", "pair"),
    [
        ("a = torch.empty(n)", "a, unread(a)"),
        ("", "remembered(1), remembered(1)"),
        ("", "cached(64, kind=0), cached(64)"),
        ("a = torch.empty(n)", "a, Module()(a)"),
        ("a = torch.empty(n)", "a, functools.partial(same, a)()"),
        ("a = torch.empty(n)", "a, unread(unread(a))"),
        ("", "x, x.data"),
        ("", "x, x.real"),
        ("", "x, x.resolve_conj()"),
        ("both = unread(x)\na, b = both", "a, b"),
        ("held = Holder(n)", "held.a, held.c"),
        ("a = Holder(n).two()", "a.a, a.c"),
        ("a, b = torch.empty(n), torch.empty(n)\nfor _ in range(m):\n    a = b", "a, b"),
        ("a, b = torch.empty(n), torch.empty(n)\nwhile m > 3:\n    a = b[:m]\n    m -= 1", "a, b"),
    ],
)
def test_what_unread_code_may_give_back_is_not_met(before: str, pair: str, status) -> None:
    assert status(before, pair) == {"unmet"}


@pytest.mark.parametrize(
    ("before", "pair"),
    [
        ("a = torch.empty(n)\nkeep(a)", "a, get()"),
        ("", "get(), get()"),
        ("a = torch.empty(n)\nobj.kept = [a]", "a, obj.method()"),
        ("", "obj.query(x), obj.key(x)"),
        ("", "x, x.grad"),
        ("a, b = torch.empty(n), torch.empty(n)\nfor _ in range(m):\n    a, b = b, a", "a, b"),
    ],
)
def test_what_unread_code_could_reach_is_unread(before: str, pair: str, status) -> None:
    assert status(before, pair) == {"unread"}


@pytest.mark.parametrize(
    ("before", "pair"),
    [
        ("a = torch.empty(n)", "a, a.clone()"),
        ("a = torch.empty(n)", "a, torch.softmax(a, -1)"),
        ("a = torch.empty(n)", "a, F.relu(a)"),
        ("a = torch.empty(n)\nb = a\nb = b + 1", "a, b"),
        ("a = torch.empty(n, dtype=torch.float16)", "a, a.float()"),
        ("a = torch.empty(2 * n)\nb, c = a.split(n)", "b, c"),
        ("a = torch.empty(2 * n)\nb, c = torch.split(a, [n, n])", "b, c"),
        ("a = torch.empty(256)\nn = 64\nb, c = a.chunk(2)", "b, c[:64]"),
        ("a = torch.empty(2, n)\nb, c = a.unbind(0)", "b, c"),
        ("assert m > 0\na = torch.empty(m + 1, n)", "a[m - 1], a[m]"),
        ("both = [None, torch.empty(n)]\nboth[0] = torch.empty(n)", "both[0], both[1]"),
        ("a = torch.empty(n)\nkeep(a)", "a, torch.empty(n)"),
        ("", "cached(n), torch.empty(n)"),
        ("", "x, y"),
        ("a = torch.empty(n)", "x, a"),
    ],
)
def test_tensors_of_their_own_are_not_listed(before: str, pair: str, status) -> None:
    assert status(before, pair) == set()


def test_two_fields_that_a_class_makes_of_one_tensor_are_not_met(status) -> None:
    assert status("", "x, y", host="self.a, self.c") == {"unmet"}
    assert status("", "x, y", host="self.a, self.b") == set()
