"""The reports of one run: one for standard output, any number for files, and what CI shows of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import Arguments
from tilecheck.cli.output import write_file
from tilecheck.cli.streams import Streams, wants_colour
from tilecheck.errors import UsageError, refusal
from tilecheck.exit_codes import ExitCode
from tilecheck.report.formats import FORMATS, lines_of, text_of

if TYPE_CHECKING:
    from tilecheck.report.run import Run
    from tilecheck.report.style import Line

# More findings than this are listed one a line, unless a format was asked for.
_MANY = 20


def add_reports(group: Arguments) -> None:
    """The arguments about reports, beside `--format` and `--output-file`."""
    group.add_argument(
        "--report", action="append", default=[], metavar="FORMAT=FILE", type=_report, dest="reports",
        help="write a report in another format to a file as well; may be given again",
    )  # fmt: skip
    group.add_argument("--sarif-include-pass", action="store_true", help="list what passes in SARIF, too")
    group.add_argument(
        "--statistics", action="store_true", help="count by rule, verdict and rung of the ladder"
    )
    group.add_argument(
        "-q", "--quiet", action="count", default=0, help="print findings only; -qq: print nothing"
    )


def _report(text: str) -> tuple[str, str]:
    name, separator, file = text.partition("=")
    if not separator or not file:
        raise argparse.ArgumentTypeError(f"`{text}` is not FORMAT=FILE, as in `sarif=tilecheck.sarif`")
    if file == "-":
        raise argparse.ArgumentTypeError(f"`{text}` names no file: `--format {name}` prints to standard output")
    if name not in FORMATS:
        raise argparse.ArgumentTypeError(f"`{name}` is not a format: {', '.join(FORMATS)}")
    return name, file


def check_files(arguments: argparse.Namespace) -> None:
    """Refuse before the analysis what could only fail after it.

    Raises:
        UsageError: two reports go to one file, or a file cannot be written.
    """
    named: dict[str, str] = {}
    for file in _files(arguments):
        known = named.setdefault(os.path.realpath(file), file)
        if known is not file:
            raise UsageError(f"two reports go to one file: {known} and {file}", "name a file for each of them")
    for file in named.values():
        path = Path(file)
        folder = path.parent
        there = os.path.exists(path)  # noqa: PTH110 - a folder may not be readable
        if os.path.isdir(path):  # noqa: PTH112 - as above
            raise UsageError(f"cannot write {file}: is a directory")
        if path.suffix == ".py" and there:  # `--output-file kernels/*.py`, say
            raise UsageError(f"cannot write {file}: a Python file would be lost", "name another file")
        if not os.path.isdir(folder):  # noqa: PTH112 - as above
            raise UsageError(f"cannot write {file}: there is no folder {folder}")
        if not os.access(path if there else folder, os.W_OK):
            raise UsageError(f"cannot write {file}: permission denied")


def _files(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.output_file:
        yield arguments.output_file
    if arguments.emit_verdicts:
        yield arguments.emit_verdicts
    yield from (file for _, file in arguments.reports)


def final_code(code: ExitCode, arguments: argparse.Namespace) -> ExitCode:
    """What the process ends with: `--exit-zero` forgives what was found, and nothing that went wrong."""
    forgiven = arguments.exit_zero and code in (ExitCode.FINDINGS, ExitCode.UNDECIDED)
    return ExitCode.OK if forgiven else code


def emit(run: Run, arguments: argparse.Namespace, streams: Streams) -> None:
    """Write the reports that go to files, and print the one that was asked for.

    Raises:
        UsageError: a file cannot be written; everything else is written all the same.
    """
    name = arguments.format or _default_format(run, arguments, streams)
    # Whoever reads a file later wants all of it, whatever is printed now.
    reports = [(wanted, file, replace(run, quiet=False)) for wanted, file in arguments.reports]
    if arguments.output_file:
        reports.append((name, arguments.output_file, run))
    problems = [_write(wanted, file, of) for wanted, file, of in reports]
    people = FORMATS[name].for_people
    if not arguments.output_file:
        if not people:
            streams.out(text_of(name, run))
        elif arguments.quiet < 2:
            _print(lines_of(name, run), streams, arguments)
    if arguments.statistics and arguments.quiet < 2:
        _print_statistics(run, arguments, streams, on_stdout=people and not arguments.output_file)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _tell_github(run, streams, os.environ, annotate=people and arguments.quiet < 2)
    for problem in problems:
        if problem is not None:
            raise problem


def _write(name: str, file: str, run: Run) -> UsageError | None:
    try:
        write_file(file, partial(text_of, name, run))
    except UsageError as problem:
        return problem
    return None


def _default_format(run: Run, arguments: argparse.Namespace, streams: Streams) -> str:
    if os.environ.get("PRE_COMMIT"):
        return "concise"
    many = len(run.report.diagnostics)
    if many <= _MANY:
        return "full"
    if arguments.quiet < 2:
        streams.log(f"tilecheck: {many} findings, one line each; `--format full` shows the source")
    return "concise"


def _print(lines: Iterator[Line], streams: Streams, arguments: argparse.Namespace) -> None:
    streams.out_lines(lines, colour=wants_colour(arguments.color, streams.stdout, os.environ))


def _print_statistics(run: Run, arguments: argparse.Namespace, streams: Streams, *, on_stdout: bool) -> None:
    from tilecheck.report.statistics import render  # lazy: only on demand
    from tilecheck.report.style import plain  # lazy: as above

    if on_stdout:
        _print(render(run.report), streams, arguments)
    else:  # what is printed there is for a program, or nothing
        streams.log(plain(render(run.report)).strip("\n"))


def _tell_github(run: Run, streams: Streams, environment: Mapping[str, str], *, annotate: bool) -> None:
    """Annotations beside the code, where programs do not read what is printed; a page for the job's summary."""
    if annotate:
        streams.out(text_of("github", run))
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if summary:
        from tilecheck.report.emitters.step_summary import render  # lazy: only on GitHub
        from tilecheck.report.style import fit  # lazy: as above

        try:
            with Path(summary).open("a", encoding="utf-8", newline="\n") as file:
                file.write(fit(render(run), "utf-8"))
        except OSError as error:  # the page is an extra: the verdict stands without it
            streams.log(f"tilecheck: cannot write the summary to {summary}: {refusal(error)}")
