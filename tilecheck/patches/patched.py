"""The names of modules that other code may have assigned: for them a module's own text does not count."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field

from tilecheck.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Patched:
    """The names of one module that other code binds anew (an empty one: any), and those in whose objects it
    changes something."""

    bound: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()

    def __or__(self, other: Patched) -> Patched:
        return Patched(self.bound | other.bound, self.changed | other.changed)


@dataclass(frozen=True, slots=True)
class Patches:
    """What is patched, by the real path of the module; `anywhere` is what any module may have lost."""

    modules: Mapping[str, Patched] = field(default_factory=dict)
    anywhere: Patched = field(default_factory=Patched)

    def of(self, file: str) -> Patched:
        own = self.modules.get(os.path.realpath(file)) if self.modules else None
        return self.anywhere if own is None else own | self.anywhere

    @property
    def text(self) -> str:
        """All of it as one text; empty if nothing is patched."""
        rows = [(os.path.relpath(file), found) for file, found in self.modules.items()]
        rows += [("", self.anywhere)] if self.anywhere != Patched() else []
        return "\n".join(f"{file} {sorted(p.bound)} {sorted(p.changed)}" for file, p in sorted(rows, key=str))
