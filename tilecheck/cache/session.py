"""The cache as one run uses it: asked before something is analysed, and told afterwards what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cache.evidence import Evidence, Files
from tilecheck.cache.keys import NoKey
from tilecheck.cache.results import Cache, FileAnswer, KernelAnswer, Question
from tilecheck.dataclass import dataclass
from tilecheck.errors import UsageError
from tilecheck.model import Diagnostic, HostReport, KernelReport, Report, Site
from tilecheck.options import DEFAULT_BUDGET, Options

if TYPE_CHECKING:
    from tilecheck.cache.gather import Gatherer
    from tilecheck.cache.tokens import Layout
    from tilecheck.cache.views import Views
    from tilecheck.config.files import Configs
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.frontend.modules.project import ModuleTable, Project
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.verify.discover import Candidate

Result = tuple[KernelReport, tuple[Diagnostic, ...]]


@dataclass(slots=True)
class Session:
    """One run. Mutable: remembers what it read of files.

    Args:
        cache: the answers of earlier runs.
        given: bytes that the run has read, by path.
        patches: what the files of the run assign in modules of each other, as text.
        packages: the folders of packages by their names.
    """

    cache: Cache
    options: Options
    configs: Configs
    given: Mapping[str, bytes]
    patches: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    files: Files = field(init=False)
    _gatherer: Gatherer | None = None

    def __post_init__(self) -> None:
        self.files = Files(self.given)

    def question(self, candidate: Candidate, importers: Sequence[Candidate]) -> Question:
        settings = self.configs.of(candidate.path)
        options = self.options
        if options.budget == DEFAULT_BUDGET:  # else the caller has decided
            options = replace(options, budget=settings.budget)
        said = (settings.file, settings.folder, settings.kernels) if settings.kernels else None
        hosts = tuple(importer.path for importer in importers)
        around = (self.patches, tuple(self.packages.items()), _said_of(candidate, importers))
        return Question(candidate.path, candidate.kernels, hosts, options, said, around, candidate.orders)

    def find(self, candidate: Candidate, importers: Sequence[Candidate]) -> FileAnswer | None:
        """The answer for a file, if an earlier run left it; its kernels are marked."""
        try:
            key = self.question(candidate, importers).key("file")
        except NoKey:
            return None
        known = self.cache.file(key, candidate.path, self.files)
        if known is None:
            return None
        found, evidence = known
        texts = tuple(replace(text, data=self.files.digest(text.path)) for text in evidence.texts)
        if texts != evidence.texts:  # of other layout: from now on, this one is compared first
            self.keep(key, candidate.path, found, replace(evidence, texts=texts))
        return replace(found, kernels=tuple(replace(kernel, cached=True) for kernel in found.kernels))

    def keep(self, key: str, path: str, answer: FileAnswer, evidence: Evidence) -> None:
        """Keep the answer for a file, with the verdicts for launching its kernels."""
        records: list[object] = []
        if self.cache.is_shared:
            from tilecheck.jit.records import as_json, records_of  # lazy: only where something changed

            names = (path, *(text.path for text in evidence.texts))
            sources = {name: source.data for name in names if (source := self.files.source(name)) is not None}
            report = Report(answer.kernels, answer.diagnostics, files=1, sources=sources)
            with contextlib.suppress(UsageError):  # a file has changed again
                records = [as_json(record) for record in records_of(report)]
        self.cache.keep_file(key, path, answer, evidence, self.files, records)

    def kernels(
        self,
        candidate: Candidate,
        importers: Sequence[Candidate],
        definitions: Sequence[Definition],
        project: Project,
    ) -> FileSession:
        """The cache for the kernels of a file that is analysed."""
        if self._gatherer is None or self._gatherer.project is not project:
            from tilecheck.cache.gather import Gatherer  # lazy: nothing to gather in a warm run

            self._gatherer = Gatherer(project)
        return FileSession(self, candidate, importers, definitions, self._gatherer)


def _said_of(candidate: Candidate, importers: Sequence[Candidate]) -> tuple[tuple[str, str, str], ...]:
    """Where kernels of a file are used by value: the texts there are evidence, so that places are not asked."""
    every = ((file.path, use) for file in (candidate, *importers) for use in file.uses)
    return tuple((path, use.kernel.name, use.why) for path, use in every if use.kernel.file == candidate.path)


@dataclass(slots=True)
class FileSession:
    """One file that is analysed. Mutable: remembers what its kernels rest on."""

    run: Session
    candidate: Candidate
    importers: Sequence[Candidate]
    definitions: Sequence[Definition]
    gatherer: Gatherer
    _views: Views | None = None
    _kept: list[Evidence] = field(default_factory=list)

    # ---- kernels ----------------------------------------------------------------------------------------

    def find(self, definition: Definition, kernel: Kernel, launches: Sequence[Launch]) -> Result | None:
        """What an earlier run found of a kernel with the same IR and launches, and the same text around it."""
        try:
            key, view = self._key(definition, kernel, launches)
        except NoKey:
            return None
        found = self.run.cache.kernel(key, self.candidate.path, self.run.files, view)
        if found is None:
            return None
        answer, evidence = found
        self._kept.append(evidence)
        report = answer.kernel
        if report.terms is not None:  # the texts may have other layout now, and other kernels
            report = replace(report, terms=replace(report.terms, files=kernel.files))
        return replace(report, cached=True), answer.diagnostics

    def keep(
        self,
        definition: Definition,
        kernel: Kernel,
        launches: Sequence[Launch],
        result: Result,
        seen: Mapping[str, bytes | bool],
    ) -> None:
        """Keep what was found of a kernel; `seen` is what its replays looked at."""
        from tilecheck.cache.gather import Unclear, seen_evidence  # lazy: not in a warm run

        report, diagnostics = result
        files, path = self.run.files, self.candidate.path
        try:
            key, view = self._key(definition, kernel, launches)
            evidence = seen_evidence(seen, files, path, self._others(kernel, launches))
        except (NoKey, Unclear):
            return
        if any(files.digest(file) != digest for file, digest in kernel.files):
            return
        self.run.cache.keep_kernel(key, path, KernelAnswer(report, diagnostics), evidence, files, view)

    def _key(self, definition: Definition, kernel: Kernel, launches: Sequence[Launch]) -> tuple[str, Layout]:
        from tilecheck.cache.canonical import digest_of  # lazy: not in a warm run

        path, files = self.candidate.path, self.run.files
        view = self._view(definition)

        others = self._others(kernel, launches)

        def place(site: Site) -> str:
            layout = view if site.file == path else files.layout(site.file) if site.file in others else None
            if layout is None or not layout.digest:  # a configuration, or a text that is bound to its layout
                return f"{site.file}:{site.span.start},{site.span.end}"
            found = layout.place(site.span)
            if found is None:
                raise NoKey("a place in another kernel")
            return f"{site.file}@{found}"

        asked = replace(self.run.question(self.candidate, ()), kernels=(), settings=None, orders=False)
        ir = digest_of((replace(kernel, files=()), tuple(launches)), place)
        texts = [f"{file} {self._text(file)}" for file in others]
        return asked.key("kernel", files.real(path), view.digest, ir, *texts), view

    def _others(self, kernel: Kernel, launches: Sequence[Launch]) -> list[str]:
        """The other files that the kernel and its launches were read from."""
        named = {*(file for file, _ in kernel.files), *(launch.site.file for launch in launches)}
        return sorted(named - {self.candidate.path})

    def _text(self, file: str) -> str:
        layout = self.run.files.layout(file)
        return self.run.files.digest(file) if layout is None else layout.digest or self.run.files.digest(file)

    def _view(self, definition: Definition) -> Layout:
        path, files = self.candidate.path, self.run.files
        if self._views is None:
            from tilecheck.cache.views import Views  # lazy: not in a warm run

            source, layout = files.source(path), files.layout(path)
            if source is None or layout is None or not layout.digest:
                raise NoKey("a text that is bound to its layout")
            try:
                self._views = Views(source, layout.bare(), [_names(d) for d in self.definitions])
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                raise NoKey("a text that is nested deeply") from None
        return self._views.of(_names(definition))

    # ---- the file ---------------------------------------------------------------------------------------

    def keep_file(self, table: ModuleTable, answer: FileAnswer, seen: Mapping[str, bytes | bool]) -> None:
        """Keep what was found in the file of `table`; `seen` is what replays looked at."""
        from tilecheck.cache.gather import Unclear, evidence_of  # lazy: not in a warm run

        run = self.run
        if not (all(map(is_lasting, answer.kernels)) and all(map(is_lasting, answer.hosts))):
            return
        tables = self.gatherer.project.tables
        hosts = [tables.get(str(Path(importer.path).resolve())) for importer in self.importers]
        found = [host for host in hosts if host is not None]
        if len(found) != len(hosts):  # one of them is no Python
            return
        try:
            key = run.question(self.candidate, self.importers).key("file")
            evidence = evidence_of((table, *found), self.gatherer, seen, self._kept, run.files)
        except (NoKey, Unclear, OSError, RuntimeError):  # links in circles
            return
        known = {text.path: text.data for text in evidence.texts}
        read = {(f, digest) for k in answer.kernels if k.terms is not None for f, digest in k.terms.files}
        if {importer.path for importer in self.importers} <= set(known) and all(
            known.get(f) == d for f, d in read
        ):
            fresh = tuple(replace(kernel, cached=False) for kernel in answer.kernels)
            run.keep(key, self.candidate.path, replace(answer, kernels=fresh), evidence)


def _names(definition: Definition) -> tuple[str, ...]:
    return (*(function.name.value for function in definition.enclosing), definition.name)


def is_lasting(found: KernelReport | HostReport) -> bool:
    """Whether a result may be kept: it is neither a bug of ours nor a limit of this process's stack."""
    return found.internal_error is None and "nested" not in (found.reason or "")
