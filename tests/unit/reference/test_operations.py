"""Elementwise functions, shapes, reductions, scans and products, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable

X = np.linspace(0.25, 2.0, 8, dtype=np.float32)


@pytest.mark.parametrize(
    "name",
    ["exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "abs"],
)
def test_unary_functions(evaluate, name):
    out = evaluate(f"ct.{name}(ct.load(x, 0, 8))", np.zeros(8, np.float32), x=X)
    np.testing.assert_allclose(out, getattr(np, name)(X.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ct.rsqrt(t)", 1 / np.sqrt(X)),
        ("ct.negative(t)", -X),
        ("t ** 2", X**2),
        ("ct.pow(t, t)", X**X),
        ("ct.atan2(t, 2.0)", np.arctan2(X, 2)),
        ("t // 0.5", np.floor(X / np.float32(0.5))),
        ("t % 0.5", np.mod(X, np.float32(0.5))),
        ("ct.truediv(1.0, t, flush_to_zero=True, rounding_mode=ct.RoundingMode.APPROX)", 1 / X),
        ("ct.minimum(t, 1.0)", np.minimum(X, 1)),
        ("max(t, 1.0)", np.maximum(X, 1)),
        ("ct.where(t > 1, t, -t)", np.where(X > 1, X, -X)),
        ("ct.sub(ct.add(t, 1), ct.mul(t, 2))", X + 1 - X * 2),
        ("ct.exp(t, rounding_mode=ct.RoundingMode.APPROX)", np.exp(X)),
        ("ct.isnan(t / 0 * 0).astype(ct.float32)", np.ones(8)),
        ("ct.minimum(t * ct.log(t - t - 1), 3.0)", np.full(8, 3.0)),
        ("ct.where(ct.isnan(ct.minimum(ct.log(t - t - 1), 3.0, propagate_nan=True)), 1.0, 0.0)", np.ones(8)),
    ],
)
def test_binary_functions(evaluate, expression, expected):
    out = evaluate(expression, np.zeros(8, np.float32), before="t = ct.load(x, 0, 8)", x=X)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_float16_rounds_after_every_step(evaluate):
    x = np.float16(2048) + np.zeros(4, np.float16)
    out = evaluate("ct.load(x, 0, 4) + 1.0 + 1.0", np.zeros(4, np.float16), x=x)
    np.testing.assert_array_equal(out, 2048)
    many = np.full(4096, 1, np.float16)
    total = evaluate("ct.sum(ct.load(x, 0, 4096))", np.zeros(1, np.float16), x=many)
    assert total[0] == 4096


M = np.arange(16, dtype=np.int32).reshape(2, 8)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ct.reshape(t, (4, -1))", M.reshape(4, 4)),
        ("t.reshape((4, 4)).transpose()", M.reshape(4, 4).T),
        ("ct.transpose(ct.reshape(t, (2, 4, 2)), 0, 1).reshape((4, 4))",
         M.reshape(2, 4, 2).swapaxes(0, 1).reshape(4, 4)),
        ("ct.permute(t.reshape((2, 4, 2)), (2, 0, 1)).reshape((4, 4))",
         M.reshape(2, 4, 2).transpose(2, 0, 1).reshape(4, 4)),
        ("ct.broadcast_to(t.extract((0, 0), (1, 4)), (4, 4))", np.tile(M[:1, :4], (4, 1))),
        ("ct.expand_dims(ct.arange(4, dtype=ct.int32), 1) + ct.arange(4, dtype=ct.int32)[None]",
         np.arange(4)[:, None] + np.arange(4)),
        ("ct.arange(4, dtype=ct.int32)[..., None] * 2 + ct.arange(4, start=1, step=3, dtype=ct.int32)[None, :]",
         np.arange(4)[:, None] * 2 + np.arange(1, 13, 3)),
        ("ct.astile(((1, 2, 3, 4), (5, 6, 7, 8), (1, 1, 1, 1), (0, 0, 0, 0)), dtype=ct.int32)",
         [[1, 2, 3, 4], [5, 6, 7, 8], [1] * 4, [0] * 4]),
        ("ct.insert(ct.zeros((4, 4), ct.int32), (1, 0), ct.ones((2, 2), ct.int32))",
         np.block([[np.zeros((2, 4))], [np.ones((2, 2)), np.zeros((2, 2))]])),
        ("ct.cumsum(t.reshape((4, 4)), 1)", M.reshape(4, 4).cumsum(1)),
        ("ct.cumsum(t.reshape((4, 4)), 0, reverse=True)", M.reshape(4, 4)[::-1].cumsum(0)[::-1]),
        ("ct.cumprod(ct.full((4, 4), 2, ct.int32), 1)", [[2, 4, 8, 16]] * 4),
        ("ct.scan(t.reshape((4, 4)), 0, lambda a, b: a + b, 0)", M.reshape(4, 4).cumsum(0)),
        ("ct.scan(t.reshape((4, 4)), 1, operator.add, 0, reverse=True)",
         M.reshape(4, 4)[:, ::-1].cumsum(1)[:, ::-1]),
    ],
)  # fmt: skip
def test_shapes_and_scans(evaluate, expression, expected):
    out = evaluate(expression, np.zeros((4, 4), np.int32), before="t = ct.load(x, (0, 0), (2, 8))", x=M)
    np.testing.assert_array_equal(out, expected)


def test_subtiles_side_by_side(evaluate):
    expression = "ct.cat((t.extract((0, 0), (2, 2)), t.extract((0, 3), shape=(2, 2))), axis=-1)"
    out = evaluate(expression, np.zeros((2, 4), np.int32), before="t = ct.load(x, (0, 0), (2, 8))", x=M)
    np.testing.assert_array_equal(out, M[:, [0, 1, 6, 7]])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ct.sum(t, 0)", M.sum(0)),
        ("ct.sum(t, axis=0, keepdims=True).reshape((8,))", M.sum(0)),
        ("ct.sum(t, (0, 1)) + ct.zeros((8,), ct.int32)", np.full(8, M.sum())),
        ("ct.sum(t) + ct.zeros((8,), ct.int32)", np.full(8, M.sum())),
        ("ct.prod(t + 1, -2)", (M + 1).prod(0)),
        ("ct.max(t, 0)", M.max(0)),
        ("ct.min(t, 0)", M.min(0)),
        ("ct.argmax(t, 0)", M.argmax(0)),
        ("ct.argmin(-t, 0)", (-M).argmin(0)),
        ("ct.argmax(t) + ct.zeros((8,), ct.int32)", np.full(8, 15)),
        ("ct.sum(t < 4, 0)", (M < 4).sum(0)),
        ("ct.reduce(t, 0, lambda a, b: max(a, b), 0)", M.max(0)),
        ("ct.reduce((t, -t), 0, both, (0, 0))[1]", -M.sum(0)),
    ],
)
def test_reductions(evaluate, expression, expected):
    before = """t = ct.load(x, (0, 0), (2, 8))
                def both(a, b, c, d):
                    return a + c, b + d"""
    out = evaluate(expression, np.zeros(8, np.int32), before=before, x=M)
    np.testing.assert_array_equal(out, expected)


def test_extremes_ignore_nan_unless_told(evaluate):
    x = np.array([1, np.nan, 3, 2], np.float32)
    load = "t = ct.load(x, 0, 4)"
    assert evaluate("ct.max(t)", np.zeros(1, np.float32), before=load, x=x)[0] == 3
    assert np.isnan(evaluate("ct.max(t, propagate_nan=True)", np.zeros(1, np.float32), before=load, x=x)[0])
    assert evaluate("ct.argmin(t)", np.zeros(1, np.int32), before=load, x=x)[0] == 0
    assert evaluate("ct.argmin(t, propagate_nan=True)", np.zeros(1, np.int32), before=load, x=x)[0] == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_products(execute, dtype):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 4, 8)).astype(dtype), rng.standard_normal((8, 4)).astype(dtype)
    out, plain = np.ones((2, 4, 4), np.float64), np.zeros((2, 4, 4), np.float64)
    accumulator = "float64" if dtype is np.float64 else "float32"
    text = f"""
        @ct.kernel
        def k(x, y, out, plain):
            a = ct.load(x, (0, 0, 0), (2, 4, 8))
            b = ct.load(y, (0, 0), (8, 4))
            acc = ct.mma(a, b, ct.full((2, 4, 4), 10.0, ct.{accumulator}))
            ct.store(out, (0, 0, 0), acc)
            ct.store(plain, (0, 0, 0), a @ b)
        """
    execute(text, x=x, y=y, out=out, plain=plain)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(out, exact + 10, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(plain, exact, rtol=1e-2, atol=1e-2 if dtype is np.float16 else 1e-5)


def test_integer_and_scaled_products(execute):
    text = """
        @ct.kernel
        def k(out):
            a = ct.full((2, 64), 100, ct.int8)
            ct.store(out, (0, 0), ct.mma(a, a.transpose(), ct.zeros((2, 2), ct.int32)).astype(ct.float32))
            x = ct.ones((2, 64), ct.float8_e4m3fn)
            s = ct.full((2, 2), 2.0, ct.float8_e8m0fnu)
            scaled = ct.mma_scaled(x, s, x.transpose(), s.transpose(), ct.zeros((2, 2), ct.float32))
            ct.store(out, (1, 0), scaled)
        """
    out = np.zeros((4, 2), np.float32)
    execute(text, out=out)
    np.testing.assert_array_equal(out, [[640000] * 2] * 2 + [[256] * 2] * 2)


@pytest.mark.parametrize(
    "statement",
    [
        "ct.reshape(ct.zeros((4,), ct.int32), (3,))",
        "ct.broadcast_to(ct.zeros((4,), ct.int32), (8,))",
        "ct.arange(3, dtype=ct.int32)",
        "ct.zeros((4,), ct.int32) + ct.zeros((2,), ct.int32)",
        "ct.zeros((4,), ct.int32)[0]",
        "ct.load(x, (0, 0), (4,))",
        "ct.mma(ct.zeros((2, 2), ct.float32), ct.zeros((4, 2), ct.float32), ct.zeros((2, 2), ct.float32))",
        "ct.transpose(ct.zeros((2, 2, 2), ct.int32))",
        "ct.sum(ct.zeros((4,), ct.int32), 1)",
        "ct.bitcast(ct.zeros((4,), ct.int32), ct.int64)",
        "ct.gather(x, ct.zeros((4,), ct.float32))",
        "ct.gather(x, ct.arange(4, dtype=ct.int32), mask=ct.arange(4, dtype=ct.int32))",
        "ct.load(x, 0, 4, padding_mode=0)",
        "ct.load(x, 0, 4, memory_order=ct.MemoryOrder.RELEASE)",
        "ct.load(x, 0, 4, memory_order=ct.MemoryOrder.ACQUIRE)",
        "ct.load(x, 0, 4, no_such_argument=1)",
        "ct.no_such_operation(x)",
        "ct.extract(ct.zeros((4,), ct.int32), (0,), (8,))",
        "x[0]",
        "x + 1",
        "ct.zeros((1 << 28,), ct.int32)",
        "ct.static_assert(False, 'no')",
        "if ct.arange(2, dtype=ct.int32) > 0: pass",
        "raise ct.static_exception(ValueError('no'))",
    ],
)
def test_what_the_compiler_refuses_is_not_interpretable(execute, statement):
    text = f"""
        @ct.kernel
        def k(x):
            {statement}
        """
    with pytest.raises(NotInterpretable, match=r"kernel.py:\d+: "):
        execute(text, x=np.zeros(8, np.int32))
