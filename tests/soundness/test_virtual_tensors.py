"""The tensors without contents have the shapes, strides and offsets that PyTorch gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from soundness_virtual_machine import Machine
from soundness_virtual_tensors import Tensor
from soundness_virtual_torch import torch_module

CHAINS = 400


def _steps(rng: random.Random, x: Any) -> tuple[str, Callable[[Any, Any], Any]]:
    """A random operation that suits the shape of `x`: its name, and itself."""
    n = x.dim()
    a, b = (rng.randrange(n), rng.randrange(n)) if n else (0, 0)
    start = rng.randint(0, max(0, x.size(a) - 1)) if n else 0
    order = rng.sample(range(n), n)
    total = x.numel()
    factor = rng.choice([d for d in range(1, total + 1) if total % d == 0]) if total else 1
    grown = [rng.choice((2, 3)) if x.size(k) == 1 else -1 for k in range(n)]
    choices: list[tuple[str, Callable[[Any, Any], Any]]] = [
        ("transpose", lambda t, m: t.transpose(a, b)),
        ("permute", lambda t, m: t.permute(order)),
        ("unsqueeze", lambda t, m: t.unsqueeze(a)),
        ("squeeze", lambda t, m: t.squeeze()),
        ("slice", lambda t, m: t[(slice(None),) * a + (slice(start, None, 1 + start % 2),)]),
        ("select", lambda t, m: t.select(a, start)),
        ("narrow", lambda t, m: t.narrow(a, start, t.shape[a] - start)),
        ("chunk", lambda t, m: t.chunk(2, a)[-1]),
        ("split", lambda t, m: t.split(2, a)[0]),
        ("reshape", lambda t, m: t.reshape(factor, -1)),
        ("view", lambda t, m: t.view(-1, factor)),
        ("flatten", lambda t, m: t.flatten(min(a, b), max(a, b))),
        ("expand", lambda t, m: t.expand(*grown)),
        ("contiguous", lambda t, m: t.contiguous()),
        ("clone", lambda t, m: t.clone()),
        ("empty_like", lambda t, m: m.empty_like(t)),
        ("unfold", lambda t, m: t.unfold(a, 1 + start, 1 + b)),
        ("plus", lambda t, m: t + t),
        ("sum", lambda t, m: t.sum(a, keepdim=True)),
        ("index", lambda t, m: t[..., None]),
        ("new_empty", lambda t, m: t.new_empty(t.shape)),
    ]
    return rng.choice(choices)


def _layout(t: Any) -> tuple[Any, ...]:
    strides = tuple(s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1)  # of one index none counts
    return tuple(t.shape), strides, t.is_contiguous(), t.numel()


def test_chains_of_operations_give_the_layouts_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    mine = torch_module(Machine())
    rng = random.Random(5)
    compared = 0
    for _ in range(CHAINS):
        shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
        pair = (torch.empty(shape), mine.empty(*shape))
        said = [str(shape)]
        for _ in range(rng.randint(1, 6)):
            if pair[0].dim() == 0 or pair[0].numel() == 0 or pair[0].dim() > 5:
                break
            name, step = _steps(rng, pair[0])
            said.append(name)
            try:
                real: Any = step(pair[0], torch)
            except RuntimeError:
                with pytest.raises(RuntimeError):
                    step(pair[1], mine)
                break
            pair = (real, step(pair[1], mine))
            assert _layout(pair[0]) == _layout(pair[1]), said
            compared += 1
    assert compared > CHAINS


def test_a_tensor_knows_whether_indices_share_elements() -> None:
    torch = torch_module(Machine())
    x = torch.empty(3, 4)
    assert isinstance(x, Tensor)
    assert x.t().is_plain()
    assert not x.unfold(0, 2, 1).is_plain()
    assert not x[:, :1].expand(3, 5).is_plain()
    assert x[1:, ::2].span == (4, 10)
