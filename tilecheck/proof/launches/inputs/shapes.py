"""Whether tensors can have the sizes that a model gives them.

Where the text does not give the rank of a tensor, its sizes have many names: `x.shape[0]`, `x.shape[-1]`,
`x.shape[1:].numel()`, and those of `x.shape[:d]` and `x.shape[d:]` for each `d` at which it is cut. The facts
say little of how these go together. A launch is blamed only for sizes that some shape has, and for strides of
contiguous tensors that go with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from tilecheck.ir.expr import Symbol
from tilecheck.ir.host import EXTENT, NUMEL, RANK, STRIDE, axis_of, owner, part_of_shape, whole

_MOST_AXES = 6
_MOST_TRIES = 5000  # of extents for one tensor; who needs more is believed

_Sizes = Mapping[Symbol, int | bool]
_Said = tuple[range, int]  # the product of the extents along these axes


def some_shapes_have(sizes: _Sizes) -> bool:
    """Whether each tensor that is spoken of may have its sizes, and the strides of row-major order."""
    tensors: dict[str, dict[Symbol, int]] = {}
    for symbol, value in sizes.items():
        name = owner(symbol) if symbol.origin in (EXTENT, NUMEL, RANK, STRIDE) else None
        if name is not None:
            tensors.setdefault(whole(name), {})[symbol] = int(value)
    numbers = {s.name: int(v) for s, v in sizes.items() if not isinstance(v, bool)}
    return all(_some_shape_has(name, own, numbers) for name, own in tensors.items())


def _some_shape_has(name: str, sizes: Mapping[Symbol, int], numbers: Mapping[str, int]) -> bool:
    cuts = sorted({_position(name, owner(s) or "") for s in sizes} - {""})
    tries = [_MOST_TRIES]
    for rank in range(_MOST_AXES + 1):
        places = [_places(words, rank, numbers) for words in cuts]
        for at in product(*places):
            said = _said(name, sizes, rank, dict(zip(cuts, at, strict=True)))
            if said is None:
                continue
            if tries[0] <= 0 or _solves(said, {}, tries):
                return True
    return False


def _position(name: str, part: str) -> str:
    """Where a tensor is cut, in the text of a name such as `x.shape[:d]`; empty for any other."""
    inner = part.removeprefix(f"{name}.shape[").removesuffix("]")
    return "" if part == name or ("]" in inner.replace("[", "") and ".shape[" in inner) else inner.strip(":")


def _places(words: str, rank: int, numbers: Mapping[str, int]) -> range:
    """The axes at which a position may lie."""
    at = numbers.get(words)
    if at is None:
        return range(rank + 1)
    at = min(max(at + rank, 0) if at < 0 else at, rank)
    return range(at, at + 1)


def _said(name: str, sizes: Mapping[Symbol, int], rank: int, cuts: Mapping[str, int]) -> list[_Said] | None:
    """What the sizes say of the extents of a tensor of this rank; None where they contradict it."""
    found: list[_Said] = []
    asked = any(s.origin == RANK for s in sizes)
    for symbol, value in sizes.items():
        part = owner(symbol) or ""
        axes = range(rank)
        if part != name:
            words = _position(name, part)
            if words not in cuts:
                continue
            axes = axes[: cuts[words]] if part.startswith(f"{name}.shape[:") else axes[cuts[words] :]
        if symbol.origin == RANK:
            if len(axes) != value:
                return None
        elif symbol.origin == NUMEL:
            start, stop = part_of_shape(symbol)
            found.append((axes[start:stop], value))
        elif -len(axes) <= (k := axis_of(symbol)) < len(axes):
            own = axes[k : k + 1 or None]
            found.append((axes[own.stop :] if symbol.origin == STRIDE else own, value))
        elif not asked:  # reading it raises; where the text asks for the rank, it may be read for others only
            return None
    return sorted(found, key=lambda one: len(one[0]))


def _solves(said: list[_Said], known: dict[int, int], tries: list[int]) -> bool:
    """Whether extents exist that make all these products."""
    tries[0] -= 1
    if tries[0] <= 0:
        return True
    known = dict(known)
    for axes, value in said:
        left = [k for k in axes if k not in known]
        done = prod(known[k] for k in axes if k in known)
        if not left:
            if done != value:
                return False
        elif len(left) == 1 and done:
            if value % done:
                return False
            known[left[0]] = value // done
        elif done:
            if value % done:
                return False
            ways = _divisors(value // done)
            return any(_solves(said, {**known, left[0]: way}, tries) for way in ways)
        elif value:
            return False
    return all(prod(known.get(k, 1) for k in axes) == value for axes, value in said)


def _divisors(value: int) -> Iterator[int]:
    if value == 0:
        yield from (0, 1)
        return
    yield from (k for k in range(1, min(value, 1000) + 1) if value % k == 0)
    if value > 1000:
        yield value
