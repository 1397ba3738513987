"""How the time for a package grows with its size: parts of it, each verified as if there were no more."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corpora_files import Record

from tilecheck.verify.discover import Candidate, discover
from tilecheck.verify.importers import launchers

Work = list[tuple[Candidate, tuple[Candidate, ...]]]


@dataclass(frozen=True, slots=True)
class Part:
    """What became of the first files of a package."""

    files: tuple[str, ...]
    bytes: int
    finding: float  # seconds of processor time until each file's launches are known
    records: list[Record]

    def seconds(self, files: Sequence[str]) -> float:
        """Processor time for these of its files, reading included."""
        reading = {r["file"]: r.get("reading_ms", 0) for r in self.records if r["file"] in files}
        spent = sum(r["ms"] or 0 for r in self.records if r["file"] in files)
        return (spent + sum(reading.values())) / 1000


def grown(
    chosen: Sequence[Candidate], parts: int, seed: int, verify: Callable[[Work], list[Record]]
) -> list[Part]:
    """A package cut to one share, two shares, ... of its files, drawn at random, each share within the next."""
    files = [candidate.path for candidate in chosen]
    random.Random(seed).shuffle(files)  # noqa: S311 - reproducible choices, no secrets
    found = []
    for number in range(1, parts + 1):
        own = sorted(files[: len(files) * number // parts])
        start = time.process_time()
        there = discover(own)
        work = launchers(there.candidates, there.hosts)
        finding = time.process_time() - start
        size = sum(len(candidate.data) for candidate in there.candidates)
        found.append(Part(tuple(own), size, finding, verify(work)))
    return found


def print_growth(name: str, parts: Sequence[Part]) -> None:
    """Print time against size; if it is linear, the last two columns do not grow."""
    whole = parts[-1]
    print(f"{name}\n")
    print(
        "| files | kB | kernels | finding, s | verifying, s | the same files in the whole, s | s for 100 kB |\n"
        "|---:|---:|---:|---:|---:|---:|---:|"
    )
    for part in parts:
        spent = part.seconds(part.files)
        each = (part.finding + spent) / max(1, part.bytes) * 100_000
        cells = (
            len(part.files),
            round(part.bytes / 1000),
            len(part.records),
            f"{part.finding:.2f}",
            f"{spent:.1f}",
            f"{whole.seconds(part.files):.1f}",
            f"{each:.1f}",
        )
        print(f"| {' | '.join(map(str, cells))} |")
    print(flush=True)
