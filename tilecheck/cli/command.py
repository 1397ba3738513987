"""What a command line is made of: commands, and the arguments that several of them share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tilecheck.cli.settings import add_settings
from tilecheck.cli.streams import Streams
from tilecheck.dataclass import dataclass
from tilecheck.exit_codes import ExitCode
from tilecheck.options import RUNGS

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine

CACHE = ".tilecheck_cache"
CACHE_VARIABLE = "TILECHECK_CACHE_DIR"
Run = Callable[[argparse.Namespace, Streams, "Engine"], ExitCode]
# Adds a command by its name, what it runs and what it does in one line; returns its parser.
Verb = Callable[[str, Run, str], argparse.ArgumentParser]


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command line."""

    run: Run
    arguments: argparse.Namespace


def add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a directory, or file.py::kernel")


class Arguments(Protocol):
    """What arguments can be added to: a parser, or a group that `--help` lists under a title."""

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action: ...


def add_analysis(parser: argparse.ArgumentParser, formats: Sequence[str]) -> Arguments:
    """The arguments of commands that verify and report. Returns the group of those about reports."""
    parser.usage = f"{parser.prog} [OPTION ...] PATH ..."  # there are too many to list twice
    add_paths(parser)
    reports = parser.add_argument_group("reports")
    reports.add_argument(
        "--format", choices=formats, metavar="FORMAT", help=f"how to print: {', '.join(formats)}"
    )
    reports.add_argument("--output-file", metavar="FILE", help="write the report to a file")
    add_colour(reports)
    add_settings(parser)
    analysis = parser.add_argument_group("analysis")
    add_jobs(analysis)
    add_cache(analysis)
    analysis.add_argument("--no-progress", action="store_true", help="never show how far a long run is")
    analysis.add_argument(
        "--without", action="append", default=[], metavar="RUNG", type=_rungs,
        help=f"leave out a rung of the proof ladder: {', '.join(RUNGS)}",
    )  # fmt: skip
    return reports


def add_jobs(parser: Arguments) -> None:
    parser.add_argument(
        "-j", "--jobs", type=_jobs, metavar="N", default=0,
        help="how many processes work (default: one for each processor)",
    )  # fmt: skip


def add_cache(parser: Arguments) -> None:
    parser.add_argument("--no-cache", action="store_true", help="neither use nor keep results of other runs")
    parser.add_argument(
        "--cache-dir", metavar="DIR",
        help=f"keep results here (default: {CACHE_VARIABLE}, else {CACHE} beside the closest pyproject.toml)",
    )  # fmt: skip


def jobs(arguments: argparse.Namespace) -> int:
    """How many processes are asked for."""
    from tilecheck.parallel import available_cores  # lazy: not for `explain`

    return arguments.jobs or available_cores()


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of processes")
    return int(text)


def add_colour(parser: Arguments) -> None:
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", metavar="WHEN",
        help="auto (default), always or never",
    )  # fmt: skip


def _rungs(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(names - frozenset(RUNGS))
    if unknown or not names:
        wrong = unknown[0] if unknown else text
        raise argparse.ArgumentTypeError(f"`{wrong}` is not a rung: {', '.join(RUNGS)}")
    return names
