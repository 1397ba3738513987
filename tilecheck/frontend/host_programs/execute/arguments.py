"""The arguments of a call, evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_programs.values import values as V


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call passes. `more` says that it also passes lists or keywords of unknown length."""

    node: cst.CSTNode
    positional: tuple[V.Value, ...] = ()
    keywords: dict[str, V.Value] = field(default_factory=dict)
    more: tuple[V.Value, ...] = ()

    def get(self, position: int, name: str = "") -> V.Value | None:
        """An argument by its position or its keyword; None if it is left out."""
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[position] if 0 <= position < len(self.positional) else None

    def every(self) -> Iterator[V.Value]:
        yield from self.positional
        yield from self.keywords.values()
        yield from self.more
