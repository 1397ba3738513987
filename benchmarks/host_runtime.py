"""What `tilecheck.host` costs the host, beside what it stands for.

    python benchmarks/host_runtime.py [--rounds N] [PART ...]     on a GPU, with PyTorch, Triton and cuda-core
    python benchmarks/host_runtime.py --cpu                       the library alone, on a GPU that does nothing

The parts, all of them by default:

    eager     one launch: `host.enqueue`, and `host.launch(...).submit()`, beside `tilecheck.launch` (cuTile)
              and `tilecheck.verified` (Triton)
    replay    one launch of a graph of 10, 100, 1,000 and 10,000 nodes while no other is in flight, beside
              `torch.cuda.CUDAGraph.replay`, and beside the driver's own call for the same graph
    pipeline  copies and launches on 4 streams, beside the same by hand in PyTorch
    chain     180 small kernels that depend on the start of one another, beside the same that do not

Both sides of a comparison run in turn, round by round, on one machine; a figure is the median of the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tilecheck import host
from tilecheck.host.memory.arrays import DeviceArray
from tilecheck.jit.records import Argument, Record, Waits

SIZE = 1 << 14  # elements of an array of a small kernel
BLOCK = 1024
GRID = (SIZE // BLOCK,)
NODES = (10, 100, 1_000, 10_000)
STREAMS = 4
CHUNKS = 32
CHUNK = 1 << 20  # elements
CHAIN = 180
_CALLS = 200  # launches that are timed between two waits: fewer than a stream holds
_HERE = Path(__file__).parent

Sides = dict[str, Callable[[], object]]


def paired(
    sides: Sides,
    rounds: int,
    calls: int,
    wait: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Microseconds of the host for one call of each side, which take turns."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():  # compile, verify, and fill caches
        for _ in range(3):
            run()
    wait()
    for number in range(rounds):
        order = list(sides) if number % 2 else list(reversed(sides))
        for name in order:
            run = sides[name]
            began = clock()
            for _ in range(calls):
                run()
            found[name].append((clock() - began) / calls)
            wait()
    return {name: 1e6 * statistics.median(times) for name, times in found.items()}


def paired_alone(
    sides: Sides, warm: Sides, rounds: int, calls: int, wait: Callable[[], object]
) -> dict[str, float]:
    """Microseconds of the host for one call of each side while no other is in flight.

    Right before each call that is timed, `warm` runs, which does the same with little work: the code is in the
    caches. So what is timed is neither a wait for room in a queue, nor the way back from a wait.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for number in range(rounds * calls):
        for name in list(sides) if number % 2 else list(reversed(sides)):
            wait()
            warm[name]()
            began = time.perf_counter()
            sides[name]()
            found[name].append(time.perf_counter() - began)
    wait()
    return {name: 1e6 * statistics.median(times) for name, times in found.items()}


def told(title: str, found: dict[str, float]) -> None:
    """Print the sides; the first is what the others are held against."""
    base, reference = next(iter(found.items()))
    print(f"{title}")
    print(f"  {base:42} {reference:10.2f} us")
    for name, value in list(found.items())[1:]:
        print(f"  {name:42} {value:10.2f} us  {value - reference:+8.2f} us  x{value / reference:.4f}")


# ---- on a GPU ------------------------------------------------------------------------------------------------


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, _HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class Gpu:
    """The real GPU, its kernels, and one stream for both sides."""

    def __init__(self, rounds: int) -> None:
        import torch

        self.torch = torch
        self.rounds = rounds
        self.runtime = host.default()
        self.stream = host.stream()
        self.outside = torch.cuda.ExternalStream(self.stream.handle)
        self.triton = _module("host_kernels") if _is_there("triton") else None
        self.tile = _module("host_tile_kernels") if _is_there("cuda.tile") else None

    def wait(self) -> None:
        self.torch.cuda.synchronize()
        host.synchronize()

    def tensor(self, *, size: int = SIZE) -> Any:
        return self.torch.zeros(size, device="cuda")

    def eager(self) -> None:
        import tilecheck

        with self.torch.cuda.stream(self.outside):
            x, out = self.tensor(), self.tensor()
            self.wait()
            a, b = host.own(x), host.own(out)
            stream, handle = self.stream, self.stream.handle
            if self.tile is not None:
                tile = self.tile.add_one
                sides: Sides = {
                    "tilecheck.launch": lambda: tilecheck.launch(handle, GRID, tile, (x, out)),
                    "host.enqueue": lambda: host.enqueue(stream, tile, GRID, (a, b)),
                    "host.launch(...).submit(stream)": lambda: host.launch(tile, GRID, (a, b)).submit(stream),
                }
                told("one launch, cuTile", paired(sides, self.rounds, _CALLS, self.wait))
            if self.triton is not None:
                kernel = self.triton.add_one
                checked = tilecheck.verified(kernel)
                sides = {
                    "tilecheck.verified": lambda: checked[GRID](x, out, SIZE, BLOCK),
                    "host.enqueue": lambda: host.enqueue(stream, kernel, GRID, (a, b, SIZE, BLOCK)),
                    "host.launch(...).submit(stream)": lambda: host.launch(
                        kernel, GRID, (a, b, SIZE, BLOCK)
                    ).submit(stream),
                }
                told("one launch, Triton", paired(sides, self.rounds, _CALLS, self.wait))

    def replay(self) -> None:
        small, small_graph = self._graphs(1)
        for nodes in NODES:
            sides, graph = self._graphs(nodes)
            calls = max(1, min(50, 20_000 // nodes))
            with self.torch.cuda.stream(self.outside):
                found = paired_alone(sides, small, self.rounds, calls, self.wait)
            told(f"one replay, {nodes:,} nodes", found)
            graph.close()
        small_graph.close()

    def _graphs(self, nodes: int) -> tuple[Sides, host.Graph[Any]]:
        """Launches of a graph of PyTorch's, of one of ours, and of ours by the driver's own call."""
        from cuda.bindings import driver

        assert self.triton is not None, "this part needs Triton"
        kernel = self.triton.add_one
        x, out = self.tensor(), self.tensor()
        kernel[GRID](x, out, SIZE, BLOCK)
        self.wait()
        by_hand = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(by_hand):
            for _ in range(nodes):
                kernel[GRID](x, out, SIZE, BLOCK)
        a, b = host.own(x), host.own(out)
        with host.capture() as scope:
            for _ in range(nodes):
                host.enqueue(scope.stream, kernel, GRID, (a, b, SIZE, BLOCK))
        graph, handle = scope.graph, self.stream.handle
        raw = graph._owner.raw.handle  # noqa: SLF001 - for the driver's own call
        sides: Sides = {
            "torch.cuda.CUDAGraph.replay": by_hand.replay,
            "Graph.launch": lambda: graph.launch(self.stream),
            "cuGraphLaunch of the same": lambda: driver.cuGraphLaunch(raw, handle),
        }
        return sides, graph

    def pipeline(self) -> None:
        assert self.triton is not None, "this part needs Triton"
        torch, kernel = self.torch, self.triton.add_one
        grid = (CHUNK // BLOCK,)
        streams = [host.stream() for _ in range(STREAMS)]
        outside = [torch.cuda.ExternalStream(stream.handle) for stream in streams]
        sources = [torch.ones(CHUNK).pin_memory() for _ in range(STREAMS)]
        targets = [torch.empty(CHUNK).pin_memory() for _ in range(STREAMS)]
        tensors = [(self.tensor(size=CHUNK), self.tensor(size=CHUNK)) for _ in range(STREAMS)]
        self.wait()

        def by_hand() -> None:
            for chunk in range(CHUNKS):
                k = chunk % STREAMS
                x, out = tensors[k]
                with torch.cuda.stream(outside[k]):
                    x.copy_(sources[k], non_blocking=True)
                    kernel[grid](x, out, CHUNK, BLOCK)
                    targets[k].copy_(out, non_blocking=True)
            torch.cuda.synchronize()

        arrays = [(host.own(x), host.own(out)) for x, out in tensors]
        pinned = [(host.pinned(CHUNK), host.pinned(CHUNK)) for _ in range(STREAMS)]
        for source, _ in pinned:
            source.write(b"\0\0\x80\x3f" * CHUNK)

        def ours() -> None:
            for chunk in range(CHUNKS):
                k = chunk % STREAMS
                (x, out), (source, target), stream = arrays[k], pinned[k], streams[k]
                host.copy_to_device(source, x).submit(stream)
                host.enqueue(stream, kernel, grid, (x, out, CHUNK, BLOCK))
                host.copy_to_host(out, target).submit(stream)
            host.synchronize()

        sides: Sides = {"by hand, PyTorch": by_hand, "tilecheck.host": ours}
        title = f"pipeline of {CHUNKS} chunks of {CHUNK * 4 >> 20} MiB on {STREAMS} streams, with the wait"
        told(title, paired(sides, self.rounds, 3, self.wait))

    def chain(self) -> None:
        assert self.triton is not None, "this part needs Triton"
        step = self.triton.step
        x, out, w = host.own(self.tensor()), host.own(self.tensor()), host.own(self.tensor())
        self.wait()

        def run(stream: host.Stream, *, dependent: bool) -> None:
            for number in range(CHAIN):
                a, b = (x, out) if number % 2 else (out, x)
                host.enqueue(stream, step, GRID, (w, a, b, SIZE, BLOCK), dependent=dependent)

        graphs = {}
        for dependent in (False, True):
            with host.capture() as scope:
                run(scope.stream, dependent=dependent)
            graphs[dependent] = scope.graph
        sides: Sides = {
            "captured, one after the other": lambda: (graphs[False].launch(self.stream), self.stream.sync()),
            "captured, dependent": lambda: (graphs[True].launch(self.stream), self.stream.sync()),
        }
        told(f"chain of {CHAIN} launches, with the wait", paired(sides, self.rounds, 10, self.wait))
        for graph in graphs.values():
            graph.close()
        sides = {
            "eager, one after the other": lambda: (run(self.stream, dependent=False), self.stream.sync()),
            "eager, dependent": lambda: (run(self.stream, dependent=True), self.stream.sync()),
        }
        told(f"chain of {CHAIN} launches, with the wait", paired(sides, self.rounds, 3, self.wait))


# ---- without one ---------------------------------------------------------------------------------------------


class NoGpu:
    """A driver that does nothing, at once."""

    def __init__(self) -> None:
        self._streams = 0
        self._address = 1 << 40

    def new_stream(self) -> int:
        self._streams += 1
        return self._streams

    def stream_of(self, handle: int) -> int:
        return handle

    def handle(self, stream: int) -> int:
        return stream

    def current(self) -> int:
        return 0

    @contextlib.contextmanager
    def using(self, stream: int) -> Iterator[None]:
        yield

    def empty(self, shape: tuple[int, ...], dtype: str, stream: int) -> DeviceArray:
        self._address += 1 << 20
        return DeviceArray(self._address, shape, dtype, None)

    def allocations(self) -> int:
        return 0

    def pinned(self, nbytes: int) -> tuple[int, None]:
        self._address += 1 << 20
        return self._address, None

    def imported(self, value: object) -> None:
        return None

    def private(self, array: object) -> object | None:
        return array if isinstance(array, DeviceArray) else None

    def allocation(self, address: int) -> None:
        return None

    def is_done(self, event: object) -> bool:
        return True

    def is_idle(self, stream: int) -> bool:
        return False

    def _nothing(self, *_: object) -> None:
        return None

    record = wait = sync = sync_event = _nothing
    copy = fill = begin_capture = end_capture = abort_capture = replay = _nothing

    def sync_device(self) -> None:
        return None


class NoKernel:
    """A kernel that does nothing."""

    def __init__(self) -> None:
        arguments = tuple(
            Argument(name, "mut" if name == "out" else "shared", array=True) for name in ("x", "y", "out")
        )
        self.record = Record("nothing", "k.py", 1, {"k.py": ""}, "proved", None, arguments, waits=Waits(True))

    def enqueue(self, stream: int, grid: object, args: object, *, dependent: bool) -> None:
        return None


def without_gpu(rounds: int) -> None:
    kernel = NoKernel()
    with host.using(host.Runtime(NoGpu(), background=False)):
        s, t = host.stream(), host.stream()
        x, y, out = (host.zeros(SIZE).submit(s) for _ in range(3))
        arrays = x.array, y.array, out.array
        sides: Sides = {
            "the kernel's own enqueue": lambda: kernel.enqueue(1, GRID, arrays, dependent=False),
            "host.enqueue": lambda: host.enqueue(s, kernel, GRID, (x, y, out)),
            "host.launch(...).submit(stream)": lambda: host.launch(kernel, GRID, (x, y, out)).submit(s),
            "host.enqueue, dependent": lambda: host.enqueue(s, kernel, GRID, (x, y, out), dependent=True),
            "host.launch, dependent": lambda: host.launch(kernel, GRID, (x, y, out), dependent=True).submit(s),
        }
        told("one launch of 3 arrays", paired(sides, rounds, 2_000, host.synchronize, time.process_time))

        def alternate() -> None:
            for stream in (s, t):
                host.launch(kernel, GRID, (x, y, out)).submit(stream, order="events")

        found = paired({"tilecheck.host": alternate}, rounds, 500, host.synchronize, time.process_time)
        told("two launches, each behind the other stream", found)
        for nodes in NODES:
            with host.capture(host.stream()) as scope:
                for _ in range(nodes):
                    host.launch(kernel, GRID, (x, y, out)).submit()
            graph = scope.graph
            sides = {f"{nodes:,} nodes": lambda graph=graph: graph.launch(s)}
            told("one replay", paired(sides, rounds, 2_000, host.synchronize, time.process_time))
            graph.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("eager", "replay", "pipeline", "chain")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(names)}; all by default")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu", action="store_true", help="measure the library alone")
    arguments = parser.parse_args()
    if set(arguments.parts) - set(names):
        parser.error(f"the parts are {', '.join(names)}")
    if arguments.cpu:
        without_gpu(arguments.rounds)
        return 0
    gpu = Gpu(arguments.rounds)
    print(
        f"{gpu.torch.cuda.get_device_name()}, PyTorch {gpu.torch.__version__}, Python {sys.version.split()[0]}"
    )
    for name in arguments.parts or names:
        getattr(gpu, name)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
