"""What blocks borrow of each array of a kernel, in words: the partition that a hover shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.errors import SourceError, UnsupportedConstruct
from tilecheck.ir.expr import add, mul, render
from tilecheck.ir.kernel import Access, Axis, Effect, Kernel, Space
from tilecheck.ir.printer import Names, axis_text
from tilecheck.overlay import overlaid
from tilecheck.wording import in_words_of

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import BorrowGraph

_VERBS = {Effect.READ: "read", Effect.WRITE: "written", Effect.ATOMIC: "updated atomically"}


def borrows_of(
    data: bytes, path: str, kernel: str, texts: Mapping[str, bytes] | None = None
) -> dict[str, tuple[str, ...]]:
    """For each array of a kernel, a line for each part of it that a block borrows; none if it is not read."""
    from tilecheck.analysis.borrow import build  # lazy: loads networkx
    from tilecheck.frontend.definitions import find_kernels  # lazy: loads libcst
    from tilecheck.frontend.lower import lower  # lazy
    from tilecheck.frontend.modules import Project  # lazy
    from tilecheck.frontend.source import parse  # lazy
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


def _lines(kernel: Kernel, graph: BorrowGraph, array: str) -> tuple[str, ...]:
    names = Names()
    axes = ", ".join(f"ct.bid({k})" for k in kernel.grid_axes)
    block = f"block ({axes}{',' if len(kernel.grid_axes) == 1 else ''})" if kernel.grid_axes else "every block"
    lines = [f"{_VERBS[a.effect]} by {block}: {_region(a, names)}" for a in graph.borrows(array)]
    return tuple(in_words_of(kernel, tuple(dict.fromkeys(lines))))


def _region(access: Access, names: Names) -> str:
    member = "" if access.member is None else f"[{render(access.member, names)}]"
    return f"{access.array}{member}[{', '.join(_axis(axis, access, names) for axis in access.axes)}]"


def _axis(axis: Axis, access: Access, names: Names) -> str:
    """A tile axis as a slice, from where it begins to where it ends."""
    if access.space is not Space.TILE or axis.size.value == 1:
        return axis_text(axis, access.space, names)
    start = add(axis.base, mul(axis.index, axis.step))
    return f"{render(start, names)} : {render(add(start, axis.size), names)}"
