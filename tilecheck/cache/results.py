"""Results of earlier runs: kept with what they were read from, and found again where that still holds."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from tilecheck.cache.codec import Misfit, from_json, to_json
from tilecheck.cache.evidence import Evidence, Files, FileText
from tilecheck.cache.keys import Writer, key_of
from tilecheck.cache.places import moved, sites_in
from tilecheck.cache.program import engine_digest, note, own_digest, recall
from tilecheck.cache.store import FolderStore, MemoryStore, Store
from tilecheck.cache.tokens import Layout, Place
from tilecheck.dataclass import dataclass
from tilecheck.frontend.text.pragmas import Pragma
from tilecheck.model import Diagnostic, HostReport, KernelReport, Site, Span
from tilecheck.options import Options

FORMAT = 1
_T = TypeVar("_T")
# Options that do not reach the analysis of a file. `config` does, as what it comes to: `FileQuestion.settings`.
_BESIDE = frozenset(
    {
        "jobs",
        "config",
        "certify",
        "since",
        "dump_smt",
        "fail_on",
        "undecided_fails",
        "needs_kernels",
        "require",
        "cache",
        "progress",
    }
)


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """What the analysis of one file found."""

    kernels: tuple[KernelReport, ...]
    diagnostics: tuple[Diagnostic, ...]
    pragmas: tuple[Pragma, ...]
    hosts: tuple[HostReport, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """What the proof of one kernel found."""

    kernel: KernelReport
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one file, apart from the texts that are read to answer it.

    `kernels` are those that are asked for (empty: all), `hosts` the files that may launch them. `settings` are
    what the configuration says of kernels in it, `around` what the other files of the run mean for it, `orders`
    whether its host functions are asked for. The working directory is asked along: paths start there.
    """

    path: str
    kernels: tuple[str, ...]
    hosts: tuple[str, ...]
    options: Options
    settings: Any = None
    around: Any = None
    orders: bool = False

    def key(self, *more: str) -> str:
        """Raises `NoKey`, where there is none."""
        writer = _KeyWriter()
        said = {f.name: getattr(self.options, f.name) for f in fields(self.options) if f.name not in _BESIDE}
        asked = (
            Path.cwd(),
            self.path,
            self.kernels,
            self.hosts,
            said,
            self.settings,
            self.around,
            self.orders,
        )
        return key_of((str(FORMAT), engine_digest(), writer.write(asked), *more))


class _KeyWriter(Writer):
    def special(self, value: Any) -> str | None:
        return f"Path:{value.as_posix()!r}" if isinstance(value, Path) else None


@dataclass(frozen=True, slots=True)
class _Entry:
    """One kept result. `spans` are its places as tokens, for texts whose layout may change."""

    format: int
    own: str
    evidence: Evidence
    spans: dict[str, dict[str, list[int]]]
    result: dict[str, object]
    records: list[object]


class Cache:
    """Answers of earlier runs, in a store. For one run, or for the requests that one process serves."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: list[tuple[str, bytes]] | None = None
        self.has_changed = False

    @classmethod
    def in_memory(cls) -> Cache:
        """A cache for a process that verifies the same files again and again, such as an editor's server."""
        return cls(MemoryStore())

    @classmethod
    def in_folder(cls, folder: str) -> Cache:
        """A cache in a folder, for many runs."""
        store = FolderStore(folder)
        recall(store.note)
        return cls(store)

    @property
    def is_shared(self) -> bool:
        """Whether others may read it: verdicts for launches are kept along, then."""
        return isinstance(self._store, FolderStore)

    def hold(self) -> None:
        """Keep nothing from now on, but hold it back: a process that may be killed at any time leaves it to the
        one that waits for it."""
        self._held = []

    def take(self) -> list[tuple[str, bytes]]:
        """What was held back since the last time."""
        held, self._held = self._held or [], None if self._held is None else []
        return held

    def add(self, key: str, data: bytes) -> None:
        """Keep what another process found."""
        self._store.put(key, data)
        self.has_changed = True

    @property
    def problem(self) -> str:
        """Where and why nothing could be kept, if so."""
        return self._store.problem

    def end(self) -> None:
        """At the end of a run, forget the oldest results, if they are many, and note the program's digest."""
        if self.has_changed:
            self._store.trim()
        if isinstance(self._store, FolderStore):
            known = note()
            if known and known != self._store.note:
                self._store.note = known

    # ---- whole files ------------------------------------------------------------------------------------

    def file(self, key: str, path: str, files: Files) -> tuple[FileAnswer, Evidence] | None:
        """The answer for a file, if one is kept and would be given now, and what it was read from."""
        found = self._load(key)
        if found is None or not files.holds(found.evidence):
            return None
        answer = self._answer(found, FileAnswer, path, files, {})
        return None if answer is None else (answer, found.evidence)

    def keep_file(
        self, key: str, path: str, answer: FileAnswer, evidence: Evidence, files: Files, records: Sequence[Any]
    ) -> None:
        """Keep the answer for a file."""
        self._keep(key, answer, path, evidence, files, {}, records)

    # ---- single kernels ---------------------------------------------------------------------------------

    def kernel(self, key: str, path: str, files: Files, view: Layout) -> tuple[KernelAnswer, Evidence] | None:
        """The answer for a kernel of which the key says everything but what lies in other files.

        `view` is the layout of its file without the bodies of other kernels.
        """
        found = self._load(key)
        if found is None or not files.holds(found.evidence):
            return None
        answer = self._answer(found, KernelAnswer, path, files, {path: view})
        return None if answer is None else (answer, found.evidence)

    def keep_kernel(
        self, key: str, path: str, answer: KernelAnswer, evidence: Evidence, files: Files, view: Layout
    ) -> None:
        """Keep the answer for a kernel."""
        self._keep(key, answer, path, evidence, files, {path: view}, ())

    # ---- both -------------------------------------------------------------------------------------------

    def _load(self, key: str) -> _Entry | None:
        data = self._store.get(key)
        return None if data is None else _current_entry(data)

    def _answer(
        self, entry: _Entry, kind: type[_T], path: str, files: Files, views: Mapping[str, Layout]
    ) -> _T | None:
        try:
            answer = from_json(kind, entry.result)
            texts = {text.path: text for text in entry.evidence.texts}
            changed = {p for p, text in texts.items() if files.digest(p) != text.data} | set(views)
            if changed:
                answer = moved(answer, path, functools.partial(_span, entry, files, views, changed))
            return _with_digests(answer, files) if not views else answer
        except (Misfit, ValueError, RecursionError):
            return None

    def _keep(
        self,
        key: str,
        answer: FileAnswer | KernelAnswer,
        path: str,
        evidence: Evidence,
        files: Files,
        views: Mapping[str, Layout],
        records: Sequence[Any],
    ) -> None:
        spans: dict[str, dict[str, list[int]]] = {}
        known = {text.path for text in evidence.texts}
        try:
            for site in sites_in(answer, path):
                layout = views.get(site.file) or (files.layout(site.file) if site.file in known else None)
                place = layout.place(site.span) if layout is not None and layout.digest else None
                if place is not None:
                    spans.setdefault(site.file, {})[_name(site.span)] = list(place)
                elif site.file in views:
                    return  # in the body of another kernel: it stays there only while nothing changes
                elif site.file in known:
                    # Then only the very text that it was found in has this place.
                    evidence = _bound_to_bytes(evidence, site.file)
            data = to_json(_Entry(FORMAT, own_digest(), evidence, spans, to_json(answer), list(records)))
            text = json.dumps(data, separators=(",", ":")).encode()
            if from_json(type(answer), _read(text).result) != answer:
                return
        except (Misfit, ValueError, RecursionError):
            return
        if self._held is None:
            self.add(key, text)
        else:
            self._held.append((key, text))


def is_current(data: bytes) -> bool:
    """Whether a kept result is one that this tilecheck may use."""
    return _current_entry(data) is not None


def records_in(data: bytes) -> list[object]:
    """The verdicts for launches in a kept result; none if this tilecheck may not use it."""
    if data.endswith(b'"records":[]}'):  # of a single kernel: most are
        return []
    found = _current_entry(data)
    return [] if found is None else found.records


def _current_entry(data: bytes) -> _Entry | None:
    """A kept result that this tilecheck may use."""
    try:
        found = _read(data)
    except (Misfit, ValueError, RecursionError):
        return None
    return found if found.format == FORMAT and found.own == own_digest() else None


def _read(data: bytes) -> _Entry:
    return _entry(json.loads(data))


def _entry(found: Any) -> _Entry:
    names = [f.name for f in fields(_Entry)]
    if type(found) is not dict or list(found) != names:
        raise Misfit("no entry")
    result, records = found.pop("result"), found.pop("records")
    if type(result) is not dict or type(records) is not list:
        raise Misfit("no entry")
    return _Entry(
        from_json(int, found["format"]),
        from_json(str, found["own"]),
        from_json(Evidence, found["evidence"]),
        from_json(dict[str, dict[str, list[int]]], found["spans"]),
        result,
        records,
    )


def _name(span: Span) -> str:
    return f"{span.start},{span.end}"


def _span(entry: _Entry, files: Files, views: Mapping[str, Layout], changed: set[str], site: Site) -> Span:
    """Where a place is now.

    Raises:
        ValueError: that is not known.
    """
    if site.file not in changed:
        return site.span
    place = entry.spans.get(site.file, {}).get(_name(site.span))
    layout = views.get(site.file) or files.layout(site.file)
    if place is None or len(place) != 4 or layout is None:
        raise ValueError("a place that was not kept")
    first, after, last, before = place
    fixed: Place = (first, after, last, before)
    return layout.span(fixed)


def _with_digests(answer: _T, files: Files) -> _T:
    """The answer with the digests of the texts as they are now: the launch guard compares them."""
    if not isinstance(answer, FileAnswer):
        return answer
    found: _T = replace(answer, kernels=tuple(_current(k, files) for k in answer.kernels))
    return found


def _current(kernel: KernelReport, files: Files) -> KernelReport:
    if kernel.terms is None:
        return kernel
    now = tuple((file, files.digest(file)) for file, _ in kernel.terms.files)
    return kernel if now == kernel.terms.files else replace(kernel, terms=replace(kernel.terms, files=now))


def _bound_to_bytes(evidence: Evidence, file: str) -> Evidence:
    texts = tuple(replace(t, tokens="") if t.path == file else t for t in evidence.texts)
    return replace(evidence, texts=texts)


__all__ = ["Cache", "Evidence", "FileAnswer", "FileText", "KernelAnswer", "Question"]
