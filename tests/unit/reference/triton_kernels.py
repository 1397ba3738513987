"""Triton kernels whose results NumPy can give too. The file is never imported: its text is interpreted."""

# ruff: noqa: SIM108, PLW2901 - as kernels are written

import triton
import triton.language as tl
from triton.language.extra import libdevice

TINY = tl.constexpr(1e-6)


@triton.jit
def scaled_sum(x, y, factor):
    return x * factor + y


@triton.autotune(configs=[triton.Config({"BLOCK": 4})], key=["n"])
@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, scaled_sum(x, y, 2), mask=inside)


@triton.jit
def softmax_rows(out, inp, row_stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(inp + row * row_stride + at, mask=inside, other=-float("inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(out + row * row_stride + at, power / tl.sum(power, axis=0), mask=inside)


@triton.heuristics({"EVEN": lambda arguments: arguments["K"] % arguments["BK"] == 0})
@triton.jit
def matmul_grouped(
    a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    first_m = (pid // in_group) * GROUP
    group_size = min(tiles_m - first_m, GROUP)
    tile_m = first_m + (pid % in_group) % group_size
    tile_n = (pid % in_group) // group_size
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    pa = a + (rows % M)[:, None] * sam + inner[None, :] * sak
    pb = b + inner[:, None] * sbk + (columns % N)[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        if EVEN:
            acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        else:
            left = K - k * BK
            x = tl.load(pa, mask=inner[None, :] < left, other=0.0)
            y = tl.load(pb, mask=inner[:, None] < left, other=0.0)
            acc = tl.dot(x, y, acc, allow_tf32=False)
        pa += BK * sak
        pb += BK * sbk
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * scm + columns[None, :] * scn, acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def matmul_block_pointers(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    pa = tl.make_block_ptr(a, (M, K), (K, 1), (m, 0), (BM, BK), (1, 0))
    pb = tl.make_block_ptr(
        base=b, shape=(K, N), strides=(N, 1), offsets=(0, n), block_shape=(BK, BN), order=(1, 0)
    )
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(pa, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(pb, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(x, y)
        pa = tl.advance(pa, (0, BK))
        pb = pb.advance((BK, 0))
    pc = tl.make_block_ptr(c, (M, N), (N, 1), (m, n), (BM, BN), (1, 0))
    tl.store(pc, acc.to(pc.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def double_by_descriptor(a, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(a, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    x = tl.load_tensor_descriptor(source, at)
    target.store(at, x + source.load(at))


@triton.jit
def layer_norm(x, y, w, b, mean_out, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    y += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        away = tl.where(at < n, tl.load(x + at, mask=at < n, other=0.0) - mean, 0.0)
        total += away * away
    scale = tl.rsqrt(tl.sum(total, axis=0) / n + eps)
    tl.store(mean_out + row, mean)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = (tl.load(x + at, mask=at < n) - mean) * scale
        tl.store(y + at, value * tl.load(w + at, mask=at < n) + tl.load(b + at, mask=at < n), mask=at < n)


@triton.jit
def attention_block(acc, total, high, q, k, v, keys, queries, n, stride, D: tl.constexpr, CAUSAL: tl.constexpr):
    d = tl.arange(0, D)
    kt = tl.load(k + keys[None, :] * stride + d[:, None], mask=keys[None, :] < n, other=0.0)
    score = tl.dot(q, kt)
    seen = keys[None, :] < n
    if CAUSAL:
        seen = seen & (queries[:, None] >= keys[None, :])
    score = tl.where(seen, score, -1.0e6)
    higher = tl.maximum(high, tl.max(score, 1))
    power = tl.math.exp2(score - higher[:, None])
    shrink = tl.math.exp2(high - higher)
    values = tl.load(v + keys[:, None] * stride + d[None, :], mask=keys[:, None] < n, other=0.0)
    return tl.dot(power, values, acc * shrink[:, None]), total * shrink + tl.sum(power, 1), higher


@triton.jit
def attention(
    q, k, v, out, scale, stride, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):  # fmt: skip
    first = tl.program_id(0) * BM
    queries = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    at = queries[:, None] * stride + d[None, :]
    tile = tl.load(q + at, mask=queries[:, None] < n, other=0.0) * (scale * 1.44269504)
    high = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    last = tl.minimum(first + BM, n) if CAUSAL else n
    for start in range(0, last, BN):
        start = tl.multiple_of(start, BN)
        keys = start + tl.arange(0, BN)
        acc, total, high = attention_block(acc, total, high, tile, k, v, keys, queries, n, stride, D, CAUSAL)
    tl.store(out + at, (acc / total[:, None]).to(out.type.element_ty), mask=queries[:, None] < n)


@triton.jit
def gather_rows(x, index, out, n, width, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    source = tl.load(index + row, mask=row < n, other=0)
    column = tl.arange(0, WIDTH)
    inside = (row < n)[:, None] & (column < width)[None, :]
    value = tl.load(x + source[:, None] * width + column, mask=inside, other=0.0)
    tl.store(out + row[:, None] * width + column[None, :], value, mask=inside)


@triton.jit
def count_atomically(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(counts + value, 1, mask=at < n, sem="relaxed")


@triton.jit
def extremes_atomically(x, high, low, old, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_max(high + at % 4, value, mask=at < n)
    tl.atomic_min(low + at % 4, value, mask=at < n)
    tl.store(old + at, tl.atomic_xchg(x + at, -value, mask=at < n), mask=at < n)


@triton.jit
def take_turns(lock, count, out):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    turn = tl.load(count)
    tl.store(count, turn + 1)
    tl.store(out + turn, tl.program_id(0))
    tl.atomic_xchg(lock, 0, sem="release", scope="sys")


@triton.jit
def running(x, forward, backward, product, n, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.store(forward + at, tl.cumsum(value, 0), mask=at < n)
    tl.store(backward + at, value.cumsum(axis=0, reverse=True), mask=at < n)
    tl.store(product + at, tl.cumprod((value % 3 + 3).to(tl.int64), 0), mask=at < n)


@triton.jit
def swiglu(a, b, c, stride, n: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(a + row * stride + at, mask=at < n, other=0).to(tl.float32)
    y = tl.load(b + row * stride + at, mask=at < n, other=0)
    tl.store(c + row * stride + at, x * tl.sigmoid(x) * y, mask=at < n)


@triton.jit
def rope(q, cosine, sine, length, HEADS: tl.constexpr, D: tl.constexpr, PH: tl.constexpr, PD: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    q = q + token * (HEADS * D)
    column = tl.arange(0, PD // 2)
    table = token % length * D + column
    c = tl.load(cosine + table, mask=column < D // 2, other=0)
    s = tl.load(sine + table, mask=column < D // 2, other=0)
    head = tl.arange(0, PH)
    first = head[:, None] * D + column[None, :]
    second = first + (D // 2)
    inside = (head[:, None] < HEADS) & (column[None, :] < D // 2)
    x, y = tl.load(q + first, mask=inside, other=0), tl.load(q + second, mask=inside, other=0)
    tl.store(q + first, x * c - y * s, mask=inside)
    tl.store(q + second, y * c + x * s, mask=inside)


@triton.jit
def extremes(x, out, M: tl.constexpr, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N))
    at = out + tl.arange(0, M)
    tl.store(at, tl.argmax(value, 1))
    tl.store(at + M, tl.argmin(value, axis=1))
    tl.store(at + 2 * M, tl.sum(value > 0, axis=1))
    best, where = tl.max(value, 1, return_indices=True)
    tl.store(at + 3 * M, best + where)
    tl.store(at + 4 * M, tl.xor_sum(value, 1))
    tl.store(at + 5 * M, tl.min(value))


@triton.jit
def add_and_highest(a0, a1, b0, b1):
    return a0 + b0, tl.maximum(a1, b1)


@triton.jit
def user_functions(x, folded, scanned, M: tl.constexpr, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    total, high = tl.reduce((value, value * 2), 1, add_and_highest)
    tl.store(folded + tl.arange(0, M), total)
    tl.store(folded + M + tl.arange(0, M), high)
    sums, highs = tl.associative_scan((value, value), 1, add_and_highest)
    tl.store(scanned + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], sums * 100 + highs)


@triton.jit
def reshaping(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M * N)
    value = tl.load(x + at)
    matrix = tl.reshape(value, (M, N))
    tl.store(out + at, tl.reshape(tl.trans(matrix), M * N))
    even, odd = tl.split(tl.view(value, (M * N // 2, 2)))
    tl.store(out + M * N + at, tl.interleave(odd, even))
    tl.store(out + 2 * M * N + at, tl.ravel(matrix.T) + tl.flip(value))
    tl.store(out + 3 * M * N + at, tl.broadcast_to(tl.arange(0, M)[:, None], (M, N)).reshape(M * N))
    pairs = tl.join(value, value + 1)
    tl.static_assert(pairs.shape[1] == 2, "pairs")
    tl.store(out + 4 * M * N + at[:, None] * 2 + tl.arange(0, 2), pairs)
    tl.store(out + 6 * M * N + tl.expand_dims(at, 0), value[None, :].permute(0, 1))
    tl.store(out + 7 * M * N + at, tl.sort(value, descending=True))


@triton.jit
def swizzled(out, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), M, N, GROUP)
    tl.store(out + i * N + j, tl.program_id(0) * N + tl.program_id(1) + 1)


@triton.jit
def optional_bias(a, b, out, chosen, bias, N: tl.constexpr):
    at = tl.arange(0, N)
    if chosen > 2:
        source = a
    else:
        source = b
    value = tl.load(source + at)
    if bias is not None:
        value += tl.load(bias + at)
    tl.store(out + at, value)


@triton.jit
def functions(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    tl.store(out + at, tl.log(tl.abs(a) + 1) + libdevice.tanh(a))
    tl.store(out + N + at, tl.rsqrt(a * a + TINY))
    tl.store(out + 2 * N + at, tl.floor(a) + tl.ceil(a * 2) + tl.fma(a, a, 1.0))
    tl.store(out + 3 * N + at, tl.softmax(a, 0))
    tl.store(out + 4 * N + at, a % 0.3)
    tl.store(out + 5 * N + at, tl.clamp(a, -0.5, 0.5) + tl.div_rn(a, 3.0))


@triton.jit
def chunk_cumsum(s, out, T, H: tl.constexpr, BT: tl.constexpr):
    chunk, both = tl.program_id(0), tl.program_id(1)
    batch, head = both // H, both % H
    base = batch * T * H + head
    source = tl.make_block_ptr(s + base, (T,), (H,), (chunk * BT,), (BT,), (0,))
    target = tl.make_block_ptr(out + base, (T,), (H,), (chunk * BT,), (BT,), (0,))
    value = tl.load(source, boundary_check=(0,)).to(tl.float32)
    tl.store(target, tl.cumsum(value, axis=0).to(target.dtype.element_ty), boundary_check=(0,))


@triton.jit
def histogram_and_gather(x, counts, out, N: tl.constexpr, BINS: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(counts + tl.arange(0, BINS), tl.histogram(value, BINS))
    tl.store(out + at, tl.gather(at * at, value, 0))


@triton.jit
def random_integers(out, floats, seed, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b, _, d = tl.randint4x(seed, at)
    tl.store(out + at, tl.randint(seed, at))
    tl.store(out + N + at, d)
    tl.store(out + 2 * N + at, tl.umulhi(a, b))
    tl.store(floats + at, tl.rand(seed, at))


@triton.jit
def strided_copy(src, dst, shape, strides, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < shape[1]
    tl.store(
        dst + row * shape[1] + at, tl.load(src + row * strides[0] + at * strides[1], mask=inside), mask=inside
    )


def _squares(x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x + at, at * at)


squares = triton.jit(_squares)
