"""From paths to a report: discover, parse, find launches, verify each kernel (`stages`), suppress."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.config.files import Configs
from tilecheck.config.findings import configured
from tilecheck.dataclass import dataclass
from tilecheck.discover import MAY_ORDER, Candidate, Discovery, discover
from tilecheck.errors import SourceError, UnsupportedConstruct, UsageError
from tilecheck.host_orders import judge_hosts
from tilecheck.hosts import count_kernels, kernel_names, launchers
from tilecheck.hygiene import unreadable_source
from tilecheck.identifiers import words_in
from tilecheck.launch_sites import LaunchesOf, launches_around, launches_of
from tilecheck.model import Diagnostic, HostReport, KernelReport, Report, Site, Span, Verdict
from tilecheck.options import DEFAULT_BUDGET, Options
from tilecheck.overlay import overlaid, watched
from tilecheck.patches.index import patches_of
from tilecheck.patches.patched import Patches
from tilecheck.report.progress import Progress
from tilecheck.stages import (
    internal_error,
    load_stages,
    lost_process,
    preload,
    unsupported_kernel,
    verify_kernel,
)
from tilecheck.text import decode

if TYPE_CHECKING:
    from tilecheck.cache.results import Cache
    from tilecheck.cache.session import Session
    from tilecheck.config.contracts import KernelContracts
    from tilecheck.frontend.definitions import Definition
    from tilecheck.frontend.modules import Project
    from tilecheck.frontend.pragmas import Pragma


@dataclass(frozen=True, slots=True)
class _FileResult:
    """What one file gave."""

    kernels: tuple[KernelReport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    pragmas: tuple[Pragma, ...] = ()
    hosts: tuple[HostReport, ...] = ()
    unreadable: bool = False
    parse_time_s: float = 0.0
    data: bytes | None = None  # the text in UTF-8: the bytes that spans count


OnePath = str | os.PathLike[str]
_Work = tuple[Candidate, tuple[Candidate, ...]]  # a file, and those that may launch its kernels


def verify_paths(paths: OnePath | Sequence[OnePath], options: Options | None = None) -> Report:
    """Verify every kernel under a path or several; `options.cache` names the folder with the results of earlier
    runs.

    Raises:
        UsageError: a path is missing and nothing else could be analysed, or a named kernel does not exist.
    """
    options = Options() if options is None else options
    configs = Configs(options.config)
    # A string is a sequence of strings too: without this, its characters would be taken for paths.
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    names = [os.fspath(path) for path in several]
    found = discover(names, configs)
    cache = _cache(options)
    if options.since is None:
        return _verify(found, options, configs, cache)
    from tilecheck.since import narrowed  # lazy: asks git

    left, unchanged = narrowed(found, options.since, names, configs, options.jobs)
    return replace(_verify(left, options, configs, cache), since=options.since, unchanged=unchanged)


def verify_source(
    data: bytes,
    path: str,
    options: Options,
    *,
    texts: Mapping[str, bytes] | None = None,
    cache: Cache | None = None,
) -> Report:
    """Verify the kernels of one file that is given as bytes, whatever lies at `path`; other files are found
    from there. `texts`, by path, stand for other files in the same way. `cache` keeps what is found."""
    with overlaid({**(texts or {}), path: data}):
        own = {path: data}
        candidate = Candidate(path, data, orders=MAY_ORDER.search(words_in(data)) is not None)
        found = Discovery((candidate,), (), (), 1, own, texts=own, named=(path,))
        return _verify(found, options, Configs(options.config), cache or _cache(options))


def _cache(options: Options) -> Cache | None:
    if options.cache is None:
        return None
    from tilecheck.cache.results import Cache  # lazy: a library call keeps nothing

    return Cache.in_folder(options.cache)


_NO_KERNEL = "none of its functions is a kernel, or uses streams or graphs"


def _verify(found: Discovery, options: Options, configs: Configs, cache: Cache | None) -> Report:
    start = time.perf_counter()
    results = list(zip(found.candidates, _file_results(found, options, configs, cache), strict=True))
    diagnostics = [*found.diagnostics, *(d for _, r in results for d in r.diagnostics)]
    kernels = tuple(k for _, r in results for k in r.kernels)
    hosts = tuple(host for _, r in results for host in r.hosts)
    sources = {**found.sources, **{c.path: r.data for c, r in results if r.data is not None}}
    return Report(
        kernels=kernels,
        diagnostics=configured(_suppressed(diagnostics, results, (*kernels, *hosts), found.left_out), configs),
        files=found.files,
        skipped=found.skipped
        + tuple((c.path, _NO_KERNEL) for c, r in results if not (r.kernels or r.hosts or r.unreadable)),
        unreadable=(*found.unreadable, *(c.path for c, r in results if r.unreadable)),
        time_s=time.perf_counter() - start,
        parse_time_s=sum(r.parse_time_s for _, r in results),
        sources=sources | _extra_sources(sources, diagnostics, kernels, hosts),
        not_kept="" if cache is None else cache.problem,
        hosts=hosts,
    )


def _file_results(
    found: Discovery, options: Options, configs: Configs, cache: Cache | None
) -> list[_FileResult]:
    """What each candidate gives: from the cache, else by analysis."""
    work = list(zip(found.candidates, launchers(found.candidates, found.hosts), strict=True))
    results: list[_FileResult | None] = [None] * len(work)
    session = None
    patches = patches_of(found.texts, found.named) if work else Patches()
    if cache is not None and work and options.certify is None and options.dump_smt is None:
        from tilecheck.cache.session import Session  # lazy: a library call keeps nothing

        given = {c.path: c.data for c in (*found.hosts, *found.candidates)}
        session = Session(cache, options, configs, given, patches.text)
        results = [_known(session, *item) for item in work]
    open_ = [number for number, result in enumerate(results) if result is None]
    if open_:
        analysed = _analysed([work[number] for number in open_], options, configs, session, patches)
        for number, result in zip(open_, analysed, strict=True):
            results[number] = result
    return [result for result in results if result is not None]


def _known(session: Session, candidate: Candidate, importers: tuple[Candidate, ...]) -> _FileResult | None:
    start = time.perf_counter()
    answer = session.find(candidate, importers)
    source = session.files.source(candidate.path)
    if answer is None or source is None:
        return None
    spent = time.perf_counter() - start
    return _FileResult(
        answer.kernels, answer.diagnostics, answer.pragmas, answer.hosts, parse_time_s=spent, data=source.data
    )


def _analysed(
    work: list[_Work], options: Options, configs: Configs, session: Session | None, patches: Patches
) -> list[_FileResult]:
    """What files give that are not known, by up to `options.jobs` processes."""
    from tilecheck.config.contracts import KernelContracts  # lazy: loads libcst
    from tilecheck.frontend.modules import Project  # lazy: as above
    from tilecheck.parallel import in_order  # lazy: a warm run works alone

    contracts = KernelContracts(configs)
    for candidate, _ in work:
        contracts.of(candidate.path)  # read once, before the processes are started
    verify = functools.partial(
        _verify_file, project=Project(patches), contracts=contracts, options=options, read={}, session=session
    )
    jobs = options.jobs if sum(count_kernels(c) for c, _ in work) >= _WORTH_PROCESSES else 1
    if jobs > 1:
        preload()  # once, before the processes are started
    else:
        load_stages(launches=False)
    run = _Run(verify, None if session is None else session.cache, Progress(len(work)))
    with contextlib.ExitStack() as display:
        show = functools.partial(display.enter_context, run.progress) if options.progress else None
        found = in_order(run, work, jobs, size=_size, begin=run.begin, started=show, done=run.done, lost=_lost)
    if session is not None:
        session.cache.trim()
    return [result for result, _ in found]


# Two processes cost 0.12 s more than one, for each loads z3. The smallest kernels take 12 ms, those of
# `kernels/` 150 ms: for fewer than these there is little to gain (`benchmarks/parallel.py --threshold`).
_WORTH_PROCESSES = 6
_Kept = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class _Run:
    """What is done to each file, here or in another process, and with what it gives."""

    verify: Callable[[_Work], _FileResult]
    cache: Cache | None
    progress: Progress

    def __call__(self, item: _Work) -> tuple[_FileResult, _Kept]:
        self.progress.began(item[0].path)
        return self.verify(item), [] if self.cache is None else self.cache.take()

    def begin(self) -> None:
        if self.cache is not None:
            self.cache.hold()

    def done(self, item: _Work, result: tuple[_FileResult, _Kept]) -> None:
        found, kept = result
        self.progress.ended(item[0].path, len(found.kernels), sum(len(k.obligations) for k in found.kernels))
        if self.cache is not None:
            for key, data in kept:
                self.cache.add(key, data)


def _lost(item: _Work) -> tuple[_FileResult, _Kept]:
    """What a file gives in whose analysis the process died. It is not parsed here: that may be the cause."""
    candidate = item[0]
    language = "triton" if b"triton" in candidate.data else "cutile"
    kernels = []
    for name, span in kernel_names(candidate) or (("<module>", Span(0, 0)),):
        if not candidate.kernels or name in candidate.kernels:
            site = Site(candidate.path, span)
            kernels.append(lost_process(name, language, site))
    return _FileResult(tuple(kernels), data=candidate.data), []


def _size(item: _Work) -> int:
    """How long a file takes, about: longer files have more kernels, or larger ones."""
    return len(item[0].data)


def _suppressed(
    diagnostics: list[Diagnostic],
    results: list[tuple[Candidate, _FileResult]],
    judged: tuple[KernelReport | HostReport, ...],
    left_out: tuple[Candidate, ...],
) -> tuple[Diagnostic, ...]:
    from tilecheck.suppress import apply_suppressions  # lazy: needs the tokenizer only

    pragmas = {c.path: r.pragmas for c, r in results}
    named = {diagnostic.site.file for diagnostic in diagnostics}
    pragmas.update((c.path, _pragmas(c)) for c in left_out if c.path in named)
    partial = frozenset(one.site.file for one in judged if _is_open(one))
    partial |= {c.path for c, _ in results if c.kernels}  # where not every kernel was looked at
    partial |= {c.path for c in left_out}
    return apply_suppressions(diagnostics, pragmas, partial=partial)


def _is_open(one: KernelReport | HostReport) -> bool:
    return one.status == "unread" if isinstance(one, HostReport) else one.verdict is Verdict.UNKNOWN


def _pragmas(candidate: Candidate) -> tuple[Pragma, ...]:
    from tilecheck.frontend.pragmas import read_pragmas  # lazy

    try:
        return read_pragmas(decode(candidate.path, candidate.data))
    except SourceError:
        return ()


def _extra_sources(
    known: dict[str, bytes],
    diagnostics: list[Diagnostic],
    kernels: tuple[KernelReport, ...],
    hosts: tuple[HostReport, ...],
) -> dict[str, bytes]:
    """The bytes of helper files that a site names although they were not on the command line."""
    from tilecheck.frontend.source import read  # lazy

    files: dict[str, None] = {}
    for diagnostic in diagnostics:
        files.update(dict.fromkeys([diagnostic.site.file, *(r.site.file for r in diagnostic.related)]))
    for kernel in kernels:
        sites = [
            kernel.site,
            *(la.site for la in kernel.launches),
            *(s for o in kernel.obligations for s in o.sites),
        ]
        files.update(dict.fromkeys(s.file for s in sites))
    files.update(dict.fromkeys(h.reason_site.file for h in hosts if h.reason_site is not None))
    found = {}
    for file in files:
        if file not in known:
            with contextlib.suppress(SourceError):  # reported as TC901 where the file itself was met
                found[file] = read(file).data
    return found


# ---- one file ----------------------------------------------------------------------------------------------


def _verify_file(
    work: _Work,
    project: Project,
    contracts: KernelContracts,
    options: Options,
    read: dict[str, LaunchesOf],
    session: Session | None = None,
) -> _FileResult:
    """Verify the kernels of one file, with the launches in it and in the files that import from it. `read`
    keeps the launches of files that were read, each of which may import from many."""
    candidate, importers = work
    start = time.perf_counter()
    try:
        table = project.read(decode(candidate.path, candidate.data))
    except SourceError as problem:
        finding = unreadable_source(candidate.path, candidate.data, problem)
        return _FileResult(diagnostics=(finding,), unreadable=True, data=candidate.data)
    parsed = time.perf_counter() - start
    read_before = project.reading_s
    from tilecheck.frontend.definitions import find_kernels  # lazy

    definitions = find_kernels(table)
    definitions = tuple(map(contracts.of(candidate.path).given_to, definitions))
    if options.budget == DEFAULT_BUDGET:  # else the caller has decided
        options = replace(options, budget=contracts.configs.of(candidate.path).budget)
    wanted = _select(definitions, candidate)
    data = table.parsed.source.data
    try:
        launches = launches_around(table, importers, read) if wanted else ()
    except (UnsupportedConstruct, RecursionError) as problem:
        what = (
            problem.construct if isinstance(problem, UnsupportedConstruct) else "host code nested this deeply"
        )
        answers = [unsupported_kernel(definition, UnsupportedConstruct(what)) for definition in wanted]
        reports, notes = tuple(k for k, _ in answers), tuple(d for _, ds in answers for d in ds)
        return _FileResult(reports, notes, table.pragmas, parse_time_s=parsed, data=data)
    except Exception:  # noqa: BLE001 - a bug of ours in one file's host code must not stop the other files
        failed = tuple(internal_error(definition) for definition in wanted)
        return _FileResult(failed, (), table.pragmas, parse_time_s=parsed, data=data)
    kernels: list[KernelReport] = []
    diagnostics: list[Diagnostic] = []
    kept = None if session is None else session.kernels(candidate, importers, definitions, project)
    with watched() as seen:
        for definition in wanted:
            report, found = verify_kernel(definition, launches_of(definition, launches), options, kept)
            kernels.append(report)
            diagnostics.extend(found)
    hosts: tuple[HostReport, ...] = ()
    if candidate.orders:
        hosts, found = judge_hosts(table, options.budget)
        diagnostics.extend(found)
    parsed += project.reading_s - read_before
    if kept is not None:
        from tilecheck.cache.results import FileAnswer  # lazy: a library call keeps nothing

        kept.keep_file(table, FileAnswer(tuple(kernels), tuple(diagnostics), table.pragmas, hosts), seen)
    return _FileResult(tuple(kernels), tuple(diagnostics), table.pragmas, hosts, parse_time_s=parsed, data=data)


def _select(definitions: tuple[Definition, ...], candidate: Candidate) -> tuple[Definition, ...]:
    if not candidate.kernels:
        return definitions
    names = {d.name for d in definitions}
    missing = [name for name in candidate.kernels if name not in names]
    if missing:
        listed = ", ".join(sorted(names)) or "none"
        raise UsageError(f"{candidate.path} has no kernel `{missing[0]}`", f"its kernels: {listed}")
    return tuple(d for d in definitions if d.name in candidate.kernels)
