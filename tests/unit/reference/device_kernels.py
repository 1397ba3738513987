"""Kernels that pin down what cuTile computes. A device and the reference backend must agree on each.

Every kernel `name` has its arguments in `ARGUMENTS[name]`: arrays by shape and contents, scalars as they are.
`out` arrays start as zeros. The file is imported on a device only; the reference backend reads its text.
"""

# ruff: noqa: B007, SIM108, PLC3002, PLR0133, PLW0108 - the odd spellings are what is tried

import contextlib
import math
import operator

import cuda.tile as ct

ConstInt = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO


@contextlib.contextmanager
def unsafe(reason):
    yield


@contextlib.contextmanager
def around(out, i, value):
    ct.store(out, (i,), value)
    yield value + 1
    ct.store(out, (i + 1,), value + 2)


def put(out, i, value):
    ct.store(out, (i,), ct.astype(value, out.dtype))


@ct.kernel
def int32_arithmetic(out, a: int, b: int, big: int):
    put(out, 0, a // b)
    put(out, 1, a % b)
    put(out, 2, ct.cdiv(a, b))
    put(out, 3, a // -b)
    put(out, 4, a % -b)
    put(out, 5, ct.cdiv(a, -b))
    put(out, 6, big + 1)
    put(out, 7, big * 3)
    put(out, 8, -(-big - 1))
    put(out, 9, abs(a))
    put(out, 10, a >> 1)
    put(out, 11, a << 3)
    put(out, 12, a & 6)
    put(out, 13, a | 1)
    put(out, 14, a ^ b)
    put(out, 15, ~a)
    q, r = divmod(a, b)
    put(out, 16, q * 100 + r)
    put(out, 17, min(a, b))
    put(out, 18, max(a, b))
    put(out, 19, (a < b) + 1)
    put(out, 20, ct.int64(big) * 4)
    put(out, 21, big << 1)


@ct.kernel
def unsigned_and_narrow(out):
    u = ct.full((), 2**31, ct.uint32)
    put(out, 0, u * 2)
    put(out, 1, u >> 31)
    put(out, 2, ct.full((), 3, ct.uint32) - 5)
    put(out, 3, ct.full((), 200, ct.uint8) + 100)
    put(out, 4, ct.full((), 100, ct.int8) + 100)
    put(out, 5, ct.full((), 7, ct.uint32) // 2)
    put(out, 6, ct.cdiv(ct.full((), 7, ct.uint32), 2))
    put(out, 7, ct.astype(ct.full((), -1, ct.int32), ct.uint32))
    put(out, 8, ct.astype(ct.full((), 300, ct.int32), ct.int8))
    put(out, 9, ct.astype(ct.full((), 2**31, ct.uint32), ct.int32))


@ct.kernel
def merged_constants(out, n: int):
    total = 0
    step = 2000000000
    for i in range(n):
        total = total + step
    put(out, 0, total)
    put(out, 1, ct.full((), step + step, ct.int64))
    if n > 0:
        a = 2000000000
    else:
        a = 1
    put(out, 2, a + a)
    c = 2000000000 if n > 0 else 1
    put(out, 3, c + c)
    put(out, 4, n > 0 and n < 9)
    put(out, 5, not (n > 0 or n < -9))


@ct.kernel
def control_flow(out, n: int):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        if i == 5:
            break
        total += i
    put(out, 0, total)
    count = 0
    for i in range(3, 1):
        count += 1
    for i in range(1, n, 3):
        count += 10 * i
    put(out, 1, count)
    j = n
    while j * j > n:
        j = (j + n // j) // 2
    put(out, 2, j)
    k = 0
    while True:
        k += 1
        if k % 2 == 1:
            continue
        if k > n:
            break
    put(out, 3, k)
    states = ()
    for i in ct.static_iter(range(4)):
        states += (i * n,)
    put(out, 4, states[3] + len(states))
    with unsafe("nothing runs here"):
        put(out, 5, 7)
    with around(out, 6, 10) as value:
        put(out, 8, value)
    scale = 10

    def inner(x, y=scale):
        return x * 2 + y + n

    put(out, 9, inner(1) + (lambda x, y: x - y)(9, 2))
    put(out, 10, 0 < n <= 7 < 9)
    if n < 0:
        return
    put(out, 11, 1)
    if n > 0:
        return
    put(out, 11, 2)


@ct.kernel
def tiles(x, y, z, w, out):
    i = ct.bid(0)
    t = ct.load(x, (i, 1), (4, 4), padding_mode=ZERO)
    ct.store(y, (i, 0), t)
    ct.store(z, (0, i), ct.load(x, (1, i), (4, 4), order="F", padding_mode=ZERO), order=(1, 0))
    ct.store(out, (i,), ct.load(x, (i, i), shape=()))
    ct.store(out, (i + 2,), ct.num_tiles(x, 1, (4, 4)) + 100 * ct.num_tiles(x, 0, (4, 8), order="F"))
    part = w.slice(1, 3, 9).slice(0, 1, 6)
    ct.store(part, (1, i), ct.full((2, 2), i + 1, w.dtype))
    ct.store(out, (i + 4,), part.shape[1] * 100 + part.strides[0])


@ct.kernel
def views(x, y, out):
    source = x.tiled_view(4, traversal_steps=2, padding_mode=ZERO)
    wide = x.tiled_view((4,), traversal_steps=(8,))
    target = y.tiled_view((4,))
    target.store(0, source.load(1))
    target.store(1, source.load(9))
    target.store(2, wide.load(2))
    target.atomic_store_add(3, ct.full((4,), 5, y.dtype))
    ct.store(out, 0, source.num_tiles(0))
    ct.store(out, 1, wide.num_tiles(0))
    ct.store(out, 2, target.num_tiles(0))


@ct.kernel
def elements(x, y, out):
    rows = ct.arange(4, dtype=ct.int32)[:, None] - 1
    columns = ct.arange(8, dtype=ct.int32)[None, :]
    t = ct.gather(x, (rows, columns), padding_value=-7)
    ct.store(out, (0, 0), t)
    ct.store(out, (1, 0), ct.gather(x, (rows + 1, columns), mask=columns % 2 == 0, padding_value=-9))
    ct.scatter(y, (rows, columns - 2), t, mask=columns > 2)
    picked = ct.load_advanced_indexing(
        x, (ct.arange(4, dtype=ct.int32) * 2 - 1, ct.Slice(2, 4)), padding_mode=ZERO
    )
    ct.store_advanced_indexing(y, (ct.arange(4, dtype=ct.int32), ct.Slice(4, 4)), picked)


@ct.kernel
def raw(x, out):
    memory = x.get_raw_memory()
    offset = ct.arange(8, dtype=ct.int32) * 2
    ct.store(out, 0, memory.load_offset(offset, mask=offset < 9, padding_value=-5))
    moved = x.slice(0, 1, 3).get_raw_memory()
    moved.store_offset(1, 99)
    old = memory.atomic_add_offset(ct.arange(4, dtype=ct.int32), 5, mask=ct.arange(4, dtype=ct.int32) < 2)
    ct.store(out, 2, ct.where(ct.arange(4, dtype=ct.int32) < 2, old, 0))


@ct.kernel
def atomics(x, tickets, old):
    lanes = ct.arange(8, dtype=ct.int32)
    ct.store(old, (0, 0), ct.atomic_add(x, lanes // 8 + 7, ct.full((8,), 0, x.dtype))[None, :])
    ct.store(old, (1, 0), ct.atomic_cas(x, lanes, 3, 42)[None, :])
    ct.store(old, (2, 0), ct.atomic_max(x, lanes, 4)[None, :])
    ct.store(old, (3, 0), ct.atomic_min(x, lanes, 6)[None, :])
    ct.store(
        old, (4, 0), ct.atomic_xchg(x, lanes * 2, 1, check_bounds=True)[None, :] * (lanes < 4).astype(ct.int32)
    )
    ct.store(old, (5, 0), ct.atomic_and(x, lanes, 6)[None, :])
    ct.store(old, (6, 0), ct.atomic_or(x, lanes, 8)[None, :])
    ct.store(old, (7, 0), ct.atomic_xor(x, lanes, 3)[None, :])
    ct.store(tickets, 0, ct.sum(ct.atomic_add(tickets, lanes * 0 + 8, 1)))


@ct.kernel
def lists(xs, out):
    total = 0
    for i in range(len(xs)):
        total = total * 10 + xs[i].shape[0]
        ct.store(xs[i], (1,), ct.load(xs[i], (0,), (2,)) + i)
    put(out, 0, total)


@ct.kernel
def shapes(x, out):
    t = ct.load(x, (0, 0), (2, 8))
    ct.store(out, (0, 0), ct.reshape(t, (4, 4)).transpose())
    ct.store(out, (1, 0), ct.permute(t.reshape((2, 4, 2)), (2, 0, 1)).reshape((4, 4)))
    ct.store(
        out,
        (2, 0),
        ct.cat((t.extract((0, 1), (2, 2)), t.extract((1, 0), (1, 4)).reshape((2, 2))), 1).reshape((2, 4)),
    )
    ct.store(
        out,
        (6, 0),
        ct.expand_dims(ct.arange(4, dtype=ct.int32), 0) + ct.arange(2, dtype=ct.int32)[:, None] * 10,
    )
    ct.store(out, (7, 0), ct.broadcast_to(ct.arange(4, dtype=ct.int32) * 3 + 1, (2, 4)))
    ct.store(out, (8, 0), ct.cumsum(t.reshape((4, 4)), 1, reverse=True).extract((0, 0), (2, 4)))
    ct.store(out, (9, 0), ct.scan(t.reshape((4, 4)), 1, operator.add, 0).extract((1, 0), (2, 4)))


@ct.kernel
def reductions(x, out):
    t = ct.load(x, (0, 0), (4, 8))
    ct.store(out, (0, 0), ct.sum(t, 0, keepdims=True))
    ct.store(out, (1, 0), ct.max(t, 0, keepdims=True))
    ct.store(out, (2, 0), ct.min(t, 0, keepdims=True))
    ct.store(out, (3, 0), ct.argmax(t, 0, keepdims=True))
    ct.store(out, (4, 0), ct.argmin(t, 0, keepdims=True))
    ct.store(out, (5, 0), ct.prod(t + 1, 0, keepdims=True))
    ct.store(out, (6, 0), ct.reduce(t, 0, lambda a, b: max(a, b), -100, keepdims=True))
    ct.store(out, (7, 0), ct.sum(t) + 10 * ct.argmax(t))
    first, second = ct.reduce((t, t * 2), 0, lambda a, b, c, d: (a + c, b + d), (0, 0))
    ct.store(out, (8, 0), (first + second)[None, :])
    ct.store(out, (9, 0), ct.sum(t < 4, 0, keepdims=True))


@ct.kernel
def casts(x, out):
    t = ct.load(x, 0, 8)
    put_row(out, 0, t.astype(ct.int32))
    put_row(out, 1, t.astype(ct.bool_))
    put_row(out, 2, t.astype(ct.float16))
    put_row(out, 3, t.astype(ct.bfloat16))
    put_row(out, 4, t.astype(ct.tfloat32))
    put_row(out, 5, t.astype(ct.float8_e4m3fn))
    put_row(out, 6, t.astype(ct.float8_e5m2))
    put_row(out, 7, ct.bitcast(t.astype(ct.bfloat16), ct.int16))
    put_row(out, 8, ct.abs(t).astype(ct.uint32))


def put_row(out, i, value):
    ct.store(out, (i, 0), ct.astype(ct.astype(value, ct.float32), out.dtype)[None, :])


@ct.kernel
def floats(x, out):
    t = ct.load(x, 0, 8)
    put_row(out, 0, ct.exp(t))
    put_row(out, 1, ct.exp2(t))
    put_row(out, 2, ct.log(t * t + 1))
    put_row(out, 3, ct.rsqrt(t * t + 1))
    put_row(out, 4, ct.tanh(t))
    put_row(out, 5, t // 0.75)
    put_row(out, 6, t % 0.75)
    put_row(out, 7, t / 3)
    put_row(out, 8, ct.floor(t) + ct.ceil(t) * 10)
    put_row(out, 9, ct.where(t > 0, t, -1))
    put_row(out, 10, ct.atan2(t, 0.5))
    put_row(out, 11, ct.minimum(t, ct.log(t - 100)))
    put_row(out, 12, ct.isnan(ct.log(t - 100)))
    put_row(out, 13, t.astype(ct.float16) * 1001.0 * 3)
    put_row(out, 14, t.astype(ct.bfloat16) * 1001.0 * 3)
    put_row(out, 15, ct.cumsum(t) + ct.sum(t))
    put_row(out, 16, ct.pow(ct.abs(t) + 1, 1.5) + math.pi)
    put_row(out, 17, -t * True)


@ct.kernel
def products(x, y, out):
    a, b = ct.load(x, (0, 0), (16, 16)), ct.load(y, (0, 0), (16, 16))
    ct.store(
        out, (0, 0), ct.mma(a.astype(ct.float16), b.astype(ct.float16), ct.full((16, 16), 10.0, ct.float32))
    )
    ct.store(out, (1, 0), ct.mma(a.astype(ct.tfloat32), b.astype(ct.tfloat32), ct.zeros((16, 16), ct.float32)))
    ct.store(out, (2, 0), (a.astype(ct.float16) @ b.astype(ct.float16)).astype(ct.float32))
    ints = ct.mma(a.astype(ct.int8), b.astype(ct.int8), ct.zeros((16, 16), ct.int32))
    ct.store(out, (3, 0), ints.astype(ct.float32))


@ct.kernel
def swizzled(out, M: int, N: int, T: ConstInt, G: ConstInt):
    for tile in range(ct.bid(0), ct.cdiv(M, T) * ct.cdiv(N, T), ct.num_blocks(0)):
        rows, columns = ct.cdiv(M, T), ct.cdiv(N, T)
        group = tile // (G * columns)
        first = group * G
        size = min(rows - first, G)
        row = first + tile % size
        column = tile % (G * columns) // size
        ct.store(out, (row, column), ct.full((T, T), tile, out.dtype))


ARGUMENTS = {
    "int32_arithmetic": {"out": ("int64", 22), "a": -7, "b": 3, "big": 2147483647},
    "unsigned_and_narrow": {"out": ("int64", 10)},
    "merged_constants": {"out": ("int64", 6), "n": 2},
    "control_flow": {"out": ("int64", 12), "n": 7},
    "tiles": {
        "x": ("int32", 7, 10, "count"), "y": ("int32", 7, 5), "z": ("int32", 8, 10),
        "w": ("int32", 7, 10), "out": ("int32", 6), "grid": 2,
    },
    "views": {"x": ("int32", 20, "count"), "y": ("int32", 14), "out": ("int32", 3)},
    "elements": {"x": ("int32", 5, 7, "count"), "y": ("int32", 4, 7), "out": ("int32", 8, 8)},
    "raw": {"x": ("int32", 3, 4, "count"), "out": ("int32", 12)},
    "atomics": {"x": ("int32", 8, "count"), "tickets": ("int32", 9), "old": ("int32", 8, 8)},
    "lists": {"xs": [("int32", 4, "count"), ("int32", 7, "count")], "out": ("int32", 1)},
    "shapes": {"x": ("int32", 2, 8, "count"), "out": ("int32", 20, 4)},
    "reductions": {"x": ("int32", 4, 8, "mixed"), "out": ("int32", 10, 8)},
    "casts": {"x": ("float32", 8, [0.0, -1.7, 1.7, 2.5, -3.3, 0.1, 300.7, 65.3]), "out": ("float32", 9, 8)},
    "floats": {"x": ("float32", 8, [0.0, -1.7, 1.7, 2.5, -3.3, 0.1, 1.25, 0.6]), "out": ("float32", 18, 8)},
    "products": {
        "x": ("float32", 16, 16, "mixed"), "y": ("float32", 16, 16, "mixed"), "out": ("float32", 64, 16)
    },
    "swizzled": {"out": ("int32", 13, 11), "M": 13, "N": 11, "T": 2, "G": 3, "grid": 4},
}  # fmt: skip
