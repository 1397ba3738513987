"""What happens when a launch binds one buffer to two parameters: replayed with one array bound twice.

The compiler of cuTile orders accesses of different parameters in no way, not even within one block. A Triton
program runs its accesses in the order of its text, whatever the parameter, so only two programs can meet there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilecheck.ir.expr import Kind, substitute, symbols, walk
from tilecheck.ir.host import owner
from tilecheck.ir.kernel import Kernel
from tilecheck.ir.launch import Launch as HostLaunch
from tilecheck.model import Witness
from tilecheck.proof.goals.context import Context
from tilecheck.proof.launches.inputs.unread import is_unread
from tilecheck.proof.launches.inputs.values import host_values
from tilecheck.proof.launches.visible import Judges
from tilecheck.proof.refute.concrete import Concrete, arguments, launch_symbols
from tilecheck.proof.refute.confirmation import Flags, ordinary_launches
from tilecheck.proof.refute.memory_claims import is_memory
from tilecheck.proof.solver.fuel import Fuel
from tilecheck.reference import AccessRecord, Launch, Log, ReplayError

_LAUNCHES = 6
_STEPS = 20_000

_Meeting = tuple[AccessRecord, AccessRecord, tuple[int, ...]]


def find_alias(
    context: Context,
    mutable: str,
    other: str,
    path: str,
    flags: Flags,
    launch: HostLaunch,
    judges: Judges,
    fuel: Fuel,
) -> Witness | None:
    """Two accesses that meet in one element because `mutable` and `other` are one buffer.

    `flags` are the compile-time values that the launch passes, by name; `fuel` is for launches after the first.
    """
    kernel = context.kernel
    if kernel.language == "triton" and not is_decided(kernel, launch, (mutable, other)):
        return None
    for number, concrete in enumerate(_launches(context, flags, launch, judges)):
        if number >= _LAUNCHES or (number and fuel.left <= 0):
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
            log = fuel.charge(Launch(path, kernel.name, concrete.grid(kernel), given, None, _STEPS))
        except ReplayError:
            continue
        found = _meeting(log, mutable, other, within=kernel.language != "triton")
        if found is not None:
            return _witness(context, concrete, mutable, found)
    return None


def is_decided(kernel: Kernel, launch: HostLaunch, arrays: Sequence[str]) -> bool:
    """Whether the text says where in these arrays the accesses lie, but for the tile sizes, which may be any:
    values in memory and what unread code computes may be what keeps two programs apart."""
    known = host_values(kernel, launch)
    tiles = frozenset(symbols(*(substitute(size, known) for size in kernel.powers_of_two)))
    for access in kernel.accesses:
        if access.array not in arrays:
            continue
        terms = [
            substitute(t, known) for t in (access.guard, access.mask, *(a.coordinate for a in access.axes))
        ]
        if any(map(is_memory, walk(*terms))):
            return False
        if any(is_unread(owner(s) or "", launch) for s in symbols(*terms) if s not in tiles):
            return False
    return True


def _launches(context: Context, flags: Flags, launch: HostLaunch, judges: Judges) -> Iterator[Concrete]:
    """Launches to try: ordinary ones, or of a Triton kernel, whose numbers follow from each other, the very
    one that is seen, with inputs of several sizes."""
    kernel = context.kernel
    if kernel.language == "triton":
        for values in judges.ordinary_inputs(launch):
            yield Concrete(values).settled(kernel)
        return
    fixed = {
        s: int(v)
        for s in launch_symbols(context)
        for n, v in flags.items()
        if s.name == n and not isinstance(v, list)
    }
    yield from ordinary_launches(context, flags, fixed=fixed)


def _meeting(log: Log, mutable: str, other: str, *, within: bool) -> _Meeting | None:
    """A write of one and an access of the other; `within` counts those of one block."""
    written: dict[tuple[int, ...], dict[tuple[int, ...], AccessRecord]] = {}
    for record in log.accesses:
        if record.array == mutable and record.effect != "read":
            for element in _elements(record):
                written.setdefault(element, {})[record.block] = record
    for record in log.accesses:
        if record.array == other:
            for element in _elements(record):
                for block, write in written.get(element, {}).items():
                    if within or block != record.block:
                        return write, record, element
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
