"""From paths to a report: discover, ask the cache, analyse what is not there (`files`), suppress."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.config.files import Configs
from tilecheck.config.findings import configured
from tilecheck.errors import SourceError
from tilecheck.identifiers import words_in
from tilecheck.model import Diagnostic, HostReport, KernelReport, Report, Verdict
from tilecheck.options import Options
from tilecheck.overlay import overlaid
from tilecheck.packages import packages_of
from tilecheck.patches.index import patches_of
from tilecheck.patches.patched import Patches
from tilecheck.text import decode
from tilecheck.verify.discover import MAY_ORDER, Candidate, Discovery, discover
from tilecheck.verify.file_result import FileResult
from tilecheck.verify.importers import launchers

if TYPE_CHECKING:
    from tilecheck.cache.results import Cache
    from tilecheck.cache.session import Session
    from tilecheck.frontend.text.pragmas import Pragma

OnePath = str | os.PathLike[str]


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
    from tilecheck.history.since import narrowed  # lazy: asks git

    left, unchanged = narrowed(found, options.since, names, configs, options.jobs)
    return replace(_verify(left, options, configs, cache), since=options.since, unchanged=unchanged)


def verify_source(
    data: bytes,
    path: str,
    options: Options,
    *,
    texts: Mapping[str, bytes] | None = None,
    cache: Cache | None = None,
    kernels: tuple[str, ...] = (),
) -> Report:
    """Verify the kernels of one file that is given as bytes, whatever lies at `path`; other files are found
    from there. `texts`, by path, stand for other files in the same way. `cache` keeps what is found. Where
    `kernels` are named, these alone are verified."""
    with overlaid({**(texts or {}), path: data}):
        own = {path: data}
        candidate = Candidate(path, data, kernels, orders=MAY_ORDER.search(words_in(data)) is not None)
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
) -> list[FileResult]:
    """What each candidate gives: from the cache, else by analysis."""
    packages = packages_of(found.texts)
    work = launchers(found.candidates, found.hosts, found.texts, packages)
    results: list[FileResult | None] = [None] * len(work)
    session = None
    patches = patches_of(found.texts, found.named) if work else Patches()
    if cache is not None and work and options.certify is None and options.dump_smt is None:
        from tilecheck.cache.session import Session  # lazy: a library call keeps nothing

        given = {c.path: c.data for c in (*found.hosts, *found.candidates)}
        session = Session(cache, options, configs, given, patches.text, packages)
        results = [_known(session, *item) for item in work]
    open_ = [number for number, result in enumerate(results) if result is None]
    if open_:
        from tilecheck.frontend.modules.project import Project  # lazy, as above
        from tilecheck.verify.files import analysed  # lazy: nothing of it is needed where all is known

        found_now = analysed(
            [work[number] for number in open_], options, configs, session, Project(patches, packages)
        )
        for number, result in zip(open_, found_now, strict=True):
            results[number] = result
    if session is not None:
        session.cache.end()
    return [result for result in results if result is not None]


def _known(session: Session, candidate: Candidate, importers: tuple[Candidate, ...]) -> FileResult | None:
    start = time.perf_counter()
    answer = session.find(candidate, importers)
    source = session.files.source(candidate.path)
    if answer is None or source is None:
        return None
    spent = time.perf_counter() - start
    return FileResult(
        answer.kernels, answer.diagnostics, answer.pragmas, answer.hosts, parse_time_s=spent, data=source.data
    )


def _suppressed(
    diagnostics: list[Diagnostic],
    results: list[tuple[Candidate, FileResult]],
    judged: tuple[KernelReport | HostReport, ...],
    left_out: tuple[Candidate, ...],
) -> tuple[Diagnostic, ...]:
    from tilecheck.verify.suppressions import apply_suppressions  # lazy: needs the tokenizer only

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
    from tilecheck.frontend.text.pragmas import read_pragmas  # lazy

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
    from tilecheck.frontend.text.source import read  # lazy

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
