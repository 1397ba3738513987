"""Random Triton kernels as text: the ways of `soundness_shares` to share tiles among programs, and ways to
touch them through pointers.

As in `soundness_sources`, every kernel is safe in all launches that keep its contracts and give it enough
memory.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from soundness_shares import LINES, TABLES, TABLES_OF_INTEGERS, Share, Text
from soundness_sources import Source

# How `soundness_shares` spells what is the same in both languages.
_SPELLINGS = (
    ("ct.bid(", "tl.program_id("),
    ("ct.num_blocks(", "tl.num_programs("),
    ("ct.cdiv(", "tl.cdiv("),
    ("ct.minimum(", "tl.minimum("),
    ("ct.Constant[int]", "tl.constexpr"),
)


@dataclass
class _Writer:
    """Draws one kernel. Mutable: arrays, numbers and agreements are added as accesses ask for them."""

    text: Text
    arrays: list[str] = field(default_factory=list)
    agreements: list[str] = field(default_factory=list)

    @property
    def rng(self) -> random.Random:
        return self.text.rng

    def array(self, name: str, length: str) -> str:
        """The memory of an argument, which has so many elements."""
        if name not in self.arrays:
            self.arrays.append(name)
        self.agreements.append(f"numel({name}) >= {length}")
        return name

    def number(self, name: str, requires: str = "") -> str:
        """A number that is an argument."""
        if name not in self.text.params:
            self.text.params[name] = self.rng.choice(("", "", ": ct.Constant[int]"))
            if requires:
                self.text.requires.append(requires)
        return name


# ---- one axis ------------------------------------------------------------------------------------------------

_Line = Callable[[_Writer, str], None]  # writes an access to tile `i`, which exists


def _offsets(w: _Writer, i: str) -> tuple[str, str]:
    """The elements of tile `i`, and which of them exist."""
    form = w.rng.choice(("{i} * T + tl.arange(0, T)", "tl.arange(0, T) + T * {i}"))
    at = w.text.let("at", form.format(i=i))
    return at, w.text.let("ok", f"{at} < n")


def _value(w: _Writer, shape: str) -> str:
    forms = (f"tl.zeros({shape}, dtype=tl.float32)", f"tl.full({shape}, 1.0, dtype=tl.float32)", "1.0")
    return w.rng.choice(forms)


def _store(w: _Writer, i: str) -> None:
    out = w.array("out", "n")
    at, ok = _offsets(w, i)
    w.text.add(f"tl.store({out} + {at}, {_value(w, '(T,)')}, mask={ok})")


def _copy(w: _Writer, i: str) -> None:
    out, x = w.array("out", "n"), w.array("x", "n")
    at, ok = _offsets(w, i)
    other = w.rng.choice(("", ", other=0.0"))
    w.text.add(f"tl.store({out} + {at}, tl.load({x} + {at}, mask={ok}{other}) * 2.0, mask={ok})")


def _in_place(w: _Writer, i: str) -> None:
    out = w.array("out", "n")
    at, ok = _offsets(w, i)
    w.text.add(f"v = tl.load({out} + {at}, mask={ok}, other=0.0)")
    w.text.add(f"tl.store({out} + {at}, {w.rng.choice(('v * 2.0', 'v + tl.sum(v, axis=0)'))}, mask={ok})")


def _moved_pointer(w: _Writer, i: str) -> None:
    out = w.array("out", "n")
    w.text.add(f"p = {out} + {i} * T")
    w.text.add("p += tl.arange(0, T)")
    w.text.add(f"tl.store(p, {_value(w, '(T,)')}, mask={i} * T + tl.arange(0, T) < n)")


def _strided(w: _Writer, i: str) -> None:
    s = w.number("s", "s >= 1")
    out = w.array("out", f"(n - 1) * {s} + 1")
    at, ok = _offsets(w, i)
    w.text.add(f"tl.store({out} + {at} * {s}, {_value(w, '(T,)')}, mask={ok})")


def _two_halves(w: _Writer, i: str) -> None:
    out = w.array("out", "2 * n")
    at, ok = _offsets(w, i)
    far = w.rng.choice((f"{out} + n + {at}", f"{out} + ({at} + n)", f"({out} + n) + {at}"))
    w.text.add(f"tl.store({out} + {at}, 0.0, mask={ok})")
    w.text.add(f"tl.store({far}, 1.0, mask={ok})")


def _interleaved(w: _Writer, i: str) -> None:
    out = w.array("out", "2 * n")
    at, ok = _offsets(w, i)
    w.text.add(f"tl.store({out} + 2 * {at}, 0.0, mask={ok})")
    w.text.add(f"tl.store({out} + 2 * {at} + 1, 1.0, mask={ok})")


def _sum_of_tile(w: _Writer, i: str) -> None:
    out, x = w.array("out", "cdiv(n, T)"), w.array("x", "n")
    at, ok = _offsets(w, i)
    w.text.add(f"tl.store({out} + {i}, tl.sum(tl.load({x} + {at}, mask={ok}, other=0.0), axis=0))")


def _row(w: _Writer, i: str) -> None:
    """Tile `i` is a row of a matrix: as many rows as tiles."""
    w.number("columns")
    pitch = w.rng.choice(("columns", "pitch"))
    if pitch == "pitch":
        w.number("pitch", "pitch >= columns")
    out = w.array("out", f"(cdiv(n, T) - 1) * {pitch} + columns")
    w.text.add(f"row = {out} + {i} * {pitch}")
    c = w.text.loop("c", "0", "columns", "T")
    at = w.text.let("at", f"{c} + tl.arange(0, T)")
    w.text.add(f"tl.store(row + {at}, {_value(w, '(T,)')}, mask={at} < columns)")


def _block_pointer(w: _Writer, i: str) -> None:
    out = w.array("out", "n")
    w.text.add(
        f"p = tl.make_block_ptr({out}, shape=(n,), strides=(1,), offsets=({i} * T,),"
        " block_shape=(T,), order=(0,))"
    )
    w.text.add("tl.store(p, tl.zeros((T,), dtype=tl.float32), boundary_check=(0,))")


def _atomic(w: _Writer, i: str) -> None:
    out, total = w.array("out", "n"), w.array("total", "1")
    at, ok = _offsets(w, i)
    w.text.add(f"tl.store({out} + {at}, 1.0, mask={ok})")
    w.text.add(f"tl.atomic_add({total}, 1.0)")


_LINE: tuple[_Line, ...] = (_store, _store, _copy, _copy, _in_place, _moved_pointer, _strided, _two_halves)
_LINE += (_interleaved, _sum_of_tile, _row, _block_pointer, _atomic)


# ---- two axes ------------------------------------------------------------------------------------------------

_Table = Callable[[_Writer, str, str], None]


def _matrix(w: _Writer, name: str) -> tuple[str, str]:
    """The memory of an M by N matrix, and its offsets as a format of a row `r` and a column `c`."""
    match w.rng.randrange(3):
        case 0:
            pitch = w.number("pitch", "pitch >= N")
            return w.array(name, f"(M - 1) * {pitch} + N"), f"{{r}} * {pitch} + {{c}}"
        case 1:
            return w.array(name, "M * N"), "{r} * N + {c}"
        case _:
            return w.array(name, "M * N"), w.rng.choice(("{c} * M + {r}", "{r} + {c} * M"))


def _tile(w: _Writer, m: str, n: str) -> tuple[str, str, str]:
    """Row and column of each element, and which exist."""
    r, c = w.text.name("r"), w.text.name("c")
    w.text.add(f"{r} = {m} * T + tl.arange(0, T)")
    w.text.add(f"{c} = {n} * S + tl.arange(0, S)")
    ok = w.text.let("ok", f"({r}[:, None] < M) & ({c}[None, :] < N)")
    return f"{r}[:, None]", f"{c}[None, :]", ok


def _store_tile(w: _Writer, m: str, n: str) -> None:
    out, form = _matrix(w, "out")
    r, c, ok = _tile(w, m, n)
    w.text.add(f"tl.store({out} + {form.format(r=r, c=c)}, {_value(w, '(T, S)')}, mask={ok})")


def _copy_tile(w: _Writer, m: str, n: str) -> None:
    out, form = _matrix(w, "out")
    x, other = _matrix(w, "x")
    r, c, ok = _tile(w, m, n)
    w.text.add(f"v = tl.load({x} + {other.format(r=r, c=c)}, mask={ok}, other=0.0)")
    w.text.add(f"tl.store({out} + {form.format(r=r, c=c)}, v, mask={ok})")


def _tile_in_place(w: _Writer, m: str, n: str) -> None:
    out, form = _matrix(w, "out")
    r, c, ok = _tile(w, m, n)
    w.text.add(f"p = {out} + {form.format(r=r, c=c)}")
    w.text.add(f"tl.store(p, tl.load(p, mask={ok}, other=0.0) + 1.0, mask={ok})")


def _product(w: _Writer, m: str, n: str) -> None:
    out, form = _matrix(w, "out")
    w.number("K")
    a, b = w.array("a", "M * K"), w.array("b", "K * N")
    r, c, ok = _tile(w, m, n)
    w.text.add("acc = tl.zeros((T, S), dtype=tl.float32)")
    w.text.add("k = tl.arange(0, T)")
    w.text.add("for step in range(0, tl.cdiv(K, T)):")
    w.text.add(f"    u = tl.load({a} + {r} * K + k[None, :], mask=({r} < M) & (k[None, :] < K), other=0.0)")
    w.text.add(f"    v = tl.load({b} + k[:, None] * N + {c}, mask=(k[:, None] < K) & ({c} < N), other=0.0)")
    w.text.add("    acc = tl.dot(u, v, acc)")
    w.text.add("    k += T")
    w.text.add(f"tl.store({out} + {form.format(r=r, c=c)}, acc, mask={ok})")


def _block_pointers(w: _Writer, m: str, n: str) -> None:
    out = w.array("out", "M * N")
    w.text.add(
        f"p = tl.make_block_ptr({out}, shape=(M, N), strides=(N, 1), offsets=({m} * T, {n} * S),"
        " block_shape=(T, S), order=(1, 0))"
    )
    w.text.add("tl.store(p, tl.zeros((T, S), dtype=tl.float32), boundary_check=(0, 1))")


_TABLE: tuple[_Table, ...] = (_store_tile, _store_tile, _copy_tile, _tile_in_place, _product, _block_pointers)

# Ways that read a table of integers have a spelling of their own for it.
_UNREAD = ("_table", "_segments", "_prefix_sum", "_pairs")


# ---- the whole -----------------------------------------------------------------------------------------------


def triton_source(seed: int) -> Source:
    """The kernel of a seed. Sizes are not negative in usual launches."""
    for attempt in range(100):
        rng = random.Random(seed * 100 + attempt)  # reproducible choices, no secrets
        writer = _Writer(Text(rng))
        share, sizes = _line(writer) if rng.random() < 0.55 else _table(writer)
        if not any(table in writer.text.params for table in TABLES_OF_INTEGERS):
            return _finished(writer, share, sizes)
    raise AssertionError(f"no kernel for {seed}")


def _line(w: _Writer) -> tuple[Share, tuple[str, ...]]:
    w.text.params["n"] = ""
    w.text.add(f"tiles = {_tiles(w.rng, 'n', 'T')}")
    ways = [way for way in LINES if way.__name__ not in _UNREAD]
    share = w.rng.choice(ways)(w.text, "tiles", "cdiv(n, T)")
    w.rng.choice(_LINE)(w, *share.indices)
    return share, ("T",)


def _table(w: _Writer) -> tuple[Share, tuple[str, ...]]:
    w.text.params |= {"M": "", "N": ""}
    w.text.add(f"rows = {_tiles(w.rng, 'M', 'T')}")
    w.text.add(f"cols = {_tiles(w.rng, 'N', 'S')}")
    ways = [way for way in TABLES if way.__name__ not in _UNREAD]
    share = w.rng.choice(ways)(w.text, "rows", "cols", ("cdiv(M, T)", "cdiv(N, S)"))
    w.rng.choice(_TABLE)(w, *share.indices)
    return share, ("T", "S")


def _tiles(rng: random.Random, extent: str, size: str) -> str:
    return rng.choice((f"tl.cdiv({extent}, {size})", f"({extent} + {size} - 1) // {size}"))


def _finished(w: _Writer, share: Share, sizes: tuple[str, ...]) -> Source:
    text = w.text
    names = [
        *w.arrays,
        *(f"{n}{a}" for n, a in text.params.items()),
        *(f"{s}: ct.Constant[int]" for s in sizes),
    ]
    contracts = [f"# tilecheck: requires {r} -- as the author says" for r in text.requires]
    constants = dict(line.split(" = ") for line in text.outside if not line.startswith("def "))
    outside = [_outside(block) for block in text.outside]
    head = ["import triton\nimport triton.language as tl\n", *outside, *contracts]
    lines = [*head, "@triton.jit", f"def kernel({', '.join(names)}):", *text.lines]
    whole = "\n".join(lines) + "\n"
    for ours, theirs in _SPELLINGS:
        whole = whole.replace(ours, theirs)
    scalars = [(n, bool(a)) for n, a in text.params.items()]
    w.agreements += [f"{name} >= 0" for name in ("n", "M", "N", "K", "columns") if name in text.params]
    return Source(
        whole,
        tuple((name, 1) for name in w.arrays),
        (*scalars, *((size, True) for size in sizes)),
        sizes,
        tuple(text.requires),
        tuple(w.agreements),
        tuple(re.sub(r"\b[A-Z]{2,}\b", lambda m: constants[m.group()], axis) for axis in share.host),
        share.way,
        "triton",
    )


def _outside(block: str) -> str:
    """A constant of the module, or a function that kernels call."""
    if block.startswith("def "):
        return f"@triton.jit\n{block}\n"
    name, _, value = block.partition(" = ")
    return f"{name} = tl.constexpr({value})\n"
