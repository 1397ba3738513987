"""Facts that a host's text establishes of shapes, strides and sizes, at launches of Triton kernels."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNELS = """
import math
import functools
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from elsewhere import tile_of

@triton.jit
def flat(o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, 1, mask=offs < n)

@triton.jit
def rows(o_ptr, stride, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(o_ptr + tl.program_id(0) * stride + cols, 1, mask=cols < n)

def contiguous(fn):
    @functools.wraps(fn)
    def wrapper(ctx, *args, **kwargs):
        args = [a.contiguous() if isinstance(a, torch.Tensor) else a for a in args]
        kwargs = {k: v.contiguous() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        return fn(ctx, *args, **kwargs)
    return wrapper

def checked(fn):
    @functools.wraps(fn)
    def wrapper(ctx, *args):
        return fn(ctx, *[a.t() for a in args])
    return wrapper
"""
NORMAL = "if d < 0:\n    d += x.ndim\nif d < 0 or d >= x.ndim:\n    raise ValueError"
AROUND = "math.prod(x.shape[:d]) * x.shape[d] * math.prod(x.shape[d + 1:])"
EDGES = (
    "x.shape[d] * (math.prod(x.shape[:d]) if d > 0 else 1)"
    " * (math.prod(x.shape[d + 1:]) if d < x.ndim - 1 else 1)"
)
ROUNDED = "m = x.shape[0] - 1\n" + "".join(f"m |= m >> {1 << j}\n" for j in range(6)) + "m += 1"
ORDER = ("holds", "caller", "unread", "unmet", "broken")


def rank(status: str) -> int:
    return ORDER.index(status) if status in ORDER else len(ORDER)


@pytest.fixture
def statuses(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """The worst status of each condition, over all launches in a host's text."""

    def run(body: str) -> dict[str, str]:
        path = tmp_path / "host.py"
        path.write_text(KERNELS + textwrap.dedent(body), encoding="utf-8")
        found: dict[str, str] = {}
        for kernel in verify_paths([path.as_posix()]).kernels:
            for condition in (c for at in kernel.launches for c in at.conditions):
                old = found.get(condition.text, "holds")
                found[condition.text] = max(old, condition.status, key=rank)
        assert found
        return found

    return run


@pytest.fixture
def worst(statuses: Callable[[str], dict[str, str]]) -> Callable[[str], str]:
    """The worst status of all of them."""
    return lambda body: max(statuses(body).values(), key=rank)


LIST = "s = list(x.shape)\n"
WRONG_ROWS = "rows[(m,)](x, x.stride(1), n"
DIM = "d = d % x.ndim"
REDUCED = "n, shape = 1, list(x.shape)\nfor i in order:\n"


def launched(before: str, out: str, count: str) -> str:
    text = textwrap.indent(textwrap.dedent(before).strip(), "    ")
    return f"""
def host(x, w, k: int, d: int, order):
{text}
    flat[(triton.cdiv({count}, 64),)]({out}, {count}, BLOCK=64)
"""


@pytest.mark.parametrize(
    ("before", "out", "count"),
    [
        ("assert k >= 1", "torch.empty((*x.shape[:-1], k))", "x.numel() // x.shape[-1] * k"),
        ("assert k >= 1", "torch.empty(x.shape[:-1] + (k,))", "math.prod(x.shape[:-1]) * k"),
        ("", "torch.empty(x.shape)", "x.shape[0] * math.prod(x.shape[1:])"),
        ("", "torch.empty(x.shape)", "math.prod(x.shape[:-2]) * x.shape[-2] * x.shape[-1]"),
        ("shape = list(x.shape)\nshape[-1] = 1", "torch.empty(shape)", "x.numel() // x.shape[-1]"),
        ("shape = list(x.shape)\nshape[d] = 1", "torch.empty(shape)", "x.numel() // x.shape[d]"),
        ("n = 1\nfor size in x.shape:\n    n *= size", "torch.empty_like(x)", "n"),
        ("", "torch.empty([])", "1"),
        ("", "torch.empty([1] * x.ndim)", "1"),
        ("", "x.permute(order).contiguous()", "x.numel()"),
        ("", "x.permute(*order).contiguous()", "x.numel()"),
        ("", "x.transpose(d, -1).contiguous()", "x.numel()"),
        ("assert x.shape[:-1] == w.shape[:-1]", "torch.empty(x.shape[:-1])", "w.numel() // w.shape[-1]"),
        ("*batch, n = x.shape", "torch.empty((*batch, 2))", "2 * (x.numel() // n)"),
        ("a, b = x.shape\nb, c = w.shape", "x @ w", "a * c"),
        ("a, b = x.shape", "x.sum(dim=-1)", "a"),
        ("", "F.relu(x.contiguous())", "x.numel()"),
        ("a, b = x.shape", "torch.stack([x, x])", "2 * a * b"),
        ("a, b = x.shape", "F.pad(x, (1, 2))", "a * (b + 3)"),
        ("a, b = x.shape\nv, i = x.topk(3)", "i", "3 * a"),
        ("", "torch.empty((x.numel(),))", "x.numel() // 3 * 3"),
        (DIM, "torch.empty(x.shape)", "math.prod(x.shape[:d]) * x.shape[d] * math.prod(x.shape[d + 1:])"),
        (DIM, "torch.empty(x.shape)", "x.numel() // math.prod(x.shape[:d]) // x.shape[d] * x.shape[d]"),
        (DIM, "torch.empty(x.shape[d:])", "x.numel() // math.prod(x.shape[:d])"),
        (f"{DIM}\nshape = list(x.shape)\nshape[d] = 2", "torch.empty(shape)", "x.numel() // x.shape[d] * 2"),
        (f"{DIM}\nn = 1\nfor i in range(d):\n    n *= x.shape[i]", "torch.empty(x.shape[:d])", "n"),
        (f"{REDUCED}    n *= shape[i]\n    shape[i] = 1", "torch.empty(shape)", "x.numel() // n"),
        ("order = [k % x.ndim for k in order]\nm = x.permute(sorted(order))", "m.contiguous()", "x.numel()"),
        (f"{LIST}del s[1]", "torch.empty(s)", "x.numel() // x.shape[1]"),
        (f"{LIST}{DIM}\nk = s.pop(d)", "torch.empty(s)", "x.numel() // k"),
        (f"{LIST}del s[w]", "torch.empty(s)", "x.numel() // x.shape[w]"),
        (f"{LIST}s.insert(0, k)\ns.append(2)\ns.extend([k])", "torch.empty(s)", "2 * x.numel() * k * k"),
        (
            f"{LIST}n = s[0] if x.ndim == 1 else s[1]\ndel s[0 if x.ndim == 1 else 1]",
            "torch.empty(s)",
            "x.numel() // n",
        ),
        (f"{LIST}{DIM}\ns = s[:d] + [k] + s[d + 1:]", "torch.empty(s)", "x.numel() // x.shape[d] * k"),
        ("assert k in {16, 32}\nn = x.numel()", "torch.empty((n, k))", "16 * n"),
        ("", "torch.empty(order)", "math.prod(order)"),
        (
            "order = [k % x.ndim for k in order]\nd = order[0]",
            "torch.empty(x.shape[:d])",
            "math.prod(x.shape[:d])",
        ),
        ("sizes = list(order)\nsizes[d] = 1", "torch.empty(sizes)", "math.prod(sizes)"),
        ("m, n = x.shape[-2:]", "torch.empty(x.shape)", "int(x.numel() / m / n) * m * n"),
        ("k = 1 << k.bit_length()", "torch.empty((x.numel(), k))", "x.numel() * k"),
        ("", "torch.empty(order)", "functools.reduce(lambda a, b: a * b, order, 1)"),
        (NORMAL, "torch.empty_like(x)", AROUND),
        ("assert d != -1", "torch.empty_like(x)", AROUND),
        (NORMAL, "torch.empty_like(x)", EDGES),
        (ROUNDED, "torch.empty(m)", "x.shape[0]"),
        (
            f"{ROUNDED}\nassert x.shape[0] & (x.shape[0] - 1) == 0 and x.shape[0]",
            "torch.empty(x.shape[0])",
            "m",
        ),
        ("y = x[: x.shape[0] // 2]", "torch.empty_like(y)", "y.shape[0] * (x.numel() // x.shape[0])"),
        (f"{LIST}s[d] = triton.cdiv(s[d], 8)\nn = x.numel() // x.shape[d]", "torch.empty(s)", "n * s[d]"),
        ("a, b = x.shape\nk = 1 << math.ceil(math.log2(b))", "torch.empty((a, k))", "a * b"),
        ("a, b = x.shape\ny = F.pad(x, (0, 8 - b % 8))", "y", "a * y.stride(0)"),
        ("assert d == x.ndim - 1", "torch.empty(x.shape[-1])", "x.shape[d]"),
        (
            f"{DIM}\nn = 1\nfor i in range(d + 1, x.ndim):\n    n *= x.size(i)",
            "torch.empty(x.shape[d + 1:])",
            "n",
        ),
    ],
)
def test_sizes_that_the_text_gives(before: str, out: str, count: str, worst) -> None:
    assert worst(launched(before, out, count)) == "holds"


@pytest.mark.parametrize(
    ("before", "out", "count"),
    [
        ("assert k >= 1", "torch.empty((*x.shape[:-1], k))", "x.numel()"),
        ("", "torch.empty(x.shape[1:])", "x.numel()"),
        ("shape = list(x.shape)\nshape[-1] = 1", "torch.empty(shape)", "x.numel()"),
        ("", "torch.empty([])", "2"),
        ("", "x.sum(-1)", "x.numel()"),
        ("a, b = x.shape", "torch.cat([x, x])", "2 * a * b + 1"),
        ("a, b = torch.meshgrid(torch.empty(64), torch.empty(64), indexing='ij')", "a", "a.numel()"),
        ("n = 1\nfor size in x.shape[1:]:\n    n *= size", "torch.empty(n)", "x.numel()"),
        ("a, b = x.shape", "x.contiguous().unfold(1, 2, 1)", "2 * a * (b - 1)"),
        (f"{LIST}del s[1]", "torch.empty(s)", "x.numel() // x.shape[0]"),
        (f"{LIST}{DIM}\nk = s.pop(d)", "torch.empty(s)", "x.numel()"),
        (f"{LIST}for _ in range(k):\n    s.pop()", "torch.empty(s)", "x.numel() // x.shape[-1]"),
        (f"{LIST}t = s\ns.pop(0)", "torch.empty(t)", "x.numel()"),
        ("assert k in {16, 32}\nn = x.numel()", "torch.empty((n, k))", "32 * n"),
        (DIM, "torch.empty(x.shape[d:])", "x.numel()"),
        ("s = x.shape[:d]", "torch.empty(s[:d])", "math.prod(s)"),
        ("if d < 0:\n    d += x.ndim", "torch.empty_like(x)", AROUND),
        (ROUNDED, "torch.empty(m)", "2 * x.shape[0] - 2"),
        (ROUNDED.replace(">> 4", ">> 5"), "torch.empty(m)", "x.shape[0] * x.shape[0]"),
        (ROUNDED, "torch.empty(x.shape[0])", "m"),
        ("", "torch.empty_like(x[: x.shape[0] // 2])", "x.numel()"),
        (f"{LIST}s.insert(0, 1)\ns[d] = 2", "torch.empty(s)", "2 * x.numel() // x.shape[d]"),
        ("assert d < x.ndim", "torch.empty_like(x)", AROUND),
        ("a, b = x.shape\nk = 1 << math.ceil(math.log2(b))", "torch.empty((a, b))", "a * k"),
        ("a, b = x.shape\ny = F.pad(x, (0, -(b % 8)))", "y", "a * y.stride(0)"),
        ("n = 1\nfor i in range(d):\n    n *= x.size(i)", "torch.empty(x.shape[:d])", "n"),
        ("assert d == x.ndim - 2", "torch.empty(x.shape[-2:-1])", "x.shape[d]"),
        ("", "torch.empty_strided(x.size(), x.stride())", "x.numel()"),
        (DIM, "torch.empty(x.shape[:d])", "math.prod(x.shape[:d]) * x.shape[d]"),
        ("", "torch.empty_like(x)", "x.shape[d] * math.prod(x.shape[:d]) * math.prod(x.shape[d + 1:])"),
        (f"{REDUCED}    shape[i] = 1\n    n *= shape[i]", "torch.empty(shape)", "x.numel() // n"),
        (f"{REDUCED}    n *= shape[i]\n    shape[i] = 0", "torch.empty(shape)", "x.numel() // n"),
        ("", "torch.empty(order)", "functools.reduce(lambda a, b: a + b, order, 1)"),
        ("", "torch.empty(order)", "functools.reduce(lambda a, b: a * b, order, 2)"),
    ],
)
def test_sizes_that_are_too_small(before: str, out: str, count: str, worst) -> None:
    assert worst(launched(before, out, count)) != "holds"


@pytest.mark.parametrize(
    ("before", "out", "count"),
    [
        ("", "torch.empty_strided(x.size(), x.stride())", "x.numel()"),
        ("tile_of(x)", "x", "x.numel()"),  # what it turns away are sizes
        ("assert d < x.ndim", "torch.empty_like(x)", AROUND),  # -1 is followed by 0
    ],
)
def test_what_only_the_caller_can_see_to(before: str, out: str, count: str, worst) -> None:
    assert worst(launched(before, out, count)) == "caller"


def test_a_relation_that_unread_code_may_have_checked(worst) -> None:
    assert worst(launched("tile_of(x, k)", "x", "k")) == "unread"


@pytest.mark.parametrize(
    ("before", "call", "expected"),
    [
        ("r, n = x.shape\nassert x.is_contiguous()", "x, x.stride(0), n", "holds"),
        ("assert x.is_contiguous()\nr, n = x.shape\ny = torch.empty_like(x)", "y, y.stride(0), n", "holds"),
        ("r, n = x.shape\ny = torch.empty_like(x)", "y, y.stride(0), n", "caller"),
        ("r, n = x.shape\ny = x.new_empty((r, 2 * n))[:, ::2]", "y, y.stride(0), n", "holds"),
        ("r, n = x.shape\ny = x.new_empty((r, n))[:, ::2]", "y, y.stride(0), n", "holds"),  # the gaps have room
        ("r, n = x.shape\ny = x.new_empty((r, n))[:, ::2]", "y, y.stride(0), n + 1", "broken"),
        ("r, n = x.shape\ny = torch.empty((n, r)).mT.contiguous()", "y, y.stride(0), n", "holds"),
        ("r, n = x.shape\ny = torch.empty((r, 3, n)).select(1, 0)", "y, y.stride(0), n", "holds"),
        ("r, n = x.shape\na, b = torch.empty((r, 2 * n)).split(n, 1)", "b, b.stride(0), n", "holds"),
        ("r, n = x.shape\ny = torch.empty((2, r, n)).unbind(0)[1]", "y, y.stride(0), n", "holds"),
        ("r, n = x.shape\ny = torch.empty(r * n).unflatten(0, (r, n))", "y, y.stride(0), n", "holds"),
        ("r, n = x.shape\ny = torch.empty_strided((r, n), (n, 1))", "y, y.stride(0), n", "holds"),
        ("r, n = x.shape\ny = torch.empty_strided((r, n), (0, 1))", "y, y.stride(0), n", "broken"),
    ],
)
def test_strides_that_the_text_gives(before: str, call: str, expected: str, worst) -> None:
    text = textwrap.indent(before, "    ")
    body = f"\ndef host(x):\n{text}\n    rows[(r,)]({call}, BLOCK=triton.next_power_of_2(n))\n"
    assert worst(body) == expected


@pytest.mark.parametrize(
    "stride", ["x.stride(0)", "x.stride(d)", "x[1:].stride(-1)", "x.mT.stride(0)", "last(x)"]
)
def test_no_stride_is_negative(stride: str, statuses) -> None:
    body = f"""
    def last(x):
        return x.stride()[-1]

    def host(x, d):
        rows[(x.numel(),)](x, {stride}, 1, BLOCK=1)
    """
    assert statuses(body)["stride >= 0"] == "holds"


AUTOGRAD = """
class Function(torch.autograd.Function):
    @staticmethod
    {of_forward}
    def forward(ctx, x):
        {forward}
        ctx.n = x.numel()
        ctx.save_for_backward(x)
        return torch.empty_like(x)

    @staticmethod
    {of_backward}
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        {backward}
        flat[(triton.cdiv(ctx.n, 64),)](out, ctx.n, BLOCK=64)
"""


@pytest.mark.parametrize(
    ("forward", "backward", "of_forward", "of_backward", "expected"),
    [
        ("x = x.contiguous()", "out = x", "", "", "holds"),
        ("pass", "out = dy.contiguous()", "", "", "holds"),
        ("pass", "out = x", "@contiguous", "", "holds"),
        ("pass", "out = dy", "", "@contiguous", "holds"),
        ("pass", "out = x", "", "", "caller"),
        ("pass", "out = dy.contiguous()", "", "@checked", "unread"),
        ("pass", "out = x", "@checked", "", "caller"),
        ("pass", "out = x.contiguous()[1:]", "", "", "broken"),
    ],
)
def test_what_forward_hands_to_backward(
    forward: str, backward: str, of_forward: str, of_backward: str, expected: str, worst
) -> None:
    body = AUTOGRAD.format(
        forward=forward, backward=backward, of_forward=of_forward or "#", of_backward=of_backward or "#"
    )
    assert worst(body) == expected


def test_another_class_may_fill_the_context(worst) -> None:
    own = AUTOGRAD.format(forward="x = x.contiguous()", backward="out = x", of_forward="#", of_backward="#")
    other = """
class Other(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = 2 * x.numel()
        ctx.save_for_backward(x)
        return x
"""
    assert worst(own) == "holds"
    assert worst(own + other) == "unread"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("count = torch.cuda.get_device_properties(0).multi_processor_count", "holds"),
        ("count = getattr(torch.cuda.get_device_properties(0), 'multi_processor_count', 1)", "holds"),
        (
            "count = triton.runtime.driver.active.utils.get_device_properties(0)['multiprocessor_count']",
            "holds",
        ),
    ],
)
def test_a_device_has_a_multiprocessor(before: str, expected: str, worst) -> None:
    body = f"\ndef host(x):\n    {before}\n    flat[(count,)](torch.empty(count), 1, BLOCK=64)\n"
    assert worst(body) == expected
    assert worst(body.replace("1, BLOCK", "2, BLOCK")) != "holds"


# ---- what says nothing of sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before",
    [
        "scale = float(scale)",
        "fast = torch.cuda.is_available()",
        "if torch.xpu.is_available():\n    options.update({'grf': 'large'})",
        "if isinstance(x, DTensor):\n    x = x.full_tensor()",
        "if isinstance(x, DTensor):\n    x = x.to_local()\nshape = x.shape\ny = x.view(*shape)",
        "sms = torch.xpu.get_device_properties(x.device).gpu_eu_count",
        "try:\n    sms = device_properties(0).get('num_vectorcore', 20)\nexcept Exception:\n    sms = 20",
        "part = torch.empty(8) if scale else None\nstep = part.stride(0) if scale else 0",
    ],
)
def test_what_says_nothing_of_sizes_turns_no_input_away(before: str, statuses) -> None:
    """How long `w` is for an `x` is the caller's to know, whatever else is asked before."""
    body = f"{before}\nn = x.numel()\nflat[(triton.cdiv(n, 64),)](w, n, BLOCK=64)"
    found = statuses("def host(x, w, options, scale=None):\n" + textwrap.indent(body, "    "))
    assert found == {"numel(o_ptr) >= n": "caller"}


def test_a_decorator_that_is_read_turns_no_input_away(statuses) -> None:
    host = """
    class Filled(torch.autograd.Function):
        @staticmethod
        @{decorator}
        def forward(ctx, x, w):
            n = x.numel()
            flat[(triton.cdiv(n, 64),)](w, n, BLOCK=64)
            return w
    """
    assert statuses(host.format(decorator="contiguous")) == {"numel(o_ptr) >= n": "caller"}
    assert statuses(host.format(decorator="elsewhere")) == {"numel(o_ptr) >= n": "unread"}


@pytest.mark.parametrize(
    ("needs", "flag"),
    [
        ("ctx.needs_input_grad[1]", "needs"),
        ("True if given is None else given", "needs"),
        ("True if given is None else (True and given)", "needs"),
    ],
)
def test_a_flag_and_what_is_allocated_under_it(needs: str, flag: str, worst) -> None:
    host = f"""
    def host(ctx, given, n: int):
        needs = {needs}
        w = torch.empty((8, n)) if needs else None
        if {flag}:
            rows[(8,)](w, w.stride(0), n, BLOCK=triton.next_power_of_2(n))
    """
    assert worst(host) == "holds"


def test_a_mode_that_the_caller_chooses_by_name(worst) -> None:
    host = """
    ONE = tl.constexpr(1)
    SIZES = {"one": ONE.value, "two": 2}

    def host(mode):
        size = SIZES[mode]
        flat[(1,)](torch.empty(LENGTH), size, BLOCK=2)
    """
    assert worst(host.replace("LENGTH", "2")) == "holds"
    assert worst(host.replace("LENGTH", "1")) == "broken"


@pytest.mark.parametrize(
    ("root", "blocks", "expected"),
    [
        ("math.ceil(math.sqrt(n))", "triton.cdiv(n, size)", "holds"),  # so many blocks for each to have a part
        ("math.ceil(math.sqrt(n))", "size", "broken"),  # 3 for 7, and 3 parts of 3: 9 - 1 for 7 is one too many
        ("int(math.sqrt(n)) + 1", "triton.cdiv(n, size)", "holds"),
        ("math.isqrt(n) + 1", "size + 1", "broken"),
    ],
)
def test_the_root_of_a_size(root: str, blocks: str, expected: str, worst) -> None:
    host = f"""
    def host(x):
        n = x.numel()
        size = {root}
        out = torch.empty((triton.cdiv(n, size),))
        rows[({blocks},)](out, 1, 1, BLOCK=1)
    """
    assert worst(host) == expected


def test_an_output_that_the_caller_may_bring_is_its_own_to_lay_out(statuses) -> None:
    host = """
    @triton.jit
    def cells(o_ptr, s, t, n, BLOCK: tl.constexpr):
        cols = tl.arange(0, BLOCK)
        tl.store(o_ptr + tl.program_id(0) * s + cols * t, 1, mask=cols < n)

    def host(x, out=None):
        m, n = x.shape
        if out is None:
            out = torch.empty((m, n))
        cells[(m,)](out, out.stride(0), out.stride(1), {width}, BLOCK=triton.next_power_of_2({width}))
    """
    for width in ("n", "n // 2"):
        assert set(statuses(host.replace("{width}", width)).values()) == {"holds", "caller"}


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("torch.empty_like(x)", "caller"),  # as large as `x`, which its caller relates to `w`
        ("torch.empty(x.shape)", "caller"),
        ("torch.empty((x.shape[0] // 2,))", "broken"),
        ("torch.empty((w.shape[0] - 1,))", "broken"),
    ],
)
def test_an_output_in_the_shape_of_an_input(out: str, expected: str, worst) -> None:
    host = f"""
    def host(x, w):
        assert x.ndim == 1 and w.ndim == 1
        n = w.shape[0]
        flat[(triton.cdiv(n, 64),)]({out}, n, BLOCK=64)
    """
    assert worst(host) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("triton.next_power_of_2(n) if n <= 4096 else 1024", "caller"),  # `n` is how many there are
        ("k", "broken"),  # `k` is a tile size, which the host chooses
    ],
)
def test_a_size_of_which_the_tile_size_follows(size: str, expected: str, worst) -> None:
    host = f"""
    @triton.jit
    def parts(o_ptr, n, BLOCK: tl.constexpr):
        offs = tl.program_id(0) * BLOCK + tl.arange(0, 16)
        tl.store(o_ptr + offs, 1, mask=offs < n)

    def host(x, n: int, k: int):
        size = {size}
        parts[(triton.cdiv(n, size),)](x, n, BLOCK=size)
    """
    assert worst(host) == expected


@pytest.mark.parametrize(
    ("call", "expected"), [("rows[(n,)](x, x.stride(1), m", "caller"), (WRONG_ROWS, "broken")]
)
def test_a_transposed_input_is_laid_out_as_one(call: str, expected: str, worst) -> None:
    body = f"""
def host(x):
    x = x.t()
    m, n = x.shape
    {call}, BLOCK=64)
"""
    assert worst(body) == expected


def test_a_buffer_that_is_kept_has_the_size_of_another_call(worst) -> None:
    body = """
_KEPT = None

def host(n):
    global _KEPT
    if _KEPT is None:
        _KEPT = torch.empty(n)
    flat[(triton.cdiv(n, 64),)](_KEPT, n, BLOCK=64)

def twice():
    host(1)
    host(1000000)
"""
    assert worst(body) == "broken"
