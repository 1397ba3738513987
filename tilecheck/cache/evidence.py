"""What a result was read from: texts of files, and what was found or not found where a file was looked for.

A result holds for as long as its evidence does. Paths are as the analysis wrote them, so a relative one is
relative to the working directory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from tilecheck.cache.tokens import Layout, layout_of
from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.frontend.text.source import check_syntax, read_bytes
from tilecheck.overlay import is_above_texts, is_file
from tilecheck.text import Source, decode


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class FileText:
    """A text as digests of its bytes and of its tokens (empty where the layout counts), and the file that the
    path leads to."""

    path: str
    data: str
    tokens: str
    real: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """`present` and `absent` are paths at which there is, and is not, a file."""

    texts: tuple[FileText, ...]
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(slots=True)
class Files:
    """The files of one run, each read, decoded and tokenized once. Mutable cache.

    Args:
        given: bytes that the run has read already, by path.
    """

    given: Mapping[str, bytes] = field(default_factory=dict)
    _sources: dict[str, Source | None] = field(default_factory=dict)
    _layouts: dict[str, Layout] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, bool] = field(default_factory=dict)
    _there: dict[str, bool] = field(default_factory=dict)
    _real: dict[str, str] = field(default_factory=dict)

    def source(self, path: str) -> Source | None:
        """The text at a path; None if there is none that can be decoded."""
        if path not in self._sources:
            self._sources[path] = self._read(path)
        return self._sources[path]

    def _read(self, path: str) -> Source | None:
        data = self.given.get(path)
        try:
            return decode(path, read_bytes(path) if data is None else data)
        except SourceError:
            return None

    def layout(self, path: str) -> Layout | None:
        if path not in self._layouts:
            source = self.source(path)
            if source is None:
                return None
            self._layouts[path] = layout_of(source)
        return self._layouts[path]

    def digest(self, path: str) -> str:
        """The SHA-256 of the text at a path; empty if there is none."""
        if path not in self._digests:
            source = self.source(path)
            self._digests[path] = "" if source is None else sha256(source.data)
        return self._digests[path]

    def is_file(self, path: str) -> bool:
        if path not in self._kinds:
            self._kinds[path] = is_file(path)
        return self._kinds[path]

    def real(self, path: str) -> str:
        """Where a path leads to, from the working directory: two paths may be one file."""
        if path not in self._real:
            self._real[path] = os.path.relpath(os.path.realpath(path))
        return self._real[path]

    def text(self, path: str, source: Source) -> FileText | None:
        """A text as evidence; None if it is not what is at the path now."""
        found = self.source(path)
        layout = self.layout(path)
        if found is None or layout is None or found.data != source.data:
            return None
        return FileText(path, self.digest(path), layout.digest, self.real(path))

    def holds(self, evidence: Evidence) -> bool:
        """Whether everything is as it was, apart from the layout of texts."""
        try:
            return (
                all(self._is_same(text) for text in evidence.texts)
                and all(map(self.is_file, evidence.present))
                and not any(map(self._is_there, evidence.absent))
            )
        except (OSError, ValueError):  # what is no path, in an entry that is none of ours
            return False

    def _is_there(self, path: str) -> bool:
        """Whether there is anything at a path, or below it."""
        if path not in self._there:
            self._there[path] = os.path.lexists(path) or is_above_texts(path)
        return self._there[path]

    def _is_same(self, text: FileText) -> bool:
        if self.real(text.path) != text.real:
            return False
        if self.digest(text.path) == text.data:
            return True
        layout = self.layout(text.path) if text.tokens else None
        return layout is not None and layout.digest == text.tokens and self._is_python(text.path)

    def _is_python(self, path: str) -> bool:
        """Whether the text with other layout is Python as well: blanks may be inconsistent."""
        source = self.source(path)
        try:
            if source is not None:
                check_syntax(source)
                return True
        except SourceError:
            pass
        return False


def absent_from(paths: Iterable[str]) -> tuple[str, ...]:
    """Fewer paths of which none exists only if none of these does: of a folder that is missing, the folder."""
    found: dict[str, None] = {}
    for path in paths:
        missing = Path(path)
        while missing.parent != missing and not os.path.lexists(missing.parent):
            missing = missing.parent
        found[missing.as_posix()] = None
    return tuple(found)
