"""What only a real GPU can show: capture by the driver, dependent launches of Triton, PyTorch inside."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import host_kits
import pytest

from tilecheck import host
from tilecheck.host import HostRefused

pytestmark = pytest.mark.gpu

_CHAIN = """
import triton
import triton.language as tl


@triton.jit
def step(w_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.extra.cuda.gdc_launch_dependents()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + at, mask=at < n)
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + w, mask=at < n)
"""


@pytest.fixture
def cuda():
    reason = host_kits.missing()
    if reason is not None:
        pytest.skip(reason)
    kit = host_kits.CudaKit()
    with host.using(kit.runtime):
        yield kit
        kit.close()


@pytest.fixture
def step(cuda, tmp_path, monkeypatch):
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    if cuda.torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("dependent launches need a GPU of compute capability 9.0")
    path = Path(tmp_path / "chained.py")
    path.write_text(_CHAIN)
    spec = importlib.util.spec_from_file_location("chained", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "chained", module)
    spec.loader.exec_module(module)
    return module.step


def _run(step, stream, w, x, y, *, dependent):
    for number in range(20):
        a, b = (y, x) if number % 2 else (x, y)
        host.enqueue(stream, step, (16,), (w, a, b, 4096, 256), dependent=dependent)


@pytest.mark.parametrize("dependent", [False, True])
def test_a_chain_gives_what_its_launches_give_one_by_one(cuda, step, dependent):
    s = host.stream()
    w, x, y = host.full(4096, 1.0).submit(s), host.zeros(4096).submit(s), host.zeros(4096).submit(s)
    _run(step, s, w, x, y, dependent=dependent)
    assert set(cuda.values(x)) == {20.0}
    with host.capture() as scope:
        _run(step, scope.stream, w, x, y, dependent=dependent)
    for _ in range(5):
        scope.graph.launch(s)
    assert set(cuda.values(x)) == {120.0}


def test_code_of_pytorch_is_captured(cuda):
    x = host.full(16, 1.0).sync()
    cuda.torch.add(x.array, 1.0)  # loads the kernel
    cuda.torch.cuda.synchronize()
    with host.capture() as scope:
        host.call(lambda t: t.add_(1.0), writes=(x,)).map(lambda _: None).submit()
    for _ in range(3):
        scope.graph.launch()
    assert cuda.values(x) == [4.0] * 16


@pytest.mark.parametrize("inside", [lambda t: t.sum().item(), lambda t: t + 1, lambda t: t.cpu()])
def test_what_pytorch_may_not_do_in_a_capture_ends_it(cuda, inside):
    x = host.full(16, 1.0).sync()

    def captured():
        with host.capture():
            host.call(inside, reads=(x,)).submit()

    with pytest.raises((HostRefused, RuntimeError)):
        captured()
    host.fill(x, 2.0).sync()
    assert cuda.values(x) == [2.0] * 16


@pytest.mark.parametrize("change", [lambda t: t.resize_(4), lambda t: t.unsqueeze_(0), lambda t: t.set_()])
def test_kernels_get_the_array_that_was_handed_in(cuda, change):
    """A tensor that is given another shape or memory meanwhile is not the array that the guard has passed."""
    tensor = cuda.torch.ones(16, device="cuda")
    cuda.torch.cuda.synchronize()
    x, out = host.own(tensor), host.zeros(16).sync()
    for _ in range(3):
        host.launch(cuda.add_one, (2,), (x, out)).submit()
    change(tensor)
    host.launch(cuda.add_one, (2,), (x, out)).submit()
    host.enqueue(host.current(), cuda.add_one, (2,), (x, out))
    assert cuda.values(out) == [2.0] * 16


def test_streams_of_pytorch_are_streams(cuda):
    torch = cuda.torch
    outside = torch.cuda.Stream()
    x = host.zeros(16).sync()
    with torch.cuda.stream(outside):
        assert host.current() == host.stream_of(outside)
        x.tensor().fill_(3.0)
        host.launch(cuda.double, (2,), (x,)).submit()
    assert cuda.values(x) == [6.0] * 16


def test_memory_of_pytorch_is_not_reused_in_flight(cuda):
    torch = cuda.torch
    s = host.stream()
    for _ in range(10):
        tensor = torch.full((1 << 20,), 1.0, device="cuda")
        x = host.own(tensor)
        s.wait(host.current())
        cuda.slow(s)
        host.launch(cuda.double, (1 << 17,), (x,)).submit(s)
        kept = host.copy_to_host(x).submit(s)
        del tensor, x
        other = torch.full((1 << 20,), 9.0, device="cuda")  # would get the memory of `tensor`
        s.sync()
        assert set(kept.tolist()) == {2.0}
        del other
