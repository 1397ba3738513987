"""The library's Triton kernels and a few more, launched through `tilecheck.verified` on a machine with a GPU.

    tilecheck verify kernels/triton tests/kernels/triton_tuned.py --emit-verdicts verdicts.json   # anywhere
    python triton_on_gpu.py verdicts.json [--seed N] [--device cpu]

Not a test module, so that it runs where pytest is not: it needs PyTorch, Triton, NumPy, and tilecheck installed
without its dependencies. Results are compared with PyTorch's; then launches that the guard must refuse are
tried, and nothing may have been written by one; then the time that the guard adds to a launch is measured. Ends
with 1 if a result is wrong, a launch was refused or accepted wrongly, or a library was imported that such a
machine lacks. `--device cpu` with TRITON_INTERPRET=1 tries all but the tuned kernels and the times.
"""

# ruff: noqa: T201 - prints its results

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton

import tilecheck
from tilecheck.kernels.triton import matmul, softmax, vector_add

UNWANTED = ("z3", "libcst", "networkx", "cuda.tile")
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 8e-2, torch.float32: 1e-4}
TENSOR_CORES = 1e-2  # of products of float32, which they compute from TF32

Case = tuple[str, Callable[[], tuple[Any, Any]]]  # what is launched, and a function giving (found, expected)
Refusal = tuple[str, str, Callable[[], Any]]  # what is wrong, a word of the refusal, the launch


def _load(name: str) -> Any:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Trial:
    """Makes tensors and knows the kernels."""

    def __init__(self, device: str, seed: int) -> None:
        self.device = device
        # Triton's interpreter has no arithmetic of bfloat16.
        self.floats = [dtype for dtype in TOLERANCE if device == "cuda" or dtype is not torch.bfloat16]
        self.generator = torch.Generator(device).manual_seed(seed)
        self.more = _load("triton_tuned")
        self.kernels = {
            name: tilecheck.verified(kernel)
            for module in (vector_add, softmax, matmul, self.more)
            for name, kernel in vars(module).items()
            if name.endswith("_kernel")
        }

    def random(self, *shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(*shape, device=self.device, generator=self.generator).to(dtype)

    def empty(self, *shape: int, dtype: Any = torch.float32) -> Any:
        return torch.full(shape, 7, device=self.device, dtype=dtype)

    # ---- results -------------------------------------------------------------------------------------------

    def cases(self) -> Iterator[Case]:
        for n, dtype in itertools.product((0, 1, 1023, 1024, 5000, 100_003), self.floats):
            yield f"vector_add {n} {dtype}", lambda n=n, dtype=dtype: self._vector_add(n, dtype)
        for (rows, columns, pitch), dtype in itertools.product(
            ((1, 1, 1), (7, 100, 128), (130, 1000, 1000), (3, 4096, 5000)), self.floats
        ):
            yield (
                f"softmax {rows} x {columns} of {pitch} {dtype}",
                lambda s=(rows, columns, pitch), dtype=dtype: self._softmax(*s, dtype),
            )
        for (m, n, k), dtype in itertools.product(
            ((1, 1, 1), (64, 64, 64), (70, 40, 50), (513, 300, 129)), self.floats
        ):
            yield (
                f"matmul {m} x {n} x {k} {dtype}",
                lambda s=(m, n, k), dtype=dtype: self._matmul(*s, dtype),
            )
        for count in (1, 9):
            yield f"fill {count} blocks", lambda count=count: self._fill(count)
        for n in (1, 256, 1000):
            yield f"pairs {n}", lambda n=n: self._pairs(n)
        for n, bias in itertools.product((512, 1000), (True, False)):
            yield f"biased {n}, bias {bias}", lambda n=n, bias=bias: self._biased(n, bias=bias)

    def tuned_cases(self) -> Iterator[Case]:
        for n in (1, 1000, 65536, 65536):
            yield f"scaled (tuned) {n}", lambda n=n: self._scaled(n)
            yield f"total (tuned, atomic) {n}", lambda n=n: self._total(n)
        yield "unmasked (tuned) 4096", lambda: self._unmasked(4096)

    def _vector_add(self, n: int, dtype: Any) -> tuple[Any, Any]:
        x, y = self.random(n, dtype=dtype), self.random(n, dtype=dtype)
        return vector_add.vector_add(x, y), x + y

    def _softmax(self, rows: int, columns: int, pitch: int, dtype: Any) -> tuple[Any, Any]:
        x = self.random(rows, pitch, dtype=dtype)[:, :columns]
        return softmax.softmax(x), torch.softmax(x, dim=1)

    def _matmul(self, m: int, n: int, k: int, dtype: Any) -> tuple[Any, Any]:
        a, b = self.random(m, k, dtype=dtype) / k**0.5, self.random(k, n, dtype=dtype)
        wanted = (a.double() @ b.double()).to(dtype)
        return matmul.matmul(a, b), wanted

    def _fill(self, count: int) -> tuple[Any, Any]:
        out = self.empty(count * 256 + 5)
        wanted = out.clone()
        wanted[: count * 256] = 1.5
        self.kernels["fill_kernel"][(count,)](out, 1.5, BLOCK=256, num_warps=2)
        return out, wanted

    def _pairs(self, n: int) -> tuple[Any, Any]:
        x, out = self.random(n + 1), self.empty(n)
        self.kernels["pairs_kernel"][lambda m: (triton.cdiv(m["n"], m["BLOCK"]),)](x, out, n)
        return out, x[:-1] + x[1:]

    def _biased(self, n: int, *, bias: bool) -> tuple[Any, Any]:
        x, out = self.random(n), self.empty(n)
        added = self.random(n) if bias else None
        self.kernels["biased_kernel"][(triton.cdiv(n, 256),)](x, added, out, n, 0.5, BLOCK=256)
        wanted = x * 0.5 + (0 if added is None else added)
        return out, wanted * (2 if n % 256 == 0 else 1)

    def _scaled(self, n: int) -> tuple[Any, Any]:
        x, out = self.random(n), self.empty(n)
        self.kernels["scaled_kernel"][lambda m: (triton.cdiv(n, m["BLOCK"]),)](x, out, n, 3.0)
        return out, x * 3

    def _total(self, n: int) -> tuple[Any, Any]:
        x, total = self.random(n).round().to(torch.int32), self.empty(1, dtype=torch.int32).zero_()
        self.kernels["total_kernel"][lambda m: (triton.cdiv(n, m["BLOCK"]),)](x, total, n)
        return total, x.sum(dtype=torch.int32).reshape(1)

    def _unmasked(self, n: int) -> tuple[Any, Any]:
        x, out = self.random(n), self.empty(n)
        self.kernels["unmasked_kernel"][lambda m: (n // m["BLOCK"],)](x, out, 5)
        return out, x + 5

    # ---- refusals ------------------------------------------------------------------------------------------

    def refusals(self) -> Iterator[Refusal]:
        x, y, out = self.random(5000), self.random(5000), self.empty(5000)
        self.watched = out
        add, fill = self.kernels["vector_add_kernel"], self.kernels["fill_kernel"]
        product, rows = self.kernels["matmul_kernel"], self.kernels["softmax_kernel"]

        def added(*args: Any, grid: Any = (5,), **options: Any) -> Callable[[], Any]:
            return lambda: add[grid](*args, **options)

        yield "n too large", "numel", added(x, y, out, 5001, 1024)
        yield "an input too small", "numel", added(x[:-1], y, out, 5000, 1024)
        yield "an output too small", "numel", added(x, y, out[1:], 5000, 1024)
        yield "an expanded output", "numel", added(x, y, out[:1].expand(5000), 5000, 1024)
        yield "an output that overlaps itself", "S2", added(x, y, out.as_strided((2500, 2), (1, 1)), 2000, 1024)
        yield "output and input are one", "S1", added(x, out, out, 5000, 1024)
        yield "output and input overlap", "S1", added(x, out[:4000], out[1:], 4000, 1024)
        yield "output between an input's elements", "S1", added(out[::2], y, out[1::2], 2000, 1024)
        yield "a second grid axis", "S3", added(x, y, out, 5000, 1024, grid=(5, 2))
        yield "a grid of floats", "integers", added(x, y, out, 5000, 1024, grid=(5.0,))
        yield "a float for n", "int", added(x, y, out, 5000.0, 1024)
        yield "a bool for n", "int", added(x, y, out, True, 1024)
        yield "None for a tensor", "None", added(x, y, None, 5000, 1024)
        yield "a number for a tensor", "tensor", added(x, 5, out, 5000, 1024)
        yield "a tensor for a number", "number", added(x, y, out, x, 1024)
        yield "an n of more than 32 bits", "32 bits", added(x, y, out, 2**31, 1024)
        yield "a missing argument", "fit", added(x, y, out, 5000)
        yield (
            "a tensor taken for another type",
            "tensor",
            added(triton.reinterpret(x, triton.language.float64), y, out, 2500, 1024),
        )
        yield "another program", "ir_override", added(x, y, out, 5000, 1024, ir_override="k.ttgir")
        yield "clusters", "num_ctas", added(x, y, out, 5000, 1024, num_ctas=2)
        yield "a block too many", "grid", lambda: fill[(20,)](out, 1.0, BLOCK=256)
        yield "blocks too large", "BLOCK", lambda: fill[lambda m: (10,)](out, 1.0, BLOCK=512)
        yield (
            "an input without its last element",
            "numel",
            lambda: self.kernels["pairs_kernel"][(20,)](x, out, 5000),
        )
        yield (
            "a bias too small",
            "bias_ptr",
            lambda: self.kernels["biased_kernel"][(20,)](x, y[:-1], out, 5000, 1.0, BLOCK=256),
        )
        a, c = x[:4900].view(70, 70), out[:4900].view(70, 70)
        sizes = (70, 70, 70, 70, 70, 70, 32, 32, 32, 8)
        yield "a block too many of a product", "grid", lambda: product[(10,)](a, a, c, *sizes)
        yield (
            "a result whose rows overlap",
            "c_stride",
            lambda: product[(9,)](a, a, c, 70, 70, 70, 70, 70, 35, 32, 32, 32, 8),
        )
        yield "a stride too large", "numel", lambda: rows[(8,)](a, c, 72, 70, 70, 70, 128)
        yield "a result transposed", "out_stride", lambda: rows[(8,)](a, c.T, 70, c.T.stride(0), 70, 70, 128)

    def tuned_refusals(self) -> Iterator[Refusal]:
        x, out = self.random(5000), self.empty(5000)
        self.watched = out
        scaled, unmasked = self.kernels["scaled_kernel"], self.kernels["unmasked_kernel"]
        yield "tuned: n too large", "numel", lambda: scaled[lambda m: (5,)](x, out, 5001, 1.0)
        yield "tuned: overlap", "S1", lambda: scaled[lambda m: (5,)](out[1:], out[:-1], 4999, 1.0)
        yield "tuned: one configuration too large", "BLOCK", lambda: unmasked[(10,)](x, out, 1)

    # ---- times ---------------------------------------------------------------------------------------------

    def launches(self) -> Iterator[tuple[str, Any, Any, tuple[Any, ...], dict[str, Any]]]:
        """Small launches, so that the host's time is what is measured."""
        x, y, out = self.random(1024), self.random(1024), self.empty(1024)
        yield "vector_add_kernel", vector_add.vector_add_kernel, (1,), (x, y, out, 1024), {"BLOCK": 1024}
        a, c = x.view(32, 32), out.view(32, 32)
        yield "softmax_kernel", softmax.softmax_kernel, (32,), (a, c, 32, 32, 32, 32), {"BLOCK": 32}
        blocks = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP": 8}
        yield (
            "matmul_kernel",
            matmul.matmul_kernel,
            (1,),
            (a, y.view(32, 32), c, 32, 32, 32, 32, 32, 32),
            blocks,
        )
        more = self.more
        yield "biased_kernel (heuristics)", more.biased_kernel, (4,), (x, y, out, 1024, 1.0), {"BLOCK": 256}
        yield "scaled_kernel (tuned)", more.scaled_kernel, lambda m: (4,), (x, out, 1024, 1.0), {}


def microseconds(launch: Callable[[], Any], count: int = 500, rounds: int = 15) -> float:
    """The host's time for one launch: the best of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            launch()
        best = min(best, time.perf_counter() - start)
    torch.cuda.synchronize()
    return best / count * 1e6


def measure(trial: Trial) -> None:
    print(f"\n{'host time for one launch':<32} {'Triton':>10} {'verified':>10} {'adds':>10}")
    for name, kernel, grid, args, options in trial.launches():
        guarded = tilecheck.verified(kernel)
        bare = microseconds(lambda k=kernel, g=grid, a=args, o=options: k[g](*a, **o))
        checked = microseconds(lambda k=guarded, g=grid, a=args, o=options: k[g](*a, **o))
        print(f"{name:<32} {bare:>7.2f} us {checked:>7.2f} us {checked - bare:>7.2f} us")


def compare(cases: Iterator[Case]) -> int:
    wrong = 0
    for name, run in cases:
        found, wanted = run()
        off = float((found.double() - wanted.double()).abs().max()) if found.numel() else 0.0
        allowed = TOLERANCE.get(found.dtype, 0)
        good = off <= (max(allowed, TENSOR_CORES) if name.startswith("matmul") else allowed)
        wrong += not good
        print(f"{'agrees' if good else 'DIFFERS':<8} {name}: {off:.2g} off")
    return wrong


def refuse(trial: Trial, refusals: Iterator[Refusal], synchronize: Callable[[], None]) -> int:
    wrong = 0
    for name, word, launch in refusals:
        before = trial.watched.clone()
        try:
            launch()
            said = "ACCEPTED"
        except tilecheck.LaunchRefused as error:
            said = "refused" if word in str(error) else f"REFUSED FOR ANOTHER REASON: {error}"
        synchronize()
        if not torch.equal(before, trial.watched):
            said = "WRITTEN TO"
        wrong += said != "refused"
        print(f"{said:<8} {name}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("verdicts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    tilecheck.use_verdicts(given.verdicts)
    warnings.filterwarnings("error", message="tuning runs")
    on_gpu = given.device == "cuda"
    trial = Trial(given.device, given.seed)
    wrong = compare(trial.cases()) + (compare(trial.tuned_cases()) if on_gpu else 0)
    synchronize = torch.cuda.synchronize if on_gpu else lambda: None
    wrong += refuse(trial, trial.refusals(), synchronize)
    if on_gpu:
        wrong += refuse(trial, trial.tuned_refusals(), synchronize)
        print(f"\n{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}")
        measure(trial)
    found = [name for name in UNWANTED if name in sys.modules]
    if found:
        print(f"WRONG: {', '.join(found)} was imported")
    print(f"\n{wrong} wrong")
    return int(bool(wrong or found))


if __name__ == "__main__":
    sys.exit(main())
