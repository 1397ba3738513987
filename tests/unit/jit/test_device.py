"""Arrays on the device, with the host's memory standing in for it: there is no GPU where this runs."""

from __future__ import annotations

import ctypes
import sys
import types

import numpy as np
import pytest

from tilecheck.jit.layouts import layout_of


@pytest.fixture
def freed(monkeypatch):
    """A driver whose device memory is the host's; the addresses that were freed."""
    held, freed = {}, []

    def allocate(size):
        buffer = ctypes.create_string_buffer(size)
        held[ctypes.addressof(buffer)] = buffer
        return 0, ctypes.addressof(buffer)

    def copy(target, source, size):
        ctypes.memmove(target, source, size)
        return (0,)

    driver = types.ModuleType("cuda.bindings.driver")
    driver.cuMemAlloc = allocate
    driver.cuMemcpyHtoD = copy
    driver.cuMemcpyDtoH = copy
    driver.cuMemFree = lambda address: (0, freed.append(address))
    driver.cuCtxSynchronize = lambda: (0,)
    bindings = types.ModuleType("cuda.bindings")
    bindings.driver = driver
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    monkeypatch.delitem(sys.modules, "tilecheck.jit.driver", raising=False)
    yield freed
    sys.modules.pop("tilecheck.jit.driver", None)


GRID = np.arange(60, dtype=np.float32).reshape(5, 12)


@pytest.mark.parametrize(
    "value",
    [GRID, GRID[:, 3:7], GRID.T, GRID[::2, ::3], GRID[:0], np.float16([1, 2, 3]), np.array(7, dtype=np.int64)],
    ids=["whole", "columns", "transposed", "steps", "empty", "half", "scalar"],
)
def test_a_copy_keeps_contents_and_strides(freed, value):
    from tilecheck.jit.device import DeviceArray

    array = DeviceArray(value)
    address, layout = layout_of(array)
    assert layout.shape == value.shape
    if value.size:
        assert [s * layout.itemsize for s in layout.strides] == list(value.strides)
    assert array.untyped_storage().data_ptr() == address
    assert array.untyped_storage().nbytes() == max(1, layout.span)
    np.testing.assert_array_equal(array.download(), value)
    assert array.download().dtype == value.dtype
    del array
    assert freed == [address]


def test_what_is_written_there_comes_back(freed):
    from tilecheck.jit.device import DeviceArray

    array = DeviceArray(GRID[:, 3:7])
    address, _ = layout_of(array)
    ctypes.memmove(address, np.float32([99]).ctypes.data, 4)
    assert array.download()[0, 0] == 99
    assert GRID[0, 3] == 3  # the copy is a copy


def test_a_call_that_the_driver_refuses_is_an_error(freed, monkeypatch):
    from tilecheck.jit.driver import DriverError, call, driver

    monkeypatch.setattr(driver, "cuMemAlloc", lambda size: (2, 0))
    monkeypatch.setattr(driver, "cuGetErrorString", lambda status: (0, b"out of memory"), raising=False)
    with pytest.raises(DriverError, match="cuMemAlloc: out of memory"):
        call("cuMemAlloc", 8)
