"""Whatever host code does, its launches are found or reported as not understood; nothing raises."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from tilecheck.frontend.host.run import HostExecutor

STATEMENTS = [
    "x, y = y, x",
    "n += unread()",
    "n: int = n ** 2",
    "x.shape = (1, 2)",
    "x[n] = 3",
    "del x",
    "global n",
    "import os, torch as t2",
    "from somewhere import *",
    "raise unread(x) from None",
    "assert False, x",
    "return lambda: x",
    "yield n",
    "await unread()",
    "pass",
    "break",
    "continue",
    "a = b = c = [n] * n",
    "(a, *b), c = unread()",
    "print(f'{n:>{n}}')",
    "x = x @ y",
    "n = not n",
    "n = -n if n else ~n",
    "n = x < y < n",
    "n = {**{}, 'a': n}",
    "n = {n, 1}",
    "n = [a for a in range(n) if a for b in a]",
    "n = {k: v for k, v in n.items()}",
    "n = x[..., None, n:, ::-1]",
    "n = (yield)",
    "n = x.view(-1, -1)",
    "n = torch.empty(*x.shape, n)",
    "n = torch.empty(-3)",
    "n = x.reshape(n, y)",
    "n = x.expand(x)",
    "n = ct.cdiv(x, 'a')",
    "n = 1 // 0",
    "n = 1 << -1",
    "n = 10 ** 10 ** 3",
    "n = max()",
    "n = min(x, key=len)",
    "n = range(1, 2, 0)",
    "n = x.chunk(0)",
    "n = x.permute(0, 0)",
    "n = x.squeeze()",
    "n = len(n)",
    "n = sum(x)",
    "n = host(x, y, n)",
    "n = host",
    "n = math.ceil(x / y)",
    "n = int('7')",
    "n = x.T.T.T",
    "n = functools.reduce(operator.add, n)",
    "n = ''.join(map(str, n))",
    "n = isinstance(n, (int, float))",
    "n = x if y is None else None",
    "n = (n := n + 1)",
    "n = super().forward(x)",
    "n = x.size(n)",
    "n = x.stride(99)",
    "n = x.shape[99]",
    "n = x.shape[n]",
    "n = torch.empty_like(n)",
    "n = torch.empty_like(x if n else y)",
]
COMPOUNDS = [
    "if n:\n{a}\nelse:\n{b}",
    "for n in x:\n{a}\nelse:\n{b}",
    "for i, n in enumerate(range(3)):\n{a}\n{b}",
    "while n:\n{a}\n{b}",
    "try:\n{a}\nexcept (ValueError, TypeError) as n:\n{b}\nfinally:\n    x = y",
    "with unread(x) as n, torch.no_grad():\n{a}\n{b}",
    "match n:\n    case [1, *rest]:\n        x = rest\n    case {{'a': y}}:\n        pass\n{a}\n{b}",
    "def inner(n=n, *args, **kw):\n{a}\n{b}\ninner(n)",
    "class Inner:\n{a}\n{b}",
    "async def inner():\n{a}\n{b}\nn = inner()",
    "@unread\ndef inner(x):\n{a}\n{b}\ninner(x)",
]
ENDINGS = [
    "ct.launch(None, (n,), fill, (x,))",
    "ct.launch(None, n, n, n)",
    "ct.launch(None, (n, n, n, n), pair, [x, y])",
    "ct.launch()",
    "ct.launch(**n)",
    "ct.launch(None, (1,), fill, (n,))",
]


def _indented(text: str, by: int = 4) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _bodies() -> list[str]:
    rng = random.Random(5)
    bodies = [f"{s}\n{rng.choice(ENDINGS)}" for s in STATEMENTS]
    for compound, ending in itertools.product(COMPOUNDS, ENDINGS):
        a, b = (_indented(rng.choice(STATEMENTS)) for _ in range(2))
        bodies.append(f"{compound.format(a=a, b=b)}\n{ending}")
    for _ in range(60):
        inner = _indented(rng.choice(COMPOUNDS).format(a=_indented("x = y"), b=_indented(rng.choice(ENDINGS))))
        outer = rng.choice(COMPOUNDS).format(a=inner, b=_indented(rng.choice(STATEMENTS)))
        bodies.append(f"{outer}\n{rng.choice(ENDINGS)}")
    return bodies


def _parses(text: str) -> bool:
    try:
        compile(text, "host.py", "exec")
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    "head",
    ["def host(x, y, n):", "async def host(self, x, y=None, *n, **k):", "class C:\n  def host(x, y, n):"],
)
def test_nothing_raises(head: str, launches: Any) -> None:
    by = 4 if head.startswith(("def", "async")) else 8
    tried = 0
    for body in _bodies() if head.startswith("def") else _bodies()[::3]:
        text = f"{head}\n{_indented(body, by)}"
        if not _parses(text):
            continue
        tried += 1
        found = launches(text)
        assert found, text
        assert all(la.problem is not None or la.kernel for la in found), text
    assert tried > 30


def test_recursion_ends(launches: Any) -> None:
    found = launches(
        """
        def a(x, n):
            if n:
                b(x, n - 1)
                a(x, n - 2)
            ct.launch(None, (n,), fill, (x,))

        def b(x, n):
            a(x, n)
            b(x, n)
        """
    )
    assert {launch.kernel for launch in found} == {"fill"}


def test_a_long_function_is_a_problem_not_a_hang(launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilecheck.frontend.host.run.HOST_STEPS", 300)
    lines = "\n".join(f"    n = n + unread({k})" for k in range(100))
    found = launch(f"def host(x, n):\n{lines}\n    ct.launch(None, (n,), fill, (x,))")
    assert found.problem == "`host` is too large to follow"


@pytest.mark.parametrize("doubled", ["a = a + a", "a += a", "a = a * 2"])
def test_a_list_that_doubles_fills_no_memory(launch: Any, doubled: str) -> None:
    lines = f"    {doubled}\n" * 60
    found = launch(f"def host(x):\n    a = [1, 2]\n{lines}    ct.launch(None, (len(a),), fill, (x,))")
    assert (found.problem, repr(found.grid[0])) == (None, "len(a)")


def test_branches_that_leave_a_value_as_it_is_add_up(launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round has three ways on which `found` stays what it was: what it may be does not grow by as much."""
    calls = []
    read = HostExecutor.unread
    monkeypatch.setattr(HostExecutor, "unread", lambda x, text: calls.append(text) or read(x, text))
    rounds = """
    for k in range(8):
        if n > k:
            for size in [32, 64]:
                if n > size:
                    continue
                if m > size:
                    continue
                found.append(unread(size))
"""
    text = f"def host(x, n, m):\n    found = []{rounds}    ct.launch(None, (len(found),), fill, (x,))"
    assert launch(text).problem is None
    assert len(calls) < 500


def test_deep_nesting(launch: Any) -> None:
    text = "(" * 60 + "n" + " + 1)" * 60
    assert launch(f"def host(x, n):\n    ct.launch(None, ({text},), fill, (x,))").problem is None


@pytest.mark.parametrize("folder", ["kernels", "fixtures"])
def test_all_launches_of_this_repository_are_understood(folder: str) -> None:
    from tilecheck.errors import SourceError
    from tilecheck.frontend.launches.discovery import find_launches
    from tilecheck.frontend.modules.project import Project
    from tilecheck.frontend.text.source import load

    root = Path(__file__).parents[3]
    count = 0
    for path in sorted((root / folder).rglob("*.py")):
        try:
            table = Project().add(load(path.as_posix()))
        except SourceError:
            continue
        expects_unread = "# expect: unread" in path.read_text(encoding="utf-8", errors="replace")
        for launch in find_launches(table):
            count += 1
            assert launch.problem is None or expects_unread, (path.name, launch.problem)
    assert count
