"""The stand-in for a GPU: kernels run by the reference backend, with ownership and order as on a GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tilecheck import host
from tilecheck.errors import LaunchRefused
from tilecheck.host import HostRefused
from tilecheck.host.reference import ReferenceDriver, ReferenceKernel, elements

pytest.importorskip("cuda.tile", reason="cuda-tile is not installed")

KERNELS = """
import cuda.tile as ct


@ct.kernel
def add_kernel(w, x, out, TILE: ct.Constant[int], WAITS: ct.Constant[bool]):
    at = ct.bid(0)
    tile = ct.load(w, index=(at,), shape=(TILE,))
    if WAITS:
        ct.grid_dependency_control_wait()
    ct.store(out, index=(at,), tile=tile + ct.load(x, index=(at,), shape=(TILE,)))
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("kernels") / "added.py"
    path.write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("added", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def runtime() -> Iterator[host.Runtime]:
    with host.using(host.Runtime(ReferenceDriver(), background=False)) as made:
        yield made


def array(stream: host.Stream, *values: float) -> host.Array:
    return host.copy_to_device(np.asarray(values, dtype=np.float32)).sync_on(stream)


def values(stream: host.Stream, source: Any) -> list[float]:
    found: list[float] = host.copy_to_host(source).sync_on(stream).tolist()
    return found


def test_a_kernel_runs_when_it_is_enqueued(runtime: host.Runtime, module: ModuleType) -> None:
    add, stream = ReferenceKernel(module.add_kernel, runtime.driver), host.stream()
    w, x, out = array(stream, 1, 2, 3), array(stream, 10, 20, 30), array(stream, 0, 0, 0)
    host.enqueue(stream, add, (2,), (w, x, out, 2, False))
    assert values(stream, out) == [11, 22, 33]


def test_what_breaks_a_condition_is_refused(runtime: host.Runtime, module: ModuleType) -> None:
    add, stream = ReferenceKernel(module.add_kernel, runtime.driver), host.stream()
    w, x, out = array(stream, 1, 2, 3), array(stream, 10, 20, 30), array(stream, 0, 0, 0)
    with pytest.raises(LaunchRefused, match="grid"):
        host.enqueue(stream, add, (3,), (w, x, out, 2, False))
    assert values(stream, out) == [0, 0, 0]


def test_a_graph_runs_at_each_launch_and_not_before(runtime: host.Runtime, module: ModuleType) -> None:
    add, stream = ReferenceKernel(module.add_kernel, runtime.driver), host.stream()
    w, x, out = array(stream, 1, 2), array(stream, 0, 0), array(stream, 0, 0)
    with host.capture(stream, inputs={"x": x}) as scope:
        host.enqueue(stream, add, (1,), (w, x, out, 2, False))
        scope.output("out", out)
    found = []
    for given in (5, 7):
        scope.graph.update({"x": np.asarray([given, given], dtype=np.float32)}, stream)
        scope.graph.launch(stream)
        found.append(values(stream, scope.graph.output("out")))
    assert found == [[6, 7], [8, 9]]


def test_streams_are_ordered_as_on_a_gpu(runtime: host.Runtime, module: ModuleType) -> None:
    add, one, two = ReferenceKernel(module.add_kernel, runtime.driver), host.stream(), host.stream()
    w, x, out = array(one, 1, 2), array(one, 0, 0), array(one, 0, 0)
    host.enqueue(one, add, (1,), (w, x, out, 2, False))
    with pytest.raises(HostRefused, match="TC411"):
        host.enqueue(two, add, (1,), (w, out, x, 2, False))
    two.wait(one)
    host.enqueue(two, add, (1,), (w, out, x, 2, False))
    assert values(two, x) == [2, 4]


def test_a_dependent_launch_has_to_wait(runtime: host.Runtime, module: ModuleType) -> None:
    add, stream = ReferenceKernel(module.add_kernel, runtime.driver), host.stream()
    w, x, out = array(stream, 1, 2), array(stream, 0, 0), array(stream, 0, 0)
    host.enqueue(stream, add, (1,), (w, x, out, 2, True))
    host.enqueue(stream, add, (1,), (w, out, x, 2, True), dependent=True)
    with pytest.raises(ValueError, match="`WAITS` is true"):
        host.enqueue(stream, add, (1,), (w, x, out, 2, False), dependent=True)
    with pytest.raises(HostRefused, match="TC431"):  # `x` is still written, and loaded as a weight here
        host.enqueue(stream, add, (1,), (x, w, out, 2, True), dependent=True)
    assert values(stream, x) == [2, 4]


def test_elements_of_a_view_lie_where_the_array_lies(runtime: host.Runtime) -> None:
    stream = host.stream()
    whole = host.zeros((3, 4)).sync_on(stream)
    held = whole.array
    elements(held)[1, 2] = 5
    assert elements(held, is_flat=True).tolist() == [0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0]
    part = held[1:3, 2:4]
    assert elements(part).tolist() == [[5, 0], [0, 0]]
    assert elements(part, is_flat=True).tolist() == [5, 0, 0, 0, 0, 0]


def test_a_program_ends_with_work_that_nobody_waited_for(tmp_path: Path) -> None:
    """Handles that the interpreter drops at its end start no thread, which would never run."""
    program = tmp_path / "program.py"
    program.write_text(
        "from tilecheck import host\n"
        "from tilecheck.host.reference import ReferenceDriver\n"
        "with host.using(host.Runtime(ReferenceDriver())):\n"
        "    kept = host.zeros(8).submit(host.stream())\n"
    )
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, "")
