"""A small `torch` without contents: shapes, strides and storages as PyTorch has them, and integers where a host
makes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from soundness_virtual_machine import Storage


class Dtype:
    def __init__(self, name: str, itemsize: int, *, integer: bool = False) -> None:
        self.name, self.itemsize, self.integer = name, itemsize, integer
        self.is_floating_point = not integer

    def __repr__(self) -> str:
        return f"torch.{self.name}"


_FLOATS = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}
_INTEGERS = {"int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1}
DTYPES = {
    **{n: Dtype(n, s) for n, s in _FLOATS.items()},
    **{n: Dtype(n, s, integer=True) for n, s in _INTEGERS.items()},
}


class Size(tuple):
    __slots__ = ()

    def numel(self) -> int:
        return math.prod(self)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides, reach = [], 1
    for extent in reversed(shape):
        strides.append(reach)
        reach *= max(extent, 1)
    return tuple(reversed(strides))


def sizes_of(given: tuple[Any, ...]) -> tuple[int, ...]:
    listed = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    sizes = tuple(int(s) for s in listed)
    if any(s < 0 for s in sizes):
        raise RuntimeError(f"a negative size in {sizes}")
    return sizes


class Tensor:
    """A view of a storage."""

    requires_grad = False
    is_cuda = True
    grad = None

    def __init__(
        self,
        storage: Storage,
        shape: Sequence[int],
        strides: Sequence[int],
        offset: int = 0,
        dtype: Dtype | None = None,
    ) -> None:
        self.storage, self.offset = storage, offset
        self.shape, self.strides = Size(int(s) for s in shape), tuple(int(s) for s in strides)
        self.dtype = dtype or DTYPES["float32"]
        self.device = SimpleNamespace(type="cuda", index=0)

    # ---- what it is ------------------------------------------------------------------------------------------

    ndim = property(lambda self: len(self.shape))
    T = property(lambda self: self.t())
    mT = property(lambda self: self.transpose(-1, -2))
    data = property(lambda self: self)

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis: int | None = None) -> Any:
        return self.strides if axis is None else self.strides[axis]

    def numel(self) -> int:
        return math.prod(self.shape)

    nelement = numel

    def dim(self) -> int:
        return len(self.shape)

    def storage_offset(self) -> int:
        return self.offset

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return (id(self.storage) % (1 << 40)) * 256 + self.offset * self.dtype.itemsize

    def is_contiguous(self) -> bool:
        want = row_major(self.shape)
        return self.numel() == 0 or all(
            n == 1 or s == w for n, s, w in zip(self.shape, self.strides, want, strict=True)
        )

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last address."""
        if self.numel() == 0:
            return self.offset, self.offset - 1
        return self.offset, self.offset + sum(
            (n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)
        )

    def addresses(self) -> np.ndarray:
        at = np.full((), self.offset, np.int64)
        for n, s in zip(self.shape, self.strides, strict=True):
            at = at[..., None] + np.arange(n, dtype=np.int64) * s
        return at

    def is_plain(self) -> bool:
        """Whether no two indices share an element."""
        axes = sorted((s, n) for n, s in zip(self.shape, self.strides, strict=True) if n > 1)
        reach = 0
        for s, n in axes:
            if s <= reach:
                return False
            reach += (n - 1) * s
        return True

    # ---- views -----------------------------------------------------------------------------------------------

    def like(self, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Tensor:
        return Tensor(self.storage, shape, strides, self.offset if offset is None else offset, self.dtype)

    def permute(self, *axes: Any) -> Tensor:
        order = axes[0] if isinstance(axes[0], (tuple, list)) else axes
        return self.like([self.shape[a] for a in order], [self.strides[a] for a in order])

    def transpose(self, a: int, b: int) -> Tensor:
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    swapaxes = transpose

    def t(self) -> Tensor:
        return self.transpose(0, 1) if self.ndim == 2 else self

    def view(self, *given: Any) -> Tensor:
        if len(given) == 1 and isinstance(given[0], Dtype):
            raise RuntimeError("a view as another type")
        sizes = self._filled(given)
        strides = self._view_strides(sizes)
        if strides is None:
            raise RuntimeError(f"no view of {self.shape}, strides {self.strides}, as {sizes}")
        return self.like(sizes, strides)

    def reshape(self, *given: Any) -> Tensor:
        sizes = self._filled(given)
        strides = self._view_strides(sizes)
        return self.like(sizes, strides) if strides is not None else self._copy().view(sizes)

    def _filled(self, given: tuple[Any, ...]) -> tuple[int, ...]:
        listed = [
            int(s) for s in (given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given)
        ]
        if -1 in listed:
            rest = math.prod(s for s in listed if s != -1)
            if rest == 0 or self.numel() % rest:
                raise RuntimeError(f"{self.shape} as {listed}")
            listed[listed.index(-1)] = self.numel() // rest
        if math.prod(listed) != self.numel():
            raise RuntimeError(f"{self.shape} as {listed}")
        return tuple(listed)

    def _view_strides(self, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
        if self.numel() == 0 or self.is_contiguous():
            return row_major(sizes)
        old = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        chunks: list[list[int]] = []  # [size, stride of the last axis]
        for n, s in old:
            if chunks and chunks[-1][1] == n * s:
                chunks[-1] = [chunks[-1][0] * n, s]
            else:
                chunks.append([n, s])
        strides = [0] * len(sizes)
        left, reach = (chunks[-1][0], chunks[-1][1]) if chunks else (1, 1)
        at = len(chunks) - 1
        for axis in range(len(sizes) - 1, -1, -1):
            n = sizes[axis]
            if n == 1:
                strides[axis] = reach
                continue
            if left == 1:
                at -= 1
                left, reach = chunks[at]
            if left % n:
                return None
            strides[axis] = reach
            left, reach = left // n, reach * n
        return tuple(strides)

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        end %= self.ndim
        return self.reshape(*self.shape[:start], math.prod(self.shape[start : end + 1]), *self.shape[end + 1 :])

    def unsqueeze(self, axis: int) -> Tensor:
        axis = axis if axis >= 0 else axis + self.ndim + 1
        reach = self.shape[axis] * self.strides[axis] if axis < self.ndim else 1
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(axis, 1)
        strides.insert(axis, reach)
        return self.like(shape, strides)

    def squeeze(self, axis: int | None = None) -> Tensor:
        kept = [k for k, n in enumerate(self.shape) if n != 1 or (axis is not None and k != axis % self.ndim)]
        return self.like([self.shape[k] for k in kept], [self.strides[k] for k in kept])

    def expand(self, *given: Any) -> Tensor:
        sizes = [int(s) for s in (given[0] if isinstance(given[0], (tuple, list)) else given)]
        lead = len(sizes) - self.ndim
        shape, strides = [], []
        for k, size in enumerate(sizes):
            have, step = (self.shape[k - lead], self.strides[k - lead]) if k >= lead else (1, 0)
            want = have if size == -1 else size
            if have not in (1, want):
                raise RuntimeError(f"{self.shape} expanded to {sizes}")
            shape.append(want)
            strides.append(step if have == want and k >= lead else 0)
        return self.like(shape, strides)

    def expand_as(self, other: Tensor) -> Tensor:
        return self.expand(*other.shape)

    def broadcast_to(self, *sizes: Any) -> Tensor:
        return self.expand(*sizes)

    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Tensor:
        made = self.like(size, stride, storage_offset)
        if made.numel() and (made.span[0] < 0 or made.span[1] >= self.storage.size):
            raise RuntimeError("as_strided outside its storage")
        return made

    def narrow(self, axis: int, start: int, length: int) -> Tensor:
        if not (start >= 0 and length >= 0 and start + length <= self.shape[axis]):
            raise RuntimeError("narrow outside its tensor")
        shape = list(self.shape)
        shape[axis] = length
        return self.like(shape, self.strides, self.offset + start * self.strides[axis])

    def select(self, axis: int, index: int) -> Tensor:
        axis %= self.ndim
        index += self.shape[axis] if index < 0 else 0
        if not 0 <= index < self.shape[axis]:
            raise IndexError(index)
        offset = self.offset + index * self.strides[axis]
        keep = [k for k in range(self.ndim) if k != axis]
        return self.like([self.shape[k] for k in keep], [self.strides[k] for k in keep], offset)

    def unfold(self, axis: int, size: int, step: int) -> Tensor:
        count = (self.shape[axis] - size) // step + 1
        if count < 1:
            raise RuntimeError("unfold beyond its tensor")
        shape, strides = list(self.shape), list(self.strides)
        shape[axis], strides[axis] = count, self.strides[axis] * step
        return self.like([*shape, size], [*strides, self.strides[axis]])

    def chunk(self, parts: int, dim: int = 0) -> tuple[Tensor, ...]:
        return self.split(-(-self.shape[dim] // parts), dim)

    def split(self, sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
        total, start, found = self.shape[dim], 0, []
        listed = (
            sizes
            if isinstance(sizes, (tuple, list))
            else [min(sizes, total - s) for s in range(0, total, sizes)]
        )
        for size in listed:
            found.append(self.narrow(dim, start, size))
            start += size
        return tuple(found)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        return tuple(self.select(dim, k) for k in range(self.shape[dim]))

    __iter__ = unbind

    def __getitem__(self, index: Any) -> Tensor:
        items = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in items:
            at = items.index(Ellipsis)
            rest = sum(1 for i in items if i is not None and i is not Ellipsis)
            items[at : at + 1] = [slice(None)] * (self.ndim - rest)
        found, axis = self, 0
        for item in items:
            if item is None:
                found, axis = found.unsqueeze(axis), axis + 1
            elif isinstance(item, slice):
                start, stop, step = item.indices(found.shape[axis])
                if step < 1:
                    raise ValueError("a step below 1")
                shape, strides = list(found.shape), list(found.strides)
                shape[axis] = max(0, -(-(stop - start) // step))
                offset = found.offset + start * found.strides[axis]
                strides[axis] *= step
                found, axis = found.like(shape, strides, offset), axis + 1
            else:
                found = found.select(axis, int(item))
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        del index, value

    # ---- copies ----------------------------------------------------------------------------------------------

    def _copy(self) -> Tensor:
        made = empty(*self.shape, dtype=self.dtype)
        if self.storage.values is not None:
            made.storage.values = self.storage.values[self.addresses()].reshape(-1).copy()
        return made

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else self._copy()

    def dense(self) -> Tensor:
        """A fresh tensor without gaps, its axes in the order of this one's strides: what `empty_like` gives."""
        strides, reach = [0] * self.ndim, 1
        for k in self._inner_first():
            strides[k] = reach
            reach *= self.shape[k]
        return Tensor(Storage(self.numel()), self.shape, strides, 0, self.dtype)

    def _inner_first(self) -> list[int]:
        """The axes from the smallest stride to the largest; one of stride 0 stays where it is."""
        order = list(reversed(range(self.ndim)))
        for start in range(1, self.ndim):
            at = start
            for before in range(start - 1, -1, -1):
                a, b = order[before], order[at]
                if 0 in (self.strides[a], self.strides[b]):
                    continue
                if self.strides[a] < self.strides[b]:
                    break
                if self.strides[a] > self.strides[b] or self.shape[a] > self.shape[b]:
                    order[before], order[at] = b, a
                    at = before
        return order

    def clone(self) -> Tensor:
        return self.dense()

    def detach(self) -> Tensor:
        return self

    def to(self, *given: Any, **options: Any) -> Tensor:
        wanted = options.get("dtype", next((g for g in given if isinstance(g, Dtype)), self.dtype))
        if wanted is self.dtype:
            return self
        made = self.dense()
        made.dtype = wanted
        return made

    def float(self) -> Tensor:
        return self.to(DTYPES["float32"])

    def cuda(self) -> Tensor:
        return self

    def new_empty(self, *sizes: Any, dtype: Dtype | None = None, device: object = None) -> Tensor:
        return empty(*sizes, dtype=dtype or self.dtype)

    new_zeros = new_empty

    def _same(self, *given: Any, **options: Any) -> Tensor:
        del given, options
        return self

    copy_ = zero_ = fill_ = mul_ = add_ = relu_ = requires_grad_ = _same

    def elementwise(self, *others: Any) -> Tensor:
        shapes = [o.shape for o in others if isinstance(o, Tensor)]
        if all(s == self.shape for s in shapes):
            return self.dense()
        return empty(*np.broadcast_shapes(self.shape, *shapes), dtype=self.dtype)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = elementwise
    exp = sqrt = rsqrt = abs = relu = pow = elementwise

    def _reduced(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Tensor:
        del options
        axes = (
            range(self.ndim)
            if dim is None
            else [dim % self.ndim]
            if isinstance(dim, int)
            else [d % self.ndim for d in dim]
        )
        if keepdim:
            return empty([1 if k in axes else n for k, n in enumerate(self.shape)], dtype=self.dtype)
        return empty([n for k, n in enumerate(self.shape) if k not in axes], dtype=self.dtype)

    sum = mean = amax = amin = prod = _reduced

    def __matmul__(self, other: Tensor) -> Tensor:
        if self.shape[-1] != other.shape[-2]:
            raise RuntimeError("the shapes of a product")
        return empty(*self.shape[:-1], other.shape[-1], dtype=self.dtype)


def empty(*sizes: Any, dtype: Dtype | None = None, device: object = None, **options: Any) -> Tensor:
    del device, options
    shape = sizes_of(sizes) if sizes else ()
    return Tensor(Storage(math.prod(shape)), shape, row_major(shape), 0, dtype)
