"""What flags, tickets and locks may hold when a launch begins, where nobody says it: contracts worth a try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tilecheck.analysis.flags import changes, flags
from tilecheck.ir.expr import Expr, walk
from tilecheck.ir.kernel import Access, Kernel
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.proof.goals.protocols import direction

_MOST = 4  # sets of contracts that are tried
_LARGEST = 127
_OF_THE_BEGINNING = ("filled", "within")


def initial_contracts(kernel: Kernel, launches: Sequence[Launch]) -> Iterator[tuple[str, ...]]:
    """Sets of contracts on the initial values of all flags of which nothing is said, the likeliest first: what
    the launches in view put there, zeros, and numbers that the kernel itself puts there or asks for."""
    said = {c.array for c in kernel.contracts if c.kind in _OF_THE_BEGINNING}
    unsaid = {
        name: all_ for name, all_ in flags(kernel).items() if name not in said and any(map(changes, all_))
    }
    numbers = {name: _numbers(kernel, name, all_, launches) for name, all_ in unsaid.items()}
    if numbers:
        yield from islice(_sets(numbers), _MOST)


def _sets(numbers: dict[str, list[str]]) -> Iterator[tuple[str, ...]]:
    first = {name: values[0] for name, values in numbers.items()}
    yield _texts(first)
    for name, values in numbers.items():
        for value in values[1:]:
            yield _texts({**first, name: value})


def _texts(values: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"filled({name}, {value})" for name, value in values.items())


def _numbers(kernel: Kernel, name: str, all_: Sequence[Access], launches: Sequence[Launch]) -> list[str]:
    found: dict[int, None] = dict.fromkeys((*_passed(name, launches), 0))
    results = {access.result for access in (*all_, *kernel.waits) if access.array == name}
    asked = [n for access in kernel.accesses for n in walk(access.guard) if n.op in ("eq", "ne")]
    compared = [e for n in asked if results & set(n.args) for e in n.args]
    operands = [e for access in all_ for e in access.operands if e is not None]
    literals = (e.value for e in (*operands, *compared) if isinstance(e, Expr))
    found.update((v, None) for v in literals if v is not None and 0 <= v <= _LARGEST)
    if direction([access for access in all_ if changes(access)]) < 0:  # it counts how many blocks are left
        return [" * ".join(f"grid[{axis}]" for axis in kernel.grid_axes) or "1", *map(str, found)]
    return list(map(str, found))


def _passed(name: str, launches: Sequence[Launch]) -> Iterator[int]:
    """The number that every launch fills an array with."""
    values = {_fill(dict(launch.arguments).get(name)) for launch in launches}
    if len(values) == 1:
        yield from (value for value in values if value is not None)


def _fill(value: object) -> int | None:
    held = value.contents if isinstance(value, HostTensor) else None
    return held.start.value if held is not None and held.kind == "fill" else None
