"""What tests need of a GPU, the fake one or a real one: kernels, the user's own arrays and code."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
from host_fake_driver import FakeDriver, FakeKernel, elements

from tilecheck import host
from tilecheck.jit.records import Argument, Record


def record(name, names, *, waits=None, **fields):
    """A record: `out...` are written, other names in lower case read; those in upper case are numbers."""
    arguments = tuple(
        Argument(each, "constant")
        if each.isupper()
        else Argument(each, "mut" if each.startswith("out") else "shared", array=True)
        for each in names.split()
    )
    given = {
        "line": 1,
        "sources": {"k.py": "0" * 64},
        "verdict": "proved",
        "reason": None,
        "arguments": arguments,
    }
    return Record(name=name, file="k.py", waits=waits, **{**given, **fields})


class FakeKit:
    """The fake GPU. Kernels of the names in `kernels.py`, which has the real ones."""

    is_fake = True

    def __init__(self, seed=0, **options):
        self.driver = FakeDriver(seed)
        self.runtime = host.Runtime(self.driver, **{"background": False, **options})
        self.add_one = self.kernel("add_one", "x out", lambda x, out: np.copyto(out, x + 1))
        self.double = self.kernel("double", "out", lambda out: np.copyto(out, out * 2))
        self.add = self.kernel("add", "x y out", lambda x, y, out: np.copyto(out, x + y))

    def kernel(self, name, names, body=None, early=None, waits=None, **fields):
        return FakeKernel(self.driver, record(name, names, waits=waits, **fields), body, early)

    def array(self, values, dtype="float32"):
        """An array of the user's own."""
        return self.driver.tensor(values, dtype)

    def torch_fill(self, array, value):
        """Work of the user's own on the current stream."""
        self.driver.torch(lambda out: out.fill(value), array)

    def on(self, stream):
        """Make a stream the user's current one."""
        return self.driver.using(self.driver.stream_of(stream.handle))

    def slow(self, stream):
        """Work on a stream that takes long. The fake one does nothing until somebody waits."""

    def values(self, handle):
        """What is in an array when all has ended."""
        self.driver.run_all()
        return elements(handle.array).tolist()

    def close(self):
        self.driver.fault = None
        self.driver.run_all()


def missing():
    """Why the real GPU cannot be used here."""
    from tilecheck.jit.device import missing_gpu

    for name in ("torch", "cuda.tile", "cuda.core"):
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return f"{name} is not installed"
    return missing_gpu()


@functools.cache
def _kernels():
    spec = importlib.util.spec_from_file_location("host_kernels", Path(__file__).parent / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CudaKit:
    """The real GPU, with kernels of cuTile and tensors of PyTorch."""

    is_fake = False

    def __init__(self, **options):
        import torch

        from tilecheck.host.cuda import Cuda

        self.torch = torch
        self.driver = Cuda()
        self.runtime = host.Runtime(self.driver, **options)
        module = _kernels()
        self.add_one, self.double, self.add = module.add_one, module.double, module.add
        x, y, out = (self.torch.zeros(16, device="cuda") for _ in range(3))
        with host.using(self.runtime):  # verified and compiled before a test counts on what is in flight
            host.launch(self.add_one, (2,), (x, out)).sync()
            host.launch(self.double, (2,), (out,)).sync()
            host.launch(self.add, (2,), (x, y, out)).sync()

    def array(self, values, dtype="float32"):
        found = self.torch.tensor(np.asarray(values), dtype=getattr(self.torch, dtype), device="cuda")
        self.torch.cuda.synchronize()
        return found

    def torch_fill(self, array, value):
        array.fill_(value)

    def on(self, stream):
        return self.driver.using(self.driver.stream_of(stream.handle))

    def slow(self, stream):
        with self.on(stream):
            self.torch.cuda._sleep(50_000_000)  # noqa: SLF001 - PyTorch's own tests wait so

    def values(self, handle):
        self.torch.cuda.synchronize()
        return self.torch.as_tensor(handle.array, device="cuda").tolist()

    def close(self):
        self.torch.cuda.synchronize()
