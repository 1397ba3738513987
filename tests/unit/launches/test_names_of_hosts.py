"""What a name of host code stands for: globals and variables that other functions bind, defaults, results that
are kept, imports that may fail, and iterators that run later on."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

HEADER = """
import functools
import types
import torch
import triton
import triton.language as tl
from elsewhere import unread

@triton.jit
def fill(x, B: tl.constexpr):
    tl.store(x + tl.program_id(0) * B + tl.arange(0, B), 1.0)

def set_n(c):
    c.n = 100
"""


@pytest.fixture
def statuses(tmp_path: Path) -> Callable[[str], set[str]]:
    def run(text: str) -> set[str]:
        path = tmp_path / "host.py"
        path.write_text(HEADER + textwrap.dedent(text), encoding="utf-8")
        launches = verify_paths([f"{path.as_posix()}::fill"]).kernels[0].launches
        return {condition.status for at in launches for condition in at.conditions}

    return run


def host(before: str, between: str, blocks: str, around: str = "") -> str:
    """Allocates for what a name stands for, and launches for what it stands for later."""
    lines = [
        *textwrap.dedent(around).splitlines(),
        "def host(c, d, xs, run, n: int):",
        *textwrap.indent(before, "    ").splitlines(),
        f"    y = torch.empty({blocks} * 256)",
        *textwrap.indent(between, "    ").splitlines(),
        f"    fill[({blocks},)](y, B=256)",
    ]
    return "\n".join(lines)


BUMP = """
N = 1
def bump():
    global N
    N = N + 1
def now():
    return N
"""


@pytest.mark.parametrize(
    ("before", "between", "blocks", "around"),
    [
        ("", "bump()", "N", BUMP),
        ("", "bump()", "now()", BUMP),
        ("", "unread()", "N", BUMP),
        ("global N", "N = n", "N", BUMP),
        ("global N", "N = n", "now()", BUMP),
        ("global N\nN = n", "bump()", "N", BUMP),
        ("global N\nN = n", "unread()", "N", BUMP),
        ("m = n\ndef inner():\n    nonlocal m\n    m = 7", "inner()", "m", ""),
        ("m = n\ndef inner():\n    nonlocal m\n    m = 7\nrun.f = inner", "run.g()", "m", ""),
        ("zs = [1]\ndef inner():\n    zs[0] = 7\nrun.f = inner", "run.g()", "zs[0]", ""),
        ("z = {'n': n}\ndef inner():\n    z.update(n=7)\nrun.f = inner", "run.g()", "z['n']", ""),
        ("", "pass", "kept(n)", "def kept(n, old=[]):\n    old.append(n)\n    return len(old)"),
        ("", "pass", "kept(n)", "def kept(n, old={'n': 1}):\n    old['n'] += 1\n    return old['n']"),
        ("", "pass", "kept(n)", "def kept(n, *, old=[1]):\n    old[0] += n\n    return old[0]"),
    ],
)
def test_a_name_may_stand_for_something_else_later(
    before: str, between: str, blocks: str, around: str, statuses: Callable[[str], set[str]]
) -> None:
    assert statuses(host(before, between, blocks, around)) == {"unread"}


@pytest.mark.parametrize(
    ("before", "between", "blocks", "around"),
    [
        ("", "n + 1", "N", "N = 3"),
        ("", "unread()", "N", "N = 3"),
        ("", "unread()", "now()", "N = 3\ndef now():\n    return N"),
        ("global N\nN = n", "n + 1", "N", BUMP),
        ("m = n\ndef inner():\n    m = 7", "inner()", "m", ""),
        ("zs = [n]\ngrid = lambda meta: (zs[0],)", "unread()", "zs[0]", ""),
        ("zs = [n]\ndef grid(meta):\n    return (max(zs[0], 1),)", "unread()", "zs[0]", ""),
        ("", "pass", "kept(n)", "def kept(n, old=1):\n    return n + old"),
        ("zs = [n]", "pass", "kept(zs)", "def kept(zs, old=()):\n    return zs[0]"),
    ],
)
def test_a_name_that_nothing_binds_anew_stands_for_one_value(
    before: str, between: str, blocks: str, around: str, statuses: Callable[[str], set[str]]
) -> None:
    assert statuses(host(before, between, blocks, around)) == {"holds"}


CACHED = """
@functools.lru_cache
def kept(c):
    return c.n
def host(c):
    {before}
    y = torch.empty(kept(c) * 256)
    fill[({blocks},)](y, B=256)
"""


def test_a_cached_function_may_return_what_it_read_earlier(statuses: Callable[[str], set[str]]) -> None:
    assert statuses(CACHED.format(before="kept(c)\n    c.grow()", blocks="c.n")) == {"unread"}
    assert statuses(CACHED.format(before="pass", blocks="y.numel() // 256")) == {"holds"}


@pytest.mark.parametrize(
    "imports",
    [
        "try:\n    from functools import lru_cache\nexcept ImportError:\n    from elsewhere import lru_cache",
        "try:\n    from elsewhere import lru_cache\nexcept ImportError:\n    from functools import lru_cache",
        "from elsewhere import lru_cache",
    ],
)
def test_a_decorator_is_what_it_is_called_only_where_nothing_else_is(
    imports: str, statuses: Callable[[str], set[str]]
) -> None:
    helper = "\n@lru_cache\ndef size(n):\n    return n\n"
    text = "def host(n: int):\n    fill[(n,)](torch.empty(size(n) * 256), B=256)"
    assert statuses(imports + helper + text) == {"unread"}


def test_a_decorator_that_leaves_a_function_as_it_is(statuses: Callable[[str], set[str]]) -> None:
    helper = "from functools import lru_cache\n@lru_cache\ndef size(n):\n    return n\n"
    text = "def host(n: int):\n    fill[(n,)](torch.empty(size(n) * 256), B=256)"
    assert statuses(helper + text) == {"holds"}


OPTIONAL = """
try:
    import fast
except ImportError:
    fast = None
def host(n: int):
    {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "y = torch.empty(n * 256) if fast is not None else torch.empty(n)\n    fill[(n,)](y, B=256)",
        "y = torch.empty(n * 256) if fast else torch.empty(n)\n    fill[(n,)](y, B=256)",
        "y = torch.empty(n if fast is None else n * 256)\n    fill[(n,)](y, B=256)",
        "if fast is None:\n        fill[(n,)](torch.empty(n), B=256)",
        "m = fast\n    if m is None:\n        fill[(n,)](torch.empty(n), B=256)",
    ],
)
def test_an_import_that_may_fail_leaves_both_ways_open(body: str, statuses: Callable[[str], set[str]]) -> None:
    assert statuses(OPTIONAL.format(body=body)) & {"broken", "unread"}


def test_an_import_that_is_called_did_not_fail(tmp_path: Path, statuses: Callable[[str], set[str]]) -> None:
    (tmp_path / "fast.py").write_text("def size(n):\n    return n * 256\n", encoding="utf-8")
    text = """
    try:
        from fast import size
    except ImportError:
        size = None
    def host(n: int):
        fill[(n,)](torch.empty(size(n)), B=256)
    """
    assert statuses(text) == {"holds"}


@pytest.mark.parametrize(
    ("before", "blocks", "allocated"),
    [
        ("z = (m for _ in (1,))\nm = n\nm2, = z", "n", "m2"),
        ("z = (set_n(e) for e in (c,))\ny = torch.empty(c.n * 256)\nlist(z)", "c.n", None),
        ("z = map(set_n, xs)\ny = torch.empty(c.n * 256)\nlist(z)", "c.n", None),
        ("z = (c.n for _ in (1,))\nm = c.n\nc.grow()\nm2, = z", "m2", "m"),
        ("zs = [1, 2]\nz = zip(zs, zs)\nzs.append(3)", "len(list(z))", "2"),
        ("zs = [1, 2]\nz = reversed(zs)\nzs[0] = 7\na, b = z", "b", "1"),
        ("zs = [1, 2]\nz = zip(zs, zs)\na = len(list(z))\nb = len(list(z))", "a", "b"),
        ("z = (e for e in (1, 2))\na = sum(z)\nb = sum(z)", "a", "b"),
        ("zs = [1, 2]\nm = 0\nfor z in zs:\n    m += 1\n    if m < 5:\n        zs.append(z)", "m", "2"),
    ],
)
def test_what_an_iterator_gives_later_is_not_known(
    before: str, blocks: str, allocated: str | None, statuses: Callable[[str], set[str]]
) -> None:
    allocate = [] if allocated is None else [f"y = torch.empty({allocated} * 256)"]
    lines = ["m = 3", *before.splitlines(), *allocate, f"fill[({blocks},)](y, B=256)"]
    assert statuses("def host(c, xs, n: int):\n" + textwrap.indent("\n".join(lines), "    ")) == {"unread"}


@pytest.mark.parametrize(
    ("before", "blocks"),
    [
        ("m = sum(k for k in (1, 2))", "3"),
        ("m, = (k for k in (3,))", "3"),
        ("m = max(*(k for k in (3, 2)))", "3"),
        ("m = 0\nfor k, z in enumerate([1, 2]):\n    m += z", "3"),
        ("m = len(list(zip([1, 2, 3], [1, 2, 3])))", "3"),
        ("zs = [1, 2]\nout = []\nfor z in zs:\n    out.append(zs[0])\nm = len(out)", "2"),
    ],
)
def test_what_an_iterator_gives_at_once_is_known(
    before: str, blocks: str, statuses: Callable[[str], set[str]]
) -> None:
    lines = [*before.splitlines(), "y = torch.empty(m * 256)", f"fill[({blocks},)](y, B=256)"]
    assert statuses("def host(c, xs, n: int):\n" + textwrap.indent("\n".join(lines), "    ")) == {"holds"}
