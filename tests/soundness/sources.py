"""Random kernels as text: a way to share tiles among blocks, a way to touch them, and many spellings of both.

Every kernel is safe in all launches that keep its contracts; one with more than one array also needs these to
be alike. `soundness_mutate` makes the unsafe ones out of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from soundness_shares import LINES, TABLES, TABLES_OF_INTEGERS, Share, Text


@dataclass(frozen=True)
class Source:
    """The text of a file with one kernel; `grid` is the host's, in terms of the arguments."""

    text: str
    arrays: tuple[tuple[str, int], ...]  # name and rank
    scalars: tuple[tuple[str, bool], ...]  # name and whether it is a compile-time constant
    sizes: tuple[str, ...]  # constants that are tile sizes
    requires: tuple[str, ...]
    agreements: tuple[str, ...]  # facts about a launch that a kernel of several arrays may need
    grid: tuple[str, ...]
    way: str
    language: str = "cutile"


@dataclass
class _Writer:
    """Draws one kernel. Mutable: arrays and agreements are added as accesses ask for them."""

    text: Text
    rank: int
    arrays: dict[str, int]
    agreements: list[str]

    @property
    def rng(self) -> random.Random:
        return self.text.rng

    def another(self, name: str) -> str:
        """One more array of the same shape."""
        if name not in self.arrays:
            self.arrays[name] = self.rank
            self.agreements += [f"{name}.shape[{k}] == out.shape[{k}]" for k in range(self.rank)]
        return name

    def value(self, shape: str) -> str:
        return self.rng.choice(
            (f"ct.zeros({shape}, dtype=ct.float32)", f"ct.full({shape}, 1.0, dtype=ct.float32)")
        )


# ---- one axis ------------------------------------------------------------------------------------------------

_Line = Callable[[_Writer, str], None]  # writes an access to tile `i`, which exists


def _store(w: _Writer, i: str) -> None:
    w.text.add(f"ct.store(out, index=({i},), tile={w.value('(T,)')})")


def _in_place(w: _Writer, i: str) -> None:
    if w.rng.random() < 0.5:
        w.text.add(f"tile = ct.load(out, index=({i},), shape=(T,))")
        w.text.add(f"ct.store(out, index=({i},), tile=tile * 2.0)")
    else:
        lane = w.text.let("at", f"{i} * T + ct.arange(T, dtype=ct.int32)")
        w.text.add(f"tile = ct.gather(out, {lane})")
        w.text.add(f"ct.scatter(out, {lane}, tile + 1.0)")


def _copy(w: _Writer, i: str) -> None:
    x = w.another("x")
    w.text.add(f"ct.store(out, index=({i},), tile=ct.load({x}, index=({i},), shape=(T,)))")


def _two_arrays(w: _Writer, i: str) -> None:
    other = w.another("second")
    w.text.add(f"ct.store(out, index=({i},), tile={w.value('(T,)')})")
    w.text.add(f"ct.store({other}, index=({i},), tile={w.value('(T,)')})")


def _view(w: _Writer, i: str) -> None:
    w.text.add("view = out.tiled_view((T,))")
    w.text.add(f"view.store(({i},), {w.value('(T,)')})")


def _gapped_view(w: _Writer, i: str) -> None:
    w.text.add("view = out.tiled_view((T,), traversal_steps=(2 * T,))")
    w.text.open(f"if {i} < {w.rng.choice(('view.num_tiles(0)', 'ct.cdiv(out.shape[0], 2 * T)'))}:")
    w.text.add(f"view.store(({i},), {w.value('(T,)')})")
    w.text.depth -= 1


def _lanes(w: _Writer, i: str) -> None:
    lane = "ct.arange(T, dtype=ct.int32)"
    form = w.rng.choice(("{i} * T + {l}", "{i} * T + T - 1 - {l}"))
    at = w.text.let("at", form.format(i=i, l=lane))
    w.text.add(f"ct.scatter(out, {at}, {w.value('(T,)')})")


def _strided_lanes(w: _Writer, i: str) -> None:
    at = w.text.let("at", f"ct.arange(T, dtype=ct.int32) * tiles + {i}")
    w.text.add(f"ct.scatter(out, {at}, {w.value('(T,)')})")


def _half_lanes(w: _Writer, i: str) -> None:
    w.text.add("lane = ct.arange(T, dtype=ct.int32)")
    at = w.text.let("at", f"{i} * (T // 2) + lane")
    w.text.add(f"ct.scatter(out, {at}, {w.value('(T,)')}, mask=lane < T // 2)")


def _masked(w: _Writer, i: str) -> None:
    w.text.add("lane = ct.arange(T, dtype=ct.int32)")
    w.text.add(f"at = {i} * T + lane")
    if w.rng.random() < 0.5:
        w.text.add(f"ct.scatter(out, at, {w.value('(T,)')}, mask=lane % 2 == 0)")
        w.text.add(f"ct.scatter(out, at, {w.value('(T,)')}, mask=lane % 2 == 1)")
    else:
        w.text.add(f"ct.scatter(out, at, {w.value('(T,)')}, mask=at < out.shape[0])")


def _raw(w: _Writer, i: str) -> None:
    w.text.add(f"at = {i} * T + ct.arange(T, dtype=ct.int32)")
    w.text.add(f"out.get_raw_memory().store_offset(at, {w.value('(T,)')}, mask=at < out.shape[0])")


def _slice(w: _Writer, i: str) -> None:
    start = w.text.let("low", f"{i} * T")
    stop = w.text.let("high", w.text.least(f"{start} + T", "out.shape[0]"))
    w.text.add(f"part = out.slice(axis=0, start={start}, stop={stop})")
    w.text.add(f"ct.store(part, index=(0,), tile={w.value('(T,)')})")


def _two_shapes(w: _Writer, i: str) -> None:
    """Tiles of 2T, then their halves."""
    w.text.open(f"if {i} < ct.cdiv(out.shape[0], 2 * T):")
    w.text.add(f"ct.store(out, index=({i},), tile={w.value('(2 * T,)')})")
    w.text.add(f"ct.store(out, index=(2 * {i},), tile={w.value('(T,)')})")
    if w.rng.random() < 0.6:
        w.text.open(f"if 2 * {i} + 1 < ct.cdiv(out.shape[0], T):")
        w.text.add(f"ct.store(out, index=(2 * {i} + 1,), tile={w.value('(T,)')})")
        w.text.depth -= 1
    w.text.depth -= 1


def _one_of_two(w: _Writer, i: str) -> None:
    condition = w.rng.choice((f"{i} % 2 == 0", "flag > 0", "T > 2", f"{i} < tiles // 2"))
    if condition.startswith("flag"):
        w.text.params["flag"] = ""
    w.text.open(f"if {condition}:")
    _store(w, i)
    w.text.depth -= 1
    if w.rng.random() < 0.7:
        w.text.open("else:")
        w.rng.choice((_store, _lanes))(w, i)
        w.text.depth -= 1


def _halo(w: _Writer, i: str) -> None:
    x = w.another("x")
    w.text.add(f"tile = ct.load({x}, index=({i},), shape=(T,))")
    w.text.add(f"if {i} > 0:")
    w.text.add(f"    tile = tile + ct.load({x}, index=({i} - 1,), shape=(T,))")
    w.text.add(f"if {i} + 1 < tiles:")
    w.text.add(f"    tile = tile + ct.load({x}, index=({i} + 1,), shape=(T,))")
    w.text.add(f"ct.store(out, index=({i},), tile=tile)")


def _atomic(w: _Writer, i: str) -> None:
    w.text.add(f"ct.atomic_add(out, {i} // 2, 1.0)")


# What touches tile `i` and nothing else can stand beside another such access.
_TILED: tuple[_Line, ...] = (
    _store,
    _store,
    _in_place,
    _copy,
    _two_arrays,
    _view,
    _lanes,
    _lanes,
    _masked,
    _slice,
)
_TILED += (_one_of_two, _halo)
_LINE = (*_TILED, _strided_lanes, _half_lanes, _gapped_view, _raw, _two_shapes, _atomic)


# ---- two axes ------------------------------------------------------------------------------------------------


def _tile(w: _Writer, m: str, n: str) -> None:
    w.text.add(f"ct.store(out, index=({m}, {n}), tile={w.value('(T, S)')})")


def _tile_in_place(w: _Writer, m: str, n: str) -> None:
    w.text.add(f"tile = ct.load(out, index=({m}, {n}), shape=(T, S))")
    w.text.add(f"ct.store(out, index=({m}, {n}), tile=tile * 2.0)")


def _tile_copy(w: _Writer, m: str, n: str) -> None:
    x = w.another("x")
    w.text.add(f"tile = ct.load({x}, index=({m}, {n}), shape=(T, S))")
    w.text.add(f"ct.store(out, index=({m}, {n}), tile=tile)")


def _product(w: _Writer, m: str, n: str) -> None:
    w.arrays |= {"a": 2, "w": 2}
    w.agreements += ["a.shape[0] == out.shape[0]", "w.shape[1] == out.shape[1]", "w.shape[0] == a.shape[1]"]
    w.text.add("total = ct.zeros((T, S), dtype=ct.float32)")
    w.text.add("for q in range(ct.num_tiles(a, axis=1, shape=(T, T))):")
    w.text.add(f"    left = ct.load(a, index=({m}, q), shape=(T, T))")
    w.text.add(f"    right = ct.load(w, index=(q, {n}), shape=(T, S))")
    w.text.add("    total = ct.mma(left, right, total)")
    w.text.add(f"ct.store(out, index=({m}, {n}), tile=total)")


def _tile_view(w: _Writer, m: str, n: str) -> None:
    w.text.add("view = out.tiled_view((T, S))")
    w.text.add(f"view.store(({m}, {n}), {w.value('(T, S)')})")


def _tile_lanes(w: _Writer, m: str, n: str) -> None:
    w.text.add(f"r = {m} * T + ct.arange(T, dtype=ct.int32)")
    w.text.add(f"c0 = {n} * S + ct.arange(S, dtype=ct.int32)")
    mask = w.rng.choice(("", "", ", mask=c0[None, :] < out.shape[1]", ", mask=r[:, None] % 2 == 0"))
    w.text.add(f"ct.scatter(out, (r[:, None], c0[None, :]), {w.value('(T, S)')}{mask})")


def _row_lanes(w: _Writer, m: str, n: str) -> None:
    """Rows of tiles one by one."""
    k = w.text.name("k")
    w.text.open(f"for {k} in range(T):")
    w.text.add(f"ct.scatter(out, ({m} * T + {k}, {n} * S + ct.arange(S, dtype=ct.int32)), {w.value('(S,)')})")
    w.text.depth -= 1


def _row_slice(w: _Writer, m: str, n: str) -> None:
    w.text.add(f"band = out.slice(axis=0, start={m} * T, stop={w.text.least(f'{m} * T + T', 'out.shape[0]')})")
    w.text.add(f"ct.store(band, index=(0, {n}), tile={w.value('(T, S)')})")


def _tile_if(w: _Writer, m: str, n: str) -> None:
    w.text.open(f"if {w.rng.choice((f'{m} >= {n}', f'({m} + {n}) % 2 == 0', f'{m} * T < out.shape[1]'))}:")
    _tile(w, m, n)
    w.text.depth -= 1


_TABLE = (
    _tile,
    _tile,
    _tile_in_place,
    _tile_copy,
    _product,
    _tile_view,
    _tile_lanes,
    _row_lanes,
    _row_slice,
    _tile_if,
)


# ---- the whole -----------------------------------------------------------------------------------------------


def _tiles(rng: random.Random, axis: int, size: str, shape: str) -> str:
    return rng.choice(
        (
            f"ct.cdiv(out.shape[{axis}], {size})",
            f"ct.num_tiles(out, axis={axis}, shape={shape})",
            f"(out.shape[{axis}] + {size} - 1) // {size}",
        )
    )


def source(seed: int) -> Source:
    """The kernel of a seed."""
    rng = random.Random(seed)  # reproducible choices, no secrets
    text = Text(rng)
    rank = 1 if rng.random() < 0.55 else 2
    writer = _Writer(text, rank, {"out": rank}, [])
    if rank == 1:
        text.add(f"tiles = {_tiles(rng, 0, 'T', '(T,)')}")
        share: Share = rng.choice(LINES)(text, "tiles", "cdiv(out.shape[0], T)")
        access = rng.choice(_LINE)
        access(writer, *share.indices)
        if access in _TILED and rng.random() < 0.2:
            rng.choice(_TILED)(writer, *share.indices)
    else:
        text.add(f"rows = {_tiles(rng, 0, 'T', '(T, S)')}")
        text.add(f"cols = {_tiles(rng, 1, 'S', '(T, S)')}")
        host = ("cdiv(out.shape[0], T)", "cdiv(out.shape[1], S)")
        share = rng.choice(TABLES)(text, "rows", "cols", host)
        access = rng.choice(_TABLE)
        access(writer, *share.indices)
    return _finished(writer, share, access.__name__.strip("_").replace("_", " "))


def _finished(writer: _Writer, share: Share, access: str) -> Source:
    text = writer.text
    sizes = ("T", "S")[: writer.rank]
    for table, rank in TABLES_OF_INTEGERS.items():
        if text.params.pop(table, None) is not None:
            writer.arrays[table] = rank
    names = [*writer.arrays, *(f"{n}{a}" for n, a in text.params.items())]
    names += [f"{size}: ct.Constant[int]" for size in sizes]
    outside = [f"{block}\n" for block in text.outside]
    contracts = [f"# tilecheck: requires {r} -- as the author says" for r in text.requires]
    head = ["import cuda.tile as ct\n", *outside, *contracts, "@ct.kernel", f"def kernel({', '.join(names)}):"]
    scalars = [(n, bool(a)) for n, a in text.params.items()]
    constants = dict(line.split(" = ") for line in text.outside if not line.startswith("def "))
    host = tuple(re.sub(r"\b[A-Z]{2,}\b", lambda m: constants[m.group()], axis) for axis in share.host)
    return Source(
        "\n".join([*head, *text.lines]) + "\n",
        tuple(writer.arrays.items()),
        (*scalars, *((size, True) for size in sizes)),
        sizes,
        tuple(text.requires),
        tuple(writer.agreements),
        host,
        f"{share.way} / {access}",
    )
