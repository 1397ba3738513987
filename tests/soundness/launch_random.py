"""Random host functions with random launches, and their truth: every small input that the host admits is run.

A host is drawn as parts: what it takes, views, checks, an output, a grid, arguments. About half of the hosts
are right by design; in the others one part or several are replaced by wrong ones. None of that decides what is
true: the launches are run (`virtual_machine`), and harm is looked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from soundness_launch_truth import REFUSALS, load
from soundness_launch_ways import function, rewritten
from soundness_virtual_machine import Machine, Outcome, Storage
from soundness_virtual_tensors import Tensor, row_major

HEAD = """import cuda.tile as ct
import torch
import triton
import triton.language as tl

Int = ct.Constant[int]


"""
PROCESSORS = (1, 2, 3, 5)
_INPUTS = 48


@dataclass(frozen=True)
class Made:
    """A kernel with its host. `takes` are the host's parameters: a rank for a tensor, "int" for a number."""

    kernel: str
    host: str
    text: str
    takes: tuple[tuple[str, int | str], ...]
    family: str


@dataclass
class Draw:
    """The choices of one pair. Mutable: `wrong` is how many parts may still be replaced."""

    rng: random.Random
    wrong: int

    def part(self, right: Sequence[str], *others: str) -> str:
        """A right text, or now and then one of the others."""
        if self.wrong and others and self.rng.random() < 0.45:
            self.wrong -= 1
            return self.rng.choice(others)
        return self.rng.choice(list(right))

    def one(self, *texts: Any) -> Any:
        return self.rng.choice(texts)


# ---- families ------------------------------------------------------------------------------------------------
# Each gives the kernel's lines, the host's parameters, and the host's lines; {k} is the kernel's name.

Family = Callable[[Draw], "Parts"]


@dataclass
class Parts:
    kernel: list[str]
    host: list[str]
    takes: list[tuple[str, int | str]]
    extra: list[str] = field(default_factory=list)  # decorators above the kernel


def _checks(d: Draw, *texts: str) -> list[str]:
    found = []
    for text in texts:
        kept = d.part((text,), "")
        if kept and d.rng.random() < 0.5:
            found.append(f"assert {kept}")
        elif kept:
            found += [f"if not ({kept}):", "    raise ValueError('refused')"]
    return found


def triton_flat(d: Draw) -> Parts:
    block = d.one(2, 4, 8)
    mask = d.part((", mask=i < n",), "", ", mask=i <= n", ", mask=i < n + 1")
    masked = mask != "" or d.one(True, False, False)
    shift = d.part(("i",), "i + 1", "n - 1 - i", "i // 2", "i * 2")
    rank = d.one(1, 1, 2)
    prepared = d.one(
        "x = x.contiguous()", "x = x.reshape(-1)", "assert x.is_contiguous()", "", "x = x.view(-1)"
    )
    output = d.part(
        (
            "torch.empty_like(x)",
            "torch.empty(n, device=x.device)",
            "x.new_empty(x.shape)",
            "torch.empty((n, 2), device=x.device)[:, 0].contiguous()",
            "torch.empty(2 * n, device=x.device)[:n].clone()",
            "torch.empty(2 * n, device=x.device)[n:]",
            "torch.empty(1, device=x.device).expand(n).contiguous()",
        ),
        "torch.empty(n - 1, device=x.device)",
        "torch.empty(2 * n, device=x.device)[:n - 1].clone()",
        "torch.empty(2 * n, device=x.device)[n + 1:]",
        "torch.empty(1, device=x.device).expand(n).reshape(-1)",
        f"torch.empty(n // {block}, device=x.device)",
        "torch.empty((n, 2), device=x.device)[:, 0]",
        "torch.empty(1, device=x.device).expand(n)",
        "x",
    )
    grid = d.part(
        (f"(triton.cdiv(n, {block}),)", "lambda meta: (triton.cdiv(n, meta['B']),)"),
        f"(2 * triton.cdiv(n, {block}),)",
        f"(n // {block},)",
        f"(n // {block} + 1,)",
        f"(triton.cdiv(n, {block}), 2)",
        "(n,)",
    )
    whole = [] if masked else _checks(d, f"n % {block} == 0")
    kernel = [
        "def {k}(x, y, n, B: tl.constexpr):",
        "    i = tl.program_id(0) * B + tl.arange(0, B)",
        f"    v = tl.load(x + i{mask})",
        f"    tl.store(y + {shift}, v{mask})",
    ]
    host = [
        prepared,
        "n = x.numel()",
        *whole,
        f"y = {output}",
        f"grid = {grid}",
        f"{{k}}[grid](x, y, n, B={block})",
    ]
    return Parts(["@triton.jit", *kernel], host, [("x", rank)])


def triton_tiles(d: Draw) -> Parts:
    bm, bn = d.one(1, 2, 4), d.one(2, 4)
    rows = d.part(("rm < M",), "rm <= M", "rm < N")
    columns = d.part(("rn < N",), "rn <= N", "rn < M")
    mask = d.part(
        (f", mask=({rows})[:, None] & ({columns})[None, :]",),
        f", mask=({rows})[:, None]",
        f", mask=({columns})[None, :]",
    )
    output = d.part(
        (
            "torch.empty_like(x)",
            "torch.empty((M, N), device=x.device)",
            "torch.empty((N, M), device=x.device).t()",
            "torch.empty((M, N + 2), device=x.device)[:, :N].contiguous()",
            "torch.empty((1, N), device=x.device).expand(M, N).contiguous()",
        ),
        "torch.empty((N, M), device=x.device)",
        "torch.empty((M, 2 * N), device=x.device)[:, :N - 1].contiguous()",
        "torch.empty((1, N), device=x.device).expand(M, N).reshape(M, N)",
        "torch.empty((1, N), device=x.device).expand(M, N)",
        "torch.empty((M, N + 2), device=x.device)[:, :N]",
        "torch.empty((M, 1), device=x.device).expand(M, N)",
    )
    strides = d.part(
        ("x.stride(0), x.stride(1), y.stride(0), y.stride(1)",),
        "x.stride(0), x.stride(1), y.stride(1), y.stride(0)",
        "x.stride(0), x.stride(1), x.stride(0), x.stride(1)",
        "N, 1, N, 1",
        "N, 1, M, 1",
        "y.stride(0), y.stride(1), y.stride(0), y.stride(1)",
    )
    grid = d.part(
        (f"(triton.cdiv(M, {bm}), triton.cdiv(N, {bn}))",),
        f"(triton.cdiv(N, {bn}), triton.cdiv(M, {bm}))",
        f"(triton.cdiv(M, {bm}), triton.cdiv(N, {bm}))",
        f"(triton.cdiv(M, {bm}), triton.cdiv(N, {bn}), 2)",
        f"(M // {bm} + 1, triton.cdiv(N, {bn}))",
    )
    view = d.one("", "", "x = x.contiguous()", "x = x.t()", "x = x[1:]", "x = x[:, ::2]")
    kernel = [
        "def {k}(x, y, M, N, sxm, sxn, sym, syn, BM: tl.constexpr, BN: tl.constexpr):",
        "    rm = tl.program_id(0) * BM + tl.arange(0, BM)",
        "    rn = tl.program_id(1) * BN + tl.arange(0, BN)",
        f"    v = tl.load(x + rm[:, None] * sxm + rn[None, :] * sxn{mask})",
        f"    tl.store(y + rm[:, None] * sym + rn[None, :] * syn, v{mask})",
    ]
    host = [view, "M, N = x.shape", f"y = {output}", f"grid = {grid}"]
    host += [f"{{k}}[grid](x, y, M, N, {strides}, BM={bm}, BN={bn})"]
    return Parts(["@triton.jit", *kernel], host, [("x", 2)])


def triton_rows(d: Draw) -> Parts:
    width = d.one(4, 8)
    tile = d.part(("triton.next_power_of_2(n)",), str(width))
    limit = _checks(d, f"n <= {width}") if tile == str(width) else []
    store = d.part((", mask=c < n",), "", ", mask=c <= n", ", mask=c < P")
    pitch = d.part(("y.stride(0)", "n"), "x.stride(0)", "n - 1", "m", "x.shape[0]")
    row = d.part(("r",), "r // 2", "r + 1")
    output = d.part(
        (
            "torch.empty((m, n), device=x.device)",
            "torch.empty_like(x)",
            "torch.empty(*x.shape, device=x.device)",
            "torch.empty((m, 2 * n), device=x.device)[:, n:].contiguous()",
        ),
        "torch.empty((m, 2 * n), device=x.device)[1:, n:].contiguous()",
        "torch.empty((m, n - 1), device=x.device)",
        "torch.empty((n, m), device=x.device)",
        "torch.empty((m - 1, n), device=x.device)",
        "torch.empty(m, device=x.device)",
    )
    grid = d.part(("(m,)", "(x.shape[0], 1, 1)"), "(m + 1,)", "(m, 2)", "(n,)", "(2 * m,)", "(x.numel(),)")
    prepared = d.one("x = x.contiguous()", "x = x.contiguous()", "assert x.is_contiguous()", "")
    kernel = [
        "def {k}(x, y, sx, sy, n, P: tl.constexpr):",
        "    r = tl.program_id(0)",
        "    c = tl.arange(0, P)",
        "    v = tl.load(x + r * sx + c, mask=c < n)",
        f"    tl.store(y + ({row}) * sy + c, v{store})",
    ]
    host = [
        prepared,
        "m, n = x.shape",
        *limit,
        f"y = {output}",
        f"{{k}}[{grid}](x, y, x.stride(0), {pitch}, n, P={tile})",
    ]
    return Parts(["@triton.jit", *kernel], host, [("x", 2)])


def triton_slots(d: Draw) -> Parts:
    block = d.one(2, 4)
    slots = d.part(("m", "x.shape[0]"), "m // 2 + 1", "n", "3", "max(1, m - 1)")
    atomic = d.one(True, False, False)
    size = d.part((f"({slots}) * {block}",), f"m * {block}", f"({slots})")
    guard = _checks(d, "m <= 3") if slots == "3" else []
    change = (
        f"tl.atomic_add(y + (p % S) * {block} + i, v)" if atomic else f"tl.store(y + (p % S) * {block} + i, v)"
    )
    kernel = [
        "def {k}(x, y, S, B: tl.constexpr):",
        "    p = tl.program_id(0)",
        "    i = tl.arange(0, B)",
        "    v = tl.load(x + p * B + i)",
        f"    {change}",
    ]
    host = ["x = x.contiguous()", "m, n = x.shape", f"assert n == {block}", *guard]
    host += [f"y = torch.zeros({size}, device=x.device)", f"{{k}}[(m,)](x, y, {slots}, B={block})"]
    return Parts(["@triton.jit", *kernel], host, [("x", 2)])


def triton_partial(d: Draw) -> Parts:
    block = d.one(2, 4)
    parts = d.part(
        (f"triton.cdiv(n, {block})",),
        f"n // {block}",
        f"triton.cdiv(n, 2 * {block})",
        f"n // {block} + 1",
        "programs",
    )
    grid = d.part((f"(triton.cdiv(n, {block}),)",), f"(n // {block} + 1,)", "(programs,)")
    at = d.part(("p",), "p // 2", "p * 2", "0")
    kernel = [
        "def {k}(x, part, n, B: tl.constexpr):",
        "    p = tl.program_id(0)",
        "    i = p * B + tl.arange(0, B)",
        "    v = tl.load(x + i, mask=i < n, other=0.0)",
        f"    tl.store(part + {at}, tl.sum(v, axis=0))",
    ]
    host = ["x = x.contiguous()", "n = x.numel()"]
    host += ["programs = torch.cuda.get_device_properties('cuda').multi_processor_count"]
    host += [f"part = torch.empty({parts}, device=x.device)", f"{{k}}[{grid}](x, part, n, B={block})"]
    return Parts(["@triton.jit", *kernel], host, [("x", d.one(1, 2))])


def triton_loops(d: Draw) -> Parts:
    block = d.one(2, 4)
    programs = d.one("programs", "3", f"min(programs, triton.cdiv(n, {block}))", "k")
    step = d.part((programs,), f"{programs} - 1", "2", f"triton.cdiv(n, {block})", f"{programs} + 1")
    step = d.one(step, step, "tl.num_programs(0)") if step == programs else step
    inner = step if step == "tl.num_programs(0)" else "STEP"
    passed = "1" if step == "tl.num_programs(0)" else step
    start = d.part(("tl.program_id(0)",), "tl.program_id(0) // 2", "0")
    kernel = [
        "def {k}(x, y, n, STEP: tl.constexpr, B: tl.constexpr):",
        f"    for t in range({start}, tl.cdiv(n, B), {inner}):",
        "        i = t * B + tl.arange(0, B)",
        "        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)",
    ]
    host = ["assert x.is_contiguous()", "n = x.numel()", "y = torch.empty_like(x)"]
    host += ["programs = torch.cuda.get_device_properties('cuda').multi_processor_count"]
    host += [f"{{k}}[({programs},)](x, y, n, STEP={passed}, B={block})"]
    takes: list[tuple[str, int | str]] = [("x", 1)]
    return Parts(["@triton.jit", *kernel], host, [*takes, ("k", "int")] if "k" in (programs, step) else takes)


def triton_tuned(d: Draw) -> Parts:
    sizes = sorted(d.rng.sample((1, 2, 4, 8), 2))
    configs = ", ".join(f"triton.Config({{{{'B': {b}}}}})" for b in sizes)
    mask = d.part((", mask=i < n",), "")
    checks = [] if mask else _checks(d, f"n % {sizes[-1]} == 0")
    grid = d.part(
        ("lambda meta: (triton.cdiv(n, meta['B']),)",),
        f"(triton.cdiv(n, {sizes[0]}),)",
        f"(triton.cdiv(n, {sizes[-1]}),)",
        "lambda meta: (n // meta['B'],)",
        "lambda meta: (triton.cdiv(n, meta['B']), 2)",
    )
    kernel = [
        f"@triton.autotune(configs=[{configs}], key=['n'])",
        "@triton.jit",
        "def {k}(x, y, n, B: tl.constexpr):",
        "    i = tl.program_id(0) * B + tl.arange(0, B)",
        f"    tl.store(y + i, tl.load(x + i{mask}){mask})",
    ]
    host = [
        d.one("x = x.contiguous()", "assert x.is_contiguous()"),
        "n = x.numel()",
        *checks,
        "y = torch.empty_like(x)",
    ]
    host += [f"{{k}}[{grid}](x, y, n)"]
    return Parts(kernel, host, [("x", d.one(1, 2))])


def triton_two(d: Draw) -> Parts:
    """Two tensors that are handed in independently."""
    block = d.one(2, 4)
    check = _checks(d, d.one("x.shape == w.shape", "w.shape[0] >= x.shape[0]", "x.numel() == w.numel()"))
    at = d.part(("i",), "i + 1", "n - 1 - i")
    kernel = [
        "def {k}(x, w, y, n, B: tl.constexpr):",
        "    i = tl.program_id(0) * B + tl.arange(0, B)",
        f"    v = tl.load(x + i, mask=i < n) * tl.load(w + {at}, mask=i < n)",
        "    tl.store(y + i, v, mask=i < n)",
    ]
    output = d.part(("torch.empty_like(x)",), "torch.empty_like(w)", "torch.empty(1, device=x.device)")
    size = d.one("x.numel()", "x.shape[0]")
    host = ["x, w = x.contiguous(), w.contiguous()", *check, f"n = {size}", f"y = {output}"]
    host += [f"{{k}}[(triton.cdiv(n, {block}),)](x, w, y, n, B={block})"]
    return Parts(["@triton.jit", *kernel], host, [("x", 1), ("w", 1)])


def literal_sizes(d: Draw) -> Parts:
    """A host without parameters: every size is in its text."""
    m, block = d.one(3, 4, 6, 40), d.one(2, 4)
    slots = d.part((m,), m - 1, max(1, m // 2), m + 1)
    rows = d.part((m,), m - 1, m + 2)
    grid = d.part((f"({m},)",), f"({m + 1},)", f"({2 * m},)", f"({m}, 2)")
    kernel = [
        "def {k}(x, y, S: tl.constexpr, B: tl.constexpr):",
        "    p = tl.program_id(0)",
        "    i = tl.arange(0, B)",
        "    tl.store(y + (p % S) * B + i, tl.load(x + p * B + i))",
    ]
    host = [
        f"x = torch.ones(({m}, {block}), device='cuda')",
        f"y = torch.zeros(({rows}, {block}), device='cuda')",
    ]
    return Parts(["@triton.jit", *kernel], [*host, f"{{k}}[{grid}](x, y, S={slots}, B={block})"], [])


def cutile_flat(d: Draw) -> Parts:
    tile = d.one(2, 4, 8)
    checked = d.part(("",), ", check_bounds=False")
    checks = _checks(d, "x.shape[0] % t == 0") if checked else []
    index = d.part(("i",), "i // 2", "i + 1", "i % 2", "ct.num_blocks(0) - 1 - i")
    default = d.one(True, False)
    size = "t" if default else str(tile)
    output = d.part(
        ("torch.empty_like(x)", "torch.empty(n, device=x.device)"),
        "torch.empty(n // 2, device=x.device)",
        f"torch.empty(ct.cdiv(n, {size}), device=x.device)",
        "torch.empty(1, device=x.device).expand(n)",
    )
    grid = d.part(
        (f"(ct.cdiv(n, {size}),)", f"(ct.cdiv(n, {size}), 1, 1)"),
        f"(ct.cdiv(n, {size}) + 1,)",
        f"(2 * ct.cdiv(n, {size}),)",
        f"(n // {size} + 1,)",
        f"(ct.cdiv(n, {size}), 2)",
        "(n,)",
    )
    kernel = [
        "@ct.kernel",
        "def {k}(x, y, T: Int):",
        "    i = ct.bid(0)",
        f"    ct.store(y, index=({index},), tile=ct.load(x, index=(i,), shape=(T,){checked}){checked})",
    ]
    host = ["n = x.shape[0]", *[c.replace("% t ", f"% {size} ") for c in checks], f"y = {output}"]
    host += [f"ct.launch(torch.cuda.current_stream(), {grid}, {{k}}, (x, y, {size}))"]
    return Parts(kernel, host, [("x", 1), *([("t", f"={tile}")] if default else [])])


def cutile_tiles(d: Draw) -> Parts:
    tr, tc = d.one(1, 2, 4), d.one(2, 4)
    axes = d.part(("ct.bid(0), ct.bid(1)",), "ct.bid(1), ct.bid(0)", "ct.bid(0), ct.bid(0)", "ct.bid(0), 0")
    store = d.part(("(r, c)",), "(c, r)", "(r // 2, c)", "(r, c + 1)")
    grid = d.part(
        (f"(ct.cdiv(m, {tr}), ct.cdiv(n, {tc}))", f"(ct.cdiv(x.shape[0], {tr}), ct.cdiv(x.shape[1], {tc}), 1)"),
        f"(ct.cdiv(n, {tc}), ct.cdiv(m, {tr}))",
        f"(ct.cdiv(m, {tr}), ct.cdiv(n, {tc}), 2)",
        f"(ct.cdiv(m, {tr}), ct.cdiv(m, {tc}))",
        f"(m // {tr} + 1, ct.cdiv(n, {tc}))",
    )
    output = d.part(
        (
            "torch.empty_like(x)",
            "torch.empty((m, n), device=x.device)",
            "torch.empty((n, m), device=x.device).t()",
            "torch.empty((2 * m, n), device=x.device)[m:]",
            "torch.empty((1, n), device=x.device).expand(m, n).contiguous()",
        ),
        "torch.empty((n, m), device=x.device)",
        "torch.empty((1, n), device=x.device).expand(m, n).reshape(m, n)",
        "torch.empty((1, n), device=x.device).expand(m, n)",
        "torch.zeros(m * 2 + n, device=x.device).as_strided((m, n), (1, 1))",
        "torch.empty((m, 1), device=x.device)",
    )
    view = d.one("", "", "x = x.contiguous()", "x = x.t()", "x = x[1:]")
    kernel = [
        "@ct.kernel",
        "def {k}(x, y, TR: Int, TC: Int):",
        f"    r, c = {axes}",
        f"    ct.store(y, index={store}, tile=ct.load(x, index=(r, c), shape=(TR, TC)))",
    ]
    host = [view, "m, n = x.shape", f"y = {output}"]
    host += [f"ct.launch(torch.cuda.current_stream(), {grid}, {{k}}, (x, y, {tr}, {tc}))"]
    return Parts(kernel, host, [("x", 2)])


def cutile_decoded(d: Draw) -> Parts:
    tr, tc = d.one(1, 2), d.one(2, 4)
    across, down = f"ct.cdiv(x.shape[1], {tc})", f"ct.cdiv(x.shape[0], {tr})"
    passed = d.part((across,), down, f"{across} + 1", f"max(1, {across} - 1)")
    blocks = d.part(
        (f"{across} * {down}",), f"{across} * {down} + 1", f"2 * {across} * {down}", f"{down} * {down}"
    )
    kernel = [
        "@ct.kernel",
        "def {k}(x, y, A: Int, TR: Int, TC: Int):",
        "    b = ct.bid(0)",
        "    r, c = b // A, b % A",
        "    ct.store(y, index=(r, c), tile=ct.load(x, index=(r, c), shape=(TR, TC)))",
    ]
    host = ["y = torch.empty_like(x)", f"blocks = {blocks}"]
    host += [f"ct.launch(torch.cuda.current_stream(), (blocks,), {{k}}, (x, y, {passed}, {tr}, {tc}))"]
    return Parts(kernel, host, [("x", 2)])


def cutile_loops(d: Draw) -> Parts:
    tile = d.one(2, 4)
    blocks = d.one("programs", "3", f"min(programs, ct.cdiv(x.shape[0], {tile}))", "4 * programs")
    step = d.part((blocks,), "2", "programs", f"ct.cdiv(x.shape[0], {tile})")
    inner = d.one("STEP", "ct.num_blocks(0)") if step == blocks else "STEP"
    slots = d.part(("t",), "t // 2", "t % 3")
    kernel = [
        "@ct.kernel",
        "def {k}(x, y, STEP: Int, T: Int):",
        f"    for t in range(ct.bid(0), ct.cdiv(x.shape[0], T), {inner}):",
        f"        ct.store(y, index=({slots},), tile=ct.load(x, index=(t,), shape=(T,)))",
    ]
    host = [
        "programs = torch.cuda.get_device_properties(x.device).multi_processor_count",
        "y = torch.empty_like(x)",
    ]
    host += [f"ct.launch(torch.cuda.current_stream(), ({blocks},), {{k}}, (x, y, {step}, {tile}))"]
    return Parts(kernel, host, [("x", 1)])


def cutile_slots(d: Draw) -> Parts:
    tile = d.one(2, 4)
    slots = d.part(("m",), "max(1, m // 2)", "2", "n", "k")
    guard = _checks(d, f"m <= {slots}") if slots in ("2", "k") else []
    size = d.part((slots,), "m", "1")
    kernel = [
        "@ct.kernel",
        "def {k}(x, y, S: Int, T: Int):",
        "    b = ct.bid(0)",
        "    ct.store(y, index=(b % S, 0), tile=ct.load(x, index=(b, 0), shape=(1, T)))",
    ]
    takes: list[tuple[str, int | str]] = [("x", 2), *([("k", "int")] if slots == "k" else [])]
    host = ["m, n = x.shape", *guard, f"y = torch.zeros(({size}, n), device=x.device)"]
    host += [f"ct.launch(torch.cuda.current_stream(), (m,), {{k}}, (x, y, {slots}, {tile}))"]
    return Parts(kernel, host, takes)


FAMILIES: dict[str, Family] = {
    f.__name__: f
    for f in (
        triton_flat,
        triton_tiles,
        triton_rows,
        triton_slots,
        triton_partial,
        triton_loops,
        triton_tuned,
        triton_two,
        literal_sizes,
        cutile_flat,
        cutile_tiles,
        cutile_decoded,
        cutile_loops,
        cutile_slots,
    )
}


def made(rng: random.Random, number: int) -> Made:
    """A random pair of a kernel and its host."""
    family = rng.choice(sorted(FAMILIES))
    parts = FAMILIES[family](Draw(rng, rng.choice((0, 0, 1, 1, 2, 3))))
    name, host = f"kernel_{number}", f"host_{number}"
    lines = rewritten(rng, [line for line in parts.host if line])
    result = "part" if any("part = " in line for line in parts.host) else "y"
    host_text = function(rng, host, parts.takes, [*lines, f"return {result}"])
    text = "\n".join([*parts.kernel, "", "", host_text])
    return Made(
        name, host, text.replace("{k}", name).replace("{{", "{").replace("}}", "}"), tuple(parts.takes), family
    )


def file_of(pairs: Sequence[Made]) -> str:
    return HEAD + "\n\n\n".join(pair.text for pair in pairs) + "\n"


# ---- inputs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """Arguments of one call. `ordinary`: every tensor has the strides of a new one of its shape."""

    given: dict[str, Any]
    processors: int
    ordinary: bool

    @property
    def is_odd(self) -> bool:
        """Whether an axis of one index has a stride of its own, which PyTorch calls contiguous."""
        return any(v.is_contiguous() and v.strides != row_major(v.shape) for v in self.tensors())

    def tensors(self) -> list[Tensor]:
        return [v for v in self.given.values() if isinstance(v, Tensor)]

    def __str__(self) -> str:
        said = (
            f"{k}={tuple(v.shape)}/{v.strides}" if isinstance(v, Tensor) else f"{k}={v}"
            for k, v in self.given.items()
        )
        return f"{', '.join(said)}, {self.processors} processors"


def inputs(
    pair: Made,
    rng: random.Random,
    *,
    largest: int = 5,
    count: int = _INPUTS,
    processors: Sequence[int] = PROCESSORS,
) -> Iterator[Input]:
    """All small ordinary inputs, as far as `count` goes, and some of other layouts."""
    ranges = [_values(takes, largest) for _, takes in pair.takes]
    every = list(product(*ranges, processors))
    chosen = every if len(every) <= count else rng.sample(every, count)
    for values in chosen:
        *own, sms = values
        plain = {
            n: _tensor(v, 0) if isinstance(v, tuple) else v for (n, _), v in zip(pair.takes, own, strict=True)
        }
        yield Input(plain, sms, ordinary=True)
        if rng.random() < 0.3 and any(isinstance(v, tuple) for v in own):
            layout = rng.choice((1, 2))
            other = {
                n: _tensor(v, layout) if isinstance(v, tuple) else v
                for (n, _), v in zip(pair.takes, own, strict=True)
            }
            ordinary = all(not isinstance(v, Tensor) or v.strides == row_major(v.shape) for v in other.values())
            yield Input(other, sms, ordinary)


def _values(takes: int | str, largest: int) -> list[Any]:
    if isinstance(takes, int):
        return list(product(range(1, largest + 1 if takes > 1 else 3 * largest), repeat=takes))
    if takes.startswith("="):
        return [int(takes[1:]), 1, 2, 3, 4, 8]
    return list(range(largest + 2))


def _tensor(shape: tuple[int, ...], layout: int) -> Tensor:
    """Contiguous, transposed (strided, where there is one axis), or with padded rows."""
    if layout == 0:
        strides = row_major(shape)
    elif layout == 1:
        strides = tuple(reversed(row_major(tuple(reversed(shape))))) if len(shape) > 1 else (2,)
    else:
        strides = tuple(row_major((*shape[:-1], shape[-1] + 2))) if len(shape) > 1 else (3,)
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return Tensor(Storage(reach, given=True), shape, strides)


# ---- truth ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """One launch of one admitted input."""

    outcome: Outcome
    input: Input


def runs(pair: Made, rng: random.Random, **options: Any) -> Iterator[Ran]:
    """The launches that start, over the inputs that the host admits."""
    text = HEAD + pair.text
    machines: dict[int, tuple[Machine, dict[str, Any]]] = {}
    for given in inputs(pair, rng, **options):
        if given.processors not in machines:
            machine = Machine(given.processors, 4096)
            machines[given.processors] = machine, load(text, machine)
        machine, names = machines[given.processors]
        machine.outcomes.clear()
        try:
            names[pair.host](**given.given)
        except REFUSALS:
            continue
        yield from (Ran(outcome, given) for outcome in list(machine.outcomes) if outcome.started)
