"""Where the results of a run go, and what is said of the run itself."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.crash import log_internal_errors
from tilecheck.cli.streams import Streams, wants_colour
from tilecheck.errors import UsageError, refusal
from tilecheck.exit_codes import ExitCode
from tilecheck.model import Report

if TYPE_CHECKING:
    from tilecheck.report.style import Line


def emit_text(text: str, arguments: argparse.Namespace, streams: Streams) -> None:
    if arguments.output_file:
        write_file(arguments.output_file, lambda: text)
    else:
        streams.out(text)


def emit_lines(lines: Iterator[Line], arguments: argparse.Namespace, streams: Streams) -> None:
    from tilecheck.report.style import plain  # lazy

    if arguments.output_file:
        write_file(arguments.output_file, lambda: plain(lines))
    else:
        streams.out_lines(lines, colour=wants_colour(arguments.color, streams.stdout, os.environ))


def write_file(path: str, text: Callable[[], str]) -> None:
    from tilecheck.report.style import fit  # lazy

    try:
        # The name of a file may hold bytes that are no text.
        Path(path).write_text(fit(text(), "utf-8"), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {refusal(error)}") from None


def count(number: int, noun: str, one: str = "", many: str = "s") -> str:
    return f"{number} {noun}{one if number == 1 else many}"


def log_end(report: Report, arguments: argparse.Namespace, streams: Streams, code: ExitCode) -> None:
    """What a user must know of the run itself, apart from the report."""
    log_internal_errors(report, [arguments.verb, *arguments.paths], streams)
    if code is ExitCode.USAGE:
        streams.log(f"tilecheck: no kernels found in {count(report.files, 'file')}")
        streams.log("  hint: name the files that hold kernels; `tilecheck check` accepts finding none")
