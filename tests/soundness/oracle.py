"""What a launch did wrong, read off its log alone; and launches that a report calls safe."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
from soundness_launches import Trial, Values, draw, made, started
from soundness_texts import Reading, parsed

from tilecheck.ir.expr import Kind, Symbol, symbols
from tilecheck.ir.kernel import Kernel, extent_symbol, grid_symbol, stride_symbol
from tilecheck.model import KernelReport
from tilecheck.proof.refute.concrete import Concrete, kernel_expressions
from tilecheck.proof.refute.replay_order import Happened
from tilecheck.reference import AccessRecord, UndefinedRecord

_WIDE = ("DEVICE", "SYS")
_CHANGES = 5  # of a launch, to meet the conditions


# ---- what went wrong -----------------------------------------------------------------------------------------


def wrongs(trial: Trial, *, only_races: bool = False) -> Iterator[str]:
    """Every element that two blocks race on, with nothing in this run that orders the two; and everything
    undefined. What else may happen between atomics, `soundness_protocols` looks at."""
    happened = Happened(trial.log)
    touched: dict[tuple[str, int, int], list[tuple[AccessRecord, bool, bool]]] = {}
    for record in trial.log.accesses:
        strong = (record.effect == "atomic" or record.order != "WEAK") and record.scope in _WIDE
        entry = (record, record.effect != "read", strong)
        for offset in _offsets(record, trial):
            touched.setdefault((record.array, record.member or 0, offset), []).append(entry)
    for (array, member, offset), entries in touched.items():
        pair = _race(entries, happened)
        if pair is not None:
            first, second = pair
            yield (
                f"race on {array}[{member}] at offset {offset}:"
                f" {first.effect} by block {first.block} at bytes {first.start}:{first.end},"
                f" {second.effect} by block {second.block} at bytes {second.start}:{second.end}"
            )
    if not only_races:
        yield from (f"undefined: {u}" for u in trial.log.undefined if not _is_idle(u, trial.path))


def _is_idle(undefined: UndefinedRecord, path: str) -> bool:
    """Whether a number that wrapped is given to names alone that its function never reads, as one change to a
    kernel may leave them: overflow counts in what reaches an address or a branch."""
    source = Path(path).read_bytes()
    begins = list(accumulate((len(line) for line in source.splitlines(keepends=True)), initial=0))
    for function in ast.walk(ast.parse(source)):
        if undefined.kind != "overflow" or not isinstance(function, ast.FunctionDef):
            continue
        nodes = list(ast.walk(function))
        read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for node in nodes:
            if not isinstance(node, ast.Assign) or node.end_lineno is None or node.end_col_offset is None:
                continue
            start = begins[node.lineno - 1] + node.col_offset
            if start <= undefined.start and undefined.end <= begins[node.end_lineno - 1] + node.end_col_offset:
                return all(isinstance(t, ast.Name) and t.id not in read for t in node.targets)
    return False


def _offsets(record: AccessRecord, trial: Trial) -> list[int]:
    elements = np.asarray(record.elements, np.int64)
    if record.raw:
        return elements.reshape(-1).tolist()
    held = trial.arrays[record.array]
    array = held[record.member or 0] if isinstance(held, list | tuple) else held
    strides = np.array([s // array.itemsize for s in array.strides], np.int64)
    return (elements @ strides).tolist()


def _race(
    entries: Sequence[tuple[AccessRecord, bool, bool]], happened: Happened
) -> tuple[AccessRecord, AccessRecord] | None:
    if len({e[0].block for e in entries}) < 2:
        return None
    for first, writes, strong in entries:
        for second, _, also in entries if writes else ():
            if first.block != second.block and not (strong and also) and not happened.orders(first, second):
                return first, second
    return None


# ---- launches that should be safe ----------------------------------------------------------------------------


def safe_launches(
    kernel: Kernel, path: str, report: KernelReport, count: int, seed: str
) -> Iterator[tuple[Trial, list[str]]]:
    """Launches that meet the conditions and contracts of a report, with what each did wrong.

    The facts that the front end found are not consulted: they are part of what is tested. The backend
    refuses launches that the compiler refuses.
    """
    rng = random.Random(seed)
    made = 0
    for number in range(12 * count):
        if made == count:
            return
        trial = _launch(kernel, path, (*report.conditions, *report.requires), rng, plain=number % 3 == 0)
        if trial is not None:
            made += 1
            yield trial, list(wrongs(trial))


def _launch(
    kernel: Kernel, path: str, texts: Sequence[str], rng: random.Random, *, plain: bool
) -> Trial | None:
    concrete = draw(kernel, rng, plain=plain, facts=())
    for _ in range(_CHANGES):
        if concrete is None:
            return None
        integers = rng.random() < 0.5
        given = made(kernel, concrete, rng, integers=integers)
        if given is None:
            return None
        grid = concrete.grid(kernel)
        reading = Reading(grid, given)
        broken = [t for t in texts if not reading.holds(t)]
        if not broken:
            return started(kernel, path, concrete, grid, given)
        values = dict(concrete.values)
        for text in broken:
            _mend(parsed(text), values, reading, kernel, rng)
        concrete = Concrete(values, concrete.memory).settled(kernel)
    return None


def _mend(node: ast.expr, values: Values, reading: Reading, kernel: Kernel, rng: random.Random) -> None:
    """Change one value so that a comparison with it may come true."""
    if isinstance(node, ast.BoolOp):
        chosen = node.values if isinstance(node.op, ast.And) else [rng.choice(node.values)]
        for part in chosen:
            _mend(part, values, reading, kernel, rng)
        return
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and isinstance(node.ops[0], ast.Eq):
        symbol, divisor = _symbol(left.left, kernel), reading.number(left.right)
        if symbol is not None and divisor:
            values[symbol] = divisor * rng.randint(1, 3) + (reading.number(right) or 0)
        return
    symbol, target = _symbol(left, kernel), reading.number(right)
    if symbol is not None and target is not None:
        if isinstance(node.ops[0], ast.LtE | ast.Lt):
            target -= isinstance(node.ops[0], ast.Lt)
            target = rng.choice((target, target, rng.randint(1, max(1, target))))
        elif isinstance(node.ops[0], ast.GtE | ast.Gt):
            target += isinstance(node.ops[0], ast.Gt) + rng.choice((0, 0, 1))
        least = 1 if symbol.kind is Kind.GRID else 0
        values[symbol] = min(max(least, target), 4 if symbol.kind is Kind.GRID else 400)


def _symbol(node: ast.expr, kernel: Kernel) -> Symbol | None:
    """The launch symbol that an expression is."""
    match node:
        case ast.Subscript(value=ast.Name(id="grid"), slice=ast.Constant(value=int(axis))):
            return grid_symbol(axis)
        case ast.Subscript(value=ast.Attribute(ast.Name(name), "shape"), slice=ast.Constant(int(axis))):
            return extent_symbol(name, axis)
        case ast.Call(func=ast.Attribute(ast.Name(name), "stride"), args=[ast.Constant(int(axis))]):
            return stride_symbol(name, axis)
        case ast.Name(id=name):
            return next((s for s in symbols(*kernel_expressions(kernel)) if s.name == name), None)
        case _:
            return None
