"""Measures how verification time grows with the size of generated programs, as exponents.

    nice python benchmarks/growth.py [SERIES ...]

Each program is verified in a forked process of its own; the processor time is the best of two runs. `reading`
is the time before the first kernel is analysed: discovery, parsing, and finding every launch. The exponent is
the slope of time against size, both as logarithms, over the larger half of the sizes: 1 is linear. The exit
code is 1 if an exponent is over the bar.
"""

from __future__ import annotations

import functools
import importlib
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.modules.project import Project
from tilecheck.garbage import collect_rarely
from tilecheck.options import Options
from tilecheck.patches.index import patches_of
from tilecheck.text import decode
from tilecheck.verify.discover import discover
from tilecheck.verify.importers import launchers
from tilecheck.verify.launch_sites import LaunchesOf, launches_around
from tilecheck.verify.pipeline import verify_paths
from tilecheck.verify.stages import preload

BAR = 1.1
RUNS = 2

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
KERNEL = """@triton.jit
def k{i}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x + {i}, mask=offs < n)


"""
LAUNCH = """def f{i}_{j}(x):
    out = torch.empty_like(x)
    n = out.numel()
    k{i}[(triton.cdiv(n, {block}),)](x, out, n, BLOCK={block})
    return out


"""
STORES = """@triton.jit
def k(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offs, mask=offs < n)
"""
STORE = "    tl.store(out_ptr + row * stride + {i} * n + offs, x, mask=offs < n)\n"
STORED = """

def f(x):
    m, n = x.shape
    out = torch.empty((m, {count} * n), device=x.device)
    k[(m,)](x, out, out.stride(0), n, BLOCK=triton.next_power_of_2(n))
    return out
"""
Files = Iterator[tuple[str, str]]  # names and texts


def _launch(kernel: int, number: int = 0) -> str:
    return LAUNCH.format(i=kernel, j=number, block=128 * (1 + number))


def accesses(count: int) -> Files:
    stores = "".join(STORE.format(i=number) for number in range(count))
    yield "a.py", HEAD + STORES + stores + STORED.format(count=count)


def launches(count: int) -> Files:
    yield "a.py", HEAD + KERNEL.format(i=0) + "".join(_launch(0, number) for number in range(count))


def kernels(count: int) -> Files:
    yield "a.py", HEAD + "".join(KERNEL.format(i=number) + _launch(number) for number in range(count))


def files(count: int) -> Files:
    """A package whose files launch kernels of each other, and whose `__init__` has a name of each."""
    yield "p/__init__.py", "".join(f"from .m{number} import f{number}_0\n" for number in range(count))
    for number in range(count):
        other = (number * 7 + 1) % count
        imports = f"from p.m{other} import k{other}\n" if other != number else ""
        again = _launch(other, 1) if imports else ""
        yield f"p/m{number}.py", imports + HEAD + KERNEL.format(i=number) + _launch(number) + again


SERIES: dict[str, tuple[Callable[[int], Files], tuple[int, ...]]] = {
    "accesses to one array": (accesses, (2, 4, 8, 16)),
    "launches of one kernel": (launches, (4, 8, 16, 32)),
    "kernels in a file": (kernels, (4, 8, 16, 32)),
    "files in a package": (files, (8, 16, 32, 64)),
}


def _read(folder: str) -> None:
    found = discover([folder])
    project, read = Project(patches_of(found.texts, found.named)), dict[str, LaunchesOf]()
    for candidate, importers in launchers(found.candidates, found.hosts):
        table = project.read(decode(candidate.path, candidate.data))
        if find_kernels(table):
            launches_around(table, importers, read, candidate.uses)


def _verify(folder: str) -> None:
    verify_paths(folder, Options(jobs=1))


def _seconds(work: Callable[[], object]) -> float:
    """Processor time of some work in a process that has not done it before."""

    def timed(sender: Connection) -> None:
        start = time.process_time()
        work()
        sender.send(time.process_time() - start)

    context = multiprocessing.get_context("fork")
    times = []
    for _ in range(RUNS):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=timed, args=(sender,))
        process.start()
        sender.close()
        times.append(receiver.recv())
        process.join()
    return min(times)


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms of the larger half."""
    first = len(sizes) // 2 - 1
    xs, ys = [math.log(size) for size in sizes[first:]], [math.log(spent) for spent in times[first:]]
    middle = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((x - middle[0]) * (y - middle[1]) for x, y in zip(xs, ys, strict=True))
    return across / sum((x - middle[0]) ** 2 for x in xs)


def main(names: Sequence[str]) -> int:
    collect_rarely()
    preload()
    for module in ("z3", "tilecheck.frontend.launches.discovery", "tilecheck.verify.files"):
        importlib.import_module(module)  # before the processes are forked, as all else

    missed = []
    print(
        f"load {os.getloadavg()[0]:.1f}\n\n| series | what | seconds, by size | exponent |\n|---|---|---|---:|"
    )
    for name, (make, sizes) in SERIES.items():
        if names and not any(word in name for word in names):
            continue
        for what, work in (("reading", _read), ("all", _verify)):
            times = []
            for size in sizes:
                with tempfile.TemporaryDirectory() as folder:
                    for path, text in make(size):
                        target = Path(folder, path)
                        target.parent.mkdir(exist_ok=True)
                        target.write_text(text)
                    times.append(_seconds(functools.partial(work, folder)))
            grown = exponent(sizes, times)
            if grown > BAR:
                missed.append(f"{name}, {what}")
            shown = ", ".join(f"{size}: {spent:.3f}" for size, spent in zip(sizes, times, strict=True))
            print(f"| {name} | {what} | {shown} | {grown:.2f} |", flush=True)
    print(f"\nover {BAR}: {', '.join(missed) or 'none'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
