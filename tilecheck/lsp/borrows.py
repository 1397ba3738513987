"""What blocks borrow of each array of a kernel, in words: the partition that a hover shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.errors import SourceError, UnsupportedConstruct
from tilecheck.findings.wording import in_words_of
from tilecheck.ir.expr import Expr, Kind, Symbol, add, mul, render, sym, symbols
from tilecheck.ir.kernel import Access, Axis, Effect, Kernel, Space
from tilecheck.ir.printer import Names, axis_text
from tilecheck.overlay import overlaid

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import BorrowGraph

_VERBS = {Effect.READ: "read", Effect.WRITE: "written", Effect.ATOMIC: "updated atomically"}


def borrows_of(
    data: bytes, path: str, kernel: str, texts: Mapping[str, bytes] | None = None
) -> dict[str, tuple[str, ...]]:
    """For each array of a kernel, a line for each part of it that a block borrows; none if it is not read."""
    from tilecheck.analysis.borrow import build  # lazy
    from tilecheck.frontend.kernels.definitions import find_kernels  # lazy: loads libcst
    from tilecheck.frontend.lower import lower  # lazy
    from tilecheck.frontend.modules.project import Project  # lazy
    from tilecheck.frontend.text.source import parse  # lazy
    from tilecheck.text import decode

    with overlaid({**(texts or {}), path: data}):
        try:
            table = Project().add(parse(decode(Path(path).as_posix(), data)))
            lowered = next((lower(d) for d in find_kernels(table) if d.name == kernel), None)
        except (SourceError, UnsupportedConstruct, RecursionError):
            return {}
    if lowered is None:
        return {}
    graph = build(lowered)
    return {array: _lines(lowered, graph, array) for array in graph.arrays()}


_LONGEST = 100  # characters of a value that is spelled out


def _lines(kernel: Kernel, graph: BorrowGraph, array: str) -> tuple[str, ...]:
    names = Names()
    axes = ", ".join(f"ct.bid({k})" for k in kernel.grid_axes)
    block = f"block ({axes}{',' if len(kernel.grid_axes) == 1 else ''})" if kernel.grid_axes else "every block"
    accesses = graph.borrows(array)
    lines = [f"{_VERBS[a.effect]} by {block}: {_region(kernel, a, names)}" for a in accesses]
    used = {axis.index for access in accesses for axis in access.axes}
    for index, symbol in _named(kernel).items():
        text = render(index, names)
        if index in used and len(text) <= _LONGEST:
            lines.append(f"  {symbol.name} = {text}")
    return tuple(in_words_of(kernel, tuple(dict.fromkeys(lines))))


def _named(kernel: Kernel) -> dict[Expr, Symbol]:
    """The values that have one name in the kernel, and are no names themselves."""
    values: dict[str, set[Expr]] = {}
    for name, value in kernel.names:
        values.setdefault(name, set()).add(value)
    single = ((name, value) for name, value in kernel.names if len(values[name]) == 1)
    return {value: Symbol(name, Kind.SCALAR) for name, value in single if symbols(value) and value.op != "sym"}


def _region(kernel: Kernel, access: Access, names: Names) -> str:
    """The elements, and what ranges over them: the lanes of the operation and iterations of loops."""
    named = _named(kernel)
    member = "" if access.member is None else f"[{render(access.member, names)}]"
    text = f"{access.array}{member}[{', '.join(_axis(axis, access, names, named) for axis in access.axes)}]"
    ranges = [f"{names(s)} < {render(s.bound, names)}" for s in access.lanes if s.bound is not None]
    ranges += [f"{names(s)} an iteration" for s in access.loops]
    shown = [r for r in ranges if re.search(rf"\b{r.partition(' ')[0]}\b", text)]
    return f"{text} with {', '.join(shown)}" if shown else text


def _axis(axis: Axis, access: Access, names: Names, named: Mapping[Expr, Symbol]) -> str:
    """A tile axis as a slice, from where it begins to where it ends."""
    if access.space is not Space.TILE or axis.size.value == 1:
        return axis_text(axis, access.space, names)
    index = sym(named[axis.index]) if axis.index in named else axis.index
    start = add(axis.base, mul(index, axis.step))
    return f"{render(start, names)} : {render(add(start, axis.size), names)}"
