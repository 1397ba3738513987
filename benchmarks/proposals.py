"""Supplies the contracts that reports propose, verifies again, and prints what became of the kernels.

    nice python benchmarks/proposals.py FOLDER [--files GLOB] [--sample N --seed S] [--jobs N] [--json FILE]

FOLDER holds packages. Of each kernel that needs a contract, all comments in its report are given to it as if
they stood above it, and it is verified once more. Printed are how many kernels have a proposal for each thing
that is not decided for want of a contract, for some, or for none; how many are decided with them; and what that
took.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from corpora_files import Limits, Record, verify_files

from tilecheck.config.contracts import Contracts, Entry
from tilecheck.frontend.kernels.definitions import Given
from tilecheck.model import Site, Span
from tilecheck.verify.discover import Candidate, discover
from tilecheck.verify.importers import launchers

_PROPOSED = re.compile(r"`# tilecheck: requires (.*?)(?: -- why)?`")
_Work = tuple[Candidate, tuple[Candidate, ...]]


def main() -> None:
    options = _options()
    os.chdir(options.folder)
    found = discover(sorted(p.name for p in Path().iterdir()))
    work = [
        w for w in launchers(found.candidates, found.hosts) if fnmatch.fnmatch(str(w[0].path), options.files)
    ]
    if options.sample:
        work = random.Random(options.seed).sample(work, min(options.sample, len(work)))  # noqa: S311 - no secret
    limits = Limits(options.seconds, 3000)
    first = [r for records in verify_files(work, limits, options.jobs) for r in records]
    waiting = [r for r in first if r["reason"] == "needs-contract"]
    files = {r["file"] for r in waiting if proposed(r)}
    again = [w for w in work if str(w[0].path) in files]
    config = Contracts(Path.cwd(), tuple(_entry(r) for r in waiting if proposed(r)))
    second = {_name(r): r for records in verify_files(again, limits, options.jobs, config) for r in records}
    _print(waiting, second)
    if options.json:
        pairs = [{"first": r, "proposed": proposed(r), "second": second.get(_name(r))} for r in waiting]
        Path(options.json).write_text("".join(json.dumps(p) + "\n" for p in pairs))


def proposed(record: Record) -> list[str]:
    """The contracts that the report of a kernel proposes, each once."""
    helps = [finding["help"] or "" for finding in record["findings"]]
    return list(dict.fromkeys(text for h in helps for text in _PROPOSED.findall(h)))


def _name(record: Record) -> tuple[str, str]:
    return record["file"], record["kernel"]


def _entry(record: Record) -> Entry:
    site = Site(record["file"], Span(0, 0))
    given = Given(tuple(proposed(record)), (), "proposed", site, named=True)
    return Entry(f"{record['file']}::{record['kernel']}", given)


def _print(waiting: Sequence[Record], second: dict[tuple[str, str], Record]) -> None:
    asked: Counter[str] = Counter()
    became: Counter[str] = Counter()
    for record in waiting:
        helps = [f["help"] or "" for f in record["findings"] if "(needs-contract)" in f["message"]]
        told = sum(bool(_PROPOSED.search(h)) for h in helps)
        asked["all" if told == len(helps) else "some" if told else "none"] += 1
        then = second.get(_name(record))
        if then is not None:
            became[then["verdict"] if then["verdict"] != "unknown" else f"unknown({then['reason'][:24]})"] += 1
    print(f"{len(waiting)} kernels need a contract")
    print("with a proposal for what is open:", ", ".join(f"{what} {n}" for what, n in asked.most_common()))
    print("with these:", ", ".join(f"{what} {n}" for what, n in became.most_common()))
    for what, records in (("first", waiting), ("with them", second.values())):
        times = sorted(r["ms"] for r in records if r["ms"] is not None)
        if times:
            print(f"ms, {what}: median {times[len(times) // 2]:.0f}, sum {sum(times):.0f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Supply what reports propose, and verify again.")
    parser.add_argument("folder")
    parser.add_argument("--files", default="*")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="of processor time, for a file")
    parser.add_argument("--json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
