"""Ways to share the tiles of an array among blocks: which tiles are this block's, and under which guard.

Every way is safe in all launches as it stands. `Share.host` is the grid that a host function would ask for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TABLES_OF_INTEGERS = {"t": 1, "counts": 1, "pairs": 2}


@dataclass
class Text:
    """Lines of a kernel's body with their depth, and what stands outside it. Mutable: it grows line by line."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    outside: list[str] = field(default_factory=list)  # constants and helper functions of the module
    params: dict[str, str] = field(default_factory=dict)  # scalars and constants, with their annotations
    requires: list[str] = field(default_factory=list)
    names: int = 0
    loops: int = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        self.add(line)
        self.depth += 1

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def let(self, stem: str, value: str) -> str:
        """A name for a value, or the value itself."""
        if self.rng.random() < 0.25 and len(value) < 30:
            return f"({value})"
        name = self.name(stem)
        self.add(f"{name} = {value}")
        return name

    def guard(self, condition: str) -> None:
        """Only where the condition holds: an `if`, or an early return outside loops."""
        if self.loops == 0 and self.rng.random() < 0.35:
            opposite = (
                condition.replace("<", ">=") if condition.count("<") == 1 and "=" not in condition else ""
            )
            self.add(f"if {opposite or f'not ({condition})'}:")
            self.add("    return")
        else:
            self.open(f"if {condition}:")

    def loop(self, stem: str, start: str, stop: str, step: str = "1") -> str:
        """A loop over a range, as `for` or as `while`."""
        name = self.name(stem)
        self.loops += 1
        if self.rng.random() < 0.15:
            self.add(f"{name} = {start} - {step}")
            self.open(f"while {name} + {step} < {stop}:")
            self.add(f"{name} += {step}")
        elif step != "1":
            self.open(f"for {name} in range({start}, {stop}, {step}):")
        else:
            self.open(f"for {name} in range({stop if start == '0' else f'{start}, {stop}'}):")
        return name

    def least(self, a: str, b: str) -> str:
        form = self.rng.choice(
            ("min({a}, {b})", "min({a}, {b})", "ct.minimum({a}, {b})", "({a} if {a} < {b} else {b})")
        )
        return form.format(a=a, b=b)

    def count(self, stem: str = "C") -> str:
        """A number that is at least 1: a literal, a constant of the module, or a parameter with a contract."""
        choice = self.rng.randrange(4)
        if choice < 2:
            return str(self.rng.choice((2, 2, 3, 4)))
        if choice == 2:
            name = stem.upper() + "S"
            if not any(line.startswith(f"{name} =") for line in self.outside):
                self.outside.append(f"{name} = {self.rng.choice((2, 3, 4))}")
            return name
        name = stem.lower()
        if name not in self.params:
            self.params[name] = self.rng.choice((": ct.Constant[int]", ""))
            self.requires.append(f"{name} >= 1")
        return name

    def helper(self, name: str, args: str, body: list[str]) -> None:
        """A function of the module; defined once."""
        if not any(line.startswith(f"def {name}(") for line in self.outside):
            self.outside.append("\n".join([f"def {name}({args}):", *(f"    {line}" for line in body)]))


@dataclass(frozen=True)
class Share:
    """The indices of a tile, the axes of the grid that are read, and the grid that a host would launch."""

    indices: tuple[str, ...]
    host: tuple[str, ...]
    way: str


# ---- one axis ------------------------------------------------------------------------------------------------


def _direct(t: Text, tiles: str, host: str) -> Share:
    i = t.let("i", "ct.bid(0)")
    t.guard(f"{i} < {tiles}")
    return Share((i,), (host,), "direct")


def _reversed(t: Text, tiles: str, host: str) -> Share:
    if t.rng.random() < 0.5:
        t.guard(f"ct.bid(0) < {tiles}")
        return Share((t.let("i", f"{tiles} - 1 - ct.bid(0)"),), (host,), "reversed")
    i = t.let("i", "ct.num_blocks(0) - 1 - ct.bid(0)")
    t.guard(f"{i} < {tiles}")
    return Share((i,), (host,), "reversed")


def _grid_stride(t: Text, tiles: str, host: str) -> Share:
    return Share((t.loop("i", "ct.bid(0)", tiles, "ct.num_blocks(0)"),), ("3",), "grid stride")


def _grid_stride_two(t: Text, tiles: str, host: str) -> Share:
    start = t.let(
        "b",
        t.rng.choice(
            ("ct.bid(0) * ct.num_blocks(1) + ct.bid(1)",) * 2 + ("ct.bid(1) * ct.num_blocks(0) + ct.bid(0)",)
        ),
    )
    step = t.let("n", "ct.num_blocks(0) * ct.num_blocks(1)")
    return Share((t.loop("i", start, tiles, step),), ("2", "2"), "grid stride, two axes")


def _partition(t: Text, tiles: str, host: str) -> Share:
    per = t.let(
        "per",
        t.rng.choice(
            (f"ct.cdiv({tiles}, ct.num_blocks(0))", f"({tiles} + ct.num_blocks(0) - 1) // ct.num_blocks(0)")
        ),
    )
    start = t.let("start", f"ct.bid(0) * {per}")
    stop = t.least(f"{start} + {per}", tiles)
    return Share((t.loop("i", start, stop),), ("3",), "partition, min")


def _partition_rest(t: Text, tiles: str, host: str) -> Share:
    t.add("b = ct.bid(0)")
    per, rest = t.let("per", f"{tiles} // ct.num_blocks(0)"), t.let("rest", f"{tiles} % ct.num_blocks(0)")
    start = t.let("start", f"b * {per} + {t.least('b', rest)}")
    more = t.rng.choice((f"(1 if b < {rest} else 0)", f"{t.least('b + 1', rest)} - {t.least('b', rest)}"))
    return Share((t.loop("i", start, f"{start} + {per} + {more}"),), ("3",), "partition, rest")


def _partition_scaled(t: Text, tiles: str, host: str) -> Share:
    start = t.let("start", f"ct.bid(0) * {tiles} // ct.num_blocks(0)")
    stop = t.let("stop", f"(ct.bid(0) + 1) * {tiles} // ct.num_blocks(0)")
    return Share((t.loop("i", start, stop),), ("3",), "partition, scaled")


def _chunks(t: Text, tiles: str, host: str) -> Share:
    size = t.count("chunk")
    if t.rng.random() < 0.5:
        k = t.loop("k", "0", size)
        i = t.let("i", f"ct.bid(0) * {size} + {k}")
        t.guard(f"{i} < {tiles}")
    else:
        start = t.let("start", f"ct.bid(0) * {size}")
        i = t.loop("i", start, t.least(f"{start} + {size}", tiles))
    return Share((i,), (f"cdiv({host}, {size})",), "chunks")


def _spread(t: Text, tiles: str, host: str) -> Share:
    by = t.count("apart")
    i = t.let("i", f"ct.bid(0) * {by}")
    t.guard(f"{i} < {tiles}")
    return Share((i,), (f"cdiv({host}, {by})",), "spread")


def _flat(t: Text, tiles: str, host: str) -> Share:
    form = t.rng.choice(
        ("ct.bid(0) * ct.num_blocks(1) + ct.bid(1)", "ct.bid(1) * ct.num_blocks(0) + ct.bid(0)")
    )
    i = t.let("i", form)
    t.guard(f"{i} < {tiles}")
    return Share((i,), ("2", f"cdiv({host}, 2)"), "flat, two axes")


def _nested(t: Text, tiles: str, host: str) -> Share:
    size = t.count("chunk")
    o = t.loop("o", "ct.bid(0)", f"ct.cdiv({tiles}, {size})", "ct.num_blocks(0)")
    if t.rng.random() < 0.5:
        k = t.loop("k", "0", size)
        i = t.let("i", f"{o} * {size} + {k}")
        t.guard(f"{i} < {tiles}")
    else:
        i = t.loop("i", f"{o} * {size}", t.least(f"({o} + 1) * {size}", tiles))
    return Share((i,), ("2",), "nested chunks")


def _table(t: Text, tiles: str, host: str) -> Share:
    t.params["t"] = ""
    t.requires += [f"{t.rng.choice(('distinct', 'permutation'))}(t)", "within(t, 0, 1000)"]
    read = t.rng.choice(("ct.gather(t, ct.bid(0)).item()", "ct.load(t, index=(ct.bid(0),), shape=()).item()"))
    t.guard("ct.bid(0) < t.shape[0]")
    i = t.name("i")
    t.add(f"{i} = {read}")
    t.guard(f"0 <= {i} and {i} < {tiles}")
    return Share((i,), ("t.shape[0]",), "table, distinct")


def _segments(t: Text, tiles: str, host: str) -> Share:
    t.params["t"] = ""
    t.requires += ["increasing(t)", "within(t, 0, 1000)"]
    t.guard("ct.bid(0) + 1 < t.shape[0]")
    start, stop = t.name("start"), t.name("stop")
    t.add(f"{start} = ct.gather(t, ct.bid(0)).item()")
    t.add(f"{stop} = ct.gather(t, ct.bid(0) + 1).item()")
    i = t.loop("i", f"max({start}, 0)", t.least(stop, tiles))
    return Share((i,), ("t.shape[0]",), "segments, increasing")


def _prefix_sum(t: Text, tiles: str, host: str) -> Share:
    t.params |= {"t": "", "counts": ""}
    t.requires += ["prefix_sum(t, of=counts)", "within(t, 0, 1000)", "within(counts, 0, 1000)"]
    t.guard("ct.bid(0) < counts.shape[0]")
    start, length = t.name("start"), t.name("length")
    t.add(f"{start} = ct.gather(t, ct.bid(0)).item()")
    t.add(f"{length} = ct.gather(counts, ct.bid(0)).item()")
    if t.rng.random() < 0.5:
        i = t.loop("i", start, t.least(f"{start} + {length}", tiles))
    else:
        k = t.loop("k", "0", length)
        i = t.let("i", f"{start} + {k}")
        t.guard(f"{i} < {tiles}")
    return Share((i,), ("counts.shape[0]",), "segments, prefix sum")


def _dealt(t: Text, tiles: str, host: str) -> Share:
    by = t.count("dies")
    per = t.let("per", f"ct.cdiv(ct.num_blocks(0), {by})")
    i = t.let("i", f"(ct.bid(0) % {by}) * {per} + ct.bid(0) // {by}")
    t.guard(f"{i} < {tiles}")
    return Share((i,), (host,), "dealt")


def _parity(t: Text, tiles: str, host: str) -> Share:
    t.add("b = ct.bid(0)")
    half = t.let("half", "(ct.num_blocks(0) + 1) // 2")
    i = t.name("i")
    if t.rng.random() < 0.5:
        t.add(f"{i} = b // 2 if b % 2 == 0 else {half} + b // 2")
    else:
        t.add(f"{i} = b // 2")
        t.add("if b % 2 == 1:")
        t.add(f"    {i} = {half} + b // 2")
    t.guard(f"{i} < {tiles}")
    return Share((i,), (host,), "parity")


def _joined(t: Text, tiles: str, host: str) -> Share:
    d = t.count("d")
    i = t.let("i", f"ct.bid(0) // {d} * {d} + ct.bid(0) % {d}")
    t.guard(f"{i} < {tiles}")
    return Share((i,), (host,), "joined digits")


def _helped(t: Text, tiles: str, host: str) -> Share:
    t.helper("place", "b, n", ["if b < n:", "    return n - 1 - b", "return b"])
    i = t.let("i", f"place(ct.bid(0), {tiles})")
    t.guard(f"{i} < {tiles}")
    return Share((i,), (host,), "helper")


LINES = (_direct, _direct, _reversed, _grid_stride, _grid_stride, _grid_stride_two, _partition, _partition)
LINES += (
    _partition_rest,
    _partition_scaled,
    _chunks,
    _chunks,
    _spread,
    _flat,
    _nested,
    _table,
    _segments,
    _prefix_sum,
)
LINES += (_dealt, _parity, _joined, _helped)


# ---- two axes ------------------------------------------------------------------------------------------------


def _pair(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    if t.rng.random() < 0.5:
        m, n, grid = t.let("m", "ct.bid(0)"), t.let("n", "ct.bid(1)"), host
    else:
        m, n, grid = t.let("m", "ct.bid(1)"), t.let("n", "ct.bid(0)"), (host[1], host[0])
    if t.rng.random() < 0.3:
        t.guard(f"{m} < {rows}")
        m = t.let("m", f"{rows} - 1 - {m}")
    else:
        t.guard(f"{m} < {rows}")
    t.guard(f"{n} < {cols}")
    return Share((m, n), grid, "pair")


def _start(t: Text, rows: str, cols: str, host: tuple[str, str]) -> tuple[str, str, str]:
    """A number below rows * cols, its grid, and how it came about."""
    if t.rng.random() < 0.4:
        return t.loop("t", "ct.bid(0)", f"{rows} * {cols}", "ct.num_blocks(0)"), "3", ", persistent"
    b = t.let("b", "ct.bid(0)")
    t.guard(f"{b} < {rows} * {cols}")
    return b, f"{host[0]} * {host[1]}", ""


def _divmod(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    b, grid, how = _start(t, rows, cols, host)
    if t.rng.random() < 0.5:
        m = t.let("m", f"{b} // {cols}")
        n = t.let(
            "n", t.rng.choice((f"{b} % {cols}", f"{b} - {b} // {cols} * {cols}", f"{cols} - 1 - {b} % {cols}"))
        )
    else:
        n = t.let("n", f"{b} // {rows}")
        m = t.let("m", t.rng.choice((f"{b} % {rows}", f"{rows} - 1 - {b} % {rows}")))
    return Share((m, n), (grid,), f"divmod{how}")


def _snake(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    b, grid, how = _start(t, rows, cols, host)
    m, step = t.let("m", f"{b} // {cols}"), t.let("s", f"{b} % {cols}")
    n = t.name("n")
    t.add(f"{n} = {cols} - 1 - {step} if {m} % 2 == 1 else {step}")
    return Share((m, n), (grid,), f"snake{how}")


def _grouped(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    group = t.count("group")
    by_columns = t.rng.random() < 0.25
    if by_columns:
        rows, cols = cols, rows
    b, grid, how = _start(t, rows, cols, host)
    if t.rng.random() < 0.2:
        body = [
            "in_group = height * cols",
            "first = t // in_group * height",
            "size = min(rows - first, height)",
        ]
        t.helper(
            "grouped",
            "t, rows, cols, height",
            [*body, "return first + t % in_group % size, t % in_group // size"],
        )
        m, n = t.name("m"), t.name("n")
        t.add(f"{m}, {n} = grouped({b}, {rows}, {cols}, {group})")
    else:
        wide = t.let("wide", f"{group} * {cols}")
        first = t.let("first", f"{b} // {wide} * {group}")
        size = t.let("size", t.least(f"{rows} - {first}", group))
        spelling = t.rng.randrange(3)
        inside = t.let("inside", f"{b} % {wide}" if spelling < 2 else f"{b} - {b} // {wide} * {wide}")
        m = t.let("m", f"{first} + {b if spelling == 1 else inside} % {size}")
        n = t.let("n", f"{inside} // {size}")
    return Share((n, m) if by_columns else (m, n), (grid,), f"grouped{how}")


def _rows(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    i = t.loop("i", "ct.bid(0)", rows, "ct.num_blocks(0)")
    if t.rng.random() < 0.5:
        j, grid = t.loop("j", "0", cols), ("2",)
    else:
        j, grid = t.loop("j", "ct.bid(1)", cols, "ct.num_blocks(1)"), ("2", "2")
    return Share((i, j), grid, "rows")


def _row_of_one(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    i = t.let("i", "ct.bid(0)")
    t.guard(f"{i} < {rows}")
    j = t.loop("j", "0", cols)
    j = t.let("j", f"{cols} - 1 - {j}") if t.rng.random() < 0.3 else j
    return Share((i, j), (host[0],), "row of one")


def _column_chunks(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    size = t.count("chunk")
    i = t.let("i", "ct.bid(0)")
    t.guard(f"{i} < {rows}")
    k = t.loop("k", "0", size)
    j = t.let("j", f"ct.bid(1) * {size} + {k}")
    t.guard(f"{j} < {cols}")
    return Share((i, j), (host[0], f"cdiv({host[1]}, {size})"), "column chunks")


def _pairs(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    t.params["pairs"] = ""
    t.requires += ["distinct_pairs(pairs)", "within(pairs, 0, 1000)"]
    t.guard("ct.bid(0) < pairs.shape[0]")
    m, n = t.name("m"), t.name("n")
    t.add(f"{m} = ct.gather(pairs, (ct.bid(0), 0)).item()")
    t.add(f"{n} = ct.gather(pairs, (ct.bid(0), 1)).item()")
    t.guard(f"0 <= {m} and {m} < {rows} and 0 <= {n} and {n} < {cols}")
    return Share((m, n), ("pairs.shape[0]",), "pairs, distinct")


def _line_of_two(t: Text, rows: str, cols: str, host: tuple[str, str]) -> Share:
    """Any way to share one axis, for the rows, and a loop over the columns."""
    share = t.rng.choice(LINES)(t, rows, host[0])
    j = t.loop("j", "0", cols)
    return Share((share.indices[0], j), share.host, f"{share.way}, columns")


TABLES = (_pair, _pair, _divmod, _divmod, _snake, _grouped, _grouped, _grouped, _rows, _row_of_one)
TABLES += (_pairs, _column_chunks, _line_of_two, _line_of_two)
