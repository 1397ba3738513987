"""What the analysis of a file rests on, from what it looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cache.evidence import Evidence, Files, FileText, absent_from
from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.text import Source, decode

if TYPE_CHECKING:
    from tilecheck.frontend.modules.bindings import Import
    from tilecheck.frontend.modules.project import ModuleTable, Project


class Unclear(Exception):
    """What a result rests on cannot be told, so the result cannot be kept."""


@dataclass(slots=True)
class _Collected:
    """Mutable: evidence as it is gathered."""

    files: Files
    texts: dict[str, FileText] = field(default_factory=dict)
    present: dict[str, None] = field(default_factory=dict)
    absent: dict[str, None] = field(default_factory=dict)

    def text(self, path: str, source: Source) -> None:
        found = self.files.text(path, source)
        if found is None or self.texts.setdefault(path, found) != found:
            raise Unclear(f"{path} changed")
        if self.files.digest(path) != found.data:
            raise Unclear(f"{path} changed")

    def asked(self, path: str) -> bool:
        """Note whether there is a file."""
        there = self.files.is_file(path)
        (self.present if there else self.absent)[path] = None
        return there

    def evidence(self) -> Evidence:
        present = tuple(path for path in self.present if path not in self.texts)
        return Evidence(tuple(self.texts.values()), present, absent_from(self.absent))


@dataclass(slots=True)
class Gatherer:
    """What was found by the imports of a project. Mutable: an index of `project.found`, by importer."""

    project: Project
    _by_importer: dict[str, dict[Import, ModuleTable | None]] = field(default_factory=dict)
    _known: int = 0

    def of_imports(self, own: Iterable[ModuleTable], collected: _Collected) -> None:
        """What these files import, and what is imported by what they import.

        More than needed where the analysis of another file looked there, never less.
        """
        self._index()
        tables = {table.file: table for table in own}
        todo = list(tables)
        while todo:
            importer = todo.pop()
            collected.text(importer, tables[importer].parsed.source)
            self._package(importer, collected)
            for imported, table in self._by_importer.get(importer, {}).items():
                self._looked_for(imported, importer, table, collected)
                if table is not None and table.file not in tables:
                    tables[table.file] = table
                    todo.append(table.file)

    def _index(self) -> None:
        found = self.project.found
        for (imported, importer), table in islice(found.items(), self._known, None):
            self._by_importer.setdefault(importer, {})[imported] = table
        self._known = len(found)

    def _package(self, importer: str, collected: _Collected) -> None:
        """Which of the folders above a file are packages decides where absolute imports begin."""
        top = Path(importer).parent
        while collected.asked((top / "__init__.py").as_posix()) and top.parent != top:
            top = top.parent

    def _looked_for(
        self, imported: Import, importer: str, table: ModuleTable | None, collected: _Collected
    ) -> None:
        for path in self.project.places(imported, importer):
            if collected.asked(path.as_posix()):
                if table is None:
                    source = collected.files.source(path.as_posix())
                    if source is None:
                        raise Unclear(f"{path} is not read")
                    collected.text(path.as_posix(), source)
                elif path.resolve() != Path(table.file).resolve():
                    raise Unclear(f"{path} has come")
                else:
                    collected.text(path.as_posix(), table.parsed.source)
                return
        if table is not None:
            raise Unclear(f"{table.file} has gone")


def evidence_of(
    own: Iterable[ModuleTable],
    gatherer: Gatherer,
    seen: Mapping[str, bytes | bool],
    kept: Iterable[Evidence],
    files: Files,
) -> Evidence:
    """What was read from the tables `own` and what they import, what replays looked at, and what was known.

    Raises:
        Unclear: something of it is no longer so, or cannot be read as text.
    """
    collected = _Collected(files)
    _add_seen(seen, collected)
    for evidence in kept:
        for text in evidence.texts:
            source = files.source(text.path)
            if source is None:
                raise Unclear(f"{text.path} has gone")
            collected.text(text.path, source)
        for path in (*evidence.present, *evidence.absent):
            collected.asked(path)
    gatherer.of_imports(own, collected)
    return collected.evidence()


def seen_evidence(seen: Mapping[str, bytes | bool], files: Files, own: str, more: Iterable[str]) -> Evidence:
    """What replays looked at, and the files `more`; the text of the file `own` is known otherwise.

    Raises:
        Unclear: as above.
    """
    collected = _Collected(files)
    _add_seen(seen, collected)
    for path in more:
        source = files.source(path)
        if source is None:
            raise Unclear(f"{path} has gone")
        collected.text(path, source)
    collected.texts.pop(own, None)
    return collected.evidence()


def _add_seen(seen: Mapping[str, bytes | bool], collected: _Collected) -> None:
    for path, found in seen.items():
        if isinstance(found, bytes):
            try:
                collected.text(path, decode(path, found))
            except SourceError:
                raise Unclear(f"{path} is not text") from None
        elif collected.asked(path) != found:
            raise Unclear(f"{path} changed")
