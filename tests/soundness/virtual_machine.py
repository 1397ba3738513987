"""Runs launches on memory without contents: who touches which element, and what of that is harm.

It shares no code with the tool. Kernels run as plain Python on the values of `virtual_values`, hosts on the
tensors of `virtual_tensors`; a storage is a number of elements, and of a launch only the addresses count.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

_DENSE = 1 << 26  # elements of a storage for which the shadow is an array
_MOST_BLOCKS = 1 << 31
_MOST_ON_OTHER_AXES = 65_535
_TILE_LIMIT = 1 << 20


class CannotStart(Exception):
    """The launch does not compile or start: its input is not admitted."""


@dataclass(eq=False)
class Storage:
    """Memory of `size` elements; `values` where a host put integers there."""

    size: int
    values: np.ndarray | None = None
    given: bool = False


@dataclass(frozen=True)
class Harm:
    """What went wrong: `race`, `outside`, `duplicate`, `stray` (outside the view, in its storage) or `S8`."""

    kind: str
    block: tuple[int, int, int]
    other: int = -1
    address: int = -1


@dataclass
class Shadow:
    """Which block wrote, read and updated each element: -1 none, -2 several."""

    writer: np.ndarray
    reader: np.ndarray
    atomic: np.ndarray

    @classmethod
    def of(cls, size: int) -> Shadow:
        return cls(*(np.full(size, -1, np.int32) for _ in range(3)))


@dataclass
class Outcome:
    """What one launch did. `started` is False where it could not compile or start."""

    kernel: str
    grid: tuple[int, int, int]
    started: bool
    harms: list[Harm] = field(default_factory=list)
    arguments: dict[str, object] = field(default_factory=dict)
    whole: bool = True  # every block was run

    @property
    def is_harmful(self) -> bool:
        return any(h.kind in ("race", "outside", "duplicate") for h in self.harms)


class Machine:
    """One process' launches. Mutable: `outcomes` grows with each launch."""

    def __init__(self, processors: int = 4, most: int = 1 << 20, seed: int = 0) -> None:
        self.processors = processors
        self.most = most
        self.outcomes: list[Outcome] = []
        self.block = (0, 0, 0)
        self.grid = (1, 1, 1)
        self.number = 0
        self.threads = 0
        self._random = random.Random(seed)
        self._shadows: dict[Storage, Shadow] = {}
        self._sparse: dict[Storage, dict[tuple[str, int], int]] = {}
        self.loaded: list[tuple[Storage, np.ndarray]] = []
        self._harms: list[Harm] = []

    # ---- launches --------------------------------------------------------------------------------------------

    def launch(
        self, kernel: str, grid: object, run, threads: int = 0, arguments: dict[str, object] | None = None
    ) -> None:
        """Run `run()` once for each block. Raises `CannotStart` where the grid is too large or empty."""
        axes = self._axes(grid)
        outcome = Outcome(kernel, axes, started=True, arguments=dict(arguments or {}))
        self.outcomes.append(outcome)
        self._shadows, self._sparse, self._harms = {}, {}, []
        self.grid, self.threads = axes, threads
        if min(axes) < 1 or axes[0] >= _MOST_BLOCKS or max(axes[1:]) > _MOST_ON_OTHER_AXES:
            outcome.started = False
            return
        blocks, outcome.whole = self._blocks(axes)
        try:
            for block in blocks:
                self.block, self.loaded = block, []
                self.number = block[0] + axes[0] * (block[1] + axes[1] * block[2])
                run()
        except CannotStart:
            outcome.started = False
            return
        outcome.harms = self._harms

    def _axes(self, grid: object) -> tuple[int, int, int]:
        if not isinstance(grid, (tuple, list)):
            raise TypeError(f"a grid of type {type(grid).__name__}")
        axes = [int(g) for g in grid]
        return (*axes, 1, 1, 1)[:3]  # type: ignore[return-value]

    def _blocks(self, axes: tuple[int, int, int]) -> tuple[Iterator[tuple[int, int, int]], bool]:
        total = axes[0] * axes[1] * axes[2]
        if total <= self.most:
            return ((i, j, k) for k, j, i in product(*(range(a) for a in reversed(axes)))), True
        edge = self.most // 3
        numbers = {*range(edge), *range(total - edge, total)}
        numbers.update(self._random.randrange(total) for _ in range(edge))
        at = ((n % axes[0], n // axes[0] % axes[1], n // axes[0] // axes[1]) for n in sorted(numbers))
        return at, False

    # ---- accesses --------------------------------------------------------------------------------------------

    def access(
        self, effect: str, storage: Storage, addresses: np.ndarray, span: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Log the addresses that a block touches; those inside the storage come back."""
        flat = addresses.reshape(-1)
        if flat.size == 0:
            return flat
        low, high = int(flat.min()), int(flat.max())
        if low < 0 or high >= storage.size:
            self.harm("outside", high if high >= storage.size else low)
            flat = flat[(flat >= 0) & (flat < storage.size)]
        elif span is not None and (low < span[0] or high > span[1]):
            self.harm("stray", high)
        if effect == "write" and flat.size > 1 and np.unique(flat).size < flat.size:
            self.harm("duplicate", int(flat[0]))
        self._order(effect, storage, flat)
        if storage.size <= _DENSE:
            self._mark(effect, storage, flat)
        else:
            self._mark_sparse(effect, storage, flat)
        return flat

    def harm(self, kind: str, address: int = -1, other: int = -1) -> None:
        if len(self._harms) < 40:
            self._harms.append(Harm(kind, self.block, other, address))

    def _order(self, effect: str, storage: Storage, flat: np.ndarray) -> None:
        """S8: a tile that is loaded and then stored has an element for each thread."""
        if not self.threads:
            return
        if effect == "read":
            self.loaded.append((storage, flat))
        elif effect == "write" and flat.size < self.threads:
            for loaded, at in self.loaded:
                if loaded is storage and np.intersect1d(at, flat).size:
                    self.harm("S8", int(flat[0]) if flat.size else -1)

    def _mark(self, effect: str, storage: Storage, flat: np.ndarray) -> None:
        shadow = self._shadows.get(storage)
        if shadow is None:
            shadow = self._shadows[storage] = Shadow.of(storage.size)
        clashes = {
            "write": ("writer", "reader", "atomic"),
            "read": ("writer", "atomic"),
            "atomic": ("writer", "reader"),
        }
        for name in clashes[effect]:
            others = getattr(shadow, name)[flat]
            bad = (others != -1) & (others != self.number)
            if bad.any():
                first = int(np.argmax(bad))
                self.harm("race", int(flat[first]), int(others[first]))
        table = {"write": shadow.writer, "read": shadow.reader, "atomic": shadow.atomic}[effect]
        before = table[flat]
        table[flat] = np.where((before == -1) | (before == self.number), self.number, -2)

    def _mark_sparse(self, effect: str, storage: Storage, flat: np.ndarray) -> None:
        seen = self._sparse.setdefault(storage, {})
        clashes = {
            "write": ("write", "read", "atomic"),
            "read": ("write", "atomic"),
            "atomic": ("write", "read"),
        }
        for address in flat.tolist():
            for name in clashes[effect]:
                other = seen.get((name, address), -1)
                if other not in (-1, self.number):
                    self.harm("race", address, other)
            before = seen.get((effect, address), -1)
            seen[effect, address] = self.number if before in (-1, self.number) else -2


def check_tile(shape: tuple[int, ...]) -> None:
    """Raise `CannotStart` where no tile has this shape: powers of two, within the limit of the language."""
    total = 1
    for size in shape:
        if size < 1 or size & (size - 1):
            raise CannotStart(f"a tile of {size}")
        total *= size
    if total > _TILE_LIMIT:
        raise CannotStart(f"a tile of {total} elements")
