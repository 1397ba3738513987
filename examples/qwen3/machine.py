"""Where a model runs: a GPU, or this process where there is none. Both through `tilecheck.host`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import cuda.tile as ct
import numpy as np

import tilecheck
from qwen3.checkpoint import Tensor
from qwen3.errors import UserError
from tilecheck import host
from tilecheck.host.reference import ReferenceDriver, ReferenceKernel
from tilecheck.jit.launch import guard_of
from tilecheck.jit.records import Record

# Of a launch. Nothing but handles and numbers: an array of somebody else's would not be owned.
Argument = host.View | int | float


class Machine(Protocol):
    """Memory and launches. Arrays are handles of `tilecheck.host`, which owns and orders them."""

    runtime: host.Runtime
    stream: host.Stream
    name: str
    may_depend: bool  # whether launches may start while the one before still runs
    blocks: int  # that run at once

    def weight(self, parts: Sequence[Tensor]) -> host.Shared:
        """Tensors one below the other, for readers only."""

    def constant(self, values: np.ndarray[Any, Any]) -> host.Shared:
        """Numbers for readers only."""

    def zeros(self, shape: tuple[int, ...], dtype: str) -> host.Array:
        """Memory for a program's own values: of type "int32", "float32", or "weight", as weights have."""

    def launch(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        args: Iterable[Argument],
        *,
        dependent: bool = False,
        warps: int = 4,
    ) -> None:
        """Launch a verified kernel, checked against its proof and against what is in flight."""

    def read(self, array: host.Borrowed) -> np.ndarray[Any, Any]:
        """The values of an array when all that writes it has ended."""

    def launched(self) -> list[tuple[Record, int]]:
        """The records of the kernels, with how often each was launched or captured."""


class Cuda:
    """The current GPU, by PyTorch, Triton and CUDA."""

    def __init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise UserError("PyTorch is not installed: pip install torch triton") from None
        if not torch.cuda.is_available():
            raise UserError("PyTorch finds no GPU; --device reference runs a small model without one")
        self._torch = torch
        self._launches: Counter[Any] = Counter()
        self.runtime = host.default()
        self.stream = host.stream()
        self.name = torch.cuda.get_device_name()
        self.may_depend = torch.cuda.get_device_capability() >= (9, 0)
        self.blocks = torch.cuda.get_device_properties("cuda").multi_processor_count

    def weight(self, parts: Sequence[Tensor]) -> host.Shared:
        torch = self._torch
        rows = sum(part.data.shape[0] for part in parts)
        made = torch.empty((rows, *parts[0].data.shape[1:]), dtype=torch.bfloat16, device="cuda")
        start = 0
        for part in parts:
            end = start + part.data.shape[0]
            # The mapped file is read by the copy and never written: PyTorch has no name for such memory.
            data = torch.from_numpy(np.asarray(part.data.view(np.int16) if part.type == "BF16" else part.data))
            made[start:end].copy_(data.view(torch.bfloat16) if part.type == "BF16" else data)
            start = end
        torch.cuda.synchronize()
        return host.share(made)

    def constant(self, values: np.ndarray[Any, Any]) -> host.Shared:
        return host.share(host.copy_to_device(values).sync_on(self.stream))

    def zeros(self, shape: tuple[int, ...], dtype: str) -> host.Array:
        torch = self._torch
        made = torch.zeros(
            shape, dtype=torch.bfloat16 if dtype == "weight" else getattr(torch, dtype), device="cuda"
        )
        torch.cuda.synchronize()
        return host.own(made)

    def launch(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        args: Iterable[Argument],
        *,
        dependent: bool = False,
        warps: int = 4,
    ) -> None:
        self._launches[kernel] += 1
        options = {} if isinstance(kernel, ct.kernel) else {"num_warps": warps}
        host.enqueue(self.stream, kernel, grid, tuple(args), dependent=dependent, **options)

    def read(self, array: host.Borrowed) -> np.ndarray[Any, Any]:
        return np.asarray(host.copy_to_host(array).sync_on(self.stream).tolist())

    def launched(self) -> list[tuple[Record, int]]:
        return [
            (guard_of(k).record if isinstance(k, ct.kernel) else tilecheck.verified(k).record, n)
            for k, n in self._launches.items()
        ]


class Reference:
    """This process: the reference backend runs the same kernels, in float32, for small models."""

    may_depend = True
    blocks = 4

    def __init__(self) -> None:
        self._driver = ReferenceDriver()
        self.runtime = host.Runtime(self._driver)
        self._kernels: dict[Any, ReferenceKernel] = {}
        self._launches: Counter[Any] = Counter()
        with host.using(self.runtime):
            self.stream = host.stream()
        self.name = "the reference backend"

    def weight(self, parts: Sequence[Tensor]) -> host.Shared:
        data = np.concatenate([part.as_float32() for part in parts])
        with host.using(self.runtime):
            return host.share(host.copy_to_device(data).sync_on(self.stream))

    def constant(self, values: np.ndarray[Any, Any]) -> host.Shared:
        with host.using(self.runtime):
            return host.share(host.copy_to_device(values).sync_on(self.stream))

    def zeros(self, shape: tuple[int, ...], dtype: str) -> host.Array:
        with host.using(self.runtime):
            return host.zeros(shape, dtype="float32" if dtype == "weight" else dtype).sync_on(self.stream)

    def launch(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        args: Iterable[Argument],
        *,
        dependent: bool = False,
        warps: int = 4,
    ) -> None:
        self._launches[kernel] += 1
        if kernel not in self._kernels:
            self._kernels[kernel] = ReferenceKernel(kernel, self._driver)
        host.enqueue(self.stream, self._kernels[kernel], grid, tuple(args), dependent=dependent)

    def read(self, array: host.Borrowed) -> np.ndarray[Any, Any]:
        with host.using(self.runtime):
            return np.asarray(host.copy_to_host(array).sync_on(self.stream).tolist())

    def launched(self) -> list[tuple[Record, int]]:
        return [(self._kernels[kernel].record, n) for kernel, n in self._launches.items()]


def machine(name: str) -> Machine:
    """The machine of a name: "cuda", "reference", or "auto" for a GPU if there is one.

    Raises:
        UserError: it cannot be had.
    """
    if name == "reference":
        return Reference()
    try:
        return Cuda()
    except UserError:
        if name == "cuda":
            raise
    return Reference()
