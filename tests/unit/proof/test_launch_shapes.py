"""Sizes and strides that a tensor can have together."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest

from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.host import NUMEL, host_extent, host_numel, host_rank, host_stride
from tilecheck.proof.launches.inputs.shapes import some_shapes_have


def said_of(shape: tuple[int, ...]) -> dict[Symbol, int]:
    """All that a text may ask a contiguous tensor of this shape."""
    rank = len(shape)
    found = {host_rank("x"): rank, host_numel("x"): math.prod(shape)}
    for k in range(-rank, rank):
        found[host_extent("x", k)] = shape[k]
        found[host_stride("x", k)] = math.prod(shape[k % rank + 1 :])
    for k in range(1, rank):
        found[Symbol(f"x.shape[:-{k}].numel()", Kind.HOST, origin=NUMEL)] = math.prod(shape[:-k])
    return found


def test_what_a_shape_has_is_possible() -> None:
    rng = random.Random(3)
    for rank in range(1, 4):
        for shape in product((1, 2, 5), repeat=rank):
            said = said_of(shape)
            for _ in range(5):
                some = dict(
                    rng.sample(sorted(said.items(), key=lambda one: one[0].name), rng.randint(1, len(said)))
                )
                assert some_shapes_have(some), (shape, some)


@pytest.mark.parametrize(
    "said",
    [
        {
            host_numel("x"): 10,
            Symbol("x.shape[:-1].numel()", Kind.HOST, origin=NUMEL): 5,
            host_extent("x", -1): 1,
        },
        {host_stride("x", 0): 2, host_extent("x", 1): 1, host_rank("x"): 2},
        {host_stride("x", -1): 2},
        {host_stride("x", 0): 3, host_stride("x", 1): 2},
    ],
)
def test_what_no_shape_has_is_not(said: dict[Symbol, int]) -> None:
    assert not some_shapes_have(said)
