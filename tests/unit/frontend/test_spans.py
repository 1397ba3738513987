"""Between which integers floats lie: what is said of them is held against floats, promoted as Triton does."""

from __future__ import annotations

import math
import random
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilecheck import check_source
from tilecheck.frontend.values import float_ranges
from tilecheck.frontend.values.values import Bound, Named, Num, Span
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

SIZES = tuple(Symbol(name, Kind.SCALAR) for name in ("n", "m"))
SCALES = tuple(Symbol(name, Kind.SCALAR, origin="untyped") for name in ("r", "s"))
PLACE = Symbol("place", Kind.OPAQUE)
TILE = (E.const(4),)
LARGE = 2**24
NEAR = tuple(LARGE + d for d in (-1, 0, 1, 3))
INTEGERS = (-LARGE - 3, -LARGE, -2051, -1, 0, 1, 2, 7, 2049, 2051, *NEAR, 2**31 - 1)
POSITIVE = tuple(n for n in INTEGERS if n > 0)  # divisors have obligations of their own
FACTORS = (-2.0, 0.0, 1e-9, 0.3, 1.0, 1.5, 1000.0, 2.0**20, 2.0**29, 3e9, 1e30, math.inf, math.nan)
LITERALS = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 255.0, 1e6, 16777215.0, 3e7, 1e30, math.inf)
FLOATS = (math.nan, math.inf, -math.inf, -0.5, 0.0, 0.3, 1.5, 2048.0, 3e7, -3e7, 1e30)
OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": np.fmin,
    "max": np.fmax,
}
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


class Uses:
    """An executor for which every integer is known to be one."""

    dialect = SimpleNamespace(has_pointers=True)

    def is_integer_memory(self, value: Expr) -> bool:
        return False


USES = Uses()
Values = dict[Symbol, Any]


class Tree:
    """A number, and how a launch computes it: a type and a value. What is of no size may be one of Python."""

    def __init__(self, num: Num, leaf: Any = None, op: str = "", sides: tuple[Tree, ...] = ()) -> None:
        self.num, self.leaf, self.op, self.sides = num, leaf, op, sides

    def value(self, at: Values, rng: random.Random) -> tuple[str, Any]:
        if self.leaf is not None:
            kind, value = self.leaf(at, rng)
            return kind, value
        found = [side.value(at, rng) for side in self.sides]
        if self.op in TYPES:
            (_, value), to = found[0], TYPES[self.op]
            return self.op, to(value)
        if self.op == "floor":
            return found[0][0], np.floor(found[0][1])
        if self.op == "neg":
            return found[0][0], -found[0][1]
        if self.op == "where":
            kind = _promoted("min", *found)
            return kind, TYPES[kind](rng.choice(found)[1])
        kind = _promoted(self.op, *found)
        if kind == "python":
            one, two = (float(v) for _, v in found)
            return kind, float(OPERATORS[self.op](np.float64(one), np.float64(two)))
        one, two = (TYPES[kind](v) for _, v in found)
        return kind, TYPES[kind](OPERATORS[self.op](one, two))


def _promoted(op: str, a: tuple[str, Any], b: tuple[str, Any]) -> str:
    kinds = {a[0], b[0]}
    if op in ("min", "max"):  # which make machine numbers of both
        kinds = {"f32" if kind == "python" and isinstance(v, float) else kind for kind, v in (a, b)}
    elif kinds == {"python"}:
        return "python"
    for kind in ("f64", "f32", "f16"):
        if kind in kinds:
            return "f32" if kind == "f16" and op == "/" else kind
    return "f32"


def _leaf(rng: random.Random, leaves: tuple[int, ...]) -> Tree:
    match rng.choice(leaves):
        case 0:
            size = rng.choice(SIZES)  # which is compiled as a constant where it is 1
            return Tree(
                Num((), E.sym(size), "int"), lambda at, _: ("python" if at[size] == 1 else "int", at[size])
            )
        case 1:
            return Tree(Num(TILE, E.sym(PLACE), "int"), lambda at, _: ("int", at[PLACE]))
        case 2:
            literal = rng.choice(LITERALS)
            num = Num((), None, "data", None, span=float_ranges.of_literal(literal))
            return Tree(num, lambda *_: ("python", literal))
        case 6:
            number = rng.choice(INTEGERS)
            return Tree(Num((), E.const(number), "int", None), lambda *_: ("python", number))
        case 7:
            scale = rng.choice(SCALES)
            return Tree(Num((), E.sym(scale), "any"), lambda at, _: ("f32", np.float32(at[scale])))
        case 8:
            size = rng.choice(SIZES)
            num = Num(TILE, E.mod(E.sym(PLACE), E.sym(size)), "int")
            return Tree(num, lambda at, _: ("int", at[PLACE] % at[size]))
        case 3:
            return Tree(Num(TILE, None, "data"), lambda _, r: ("f16", np.float16(r.choice(FLOATS))))
        case 4:
            return Tree(Num(TILE, None, "data"), lambda _, r: ("f64", np.float64(r.choice(FLOATS))))
        case _:
            num = Num(TILE, None, "data", span=Span(full=True))
            return Tree(num, lambda _, r: ("f32", np.float32(r.choice(FLOATS))))


def _tree(rng: random.Random, depth: int, leaves: tuple[int, ...]) -> Tree:
    if not depth or rng.random() < 0.1:
        return _leaf(rng, leaves)
    op = rng.choice((*OPERATORS, "min", "max", "floor", "neg", "where", "f32", "f64"))
    one = _tree(rng, depth - 1, leaves)
    if op in TYPES:
        span = float_ranges.as_float(one.num, Named(f"triton.language.float{op[1:]}"), USES)
        return Tree(Num(one.num.shape, None, "data", span=span), None, op, (one,))
    if op in ("floor", "neg"):
        if one.num.elem is not None or one.num.bits is None:
            return one
        span = float_ranges.kept(one.num.span) if op == "floor" else float_ranges.negative(one.num.span)
        return Tree(Num(one.num.shape, None, "data", span=span), None, op, (one,))
    two = _tree(rng, depth - 1, leaves)
    a, b = one.num, two.num
    if (a.elem is not None and b.elem is not None) or (a.bits is None and b.bits is None and op != "+"):
        return one
    shape = a.shape or b.shape
    bits = None if a.bits is None and b.bits is None else 32
    found = (
        float_ranges.by_choice(a, b, shape, USES)
        if op == "where"
        else float_ranges.by_binary(op, a, b, shape, USES)
    )
    return Tree(Num(shape, None, "data", bits, span=found), None, op, (one, two))


# One span is asked at many launches.
_near_where = lru_cache(maxsize=16)(float_ranges.near_where)
_exact_where = lru_cache(maxsize=16)(float_ranges.exact_where)


def _at(e: Expr, at: Values) -> Any:
    """A term of integers at a launch."""
    if all(isinstance(at.get(s), int) for s in E.symbols(e)):
        return E.evaluate(e, at.__getitem__)
    if E.symbols(e):
        e = E.substitute(e, {E.sym(s): E.const(v) for s, v in at.items() if isinstance(v, int)})
    return e.value if e.value is not None else e is E.TRUE


def _real(e: Expr, at: Values) -> Any:
    """A term at a launch, with parameters that are floats for what they are."""
    match e.op:
        case "const":
            return e.args[0]
        case "sym":
            return {s.name: v for s, v in at.items()}[e.args[0].name]
        case "le":
            return _real(e.args[0], at) <= _real(e.args[1], at)
    found = [_real(part, at) for part in e.args]
    return all(found) if e.op == "all" else sum(found) if e.op == "add" else math.prod(found)


def _wrong(span: Span, kind: str, value: Any, at: Values) -> str:
    """What a span says that is not so."""
    if span.full and kind not in ("f32", "f64"):
        return "full"
    if kind == "f16":
        return "small"
    if (span.number and np.isnan(value)) or (span.finite and not np.isfinite(value)):
        return "number"
    near = _near_where(span)
    if near is not None and _real(near, at) and not (np.isnan(value) or abs(value) <= float_ranges.FARTHEST):
        return "far"
    for bound, sign in ((span.low, 1), (span.high, -1)):
        if bound is None or np.isnan(value) or not _at(_exact_where(bound), at):
            continue
        if (float(value) - _at(bound.value, at)) * sign < 0:
            return "low" if sign > 0 else "high"
    return ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("leaves", [tuple(range(7)), (2, 5), (0, 2, 5, 6), (0, 5, 6), (2, 7, 8), (0, 2, 7, 8)])
def test_what_is_said_of_floats_is_so(leaves: tuple[int, ...]) -> None:
    rng = random.Random(5)
    said = 0
    for _ in range(4000):
        tree = _tree(rng, rng.randint(2, 4), leaves)
        span = tree.num.span
        if span is None:
            continue
        for _ in range(12):
            at: Values = {s: rng.choice(FACTORS) for s in SCALES} | {PLACE: rng.choice(INTEGERS)}
            at |= {s: rng.choice(INTEGERS if 8 not in leaves else POSITIVE) for s in SIZES}
            kind, value = tree.value(at, rng)
            near = _near_where(span)
            said += near is not None and bool(_real(near, at))
            assert not _wrong(span, kind, value, at), (span, kind, value, at)
            said += sum(b is not None and _at(_exact_where(b), at) is True for b in (span.low, span.high))
    assert said > 3000


def _near() -> Tree:
    """`min(x, n - 1.0)`, of which the larger with 0.0 is taken."""
    x = Num(TILE, None, "data", span=Span(full=True))
    one = Num((), None, "data", None, span=float_ranges.of_literal(1.0))
    last = Num(
        (), None, "data", span=float_ranges.by_binary("-", Num((), E.sym(SIZES[0]), "int"), one, (), USES)
    )
    return Tree(Num(TILE, None, "data", span=float_ranges.by_binary("min", x, last, TILE, USES)))


def test_a_clamped_float_is_no_index_behind_the_last() -> None:
    zero = Num((), None, "data", None, span=float_ranges.of_literal(0.0))
    span = float_ranges.by_binary("max", zero, _near().num, TILE, USES)
    n = E.sym(SIZES[0])
    assert span is not None
    assert span.number
    assert span.low == Bound(E.ZERO)
    assert span.high == Bound(E.maximum(E.sub(n, 1), 0), exact=E.le(n, LARGE))


def test_in_64_bits_both_ends_are_needed() -> None:
    num, unknown = _near().num, E.sym(Symbol("r", Kind.OPAQUE))
    assert float_ranges.rounded(num, unknown, unknown, "int64") is unknown
    assert float_ranges.rounded(num, unknown, unknown, "int32") is not unknown
    assert float_ranges.rounded(num, unknown, unknown, "int8") is unknown


KERNEL = """
import triton
import triton.language as tl


# tilecheck: requires numel(x) == n
@triton.jit
def kernel(x, out, n, count, scale, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = (place < count) & (n > 0)
    at = {at}
    tl.store(out + place, tl.load(x + {index}, mask=keep), mask=keep)
"""
MOVED = "place.to(tl.float32) * scale"
CLAMPED = f"tl.maximum(0.0, tl.minimum({MOVED}, n - 1.0))"


def verdict(at: str, index: str) -> str:
    [kernel] = check_source(KERNEL.format(at=at, index=index), "kernel.py").kernels
    return kernel.verdict.value


@pytest.mark.parametrize(
    ("at", "index"),
    [
        (CLAMPED, "at.to(tl.int32)"),
        (CLAMPED, "tl.floor(at).to(tl.int64)"),
        (CLAMPED, "tl.ceil(at).to(tl.int32)"),
        (f"{CLAMPED} + 0.5", "tl.minimum(at.to(tl.int32), n - 1)"),
        (f"tl.clamp({MOVED}, 0.0, n - 1.0)", "at.to(tl.int32)"),
        (f"tl.minimum(tl.maximum({MOVED}, 0.0), n - 1)", "at.to(tl.int32)"),
        (f"-tl.minimum(-0.0, tl.maximum(-({MOVED}), 1.0 - n))", "at.to(tl.int32)"),
        (f"tl.maximum(0.0, tl.minimum({MOVED}, (n - 1).to(tl.float64)))", "at.to(tl.int32)"),
        (f"n - 1 - {CLAMPED}", "tl.maximum(at.to(tl.int32), 0)"),
    ],
)
def test_a_float_between_0_and_the_last_index_is_one(at: str, index: str) -> None:
    assert verdict(at, index) == "conditional"


@pytest.mark.parametrize(
    ("at", "index"),
    [
        (CLAMPED, "at.to(tl.int32) + 1"),
        (f"{CLAMPED} + 0.5", "at.to(tl.int32)"),  # which may be rounded to n, as n - 1.25 + 0.5 is not yet
        (f"{CLAMPED} * 2.0", "at.to(tl.int32)"),
        (f"{CLAMPED} / 1.0", "at.to(tl.int32)"),
        (f"tl.maximum(0.0, tl.minimum({MOVED}, n))", "at.to(tl.int32)"),
        (f"tl.maximum(-1.0, tl.minimum({MOVED}, n - 1.0))", "at.to(tl.int32)"),
        (f"tl.minimum({MOVED}, n - 1.0)", "at.to(tl.int32)"),
        (f"tl.maximum(0.0, {MOVED})", "at.to(tl.int32)"),
        (f"tl.maximum(0.0, tl.minimum(({MOVED}).to(tl.float16), n - 1))", "at.to(tl.int32)"),
        (f"({CLAMPED}).to(tl.float16)", "at.to(tl.int32)"),
        (f"({CLAMPED}).to(tl.bfloat16)", "at.to(tl.float32).to(tl.int32)"),
        (f"tl.maximum(0.0, tl.minimum({MOVED}, n * scale))", "at.to(tl.int32)"),
        (f"tl.where(place < 5, {CLAMPED}, {MOVED})", "at.to(tl.int32)"),
        (CLAMPED, "at.to(tl.int8)"),
        (CLAMPED, "at.to(tl.int32, bitcast=True)"),
    ],
)
def test_other_floats_may_be_none(at: str, index: str) -> None:
    assert verdict(at, index) in ("unknown", "violated")


WRAPPED = """
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, n):
    i = tl.program_id(0)
    at = tl.maximum(({before}).to(tl.float32), -1.0).to(tl.int32)
    tl.store(out + i, tl.load(x + at + 1, mask=n > 0))
"""


@pytest.mark.parametrize("before", ["i * -1000000000", "tl.where(n > 1, i * -1000000000, 0)"])
def test_an_integer_that_may_have_wrapped_bounds_nothing(before: str) -> None:
    """Three times -10**9 is 1294967296 in 32 bits, and no less than 0."""
    [kernel] = check_source(WRAPPED.format(before=before), "kernel.py").kernels
    assert kernel.verdict.value in ("unknown", "violated")


BRANCHES = """
import triton
import triton.language as tl


# tilecheck: requires numel(x) == n
@triton.jit
def kernel(x, t, out, n, F: tl.constexpr):
    i = tl.program_id(0)
    t = tl.load(t + i)
    v = {first} if F else {second}
    at = tl.maximum(tl.minimum(v{added}, n - 1), 0.0).to(tl.int32)
    tl.store(out + i, tl.load(x + at, mask=n > 0))
"""


@pytest.mark.parametrize(
    ("first", "second", "added"),
    [
        ("t.to(tl.float32)", "t", ""),  # which may have 16 bits: 2051 is 2052 there
        ("t", "t.to(tl.float32)", ""),
        ("t.to(tl.float32)", "i", " + t"),
    ],
)
def test_a_way_that_is_compiled_has_its_own_type(first: str, second: str, added: str) -> None:
    text = BRANCHES.format(first=first, second=second, added=added)
    [kernel] = check_source(text, "kernel.py").kernels
    assert kernel.verdict.value == "unknown"
