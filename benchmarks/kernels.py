"""The kernels of the library beside PyTorch's, and what the guard of `tilecheck.launch` costs.

    python benchmarks/kernels.py [--output FILE] [--only NAME ...] [--compile] [--verdicts FILE | --unguarded]

Needs a GPU, PyTorch, NumPy and cuda-tile. Each host function is first compared with PyTorch's equivalent on
fresh random inputs, and both are then timed in turns. What is memory-bound is put beside a copy, what is
matrix-bound beside cuBLAS, both measured in the same run. Ends with 1 if a kernel was wrong or did not run.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import math
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import cuda.tile as ct
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).parents[1]
try:
    import tilecheck.kernels
except ImportError:  # not installed: a checkout has the package beside its kernels
    sys.path.insert(0, str(ROOT))
    import tilecheck

    tilecheck.__path__.append(str(ROOT))

SAMPLES = 25
SAMPLE_SECONDS = 5e-3
MAX_CALLS = 100  # between two events: more would fill the queue of launches and let the host in
DEVICE = "cuda"

Inputs = tuple[Any, ...]
Timed = Callable[[], Any]
Bar = tuple[float, Literal["PyTorch", "ceiling"]]
ADDED: Bar = (0.99, "PyTorch")
COPIED: Bar = (0.93, "ceiling")


@dataclass(frozen=True)
class Entry:
    """One host function at one size.

    Args:
        module: of `tilecheck.kernels`; the host function has its name unless `function` says otherwise.
        shape: what `make` and `flops` take.
        make: fresh inputs of a type and a shape.
        theirs: PyTorch's equivalent; it changes the same inputs in place.
        flops: of a shape, for what is matrix-bound. Everything else is memory-bound.
        moved: the fewest bytes to read and write; by default all inputs and results.
        tolerance: how far a result may lie off, relative to itself and to the root mean square of all.
        options: for the host function alone.
        note: what the options are, and what PyTorch ran where it has a choice.
        composed: PyTorch needs several kernels: `--compile` times them compiled into one as well.
        bar: what the kernel has to reach: so much of PyTorch's rate, or of the ceiling's.
    """

    module: str
    shape: tuple[int, ...]
    make: Callable[..., Inputs]
    theirs: Callable[..., Any]
    dtype: torch.dtype = torch.float16
    function: str = ""
    flops: Callable[..., float] | None = None
    moved: Callable[[Inputs, list[Any]], int] | None = None
    tolerance: float = 4e-3
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    composed: bool = False
    bar: Bar | None = None

    @property
    def name(self) -> str:
        return self.function or self.module

    @property
    def size(self) -> str:
        extents = " x ".join(f"2^{n.bit_length() - 1}" if n >= 2**20 else str(n) for n in self.shape)
        note = f" ({self.note})" if self.note else ""
        return f"{extents} {str(self.dtype).removeprefix('torch.')}{note}"

    def ours(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(
            importlib.import_module(f"tilecheck.kernels.{self.module}"), self.name
        )
        return functools.partial(function, **self.options)

    def bytes(self, inputs: Inputs, results: list[Any]) -> int:
        if self.moved is not None:
            return self.moved(inputs, results)
        return size_of(*inputs, *results)


def size_of(*tensors: Any) -> int:
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def tensors_of(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in tensors_of(part)] if isinstance(value, (tuple, list)) else []


# ---- what is measured ----------------------------------------------------------------------------------


def normal(dtype: torch.dtype, *shape: int) -> Any:
    return torch.randn(shape, device=DEVICE, dtype=dtype)


def integers(low: int, high: int, *shape: int) -> Any:
    return torch.randint(low, high, shape, device=DEVICE)


def vectors(dtype: torch.dtype, n: int) -> Inputs:
    return normal(dtype, n), normal(dtype, n)


def packed_halves(dtype: torch.dtype, rows: int, columns: int) -> Inputs:
    return normal(dtype, rows, 2 * columns).chunk(2, dim=1)


def matrix(dtype: torch.dtype, *shape: int) -> Inputs:
    return (normal(dtype, *shape),)


def matrix_and_weights(count: int) -> Callable[..., Inputs]:
    def make(dtype: torch.dtype, rows: int, columns: int) -> Inputs:
        return normal(dtype, rows, columns), *(normal(dtype, columns) for _ in range(count))

    return make


def residual(dtype: torch.dtype, rows: int, columns: int) -> Inputs:
    """The steps are small: the residual takes one at every call of a measurement."""
    return normal(dtype, rows, columns) / 64, normal(dtype, rows, columns), normal(dtype, columns)


def add_rms_norm(x: Any, total: Any, weight: Any) -> Any:
    total.add_(x)
    return F.rms_norm(total, weight.shape, weight, 1e-6)


def logits(dtype: torch.dtype, rows: int, columns: int) -> Inputs:
    return normal(dtype, rows, columns), integers(0, columns, rows)


def lookup(dtype: torch.dtype, rows: int, columns: int, count: int) -> Inputs:
    return integers(0, rows, count), normal(dtype, rows, columns)


def heads_to_turn(dtype: torch.dtype, tokens: int, heads: int, kv_heads: int, width: int) -> Inputs:
    half = width // 2
    frequencies = 10000.0 ** (-torch.arange(half, device=DEVICE) / half)
    angles = torch.outer(torch.arange(tokens, device=DEVICE), frequencies)
    q, k = normal(dtype, tokens, heads, width), normal(dtype, tokens, kv_heads, width)
    return q, k, angles.cos(), angles.sin(), integers(0, tokens, tokens)


def turned(x: Any, cos: Any, sin: Any, positions: Any) -> Any:
    """Heads turned by the angles of their positions, as transformer libraries write it, in the type of `x`."""
    c, s = (table[positions].to(x.dtype).repeat(1, 2)[:, None] for table in (cos, sin))
    first, second = x.chunk(2, dim=2)
    return x * c + torch.cat((-second, first), dim=2) * s


def rope(q: Any, k: Any, cos: Any, sin: Any, positions: Any) -> None:
    for x in (q, k):
        x.copy_(turned(x, cos, sin, positions))


def cache(dtype: torch.dtype, slots: int, tokens: int, heads: int, width: int) -> Inputs:
    new = [normal(dtype, tokens, heads, width) for _ in range(2)]
    caches = [normal(dtype, slots, heads, width) for _ in range(2)]
    return *new, *caches, integers(0, slots - tokens + 1, 1).int()


def kv_cache_update(keys: Any, values: Any, key_cache: Any, value_cache: Any, position: Any) -> None:
    """With indices made on the GPU: the position is not known to the host."""
    slots = position + torch.arange(keys.shape[0], device=keys.device)
    key_cache.index_copy_(0, slots, keys)
    value_cache.index_copy_(0, slots, values)


def factors(dtype: torch.dtype, rows: int, columns: int, depth: int) -> Inputs:
    return normal(dtype, rows, depth), normal(dtype, depth, columns)


def batch_of_factors(dtype: torch.dtype, batches: int, rows: int, columns: int, depth: int) -> Inputs:
    return normal(dtype, batches, rows, depth), normal(dtype, batches, depth, columns)


def heads_to_decode(
    dtype: torch.dtype, sequences: int, heads: int, kv_heads: int, slots: int, width: int
) -> Inputs:
    """The heads of the token in the last slot of each sequence, and caches that are full but for it."""
    qkv = normal(dtype, sequences, heads + 2 * kv_heads, width)
    gains = [1 + normal(dtype, width) / 10 for _ in range(2)]
    angles = normal(torch.float32, slots, width // 2)
    positions = torch.full((sequences,), slots - 1, device=DEVICE, dtype=torch.int32)
    caches = [normal(dtype, sequences, kv_heads, slots, width) for _ in range(2)]
    return qkv, *gains, angles.cos(), angles.sin(), positions, *caches


def decode_attention(
    qkv: Any, q_gain: Any, k_gain: Any, cos: Any, sin: Any, positions: Any, keys: Any, values: Any
) -> Any:
    """What `tilecheck.kernels.triton.decode_attention` computes, by PyTorch's own attention."""
    sequences, kv_heads, _, width = keys.shape
    heads = qkv.shape[1] - 2 * kv_heads
    every, at = torch.arange(sequences, device=qkv.device), positions.long()

    def head(x: Any, gain: Any) -> Any:
        x = F.rms_norm(x.float(), (width,), gain.float(), 1e-6)
        return turned(x, cos, sin, at).to(keys.dtype)

    q, k, v = qkv.split((heads, kv_heads, kv_heads), dim=1)
    keys[every, :, at] = head(k, k_gain)
    values[every, :, at] = v
    q = head(q, q_gain)[:, :, None]
    return F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)[:, :, 0]


def product_flops(*extents: int) -> float:
    return 2.0 * math.prod(extents)


def attention_inputs(
    dtype: torch.dtype, batches: int, heads: int, kv_heads: int, length: int, width: int
) -> Inputs:
    q = normal(dtype, batches, heads, length, width)
    return q, *(normal(dtype, batches, kv_heads, length, width) for _ in range(2))


def attention(backend: SDPBackend, *, causal: bool) -> Callable[..., Any]:
    def run(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    return run


def attention_flops(batches: int, heads: int, _: int, length: int, width: int) -> float:
    return 4.0 * batches * heads * length * length * width


def causal_flops(*extents: int) -> float:
    return attention_flops(*extents) / 2


def entries() -> Iterator[Entry]:
    half, single = torch.float16, torch.float32
    for dtype, exact in ((half, 2e-3), (single, 1e-6)):
        yield Entry("vector_add", (2**26,), vectors, torch.add, dtype, tolerance=exact, bar=ADDED)
        yield Entry(
            "axpy",
            (2**26,),
            lambda dtype, n: (1.5, *vectors(dtype, n)),
            lambda a, x, y: torch.add(y, x, alpha=a),
            dtype,
            tolerance=exact,
        )
        yield Entry("transpose", (8192, 8192), matrix, lambda x: x.T.contiguous(), dtype, tolerance=0)
    for function, theirs in (("relu", F.relu), ("gelu", lambda x: F.gelu(x, approximate="tanh"))):
        yield Entry("activations", (2**26,), matrix, theirs, function=function, bar=COPIED)
    yield Entry(
        "silu_mul",
        (8192, 8192),
        packed_halves,
        lambda gate, up: F.silu(gate) * up,
        composed=True,
        bar=COPIED,
    )
    yield Entry(
        "permute_heads",
        (4, 32, 4096, 128),
        matrix,
        lambda x: x.transpose(1, 2).contiguous(),
        tolerance=0,
        bar=COPIED,
    )
    yield Entry(
        "embedding",
        (128_000, 4096, 16_384),
        lookup,
        F.embedding,
        moved=lambda inputs, results: size_of(inputs[0]) + 2 * size_of(*results),
        tolerance=0,
    )
    for rows, columns in ((128, 8192), (16_384, 4096)):
        yield Entry(
            "rms_norm",
            (rows, columns),
            matrix_and_weights(1),
            lambda x, weight: F.rms_norm(x, weight.shape, weight, 1e-6),
            bar=COPIED if rows > 128 else None,
        )
    yield Entry(
        "add_rms_norm",
        (16_384, 4096),
        residual,
        add_rms_norm,
        moved=lambda inputs, results: size_of(*inputs, *results, inputs[1]),
        composed=True,
        bar=COPIED,
    )
    yield Entry(
        "layer_norm",
        (16_384, 4096),
        matrix_and_weights(2),
        lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, 1e-5),
        bar=COPIED,
    )
    for shape in ((16_384, 4096), (2048, 32_768)):
        yield Entry("softmax", shape, matrix, lambda x: torch.softmax(x, 1))
    yield Entry(
        "cross_entropy",
        (4096, 128_256),
        logits,
        lambda x, targets: F.cross_entropy(x, targets, reduction="none"),
        composed=True,
    )
    yield Entry(
        "rope",
        (16_384, 32, 8, 128),
        heads_to_turn,
        rope,
        moved=lambda inputs, _: 2 * size_of(*inputs[:2]) + size_of(*inputs[2:]),
        composed=True,
        bar=COPIED,
    )
    yield Entry(
        "kv_cache_update",
        (65_536, 16_384, 8, 128),
        cache,
        kv_cache_update,
        moved=lambda inputs, _: 2 * size_of(*inputs[:2]),
        tolerance=0,
    )
    for function in ("matmul_grouped", "matmul_persistent"):
        yield Entry("matmul", (4096,) * 3, factors, torch.matmul, function=function, flops=product_flops)
    for dtype in (half, torch.bfloat16):
        for n in (1024, 2048, 4096, 8192, 16_384):
            yield Entry(
                "matmul",
                (n, n, n),
                factors,
                torch.matmul,
                dtype,
                flops=product_flops,
                tolerance=4e-3 if dtype is half else 3e-2,
                bar=(0.92, "PyTorch"),  # and 0.97 in the mean of all sizes
            )
    for module, shape, make, theirs in (
        ("batched_matmul", (32, 2048, 2048, 2048), batch_of_factors, torch.bmm),
        ("split_k_matmul", (512, 512, 16_384), factors, torch.matmul),
    ):
        yield Entry(module, shape, make, theirs, flops=product_flops, bar=(0.95, "PyTorch"))
    for sequences, slots in ((1, 8192), (1, 32_768), (16, 8192)):
        yield Entry(
            "triton.decode_attention",
            (sequences, 32, 8, slots, 128),
            heads_to_decode,
            decode_attention,
            torch.bfloat16,
            function="decode_attention",
            moved=lambda inputs, _: size_of(*inputs[-2:]),
            tolerance=3e-2,
            options={"group": 4, "split": True},
            composed=True,
            bar=(0.85, "ceiling"),
        )
    for causal in (False, True):
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            mask, theirs = "causal, " if causal else "", backend.name.removesuffix("_ATTENTION").lower()
            yield Entry(
                "flash_attention",
                (4, 32, 8, 4096, 128),
                attention_inputs,
                attention(backend, causal=causal),
                flops=causal_flops if causal else attention_flops,
                tolerance=1e-2,
                options={"causal": causal},
                note=f"{mask}PyTorch: {theirs}",
                bar=(0.9, "PyTorch") if backend is SDPBackend.CUDNN_ATTENTION else None,
            )


# ---- agreement -----------------------------------------------------------------------------------------


def check(entry: Entry) -> None:
    """Run both on the same fresh inputs; compare the results and what became of the inputs."""
    seed = torch.seed() % 2**31
    outcomes = []
    for function in (entry.ours(), entry.theirs):
        torch.manual_seed(seed)
        inputs = entry.make(entry.dtype, *entry.shape)
        # What `torch.empty` makes is filled with NaN: an element that nobody writes is seen.
        torch.use_deterministic_algorithms(function is not entry.theirs, warn_only=True)
        try:
            result = function(*inputs)
        finally:
            torch.use_deterministic_algorithms(False)
        outcomes.append([*tensors_of(result), *tensors_of(inputs)])
    for number, (actual, expected) in enumerate(zip(*outcomes, strict=True)):
        if actual.shape != expected.shape:
            raise ValueError(f"result {number} has shape {tuple(actual.shape)}, not {tuple(expected.shape)}")
        off = (actual.float() - expected.float()).abs()
        scale = expected.float().abs() + expected.float().square().mean().sqrt()
        worst = (off / scale.clamp(min=1e-30)).max().item() if off.numel() else 0.0
        if not worst <= entry.tolerance:
            raise ValueError(f"result {number} is off by {worst:.2g}, more than {entry.tolerance:.2g}")


# ---- timing --------------------------------------------------------------------------------------------


def sample(function: Timed, calls: int, lead: float) -> float:
    """Seconds of one call on the GPU. It sleeps for `lead` seconds first, so that the host runs ahead of it."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(int(lead * 2e9))  # noqa: SLF001 - cycles of about half a nanosecond
    start.record()
    for _ in range(calls):
        function()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) * 1e-3 / calls


def medians(functions: Sequence[Timed]) -> list[float]:
    """The median time of each, in seconds. They take turns, so that a throttled moment falls on all of them."""
    plans = []
    for function in functions:
        for _ in range(3):
            function()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(5):
            function()
        issued = time.perf_counter()
        torch.cuda.synchronize()
        total, host = time.perf_counter() - begun, issued - begun
        calls = max(1, min(MAX_CALLS, int(SAMPLE_SECONDS * 5 / total)))
        plans.append((function, calls, 2 * calls * host / 5))
    times: list[list[float]] = [[] for _ in plans]
    for _ in range(SAMPLES):
        for measured, plan in zip(times, plans, strict=True):
            measured.append(sample(*plan))
    return [statistics.median(measured) for measured in times]


def rotating(function: Callable[..., Any], sets: Sequence[Inputs]) -> Timed:
    """Calls with one set of inputs after another, so that none is found in L2."""
    turn = 0

    def call() -> None:
        nonlocal turn
        function(*sets[turn % len(sets)])
        turn += 1

    return call


@dataclass(frozen=True)
class Ceilings:
    """What the GPU reaches in this run: bytes a second of a copy, operations a second of cuBLAS."""

    copy: float
    cublas: float


def ceilings() -> Ceilings:
    source = torch.randint(-128, 128, (2**30,), dtype=torch.int8, device=DEVICE)
    target = torch.empty_like(source)
    a, b = factors(torch.float16, 8192, 8192, 8192)
    copy, product = medians([lambda: target.copy_(source), lambda: torch.matmul(a, b)])
    return Ceilings(2 * size_of(source) / copy, product_flops(8192, 8192, 8192) / product)


def measure(entry: Entry, known: Ceilings, *, compiled: bool) -> list[str]:
    """The cells of one row."""
    check(entry)
    first = entry.make(entry.dtype, *entry.shape)
    results = tensors_of(entry.ours()(*first))
    moved = entry.bytes(first, results)
    cache_size = torch.cuda.get_device_properties(0).L2_cache_size
    count = min(64, math.ceil(3 * cache_size / max(1, moved)))
    sets = [first, *(entry.make(entry.dtype, *entry.shape) for _ in range(count - 1))]
    del results
    functions = [rotating(entry.ours(), sets), rotating(entry.theirs, sets)]
    if compiled and entry.composed:
        functions.append(rotating(torch.compile(entry.theirs), sets))
    ours, theirs, *fused = medians(functions)
    if entry.flops is None:
        rate, ceiling, unit = moved / ours, known.copy, "GB/s"
        shown = rate / 1e9
    else:
        rate, ceiling, unit = entry.flops(*entry.shape) / ours, known.cublas, "TFLOP/s"
        shown = rate / 1e12
    return [
        entry.name,
        entry.size,
        f"{ours * 1e6:.1f}",
        f"{theirs * 1e6:.1f}",
        f"{theirs / ours:.3f}",
        f"{fused[0] * 1e6:.1f}" if fused else "",
        f"{shown:.0f} {unit}",
        f"{100 * rate / ceiling:.1f} %",
        judged(entry, theirs / ours, rate / ceiling),
    ]


def judged(entry: Entry, beside_pytorch: float, of_ceiling: float) -> str:
    """What the kernel has to reach, and whether it does."""
    if entry.bar is None:
        return ""
    least, of = entry.bar
    reached = beside_pytorch if of == "PyTorch" else of_ceiling
    return f"{100 * least:.0f} % of {of}: {'reached' if reached >= least else 'missed'}"


# ---- the guard -----------------------------------------------------------------------------------------

Launches = list[tuple[tuple[int, int, int], tuple[Any, ...]]]


def small_launches(lengths: Sequence[int], *, fresh: bool) -> Launches:
    """Launches of vector_add over vectors of some lengths: new ones for each, or one pair for each length."""
    tile = importlib.import_module("tilecheck.kernels.vector_add").TILE

    def made(n: int) -> tuple[tuple[int, int, int], tuple[Any, ...]]:
        x, y = vectors(torch.float16, n)
        return (ct.cdiv(n, tile), 1, 1), (x, y, torch.empty_like(x), tile)

    known = {n: made(n) for n in set(lengths)}
    return [made(n) if fresh else known[n] for n in lengths]


def host_seconds(launch: Callable[..., None], launches: Launches) -> float:
    """Seconds of one launch on the host; the queue is empty before and never full."""
    kernel = importlib.import_module("tilecheck.kernels.vector_add").vector_add_kernel
    stream = torch.cuda.current_stream()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for grid, args in launches:
        launch(stream, grid, kernel, args)
    return (time.perf_counter() - begun) / len(launches)


def guard_rows() -> Iterator[list[str]]:
    """Raw and guarded launches in turns."""
    workloads = {
        "the same tensors": small_launches([1024] * 200, fresh=False),
        "new tensors of one shape": small_launches([1024] * 200, fresh=True),
        "200 shapes in turns": small_launches(range(1024, 1024 + 16 * 200, 16), fresh=True),
    }
    for name, launches in workloads.items():
        times: list[tuple[float, float]] = []
        for _ in range(103):
            raw = host_seconds(ct.launch, launches)
            times.append((raw, host_seconds(tilecheck.launch, launches)))
        measured = times[3:]  # the first turns compile and fill caches
        raw = statistics.median(r for r, _ in measured)
        guarded = statistics.median(g for _, g in measured)
        added = statistics.median(g - r for r, g in measured)
        yield [name, *(f"{seconds * 1e6:.2f}" for seconds in (raw, guarded, added))]


# ---- the table -----------------------------------------------------------------------------------------

COLUMNS = (
    "kernel",
    "size",
    "time, us",
    "PyTorch, us",
    "PyTorch / kernel",
    "torch.compile, us",
    "rate",
    "of the ceiling",
    "bar",
)
GUARD_COLUMNS = ("launches of vector_add", "ct.launch, us", "tilecheck.launch, us", "guard, us")


class Report:
    """Markdown, printed and written line by line: what was measured is kept when a later kernel hangs."""

    def __init__(self, path: str | None) -> None:
        self.path = Path(path) if path else None
        if self.path:
            self.path.write_text("", encoding="utf-8")

    def line(self, text: str = "") -> None:
        print(text, flush=True)
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text + "\n")

    def row(self, cells: Sequence[str]) -> None:
        self.line(f"| {' | '.join(cells)} |")

    def head(self, columns: Sequence[str]) -> None:
        self.line()
        self.row(columns)
        self.row(["---"] * len(columns))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", help="a file for the tables")
    parser.add_argument("--only", nargs="*", default=[], help="host functions, or `guard` (default: all)")
    parser.add_argument("--compile", action="store_true", help="time compositions under torch.compile too")
    parser.add_argument("--verdicts", help="emitted verdicts: nothing is verified on this machine")
    parser.add_argument("--unguarded", action="store_true", help="let the host functions launch unguarded")
    options = parser.parse_args()
    if options.unguarded:
        tilecheck.launch = ct.launch
    if options.verdicts:
        tilecheck.use_verdicts(options.verdicts)

    report = Report(options.output)
    known = ceilings()
    report.line(
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
        f"cuda-tile {metadata.version('cuda-tile')}, "
        f"{'unguarded' if options.unguarded else 'guarded'} launches. "
        f"Copy: {known.copy / 1e9:.0f} GB/s. cuBLAS, 8192 float16: {known.cublas / 1e12:.0f} TFLOP/s. "
        f"Medians of {SAMPLES} samples."
    )
    report.head(COLUMNS)
    failed = 0
    for entry in entries():
        if options.only and entry.name not in options.only:
            continue
        try:
            cells = measure(entry, known, compiled=options.compile)
        except Exception as error:  # noqa: BLE001 - one kernel's failure must not cost the others' rows
            failed += 1
            traceback.print_exc()
            lines = str(error).splitlines() or [""]
            cells = [entry.name, entry.size, f"{type(error).__name__}: {lines[0]}".replace("|", "/")]
            cells += [""] * (len(COLUMNS) - len(cells))
        report.row(cells)
        gc.collect()
        torch.cuda.empty_cache()
    if not options.unguarded and (not options.only or "guard" in options.only):
        report.head(GUARD_COLUMNS)
        for row in guard_rows():
            report.row(row)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
