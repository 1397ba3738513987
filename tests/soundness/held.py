"""The verdict on a text, held against launches of it that are run as plain Python (`soundness_plain`)."""

from __future__ import annotations

import ast
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from soundness_mutate import mutant
from soundness_plain import Endless, Memory, Refused, compiled
from soundness_plain import run as run_cutile
from soundness_shares import TABLES_OF_INTEGERS
from soundness_sources import Source, source
from soundness_texts import Reading, Unreadable, parsed
from soundness_triton_plain import run as run_triton

from tilecheck import check_source
from tilecheck.model import Report, Witness
from tilecheck.options import Options

_ATTEMPTS = 4  # for each launch that is wanted
_CHANGES = 6  # of one launch, to meet the conditions
_LARGEST_GRID = 6

# Runs the kernel of this name with a grid and arguments.
Run = Callable[[str, Sequence[int], Mapping[str, Any]], Memory]


def _stand_in(of: Source, text: str) -> Run:
    return partial({"cutile": run_cutile, "triton": run_triton}[of.language], compiled(text))


Values = dict[str, int]  # by the names that conditions use: `grid[0]`, `out.shape[1]`, `T`


@dataclass(frozen=True)
class Held:
    """A verdict and what speaks against it.

    `problem` refutes it. `wrong` is a launch as a host makes them, with contracts kept and arrays alike, that
    goes wrong; `usual` says whether all such launches meet the conditions.
    """

    verdict: str
    reason: str
    conditions: tuple[str, ...]
    launches: int
    problem: str | None
    wrong: str | None
    usual: bool

    @property
    def safe(self) -> bool:
        return self.verdict in ("proved", "conditional")


@dataclass(frozen=True)
class Attacked:
    """A kernel of `soundness_sources`, with `what` small changes, and what became of it."""

    source: Source
    text: str
    what: str
    result: Held


LAUNCHES = 18


def attacked(
    number: int,
    count: int = LAUNCHES,
    draw: Callable[[int], Source] = source,
    oracle: Callable[[str], Run] | None = None,
) -> Attacked | None:
    """The kernel that `draw` makes of a number, with changes if the number is odd; None when nothing in it can
    be changed. `oracle` makes of a text what runs its launches, instead of the stand-in."""
    drawn = draw(number)
    text, what = drawn.text, ""
    if number % 2:
        changed = mutant(text.encode(), random.Random(number))
        if changed is None:
            return None
        text, what = changed.source.decode(), changed.what
    run = None if oracle is None else oracle(text)
    return Attacked(drawn, text, what, hold(drawn, text, str(number), count, run=run))


def hold(
    of: Source, text: str, seed: str, count: int, options: Options | None = None, run: Run | None = None
) -> Held:
    """Verify `text`, which is `of.text` or a change of it, and run launches of it."""
    run, axes, rng = run or _stand_in(of, text), _axes(text), random.Random(seed)
    if _is_endless(of, run, axes, rng):
        return Held("endless", "", (), 0, None, None, False)
    report = check_source(text, "kernel.py", options)
    [kernel] = report.kernels
    if kernel.internal_error is not None:
        return Held("internal", "", (), 0, kernel.internal_error, None, False)
    held = Held(kernel.verdict.value, kernel.reason or "", kernel.conditions, 0, None, None, True)
    if held.verdict == "violated":
        held = replace(held, problem=_unseen(of, run, report))
    said = (*kernel.conditions, *kernel.requires)
    alike = (*of.requires, *of.agreements)
    for number in range(count):
        as_host = number % 3 == 0 or not held.safe
        launch = _drawn(of, axes, alike if as_host else said, rng, as_host=as_host)
        memory = None if launch is None else _ran(run, launch)
        if launch is None or memory is None:
            continue
        kept = held.safe and all(map(launch.reading.holds, said))
        found = [*memory.undefined, *memory.races()]
        shown = f"{launch}: {found[:2]}" if found else None
        held = replace(held, launches=held.launches + 1, usual=held.usual and (kept or not as_host))
        if as_host:
            held = replace(held, wrong=held.wrong or shown)
        if kept and shown is not None:
            held = replace(held, problem=held.problem or f"{held.verdict} if {said}\n  {shown}")
    return held


def host_launches(of: Source, text: str, seed: str, count: int) -> Iterator[tuple[Launch, Memory]]:
    """Launches as a host makes them, with contracts kept and arrays alike, and what they touch."""
    run, axes, rng = _stand_in(of, text), _axes(text), random.Random(seed)
    for _ in range(count):
        launch = _drawn(of, axes, (*of.requires, *of.agreements), rng, as_host=True)
        memory = None if launch is None else _ran(run, launch)
        if launch is not None and memory is not None:
            yield launch, memory


# ---- launches ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Launch:
    """A launch with all its values."""

    grid: tuple[int, ...]
    arguments: Mapping[str, Any]

    @property
    def reading(self) -> Reading:
        return Reading(self.grid, self.arguments)

    def __str__(self) -> str:
        shown = {
            n: a if isinstance(a, int) else a.tolist() if n in TABLES_OF_INTEGERS else a.shape
            for n, a in self.arguments.items()
        }
        return f"grid {self.grid}, {shown}"


def _axes(text: str) -> tuple[int, ...]:
    """The axes of the grid that a text mentions; the others have one block (standing obligation S3)."""
    return tuple(k for k in range(3) if re.search(rf"\b(bid|num_blocks|program_id|num_programs)\({k}\)", text))


def _is_endless(of: Source, run: Run, axes: Sequence[int], rng: random.Random) -> bool:
    """Whether a loop seems to run for ever: the replay of such a kernel takes minutes and shows nothing."""
    for number in range(16):
        launch = _drawn(of, axes, of.requires, rng, as_host=number % 2 == 0)
        try:
            if launch is not None:
                run("kernel", launch.grid, launch.arguments)
        except Endless:
            return True
        except Refused:
            continue
    return False


def _ran(run: Run, launch: Launch) -> Memory | None:
    given = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in launch.arguments.items()}
    given = {n: _same_layout(launch.arguments[n], a) for n, a in given.items()}
    try:
        return run("kernel", launch.grid, given)
    except Refused:
        return None


def _same_layout(one: Any, copy: Any) -> Any:
    """A copy with the strides of the original."""
    if not isinstance(one, np.ndarray) or one.strides == copy.strides:
        return copy
    span = (
        1 + sum((n - 1) * (s // one.itemsize) for n, s in zip(one.shape, one.strides, strict=True))
        if one.size
        else 1
    )
    view = np.lib.stride_tricks.as_strided(np.zeros(span, one.dtype), one.shape, one.strides)
    view[...] = one
    return view


def _drawn(
    of: Source, axes: Sequence[int], texts: Sequence[str], rng: random.Random, *, as_host: bool
) -> Launch | None:
    """A launch for which `texts` hold; `as_host` takes the grid that a host function computes."""
    for _ in range(_ATTEMPTS):
        values = _values(of, axes, rng)
        for _ in range(_CHANGES):
            launch = _launch(of, axes, values, rng)
            if as_host:
                hosts = _with_host_grid(of, axes, launch)
                if hosts is None:
                    values = _values(of, axes, rng)
                    continue
                launch = hosts
            broken = [t for t in texts if not _holds(t, launch)]
            if not broken:
                return launch
            for text in broken:
                _mend(text, values, launch.reading, rng)
    return None


def _holds(text: str, launch: Launch) -> bool:
    try:
        return launch.reading.holds(text)
    except Unreadable:
        return False


def _values(of: Source, axes: Sequence[int], rng: random.Random) -> Values:
    values = {f"grid[{k}]": rng.randint(1, 4) for k in axes}
    values |= {
        name: rng.choice((1, 2, 2, 4)) if name in of.sizes else rng.randint(-1, 5) for name, _ in of.scalars
    }
    for name, rank in of.arrays:
        for k in range(rank):
            tile = values[of.sizes[k]] if k < len(of.sizes) and name not in TABLES_OF_INTEGERS else 1
            few = rng.randint(0, 4) * tile + rng.choice((0, 0, 1, -1))
            values[f"{name}.shape[{k}]"] = max(0, few if rng.random() < 0.7 else rng.randint(0, 9))
    return values


def _launch(of: Source, axes: Sequence[int], values: Values, rng: random.Random) -> Launch:
    grid = tuple(min(_LARGEST_GRID, max(1, values[f"grid[{k}]"])) if k in axes else 1 for k in range(3))
    given: dict[str, Any] = {name: values[name] for name, _ in of.scalars}
    shapes = {
        n: tuple(min(200, max(0, values[f"{n}.shape[{k}]"])) for k in range(rank)) for n, rank in of.arrays
    }
    tables = _tables(of, {n: shape for n, shape in shapes.items() if n in TABLES_OF_INTEGERS}, rng)
    arrays = {n: tables[n] if n in tables else _array(shape, rng) for n, shape in shapes.items()}
    return Launch(grid, given | arrays)


def _array(shape: tuple[int, ...], rng: random.Random) -> np.ndarray[Any, Any]:
    """Floats; now and then the rows are padded."""
    if len(shape) == 2 and rng.random() < 0.2:
        return np.zeros((shape[0], shape[1] + 2))[:, : shape[1]]
    return np.zeros(shape)


def _tables(of: Source, shapes: Mapping[str, tuple[int, ...]], rng: random.Random) -> dict[str, Any]:
    """Tables of integers that keep the contracts."""
    said, found = " ".join(of.requires), {}
    for name, shape in shapes.items():
        cells = [rng.randint(0, 9) for _ in range(math.prod(shape))]
        found[name] = np.array(cells, np.int64).reshape(shape)
    length = shapes.get("t", (0,))[0]
    if "permutation(t)" in said:
        found["t"] = rng.sample(range(length), length)
    elif "distinct(t)" in said:
        found["t"] = rng.sample(range(length + 4), length)
    elif "increasing(t)" in said:
        found["t"].sort()
    elif "prefix_sum(t" in said:
        found["counts"] = np.array([rng.randint(0, 3) for _ in range(shapes["counts"][0])], np.int64)
        found["t"] = np.concatenate([[0], np.cumsum(found["counts"])])
    elif "distinct_pairs" in said:
        rows = [(m, n) for m in range(5) for n in range(5)]
        found["pairs"] = np.array(rng.sample(rows, min(len(rows), shapes["pairs"][0]))).reshape(-1, 2)
    return {name: np.array(table, np.int64) for name, table in found.items()}


def _with_host_grid(of: Source, axes: Sequence[int], launch: Launch) -> Launch | None:
    """The grid that a host function computes from the arguments; None for an empty one, which is no launch."""
    counts = [launch.reading.number(parsed(g)) for g in of.grid]
    if not all(counts):
        return None
    own = [n or 1 for n in counts] + [1, 1]
    return Launch(tuple(own[k] if k in axes else 1 for k in range(3)), launch.arguments)


def _mend(text: str, values: Values, reading: Reading, rng: random.Random) -> None:
    """Change one value so that a comparison may come true."""
    node = parsed(text)
    if isinstance(node, ast.BoolOp):
        node = rng.choice(node.values)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    name, target = _value_name(node.left), reading.number(node.comparators[0])
    if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod):
        divisor = reading.number(node.left.right)
        if divisor:
            values[ast.unparse(node.left.left)] = divisor * rng.randint(1, 3)
    elif name in values and target is not None:
        strict = isinstance(node.ops[0], ast.Lt | ast.Gt)
        if isinstance(node.ops[0], ast.LtE | ast.Lt):
            target = rng.choice((target - strict, rng.randint(0, max(0, target))))
        elif isinstance(node.ops[0], ast.GtE | ast.Gt):
            target += strict + rng.choice((0, 0, 1))
        values[name] = target


def _value_name(node: ast.expr) -> str:
    """Of flat memory the length is the one extent."""
    text = ast.unparse(node)
    return re.sub(r"^numel\((\w+)\)$", r"\1.shape[0]", text)


# ---- witnesses -----------------------------------------------------------------------------------------------


def _unseen(of: Source, run: Run, report: Report) -> str | None:
    """Why a witness cannot be seen when its launch is run here; None when each of them can."""
    for finding in report.diagnostics:
        witness = finding.witness
        if witness is None or finding.code.startswith(("TC1", "TC4")) or witness.kind == "overflow":
            continue  # Python's integers have no width
        seen = [_is_seen(witness, launch, run) for launch in _of(witness, of)]
        if not any(seen) and False in seen:
            return f"{finding.code}: no run shows {witness}"
    return None


def _of(witness: Witness, of: Source) -> Iterator[Launch]:
    """The launch of a witness; what it does not say of memory is filled in several ways."""
    grid = (*witness.grid, 1, 1, 1)[:3]
    given: dict[str, Any] = {}
    for name, _ in of.scalars:
        value = witness.values.get(name, 1)
        given[name] = value if isinstance(value, int) else 1
    for fill in ("ramp", "zeros", "ones"):
        for name, rank in of.arrays:
            sizes = [witness.values.get(f"{name}.shape[{k}]", 4) for k in range(rank)]
            shape = tuple(s if isinstance(s, int) else 4 for s in sizes)
            if np.prod(shape) > 1 << 22:
                return
            given[name] = np.zeros(shape)
            if name in TABLES_OF_INTEGERS:
                cells = (
                    np.arange(math.prod(shape)) % 7
                    if fill == "ramp"
                    else np.full(math.prod(shape), fill == "ones")
                )
                shown = witness.values.get(name)
                if isinstance(shown, list):
                    cells[: len(shown)] = shown
                given[name] = cells.astype(np.int64).reshape(shape)
        yield Launch(grid, dict(given))


def _is_seen(witness: Witness, launch: Launch, run: Run) -> bool | None:
    """None for a launch that the compiler refuses, of what only a change has made."""
    memory = _ran(run, launch)
    if memory is None:
        return None
    if witness.kind == "overlap" and len(witness.blocks) > 1:
        return bool(memory.races() or memory.undefined)  # what an undefined value leads to may be a race
    return bool(memory.undefined) or len(witness.iterations or ()) > 1
