"""Whole Triton kernels against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilecheck.reference import Launch, run

PATH = Path(__file__).with_name("triton_kernels.py").as_posix()


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def integers(low, high, count, dtype=np.int32, seed=1):
    return np.random.default_rng(seed).integers(low, high, count).astype(dtype)


def launch(kernel, grid, **arguments):
    """Run a kernel; arrays are passed as their flat memory."""
    full = (*grid, 1, 1)[:3]
    flat = {
        name: value.reshape(-1) if isinstance(value, np.ndarray) else value for name, value in arguments.items()
    }
    log = run(Launch(PATH, kernel, full, flat))
    assert log.accesses
    return log


def test_vector_add():
    x, y, out = floats(10), floats(10, seed=2), np.zeros(10, np.float32)
    log = launch("vector_add", (3,), x_ptr=x, y_ptr=y, out_ptr=out, n=10, BLOCK=4)
    np.testing.assert_allclose(out, 2 * x + y)
    assert not log.undefined
    last = log.accesses[-1]
    assert (last.array, last.effect, last.block, last.sequence) == ("out_ptr", "write", (2, 0, 0), 2)
    assert last.elements.tolist() == [[8], [9]]


def test_softmax():
    x, out = floats(5, 10), np.zeros((5, 10), np.float32)
    launch("softmax_rows", (2,), out=out, inp=x, row_stride=10, rows=5, columns=10, BLOCK=16, STAGES=2)
    power = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, power / power.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("m", "n", "k", "even"), [(45, 37, 29, False), (32, 16, 48, True)])
def test_matmul_with_grouped_tiles(m, n, k, even):
    a, b, c = floats(m, k), floats(k, n, seed=2), np.zeros((m, n), np.float32)
    tiles = -(-m // 16) * -(-n // 16)
    strides = {"sam": k, "sak": 1, "sbk": n, "sbn": 1, "scm": n, "scn": 1}
    sizes = {"BM": 16, "BN": 16, "BK": 16, "GROUP": 2, "EVEN": even}
    log = launch("matmul_grouped", (tiles,), a=a, b=b, c=c, M=m, N=n, K=k, **strides, **sizes)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    assert not log.undefined


def test_matmul_with_block_pointers():
    a, b, c = floats(45, 29), floats(29, 37, seed=2), np.zeros((45, 37), np.float32)
    log = launch("matmul_block_pointers", (3, 3), a=a, b=b, c=c, M=45, N=37, K=29, BM=16, BN=16, BK=16)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    assert not log.undefined


def test_descriptors():
    a, c = floats(20, 24), np.zeros((20, 24), np.float32)
    log = launch("double_by_descriptor", (2, 2), a=a, c=c, M=20, N=24, BM=16, BN=16)
    np.testing.assert_array_equal(c, 2 * a)
    assert not log.undefined
    assert sum(len(access.elements) for access in log.accesses if access.effect == "write") == 480


def test_layer_norm():
    x, w, b = floats(4, 20), floats(20, seed=2), floats(20, seed=3)
    y, mean = np.zeros((4, 20), np.float32), np.zeros(4, np.float32)
    launch("layer_norm", (4,), x=x, y=y, w=w, b=b, mean_out=mean, stride=20, n=20, eps=1e-5, BLOCK=16)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(causal):
    q, k, v, out = (
        floats(40, 16),
        floats(40, 16, seed=2),
        floats(40, 16, seed=3),
        np.zeros((40, 16), np.float32),
    )
    log = launch(
        "attention",
        (3,),
        q=q,
        k=k,
        v=v,
        out=out,
        scale=0.25,
        stride=16,
        n=40,
        BM=16,
        BN=16,
        D=16,
        CAUSAL=causal,
    )
    score = q @ k.T * 0.25
    if causal:
        score = np.where(np.tril(np.ones((40, 40), bool)), score, -np.inf)
    power = np.exp(score - score.max(1, keepdims=True))
    np.testing.assert_allclose(out, power @ v / power.sum(1, keepdims=True), rtol=1e-3, atol=1e-5)
    assert not log.undefined


def test_gather():
    x, index, out = floats(30, 6), integers(0, 30, 10, np.int64), np.zeros((10, 6), np.float32)
    launch("gather_rows", (3,), x=x, index=index, out=out, n=10, width=6, BLOCK=4, WIDTH=8)
    np.testing.assert_array_equal(out, x[index])


def test_atomic_counts():
    x, counts = integers(0, 8, 30), np.zeros(8, np.int32)
    log = launch("count_atomically", (4,), x=x, counts=counts, n=30, BLOCK=8)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=8))
    atomics = [access for access in log.accesses if access.effect == "atomic"]
    assert {(access.array, access.order, access.scope) for access in atomics} == {
        ("counts", "RELAXED", "DEVICE")
    }


def test_atomic_extremes():
    x = integers(-50, 50, 14)
    before, high, low, old = x.copy(), np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(16, np.int32)
    launch("extremes_atomically", (2,), x=x, high=high, low=low, old=old, n=14, BLOCK=8)
    for at in range(4):
        assert high[at] == max(0, *before[at::4])
        assert low[at] == min(0, *before[at::4])
    np.testing.assert_array_equal(x, -before)
    np.testing.assert_array_equal(old[:14], before)


def test_a_lock():
    lock, count, out = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(5, np.int32)
    log = launch("take_turns", (5,), lock=lock, count=count, out=out)
    assert out.tolist() == [0, 1, 2, 3, 4]
    orders = {(access.order, access.scope) for access in log.accesses if access.effect == "atomic"}
    assert orders == {("ACQUIRE", "DEVICE"), ("RELEASE", "SYS")}


def test_running_sums_and_products():
    x = integers(-9, 9, 13)
    forward, backward, product = np.zeros(13, np.int32), np.zeros(13, np.int32), np.zeros(13, np.int64)
    launch("running", (1,), x=x, forward=forward, backward=backward, product=product, n=13, N=16)
    np.testing.assert_array_equal(forward, np.cumsum(x))
    np.testing.assert_array_equal(backward, np.cumsum(x[::-1])[::-1])
    np.testing.assert_array_equal(product, np.cumprod(np.fmod(x, 3).astype(np.int64) + 3))


def test_swiglu():
    a, b, c = floats(3, 10), floats(3, 10, seed=2), np.zeros((3, 10), np.float32)
    launch("swiglu", (3,), a=a, b=b, c=c, stride=10, n=10, BLOCK=16)
    np.testing.assert_allclose(c, a / (1 + np.exp(-a)) * b, rtol=1e-5, atol=1e-6)


def test_rope():
    q, cosine, sine = floats(4, 3, 8), floats(2, 8, seed=2), floats(2, 8, seed=3)
    before = q.copy()
    launch("rope", (4,), q=q, cosine=cosine, sine=sine, length=2, HEADS=3, D=8, PH=4, PD=8)
    c, s = cosine[[0, 1, 0, 1], None, :4], sine[[0, 1, 0, 1], None, :4]
    x, y = before[..., :4], before[..., 4:]
    np.testing.assert_allclose(q, np.concatenate([x * c - y * s, y * c + x * s], axis=-1), rtol=1e-5, atol=1e-6)


def test_extremes():
    x, out = integers(-20, 20, 32), np.zeros((6, 4), np.int32)
    launch("extremes", (1,), x=x, out=out, M=4, N=8)
    rows = x.reshape(4, 8)
    expected = [
        rows.argmax(1),
        rows.argmin(1),
        (rows > 0).sum(1),
        rows.max(1) + rows.argmax(1),
        np.bitwise_xor.reduce(rows, 1),
        np.full(4, rows.min()),
    ]
    np.testing.assert_array_equal(out, expected)


def test_user_reductions_and_scans():
    x, folded, scanned = integers(-9, 9, 32), np.zeros((2, 4), np.int32), np.zeros((4, 8), np.int32)
    launch("user_functions", (1,), x=x, folded=folded, scanned=scanned, M=4, N=8)
    rows = x.reshape(4, 8)
    np.testing.assert_array_equal(folded, [rows.sum(1), 2 * rows.max(1)])
    np.testing.assert_array_equal(scanned, rows.cumsum(1) * 100 + np.maximum.accumulate(rows, 1))


def test_shapes():
    x, out = integers(0, 99, 32), np.zeros((8, 32), np.int32)
    launch("reshaping", (1,), x=x, out=out, M=4, N=8)
    turned = x.reshape(4, 8).T.reshape(-1)
    np.testing.assert_array_equal(out[0], turned)
    np.testing.assert_array_equal(out[1], x.reshape(16, 2)[:, ::-1].reshape(-1))
    np.testing.assert_array_equal(out[2], turned + x[::-1])
    np.testing.assert_array_equal(out[3], np.repeat(np.arange(4), 8))
    np.testing.assert_array_equal(out[4:6].reshape(-1), np.stack([x, x + 1], axis=1).reshape(-1))
    np.testing.assert_array_equal(out[6], x)
    np.testing.assert_array_equal(out[7], np.sort(x)[::-1])


def test_swizzle():
    out = np.zeros((5, 4), np.int32)
    launch("swizzled", (5, 4), out=out, M=5, N=4, GROUP=2)
    groups = [out[0:2], out[2:4], out[4:5]]
    assert np.concatenate([group.T.reshape(-1) for group in groups]).tolist() == list(range(1, 21))


@pytest.mark.parametrize("chosen", [1, 3])
@pytest.mark.parametrize("biased", [False, True])
def test_optional_arguments_and_chosen_pointers(chosen, biased):
    a, b, bias, out = floats(8), floats(8, seed=2), floats(8, seed=3), np.zeros(8, np.float32)
    launch("optional_bias", (1,), a=a, b=b, out=out, chosen=chosen, bias=bias if biased else None, N=8)
    np.testing.assert_array_equal(out, (a if chosen > 2 else b) + (bias if biased else 0))


def test_functions():
    x, out = floats(16), np.zeros((6, 16), np.float32)
    launch("functions", (1,), x=x, out=out, N=16)
    wide = x.astype(np.float64)
    power = np.exp(wide - wide.max())
    expected = [
        np.log(np.abs(wide) + 1) + np.tanh(wide),
        1 / np.sqrt(wide * wide + 1e-6),
        np.floor(wide) + np.ceil(wide * 2) + wide * wide + 1,
        power / power.sum(),
        np.fmod(wide, np.float32(0.3)),
        np.clip(wide, -0.5, 0.5) + wide / 3,
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-6)


def test_chunks_along_a_strided_axis():
    s, out = floats(2, 20, 2), np.zeros((2, 20, 2), np.float32)
    launch("chunk_cumsum", (3, 4), s=s, out=out, T=20, H=2, BT=8)
    for start in (0, 8, 16):
        part = s[:, start : start + 8]
        np.testing.assert_allclose(out[:, start : start + 8], part.cumsum(1), rtol=1e-5, atol=1e-6)


def test_histogram_and_gather():
    x, counts, out = integers(0, 8, 32), np.zeros(8, np.int32), np.zeros(32, np.int32)
    launch("histogram_and_gather", (1,), x=x, counts=counts, out=out, N=32, BINS=8)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=8))
    np.testing.assert_array_equal(out, x * x)


RANDOM = [  # what Triton's own interpreter gives for seed 1234
    [546353992, 2666454581, 1070188760, 3055983166],
    [3419031310, 343858512, 2300394257, 3900454750],
    [466296159, 299377071, 1053581000, 426354786],
]


def test_random_integers_are_those_of_philox():
    out, values = np.zeros((3, 4), np.uint32), np.zeros(4, np.float32)
    launch("random_integers", (1,), out=out, floats=values, seed=1234, N=4)
    assert out.tolist() == RANDOM
    assert ((values >= 0) & (values < 1)).all()


def test_tuples_of_numbers():
    src, dst = np.arange(24, dtype=np.float32), np.zeros((4, 6), np.float32)
    launch("strided_copy", (4,), src=src, dst=dst, shape=(4, 6), strides=(1, 4), BLOCK=8)
    np.testing.assert_array_equal(dst, src.reshape(6, 4).T)


def test_a_kernel_made_by_a_call():
    x = np.zeros(8, np.int32)
    launch("squares", (1,), x=x, N=8)
    assert x.tolist() == [at * at for at in range(8)]
