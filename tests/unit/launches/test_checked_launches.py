"""Launches through `tilecheck.host`: guarded, and decided by the check that each has when it happens."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import kernels, verify_paths
from tilecheck.cli import main
from tilecheck.demand import has_decided_launches, shortfall
from tilecheck.model import KernelReport, LaunchReport, Report

Launches = Callable[..., tuple[KernelReport, list[str]]]
KERNELS = """
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

# tilecheck: requires n <= 4096 -- a table of 4096
# tilecheck: requires within(at_ptr, 0, n - 1) -- the scheduler says so
@triton.jit
def pick(x_ptr, at_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(at_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=i < n), mask=i < n)
"""
HOSTS = """
from collections.abc import Sequence
from typing import Any
from tilecheck import host
from kernels import scale, pick

class Gpu:
    def __init__(self) -> None:
        self.stream = host.stream()

    def launch(self, kernel: Any, args: Sequence[host.View | int]) -> None:
        host.enqueue(self.stream, kernel, (1,), tuple(args), BLOCK=256)
"""


@pytest.fixture
def launches(tmp_path: Path) -> Launches:
    """The report of a kernel, and where it is launched with which status."""

    def run(body: str, kernel: str = "scale") -> tuple[KernelReport, list[str]]:
        report = verified(tmp_path, body)
        found = next(k for k in report.kernels if k.name == kernel)
        return found, [f"{launched(la, report)}: {la.status}" for la in found.launches]

    return run


def verified(folder: Path, body: str) -> Report:
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "hosts.py").write_text(HOSTS + body)
    return verify_paths([folder.as_posix()])


def launched(launch: LaunchReport, report: Report) -> str:
    data = report.sources.get(launch.site.file, b"")
    data = data or Path(launch.site.file).read_bytes()
    return data[launch.site.span.start : launch.site.span.end].decode()


DIRECT = """
def run(x: host.Array, out: host.Array, n: int):
    host.launch(scale, (4,), (x, out, n), BLOCK=256).submit(host.stream())
    host.enqueue(host.stream(), scale, grid=(4,), args=(x, out, n), BLOCK=256)
    host.launch(grid=(1,), kernel=scale, args=(x, out, n), BLOCK=256).sync()
"""


def test_a_launch_of_the_library_is_guarded(launches: Launches) -> None:
    kernel, found = launches(DIRECT)
    assert found == [
        "host.launch(scale, (4,), (x, out, n), BLOCK=256): guarded",
        "host.enqueue(host.stream(), scale, grid=(4,), args=(x, out, n), BLOCK=256): guarded",
        "host.launch(grid=(1,), kernel=scale, args=(x, out, n), BLOCK=256): guarded",
    ]
    assert has_decided_launches(kernel)
    assert shortfall(kernel, "launches") == ""


def test_a_launch_in_a_function_that_is_not_guarded_is_checked_all_the_same(launches: Launches) -> None:
    _, found = launches(
        """
def run(x: host.Array, out: host.Array, n: int, f):
    f()
    host.launch(scale, (4,), (x, out, n), BLOCK=256).sync()
"""
    )
    assert found == ["host.launch(scale, (4,), (x, out, n), BLOCK=256): guarded"]


def test_an_object_that_launches_through_the_library_is_one(launches: Launches) -> None:
    _, found = launches(
        """
def run(gpu: Gpu, x: host.Array, out: host.Array, n: int):
    launch = gpu.launch
    launch(scale, (x, out, n))
    for kernel in (scale, pick):
        gpu.launch(kernel, (x, out, n))
    host.synchronize()
"""
    )
    assert found == ["launch(scale, (x, out, n)): guarded", "gpu.launch(kernel, (x, out, n)): guarded"]


@pytest.mark.parametrize(
    "body",
    [
        # It may launch in other ways, or not at all.
        "def run(gpu, x: host.Array):\n    gpu.launch(scale, (x, x, 8))\n    host.reap()\n",
        "def run(gpu: Gpu, f, x: host.Array):\n    f()\n    gpu.launch(scale, (x, x, 8))\n    host.reap()\n",
        "def run(gpu: Gpu):\n    known = [scale]\n    known.append(scale)\n    host.reap()\n",
    ],
)
def test_a_kernel_that_is_handed_elsewhere_is_not_launched(launches: Launches, body: str) -> None:
    kernel, found = launches(body)
    assert found == []
    assert shortfall(kernel, "launches") == "no launch of it is in view"


def test_another_launch_is_judged_as_ever(launches: Launches) -> None:
    """`out` is too short there: the launch that goes through the library takes nothing of that away."""
    kernel, _ = launches(
        DIRECT + "\n\nimport torch\n\ndef raw(n: int):\n    x = torch.zeros(n)\n"
        "    scale[(triton.cdiv(n, 256),)](x, torch.zeros(n // 2), n, BLOCK=256)\n\nimport triton\n"
    )
    assert {c.status for la in kernel.launches for c in la.conditions} & {"broken", "unmet"}
    assert not has_decided_launches(kernel)


def test_the_library_checks_numbers_and_not_memory(launches: Launches) -> None:
    kernel, _ = launches(
        """
def run(x: host.Array, at: host.Array, out: host.Array, n: int):
    host.launch(pick, (4,), (x, at, out, n), BLOCK=256).sync()
""",
        "pick",
    )
    assert {p.text: p.status for p in kernel.premises} == {
        "n <= 4096": "guarded",
        "within(at_ptr, 0, n - 1)": "promised",
    }
    assert "promise" in shortfall(kernel, "launches")


def test_reports_say_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verified(tmp_path, DIRECT)
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    arguments = ["verify", "kernels.py::scale", "hosts.py", "-j1", "--no-cache", "--require", "launches"]
    assert main(arguments, stdout=out, stderr=io.StringIO()) == 0
    assert "launch at hosts.py:15: guarded: tilecheck.host checks it when it happens" in out.getvalue()
    out = io.StringIO()
    assert main([*arguments, "--format", "json"], stdout=out, stderr=io.StringIO()) == 0
    (kernel,) = json.loads(out.getvalue())["kernels"]
    assert [(la["line"], la["status"]) for la in kernel["launches"]] == [
        (15, "guarded"),
        (16, "guarded"),
        (17, "guarded"),
    ]


def test_a_kernel_that_comes_with_tilecheck_is_found_where_it_is_installed(tmp_path: Path) -> None:
    installed = Path(kernels.__file__).parent / "triton/vector_add.py"
    (tmp_path / "hosts.py").write_text(
        "from tilecheck import host\n"
        "from tilecheck.kernels.triton.vector_add import BLOCK, vector_add_kernel\n\n"
        "def run(x: host.Array, out: host.Array, n: int):\n"
        "    host.launch(vector_add_kernel, (1,), (x, x, out, n), BLOCK=BLOCK).sync()\n"
    )
    report = verify_paths([(tmp_path / "hosts.py").as_posix(), installed.as_posix()])
    (kernel,) = report.kernels
    assert (tmp_path / "hosts.py").as_posix() in {
        la.site.file for la in kernel.launches if la.status == "guarded"
    }
