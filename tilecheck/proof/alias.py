"""What happens when a launch binds one buffer to two parameters: replayed with one array bound twice."""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.ir.expr import Kind
from tilecheck.jit.reference import AccessRecord, Launch, Log, ReplayError, run
from tilecheck.model import Witness
from tilecheck.proof.benign import Flags, ordinary_launches
from tilecheck.proof.concrete import Concrete, arguments, launch_symbols
from tilecheck.proof.context import Context

_LAUNCHES = 6
_STEPS = 20_000

_Meeting = tuple[AccessRecord, AccessRecord, tuple[int, ...]]


def find_alias(context: Context, mutable: str, other: str, path: str, flags: Flags) -> Witness | None:
    """Two accesses that meet in one element because `mutable` and `other` are one buffer.

    The compiler orders accesses of different parameters in no way, not even within one block. `flags` are
    the compile-time values that the launch passes, by name.
    """
    kernel = context.kernel
    fixed = {
        s: int(v)
        for s in launch_symbols(context)
        for n, v in flags.items()
        if s.name == n and not isinstance(v, list)
    }
    for number, concrete in enumerate(ordinary_launches(context, flags, fixed=fixed)):
        if number >= _LAUNCHES:
            return None
        given = arguments(concrete, kernel)
        if given is None:
            continue
        if getattr(given[other], "shape", None) != getattr(given[mutable], "shape", None):
            continue  # one buffer has one shape
        # A table holds integers that keep its contracts: the kernel reads there what it expects.
        table = getattr(given[other], "dtype", None)
        given[mutable] = given[other] = given[other if table is not None and table.kind == "i" else mutable]
        try:
            log = run(Launch(path, kernel.name, concrete.grid(kernel), given, None, _STEPS))
        except ReplayError:
            continue
        found = _meeting(log, mutable, other)
        if found is not None:
            return _witness(context, concrete, mutable, found)
    return None


def _meeting(log: Log, mutable: str, other: str) -> _Meeting | None:
    written: dict[tuple[int, ...], AccessRecord] = {}
    for record in log.accesses:
        if record.array == mutable and record.effect != "read":
            written.update((element, record) for element in _elements(record))
    for record in log.accesses:
        if record.array == other:
            for element in _elements(record):
                if element in written:
                    return written[element], record, element
    return None


def _elements(record: AccessRecord) -> Sequence[tuple[int, ...]]:
    return [tuple(int(c) for c in row) for row in record.elements]


def _witness(context: Context, concrete: Concrete, mutable: str, found: _Meeting) -> Witness:
    kernel = context.kernel
    first, second, element = found
    axes = kernel.grid_axes or (0,)
    blocks = tuple(dict.fromkeys(tuple(r.block[: max(axes) + 1]) for r in (first, second)))
    grid = concrete.grid(kernel)[: max(axes) + 1]
    values = {s.name: int(concrete.value(s)) for s in launch_symbols(context) if s.kind is not Kind.GRID}
    return Witness("alias", grid, blocks, dict(values), mutable, element)
