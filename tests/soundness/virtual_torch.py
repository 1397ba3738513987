"""The functions of the small `torch`, and the module itself for one machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from soundness_virtual_machine import Machine, Storage
from soundness_virtual_tensors import DTYPES, Dtype, Size, Tensor, empty, row_major, sizes_of


def _filled(value: int, sizes: tuple[Any, ...], dtype: Dtype | None, **options: Any) -> Tensor:
    made = empty(*sizes, dtype=dtype)
    if made.dtype.integer:
        made.storage.values = np.full(made.storage.size, value, np.int64)
    return made


def zeros(*sizes: Any, dtype: Dtype | None = None, **options: Any) -> Tensor:
    return _filled(0, sizes, dtype)


def ones(*sizes: Any, dtype: Dtype | None = None, **options: Any) -> Tensor:
    return _filled(1, sizes, dtype)


def full(sizes: Any, value: Any, dtype: Dtype | None = None, **options: Any) -> Tensor:
    return _filled(int(value) if dtype is not None and dtype.integer else 0, (sizes,), dtype)


def empty_like(like: Tensor, dtype: Dtype | None = None, **options: Any) -> Tensor:
    made = like.dense()
    made.dtype = dtype or like.dtype
    if options.get("memory_format") == "contiguous_format":
        made.strides = row_major(made.shape)
    return made


def empty_strided(
    size: Sequence[int], stride: Sequence[int], dtype: Dtype | None = None, **options: Any
) -> Tensor:
    size = sizes_of((tuple(size),))
    reach = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if math.prod(size) else 0
    return Tensor(Storage(reach), size, stride, 0, dtype)


def _with(values: np.ndarray, dtype: Dtype) -> Tensor:
    made = empty(*values.shape, dtype=dtype)
    made.storage.values = values.reshape(-1).astype(np.int64)
    return made


def arange(*given: int, dtype: Dtype | None = None, **options: Any) -> Tensor:
    return _with(np.arange(*given), dtype or DTYPES["int64"])


def tensor(values: Any, dtype: Dtype | None = None, **options: Any) -> Tensor:
    made = np.array(values)
    if made.dtype.kind == "f":
        return empty(*made.shape, dtype=dtype)
    return _with(made, dtype or DTYPES["int64"])


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def cat(parts: Iterable[Tensor], dim: int = 0) -> Tensor:
    listed = list(parts)
    shape = list(listed[0].shape)
    shape[dim] = sum(p.shape[dim] for p in listed)
    return empty(*shape, dtype=listed[0].dtype)


def stack(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    shape = list(parts[0].shape)
    shape.insert(dim, len(parts))
    return empty(*shape, dtype=parts[0].dtype)


class Context:
    """What `torch.autograd.Function` hands to its two methods."""

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad = (True,) * 8

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: Any) -> None: ...

    def mark_non_differentiable(self, *tensors: Any) -> None: ...


class Function:
    """`apply` runs `forward`, and `backward` with contiguous gradients right after it."""

    @classmethod
    def apply(cls, *given: Any) -> Any:
        context = Context()
        made = cls.forward(context, *given)  # type: ignore[attr-defined]
        if hasattr(cls, "backward"):
            outputs = made if isinstance(made, tuple) else (made,)
            cls.backward(context, *(empty(*o.shape, dtype=o.dtype) for o in outputs if isinstance(o, Tensor)))
        return made


class Module:
    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.forward(*given, **named)  # type: ignore[attr-defined]


def _unary(x: Tensor, *others: Any, **options: Any) -> Tensor:
    return x.elementwise()


def torch_module(machine: Machine) -> SimpleNamespace:
    """The module `torch` for one machine."""
    properties = SimpleNamespace(multi_processor_count=machine.processors, major=9, minor=0)
    cuda = SimpleNamespace(
        get_device_properties=lambda device=None: properties,
        current_device=lambda: 0,
        current_stream=lambda device=None: "stream",
        is_available=lambda: True,
    )
    functions = (empty, zeros, ones, full, empty_like, empty_strided, arange, tensor, matmul, cat, stack)
    functional = SimpleNamespace(relu=_unary, gelu=_unary, silu=_unary)
    named = {"nn": SimpleNamespace(functional=functional, Module=Module, Parameter=lambda t: t)}
    return SimpleNamespace(
        Tensor=Tensor,
        Size=Size,
        cuda=cuda,
        device=lambda *given: SimpleNamespace(type="cuda"),
        autograd=SimpleNamespace(Function=Function),
        contiguous_format="contiguous_format",
        zeros_like=empty_like,
        ones_like=empty_like,
        randn=empty,
        rand=empty,
        relu=_unary,
        sigmoid=_unary,
        no_grad=lambda: lambda f: f,
        long=DTYPES["int64"],
        int=DTYPES["int32"],
        half=DTYPES["float16"],
        float=DTYPES["float32"],
        **{f.__name__: f for f in functions},
        **named,
        **DTYPES,
    )
