"""Branches, loops, functions, context managers and the rest of Python's syntax."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable, StepLimit


@pytest.fixture
def values(execute):
    """Run a body that stores into `out` through `put(i, value)`; gives `out`."""

    def run_body(body, *, before="", size=8, dtype=np.int64, **arguments):
        lines = body.strip("\n").splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        text = before + "\n@ct.kernel\ndef k(" + ", ".join(["out", *arguments]) + "):\n"
        text += "    def put(i, value):\n        ct.store(out, (i,), value)\n"
        text += "\n".join("    " + line[indent:] for line in lines)
        out = np.zeros(size, dtype)
        run_body.log = execute(text, out=out, **arguments)
        return out.tolist()

    return run_body


def test_branches(values):
    body = """
        if n < 0:
            put(0, 1)
        elif n == 0:
            put(0, 2)
        else:
            put(0, 3)
        put(1, 5 if n > 0 else 6)
        put(2, n > 0 and n < 9)
        put(3, n < 0 or not n > 9)
        put(4, 0 < n <= 5 < 9)
        if n and not (n is None):
            put(5, 1)
        put(6, None is None and n is not None)
    """
    assert values(body, n=5) == [3, 5, 1, 1, 1, 1, 1, 0]
    assert values(body, n=0) == [2, 6, 0, 1, 0, 0, 1, 0]


def test_short_circuits_do_not_touch_memory(values):
    body = """
        if n > 0 and ct.gather(out, 0) == 0:
            put(1, 1)
    """
    values(body, n=0)
    assert not values.log.accesses


def test_for_loops(values):
    body = """
        total = 0
        for i in range(n):
            if i == 2:
                continue
            if i == 5:
                break
            total += i
        put(0, total)
        down = 0
        for i in range(n, 0, -2):
            down = down * 10 + i
        put(1, down)
        for i in range(3, 1):
            put(2, 1)
        nested = 0
        for i in range(2, 4):
            for j in range(i):
                if j > 2:
                    break
                nested += 1
        put(3, nested)
        for a, b in ((1, 2), (3, 4)):
            put(a + 3, b)
        put(7, i)
    """
    assert values(body, n=7) == [0 + 1 + 3 + 4, 7531, 0, 5, 2, 0, 4, 3]


def test_grid_stride_loops(execute):
    text = """
        @ct.kernel
        def k(out):
            for i in range(ct.bid(0), out.shape[0], ct.num_blocks(0)):
                ct.store(out, (i,), ct.bid(0) + 1)
        """
    out = np.zeros(7, np.int32)
    execute(text, grid=(3,), out=out)
    np.testing.assert_array_equal(out, [1, 2, 3, 1, 2, 3, 1])


def test_while_loops(values):
    body = """
        i = 0
        while True:
            i += 1
            if i % 2:
                continue
            if i > n:
                break
        put(0, i)
        j = n
        while j * j > n:
            j = (j + n // j) // 2
        put(1, j)
    """
    assert values(body, n=30)[:2] == [32, 5]


def test_static_iteration_and_comprehensions(values):
    body = """
        states = ()
        for i in ct.static_iter(range(4)):
            states += (i * n,)
        put(0, states[3])
        put(1, len(states))
        squares = [x * x for x in range(5) if x % 2 == 0]
        put(2, sum(squares))
        put(3, sum(tuple(a * b for a, b in zip((1, 2), (3, 4)))))
        first, *rest = states
        put(4, rest[0] + len(rest))
        lookup = {"a": 3, "b": n}
        put(5, lookup["b"] + lookup.get("z", 1))
        (a, b), c = (1, 2), 3
        put(6, a + b * 10 + c * 100)
        doubled = [last := 2 * x for x in (1, 2, 3)]
        put(7, (y := n + 1) + y + last * 100 + len(doubled) * 1000)
    """
    assert values(body, n=7) == [21, 4, 20, 11, 10, 8, 321, 3616]


def test_functions_closures_and_lambdas(values):
    before = '''
def twice(x, by=2, *, plus=0):
    """Documented."""
    return x * by + plus


def classify(n):
    if n > 10:
        return 1, n
    for i in range(n):
        if i == 3:
            return 2, i
    return 3, 0


def nothing():
    pass


def many(*values, **named):
    return sum(values) + named["last"]


def countdown(n):
    return 0 if n == 0 else countdown(n - 1) + 1
'''
    body = """
        scale = 10
        def inner(x, y=scale):
            return twice(x) + y + n
        put(0, inner(1))
        put(1, (lambda x, y: x - y)(9, 2))
        put(2, twice(plus=1, x=3, by=5))
        a, b = classify(n)
        put(3, a * 10 + b)
        c, d = classify(11)
        put(4, c * 10 + d)
        put(5, nothing() is None)
        put(6, many(1, *(2, 3), last=4))
        put(7, countdown(5))
    """
    assert values(body, before=before, n=5) == [17, 7, 16, 23, 21, 1, 10, 5]


def test_early_return_ends_the_block(execute):
    text = """
        @ct.kernel
        def k(out):
            i = ct.bid(0)
            if i >= out.shape[0]:
                return
            ct.store(out, (i,), 1)
        """
    out = np.zeros(2, np.int32)
    log = execute(text, grid=(4,), out=out)
    np.testing.assert_array_equal(out, 1)
    assert not log.undefined


def test_context_managers(values):
    before = """
import contextlib
from contextlib import contextmanager
from tilecheck import unsafe
from nowhere import unsafe as foreign_unsafe


@contextmanager
def section(out, i, value):
    ct.store(out, (i,), value)
    yield value + 1
    ct.store(out, (i + 1,), value + 2)


@contextlib.contextmanager
def plain(reason):
    yield


def helper(out):
    with section(out, 5, 50):
        return 9
"""
    body = """
        with unsafe("the caller answers"):
            put(0, 1)
        with plain("reason"), section(out, 1, 10) as value:
            put(3, value)
        put(4, helper(out))
    """
    assert values(body, before=before) == [1, 10, 12, 11, 9, 50, 52, 0]


def test_dataclasses_and_enumerations(values):
    before = """
import enum
from dataclasses import dataclass


class Mode(enum.IntEnum):
    FAST = 3
    SLOW = 4


class Config:
    TILE = 4


@dataclass(frozen=True)
class Block:
    row: int
    column: int = 7

    @property
    def both(self):
        return self.row * 10 + self.column

    def shifted(self, by):
        return Block(self.row + by, self.column)
"""
    body = """
        block = Block(n)
        put(0, block.both)
        put(1, block.shifted(by=1).row)
        put(2, Block(row=1, column=2).column)
        put(3, Mode.SLOW)
        put(4, Config.TILE + (1 if Mode.FAST == 3 else 0))
    """
    assert values(body, before=before, n=5)[:5] == [57, 6, 2, 4, 5]


def test_types_are_values(values):
    body = """
        kind = ct.float16 if n is None else out.dtype
        put(0, kind == ct.int64)
        put(1, out.dtype in (ct.int32, ct.int64))
        put(2, ct.int32(7.9))
        put(3, ct.float32 != out.dtype)
        put(4, out.dtype.bitwidth)
        put(5, int("12") + int(3.7) + len("abc"))
        put(6, math.ceil(7 / 2) + int(math.log2(8)) + int(math.pi))
        put(7, min(3, 1, 2) + max((4, 9)) + round(2.6))
    """
    assert values(body, n=1) == [1, 1, 7, 1, 64, 18, 10, 13]


def test_printing_evaluates_its_arguments_and_does_nothing_else(values):
    body = """
        print(f"value {ct.gather(out, 0)} of {out.shape[0]:d}", n, sep="")
        ct.print("x", n)
        ct.printf("%d", n)
        ct.assert_(n > 0, "message")
        ct.static_assert(1 + 1 == 2, f"{n}")
    """
    values(body, n=3)
    assert [record.effect for record in values.log.accesses] == ["read"]


def test_static_evaluation_follows_python(values):
    body = """
        put(0, ct.static_eval(None or 5))
        put(1, ct.static_eval(2 and 7))
        put(2, 2 and 7)
    """
    assert values(body)[:3] == [5, 7, 1]


def test_a_negative_runtime_step_is_not_guessed(values):
    body = """
        for i in range(5, 0, n):
            put(0, i)
    """
    with pytest.raises(NotInterpretable, match="negative"):
        values(body, n=-1)


def test_assumptions_and_targets(values):
    before = "STAGES = ct.ByTarget(sm_100=8, default=2)\n"
    body = """
        put(0, ct.assume_divisible_by(n, 4))
        put(1, STAGES)
        put(2, ct.ensure_constant(3))
        put(3, ct.static_eval(n + 1 if 2 > 1 else 0))
    """
    assert values(body, before=before, n=8)[:4] == [8, 2, 3, 9]


@pytest.mark.parametrize(
    "body", ["while True:\n            pass", "for i in range(10 ** 9):\n            pass"]
)
def test_endless_loops_meet_the_step_limit(execute, body):
    text = f"""
        @ct.kernel
        def k():
            {body.replace("            ", "                ")}
        """
    with pytest.raises(StepLimit):
        execute(text, max_steps=2000)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("assert n > 0", "Assert"),
        ("del n", "Delete"),
        ("global n", "Global"),
        ("import math", "Import"),
        ("class C: pass", "ClassDef"),
        ("try:\n                pass\n            finally:\n                pass", "Try"),
        ("x = yield", "Yield"),
        ("n.x = 1", "Attribute"),
        ("y = undefined_name", "undefined_name"),
        ("y = later\n            later = 1", "before it is assigned"),
        ("open('x')", "open"),
        ("eval('1')", "eval"),
        ("x = n.__class__", "__class__"),
        ("def f(): return f()\n            f()", "recursion"),
        ("torch_call(n)", "torch_call"),
        ("n()", "call"),
        ("while n:\n                break\n            else:\n                pass", "else"),
    ],
)
def test_what_is_not_run_says_so(execute, statement, word):
    text = f"""
        from torch import torch_call

        @ct.kernel
        def k(n):
            {statement}
        """
    with pytest.raises(NotInterpretable, match=word):
        execute(text, n=1)
