"""The lines that `gate.py` streams: kernels as generators write them, each a text of its own.

Three kinds. Templates are what people generate (element-wise, reductions, softmax, norms, products, transposes,
scatters) with drawn operations, names and sizes, about half with their launch, one in seven broken on purpose.
Those of `tests/soundness` share tiles in intricate ways. Hostile ones are meant to hang, crash or fill what
reads them, or are no lines.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
_RACY, _LAUNCHED = 1 / 7, 0.5


@dataclass(frozen=True)
class Line:
    """One line of input. `broken` kernels must never be proved."""

    family: str
    name: str
    data: bytes
    broken: bool = False


def lines(count: int, seed: int, soundness: float, hostile: float) -> Iterator[Line]:
    """So many lines, with the given parts of them soundness and hostile kernels."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, no secrets
    drawn = _soundness()
    seen: set[int] = set()
    while len(seen) < count:
        name = f"{seed}-{len(seen)}"
        kind = rng.random()
        if kind < hostile:
            line = _hostile(rng, name)
        elif kind < hostile + soundness:
            text = rng.choice(drawn)(rng.randrange(2**31))
            line = Line("soundness", name, _line(name, text))
        else:
            line = _template(rng, name)
        digest = hash(line.data.split(b'"source"')[-1])
        if digest in seen and line.family != "hostile":
            continue
        seen.add(digest if line.family != "hostile" else -len(seen) - 1)
        yield line


def _line(name: str, source: str, launch: str = "", contracts: list[str] | None = None) -> bytes:
    said: dict[str, object] = {"id": name, "source": source}
    if launch:
        said["launch"] = launch
    if contracts:
        said["contracts"] = contracts
    return json.dumps(said).encode() + b"\n"


# ---- templates -----------------------------------------------------------------------------------------------

_CUTILE = "import cuda.tile as ct\nimport torch\n\n"
_TRITON = "import torch\nimport triton\nimport triton.language as tl\n\n"
_STREAM = "torch.cuda.current_stream()"


@dataclass
class _Draw:
    """One kernel that is drawn. Mutable: its random choices."""

    rng: random.Random
    broken: bool

    def pick(self, *ways: str) -> str:
        return self.rng.choice(ways)

    def power(self, low: int, high: int) -> int:
        return 1 << self.rng.randint(low, high)

    def name(self, *stems: str) -> str:
        return f"{self.rng.choice(stems)}_{self.rng.randrange(10_000)}"

    def number(self) -> str:
        return f"{self.rng.uniform(-4, 4):.4f}"

    def value(self, names: list[str], lib: str, depth: int = 2) -> str:
        """A formula of tiles."""
        if depth == 0 or self.rng.random() < 0.2:
            return self.rng.choice((*names, self.number()))
        a, b = self.value(names, lib, depth - 1), self.value(names, lib, depth - 1)
        return self.rng.choice(
            (
                f"({a} + {b})",
                f"({a} * {b})",
                f"({a} - {b})",
                f"{lib}.exp({names[0]} * {b})",
                f"({names[-1]} - {a} * {a})",
            )
        )


_Made = tuple[str, str, list[str]]  # source, launch, contracts


def _triton_elementwise(d: _Draw) -> _Made:
    name, block = d.name("fused", "pointwise", "act", "bias_add"), d.power(6, 11)
    inputs = ["x", "y", "z"][: d.rng.randint(1, 3)]
    at = (
        "pid // 2 * BLOCK + tl.arange(0, BLOCK)"
        if d.broken
        else d.pick("pid * BLOCK + tl.arange(0, BLOCK)", "tl.arange(0, BLOCK) + BLOCK * pid")
    )
    loads = "".join(
        f"    {n} = tl.load({n}_ptr + offs, mask=mask{d.pick('', ', other=0.0')})\n" for n in inputs
    )
    pointers = ", ".join(f"{n}_ptr" for n in inputs)
    source = f"""{_TRITON}@triton.jit
def {name}({pointers}, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offs = {at}
    mask = offs < n
{loads}    tl.store(out_ptr + offs, {d.value(inputs, "tl")}, mask=mask)
"""
    launch = f"""def run({", ".join(inputs)}):
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, {block}),)
    {name}[grid]({", ".join(inputs)}, out, n, BLOCK={block})
    return out
"""
    return source, launch, []


def _triton_rows(d: _Draw) -> _Made:
    name = d.name("softmax", "log_softmax", "normalize", "row_scale")
    base = "out_ptr" if d.broken else "out_ptr + row * out_stride"
    body = d.pick(
        "e = tl.exp(v - tl.max(v, axis=0))\n    r = e / tl.sum(e, axis=0)",
        "c = v - tl.sum(v, axis=0) / n_cols\n    r = c / tl.sqrt(tl.sum(c * c, axis=0) / n_cols + 1e-5)",
        f"r = v * tl.rsqrt(tl.sum(v * v, axis=0) / n_cols + {abs(float(d.number())):.5f})",
        f"r = {d.value(['v'], 'tl')} - tl.log(tl.sum(tl.exp(v), axis=0))",
    )
    source = f"""{_TRITON}@triton.jit
def {name}(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(x_ptr + row * x_stride + cols, mask=mask, other={d.pick("0.0", '-float("inf")')})
    {body}
    tl.store({base} + cols, r * {d.number()}, mask=mask)
"""
    launch = f"""def run(x):
    x = x.contiguous()
    rows, cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    {name}[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=block)
    return out
"""
    return source, launch, []


def _triton_layer_norm(d: _Draw) -> _Made:
    name = d.name("layer_norm", "group_norm", "ln_fwd")
    stat = "0" if d.broken else "row"
    source = f"""{_TRITON}@triton.jit
def {name}(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    diff = tl.where(mask, x - mean, {d.pick("0.0", "0.")})
    rstd = 1 / tl.sqrt(tl.sum(diff * diff, axis=0) / n_cols + eps)
    tl.store(mean_ptr + {stat}, mean)
    tl.store(rstd_ptr + row, rstd * {d.number()})
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + row * stride + cols, diff * rstd * w + b, mask=mask)
"""
    launch = f"""def run(x, w, b):
    x = x.contiguous()
    rows, cols = x.shape
    out = torch.empty_like(x)
    mean = torch.empty((rows,), dtype=torch.float32, device=x.device)
    rstd = torch.empty((rows,), dtype=torch.float32, device=x.device)
    {name}[(rows,)](x, w, b, out, mean, rstd, x.stride(0), cols, 1e-5, BLOCK=triton.next_power_of_2(cols))
    return out
"""
    return source, launch, []


def _triton_matmul(d: _Draw) -> _Made:
    name = d.name("matmul", "gemm", "linear")
    m, n, k = d.power(4, 7), d.power(4, 7), d.power(4, 6)
    column = "pid_m" if d.broken else "pid_n"
    source = f"""{_TRITON}@triton.jit
def {name}(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = {column} * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        in_a = (rm[:, None] < M) & (rk[None, :] < K)
        in_b = (rk[:, None] < K) & (rn[None, :] < N)
        a = tl.load(a_ptr + rm[:, None] * lda + rk[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + rk[:, None] * ldb + rn[None, :], mask=in_b, other=0.0)
        acc += tl.dot(a, b)
    acc = {d.value(["acc"], "tl", 1)}
    tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))
"""
    launch = f"""def run(a, b):
    a, b = a.contiguous(), b.contiguous()
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float32)
    grid = (triton.cdiv(M, {m}), triton.cdiv(N, {n}))
    {name}[grid](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BM={m}, BN={n}, BK={k})
    return c
"""
    return source, launch, []


def _triton_reduction(d: _Draw) -> _Made:
    name, block = d.name("partial_sum", "absmax", "dot"), d.power(7, 12)
    write = d.pick("tl.store(part_ptr + pid, total)", "tl.atomic_add(part_ptr, total)")
    if d.broken:
        write = "tl.store(part_ptr, total)"
    source = f"""{_TRITON}@triton.jit
def {name}(x_ptr, part_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    total = tl.{d.pick("sum", "max", "min")}({d.value(["v"], "tl")} + v, axis=0)
    {write}
"""
    launch = f"""def run(x):
    n = x.numel()
    blocks = triton.cdiv(n, {block})
    part = torch.zeros((blocks,), device=x.device, dtype=torch.float32)
    {name}[(blocks,)](x, part, n, BLOCK={block})
    return part.sum()
"""
    return source, launch, []


def _triton_scatter(d: _Draw) -> _Made:
    name = d.name("scatter_rows", "index_copy", "embedding_bwd")
    source = f"""{_TRITON}@triton.jit
def {name}(src_ptr, index_ptr, out_ptr, stride, width, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    row = tl.load(index_ptr + i)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    v = tl.load(src_ptr + i * stride + cols, mask=mask)
    tl.store(out_ptr + row * stride + cols, v * {d.number()}, mask=mask)
"""
    safe = ["distinct(index_ptr)", "within(index_ptr, 0, numel(out_ptr) // stride)", "width <= stride"]
    return source, "", [] if d.broken else safe


def _cutile_elementwise(d: _Draw) -> _Made:
    name, tile = d.name("pointwise", "fused", "activation"), d.power(5, 11)
    inputs = ["x", "y", "z"][: d.rng.randint(1, 3)]
    loads = "".join(f"    {n}_tile = ct.load({n}, index=(i,), shape=(T,))\n" for n in inputs)
    tiles = [f"{n}_tile" for n in inputs]
    at = "i // 2" if d.broken else "i"
    source = f"""{_CUTILE}@ct.kernel
def {name}({", ".join(inputs)}, out, T: ct.Constant[int]):
    i = ct.bid(0)
{loads}    ct.store(out, index=({at},), tile={d.value(tiles, "ct")} + {tiles[0]})
"""
    launch = f"""def run({", ".join(inputs)}):
    out = torch.empty_like(x)
    grid = (ct.cdiv(x.shape[0], {tile}), 1, 1)
    ct.launch({_STREAM}, grid, {name}, ({", ".join(inputs)}, out, {tile}))
    return out
"""
    return source, launch, []


def _cutile_rows(d: _Draw) -> _Made:
    name, rows, cols = d.name("softmax", "rms_norm", "layer_norm"), d.power(0, 3), d.power(7, 11)
    at = "0" if d.broken else "i"
    body = d.pick(
        "e = ct.exp(v - ct.max(v, axis=1, keepdims=True))\n    r = e / ct.sum(e, axis=1, keepdims=True)",
        "r = v * ct.rsqrt(ct.sum(v * v, axis=1, keepdims=True) / x.shape[1] + 1e-6)",
        "c = v - ct.sum(v, axis=1, keepdims=True) / x.shape[1]\n"
        "    r = c * ct.rsqrt(ct.sum(c * c, axis=1, keepdims=True))",
    )
    source = f"""{_CUTILE}@ct.kernel
def {name}(x, out, TM: ct.Constant[int], TN: ct.Constant[int]):
    i = ct.bid(0)
    v = ct.load(x, index=(i, 0), shape=(TM, TN), padding_mode=ct.PaddingMode.ZERO)
    {body}
    ct.store(out, index=({at}, 0), tile=r * {d.number()})
"""
    launch = f"""def run(x):
    out = torch.empty_like(x)
    ct.launch({_STREAM}, (ct.cdiv(x.shape[0], {rows}), 1, 1), {name}, (x, out, {rows}, {cols}))
    return out
"""
    return source, launch, []


def _cutile_matmul(d: _Draw) -> _Made:
    name, m, n, k = d.name("matmul", "gemm"), d.power(4, 7), d.power(4, 7), d.power(4, 6)
    at = "(m, 0)" if d.broken else "(m, n)"
    source = f"""{_CUTILE}@ct.kernel
def {name}(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    m = ct.bid(0)
    n = ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        left = ct.load(a, index=(m, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(k, n), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(left, right, acc)
    ct.store(c, index={at}, tile=acc * {d.number()})
"""
    launch = f"""def run(a, b):
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=torch.float32)
    grid = (ct.cdiv(a.shape[0], {m}), ct.cdiv(b.shape[1], {n}), 1)
    ct.launch({_STREAM}, grid, {name}, (a, b, c, {m}, {n}, {k}))
    return c
"""
    return source, launch, []


def _cutile_transpose(d: _Draw) -> _Made:
    name, m, n = d.name("transpose", "permute"), d.power(3, 7), d.power(3, 7)
    at = "(j, j)" if d.broken else "(j, i)"
    source = f"""{_CUTILE}@ct.kernel
def {name}(x, out, TM: ct.Constant[int], TN: ct.Constant[int]):
    i = ct.bid({d.pick("0", "0")})
    j = ct.bid(1)
    v = ct.load(x, index=(i, j), shape=(TM, TN))
    ct.store(out, index={at}, tile=ct.transpose(v) * {d.number()})
"""
    launch = f"""def run(x):
    out = torch.empty((x.shape[1], x.shape[0]), device=x.device, dtype=x.dtype)
    grid = (ct.cdiv(x.shape[0], {m}), ct.cdiv(x.shape[1], {n}), 1)
    ct.launch({_STREAM}, grid, {name}, (x, out, {m}, {n}))
    return out
"""
    return source, launch, []


def _cutile_scatter(d: _Draw) -> _Made:
    name = d.name("scatter", "permute_rows")
    source = f"""{_CUTILE}@ct.kernel
def {name}(x, table, out, T: ct.Constant[int]):
    b = ct.bid(0)
    row = ct.gather(table, b)
    v = ct.load(x, index=(b, 0), shape=(1, T))
    if b < table.shape[0]:
        ct.scatter(out, (row, ct.arange(T, dtype=ct.int32)), ct.reshape(v, (T,)) * {d.number()})
"""
    return source, "", [] if d.broken else ["distinct(table)"]


# As often as they are drawn: simple kernels are generated more than others.
_TEMPLATES: tuple[Callable[[_Draw], _Made], ...] = (
    *(_triton_elementwise,) * 3,
    *(_cutile_elementwise,) * 3,
    *(_triton_rows,) * 2,
    *(_cutile_rows,) * 2,
    *(_triton_reduction,) * 2,
    _triton_layer_norm,
    _triton_matmul,
    _triton_scatter,
    _cutile_matmul,
    _cutile_transpose,
    _cutile_scatter,
)


def _template(rng: random.Random, name: str) -> Line:
    make = rng.choice(_TEMPLATES)
    broken = rng.random() < _RACY
    source, launch, contracts = make(_Draw(rng, broken))
    launch = launch if rng.random() < _LAUNCHED else ""
    return Line(
        make.__name__.strip("_").replace("_", " "), name, _line(name, source, launch, contracts), broken
    )


# ---- what tests/soundness draws ------------------------------------------------------------------------------


def _soundness() -> tuple[Callable[[int], str], ...]:
    _run("soundness_conftest", ROOT / "tests/soundness/conftest.py")
    cutile, triton = sys.modules["soundness_sources"], sys.modules["soundness_triton_sources"]
    return (lambda seed: cutile.source(seed).text, lambda seed: triton.triton_source(seed).text)


def _run(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- what is meant to do harm --------------------------------------------------------------------------------


def kernel(index: str, before: str = "") -> str:
    """A kernel that stores at an index; `before` stands above the store."""
    return f"""{_CUTILE}@ct.kernel
def k(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
{before}    ct.store(out, index=({index},), tile=ct.load(x, index=(i,), shape=(T,)))
"""


def nested(operator: str, depth: int) -> str:
    """An index of so many nested operations."""
    index = "i"
    for number in range(depth):
        index = f"({index} * 7 + 1) {operator} (x.shape[0] + {number})"
    return index


def _host(body: str, grid: str) -> str:
    return f"def run(x, out):\n{body}    ct.launch({_STREAM}, ({grid},), k, (x, out, 128))\n"


# Name, source and launch.
HARMFUL: tuple[tuple[str, str, str], ...] = (
    ("60 nested remainders", kernel(nested("%", 60)), ""),
    ("60 nested divisions", kernel(nested("//", 60)), ""),
    ("a number of 400 digits", kernel("i * 10**400"), ""),
    ("a vast power", kernel("i ** 99999999"), ""),
    ("a vast constant power", kernel("i * 99999999 ** 99999999"), ""),
    ("a vast shift", kernel("i << (1 << 40)"), ""),
    ("a vast list", kernel("i", "    s = [0] * 10**10\n"), ""),
    (
        "300 branches",
        kernel("i", "".join(f"    if i > {q}:\n        i = i * 3 + {q}\n" for q in range(300))),
        "",
    ),
    ("a function of itself", kernel("(lambda f: f(f))(lambda f: f(f))"), ""),
    ("1000 parentheses", kernel("(" * 1000 + "i" + ")" * 1000), ""),
    ("5000 terms", kernel("+".join(["i"] * 5000)), ""),
    ("a null byte", kernel("i\0"), ""),
    ("an endless host loop", kernel("i"), _host("    n = 0\n    while True:\n        n += 1\n", "n")),
    ("a host list that doubles", kernel("i"), _host("    n = [1]\n" + "    n = n + n\n" * 60, "len(n)")),
    ("a host tower of powers", kernel("i"), _host("    n = 9 ** 9 ** 9 ** 9\n", "n")),
    ("a module that exits", "raise SystemExit\n" + kernel("i"), ""),
    ("a source of 5 MB", kernel("i") + "# " + "x" * 5_000_000 + "\n", ""),
)
_NO_LINES = (
    b"\n",
    b"{\n",
    b"[1, 2]\n",
    b'{"id": 1, "source": ""}\n',
    b"\xff\n",
    b'{"id": "a"}\n',
    b"[" * 100_000 + b"\n",
)


def _hostile(rng: random.Random, name: str) -> Line:
    if rng.random() < 0.2:
        return Line("no line", name, rng.choice(_NO_LINES))
    what, source, launch = rng.choice(HARMFUL)
    return Line("hostile", f"{name} {what}", _line(f"{name} {what}", source, launch))
