"""Verifies files of a package, each in a process of its own that may neither run nor grow for ever."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tilecheck.config.contracts import Contracts
from tilecheck.demand import has_decided_launches, rests_on_promises
from tilecheck.errors import SourceError
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.modules.project import ModuleTable, Project
from tilecheck.frontend.text.source import parse
from tilecheck.garbage import collect_rarely
from tilecheck.model import Diagnostic, KernelReport, Site
from tilecheck.options import Options
from tilecheck.text import decode
from tilecheck.verify.discover import Candidate
from tilecheck.verify.launch_sites import launches_around, launches_of
from tilecheck.verify.stages import preload, verify_kernel

Record = dict[str, Any]
_Work = tuple[Candidate, tuple[Candidate, ...]]

OVER = "over the limit"
_USED = (  # lazily, by some kernels
    "z3",
    "tilecheck.proof.launches.aliasing",
    "tilecheck.proof.refute.counterexample",
    "tilecheck.proof.launches.claims",
    "tilecheck.assumptions.proposals",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may use."""

    seconds: int
    megabytes: int


def verify_files(
    files: Sequence[_Work], limits: Limits, jobs: int, config: Contracts | None = None
) -> Iterator[list[Record]]:
    """The records of each file's kernels, in the order in which files end."""
    for name in _USED:  # before the first fork: what importing takes is no kernel's time
        importlib.import_module(name)
    preload()
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(prefix="tilecheck-corpora-") as folder:
        running: dict[Any, tuple[Any, _Work, Path]] = {}
        waiting = list(enumerate(files))[::-1]
        while waiting or running:
            while waiting and len(running) < jobs:
                number, work = waiting.pop()
                told = Path(folder) / str(number)
                process = context.Process(target=_verify, args=(work, limits, config, told))
                process.start()
                running[process.sentinel] = (process, work, told)
            for sentinel in wait(list(running)):
                process, work, told = running.pop(sentinel)
                process.join()
                yield _records(work[0], told, process.exitcode)


def _records(candidate: Candidate, told: Path, exit_code: int) -> list[Record]:
    """What a process told before it ended: first the names of the kernels, then a record for each."""
    lines = told.read_text().splitlines() if told.exists() else []
    if not lines:
        return [_lost(candidate.path, 0, "*", f"{OVER} while reading: exit code {exit_code}")]
    records = [json.loads(line) for line in lines[1:] if line.endswith("}")]
    lost = json.loads(lines[0])[len(records) :]
    why = f"{OVER}: exit code {exit_code}"
    return records + [_lost(candidate.path, line, name, why) for name, line in lost]


def _lost(file: str, line: int, name: str, why: str) -> Record:
    return {"file": file, "line": line, "kernel": name, "verdict": "over", "reason": why, "ms": None}


# ---- in the process of a file ------------------------------------------------------------------------------


def _verify(work: _Work, limits: Limits, config: Contracts | None, told: Path) -> None:
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.megabytes << 20, limits.megabytes << 20))
    candidate, importers = work
    collect_rarely()  # as the command does
    with told.open("w", encoding="utf-8") as out:

        def tell(value: object) -> None:
            out.write(json.dumps(value) + "\n")
            out.flush()

        start, project = time.process_time(), Project()
        try:
            table = project.add(parse(decode(candidate.path, candidate.data)))
        except SourceError:
            tell([])
            return
        definitions = find_kernels(table)
        if config is not None:
            definitions = tuple(map(config.given_to, definitions))
        tell([(d.name, _line(table, table.site(d.node.name))) for d in definitions])
        launches = launches_around(table, importers, uses=candidate.uses) if definitions else ()
        reading = (time.process_time() - start) * 1000
        for definition in definitions:
            start = time.process_time() - project.reading_s
            report, findings = verify_kernel(definition, launches_of(definition, launches), Options())
            spent = (time.process_time() - project.reading_s - start) * 1000
            tell({**_record(table, report, findings), "ms": round(spent, 2), "reading_ms": round(reading, 1)})


def _launched(report: KernelReport) -> str:
    """What became of the launches in view: `none` there are, or `decided`, `unmet` or `unread`."""
    if not report.launches or has_decided_launches(report):
        return "decided" if report.launches else "none"
    statuses = {c.status for launch in report.launches for c in launch.conditions}
    return "unmet" if statuses & {"unmet", "broken"} else "unread"


def _record(table: ModuleTable, report: KernelReport, findings: Sequence[Diagnostic]) -> Record:
    return {
        "file": report.site.file,
        "line": _line(table, report.site),
        "kernel": report.name,
        "language": report.language,
        "verdict": report.verdict.value,
        "reason": report.reason,
        "reason_at": None if report.reason_site is None else _place(table, report.reason_site),
        "conditions": report.conditions,
        "launched": _launched(report),
        "promised": rests_on_promises(report),
        "launches": [
            {"at": _place(table, la.site), **{c.text: c.status for c in la.conditions}}
            for la in report.launches
        ],
        "findings": [
            {
                "code": d.code,
                "severity": d.severity.word,
                "at": _place(table, d.site),
                "message": d.message,
                "notes": d.notes,
                "help": d.help,
                "witness": None if d.witness is None else str(d.witness),
            }
            for d in findings
        ],
        "obligations": [
            {"rule": o.rule, "verdict": o.verdict, "at": [_place(table, site) for site in o.sites]}
            for o in report.obligations
            if o.verdict not in ("proved", "conditional")
        ],
        "steps": report.steps,
        "internal": report.internal_error,
    }


def _place(table: ModuleTable, site: Site) -> str:
    return f"{site.file}:{_line(table, site)}"


def _line(table: ModuleTable, site: Site) -> int:
    if site.file == table.file:
        return table.parsed.source.position(site.span.start)[0]
    data = Path(site.file).read_bytes() if Path(site.file).is_file() else b""
    return data.count(b"\n", 0, site.span.start) + 1
