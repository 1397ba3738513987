"""Names that a module binds in several ways: which of them are known, and what is done with each."""

from __future__ import annotations

import textwrap

import pytest

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import ModuleTable, Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.expr import render
from tilecheck.ir.kernel import Kernel
from tilecheck.text import decode

HEAD = "import triton\nimport triton.language as tl\nfrom somewhere import flag, other\n\n"


def module(text: str) -> ModuleTable:
    return Project().add(parse(decode("kernel.py", (HEAD + textwrap.dedent(text)).encode())))


def read(text: str, body: str) -> Kernel:
    kernel = "\n@triton.jit\ndef kernel(x, y, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
    table = module(textwrap.dedent(text) + kernel + textwrap.indent(textwrap.dedent(body), "    "))
    [definition] = [d for d in find_kernels(table) if d.name == "kernel"]
    return lower(definition)


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("if flag:\n    N = 1\nelse:\n    N = 2", 2),
        ("N = 0\nif flag:\n    N = 1", 2),
        ("if flag:\n    N = 1\nelif other:\n    N = 2\nelse:\n    N = 3", 3),
        ("try:\n    N = flag()\nexcept ValueError:\n    N = 2", 2),
    ],
)
def test_the_ways_of_branches_are_known(text: str, ways: int) -> None:
    assert len(module(text).choices("N")) == ways


COMPILED = "@triton.jit\ndef f(x):\n    return x + 1\n"
STUB = 'def f(*args, **kwargs):\n    """Not here."""\n    raise RuntimeError("f needs Triton")\n'


def either(one: str, other: str) -> str:
    return f"if flag:\n{textwrap.indent(one, '    ')}else:\n{textwrap.indent(other, '    ')}"


@pytest.mark.parametrize(
    "text", [either(COMPILED, STUB), either(STUB, COMPILED), STUB + either(COMPILED, "pass\n")]
)
def test_a_function_that_only_raises_stands_in_for_a_compiled_one(text: str) -> None:
    assert render(read(text, "tl.store(x + f(i), 1)").accesses[0].axes[0].index).endswith("+ 1")


@pytest.mark.parametrize(
    "text",
    [
        either(COMPILED, COMPILED.replace("1", "2")),
        either(COMPILED, "def f(x):\n    return x\n"),
        either(COMPILED, "def f(x):\n    if x:\n        return x\n    raise ValueError\n"),
        either(COMPILED, "@wrapped\n" + STUB),
        either(COMPILED, "f = other\n"),
        either("@wrapped\n" + COMPILED, STUB),
        either(COMPILED.replace("triton.jit", "flag"), STUB),
        either(COMPILED, STUB) + "global_f = f\nf = other\n",
        either(COMPILED, STUB) + "def g():\n    global f\n    f = other\n",
    ],
)
def test_other_functions_do_not_stand_in(text: str) -> None:
    with pytest.raises(UnsupportedConstruct):
        read(text, "tl.store(x + f(i), 1)")


@pytest.mark.parametrize(
    "text",
    [
        "if flag:\n    N = 1\nelse:\n    N = 2\nN = 3",
        "if flag:\n    N = 1\nelse:\n    N = 2\nN += 1",
        "if flag:\n    N = 1\nelse:\n    N = 2\ndel N",
        "if flag:\n    N = [1]\nelse:\n    N = [2]\nN[0] = 5",
        "if flag:\n    N = 1\nelse:\n    N = 2\ndef f():\n    global N\n    N = 3",
        "if flag:\n    N = 1\nelse:\n    N = 2\nfrom unknown import *",
        "if flag:\n    N = 1\nelse:\n    N = 2\nwith flag() as N:\n    pass",
        "N = 0\ntry:\n    N = flag()\nexcept ValueError:\n    pass",
    ],
)
def test_what_may_hold_something_else_has_no_ways(text: str) -> None:
    assert module(text).choices("N") == ()


def test_a_way_that_is_none_where_it_is_used_does_not_count() -> None:
    text = """
    if flag:
        @triton.jit
        def f(v):
            return None
    else:
        @triton.jit
        def f(v):
            return v + 1
    """
    kernel = read(text, "tl.store(y + f(i), 1)")
    [store] = kernel.accesses
    assert "lane 0 + 1" in render(store.axes[0].coordinate)


def test_arithmetic_of_each_way_is_asked_for() -> None:
    text = """
    if flag:
        @triton.jit
        def f(p, n):
            return tl.load(p + n * n)
    else:
        @triton.jit
        def f(p, n):
            return tl.load(p + n * 3)
    """
    kernel = read(text, "tl.store(y + i, f(x, n))")
    assert {render(a.axes[0].coordinate) for a in kernel.accesses if a.array == "x"} == {"n * n", "3 * n"}
    assert {render(a.value) for a in kernel.arithmetic} >= {"n * n", "3 * n"}
    assert not any("bound the way" in render(a.guard) for a in kernel.accesses)
    assert not any("bound the way" in render(a.guard) for a in kernel.arithmetic)


@pytest.mark.parametrize("body", ["tl.store(y + i * N, 1)", "tl.store(y + i, 1, mask=i < N)"])
def test_stores_that_depend_on_the_way_are_refused(body: str) -> None:
    with pytest.raises(UnsupportedConstruct, match="name `N` bound more than once"):
        read("if flag:\n    N = 1\nelse:\n    N = 2\n", body)


def test_facts_of_one_way_are_dropped() -> None:
    text = """
    if flag:
        @triton.jit
        def f(v, M):
            return v + tl.arange(0, M)
    else:
        @triton.jit
        def f(v, M):
            return v + 1
    """
    kernel = read(text, "tl.store(y + i, tl.sum(f(n, 2 * B), axis=0))")
    assert all("bound the way" not in render(fact) for fact in kernel.facts)


UNREAD = "from elsewhere import asks\nN = tl.constexpr(asks())\n"


@pytest.mark.parametrize(
    "body",
    [
        "v = tl.load(x + i)\nif N:\n    v = v * 2\ntl.store(y + i, v)",
        "v = tl.load(x + i)\nif not N:\n    v += tl.load(x + i + n)\ntl.store(y + i, v)",
        "tl.store(y + i, i * 2.0 if N else i * 3.0)",
        "v = 0.0\nfor k in range(N):\n    v += tl.load(x + i + k * B)\ntl.store(y + i, v)",
    ],
)
def test_a_constant_that_is_computed_elsewhere_may_choose_what_is_stored(body: str) -> None:
    kernel = read(UNREAD, body)
    texts = [render(term) for a in kernel.accesses for term in (a.guard, a.mask, a.axes[0].index)]
    assert not any("`N`" in text for text in texts)


@pytest.mark.parametrize(
    "body",
    [
        "if N:\n    tl.store(y + i, 1)",
        "tl.store(y + i + N, 1)",
        "tl.store(y + i, 1, mask=i < N)",
        "tl.store(y + tl.arange(0, N), 1)",
        "for k in range(N):\n    tl.store(y + i + k * B, 1)",
        "tl.store(y + (i if N else i + 1), 1)",
        "j = i\nif N:\n    j += 1\ntl.store(y + j, 1)",
        "if N:\n    tl.debug_barrier()\ntl.store(y + i, 1)",
        "tl.store(y + i // N, 1)",
        "if N == 'rows':\n    i = i // 2\ntl.store(y + i, 1)",
        "if N != 'rows':\n    i = i // 2\ntl.store(y + i, 1)",
        "if N is None:\n    i = i // 2\ntl.store(y + i, 1)",
        "if N == tl.float32:\n    i = i // 2\ntl.store(y + i, 1)",
        "if N in ('rows', 'columns'):\n    i = i // 2\ntl.store(y + i, 1)",
        "m = N if n > 4 else 4\nif m == 'rows':\n    i = i // 2\ntl.store(y + i, 1)",
        "tl.static_assert(N == 4)\ntl.store(y + i, 1, mask=i < N)",
    ],
)
def test_a_constant_that_is_computed_elsewhere_may_choose_no_element(body: str) -> None:
    with pytest.raises(UnsupportedConstruct, match="name `N`"):
        read(UNREAD, body)


AROUND = """
def make(N):
    @triton.jit
    def kernel(y, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        if {test}:
            i = i // 2
        tl.store(y + i, 1, mask=i < n)
"""


@pytest.mark.parametrize(
    "test", ["N == 'rows'", "N is None", "N == tl.float32", "N is not None", "N in ('rows',)"]
)
def test_a_name_around_a_kernel_may_be_of_any_type(test: str) -> None:
    [definition] = find_kernels(module(AROUND.format(test=test)))
    [store] = lower(definition).accesses
    assert "// 2" in render(store.axes[0].index)


@pytest.mark.parametrize("test", ["tl.cdiv(N, 64) is None", "N // 2 == 'rows'"])
def test_a_quotient_of_such_a_name_is_a_number(test: str) -> None:
    [definition] = find_kernels(module(AROUND.format(test=test)))
    [store] = lower(definition).accesses
    assert "// 2" not in render(store.axes[0].index)


@pytest.mark.parametrize(
    "text",
    [
        "from elsewhere import asks\nN = asks()\n",
        "from elsewhere import asks, constexpr\nN = constexpr(asks())\n",
        "from elsewhere import asks\nclass tl2:\n    pass\nN = tl2.constexpr(asks())\n",
        UNREAD + "def f():\n    global N\n    N = 4\n",
    ],
)
def test_no_other_name_is_such_a_constant(text: str) -> None:
    with pytest.raises(UnsupportedConstruct, match="name `N`"):
        read(text, "v = tl.load(x + i)\nif N:\n    v = v * 2\ntl.store(y + i, v)")
