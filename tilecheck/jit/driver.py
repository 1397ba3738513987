"""Calls of the CUDA driver, with its status codes as exceptions."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver


class DriverError(RuntimeError):
    """The CUDA driver refused a call."""


def call(name: str, *arguments: Any) -> tuple[Any, ...]:
    """Call a function of the driver; return its results without the status.

    Raises:
        DriverError: the status is not success.
    """
    status, *values = getattr(driver, name)(*arguments)
    if int(status) != 0:
        text = driver.cuGetErrorString(status)[1].decode()
        raise DriverError(f"{name}: {text}")
    return tuple(values)


def ensure_context() -> None:
    """Make the primary context of device 0 current where no context is."""
    call("cuInit", 0)
    (current,) = call("cuCtxGetCurrent")
    if not int(current):
        (device,) = call("cuDeviceGet", 0)
        (context,) = call("cuDevicePrimaryCtxRetain", device)
        call("cuCtxSetCurrent", context)


def allocation(address: int) -> tuple[int, int] | None:
    """Start and size, in bytes, of the allocation that holds an address; None where the device has none."""
    status, start, size = driver.cuMemGetAddressRange(driver.CUdeviceptr(address))
    return None if int(status) != 0 else (int(start), int(size))


def load_kernel(image: bytes, symbol: str) -> tuple[Any, Any]:
    """Load a cubin: its library, to be kept, and its entry, which can be launched in any context."""
    ensure_context()
    (library,) = call("cuLibraryLoadData", image, [], [], 0, [], [], 0)
    (kernel,) = call("cuLibraryGetKernel", library, symbol.encode())
    return library, driver.CUfunction(int(kernel))
