"""Arrays on the GPU for running examples, through cuda-python alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.jit.layouts import Layout


def missing_gpu() -> str | None:
    """Why no GPU can be used here, or None when one can."""
    try:
        from cuda.bindings import driver  # lazy: only where something runs
    except ImportError:
        return "cuda-python is not installed"
    try:
        status = driver.cuInit(0)[0]
    except RuntimeError:  # the driver's library cannot be loaded
        return "no NVIDIA driver was found"
    if int(status) != 0:
        return "the NVIDIA driver finds no GPU"
    from tilecheck.jit.driver import ensure_context  # lazy: as above

    ensure_context()
    return None


@dataclass(frozen=True, slots=True)
class _Storage:
    """The memory that an array was given, as PyTorch's storages describe theirs."""

    address: int
    size: int

    def data_ptr(self) -> int:
        return self.address

    def nbytes(self) -> int:
        return self.size


class DeviceArray:
    """A copy of a NumPy array in device memory, with the same strides (which must not be negative)."""

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        from tilecheck.jit.driver import call  # lazy: as above

        strides = tuple(step // value.itemsize for step in value.strides)
        span = Layout(value.shape, strides, value.itemsize).span
        self._host = np.zeros(max(1, span), dtype=np.uint8)
        self._view: np.ndarray[Any, Any] = np.ndarray(
            value.shape, value.dtype, buffer=self._host, strides=value.strides
        )
        self._view[...] = value
        (self._pointer,) = call("cuMemAlloc", self._host.nbytes)
        call("cuMemcpyHtoD", self._pointer, self._host.ctypes.data, self._host.nbytes)
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": value.shape,
            "strides": value.strides,
            "typestr": value.dtype.str,
            "data": (int(self._pointer), False),
        }

    def untyped_storage(self) -> _Storage:
        """Where the array lies: nothing else is in there."""
        return _Storage(int(self._pointer), self._host.nbytes)

    def download(self) -> np.ndarray[Any, Any]:
        """Wait for the device, and return the contents."""
        from tilecheck.jit.driver import call  # lazy: as above

        call("cuCtxSynchronize")
        call("cuMemcpyDtoH", self._host.ctypes.data, self._pointer, self._host.nbytes)
        return self._view

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            from tilecheck.jit.driver import call  # lazy: as above

            call("cuMemFree", self._pointer)
