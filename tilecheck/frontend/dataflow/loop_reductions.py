"""What the sums and maxima that a loop carries certainly need: what each of its rounds reduces.

A variable of floats is marked before the body. If what the body leaves in it is certainly computed from the
mark, every round's value goes into the next one's; and from what else it is computed in a round, it needs of
every round. So a use after the loop needs all of it: it comes after the loop, whether the compiler keeps the
loop, unrolls it or has it run once. Where it runs zero times, nothing of it has happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tilecheck.frontend.dataflow.load_sources import is_real
from tilecheck.frontend.values.values import Made, Num
from tilecheck.ir.expr import Symbol


def mark(names: dict[str, Any], carried: Iterable[str], loop: Symbol) -> None:
    """Mark the floats among the `carried` names of a loop, whose iteration symbol it is."""
    for name in carried:
        value = names[name]
        if isinstance(value, Num) and value.kind == "data" and value.elem is None:
            own = value.made
            marked = Made(carried=frozenset({(loop.uid, name)}), typed=own.typed, real=is_real(value))
            names[name] = replace(value, made=marked)


def gathered(names: Mapping[str, Any], loop: Symbol) -> dict[str, Made]:
    """What the marked names need after the loop, as the end of its body finds them."""
    found = {}
    for name, value in names.items():
        if isinstance(value, Num) and (loop.uid, name) in value.made.carried and value.made.exchanges:
            made = value.made
            found[name] = Made(exchanges=made.exchanges, typed=made.typed, free=False)
    return found


def keep(names: dict[str, Any], needed: Mapping[str, Made]) -> None:
    """Say after the loop what its names need."""
    for name, made in needed.items():
        value = names.get(name)
        if isinstance(value, Num) and value.kind == "data" and value.elem is None:
            names[name] = replace(value, made=made)
