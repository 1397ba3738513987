"""The analysis of files that no cache answers: parse, find launches, verify each kernel (`stages`).

Loads libcst.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.config.contracts import KernelContracts
from tilecheck.config.files import Configs
from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError, UnsupportedConstruct, UsageError
from tilecheck.frontend.kernels.definitions import Definition, find_kernels
from tilecheck.frontend.modules.project import Project
from tilecheck.hygiene import unreadable_source
from tilecheck.model import Diagnostic, HostReport, KernelReport, Site, Span
from tilecheck.options import DEFAULT_BUDGET, Options
from tilecheck.overlay import watched
from tilecheck.parallel import in_order
from tilecheck.report.progress import Progress
from tilecheck.text import decode
from tilecheck.verify.discover import Candidate
from tilecheck.verify.file_result import FileResult, Work
from tilecheck.verify.host_functions import judge_hosts
from tilecheck.verify.importers import count_kernels, kernel_names
from tilecheck.verify.launch_sites import LaunchesOf, launches_around, launches_of
from tilecheck.verify.stages import (
    internal_error,
    load_stages,
    lost_process,
    preload,
    unsupported_kernel,
    verify_kernel,
)

if TYPE_CHECKING:
    from tilecheck.cache.results import Cache
    from tilecheck.cache.session import Session


def analysed(
    work: list[Work], options: Options, configs: Configs, session: Session | None, project: Project
) -> list[FileResult]:
    """What files give that are not known, by up to `options.jobs` processes."""
    contracts = KernelContracts(configs)
    for candidate, _ in work:
        contracts.of(candidate.path)  # read once, before the processes are started
    verify = functools.partial(
        _verify_file, project=project, contracts=contracts, options=options, read={}, session=session
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
    return [result for result, _ in found]


# Two processes cost 0.12 s more than one, for each loads z3. The smallest kernels take 12 ms, those of
# `kernels/` 150 ms: for fewer than these there is little to gain (`benchmarks/parallel.py --threshold`).
_WORTH_PROCESSES = 6
_Kept = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class _Run:
    """What is done to each file, here or in another process, and with what it gives."""

    verify: Callable[[Work], FileResult]
    cache: Cache | None
    progress: Progress

    def __call__(self, item: Work) -> tuple[FileResult, _Kept]:
        self.progress.began(item[0].path)
        return self.verify(item), [] if self.cache is None else self.cache.take()

    def begin(self) -> None:
        if self.cache is not None:
            self.cache.hold()

    def done(self, item: Work, result: tuple[FileResult, _Kept]) -> None:
        found, kept = result
        self.progress.ended(item[0].path, len(found.kernels), sum(len(k.obligations) for k in found.kernels))
        if self.cache is not None:
            for key, data in kept:
                self.cache.add(key, data)


def _lost(item: Work) -> tuple[FileResult, _Kept]:
    """What a file gives in whose analysis the process died. It is not parsed here: that may be the cause."""
    candidate = item[0]
    language = "triton" if b"triton" in candidate.data else "cutile"
    kernels = []
    for name, span in kernel_names(candidate) or (("<module>", Span(0, 0)),):
        if not candidate.kernels or name in candidate.kernels:
            site = Site(candidate.path, span)
            kernels.append(lost_process(name, language, site))
    return FileResult(tuple(kernels), data=candidate.data), []


def _size(item: Work) -> int:
    """How long a file takes, about: longer files have more kernels, or larger ones."""
    return len(item[0].data)


def _verify_file(
    work: Work,
    project: Project,
    contracts: KernelContracts,
    options: Options,
    read: dict[str, LaunchesOf],
    session: Session | None = None,
) -> FileResult:
    """Verify the kernels of one file, with the launches in it and in the files that import from it. `read`
    maps each file that was read to its launches: a file may import from many others."""
    candidate, importers = work
    start = time.perf_counter()
    try:
        table = project.read(decode(candidate.path, candidate.data))
    except SourceError as problem:
        finding = unreadable_source(candidate.path, candidate.data, problem)
        return FileResult(diagnostics=(finding,), unreadable=True, data=candidate.data)
    parsed = time.perf_counter() - start
    read_before = project.reading_s
    definitions = find_kernels(table)
    definitions = tuple(map(contracts.of(candidate.path).given_to, definitions))
    if options.budget == DEFAULT_BUDGET:  # else the caller has decided
        options = replace(options, budget=contracts.configs.of(candidate.path).budget)
    wanted = _select(definitions, candidate)
    data = table.parsed.source.data
    try:
        launches = launches_around(table, importers, read, candidate.uses) if wanted else ()
    except (UnsupportedConstruct, RecursionError) as problem:
        what = (
            problem.construct if isinstance(problem, UnsupportedConstruct) else "host code nested this deeply"
        )
        answers = [unsupported_kernel(definition, UnsupportedConstruct(what)) for definition in wanted]
        reports, notes = tuple(k for k, _ in answers), tuple(d for _, ds in answers for d in ds)
        return FileResult(reports, notes, table.pragmas, parse_time_s=parsed, data=data)
    except Exception:  # noqa: BLE001 - a bug of ours in one file's host code must not stop the other files
        failed = tuple(internal_error(definition) for definition in wanted)
        return FileResult(failed, (), table.pragmas, parse_time_s=parsed, data=data)
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
    return FileResult(tuple(kernels), tuple(diagnostics), table.pragmas, hosts, parse_time_s=parsed, data=data)


def _select(definitions: tuple[Definition, ...], candidate: Candidate) -> tuple[Definition, ...]:
    if not candidate.kernels:
        return definitions
    names = {d.name for d in definitions}
    missing = [name for name in candidate.kernels if name not in names]
    if missing:
        listed = ", ".join(sorted(names)) or "none"
        raise UsageError(f"{candidate.path} has no kernel `{missing[0]}`", f"its kernels: {listed}")
    return tuple(d for d in definitions if d.name in candidate.kernels)
