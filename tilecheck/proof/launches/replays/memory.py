"""A launch in real memory: every tensor is a window of its storage, and two windows of one may meet.

The proof of a kernel takes its arrays to be apart (S1), each index to be an element of its own (S2), and a
descriptor to lie inside its tensor. Where the host's text makes the windows, their offsets and strides decide:

    proof   spans side by side, or columns of the same rows, have no element in common
    replay  the launch runs on one buffer for each storage; harm is read off the addresses
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import ONE, ZERO, Expr, Kind, add, all_of, any_of, eq, le, lt, mod, mul, sub, symbols
from tilecheck.ir.host import STRIDE
from tilecheck.ir.kernel import Kernel
from tilecheck.ir.launch import HostList, HostTensor, HostValue
from tilecheck.model import Witness
from tilecheck.proof.launches.judge import Broken, Judge
from tilecheck.proof.launches.replays.replay import block_shapes
from tilecheck.proof.refute.concrete import Concrete, arguments
from tilecheck.proof.solver.fuel import Fuel
from tilecheck.proof.solver.solver import Model
from tilecheck.reference import AccessRecord, Launch, Log, ReplayError

_STEPS = 50_000
_INPUTS = 4  # that are run for one claim
_MOST_ELEMENTS = 1 << 22  # of one storage
_MOST_BLOCKS = 256
_ALIGNED = 16  # bytes, so many elements at most: what descriptors ask of strides

_Member = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Window:
    """Where a tensor lies in its storage, in elements."""

    storage: str
    offset: Expr
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]

    @property
    def last(self) -> Expr:
        """The position of its last element, if it has any."""
        return add(self.offset, reach(self.shape, self.strides))


def reach(shape: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    """How far the last element lies behind the first. Products are written out, so that equal ones cancel."""
    return add(ZERO, *(sub(mul(n, s), s) for n, s in zip(shape, strides, strict=True)))


def window(t: HostTensor, *, alone: bool = False) -> Window | None:
    """The window of a tensor; None where the text does not say all of it. One that may be a copy, or one of
    several, has none but `alone`: then it is the same whichever it is."""
    if t.offset is None or t.shape is None or t.strides is None or ((t.among or t.copied) and not alone):
        return None
    return Window(t.storage, t.offset, t.shape, t.strides)


# ---- proof -------------------------------------------------------------------------------------------------


def are_apart(judge: Judge, a: HostTensor, b: HostTensor) -> bool:
    """Whether two windows of one storage have no element in common, for every host input."""
    u, v = window(a), window(b)
    if u is None or v is None or u.storage != v.storage:
        return False
    empty = any_of(*(eq(n, 0) for n in (*u.shape, *v.shape)))
    positive = all_of(*(le(0, s) for s in (*u.strides, *v.strides)))
    aside = any_of(lt(u.last, v.offset), lt(v.last, u.offset))
    if judge.follows(any_of(empty, all_of(positive, aside))):
        return True
    rows = [s for s in u.strides if s in v.strides and s is not ONE]
    return any(
        judge.follows(any_of(empty, all_of(positive, _in_other_columns(u, v, row))))
        for row in dict.fromkeys(rows)
    )


def _in_other_columns(u: Window, v: Window, row: Expr) -> Expr:
    """Whether two windows take other columns of the same rows: along the axes that are not whole rows apart,
    one begins behind the other, and ends before the other begins in the next row."""
    u_end, v_end = (_within_row(w, row) for w in (u, v))
    ahead, behind = sub(v.offset, u.offset), sub(u.offset, v.offset)
    return any_of(
        all_of(lt(u_end, ahead), lt(add(ahead, v_end), row)),
        all_of(lt(v_end, behind), lt(add(behind, u_end), row)),
    )


def _within_row(w: Window, row: Expr) -> Expr:
    """How far a window reaches along the axes whose stride is no multiple of a row."""
    inner = [(n, s) for n, s in zip(w.shape, w.strides, strict=True) if not _is_multiple(s, row)]
    return reach([n for n, _ in inner], [s for _, s in inner])


def _is_multiple(stride: Expr, row: Expr) -> bool:
    if stride is row:
        return True
    if stride.value is not None and row.value:
        return stride.value % row.value == 0
    factors = list(stride.args) if stride.op == "mul" else [stride]
    for factor in row.args if row.op == "mul" else (row,):
        if factor not in factors:
            return False
        factors.remove(factor)
    return True


def itself_apart(t: HostTensor) -> Expr | None:
    """That no two indices of a tensor share an element: each stride is as long as what lies inside it."""
    if t.shape is None or t.strides is None:
        return None
    return nested(t.shape, t.strides)


def nested(shape: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    """That each stride is longer than the axes after it reach."""
    terms = []
    for k, (n, s) in enumerate(zip(shape, strides, strict=True)):
        terms.append(any_of(le(n, 1), lt(reach(shape[k + 1 :], strides[k + 1 :]), s)))
    return all_of(*terms)


def inside(t: HostTensor) -> Expr | None:
    """That a descriptor lies inside the memory of its tensor."""
    w = window(t, alone=True)
    if w is None or t.room is None:
        return None
    return all_of(lt(w.last, t.room), *(le(0, s) for s in w.strides))


# ---- replay ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Harm:
    """What a replay has to show: two blocks at one address through these parameters, or one outside the memory
    of `outside`. `within` counts two accesses of one block."""

    first: str = ""
    second: str = ""
    outside: str = ""
    within: bool = False


def shown(
    judge: Judge, premises: Sequence[Expr], harm: Harm, path: str, fuel: Fuel, *, rule: str, text: str
) -> tuple[Broken, Witness] | None:
    """Host inputs that meet `premises` at which a run of the launch shows the harm."""
    more = (*judge.usually, *_aligned(judge))
    for grid in judge.more_blocks():
        for number, model in enumerate(judge.inputs((*premises, *more, *grid), empty=False)):
            if number >= _INPUTS or fuel.left <= 0:
                break
            broken = judge.broken(rule, text, model)
            witness = None if broken is None else _run(judge, model, broken, harm, path, fuel)
            if broken is not None and witness is not None:
                return broken, witness
    return None


def _aligned(judge: Judge) -> Iterator[Expr]:
    """What the class of descriptors asks of strides, whatever the size of an element."""
    for _, value in judge.launch.arguments:
        if isinstance(value, HostTensor) and value.described:
            yield from (eq(mod(s, _ALIGNED), 0) for s in (value.strides or ())[:-1])


def _run(judge: Judge, model: Model, broken: Broken, harm: Harm, path: str, fuel: Fuel) -> Witness | None:
    kernel = judge.kernel
    concrete = Concrete(broken.concrete).settled(kernel)
    grid = concrete.grid(kernel)
    given = arguments(concrete, kernel)
    if given is None or 0 in grid or prod(grid) > _MOST_BLOCKS:
        return None
    given |= block_shapes(broken)
    try:
        memory = _memory(judge, model, given)
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    if memory is None:
        return None
    try:
        log = fuel.charge(Launch(path, kernel.name, grid, given, None, _STEPS))
    except ReplayError:
        return None
    return _seen(log, given, memory, kernel, grid, broken, harm)


def _memory(judge: Judge, model: Model, given: dict[str, Any]) -> Mapping[_Member, int] | None:
    """The arguments as windows of one buffer for each storage; the end of the room of each, as an address."""
    flat = judge.kernel.language == "triton"
    arrays = {p.name for p in judge.kernel.params if p.is_array}
    sizes: dict[str, int] = {}
    found: dict[_Member, tuple[HostTensor, int, tuple[int, ...], tuple[int, ...]]] = {}
    for name, value in judge.launch.arguments:
        if name not in arrays:
            continue
        for member, t in _members(value):
            w = window(t)
            if w is None:
                continue
            offset = int(model.evaluate(w.offset))
            shape, strides = (tuple(int(model.evaluate(e)) for e in es) for es in (w.shape, w.strides))
            if offset < 0 or any(n < 0 for n in (*shape, *strides)):
                return None
            last = (
                offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else offset
            )
            room = 0 if t.room is None else int(model.evaluate(t.room))
            sizes[t.storage] = max(sizes.get(t.storage, 1), last + 1, room)
            found[name, member] = (t, offset, shape, strides)
    if not found or max(sizes.values()) > _MOST_ELEMENTS:
        return None
    buffers = {storage: np.zeros(size + 1, np.float32) for storage, size in sizes.items()}
    ends: dict[_Member, int] = {}
    for (name, member), (t, offset, shape, strides) in found.items():
        old = given[name] if member is None else None
        dtype = old.dtype if isinstance(old, np.ndarray) else np.dtype(np.float32)
        base = buffers[t.storage].view(dtype)[offset:]
        view = np.lib.stride_tricks.as_strided(base, shape, [s * dtype.itemsize for s in strides])
        if flat and not t.described:
            view = base[: _span(shape, strides)]
        if member is None:
            given[name] = view
        else:
            items = list(given[name]) if isinstance(given[name], list) else []
            given[name] = [*items[:member], view, *items[member + 1 :]]
        room = sizes[t.storage] if t.room is None else int(model.evaluate(t.room))
        start = buffers[t.storage].__array_interface__["data"][0]
        ends[name, member] = start + room * dtype.itemsize
    return ends


def _members(value: HostValue) -> Iterator[tuple[int | None, HostTensor]]:
    if isinstance(value, HostTensor):
        yield None, value
    elif isinstance(value, HostList):
        yield from ((k, item) for k, item in enumerate(value.items) if isinstance(item, HostTensor))


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0


def _seen(
    log: Log,
    given: Mapping[str, Any],
    ends: Mapping[_Member, int],
    kernel: Kernel,
    grid: tuple[int, int, int],
    broken: Broken,
    harm: Harm,
) -> Witness | None:
    """The harm, as the log shows it."""
    axes = max(kernel.grid_axes or (0,)) + 1
    touched: dict[int, list[tuple[AccessRecord, tuple[int, ...]]]] = {}
    for record in log.accesses:
        if record.raw or (record.array not in (harm.first, harm.second, harm.outside)):
            continue
        array = given[record.array] if record.member is None else given[record.array][record.member]
        start = array.__array_interface__["data"][0]
        end = ends.get((record.array, record.member))
        for row in record.elements:
            element = tuple(int(c) for c in row)
            address = start + sum(i * s for i, s in zip(element, array.strides, strict=True))
            if harm.outside == record.array and end is not None and address >= end:
                return _witness("bounds", grid, axes, (record,), broken, element)
            if not harm.first:
                continue
            for other, _ in touched.get(address, ()):
                if _meet(other, record, harm):
                    return _witness("alias", grid, axes, (other, record), broken, element)
            kept = touched.setdefault(address, [])
            if not any(_is_like(o, record) for o, _ in kept):
                kept.append((record, element))
    return None


def _meet(a: AccessRecord, b: AccessRecord, harm: Harm) -> bool:
    if {a.array, b.array} != {harm.first, harm.second} or (a.effect == "read" and b.effect == "read"):
        return False
    if a.effect == "atomic" and b.effect == "atomic":
        return False
    if harm.first == harm.second and a.member is not None and a.member == b.member:
        return False  # of one member: a race of the kernel's own
    return a.block != b.block or (harm.within and (a.array, a.member) != (b.array, b.member))


def _is_like(a: AccessRecord, b: AccessRecord) -> bool:
    return (a.block, a.array, a.member, a.effect) == (b.block, b.array, b.member, b.effect)


def _witness(
    kind: str,
    grid: tuple[int, int, int],
    axes: int,
    records: Sequence[AccessRecord],
    broken: Broken,
    element: tuple[int, ...],
) -> Witness:
    blocks = tuple(dict.fromkeys(tuple(r.block[:axes]) for r in records))
    return Witness(kind, grid[:axes], blocks, dict(broken.values), records[0].array, element)


def is_of_layout(t: HostTensor) -> bool:
    """Whether the strides are those of a tensor that is handed in, which its caller answers for."""
    free = [s for s in symbols(*(t.strides or ())) if s.kind is Kind.HOST and s.origin == STRIDE]
    return t.given and bool(free)
