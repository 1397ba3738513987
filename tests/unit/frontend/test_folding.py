"""Plain functions of constants: what is found is what Python computes, and nothing else is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilecheck import verify_paths
from tilecheck.frontend.constants.folding import folded
from tilecheck.frontend.constants.python_values import plain
from tilecheck.frontend.constants.strings import NotConstant
from tilecheck.frontend.execute.expressions import module_name
from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.modules.project import ModuleTable, Project
from tilecheck.frontend.text.source import parse
from tilecheck.frontend.triton.ops import Triton
from tilecheck.model import Site, Span, Verdict
from tilecheck.text import decode


def found(text: str) -> Any:
    """What is found for the name `X` of a module."""
    project = Project()
    table = project.add(parse(decode("m.py", text.encode())))
    x = Executor(project, Triton(), Site("m.py", Span(0, 0)))

    def meaning(where: ModuleTable, name: str) -> Any:
        return None if name in where.rebound else module_name(x, where, name)

    return plain(folded(table.bindings["X"], table, meaning))  # type: ignore[arg-type]


TEMPLATE = '''
def text(n, start=0):
    template = """ mov.f32 ${out}, ${inp}; """
    made = ""
    for i in range(n):
        made += "{" + template.format(out=i, inp=i + n + start) + "}\\n"
    return " ".join(made.split("\\n"))
'''


SAME = """\
def f(n):
    return ','.join('=r' for i in range(n)) + ',' + ','.join('r' for i in range(n))
X = f(4)
# ---
X = ', '.join(f'${i:02d} {{{i + 1}}}\\t' for i in range(3))
# ---
X = rf'${3}' + f'{"a"}' 'b'
# ---
X = '{} {} {{}} {:x}'.format(1, 'b', 255)
# ---
X = '{1}{0}'.format(1, 2)
# ---
def f():
    found = []
    for i, c in enumerate('abc'):
        if c == 'b':
            continue
        found.append(c * i)
    return tuple(found)
X = f()
# ---
def f(a):
    b = a
    b.append('x')
    return ''.join(a)
X = f(['y'])
# ---
def f():
    n = 0
    each = (n + i for i in range(3))
    n = 10
    return tuple(each) + tuple(each)
X = f()
# ---
def f():
    a = [1]
    for i in a:
        if i < 5:
            a.append(i + 1)
    return tuple(a)
X = f()
# ---
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)
X = f(5)
# ---
def f(n):
    return 'a' if n > 3 else 'b' if n else None
X = (f(4), f(1), f(0))
# ---
X = (-7 // 2, -7 % 4, 2 - 3, not 1, 1 < 2 < 2, 'b' in 'abc', 3 or 4, '' and 1)
# ---
X = ('a-b'.replace('-', ''), ' a '.strip(), 'abc'[1:], (1, 2, 3)[-1], 'x'.upper(), len('ab'))
# ---
X = (min(3, 2), max((4, 5)), str(1), int('12'), tuple(zip('ab', range(2))), tuple(reversed((1, 2))))
# ---
def f(a, *, b=2):
    a, c = (b, a)
    assert a
    return (a, c)
X = f(1)"""

LEFT = """\
def f():
    return 'a'
def f():
    return 'b'
X = f()
# ---
import functools
@functools.wraps
def f():
    return 'a'
X = f()
# ---
N = 1
def g():
    global N
    N = 2
def f():
    return str(N)
X = f()
# ---
N = 1
N = 2
def f():
    return str(N)
X = f()
# ---
N = [1]
X = str(N[0])
# ---
def f(a=[]):
    a.append('x')
    return ''.join(a)
X = f()
# ---
def f():
    yield 1
X = tuple(f())
# ---
def f():
    def g():
        return 1
    return g()
X = f()
# ---
def f():
    while True:
        pass
X = f()
# ---
def f():
    for i in range(10 ** 9):
        pass
X = f()
# ---
def f():
    a = [1]
    for i in a:
        a.append(1)
    return 'a'
X = f()
# ---
def f(n):
    return f(n + 1)
X = f(0)
# ---
X = 'a' * 1000000
# ---
X = '{:99999999d}'.format(1)
# ---
X = '{0.real}'.format(1)
# ---
X = '{!r}'.format('a')
# ---
X = '%9999999d' % 1
# ---
X = ('a' * 60000).replace('a', 'b' * 60000)
# ---
X = ''.join('a' * 60000 for i in range(60000))
# ---
X = 1 << 100000
# ---
X = 99999999999 * 99999999999
# ---
X = str([1])
# ---
X = 5 in range(1000000000)
# ---
X = open('m.py').read()
# ---
import os
X = os.environ.get('A')
# ---
def f():
    b = a
    a = 1
    return b
X = f()
# ---
def f(a):
    a += [1]
    return tuple(a)
X = f([])
# ---
X = f'{1!r}'
# ---
X = f'{1=}'
# ---
X = f'{1:{2}d}'
# ---
X = '\\N{EN DASH}' f'\\N{EN DASH}'"""


@pytest.mark.parametrize(
    "text",
    [TEMPLATE + first for first in ("X = text(3)", "N = 2\nX = text(N, start=N * 4)")] + SAME.split("# ---\n"),
)
def test_what_is_found_is_what_python_computes(text: str) -> None:
    names: dict[str, Any] = {}
    exec(text, names)
    assert found(text) == names["X"]
    assert type(found(text)) is type(names["X"])


CHANGED = """\
def f(a='x'):
    return a * 2
f.__defaults__ = ('y',)
X = f()
# ---
def f():
    return 'x' * 2
def g():
    return 'y'
f.__code__ = g.__code__
X = f()
"""


@pytest.mark.parametrize("text", CHANGED.split("# ---\n"))
def test_a_function_that_may_be_changed_where_no_assignment_shows_it_is_left_alone(text: str) -> None:
    with pytest.raises(NotConstant):
        found(text)


@pytest.mark.parametrize("text", LEFT.split("# ---\n"))
def test_everything_else_is_left_alone(text: str) -> None:
    with pytest.raises(NotConstant):
        found(text)


KERNEL = """
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.inline_asm_elementwise(ASM, "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + i, y, mask=i < n)
"""


@pytest.mark.parametrize(("line", "verdict"), [("mov.f32", "conditional"), ("ld.global.f32", "unknown")])
def test_the_text_that_is_found_is_looked_into(tmp_path: Path, line: str, verdict: str) -> None:
    path = tmp_path / "k.py"
    text = TEMPLATE.replace("mov.f32", line)
    head = f"import triton\nimport triton.language as tl\n{text}\nASM: tl.constexpr = tl.constexpr(text(1))\n"
    path.write_text(head + KERNEL)
    assert verify_paths([str(path)]).kernels[0].verdict is Verdict(verdict)


def test_a_loop_that_is_given_up_in_module_code_encloses_nothing_of_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n"
        "def made(n):\n    for i in range(n):\n        i.lost()\n    return n\n\n"
        "FLAG: tl.constexpr = made(4)\n\n@triton.jit\ndef first(a, b):\n    return a\n"
        + KERNEL.replace("ASM", '"mov $0, $1;"').replace("[x]", "[first(x, FLAG)]")
    )
    assert verify_paths([str(path)]).kernels[0].verdict is Verdict.CONDITIONAL
