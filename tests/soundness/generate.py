"""Random kernels over a small grammar: integer arithmetic on scalars and tiles, loops, branches, every access.

They compute nothing of use. They exist so that what the front end makes of arithmetic, control flow, shapes
and memory is held against the reference backend in combinations that nobody thought of.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

HEADER = """import cuda.tile as ct


def pick(x, y):
    if x < y:
        return x + 1
    return y


def both(x, y):
    z = x * 2
    if y > 1:
        z = z + y
    else:
        z = z - 1
    return z, y


@ct.kernel
def kernel(a, t, w, m, out, grid2, s, T: ct.Constant[int], C: ct.Constant[int]):
"""
SCALARS = ("s", "T", "C", "a.shape[0]", "m.shape[1]", "ct.num_blocks(0)", "ct.bid(0)", "ct.bid(1)")
ROWS, COLUMNS = 4, 2  # of the tiles


@dataclass
class Writer:
    """Writes one kernel. Mutable: lines and names grow as statements are drawn."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    scalars: list[str] = field(default_factory=list)
    tiles: list[str] = field(default_factory=list)
    floats: list[str] = field(default_factory=list)  # tiles of `a`, whose type is not known
    loops: int = 0
    names: int = 0
    early: bool = False  # whether a loop may end before its range does

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # ---- expressions -------------------------------------------------------------------------------------

    def scalar(self, size: int = 2) -> str:
        rng = self.rng
        if size == 0 or rng.random() < 0.25:
            pool = [*self.scalars * 2, *SCALARS, "ct.bid(0)", "ct.bid(0)", str(rng.randint(0, 3))]
            return rng.choice(pool)
        x, y = self.scalar(size - 1), self.scalar(size - 1)
        positive = rng.choice(("2", "3", "T", f"max({y}, 1)"))
        return rng.choice(
            (
                f"({x} + {y})",
                f"({x} - {y})",
                f"({x} * {rng.choice(('2', '3', 'T', y))})",
                f"({x} // {positive})",
                f"({x} % {positive})",
                f"min({x}, {y})",
                f"max({x}, {y})",
                f"({x} if {self.test(size - 1)} else {y})",
                f"ct.cdiv({x}, {positive})",
                f"pick({x}, {y})",
                f"both({x}, {y})[0]",
                f"({x} & 3)",
                f"({x} >> 1)",
                f"ct.load(t, index=({self.inside('t', size - 1)},), shape=()).item()",
                f"ct.load(w, index=({self.inside('w', size - 1)},), shape=()).item()",
                f"ct.gather(t, {x}).item()",
                f"ct.astype(ct.gather(a, {x}), ct.int32).item()",
            )
        )

    def inside(self, array: str, size: int) -> str:
        """An index that is usually inside."""
        return f"(({self.scalar(size)}) % {array}.shape[0])" if self.rng.random() < 0.6 else "ct.bid(0)"

    def test(self, size: int = 1) -> str:
        x, y = self.scalar(size), self.scalar(size)
        plain = f"{x} {self.rng.choice(('<', '<=', '==', '!=', '>', '>='))} {y}"
        if size == 0 or self.rng.random() < 0.7:
            return plain
        return self.rng.choice(
            (f"({plain} and {self.test(0)})", f"({plain} or {self.test(0)})", f"(not {plain})")
        )

    def row(self, size: int = 2) -> str:
        """A tile of ROWS integers."""
        rng = self.rng
        if size == 0 or rng.random() < 0.2:
            return rng.choice([*self.tiles * 2, f"ct.arange({ROWS}, dtype=ct.int32)"])
        x, y = self.row(size - 1), self.row(size - 1)
        return rng.choice(
            (
                f"({x} + {y})",
                f"({x} - {y})",
                f"({x} * {self.scalar(0)})",
                f"({x} + {self.scalar(1)})",
                f"({x} // {rng.choice(('2', '3', 'T'))})",
                f"({x} % {rng.choice(('2', '3', 'T'))})",
                f"ct.minimum({x}, {y})",
                f"ct.maximum({x}, {y})",
                f"ct.where({self.mask(size - 1)}, {x}, {y})",
                f"ct.load(t, index=({self.inside('t', 0)},), shape=({ROWS},))",
                f"ct.load(w, index=({self.inside('w', 0)},), shape=({ROWS},))",
                f"ct.gather(t, {x})",
                f"ct.gather(w, {x})",
                f"ct.gather(t, {x}, mask={self.mask(size - 1)}, padding_value=7)",
                f"ct.astype(ct.gather(a, {x}), ct.int32)",
                f"ct.cat((ct.extract({x}, (1,), shape=(2,)), ct.extract({y}, (0,), shape=(2,))), 0)",
                f"ct.reshape(ct.transpose(ct.reshape({x}, (2, 2))), ({ROWS},))",
                f"ct.reshape({x}[:, None], ({ROWS},))",
                f"ct.extract(ct.cat(({x}, {y}), 0), ({rng.randint(0, 1)},), shape=({ROWS},))",
                f"ct.full(({ROWS},), {self.scalar(1)}, ct.int32)",
                f"ct.astype({x} != {y}, ct.int32)",
                f"ct.reshape(ct.permute(ct.reshape({x}, (2, 1, 2)), (2, 1, 0)), ({ROWS},))",
                f"(-{x})",
                self._twist("-", "-", "+"),
                f"ct.astype({x}, ct.int64)",
            )
        )

    def _twist(self, *operators: str) -> str:
        """A tile against its own elements at other positions."""
        x = self.rng.choice(self.tiles) if self.tiles else self.row(0)
        halves = f"ct.extract({x}, (1,), shape=(2,)), ct.extract({x}, (0,), shape=(2,))"
        turned = f"ct.reshape(ct.transpose(ct.reshape({x}, (2, 2))), ({ROWS},))"
        other = self.rng.choice((f"ct.cat(({halves}), 0)", turned))
        return f"({x} {self.rng.choice(operators)} {other})"

    def between(self) -> str:
        """A mask that no integer meets, over elements of unknown type."""
        x = self.rng.choice(self.floats) if self.floats else f"ct.gather(a, {self.row(0)})"
        x = self.rng.choice((x, x, f"ct.cumsum({x}, 0)", f"ct.sum({x}, 0, keepdims=True)", f"({x} + {x})"))
        low = self.rng.randint(0, 2)
        return f"(({x} > {low}) & ({x} < {low + 1}))"

    def mask(self, size: int = 1) -> str:
        if self.rng.random() < 0.15:
            return self.between()
        if self.rng.random() < 0.15:
            return self._twist("!=", "<", "==")
        x, y = self.row(size), self.row(size) if self.rng.random() < 0.5 else self.scalar(0)
        plain = f"({x} {self.rng.choice(('<', '<=', '==', '!=', '>', '>='))} {y})"
        return plain if self.rng.random() < 0.7 else f"({plain} & ({self.row(0)} >= {self.scalar(0)}))"

    def square(self, size: int = 1) -> str:
        """A tile of ROWS by COLUMNS integers."""
        rng = self.rng
        column = f"ct.arange({COLUMNS}, dtype=ct.int32)[None, :]"
        x = f"{self.row(size)}[:, None]"
        return rng.choice(
            (
                f"({x} * {COLUMNS} + {column})",
                f"({x} + {column} * {self.scalar(0)})",
                f"ct.reshape(ct.cat(({self.row(size)}, {self.row(size)}), 0), ({ROWS}, {COLUMNS}))",
                f"ct.transpose(ct.reshape(ct.cat(({self.row(size)}, {self.row(0)}), 0), ({COLUMNS}, {ROWS})))",
                f"ct.broadcast_to({x}, ({ROWS}, {COLUMNS}))",
                f"ct.load(m, index=({self.scalar(0)} % 2, 0), shape=({ROWS}, {COLUMNS}))",
            )
        )

    # ---- statements --------------------------------------------------------------------------------------

    def program(self) -> None:
        """The whole body."""
        self.line("corner = ct.load(m, index=(0, 0), shape=(1, 1)).item()")
        self.scalars.append("corner")
        self._row()
        self.block(self.rng.randint(2, 6))
        self._access()

    def block(self, count: int) -> None:
        scalars, tiles, floats = list(self.scalars), list(self.tiles), list(self.floats)
        for _ in range(count):
            self.statement()
        if self.depth > 1:
            self.scalars, self.tiles, self.floats = scalars, tiles, floats

    def statement(self) -> None:
        kinds = ["scalar"] * 3 + ["row"] * 2 + ["float"] + ["access"] * 4 + ["again"] * 2
        if self.depth < 4:
            kinds += ["if", "if", "for", "for", "while"]
        if self.loops:
            kinds += ["leave"]
        getattr(self, f"_{self.rng.choice(kinds)}")()

    def _scalar(self) -> None:
        name, value = self.name("v"), self.scalar()
        self.line(f"{name} = {value}")
        self.scalars.append(name)

    def _row(self) -> None:
        name, value = self.name("r"), self.row()
        self.line(f"{name} = {value}")
        self.tiles.append(name)

    def _float(self) -> None:
        name, row = self.name("f"), self.row(1)
        self.line(f"{name} = ct.gather(a, {row})")
        self.floats.append(name)

    def _again(self) -> None:
        if self.floats and self.rng.random() < 0.3:
            name = self.rng.choice(self.floats)
            self.line(f"{name} = {name} + {self.rng.choice(self.floats)}")
            return
        own = [n for n in self.scalars if n.startswith("v")]
        if own and self.rng.random() < 0.7:
            name = self.rng.choice(own)
            self.line(self.rng.choice((f"{name} += {self.scalar(1)}", f"{name} = {self.scalar()}")))
        elif self.tiles:
            name = self.rng.choice(self.tiles)
            self.line(f"{name} = {name} + {self.row(1)}")

    def _if(self) -> None:
        self.line(f"if {self.test()}:")
        self._inner()
        if self.rng.random() < 0.5:
            self.line("else:")
            self._inner()

    def _inner(self) -> None:
        self.depth += 1
        self.block(self.rng.randint(1, 3))
        self.depth -= 1

    def _for(self) -> None:
        name = self.name("i")
        start, stop = self.scalar(0), self.scalar(1)
        ranges = (
            f"range({stop})",
            f"range({self.rng.randint(0, 4)})",
            f"range({start}, {stop})",
            f"range(ct.bid(0), {stop}, ct.num_blocks(0))",
            f"range({start}, {stop}, {self.rng.choice(('2', '3', 'T'))})",
            f"range({stop}, {start}, -1)",
            f"ct.static_iter(range({self.rng.randint(0, 3)}))",
        )
        self.line(f"for {name} in {self.rng.choice(ranges)}:")
        self.scalars.append(name)
        self.loops += 1
        self._inner()
        self.loops -= 1
        self.scalars.remove(name)

    def _while(self) -> None:
        name = self.name("v")
        self.line(f"{name} = {self.rng.choice(('0', 'ct.bid(0)', self.scalar(0)))}")
        self.scalars.append(name)
        self.line(f"while {name} < {self.rng.choice(('3', 'T', self.scalar(0)))}:")
        self.early = True
        self.depth += 1
        if self.rng.random() < 0.5:
            self.line(f"{name} = {name} + {self.rng.choice(('1', '2', 'T'))}")
            self.depth -= 1
            self._inner()
        else:
            self.block(self.rng.randint(1, 2))
            self.line(f"{name} += 1")
            self.depth -= 1

    def _leave(self) -> None:
        self.line(f"if {self.test()}:")
        self.early = True
        self.line("    " + self.rng.choice(("continue", "break", "break", "return")))

    def _access(self) -> None:
        rng = self.rng
        plain = f"{self.scalar(1)}"
        row = self.row()
        text = rng.choice(
            (
                f"ct.store(out, index=({plain},), tile={row})",
                f"ct.store(out, index=({plain},), tile={row}, check_bounds=False)",
                f"ct.store(w, index=({plain},), tile={row})",
                f"ct.store(out, index=({plain},), tile={self.scalar(0)})",
                f"ct.store(grid2, index=({plain}, {self.scalar(0)}), tile={self.square()})",
                f"ct.store(grid2, index=({plain}, {self.scalar(0)}), tile={self.square()}, order=(1, 0))",
                f"ct.scatter(out, {row}, {self.row(0)})",
                f"ct.scatter(out, {row}, 1, mask={self.mask()})",
                f"ct.scatter(out, {row}, 1, mask={self.mask()})",
                f"ct.scatter(grid2, ({row}, {self.row(1)}), 1)",
                self._outer(row),
                f"ct.scatter(grid2, ({row}[:, None], {self.square()}), 1)",
                f"ct.scatter(out, {self.square()}, 1)",
                f"ct.scatter(out, {plain}, {self.scalar(0)})",
                f"ct.atomic_add(w, {row}, 1)",
                f"ct.atomic_add(w, {plain}, 1)",
                f"out.slice(0, {plain}, {plain} + 3).tiled_view(({ROWS},)).store((0,), {row})",
                f"out.tiled_view(({ROWS},), traversal_steps=(2,)).store(({plain},), {row})",
                f"ct.store(out.slice(0, {self.scalar(0)}, out.shape[0]), index=(0,), tile={row})",
                f"out.get_raw_memory().store_offset({row}, 1, mask=({row} >= 0) & ({row} < out.shape[0]))",
                f"ct.store_advanced_indexing(grid2, ({row}, ct.Slice({plain}, {COLUMNS})), {self.square(0)})",
            )
        )
        self.line(text)

    def _outer(self, row: str) -> str:
        """Every pair of lanes, masked by what a tile holds in the one and in the other."""
        x = self.rng.choice(self.tiles) if self.tiles else row
        lane = f"ct.arange({ROWS}, dtype=ct.int32)"
        mask = f"{x}[:, None] {self.rng.choice(('!=', '<', '=='))} {x}[None, :]"
        return f"ct.scatter(grid2, ({lane}[:, None], {lane}[None, :]), 1, mask={mask})"


@dataclass(frozen=True)
class Generated:
    """The text of a kernel named `kernel`; `early` says that a loop of it may end early."""

    text: str
    early: bool


def generated(seed: int) -> Generated:
    """The kernel of a seed."""
    writer = Writer(random.Random(seed))
    writer.program()
    return Generated(HEADER + "\n".join(writer.lines) + "\n", writer.early)
