"""The files that dotted names lead to, as far as the file system tells it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import PurePath

from tilecheck.dataclass import dataclass
from tilecheck.overlay import is_file


@dataclass(slots=True)
class Finder:
    """Finds modules for the files of one run. Mutable: remembers what it looked for.

    `files` are all files of the run: a folder that holds a script or an outermost package may be on Python's
    path, so an absolute import that leads nowhere from its own file may lead there.
    """

    files: Iterable[str]
    _below: dict[tuple[str, str], str] = field(default_factory=dict)
    _tops: dict[str, str] = field(default_factory=dict)
    _packages: dict[tuple[str, int], str] = field(default_factory=dict)
    _elsewhere: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _roots: tuple[str, ...] | None = None

    def absolute(self, name: str, file: str) -> tuple[str, ...]:
        """The modules that `import name` may lead to from a file: `__init__.py` for a package, or a folder."""
        folder = os.path.dirname(file)  # noqa: PTH120 - done for each import of a run
        found = self.below(self.top(folder), name) or self.below(folder, name)
        return (found,) if found else self.elsewhere(name)

    def leads_anywhere(self, file: str, name: str) -> bool:
        return bool(self.absolute(name, file))

    def elsewhere(self, name: str) -> tuple[str, ...]:
        """The modules of a name in all folders that may be on Python's path."""
        if name not in self._elsewhere:
            found = (self.below(root, name) for root in self.roots())
            self._elsewhere[name] = tuple(filter(None, found))
        return self._elsewhere[name]

    def package(self, file: str, level: int) -> str:
        """The folder from which a relative import of a file starts."""
        key = (file, level)
        if key not in self._packages:
            folder = PurePath(file).parent
            for _ in range(level - 1):
                folder = folder.parent
            self._packages[key] = folder.as_posix()
        return self._packages[key]

    def inside(self, module: str, name: str) -> str:
        """A submodule; empty if there is none."""
        if not module.endswith(".py"):
            return self.below(module, name)
        is_package = module == "__init__.py" or module.endswith("/__init__.py")
        return self.below(self.package(module, 1), name) if is_package else ""

    def below(self, folder: str, name: str) -> str:
        """The module of a name in a folder, as Python's finder takes them: package, module, plain folder."""
        key = (folder, name)
        if key not in self._below:
            base = f"{folder}/{name}" if folder else name
            places = (f"{base}/__init__.py", f"{base}.py")
            found = next((place for place in places if is_file(place)), "")
            self._below[key] = found or (base if os.path.isdir(base) else "")  # noqa: PTH112 - as above
        return self._below[key]

    def top(self, folder: str) -> str:
        """The folder that holds the outermost package around a folder."""
        if folder not in self._tops:
            above = os.path.dirname(folder)  # noqa: PTH120 - as above
            inner = folder not in ("", "/", ".") and is_file(f"{folder}/__init__.py")
            self._tops[folder] = self.top(above) if inner and above != folder else folder
        return self._tops[folder]

    def roots(self) -> tuple[str, ...]:
        if self._roots is None:
            folders = dict.fromkeys(os.path.dirname(file) for file in self.files)  # noqa: PTH120 - as above
            self._roots = tuple(dict.fromkeys(map(self.top, folders)))
        return self._roots

    def named(self, file: str) -> Iterator[str]:
        """The words by which an import may lead to a file."""
        path = PurePath(file)
        yield path.stem
        yield from path.parent.parts
