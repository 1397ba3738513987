"""One GPU for each test: the fake one, and the real one where there is one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tilecheck import host

_HERE = Path(__file__).parent


def _module(name):
    """A helper module beside the tests, which pytest's importlib mode does not find by itself."""
    full = f"host_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, _HERE / f"{name}.py")
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


_module("fake_driver")
_kits = _module("kits")


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.gpu)])
def kit(request):
    """A GPU with a few kernels: the fake one, and the real one."""
    if request.param == "cuda":
        reason = _kits.missing()
        if reason is not None:
            pytest.skip(reason)
        made = _kits.CudaKit()
    else:
        made = _kits.FakeKit()
    with host.using(made.runtime):
        yield made
        made.close()


@pytest.fixture
def fake():
    """The fake GPU, whose order and faults a test controls."""
    made = _kits.FakeKit()
    with host.using(made.runtime):
        yield made
        made.close()
