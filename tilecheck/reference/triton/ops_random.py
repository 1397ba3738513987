"""The counter-based random numbers of Triton: Philox, exact in its integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton.dtypes import UINT32, UINT64
from tilecheck.reference.triton.operations import operation
from tilecheck.reference.triton.values import as_tensor, static_int
from tilecheck.reference.values.dtypes import FLOAT32, INT32, Data
from tilecheck.reference.values.values import Tile, cast, describe

_KEY_A, _KEY_B = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUND_A, _ROUND_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MAX_ROUNDS = 64


def _philox(counters: list[Data], seed: Data, rounds: int) -> list[Data]:
    """Philox 4x32 on values below 2**32, kept in 64 bits."""
    c0, c1, c2, c3 = counters
    k0, k1 = seed & _LOW, (seed >> _HALF) & _LOW
    for _ in range(rounds):
        high, low = c2 * _ROUND_B, c0 * _ROUND_A
        c0, c2 = (high >> _HALF) ^ c1 ^ k0, (low >> _HALF) ^ c3 ^ k1
        c1, c3 = high & _LOW, low & _LOW
        k0, k1 = (k0 + _KEY_A) & _LOW, (k1 + _KEY_B) & _LOW
    return [c0, c1, c2, c3]


def _rounds(value: Any) -> int:
    count = static_int(value)
    if not 0 <= count <= _MAX_ROUNDS:
        raise Reject(f"{count} rounds of Philox")
    return count


def _counter(value: Any) -> Data:
    tensor = as_tensor(value)
    if tensor.dtype.is_float or tensor.dtype.bitwidth != 32:
        raise Reject(f"{describe(tensor)} used as a counter")
    return cast(tensor, UINT32).data.astype(np.uint64)


def _seed(value: Any) -> Data:
    return cast(as_tensor(value), UINT64).data


def _outputs(data: list[Data]) -> tuple[Tile, ...]:
    shape = np.broadcast_shapes(*(item.shape for item in data))
    return tuple(Tile(np.broadcast_to(item.astype(np.uint32), shape), UINT32) for item in data)


@operation("philox")
def philox(
    machine: Machine, seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = 10
) -> tuple[Tile, ...]:
    """Four random integers from a seed and four counters."""
    counters = [_counter(value) for value in (c0, c1, c2, c3)]
    return _outputs(_philox(counters, _seed(seed), _rounds(n_rounds)))


def _four(seed: Any, offset: Any, rounds: Any) -> tuple[Tile, ...]:
    tensor = as_tensor(offset)
    if tensor.dtype.is_float:
        raise Reject(f"{describe(tensor)} used as a counter")
    wide = cast(tensor, UINT64).data
    low = wide & _LOW
    high = (wide >> _HALF) & _LOW if tensor.dtype.bitwidth > 32 else np.zeros_like(low)
    zero = np.zeros_like(low)
    return _outputs(_philox([low, high, zero, zero], _seed(seed), _rounds(rounds)))


def _uniform(tile: Tile) -> Tile:
    """Evenly spread over [0, 1)."""
    signed = tile.data.view(np.int32) if tile.data.flags.c_contiguous else tile.data.astype(np.int32)
    folded = np.where(signed < 0, -signed.astype(np.int64) - 1, signed)
    return Tile((folded * 4.6566127342e-10).astype(np.float32), FLOAT32)


def _normal(first: Tile, second: Tile) -> tuple[Tile, Tile]:
    size = np.sqrt(-2 * np.log(np.maximum(_uniform(first).data, np.float32(1e-7))))
    angle = np.float32(2 * np.pi) * _uniform(second).data
    return Tile(np.asarray(size * np.cos(angle), np.float32), FLOAT32), Tile(
        np.asarray(size * np.sin(angle), np.float32), FLOAT32
    )


def _all_normal(tiles: tuple[Tile, ...]) -> tuple[Tile, ...]:
    return (*_normal(tiles[0], tiles[1]), *_normal(tiles[2], tiles[3]))


_FOUR: dict[str, Callable[[tuple[Tile, ...]], tuple[Tile, ...]]] = {
    "randint": lambda tiles: tiles,
    "rand": lambda tiles: tuple(_uniform(tile) for tile in tiles),
    "randn": _all_normal,
}


def _random(name: str) -> tuple[Callable[..., Tile], Callable[..., tuple[Tile, ...]]]:
    def four(machine: Machine, seed: Any, offset: Any, n_rounds: Any = 10) -> tuple[Tile, ...]:
        return _FOUR[name](_four(seed, offset, n_rounds))

    def one(machine: Machine, seed: Any, offset: Any, n_rounds: Any = 10) -> Tile:
        return four(machine, seed, offset, n_rounds)[0]

    return one, four


for _name in _FOUR:
    _one, _all = _random(_name)
    operation(_name)(_one)
    operation(f"{_name}4x")(_all)


@operation("uint_to_uniform_float", "uint32_to_uniform_float")
def uniform_float(machine: Machine, x: Any) -> Tile:
    """A random integer as a float in [0, 1)."""
    tensor = as_tensor(x)
    if tensor.dtype not in (UINT32, INT32):
        raise Reject(f"{describe(tensor)} as a uniform float")
    return _uniform(cast(tensor, UINT32))


@operation("pair_uniform_to_normal")
def pair_uniform_to_normal(machine: Machine, u1: Any, u2: Any) -> tuple[Tile, Tile]:
    """Two uniform floats as two normally distributed ones."""
    first, second = as_tensor(u1).data.astype(np.float64), as_tensor(u2).data.astype(np.float64)
    size = np.sqrt(-2 * np.log(np.maximum(first, 1e-7)))
    parts = (size * np.cos(2 * np.pi * second), size * np.sin(2 * np.pi * second))
    return Tile(parts[0].astype(np.float32), FLOAT32), Tile(parts[1].astype(np.float32), FLOAT32)
