"""Verifies published kernels, from their wheels at fixed versions, and prints what became of them.

    nice python benchmarks/corpora.py [--cache DIR | --unpacked DIR] [--sample N --seed S] [--json FILE]
    nice python benchmarks/corpora.py --growth 4 --row conch-triton-kernels

Each file is verified once, in a process of its own, with the launches that stand anywhere in its package. A
file that needs more processor time or memory than it is allowed ends there; its kernels that have no verdict
yet count as `over`. Times are processor time from lowering to verdict. The exit code is 1 if a bar is missed.
`--growth N` verifies 1/N, 2/N, ... of the files instead, and prints time against size.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from corpora_files import Limits, Record, verify_files
from corpora_growth import Work, grown, print_growth
from corpora_table import print_table

from tilecheck.config.contracts import Contracts, contracts_of
from tilecheck.config.files import load
from tilecheck.verify.discover import Candidate, Discovery, discover
from tilecheck.verify.importers import launchers

CONFIGS = Path(__file__).resolve().parent / "corpora_configs"


@dataclass(frozen=True, slots=True)
class Row:
    """A part of a package: the files under `paths` but those under `without`, and the share to be decided.

    `config` is a file of `corpora_configs/` whose entries speak of its kernels.
    """

    name: str
    package: str
    version: str
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()
    bar: float | None = None
    config: str | None = None


ROWS = (
    Row("bastile", "bastile", "0.1.3", ("bastile",)),
    Row("liger-kernel", "liger-kernel", "0.8.5", ("liger_kernel",), ("liger_kernel/ops/backends",), bar=0.52),
    Row(
        "liger-kernel, contracts",
        "liger-kernel",
        "0.8.5",
        ("liger_kernel",),
        ("liger_kernel/ops/backends",),
        config="liger.toml",
    ),
    Row("liger-kernel backends", "liger-kernel", "0.8.5", ("liger_kernel/ops/backends",)),
    Row("fla-core", "fla-core", "0.6.0", ("fla",)),
    Row("fla-core, dense", "fla-core", "0.6.0", ("fla",), config="fla_dense.toml"),
    Row("fla-core, contracts", "fla-core", "0.6.0", ("fla",), config="fla_varlen.toml"),
    Row("flag-gems", "flag-gems", "5.0.2", ("flag_gems/ops", "flag_gems/fused"), bar=0.6),
    Row(
        "flag-gems, contracts",
        "flag-gems",
        "5.0.2",
        ("flag_gems/ops", "flag_gems/fused"),
        config="flag_gems.toml",
    ),
    Row("flag-gems vendors", "flag-gems", "5.0.2", ("flag_gems/runtime/backend",)),
    Row("conch-triton-kernels", "conch-triton-kernels", "1.3", ("conch",)),
    Row("unsloth", "unsloth", "2026.10.9", ("unsloth",)),
    Row("tilegym", "tilegym", "1.5.1", ("tilegym",)),
)


def unpacked(row: Row, options: argparse.Namespace) -> Path:
    """The folder with a package's files, downloaded if need be."""
    if options.unpacked is not None:
        named = f"{row.package.replace('-', '_')}-{row.version}"
        found = sorted(Path(options.unpacked).glob(f"{named}*"))
        if not found:
            raise SystemExit(f"{options.unpacked} holds no {named}")
        return found[0]
    cache = Path(options.cache)
    folder = cache / f"{row.package}-{row.version}"
    if not folder.is_dir():
        wheels = cache / "wheels"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", str(wheels), f"{row.package}=={row.version}"], check=True)
        wheel = next(wheels.glob(f"{row.package.replace('-', '_')}-{row.version}-*.whl"))
        partly = folder.with_name(f"{folder.name}.part")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(partly)
        partly.rename(folder)  # whole, or not there
    return folder


def chosen_files(row: Row, options: argparse.Namespace) -> tuple[list[Candidate], Discovery]:
    """The files of a row, and all that the package has; paths start at the package's folder."""
    tops = [path.name for path in Path().iterdir() if path.is_dir() and not path.name.endswith(".dist-info")]
    found = discover(sorted(tops))
    chosen = [candidate for candidate in found.candidates if _is_chosen(row, candidate.path, options)]
    if options.sample is not None and len(chosen) > options.sample:
        drawn = random.Random(options.seed)  # noqa: S311
        chosen = [chosen[i] for i in sorted(drawn.sample(range(len(chosen)), options.sample))]
    return chosen, found


def _is_chosen(row: Row, path: str, options: argparse.Namespace) -> bool:
    def below(folders: Sequence[str]) -> bool:
        return any(path.startswith(f"{folder}/") for folder in folders)

    return below(row.paths) and not below(row.without) and fnmatch.fnmatch(path, options.files)


def run(options: argparse.Namespace) -> Iterator[tuple[Row, list[Record]]]:
    """Verify row by row, file by file."""
    start = Path.cwd()
    limits = Limits(options.seconds, options.megabytes)
    for row in ROWS:
        if options.row and row.name not in options.row:
            continue
        os.chdir(unpacked(row, options))
        settings = None if row.config is None else load(CONFIGS / row.config)
        config = settings and replace(contracts_of(settings), folder=Path.cwd())
        chosen, found = chosen_files(row, options)
        if options.growth:
            verify = partial(_verified, limits=limits, jobs=options.jobs, config=config)
            print_growth(row.name, grown(chosen, options.growth, options.seed, verify))
        else:
            work = launchers(chosen, found.hosts, found.texts)
            for records in verify_files(work, limits, options.jobs, config):
                yield row, records
        os.chdir(start)


def _verified(work: Work, *, limits: Limits, jobs: int, config: Contracts | None) -> list[Record]:
    return [record for records in verify_files(work, limits, jobs, config) for record in records]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cache", default="build/corpora", metavar="DIR", help="keeps what is downloaded")
    parser.add_argument("--unpacked", metavar="DIR", help="holds unpacked wheels: nothing is downloaded")
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS], help="this row alone")
    parser.add_argument("--files", default="*", metavar="GLOB", help="these files alone")
    parser.add_argument("--sample", type=int, metavar="N", help="so many files of each row, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes work (default: 1)")
    parser.add_argument("--seconds", type=int, default=60, help="processor time for a file (default: 60)")
    parser.add_argument("--megabytes", type=int, default=3000, help="memory for a file (default: 3000)")
    parser.add_argument("--growth", type=int, default=0, metavar="N", help="time against size, in N parts")
    parser.add_argument("--json", metavar="FILE", help="one line for each kernel")
    options = parser.parse_args()
    rows: dict[Row, list[Record]] = {}
    lines = Path(options.json).open("w", encoding="utf-8") if options.json else None  # noqa: SIM115
    for row, records in run(options):
        rows.setdefault(row, []).extend(records)
        for record in records if lines else ():
            print(json.dumps({"row": row.name, **record}), file=lines, flush=True)
    if options.growth:
        return
    missed = print_table([(row.name, row.bar, records) for row, records in rows.items()])
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    main()
