"""Which files import what of which module, from a look at their text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePath

from tilecheck.dataclass import dataclass
from tilecheck.identifiers import words_in
from tilecheck.patches.files import Finder
from tilecheck.patches.hints import Imported, imports_in

_FOLDER = "__init__"


@dataclass(slots=True)
class Modules:
    """The files of a run as their imports call them. Mutable: remembers what was looked for.

    `files` are the bytes of all files of the run, by path, and `packages` the folders of packages by name.
    """

    files: Mapping[str, bytes]
    packages: Mapping[str, str] = field(default_factory=dict)
    finder: Finder = field(init=False)
    _words: dict[str, str] = field(default_factory=dict)
    _real: dict[str, str] = field(default_factory=dict)
    _imports: dict[str, tuple[Imported, ...]] = field(default_factory=dict)
    _found: dict[tuple[str, int, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)
    _by_word: dict[str, list[tuple[str, Imported]]] | None = None
    _members: dict[str, dict[str, list[tuple[str, Imported]]]] = field(default_factory=dict)
    _canonical: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.finder = Finder(self.files)
        self._real = {os.path.realpath(path): path for path in self.files}

    def words(self, file: str) -> str:
        if file not in self._words:
            self._words[file] = words_in(self.files[file])
        return self._words[file]

    def known(self, path: str) -> str:
        """A path as the run calls that file, whatever link leads there; a folder's own path."""
        if path not in self._canonical:
            real = os.path.realpath(path)
            self._canonical[path] = self._real.get(real, real)
        return self._canonical[path]

    def find(self, file: str, level: int, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The modules that a dotted name may lead to in a file: files of the run, or folders."""
        key = (os.path.dirname(file), level, parts)  # noqa: PTH120 - done for each import of a run
        if key not in self._found:
            self._found[key] = tuple(dict.fromkeys(map(self.known, self._find(file, level, parts))))
        return self._found[key]

    def _find(self, file: str, level: int, parts: tuple[str, ...]) -> list[str]:
        if level:
            folder = self.finder.package(file, level)
            here = [self.finder.below(folder, _FOLDER) or folder]
        elif parts:
            named = [k for k in range(len(parts), 0, -1) if ".".join(parts[:k]) in self.packages]
            here = [] if named[:1] > [1] else list(self.finder.absolute(parts[0], file))
            if named and not here:
                folder = self.packages[".".join(parts[: named[0]])]
                here, parts = [self.finder.below(folder, _FOLDER) or folder], parts[named[0] - 1 :]
            parts = parts[1:]
        else:
            here = []
        for part in parts:
            here = [found for module in here if (found := self.finder.inside(module, part))]
        return here

    def inside(self, module: str, name: str) -> str:
        """A submodule; empty if there is none."""
        found = self.finder.inside(module, name)
        return self.known(found) if found else ""

    def around(self, module: str) -> list[str]:
        """A module, and the packages and folders that lead to it."""
        found = [module]
        folder = PurePath(module).parent
        if self._is_package(module):
            folder = folder.parent
        while folder != folder.parent:
            package = self.finder.below(folder.as_posix(), _FOLDER)
            found.append(self.known(package or folder.as_posix()))
            if not package:
                return found
            folder = folder.parent
        return found

    def _is_package(self, module: str) -> bool:
        return PurePath(module).name == f"{_FOLDER}.py"

    def name(self, module: str) -> str:
        """The last part of the name of a module."""
        path = PurePath(os.path.abspath(module))  # noqa: PTH100 - links count by their own names
        return path.parent.name if self._is_package(module) else path.stem

    def imports(self, file: str) -> tuple[Imported, ...]:
        if file not in self._imports:
            words = self.words(file)
            self._imports[file] = (*imports_in(words), *_looked_up(words)) if _MODULES.search(words) else ()
        return self._imports[file]

    def may_give(self, package: str, name: str) -> bool:
        """Whether a package gives a name by other means than a statement that binds it, if it gives it."""
        words = self.words(package) if package in self.files else ""
        return name not in words or _DEFERRED.search(words) is not None

    def importing(self, word: str) -> Sequence[tuple[str, Imported]]:
        """The imports, each with its file, that name a module or something in one by a word."""
        if self._by_word is None:
            self._by_word = {}
            for file in self.files:
                for one in self.imports(file):
                    for each in _words_of(one):
                        self._by_word.setdefault(each, []).append((file, one))
        return self._by_word.get(word, ())

    def members(self, name: str) -> Mapping[str, Sequence[tuple[str, Imported]]]:
        """The imports of a name, or of `*`, each with its file, by the modules in which they look for it."""
        if name not in self._members:
            found: dict[str, list[tuple[str, Imported]]] = {}
            for file, one in self.importing(name):
                if one.member == name:
                    for module in self.find(file, one.level, parts_of(one)):
                        found.setdefault(module, []).append((file, one))
            self._members[name] = found
        return self._members[name]


def parts_of(one: Imported) -> tuple[str, ...]:
    """The module that an import names."""
    return tuple(filter(None, one.module.split(".")))


def _words_of(one: Imported) -> set[str]:
    """An import of a module binds the package around it as well; one of a name tells the last module's only,
    or, as `from . import name`, none."""
    parts = one.module.split(".")
    return set(parts) if not one.member else {parts[-1], one.member}


def _looked_up(words: str) -> Iterator[Imported]:
    """Modules that a text names as texts, under no name."""
    for found in _BY_TEXT.finditer(words):
        dots, module = found.groups()
        yield Imported(len(dots), module, "", "", found.span())


_MODULES = re.compile(r"import|\bmodules\b")
_BY_TEXT = re.compile(r"""\b(?:import_module\s*\(|__import__\s*\(|modules\s*\[)\s*["'](\.*)([\w.]+)["']""")
_DEFERRED = re.compile(r"\b__getattr__\b|\bLazy\w*\b|\blazy\w*\b")
