"""`tilecheck.launch` forwards to cuTile what the verdict covers."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tilecheck.errors import LaunchRefused
from tilecheck.jit import launch as launching

KERNEL = """
import cuda.tile as ct


@ct.kernel
def double(out):
    ct.store(out, (ct.bid(0),), ct.load(out, (ct.bid(0),), shape=(8,)) * 2)


@ct.kernel
def waiting(out):
    ct.grid_dependency_control_wait()
    ct.store(out, (ct.bid(0),), ct.load(out, (ct.bid(0),), shape=(8,)) * 2)
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    tile = pytest.importorskip("cuda.tile")
    path = tmp_path / "launched_kernel.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("launched_kernel", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "launched_kernel", module)
    spec.loader.exec_module(module)
    seen = []
    monkeypatch.setattr(tile, "launch", lambda *args, **options: seen.append((*args, options)))
    return module, seen


def test_a_launch_that_the_verdict_covers_is_forwarded(kernel, tensor):
    module, seen = kernel
    double, x = module.double, tensor(16)
    launching.launch(7, (2,), double, (x,))
    assert seen == [(7, (2,), double, (x,), {})]
    with pytest.raises(LaunchRefused, match="condition"):
        launching.launch(7, (3,), double, (x,))
    assert len(seen) == 1


def test_only_a_kernel_that_first_waits_may_depend_on_the_launch_before(kernel, tensor):
    module, seen = kernel
    x = tensor(16)
    with pytest.raises(LaunchRefused, match="it does not wait for the launch before it"):
        launching.launch(7, (2,), module.double, (x,), programmatic_dependent_launch=True)
    with pytest.raises(LaunchRefused, match="condition"):
        launching.launch(7, (3,), module.waiting, (x,), programmatic_dependent_launch=True)
    assert seen == []
    launching.launch(7, (2,), module.waiting, (x,), programmatic_dependent_launch=True)
    assert seen == [(7, (2,), module.waiting, (x,), {"programmatic_dependent_launch": True})]


def test_the_guard_of_a_kernel(kernel, tensor):
    guard = launching.guard_of(kernel[0].double)
    assert guard.record.name == "double"
    x = tensor(16)
    assert not guard.remembers((2,), (x,))
    guard((2,), (x,))
    assert guard.remembers((2,), (x,))
    assert not guard.remembers((2,), (tensor(24),))
    with pytest.raises(LaunchRefused, match="is no kernel"):
        launching.guard_of(object())
