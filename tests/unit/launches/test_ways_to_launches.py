"""How launches are reached: what runs between, before and instead of what stands above them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

HEAD = """
import math
import torch
import triton
import triton.language as tl
from elsewhere import check, manager, unread

@triton.jit
def flat(o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, 1, mask=offs < n)
"""
LAUNCH = "flat[(triton.cdiv(n, 64),)](out, n, BLOCK=64)"
ORDER = ("holds", "caller", "unread", "unmet", "broken")


@pytest.fixture
def worst(tmp_path: Path) -> Callable[..., str]:
    def run(text: str, kernel: str = "flat") -> str:
        path = tmp_path / "host.py"
        path.write_text(HEAD + textwrap.dedent(text), encoding="utf-8")
        launches = verify_paths([f"{path.as_posix()}::{kernel}"]).kernels[0].launches
        assert launches
        return max((c.status for at in launches for c in at.conditions), key=ORDER.index, default="unread")

    return run


def host(body: str, head: str = "m: int, n: int") -> str:
    return f"def host({head}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n    {LAUNCH}\n"


CLASS = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, m: int, k: int):
{forward}

    @staticmethod
    def backward(ctx, dy):
{backward}
        flat[(triton.cdiv(ctx.n, 64),)](out, ctx.n, BLOCK=64)
        return dy, None, None
"""
UNPACKED = "(x,) = ctx.saved_tensors\nout = torch.empty(x.numel())"
TWO = "ctx.save_for_backward(torch.cat([x.view(-1), x.view(-1)]))"


def autograd(forward: str, backward: str = UNPACKED) -> str:
    text = (textwrap.indent(part.strip(), " " * 8) for part in (forward, backward))
    return CLASS.format(forward=next(text), backward=next(text))


@pytest.mark.parametrize(
    "text",
    [
        autograd(
            "ctx.save_for_backward(x)\ntry:\n    ctx.n = x.numel()\n    return x\nfinally:\n    ctx.n *= 2"
        ),
        autograd(
            "ctx.m, ctx.n = m, k\nif k > m:\n    return x\nctx.save_for_backward(x)\nreturn x",
            "out = torch.empty(ctx.m)",
        ),
        *(
            autograd(f"ctx.n = 2 * x.numel()\n{TWO}\n{again}\nreturn x")
            for again in (
                "c = ctx\nc.save_for_backward(x)",
                "save = ctx.save_for_backward\nsave(x)",
                "ctx.save_for_backward(*unread(x))",
                "f = lambda: ctx.save_for_backward(x)\nf()",
                "[ctx.save_for_backward(t) for t in (x,)]",
                "c, d = ctx, 3\nc.save_for_backward(x)",
                "ctx.to_save = (x,)",
            )
        ),
        autograd("ctx.n = x.numel()\nctx.save_for_backward(x)\nctx.__dict__['n'] = 2 * x.numel()\nreturn x"),
        autograd("ctx.n = x.numel()\nctx.save_for_backward(x)\nreturn x")
        + "setattr(Twice, 'forward', staticmethod(unread))\n",
        host(
            "l = [m]\ndef f():\n    try:\n        return m\n    finally:\n        l[0] = 2 * m\nf()\n"
            "n, out = l[0], torch.empty(m)",
            "m: int",
        ),
        host(
            "def f():\n    l = [m]\n    try:\n        return l\n    finally:\n        l[0] = 2 * m\n"
            "n, out = f()[0], torch.empty(m)",
            "m: int",
        ),
        host(
            "out = torch.empty(1)\ntry:\n    check(x)\n    out = torch.empty(n)\nexcept ValueError:\n    pass",
            "x, n: int",
        ),
        host("out = torch.empty(n)\nlist(map(lambda t: t.set_(torch.empty(1)), [out]))", "n: int"),
        host("out = torch.empty(n)\ndef f():\n    out.data = torch.empty(1)\nunread(f)", "n: int"),
        host("out = torch.empty(1)\nwith manager():\n    check(x)\n    out = torch.empty(n)", "x, n: int"),
    ],
)
def test_what_is_wrong_does_not_pass(text: str, worst) -> None:
    assert worst(text) not in ("holds", "caller")


@pytest.mark.parametrize(
    "text",
    [
        host("if x.ndim > 1:\n    return\nn, out = x.shape[0], torch.empty(x.shape[-1])", "x"),
        host("assert x.ndim <= 2\nn, out = x.numel(), torch.empty(x.shape[0] * x.shape[-1])", "x"),
        host("s = list(x.shape)\ns = s[1:] + s[:1]\nn, out = x.numel(), torch.empty(s)", "x"),
        host("n, out = x.shape[-2], torch.empty(x.shape[-2:])", "x"),
        host(
            "assert d == 0 or d == -x.ndim\nn, out = x.numel() // x.shape[d], torch.empty(x.shape[1:])",
            "x, d: int",
        ),
    ],
)
def test_no_launch_is_blamed_for_sizes_that_no_tensor_has(text: str, worst) -> None:
    assert worst(text) != "broken"


@pytest.mark.parametrize(
    "text",
    [
        host("assert x.ndim == 3\nout, n = torch.empty(x.shape[:d]), x.numel()", "x, d: int"),
        host("out, n = torch.empty((a, b)[:d]), a * b", "a: int, b: int, d: int"),
        host("out, n = torch.empty(torch.view_as_complex(x).shape), x.numel()", "x"),
        host("out, n = torch.empty((*x.shape[:-1], k)), x.numel() * k", "x, k: int"),
        host("s = list(x.shape)\ns[-1] = k\nout, n = torch.empty(s), x.numel() * k", "x, k: int"),
        host("y = x.transpose(0, -1)\nout, n = torch.empty(y.shape[1:]), math.prod(x.shape[1:])", "x"),
    ],
)
def test_sizes_of_new_tensors_are_the_hosts_own(text: str, worst) -> None:
    assert worst(text) not in ("holds", "caller")


FLAG = """
@triton.heuristics(unread())
@triton.jit
def flat(o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(o_ptr + offs, 1)
    else:
        tl.store(o_ptr + offs, 1, mask=offs < n)
"""


def test_unread_heuristics_may_set_what_has_a_default(tmp_path: Path) -> None:
    path = tmp_path / "host.py"
    imports = HEAD.partition("@triton.jit")[0]
    path.write_text(imports + FLAG + host("out = torch.empty(n)", "n: int"), encoding="utf-8")
    launches = verify_paths([path.as_posix()]).kernels[0].launches
    assert "unread" in {c.status for at in launches for c in at.conditions}


@pytest.mark.parametrize(
    "text",
    [
        host("for i in range(3):\n    if n <= m:\n        break\nelse:\n    return\nout = torch.empty(m)"),
        host(
            "ok = False\nfor i in range(3):\n    if n <= m:\n        ok = True\n        break\n"
            "if not ok:\n    raise ValueError\nout = torch.empty(m)"
        ),
        host(
            "try:\n    if n > m:\n        raise ValueError\nexcept* TypeError:\n    pass\nout = torch.empty(m)"
        ),
        host("n = x.numel()\nout = torch.empty(x.shape[:d] + x.shape[d:])", "x, d: int"),
        host(
            "assert 0 <= d < x.ndim\nn = x.numel()\n"
            "out = torch.empty(x.shape[:d] + (x.shape[d],) + x.shape[d + 1 :])",
            "x, d: int",
        ),
    ],
)
def test_what_is_right_is_not_blamed(text: str, worst) -> None:
    assert worst(text) != "broken"


AXES = "m = [d % x.ndim for d in dims]\nn = x.shape[m[0]]\n"


def test_items_of_a_list_that_the_text_makes_are_what_it_says(worst) -> None:
    end = "out = torch.empty(x.shape[m[0]])"
    assert worst(host(AXES + end, "x: torch.Tensor, dims")) == "holds"
    for between in ("m[0] = 0", "unread(m)", "m = [0]", "m = [(d + 1) % x.ndim for d in dims]"):
        assert worst(host(f"{AXES}{between}\n{end}", "x: torch.Tensor, dims")) != "holds", between


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("n = x.numel()\nout = x.contiguous().view(torch.uint8)", "holds"),
        ("n = x.numel()\nout = torch.empty_like(x, dtype=torch.float32).view(torch.int16)", "holds"),
        ("n = x.numel()\nout = torch.empty(n, dtype=torch.int8).view(torch.int32)", "unread"),
        (
            "a, b = x.shape\nn = 4 * a * b\nout = torch.empty(a, b, dtype=torch.float32).view(torch.bool)",
            "holds",
        ),
        (
            "a, b = x.shape\nn = 5 * a * b\nout = torch.empty(a, b, dtype=torch.float32).view(torch.int8)",
            "broken",
        ),
    ],
)
def test_a_view_as_a_smaller_type_has_more_elements(worst, body: str, expected: str) -> None:
    assert worst(host(body, "x: torch.Tensor")) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a, b = torch.broadcast_tensors(x, y)\nn = a.numel()\nout = b.contiguous()", "holds"),
        ("a, b = torch.broadcast_tensors(x, y)\nn = a.numel()\nout = torch.empty(b.shape)", "holds"),
        ("a, b = torch.broadcast_tensors(x, y)\nn = a.numel()\nout = y.contiguous()", "unread"),
        ("t = torch.int8 if unread() else x.dtype\nout = torch.empty(n, dtype=t, device=x.device)", "holds"),
        ("s = x.shape if unread() else y.shape\nout = torch.empty(s)\nn = out.numel()", "holds"),
        ("s = x.shape if unread() else y.shape\nout = torch.empty(s)\nn = y.numel()", "unread"),
        ("if isinstance(None, torch.Tensor):\n    n += 1\nout = torch.empty(n)", "holds"),
        ("if not isinstance('a', (int, str)):\n    n += 1\nout = torch.empty(n)", "holds"),
        ("m = n\nif isinstance(x, Other):\n    n += 1\nout = torch.empty(m)", "broken"),
    ],
)
def test_shapes_and_types_that_the_text_gives(worst, body: str, expected: str) -> None:
    assert worst(host(body, "x: torch.Tensor, y: torch.Tensor, n: int")) == expected


def test_the_standard_library_stays_as_it_is(worst) -> None:
    body = "s = tuple(unread(n))\nout = torch.empty(s)\nn = functools.reduce(operator.mul, s, 1)"
    assert worst("import functools, operator\n" + host(body)) == "holds"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "y = x.transpose(1, 2)\na, b, c = y.shape\nn = c * x.shape[0]\nout = torch.empty(x.shape[:2])",
            "holds",
        ),
        (
            "y = x.transpose(1, 2)\na, b, c = y.shape\nn = b * x.shape[0]\nout = torch.empty(x.shape[:2])",
            "broken",
        ),
        ("y = x.transpose(-1, -2)\nn = y.shape[-1]\nout = torch.empty(x.shape[-2])", "holds"),
        ("y = x.transpose(0, 1).transpose(1, 2)\nn = y.shape[2]\nout = torch.empty(x.shape[0])", "holds"),
        ("n = x.numel()\nout = x.full_tensor().contiguous()", "holds"),
        ("n = x.numel()\nout = x.to_local().contiguous()", "caller"),
    ],
)
def test_axes_of_a_tensor_of_any_rank_change_places(worst, body: str, expected: str) -> None:
    assert worst(host(body, "x: torch.Tensor")) == expected


REGISTER = """
FOUND = {}

def register(name, *, rank=1):
    def keep(f):
        if name in FOUND:
            raise ValueError(name)
        FOUND[name] = f
        return f
    return keep

def once(f):
    FOUND[f.__name__] = f
    return f

def checked(f):
    def call(*args):
        check(*args)
        return f(*args)
    return call

def other(f):
    f = unread(f)
    return f
"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [("register('a')", "broken"), ("once", "broken"), ("checked", "unread"), ("other", "unread")],
)
def test_a_decorator_that_keeps_a_function_turns_nothing_away(worst, decorator: str, expected: str) -> None:
    body = "out = torch.empty(x.shape[0])\nn = max(x.shape[0], 100)"
    assert worst(f"{REGISTER}\n@{decorator}\n{host(body, 'x: torch.Tensor')}") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("k = (x != 0).sum().item()", "broken"),
        ("k = round(unread())", "broken"),
        ("k = unread(x).item()", "unread"),
    ],
)
def test_code_that_turns_no_sizes_away(worst, code: str, expected: str) -> None:
    body = f"out = torch.empty(x.shape[0])\nn = max(x.shape[0], 100)\n{code}"
    assert worst(host(body, "x: torch.Tensor")) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("*a, b = x.shape\nn = int(torch.prod(torch.tensor(a))) if a else 1\nout = torch.empty(a)", "holds"),
        ("*a, b = x.shape\nn = int(torch.tensor(a).prod())\nout = torch.empty(a)", "holds"),
        ("*a, b = x.shape\nt = torch.tensor(a)\nt += 1\nn = int(t.prod())\nout = torch.empty(a)", "unread"),
        ("t = torch.stack(xs)\nn = t.numel()\nout = torch.empty(len(xs), *xs[0].shape)", "holds"),
    ],
)
def test_sizes_that_tensors_and_lists_hold(worst, body: str, expected: str) -> None:
    assert worst(host(body, "x: torch.Tensor, xs")) == expected


ARGUMENTS = "x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, xs, k: int, m: int, n: int, c: bool"


@pytest.mark.parametrize(
    "body",
    [
        "u = torch.empty(4)\nv = (u[:],)\nu.resize_(n)\nout = v[0].clone()",
        "u = torch.empty(4)\nv = u[:] if unread() else torch.empty(n)\nu.resize_(n)\nout = v.clone()",
        "u = torch.empty(1).expand(n)\nu.resize_(n)\nout = u",
        "u = torch.empty(1).expand(x.numel())\nu.resize_(x.shape)\nout = u\nn = x.numel()",
        "y.resize_(1000)\nx.resize_(5)\nn = 1000\nout = y.clone()",
        "y.resize_(n, m)\nx.resize_(5)\nn = n * m\nout = y.clone()",
        "s = [k, 2]\nif c:\n    t = s\nelse:\n    t = [k, 5]\ns[1] = 1\nout = torch.empty(t)\nn = 2 * k",
        "s = [k, 2]\nt = s if c else [k, 5]\ns.pop()\nout = torch.empty(t)\nn = 2 * k",
        "s = [k, 2]\nt = (s, 1) if c else ([k, 3], 1)\ns[0] = 1\nout = torch.empty(t[0])\nn = 2 * k",
        "n = math.prod(x.shape, start=2)\nout = torch.empty(x.shape)",
        "n = sum([k, 2], 3)\nout = torch.empty(k + 2)",
        "u = x.transpose(6, 7)\nn = u.shape[6] + 1\nout = torch.empty(x.shape[7])",
        "a, b = x.transpose(-2, -1).shape\nn = b\nout = torch.empty(x.shape[1])",
        "u = x.transpose(0, 1)\nassert x.ndim == 2\nn = u.shape[-1]\nout = torch.empty(x.shape[1])",
        "(a,) = torch.broadcast_tensors(x)\nn = a.numel() + 1\nout = torch.empty(x.shape)",
        "u = torch.empty(k, dtype=torch.uint8)\nout = u.expand(3, k).view(torch.uint8)\nn = 3 * k",
        "u = torch.empty(m, 4).expand(3, m, 4).view(3, -1)\nout = u\nn = 12 * m",
        "u = torch.empty(m, 1).expand(m, 4).view(m, -1)\nout = u\nn = 4 * m",
        "out = torch.empty(1, k).expand(m, k).reshape(m, k)\nn = m * k",
        "out = torch.empty(1).expand(n).reshape(-1)",
        "out = torch.empty(1, 1).expand(m, k).flatten()\nn = m * k",
        "out = x.sum().expand(n).reshape(-1)",
        "s = list(x.shape)\ns.reverse()\nout = torch.empty(s[0])\nn = x.shape[0]",
        "s = list(x.shape)\nt = s\nt.sort()\nout = torch.empty(s[1:])\nn = math.prod(x.shape[1:])",
        "s = list(x.stride())\ns.sort()\nout = torch.empty(s[0])\nn = x.stride(0)",
        "out = torch.empty(1) if xs else torch.empty(n)\nxs.clear()\nif xs: return",
        "out = torch.empty(1) if xs else torch.empty(n)\nq = xs\ndel q[:]\nif xs: return",
        "out = torch.empty(xs)\nxs.append(2)\nn = math.prod(xs)",
        "out = torch.empty(n)\ndef change():\n    nonlocal out\n    out = torch.empty(1)\nchange()",
        "a, b = torch.empty(n), torch.empty(1)\nfor i in range(k): a, b = b, a\nout = a",
        "out = torch.empty(n - 1)\nfor i in range(k): out = torch.relu(out)",
        "while k > 3:\n    out = torch.empty(1)\n    k -= 1",
        "out = x.expand(3, *x.shape)\nn = 3 * x.numel()",
        "out = torch.lerp(x, x, 0.5)[1:]\nn = x.numel()",
        "out = torch.empty(n).conj()\nn = 2 * n",
    ],
)
def test_what_the_host_gets_wrong_is_not_left_to_the_caller(worst, body: str) -> None:
    assert worst(host(body, ARGUMENTS)) not in ("holds", "caller")


@pytest.mark.parametrize(
    "body",
    [
        "u = torch.empty(4)\nout = u[2:]\nout.resize_(n)",
        "u = torch.empty(n + 1)\nv = u[1:]\nv.resize_(n + 1)\nout = v\nn = n + 1",
        "out = torch.empty(8).view(2, 4)[1]\nout.resize_(n)",
        "t = torch.stack(xs)\nn = t.numel()\nout = torch.empty(len(xs), *xs[1].shape)",
        "t = torch.stack([x, y])\nn = t.numel()\nout = torch.empty(2, y.numel())",
        "u = int(x)\nout = torch.empty(1)\nn = x.numel()",
        "u = int(x[99])\nout = torch.empty(x.shape[0])\nn = max(x.shape[0], 100)",
        "u = x[99].sum().item()\nout = torch.empty(x.shape[0])\nn = max(x.shape[0], 100)",
        "u = check.all(x)\nout = torch.empty(x.shape[0])\nn = max(x.shape[0], 100)",
        "u = f'{check(x)}'\nout = torch.empty(x.shape[0])\nn = max(x.shape[0], 100)",
        "n = math.prod(x.shape, start=0) + 1\nout = torch.empty(1)",
        "n = triton.next_power_of_2(k) // 2\nout = torch.empty(k)",
    ],
)
def test_what_torch_lets_through_is_all_that_is_blamed(worst, body: str) -> None:
    assert worst(host(body, ARGUMENTS)) != "broken"


@pytest.mark.parametrize(
    "decorator",
    [
        "def keep(f):\n    def f(x): unread(x)\n    return f",
        "def keep(f):\n    class f: ...\n    return f",
        "def keep(f):\n    from elsewhere import f\n    return f",
        "def keep(f):\n    def bind():\n        nonlocal f\n        f = unread(f)\n    bind()\n    return f",
        "def keep(f):\n    try: unread(f)\n    except ValueError as f: pass\n    return f",
    ],
)
def test_a_decorator_that_gives_back_something_else_may_turn_inputs_away(worst, decorator: str) -> None:
    body = "out = torch.empty(x.shape[0])\nn = max(x.shape[0], 100)"
    assert worst(f"{decorator}\n\n@keep\n{host(body, 'x: torch.Tensor')}") == "unread"


DESCRIBED = """
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def tile(b, B: tl.constexpr):
    b.store([tl.program_id(0) * B, tl.program_id(1) * B], tl.zeros((64, 64), tl.float32))

def host(x, y: torch.Tensor, k: int, m: int):
    out = torch.empty(m, k)
    s, t = [m, k], [k, 1]
    {code}
    tile[(triton.cdiv(m, 64), triton.cdiv(k, 64))](b, B=64)
"""


@pytest.mark.parametrize(
    "code",
    [
        "b = TensorDescriptor(out, s, t, [64, 64])\n    b.base = torch.empty(1, k)",
        "b = TensorDescriptor(out, s, t, [64, 64])\n    b.shape[0] = 2 * m",
        "b = TensorDescriptor(out, s, t, [64, 64])\n    s[0] = 2 * m",
        "b = TensorDescriptor(out, s, t, [64, 64])\n    t[0] = 1",
        "u = x.expand(3, *x.shape)\n    b = TensorDescriptor(u, [3, x.numel()], [x.numel(), 1], [64, 64])",
    ],
)
def test_descriptors_that_are_changed_or_repeat_elements_do_not_hold(worst, code: str) -> None:
    assert worst(DESCRIBED.format(code="b = TensorDescriptor(out, s, t, [64, 64])"), "tile") == "holds"
    assert worst(DESCRIBED.format(code=code), "tile") not in ("holds", "caller")


EITHER_PRODUCT = (
    "u = x * y if m > 3 else x - y\n*b, c = u.shape\nout = torch.empty_like(u)\n"
    "n = int(torch.prod(torch.tensor(b))) * c if b else c"
)
CONV = "torch.nn.functional.conv_transpose2d(x, y)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # What torch computes of tensors of unknown rank is its own: its sizes go with themselves.
        ("u = x * y\nout = torch.empty_like(u).view(-1)\nn = u.numel()", "holds"),
        ("u = x.view(-1, 8) * (x - y.sum(-1, True))\nout = torch.empty(u.shape)\nn = u.numel()", "holds"),
        (f"u = {CONV} * x\nout = torch.empty(u.shape)\nn = u.numel()", "holds"),
        (f"u = {CONV} * x\nout = torch.empty(u.shape)\nn = u.numel() + 1", "broken"),
        ("u = x * y\nout = x.view(-1)\nn = u.numel()", "unread"),
        ("out = x.transpose(-2, -2).contiguous()\nn = x.numel()", "holds"),
        # The star takes what is left of either shape.
        (EITHER_PRODUCT, "holds"),
        ("u = x if m > 3 else y\n*b, r, c = u.shape\nout = torch.empty(*b, r, c)\nn = u.numel()", "unread"),
        ("u = x if m > 3 else y\n*b, r, c = u.shape\nout = torch.empty(*b, r)\nn = u.numel()", "not holds"),
        ("u = (m, k, 5) if m > 3 else (k, 5)\n*b, c = u\nout = torch.empty(*b, 5)\nn = math.prod(u)", "unread"),
        ("u = (m, k, 5) if m > 3 else (k, 5)\na, *b = u\nout = torch.empty(a)\nn = math.prod(u)", "not holds"),
    ],
)
def test_what_is_computed_of_tensors_of_unknown_rank(worst, body: str, expected: str) -> None:
    found = worst(host(body, "x: torch.Tensor, y: torch.Tensor, m: int, k: int"))
    assert (found != "holds") if expected == "not holds" else found == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("n = int(os.environ.get('ROWS') or 32)\nout = torch.empty(n)", "holds"),
        ("n = int(os.getenv('ROWS', '7'))\nout = torch.empty(n)", "holds"),
        # Who starts the process may say anything: a size of its own is checked here, or it breaks.
        ("n = int(os.environ.get('ROWS') or 32)\nout = torch.empty(32)", "broken"),
        ("n = int(os.environ.get('ROWS') or 32)\nassert n <= 32\nout = torch.empty(32)", "holds"),
        (
            "n = int(os.environ.get('ROWS') or 32)\nassert n > 0 and n & (n - 1) == 0\nout = torch.empty(n)",
            "holds",
        ),
        ("n = int(os.environ.get('ROWS'))\nout = torch.empty(int(os.environ.get('ROWS')))", "not holds"),
        ("n = int(os.environ.get('ROWS', unread(m)))\nout = torch.empty(32)", "unread"),
    ],
)
def test_environment_variables_are_inputs(worst, body: str, expected: str) -> None:
    found = worst("import os\n" + host(body, "m: int"))
    assert (found != "holds") if expected == "not holds" else found == expected


EITHER = "y = x.view(-1)\nif k != 1:\n    y = y {op}\nctx.n = x.numel()\nctx.save_for_backward(x)\nreturn y"


@pytest.mark.parametrize(("op", "expected"), [("* k", "holds"), ("[:k]", "not holds")])
def test_a_gradient_has_the_shape_of_either_result(worst, op: str, expected: str) -> None:
    text = autograd(EITHER.format(op=op), "out = torch.empty_like(dy)")
    assert (worst(text) == "holds") == (expected == "holds")


OF_ONE = "ctx.n = x.numel()\nctx.save_for_backward(x)\nreturn {}"


@pytest.mark.parametrize(
    ("result", "made", "expected"),
    [
        ("x * x", "dy", "holds"),
        ("1 - 2 * x", "dy", "holds"),
        ("x / 2", "dy[1:]", "broken"),
        ("x * 0 + 1", "dy", "unread"),
        ("x * k", "dy[1:]", "unread"),  # if `k` is a tensor, the result is as large as both say
    ],
)
def test_a_gradient_has_the_shape_of_what_arithmetic_is_on(
    worst, result: str, made: str, expected: str
) -> None:
    assert worst(autograd(OF_ONE.format(result), f"out = torch.empty_like({made})")) == expected


COLUMNS = "m, n = dy.shape\nout = torch.empty({})"


@pytest.mark.parametrize(
    ("forward", "made", "expected"),
    [
        ("return x + k", "n", "holds"),
        ("return x + k", "m", "broken"),
        ("return x * 0 + k", "m", "unread"),
        ("return x + k", "x.shape[0]", "unread"),  # how these go together nothing says
        ("unread(x)\nreturn x + k", "m", "unread"),
    ],
)
def test_a_gradient_of_a_sum_may_have_any_shape(worst, forward: str, made: str, expected: str) -> None:
    text = autograd(f"ctx.save_for_backward(x)\n{forward}", COLUMNS.format(made))
    assert worst(text.replace("ctx.n", "n")) == expected


PLACED = """
def placed(v, where):
    if isinstance(v, torch.Tensor):
        if where is not None and v.device != where:
            v = v.to(where)
        return v
    return torch.tensor(v)

"""


OF_EITHER = (
    "d = x.device if isinstance(x, torch.Tensor) else {}\n"
    "u, v = torch.broadcast_tensors(placed(x, d), placed(y, d))\nout = torch.empty(v.shape)\nn = u.numel()"
)
TWICE = "n = m\nif {}:\n    n *= 2\nout = torch.empty(m)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Where a tensor lies is never None, and says nothing of its sizes.
        (TWICE.format("isinstance(x, torch.Tensor) and x.device is None"), "holds"),
        (TWICE.format("isinstance(x, torch.Tensor) and x.device is not None"), "not holds"),
        (TWICE.format("x.place is None"), "not holds"),
        (TWICE.format("x.device is None"), "not holds"),
        (TWICE.format("torch.device('cuda') is None"), "holds"),
        (f"d = x.device if isinstance(x, torch.Tensor) else None\n{TWICE.format('d is None')}", "not holds"),
        (OF_EITHER.format("torch.device('cuda')"), "holds"),
        (OF_EITHER.format("None"), "holds"),
        # What is chosen where it is contiguous is.
        ("u = torch.empty_like(x)\nout = x if x.is_contiguous() else u\nn = x.numel()", "holds"),
        ("u = torch.empty_like(x)\nout = u if x.is_contiguous() else x\nn = x.numel()", "not holds"),
    ],
)
def test_tensors_that_lie_in_one_of_two_places(worst, body: str, expected: str) -> None:
    found = worst(PLACED + host(body, "x, y, m: int, n: int"))
    assert (found != "holds") if expected == "not holds" else found == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("x.stride() == y.stride()", "holds"),
        ("x.stride() == z.stride() == y.stride()", "holds"),
        ("x.shape == y.shape", "not holds"),
        ("x.stride() == z.stride()", "not holds"),
    ],
)
def test_equal_strides(worst, asked: str, expected: str) -> None:
    said = f"assert x.ndim == y.ndim == 2\nassert {asked}"
    body = f"{said}\nout = torch.empty(y.stride(0))\nn = x.stride(0)"
    found = worst(host(body, "x: torch.Tensor, y: torch.Tensor, z: torch.Tensor"))
    assert (found == "holds") == (expected == "holds")


@pytest.mark.parametrize(
    ("before", "axis", "expected"),
    [
        ("", "d", "holds"),
        ("e = d % x.ndim", "e", "holds"),
        ("e = d + x.ndim if d < 0 else d", "e", "holds"),
        ("e = d + x.ndim - 1", "e", "not holds"),
        ("e = d + y.ndim if d < 0 else d", "e", "not holds"),
        ("", "k", "not holds"),
        ("d += 1", "d", "not holds"),
    ],
)
def test_two_axes_that_are_exchanged(worst, before: str, axis: str, expected: str) -> None:
    """Of one shape, the same axes make one other, of which they make that shape again."""
    head = "x: torch.Tensor, y: torch.Tensor, d: int, k: int"
    body = f"a = x.transpose(d, -1)\n{before}\n"
    twice = f"out = torch.empty_like(a)\nn = x.transpose({axis}, -1).size(0) * out.numel() // out.size(0)"
    back = f"out = torch.empty(x.size(0))\nn = a.transpose(-1, {axis}).size(0)"
    for rest in (twice, back):
        found = worst(host(body + rest, head))
        assert (found == "holds") == (expected == "holds")


@pytest.mark.parametrize(
    ("body", "n", "expected"),
    [
        ("out = torch.where(x, x, 0)", "x.shape[0] * x.shape[1]", "holds"),
        ("out = torch.where(x[:, :1], x[:1], 0)", "x.shape[0] * x.shape[1]", "holds"),
        ("out = torch.where(x[:, :1], x[:, :1], 0)", "x.shape[0] * x.shape[1]", "not holds"),
        ("out = torch.maximum(x, y)", "x.numel()", "not holds"),
        ("out = torch.where(y, y, y.unsqueeze(1))", "y.shape[0] * y.shape[0]", "holds"),
        ("out = y.add(y.unsqueeze(1), alpha=2)", "y.shape[0] * y.shape[0]", "holds"),
        ("out = y.eq(y.unsqueeze(1))", "y.shape[0] * y.shape[0]", "holds"),
        ("out = torch.div(y, 2, rounding_mode='floor')", "y.shape[0]", "holds"),
        ("out = torch.add(y, y.unsqueeze(1), out=y)", "y.shape[0] * y.shape[0]", "not holds"),
        ("(out,) = torch.where(y)", "y.shape[0]", "not holds"),
    ],
)
def test_operands_of_functions_are_broadcast(worst, body: str, n: str, expected: str) -> None:
    shapes = "assert x.ndim == 2 and y.ndim == 1"
    found = worst(host(f"{shapes}\n{body}\nn = {n}", "x: torch.Tensor, y: torch.Tensor"))
    assert (found == "holds") == (expected == "holds")


@pytest.mark.parametrize(
    ("part", "n"),
    [
        # What holds a part of a buffer alone ends with it, not with the buffer.
        ("torch.empty(m, 2 * k)[:, :k].contiguous()", "2 * m * k - k"),
        ("torch.empty(m, 2 * k)[:, :k].ravel()", "2 * m * k - k"),
        ("torch.empty(m, 2 * k)[:, :k].reshape(-1)", "2 * m * k - k"),
        ("torch.empty(m, 2 * k)[:, :k].half()", "2 * m * k - k"),
        ("torch.empty(2 * m)[:m].to(torch.float16)", "2 * m"),
        ("torch.empty(4 * m)[::4].contiguous()", "4 * m - 3"),
        ("torch.empty(m, 3, k).unbind(1)[0].contiguous()", "3 * m * k - 2 * k"),
        ("torch.empty(m, 2 * k).narrow(1, 0, k).contiguous()", "2 * m * k - k"),
        ("torch.empty(m, 2 * k).split([k, k], dim=1)[0].contiguous()", "2 * m * k - k"),
        ("torch.empty(torch.empty(m, 2 * k).narrow(1, 0, k).stride(0) // 2)", "2 * k"),
    ],
)
def test_copies_of_parts(worst, part: str, n: str) -> None:
    found = worst(host(f"out = {part}\nn = {n}", "m: int, k: int"))
    assert found != "holds"


ALLOCATES = """
def alloc(rows, *rest):
    return torch.empty(rows)

def first(rows, cols=1):
    return torch.empty(rows)

def sized(*sizes):
    return torch.empty(*sizes)

def counted(*sizes):
    return torch.empty(len(sizes))
"""


@pytest.mark.parametrize(
    ("made", "n", "expected"),
    [
        ("sized(*x.shape)", "x.numel()", "holds"),
        ("counted(*x.shape)", "x.ndim", "holds"),
        ("counted(*x.shape)", "x.numel()", "not holds"),
        ("alloc(*x.shape)", "x.numel()", "not holds"),
        ("first(*x.shape)", "x.numel()", "not holds"),
        ("first(*s)", "m", "unread"),
        ("(lambda rows, cols=1: torch.empty(rows))(*x.shape)", "x.numel()", "not holds"),
    ],
)
def test_starred_sizes_that_a_function_in_view_takes(worst, made: str, n: str, expected: str) -> None:
    body = f"s = [m, n] if m > 3 else [n]\nout = {made}\nn = {n}"
    found = worst(ALLOCATES + host(body, "x: torch.Tensor, m: int, n: int"))
    assert (found != "holds") if expected == "not holds" else found == expected


@pytest.mark.parametrize(
    "made",
    [
        "d = [torch.empty(1) for i in range(m)]",
        "d = {}\nfor i in range(m):\n    d[i] = torch.empty(1)",
        "d = []\nfor i in range(m):\n    d.append(torch.empty(1))",
        "d = dict(zip((0, 1), (torch.empty(1), torch.empty(1))))",
        "d = [None] * m\nd[0] = torch.empty(1)",
        "d = collections.defaultdict(lambda: torch.empty(1))",
        "d = unread(m)",
        "d = unread(*x)",
    ],
)
def test_nobody_hands_in_what_a_host_makes(worst, made: str) -> None:
    assert worst("import collections\n" + host(f"{made}\nout = d[0]", "x, m: int, n: int")) == "unread"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("u.shape == [m, n]", "not holds"),
        ("u.shape == (m, n)", "holds"),
        ("list(u.shape) == [m, n]", "holds"),
        ("[m, n] == (m, n)", "not holds"),
        ("u.stride() == [n, 1]", "not holds"),
        ("u.stride() == (n, 1)", "holds"),
        ("x.shape == list(x.shape)", "not holds"),
    ],
)
def test_lists_equal_no_tuples(worst, asked: str, expected: str) -> None:
    body = f"u = torch.empty(m, n)\nout = torch.empty(n) if {asked} else torch.empty(1)"
    found = worst(host(body, "x: torch.Tensor, m: int, n: int"))
    assert (found == "holds") == (expected == "holds")


@pytest.mark.parametrize(
    "body",
    [
        "n = int(s, 16)\nout = torch.empty(int(s))",
        "n = 2 if s else 1\nout = torch.empty(2 if int(s) else 1)",
        "s = os.environ.get('N', '0')\nn = 2 if bool(s) else 1\nout = torch.empty(2 if int(s) != 0 else 1)",
    ],
)
def test_numbers_in_texts(worst, body: str) -> None:
    assert worst("import os\n" + host(body, "s, m: int")) != "holds"


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ("x.shape == y.shape", "y.shape == x.shape"),
        ("x.shape == y.shape and z.shape == y.shape", "x.shape == z.shape"),
        ("x.stride() == y.stride() and z.stride() == y.stride()", "x.stride() == z.stride()"),
        ("x.shape == y.shape and x.stride() == y.stride() and y.is_contiguous()", "x.is_contiguous()"),
        ("x.ndim == 2 and x.stride(1) == 1 and x.stride(0) == x.shape[1]", "x.is_contiguous()"),
    ],
)
def test_what_follows_from_equal_shapes_and_strides(worst, asked: str, other: str) -> None:
    body = f"assert {asked}\nn = x.numel()\nout = torch.empty(n if {other} else 1)"
    assert worst(host(body, "x: torch.Tensor, y: torch.Tensor, z: torch.Tensor")) == "holds"


@pytest.mark.parametrize(
    ("n", "size"), [("k", "(k,), (1,)"), ("2 * k - 1", "(k,), (2,)"), ("k", "(k,), (1,), 2")]
)
def test_no_window_lies_outside_its_memory(worst, n: str, size: str) -> None:
    assert worst(host(f"out = torch.empty(m).as_strided({size})\nn = {n}", "m: int, k: int")) != "broken"


GRADIENT = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, m: int, k: int):
        ctx.save_for_backward(x)
        ctx.n = x.numel()
{forward}

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
{backward}
        flat[(triton.cdiv(n, 64),)](out, n, BLOCK=64)
"""


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        ("return x.sum() if k else x", "out = torch.empty_like(dy)\nn = x.numel()", "broken"),
        ("return helper(x, k)", "out = torch.empty_like(dy)\nn = x.numel()", "unread"),
        ("if k:\n    return x.sum()\nreturn x", "out = torch.empty_like(dy)\nn = x.numel()", "unread"),
        ("return x", "out = torch.empty_like(x)\nn = ctx.n", "holds"),
        ("return x", "out = torch.empty_like(x)\nn = ctx.n\nctx.n += 5", "not holds"),
    ],
)
def test_what_backward_finds(worst, forward: str, backward: str, expected: str) -> None:
    parts = (textwrap.indent(text, "        ") for text in (forward, backward))
    found = worst(GRADIENT.format(**dict(zip(("forward", "backward"), parts, strict=True))))
    assert (found != "holds") if expected == "not holds" else found == expected


@pytest.mark.parametrize("value", ["(2, 3, n)", "torch.empty(2, 3, n).shape", "[2, 3, n] if m else (4, n)"])
def test_a_star_takes_what_others_leave(worst, value: str) -> None:
    assert worst(host(f"*some, last = {value}\nout = torch.empty(last)")) == "holds"


STEPS = """
@triton.jit
def by_steps(o_ptr, n, s, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs // s, 1, mask=offs < n)

@triton.jit
def scaled(o_ptr, n, s, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, s * 0.5, mask=offs < n)
"""


@pytest.mark.parametrize(
    ("kernel", "body", "expected"),
    [
        # With a fraction the kernel does not compile: what is not 0 or less is 1 or more.
        ("by_steps", "if s <= 0:\n    raise ValueError\nsize = n", "holds"),
        ("by_steps", "if s < 0:\n    raise ValueError\nsize = n", "not holds"),
        (
            "by_steps",
            "s = s if isinstance(s, int) else s[0]\nif s <= 0:\n    raise ValueError\nsize = n",
            "holds",
        ),
        ("by_steps", "if not k <= 0 and k < 1:\n    size = 1\nelse:\n    size = n\ns = 1", "not holds"),
        # 0.5 is neither 0 or less nor 1 or more.
        ("scaled", "size = n if s <= 0 or s >= 1 else 1", "not holds"),
        ("scaled", "size = n if s <= 0 or s > 0 else n", "holds"),
    ],
)
def test_numbers_that_may_be_fractions_are_compared(worst, kernel: str, body: str, expected: str) -> None:
    text = f"def host(n: int, s, k):\n{textwrap.indent(body, '    ')}\n    out = torch.empty(size)\n"
    launch = f"    {kernel}[(triton.cdiv(n, 64),)](out, n, s, BLOCK=64)\n"
    found = worst(STEPS + text + launch, kernel)
    assert (found == "holds") == (expected == "holds")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("out = torch.empty(n)\nfor i in range(m):\n    out[i] = 1", "holds"),
        ("out = torch.empty(n)\nwhile m:\n    m -= 1\n    out[m] = 1", "holds"),
        ("out = torch.empty(n)\nfor i in range(m):\n    out = out[i:]", "not holds"),
        ("out = torch.empty(n)\nfor i in range(m):\n    out[i] = 1\n    out = torch.empty(i)", "not holds"),
        (
            "s = torch.zeros(1)\nout = torch.empty(1)\nfor i in range(m):\n    s[0] = n\nn = int(s[0]) + 1",
            "not holds",
        ),
        ("u = [torch.empty(n)]\nfor i in range(m):\n    u[0] = torch.empty(1)\nout = u[0]", "not holds"),
    ],
)
def test_elements_that_a_loop_stores(worst, body: str, expected: str) -> None:
    assert (worst(host(body)) == "holds") == (expected == "holds")


def test_either_of_two_starred_sequences(worst) -> None:
    body = "s = (m, n) if m > 3 else (n, m)\nout = torch.empty(*s)\nn = m * n"
    assert worst(host(body)) == "holds"


def test_a_rank_that_a_part_of_a_shape_fixes(worst) -> None:
    body = (
        "s = torch.empty((3,) + x.shape[:-1]).permute(-1, -2)\nout = torch.empty(x.shape[0])\nn = x.shape[-2]"
    )
    assert worst(host(body, "x: torch.Tensor")) == "holds"


@pytest.mark.parametrize(("exact", "expected"), [("x.shape[1] % g == 0", "holds"), ("g != 7", "not holds")])
def test_what_is_divided_by_what_may_be_negative(worst, exact: str, expected: str) -> None:
    """Then nothing is left, and there is no block."""
    body = (
        f"assert x.ndim == 2 and {exact}\nout = torch.empty(x.shape[0] * (x.shape[1] // g))\nn = x.numel() // g"
    )
    assert (worst(host(body, "x: torch.Tensor, g: int")) == "holds") == (expected == "holds")


LAST = """
def put_last(x, dims):
    if isinstance(dims, int):
        dims = [dims]
    strides = x.stride()
    others = [i for i in range(x.ndim) if i not in dims]
    return x.permute(others + sorted(dims, key=lambda d: strides[d])).contiguous()
"""


@pytest.mark.parametrize(
    ("made", "n", "expected"),
    [
        ("y = put_last(x, d)", "y.size(-1)", "holds"),
        ("y = x.permute([i for i in range(x.ndim) if i != d] + [d])", "y.size(-1)", "holds"),
        ("y = x.permute([i for i in range(x.ndim) if i != d] + [k])", "y.size(-1)", "not holds"),
        ("y = x.permute([i for i in range(y.ndim) if i != d] + [d])", "y.size(-1)", "not holds"),
        ("y = put_last(x, d)", "y.size(0)", "not holds"),
        (
            "o = [i for i in range(x.ndim) if i != d]\no.reverse()\ny = x.permute(o + [d])",
            "x.size(0) // y.size(0) * x.size(d)",
            "not holds",
        ),
        (
            "o = [i for i in range(x.ndim) if i != d]\no[0], o[1] = o[1], o[0]\ny = x.permute(o + [d])",
            "x.size(0) // y.size(0) * x.size(d)",
            "not holds",
        ),
    ],
)
def test_an_axis_that_is_put_last(worst, made: str, n: str, expected: str) -> None:
    body = f"d = d % x.ndim\nout = torch.empty(x.size(d))\n{made}\nn = {n}"
    found = worst(LAST + host(body, "x: torch.Tensor, y: torch.Tensor, d: int, k: int"))
    assert (found == "holds") == (expected == "holds")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "if m:\n    unread()\n    out = torch.empty(n)\nelse:\n    out = torch.empty(c.n)\n    n = c.n",
            "holds",
        ),
        ("if m:\n    unread()\nout = torch.empty(c.n)\nunread()\nn = c.n", "not holds"),
        ("k = c.n\nif m:\n    unread()\nelse:\n    pass\nout = torch.empty(k)\nn = c.n", "not holds"),
        ("if m:\n    unread(outs)\nelse:\n    outs[0].fill_(1)\nout = outs[0]", "not holds"),
        (
            "if m:\n    unread()\n    out = torch.empty(n)\nelse:\n    t = c.t\n    t2 = c.t\n    out = t",
            "caller",
        ),
    ],
)
def test_one_branch_does_not_see_what_the_other_changes(worst, body: str, expected: str) -> None:
    found = worst(host(body, "outs, c, m: int, n: int"))
    assert (found != "holds") if expected == "not holds" else found == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("if m:\n    pass\nelse:\n    pass\nout = torch.empty(n)", "holds"),
        ("if m:\n    xs.append(1)\nelse:\n    pass\nout = torch.empty(n)", "not holds"),
        ("if m:\n    pass\nelse:\n    xs.append(1)\nout = torch.empty(n)", "not holds"),
        ("if m:\n    if n:\n        xs.append(1)\nout = torch.empty(n)", "not holds"),
    ],
)
def test_what_a_branch_changes_is_changed_after_it(worst, before: str, expected: str) -> None:
    text = f"n = len(xs)\nout = None\n{before}\nif out is None:\n    out = torch.empty(n)\nn = len(xs)"
    assert (worst(host(text, "xs: list, m: int")) == "holds") == (expected == "holds")


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        ("ctx.n = x.numel()", "n = ctx.n", "holds"),
        ("ctx.n = x.numel()", "n = ctx.n\nhelper(ctx)", "unread"),
        ("ctx.n = x.numel()", "n = ctx.n\nsetattr(ctx, 'n', 2 * n)", "unread"),
        ("ctx.n = x.numel()", "n = ctx.n\nfor ctx.n in (1, 2):\n    pass", "unread"),
        ("ctx.d = [x.numel()]", "n = ctx.d[0]", "holds"),
        ("ctx.d = [x.numel()]", "n = ctx.d[0]\nd = ctx.d\nd[0] = 2 * n", "unread"),
        ("ctx.buf = torch.empty(1)", "n = x.numel()\nout = ctx.buf", "broken"),
        ("ctx.buf = torch.empty(1)", "n = x.numel()\nout = ctx.buf\nctx.buf.zero_()", "broken"),
        ("ctx.buf = torch.empty(1)", "n = x.numel()\nout = ctx.buf\nctx.buf = None", "unread"),
    ],
)
def test_what_backward_changes_in_the_context(worst, forward: str, backward: str, expected: str) -> None:
    parts = (
        textwrap.indent(t, "        ")
        for t in (f"{forward}\nreturn x", f"out = torch.empty_like(x)\n{backward}")
    )
    found = worst(
        GRADIENT.replace("        ctx.n = x.numel()\n", "").format(
            **dict(zip(("forward", "backward"), parts, strict=True))
        )
    )
    assert found == expected


@pytest.mark.parametrize(
    "stored",
    [
        "xs[0] = torch.empty(1)\nout = xs[0]",
        "xs.append(torch.empty(1))\nout = xs[-1]",
        "if m > 2:\n    c.buf = torch.empty(1)\nout = c.buf",
        "c.buf = torch.empty(n)\nfor i in range(m):\n    out = c.buf\n    c.buf = torch.empty(1)\nout = c.buf",
    ],
)
def test_nobody_hands_in_what_a_host_stores(worst, stored: str) -> None:
    assert worst(host(stored, "xs, c, m: int, n: int")) in ("unread", "unmet", "broken")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("r = min(ratio, 1.0)\nassert 0 < r\nout = torch.empty(int(n * r))", "not holds"),
        ("r = abs(ratio)\nassert 0 < r\nout = torch.empty(int(n * r))", "not holds"),
        ("out = torch.empty(max(n, 4))", "holds"),
        ("if isinstance(k, int):\n    print(k)\nout = torch.empty(int(k))\nn = 3 if k > 2 else 0", "not holds"),
        ("buf = torch.empty_strided((8, 8), (0, 1))\nout = buf[4:]\nn = 32", "broken"),
        ("buf = torch.empty_strided((16, 32), (64, 1))\nout = buf[8:]\nn = 7 * 64 + 32", "holds"),
        ("out = torch.where(x > 0, x, 0)", "not holds"),
    ],
)
def test_fractions_and_rooms(worst, body: str, expected: str) -> None:
    found = worst(host(body, "x: torch.Tensor, n: int, k, ratio: float = 0.5"))
    assert (found != "holds") if expected == "not holds" else found == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.empty(64, m).t() + 1", "not caller"),
        ("x.contiguous().t() * 2", "not caller"),
        ("x.t() * 2", "not caller"),
        ("torch.relu(torch.empty(64, m).t())", "not caller"),
        ("x * 2", "caller"),
        ("x[:, :4] * 2", "caller"),
    ],
)
def test_results_are_laid_out_as_operands(worst, made: str, expected: str) -> None:
    text = f"""
def host(x: torch.Tensor, m: int):
    assert x.ndim == 2
    out = {made}
    by_rows[(out.shape[0],)](out, out.stride(0), out.stride(1), out.shape[1], BLOCK=64)
"""
    assert (worst(BY_ROWS + text, "by_rows") == "caller") == (expected == "caller")


BY_ROWS = """
@triton.jit
def by_rows(o_ptr, s0, s1, n, BLOCK: tl.constexpr):
    for i in range(0, n, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        tl.store(o_ptr + tl.program_id(0) * s0 + offs * s1, 1, mask=offs < n)
"""


def test_a_default_that_is_a_float_says_what_a_parameter_is(worst) -> None:
    text = """
def host(k=64.5):
    if k >= 65:
        return
    out = torch.empty(64)
    flat[(2,)](out, k, BLOCK=64)
"""
    assert worst(text) != "holds"


def test_a_float_that_a_kernel_converts(worst) -> None:
    text = """
@triton.jit
def shifted(o_ptr, n, eps, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, eps.to(tl.float32) + 1, mask=offs < n)

def host(n: int, eps: float):
    shifted[(triton.cdiv(n, 64),)](torch.empty(n), n, eps, BLOCK=64)
"""
    assert worst(text, "shifted") == "holds"
