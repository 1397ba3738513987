"""The places in a result: which spans it has, and the same result with its spans moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tilecheck.model import Site, Span

_T = TypeVar("_T")


def sites_in(value: Any, file: str) -> Iterator[Site]:
    """Every place in a value; a span that names no file is one of `file`."""
    if isinstance(value, Site):
        yield value
    elif isinstance(value, Span):
        yield Site(file, value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from sites_in(item, file)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from sites_in(getattr(value, part.name), file)


def moved(value: _T, file: str, move: Callable[[Site], Span]) -> _T:
    """The value with every place moved."""

    def inside(part: Any) -> Any:
        if isinstance(part, Site):
            return Site(part.file, move(part))
        if isinstance(part, Span):
            return move(Site(file, part))
        if isinstance(part, tuple):
            return tuple(map(inside, part))
        if is_dataclass(part) and not isinstance(part, type):
            return replace(part, **{f.name: inside(getattr(part, f.name)) for f in fields(part)})
        return part

    found: _T = inside(value)
    return found
