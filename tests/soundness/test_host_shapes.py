"""What host code is taken to know of torch's tensors, held against torch itself on random ones."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.expr import Expr, Kind, Symbol, evaluate, symbols
from tilecheck.ir.host import CONTIGUOUS, EXTENT, NUMEL, RANK, STRIDE, axis_of, owner, part_of_shape
from tilecheck.ir.launch import HostTensor, Launch

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

HOST = """
import math
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def passed(y):
    tl.store(y, 0.0)

def host(x: torch.Tensor, w: torch.Tensor):
{body}
    passed[(1,)](y)
"""
# Each line makes `y` of `x` and `w`. Lines after `assert`s and unpackings know the rank of `x`, others do not.
VIEWS = (
    "x.view(-1)",
    "x.view(x.shape)",
    "x.view(-1, x.shape[-1])",
    "x.view(*x.shape[:-1], 1, x.shape[-1])",
    "x.view(x.shape[:-1] + (2, x.shape[-1] // 2))",
    "x.reshape(-1)",
    "x.reshape(x.shape[0], -1)",
    "x.reshape_as(x)",
    "x.flatten()",
    "x.flatten(0, 1)",
    "x.flatten(1)",
    "x.ravel()",
    "x.contiguous()",
    "x.transpose(0, 1)",
    "x.transpose(-1, -2).contiguous()",
    "x.transpose(0, -1)",
    "torch.transpose(x, 0, 1)",
    "x.permute(1, 0)",
    "x.permute(2, 0, 1)",
    "x.permute(2, 0, 1).contiguous()",
    "x.permute(*reversed(range(x.dim())))",
    "x.permute(list(range(x.dim()))[::-1]).contiguous()",
    "x.movedim(0, -1)",
    "x.movedim((0, 1), (1, 0))",
    "x.mT",
    "x.T",
    "x.t()",
    "x.expand(3, *x.shape)",
    "x.expand(2, -1, -1)",
    "x.expand(1, -1, -1)",
    "x[:1].expand(4, *x.shape[1:])",
    "x.unsqueeze(0)",
    "x.unsqueeze(-1)",
    "x.unsqueeze(1).squeeze(1)",
    "x.unsqueeze(0).squeeze()",
    "x.select(0, 0)",
    "x.select(-1, -1)",
    "x.narrow(1, 0, 1)",
    "x.narrow(-1, -1, 1)",
    "x.unfold(-1, 2, 1)",
    "x.unfold(0, 1, 2)",
    "x.as_strided((1, 2), (2, 1))",
    "x.unflatten(-1, (1, -1))",
    "x.unflatten(0, (-1, 1))",
    "x.chunk(2, dim=-1)[0]",
    "x.split(2, dim=-1)[0]",
    "x.split([1, x.shape[0] - 1])[1]",
    "x.unbind(0)[0]",
    "x.unbind(-1)[0]",
    "x[0]",
    "x[..., 0]",
    "x[1:]",
    "x[..., ::2]",
    "x[:, None]",
    "x.diagonal()",
    "torch.meshgrid(x.view(-1), w.view(-1), indexing='ij')[0]",
    "torch.meshgrid(x.view(-1), w.view(-1), indexing='xy')[1]",
    "torch.meshgrid(x.flatten(), w.flatten())[1]",
    "torch.broadcast_to(x, (2, *x.shape))",
)
NEW = (
    "torch.empty_like(x)",
    "torch.zeros_like(x.contiguous())",
    "torch.empty_like(x.transpose(0, -1))",
    "torch.empty(x.shape)",
    "torch.empty(*x.shape, 3)",
    "torch.empty((*x.shape[:-1], 5))",
    "torch.empty(x.shape[:-1] + (2, 3))",
    "torch.empty(x.shape[1:])",
    "torch.empty((4, *x.shape[1:]))",
    "torch.zeros(list(x.shape) + [2])",
    "torch.empty(x.shape[-2:])",
    "torch.empty(x.shape[:1])",
    "torch.full(x.size(), 1.0)",
    "torch.empty(())",
    "torch.empty([])",
    "torch.tensor([1, 2, 3])",
    "torch.tensor([[1, 2], [3, 4]])",
    "torch.tensor(1.0)",
    "torch.arange(x.numel())",
    "torch.arange(1, 10, 3)",
    "torch.empty_strided((2, 3), (3, 1))",
    "torch.empty_strided((2, 3), (1, 2))",
    "torch.eye(3, 4)",
    "x.new_empty(x.shape[0], 2)",
    "x.new_zeros((*x.shape[:-1], 7))",
    "x + 1",
    "x * x",
    "x + w",
    "x + x[0]",
    "x + x.unsqueeze(0)",
    "x.clone()",
    "x @ w",
    "x @ x.mT",
    "x.unsqueeze(0) @ x.mT.unsqueeze(0)",
    "x[0] @ x.mT",
    "w @ x.mT",
    "torch.matmul(x, w)",
    "torch.mm(x, w)",
    "torch.bmm(x.unsqueeze(0), w.unsqueeze(0))",
    "F.linear(x, w.t())",
    "F.linear(x.unsqueeze(0), w.t())",
    "x.mean()",
    "x.sum(-1)",
    "x.sum(dim=-1, keepdim=True)",
    "x.sum(0)",
    "x.sum(dim=(0, 1))",
    "x.mean(1, True)",
    "x.amax(dim=0, keepdim=True)",
    "x.max(dim=-1).values",
    "x.max(dim=-1, keepdim=True)[1]",
    "x.max()",
    "x.argmax(-1)",
    "F.relu(x)",
    "torch.relu(x)",
    "x.softmax(dim=-1)",
    "torch.cumsum(x, 0)",
    "x.exp().abs()",
    "x.clamp(min=0)",
    "x.triu()",
    "torch.cat([x, x])",
    "torch.cat((x, x, x), dim=-1)",
    "torch.cat([x.transpose(0, -1), x.transpose(0, -1)], 1)",
    "torch.stack([x, x])",
    "torch.stack((x, x), dim=-1)",
    "x.sort(dim=-1).values",
    "torch.sort(x, dim=0)[0]",
    "x.sort(dim=-1, descending=True)[1]",
    "x.topk(1).values",
    "torch.topk(x, 2, dim=0)[1]",
    "F.pad(x, (1, 2))",
    "F.pad(x, (1, 0, 2, 0))",
    "x.repeat(2, 1, 1)",
    "x.repeat(3, 2)",
    "x.gather(0, torch.zeros_like(x, dtype=torch.int64))",
    "torch.argsort(x)",
    "x > 0",
)
STATEMENTS = (
    "shape = list(x.shape); shape[-1] = 3; y = torch.empty(shape)",
    "shape = list(x.shape); shape[0] = 3; y = torch.empty(shape)",
    "shape = list(x.shape); shape[1] = 3; y = torch.empty(shape)",
    "shape = list(x.shape); shape.append(4); y = torch.empty(shape)",
    "*batch, n = x.shape; y = torch.empty((*batch, n, 2))",
    "n, *rest = x.shape; y = torch.empty((*rest, n))",
    "a, b = x.shape[-2:]; y = torch.empty((b, a))",
    "a, b = x.split(2, dim=-1); y = b",
    "a, b = x.unbind(0); y = b",
    "a, b, c = x.chunk(3, dim=0); y = c",
    "v, i = x.topk(1); y = i",
    "assert x.is_contiguous(); y = torch.empty_like(x)",
    "assert x.is_contiguous(); y = torch.empty_like(x).view(-1, x.shape[-1])",
    "m = math.prod(x.shape[:-1]); y = torch.empty(m, x.shape[-1])",
    "m = x.numel() // x.shape[-1]; y = x.reshape(m, x.shape[-1])",
    "m = x.numel() // x.shape[0]; y = torch.empty(m)",
    "n = 1\n    for s in x.shape:\n        n *= s\n    y = torch.empty(n)",
    "n = 1\n    for s in x.shape[1:]:\n        n = n * s\n    y = torch.empty(n)",
    "y = torch.empty([1] * x.ndim)",
    "d = x.ndim - 1; y = torch.empty(x.size(d))",
    "d = x.ndim - 1; shape = list(x.shape); shape[d] = 2; y = torch.empty(shape)",
    "d = x.ndim - 1; shape = [1] * x.ndim; shape[d] = x.shape[d]; y = torch.empty(shape)",
    "d = x.ndim - 1; y = torch.empty(x.numel() // x.shape[d])",
    "assert x.shape[:-1] == w.shape[:-1]; y = torch.empty(math.prod(w.shape[:-1]))",
)
RANKS = ("pass", "a0, a1 = x.shape", "assert x.ndim == 3", "assert w.dim() == 2")


def read(path: Path, body: str) -> Launch | None:
    path.write_text(HOST.format(body=body), encoding="utf-8")
    found = find_launches(Project().add(load(path.as_posix())))
    return found[0] if len(found) == 1 and found[0].problem is None else None


def runs(body: str, x: Any, w: Any) -> Any:
    """The tensor that the host's text makes; None if torch refuses."""
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "math": math, "x": x, "w": w}
    try:
        exec("def host():\n" + body + "\n    return y", names)
        return names["host"]()
    except (RuntimeError, IndexError, ValueError, AssertionError, TypeError, ZeroDivisionError):
        return None


def valued(x: Any, w: Any) -> Callable[[Symbol], int | bool]:
    """The values of the symbols of a launch; KeyError for what torch does not decide."""
    tensors = {"x": x, "w": w}

    def value(symbol: Symbol) -> int | bool:
        if symbol.origin == CONTIGUOUS:
            return bool(tensors[symbol.name.removesuffix(".is_contiguous()")].is_contiguous())
        t = tensors[owner(symbol) or ""]
        match symbol.origin:
            case "extent":
                axis = axis_of(symbol)
                return t.shape[axis] if -t.dim() <= axis < t.dim() else 1
            case "stride":
                return _stride(t, axis_of(symbol))
            case "numel":
                start, stop = part_of_shape(symbol)
                return math.prod(t.shape[start:stop])
            case "rank":
                return t.dim()
        raise KeyError(symbol.name)

    return value


def _stride(t: Any, axis: int) -> int:
    """A stride; that of an axis of length 1 selects nothing, and counts as what it is in row-major order."""
    if t.is_contiguous() and -t.dim() <= axis < t.dim():
        return math.prod(t.shape[axis % t.dim() + 1 :])
    return t.stride(axis)


def decided(e: Expr, value: Callable[[Symbol], int | bool]) -> int | bool | None:
    """The value of an expression, if torch decides it."""
    known = (EXTENT, STRIDE, NUMEL, RANK, CONTIGUOUS)
    if any(s.kind is not Kind.HOST or s.origin not in known for s in symbols(e)):
        return None
    try:
        return evaluate(e, value)
    except (KeyError, IndexError, ZeroDivisionError):
        return None


def check(t: HostTensor, launch: Launch, y: Any, inputs: tuple[Any, Any]) -> int:
    """Hold what is known of a tensor against it; how many facts that were."""
    value, seen = valued(*inputs), 0
    for k, size in enumerate(t.shape or ()):
        found = decided(size, value)
        assert found is None or found == y.shape[k], ("shape", k)
        seen += found is not None
    assert t.shape is None or len(t.shape) == y.dim()
    for k, stride in enumerate(t.strides or ()):
        found = decided(stride, value)
        if found is not None and y.shape[k] > 1 and y.numel():
            assert found == y.stride(k), ("stride", k)
            seen += 1
    if t.count is not None:
        found = decided(t.count, value)
        assert found is None or found == y.numel(), "count"
        seen += found is not None
    dense = sum((n - 1) * s for n, s in zip(y.shape, y.stride(), strict=True)) + 1 == y.numel()
    assert not (t.contiguous and not t.expanded) or y.is_contiguous(), "contiguous"
    assert not t.dense or dense or not y.numel(), "dense"
    own = y.untyped_storage().data_ptr()
    assert not t.fresh or not y.numel() or all(own != i.untyped_storage().data_ptr() for i in inputs), "fresh"
    for fact in launch.facts:
        assert decided(fact, value) in (None, True, 1), fact
    return seen


def random_tensor(rng: random.Random, rank: int) -> Any:
    shape = [rng.choice((1, 2, 2, 3, 4, 6)) if rng.random() > 0.03 else 0 for _ in range(rank)]
    t = torch.rand(*shape) if shape else torch.rand(())
    match rng.randrange(4):
        case 0 if rank > 1:
            return t.transpose(0, -1)
        case 1 if rank:
            return torch.rand(*shape[:-1], 2 * shape[-1])[..., ::2]
        case _:
            return t


def bodies() -> list[str]:
    lines = [f"y = {text}" for text in (*VIEWS, *NEW)] + list(STATEMENTS)
    return [f"    {rank}\n    {line}" for rank in RANKS for line in lines]


@pytest.mark.parametrize("body", bodies(), ids=lambda b: re.sub(r"\s+", " ", b.strip()))
def test_what_is_known_of_a_tensor_is_so_in_torch(body: str, tmp_path: Path) -> None:
    launch = read(tmp_path / "host.py", body)
    if launch is None:
        return
    found = dict(launch.arguments)["y"]
    rng = random.Random(body)
    for _ in range(40):
        x, w = random_tensor(rng, rng.choice((1, 2, 2, 3, 3, 4))), random_tensor(rng, rng.choice((1, 2, 2)))
        y = runs(body, x, w)
        if y is not None and isinstance(found, HostTensor):
            check(found, launch, y, (x, w))
