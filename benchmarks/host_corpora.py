"""Judges the host functions of published packages, and times that against the rest of the analysis.

    nice python benchmarks/host_corpora.py [--cache DIR | --unpacked DIR] [--package NAME] [--json FILE]
    nice python benchmarks/host_corpora.py --rest 40 --seed 0

Each file that may have host functions is read in a process of its own. `--rest N` also verifies the kernels of
N files of each package, drawn at random from those with kernels; the others are taken to need as long. Times
are processor time after parsing. The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import random
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from corpora import Row, unpacked

from tilecheck.errors import SourceError
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.garbage import collect_rarely
from tilecheck.model import Diagnostic, HostReport, Site
from tilecheck.options import DEFAULT_BUDGET, Options
from tilecheck.text import decode
from tilecheck.verify.discover import Candidate, discover
from tilecheck.verify.host_functions import judge_hosts
from tilecheck.verify.importers import kernel_names, launchers
from tilecheck.verify.launch_sites import launches_around, launches_of
from tilecheck.verify.stages import preload, verify_kernel

Result = dict[str, Any]
Work = tuple[Candidate, tuple[Candidate, ...]]

PACKAGES = tuple(
    Row(name, name, version, ())
    for name, version in (
        ("fla-core", "0.6.0"),
        ("flag-gems", "5.0.2"),
        ("flash-linear-attention", "0.6.0"),
        ("liger-kernel", "0.8.5"),
        ("sglang", "0.5.23"),
        ("tilegym", "1.5.1"),
        ("vllm", "0.33.0"),
    )
)
MOST_ADDED = 0.15  # of the rest of the analysis
_USED = (
    "z3",
    "tilecheck.analysis.launch_footprint",
    "tilecheck.frontend.host_programs",
    "tilecheck.findings.host_functions",
    "tilecheck.proof.launches.aliasing",
    "tilecheck.proof.interleavings.judge",
)
_MEGABYTES = 4000


# ---- in the process of a file ------------------------------------------------------------------------------


def judge_file(work: Work) -> Result:
    """The records of a file's host functions, and what is wrong with them."""
    candidate, _ = work
    table = Project().add(parse(decode(candidate.path, candidate.data)))
    start = time.process_time()
    hosts, found = judge_hosts(table, DEFAULT_BUDGET)
    spent = time.process_time() - start
    return {"seconds": spent, "hosts": [_host(h) for h in hosts], "findings": [_finding(d) for d in found]}


def verify_kernels(work: Work) -> Result:
    """How long the kernels and launches of a file take."""
    candidate, importers = work
    table = Project().add(parse(decode(candidate.path, candidate.data)))
    start = time.process_time()
    definitions = find_kernels(table)
    launches = launches_around(table, importers, uses=candidate.uses) if definitions else ()
    for definition in definitions:
        verify_kernel(definition, launches_of(definition, launches), Options())
    return {"seconds": time.process_time() - start, "kernels": len(definitions)}


def _host(host: HostReport) -> Result:
    return {
        "name": host.name,
        "at": _place(host.site),
        "status": host.status,
        "reason": host.reason,
        "reason_at": None if host.reason_site is None else _place(host.reason_site),
        "internal": host.internal_error,
    }


def _finding(found: Diagnostic) -> Result:
    related = [f"{_place(r.site)}: {r.message}" for r in found.related]
    return {"code": found.code, "at": _place(found.site), "message": found.message, "related": related}


def _place(site: Site) -> str:
    line = Path(site.file).read_bytes().count(b"\n", 0, site.span.start) + 1
    return f"{site.file}:{line}"


def _limited(do: Callable[[Work], Result], work: Work, seconds: int, out: Any) -> None:
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEGABYTES << 20, _MEGABYTES << 20))
    collect_rarely()  # as the command does
    try:
        out.send(do(work))
    except SourceError:
        out.send({"seconds": 0.0})


def in_processes(
    do: Callable[[Work], Result], files: Sequence[Work], seconds: int, jobs: int
) -> Iterator[Result]:
    """What is done to each file; `over` where it takes too much time or memory."""
    context = multiprocessing.get_context("fork")

    def run(work: Work) -> Result:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_limited, args=(do, work, seconds, theirs))
        process.start()
        theirs.close()
        try:
            found = ours.recv()
        except EOFError:
            found = {"seconds": float(seconds), "over": True}
        process.join()
        return {"file": work[0].path, **found}

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(run, files)


# ---- the table ---------------------------------------------------------------------------------------------


def judge_package(row: Row, options: argparse.Namespace) -> bool:
    """Print what became of a package; whether it meets the bars."""
    found = discover(sorted(path.name for path in Path().iterdir() if path.suffix != ".dist-info"))
    work = dict(launchers(found.candidates, found.hosts))
    ordering = [(c, work[c]) for c in work if c.orders]
    results = []
    for result in in_processes(judge_file, ordering, options.seconds, options.jobs):
        results.append(result)
        if options.json:
            with Path(options.json).open("a", encoding="utf-8") as out:
                out.write(json.dumps({"package": row.package, **result}) + "\n")
    hosts = [host for result in results for host in result.get("hosts", ())]
    of = Counter(host["status"] for host in hosts)
    total = sum(result["seconds"] for result in results)
    over = [r["file"] for r in results if r.get("over")]
    crashed = [host for host in hosts if host["internal"]]
    slowest = sorted(results, key=lambda r: -r["seconds"])[:3]
    print(f"\n{row.package} {row.version}: {found.files} files, {len(ordering)} that may have host functions")
    print(
        f"  {len(hosts)} host functions: {of['ordered']} ordered, {of['unread']} unread, {of['violated']}"
        f" violated; {len(crashed)} crashes, {len(over)} files over {options.seconds} s"
    )
    for finding in (f for result in results for f in result.get("findings", ())):
        print(f"  {finding['at']}: {finding['code']} {finding['message']}")
    reasons = Counter(_kind(host["reason"]) for host in hosts if host["status"] == "unread")
    for reason, count in reasons.most_common(options.reasons):
        print(f"    {count:4} {reason}")
    print(f"  {total:.1f} s; slowest: " + ", ".join(f"{r['file']} {r['seconds']:.1f} s" for r in slowest))
    added = _added(work, results, options) if options.rest else 0.0
    return not crashed and not over and added <= MOST_ADDED


def _kind(reason: str) -> str:
    """A reason without the code and the names in it."""
    return re.sub(r"`[^`]*`", "`..`", reason)


def _added(work: dict[Candidate, tuple[Candidate, ...]], results: Sequence[Result], options: Any) -> float:
    """The share of time that host functions add to files with kernels."""
    with_kernels = [(c, work[c]) for c in work if kernel_names(c)]
    drawn = with_kernels
    if len(drawn) > options.rest:
        drawn = random.Random(options.seed).sample(with_kernels, options.rest)  # noqa: S311
    rest = list(in_processes(verify_kernels, drawn, options.rest_seconds, options.jobs))
    seconds = sum(r["seconds"] for r in rest)
    names = {c.path for c, _ in with_kernels}
    own = sum(r["seconds"] for r in results if r["file"] in names)
    of_drawn = sum(r["seconds"] for r in results if r["file"] in {c.path for c, _ in drawn})
    whole = seconds * len(with_kernels) / max(1, len(drawn))
    added = own / whole if whole else 0.0
    print(
        f"  {len(with_kernels)} files with kernels, {len(drawn)} of them drawn (seed {options.seed}): kernels"
        f" take {seconds:.1f} s there, host functions {of_drawn:.2f} s;"
        f" in all {whole:.0f} s (estimated) and {own:.1f} s: {added:.1%} added"
    )
    return added


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cache", default="build/corpora", metavar="DIR", help="keeps what is downloaded")
    parser.add_argument("--unpacked", metavar="DIR", help="holds unpacked wheels: nothing is downloaded")
    parser.add_argument("--package", action="append", choices=[row.name for row in PACKAGES])
    parser.add_argument("--rest", type=int, default=0, metavar="N", help="verify kernels of so many files, too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes work (default: 1)")
    parser.add_argument("--seconds", type=int, default=60, help="processor time for a file (default: 60)")
    parser.add_argument("--rest-seconds", type=int, default=60, help="the same for kernels (default: 60)")
    parser.add_argument("--reasons", type=int, default=8, metavar="N", help="kinds of reasons to print")
    parser.add_argument("--json", metavar="FILE", help="one line for each file")
    options = parser.parse_args()
    for name in _USED:  # before the first fork: what importing takes is no file's time
        importlib.import_module(name)
    preload()
    if options.json:
        Path(options.json).unlink(missing_ok=True)
        options.json = str(Path(options.json).resolve())
    start, good = Path.cwd(), True
    for row in PACKAGES:
        if not options.package or row.name in options.package:
            os.chdir(unpacked(row, options))
            good = judge_package(row, options) and good
            os.chdir(start)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
