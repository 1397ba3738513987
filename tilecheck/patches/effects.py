"""Which modules the effects of files reach, as they import from each other."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.overlay import read
from tilecheck.patches.events import events_of
from tilecheck.patches.files import Finder
from tilecheck.patches.patched import Patched, Patches
from tilecheck.patches.places import Effect, Event, Place, Root, imported
from tilecheck.text import decode


@dataclass(slots=True)
class Effects:
    """What the code of files does to modules of each other. Mutable: filled event by event."""

    finder: Finder
    bound: dict[str, set[str]] = field(default_factory=dict)
    changed: dict[str, set[str]] = field(default_factory=dict)
    _imports: dict[str, Sequence[tuple[str, Place]]] = field(default_factory=dict)

    def patches(self) -> Patches:
        files = self.bound.keys() | self.changed.keys()
        found = {
            file: Patched(*(frozenset(d.get(file, ())) for d in (self.bound, self.changed))) for file in files
        }
        anywhere = found.pop("", Patched())
        real: dict[str, Patched] = {}
        for file, patched in found.items():
            path = os.path.realpath(file)
            real[path] = real.get(path, Patched()) | patched
        return Patches(real, anywhere)

    def add(self, event: Event, file: str) -> None:
        """Count one effect of the code of a file."""
        place, effect = event.place, event.effect
        if place.root is Root.OWN:
            return  # the front end follows these itself, with more care
        name = place.path[-1] if effect is Effect.BINDS and place.path else None
        path = place.path[:-1] if name is not None else place.path
        if place.root is Root.ANY:
            self.add_to("", path, effect, name)
            return
        for module, rest in self.modules(Place(place.root, path, place.level), file):
            self.add_to(module, rest, effect, name)

    def add_to(self, module: str, rest: tuple[str, ...], effect: Effect, name: str | None) -> None:
        if rest:
            if effect is not Effect.HANDS_ON:
                self.changed.setdefault(module, set()).add(rest[0])
        elif effect is Effect.BINDS and name is not None:
            self.bound.setdefault(module, set()).add(name)
        elif effect is Effect.HANDS_ON and module:
            self.bound.setdefault(module, set()).add("")

    def modules(self, place: Place, file: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The modules that a place may lead to, and the path that is left from there.

        A path never grows on the way, so there are no more places than modules times names.
        """
        starts, path = self.start(place, file)
        todo = [(start, path) for start in starts]
        seen: set[tuple[str, tuple[str, ...]]] = set()
        while todo:
            module, path = todo.pop()
            if (module, path) in seen:
                continue
            seen.add((module, path))
            inner = self.finder.inside(module, path[0]) if path else ""
            if inner:
                todo.append((inner, path[1:]))
            if not module.endswith(".py"):
                continue
            for there in self.handed_on(module, path[0]) if path else ():
                todo += [(origin, (*name, *path[1:])) for origin, name in self.imported_at(there, module)]
            yield module, path

    def start(self, place: Place, file: str) -> tuple[list[str], tuple[str, ...]]:
        """The modules from which a file looks for a place, and the path from there."""
        if place.root is Root.RELATIVE:
            folder = self.finder.package(file, place.level)
            return [self.finder.below(folder, "__init__") or folder], place.path
        return list(self.finder.absolute(place.path[0], file)) if place.path else [], place.path[1:]

    def imported_at(self, place: Place, file: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What an import names: a module, found in its package, and perhaps a name in it."""
        modules, path = self.start(place, file)
        for part in path[:-1]:
            modules = [found for module in modules if (found := self.finder.inside(module, part))]
        yield from ((module, path[-1:]) for module in modules)

    def handed_on(self, file: str, name: str) -> list[Place]:
        """The places from which a file may import a name."""
        if file not in self._imports:
            try:
                self._imports[file] = _imports(read(file))
            except OSError:
                self._imports[file] = ()
        return [p.above.below(name) if n == "*" else p for n, p in self._imports[file] if n in (name, "*")]


# An editor asks for the same files after each edit of one of them.
@functools.lru_cache(maxsize=512)
def events_in(data: bytes) -> frozenset[Event]:
    tree = _tree(data)
    return frozenset() if tree is None else events_of(tree)


@functools.lru_cache(maxsize=512)
def _imports(data: bytes) -> tuple[tuple[str, Place], ...]:
    tree = _tree(data)
    nodes = ast.walk(tree) if tree is not None else ()
    statements = (node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
    return tuple(pair for node in statements for pair in imported(node))


def _tree(data: bytes) -> ast.Module | None:
    try:
        return decode("", data).tree()
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
