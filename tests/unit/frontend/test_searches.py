"""What loops that search by halves keep holds of every run of them, and of no loop that does not."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Mapping
from types import CodeType

import pytest

from tilecheck import check_source
from tilecheck.frontend.execute import statements
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.text import decode

HEAD = "import triton\nimport triton.language as tl\n\n\n"
LOOP = """@triton.jit
def kernel(table, out, n, first):
    x = tl.program_id(0)
    low = {low}
    high = {high}
    {loop}:
        {test}:
            mid = {mid}
            if tl.load(table + mid + 8) <= x:
                {up}
            else:
                {down}
    tl.store(out + x, tl.load(table + low + 8))
"""
MIDDLES = (
    "(low + high) // 2",
    "(low + high + 1) // 2",
    "(low + high) // 2 + 1",
    "(low + high) >> 1",
    "low + (high - low) // 2",
    "low + (high - low + 1) // 2",
    "high - (high - low) // 2",
    "low + (high - low) // 2 - 1",
)
TESTS = ("if low < high", "if low <= high", "if x == x")
UPS = ("low = mid", "low = mid + 1", "low = mid - 1", "low = mid + 2")
DOWNS = ("high = mid", "high = mid - 1", "high = mid + 1", "high = mid - 2")


def searches_of(text: str, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The searches that the last run over a kernel finds."""
    found: list[object] = []
    own = statements.searches

    def noted(*args):
        made = own(*args)
        found.append(made)
        return made

    monkeypatch.setattr(statements, "searches", noted)
    table = Project().add(parse(decode("kernel.py", (HEAD + text).encode())))
    [definition] = find_kernels(table)
    lower(definition)
    return list(found[-1]) if found else []


def divided(a: int, b: int) -> int:
    """As Triton does."""
    return abs(a) // b * (1 if a >= 0 else -1)


def states(text: dict[str, str], low: int, high: int, x: int, table) -> list[tuple[int, int]]:
    """The ends before each of three rounds and after the last."""
    seen = [(low, high)]
    while len(seen) <= 3:
        names = {"low": Whole(low), "high": Whole(high), "x": x}
        if eval(compiled(text["test"].removeprefix("if "), "eval"), names):
            names["mid"] = Whole(eval(compiled(text["mid"].replace("//", "@"), "eval"), names))
            exec(compiled(text["up"] if table(int(names["mid"])) <= x else text["down"], "exec"), names)
            low, high = int(names["low"]), int(names["high"])
        seen.append((low, high))
    return seen


@functools.cache
def compiled(text: str, mode: str) -> CodeType:
    return compile(text, "text", mode)


class Whole(int):
    """An integer of Triton, whose `//` is written `@`."""

    def __add__(self, other):
        return Whole(int(self) + int(other))

    def __sub__(self, other):
        return Whole(int(self) - int(other))

    def __rshift__(self, other):
        return Whole(int(self) >> other)

    def __matmul__(self, other):
        return Whole(divided(int(self), other))


class Fresh:
    """As much of the executor as a search asks."""

    def __init__(self) -> None:
        self.serial = 10_000

    def number(self) -> int:
        self.serial += 1
        return self.serial


UNKNOWN = {name: E.sym(Symbol(name, Kind.OPAQUE, 5001)) for name in ("low", "high")}


def claims(search, rounds: int | None) -> tuple[Expr, Expr, Expr]:
    """What a search makes of its ends after so many rounds, and what it says of them."""
    names = {name: Num((), elem, "int") for name, elem in UNKNOWN.items()}
    said = search.hold(Fresh(), names, None if rounds is None else E.const(rounds))
    return names["low"].elem, names["high"].elem, said


@pytest.mark.parametrize("mid", MIDDLES)
def test_what_is_said_of_ends_holds_in_every_run(mid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(mid)
    known = 0
    for test, up, down in itertools.product(TESTS, UPS, DOWNS):
        for low0, start in (("0", 0), ("first", -2)) if ">>" in mid or mid.startswith("low +") else (("0", 0),):
            text = {"test": test, "mid": mid, "up": up, "down": down}
            kernel = LOOP.format(low=low0, high="n", loop="for _ in range(3)", **text)
            for search in searches_of(kernel, monkeypatch):
                known += 1
                said = {rounds: claims(search, rounds) for rounds in (None, 0, 1, 2, 3)}
                for n, x in itertools.product(range(-3, 6), range(3)):
                    contents = [draw.randrange(4) for _ in range(64)]
                    check_run(said, text, (start, n), x, contents)
    assert known >= (8 if "- 1" not in mid else 2)


def check_run(
    claimed: Mapping[int | None, tuple[Expr, Expr, Expr]],
    text: dict[str, str],
    ends: tuple[int, int],
    x: int,
    contents: list[int],
) -> None:
    def table(at: int) -> int:
        return contents[(at + 8) % 64]

    for rounds, (low, high) in enumerate(states(text, *ends, x, table)):
        for told in {None, rounds}:
            lowest, highest, said = claimed[told]

            def value(symbol, low=low, high=high) -> int:
                given = {"low": low, "high": high, "n": ends[1], "first": ends[0]}
                return given.get(symbol.name, x)

            def memory(_, at) -> int:
                return contents[at[0] % 64]

            assert E.evaluate(lowest, value, memory) == low, (text, ends, rounds, low, high)
            assert E.evaluate(highest, value, memory) == high, (text, ends, rounds, low, high)
            assert E.evaluate(said, value, memory), (text, ends, rounds, low, high, said)


TILES = """@triton.jit
def kernel(table, x, out, n, B: tl.constexpr):
    lane = tl.arange(0, B)
    value = tl.load(x + lane)
    low = tl.zeros([B], dtype=tl.int32)
    high = low + n
    looks = low < high
    for _ in range(20):
        mid = tl.where(looks, (low + high) // 2, 0)
        below = tl.load(table + mid, mask=looks) < value
        low = tl.where(looks & below, mid + 1, low)
        high = tl.where(looks & (below == 0), mid, high)
        looks = low < high
    tl.store(out + lane, low)
"""


@pytest.mark.parametrize("mid", ["(low + high) // 2", "low + (high - low) // 2", "(low + high) >> 1"])
def test_lanes_that_search_stay_inside(mid: str) -> None:
    assert is_decided(TILES.replace("(low + high) // 2", mid), "numel(table) >= n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        looks = low < high\n    tl", "        looks = low <= high\n    tl"),
        ("        looks = low < high\n    tl", "    tl"),  # as it was before the loop
        ("        low = tl.where(looks & below, mid + 1, low)\n", ""),
        ("high = low + n", "high = low + n + 1"),
        ("low = tl.zeros([B], dtype=tl.int32)", "low = tl.zeros([B], dtype=tl.int32) - 1"),
        ("mid + 1, low", "mid + 2, low"),
        ("(low + high) // 2", "(low + high + 1) // 2"),
        ("(low + high) // 2", "(low + high) // 3 + 1"),
        ("    looks = low < high\n    for", "    looks = low < high + 1\n    for"),
        # of the ends that the round found, not those that it leaves
        (
            "        low = tl.where(looks & below, mid + 1, low)\n",
            "        old = low\n        low = tl.where(looks & below, mid + 1, low)\n",
        ),
    ],
)
def test_lanes_that_may_look_beside_the_table_are_not_cleared(old: str, new: str) -> None:
    text = TILES.replace(old, new)
    assert text != TILES
    if "old" in new:
        text = text.replace("        looks = low < high\n    tl", "        looks = old < high\n    tl")
    assert not is_decided(text, "numel(table) == n")


def is_decided(text: str, contract: str) -> bool:
    text = f"{HEAD}# tilecheck: requires numel(out) >= B and numel(x) >= B and {contract}\n{text}"
    [kernel] = check_source(text, "kernel.py").kernels
    return kernel.verdict.value in ("proved", "conditional")


PIECES = """# tilecheck: requires increasing(cu) and True
# tilecheck: requires within(cu, 0, T + 1)
# tilecheck: requires within(cu[0], 0, 1)
# tilecheck: requires within(cu[-1], T, T + 1)
# tilecheck: requires numel(cu) == N + 1
# tilecheck: requires N >= 1
# tilecheck: requires grid[0] <= T
@triton.jit
def kernel(cu, x_ptr, out_ptr, N, T, D: tl.constexpr, BT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    left, right = 0, N
    while left < right:
        mid = (left + right) // 2
        if row < tl.load(cu + mid + 1):
            right = mid
        else:
            left = mid + 1
    start, end = tl.load(cu + left).to(tl.int64), tl.load(cu + left + 1).to(tl.int64)
    t = row - start
    if t >= end - start:
        return
    d = tl.arange(0, D)
    total = tl.zeros([D], dtype=tl.float32)
    for j in range(t // BT * BT, min(t + 1, end - start)):
        total += tl.load(x_ptr + start * D + j * D + d)
    tl.store(out_ptr + row * D + d, total)
""".replace(" and True", "")


def test_rows_of_the_sequence_that_is_found_are_rows_that_there_are() -> None:
    [kernel] = check_source(HEAD + PIECES, "kernel.py").kernels
    asked = {"D * grid[0] <= numel(out_ptr)", "numel(x_ptr) >= D * T", "BT >= 1"}
    assert set(kernel.conditions) == asked


SEARCH = PIECES[: PIECES.index("    t = row")]
LEFT = f"""{SEARCH}    out = tl.load(x_ptr + row - start) + tl.load(x_ptr + end - row - 1)
    tl.store(out_ptr + row, out)
"""


def test_a_row_is_in_the_sequence_that_is_found() -> None:
    [kernel] = check_source(HEAD + LEFT, "kernel.py").kernels
    assert kernel.verdict.value == "conditional"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# tilecheck: requires within(cu[0], 0, 1)\n", ""),  # a row before the first sequence
        ("# tilecheck: requires within(cu[-1], T, T + 1)\n", ""),  # or after the last
        ("# tilecheck: requires grid[0] <= T\n", ""),
        ("row < tl.load", "row <= tl.load"),
        ("row < tl.load", "row > tl.load"),
        ("row < tl.load", "row + 1 < tl.load"),
        ("cu + mid + 1)", "cu + mid)"),
        ("while left < right:", "if left < right:"),
        ("while left < right:", "while left + 1 < right:"),
        ("right = mid\n", "right = mid - 1\n"),
        ("left, right = 0, N", "left, right = 1, N"),
    ],
)
def test_a_row_of_another_sequence_is_not_cleared(old: str, new: str) -> None:
    text = LEFT.replace(old, new)
    assert text != LEFT
    [kernel] = check_source(HEAD + text, "kernel.py").kernels
    assert kernel.verdict.value in ("unknown", "violated")


LEFT_EARLY = """@triton.jit
def note(table, marks, n, x):
    low = 0
    high = n
    while low < high:
        mid = (low + high) // 2
        value = tl.load(table + mid)
        if value == x:
            return
        if value < x:
            low = mid + 1
        else:
            high = mid
    tl.store(marks + low, x)


# tilecheck: requires numel(table) == n and n >= 1
# tilecheck: requires within(table, 0, 1)
@triton.jit
def kernel(table, marks, out, n):
    note(table, marks, n, 0)
    tl.store(out + tl.program_id(0) - n, 0)
"""


def test_a_helper_that_returns_from_its_search_settles_nothing() -> None:
    # All that it looks at is what it looks for: it never gets behind the loop, and the caller goes on.
    [kernel] = check_source(HEAD + LEFT_EARLY, "kernel.py").kernels[-1:]
    assert kernel.name == "kernel"
    assert kernel.verdict.value in ("unknown", "violated")
