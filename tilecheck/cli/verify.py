"""`verify` and `check`: the same analysis; they differ in what is demanded of it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.certificates import prepare_folder, write_index
from tilecheck.cli.command import Verb, add_analysis
from tilecheck.cli.output import count, emit_lines, emit_text, log_end, write_file
from tilecheck.cli.settings import add_input, choice_of, jobs_of, log_skipped, settings_of_run, verified
from tilecheck.cli.streams import Streams
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.model import Report
from tilecheck.options import Options

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine
    from tilecheck.report.style import Line

# More findings than this are listed one a line, unless a format was asked for.
_MANY = 20


def add(verb: Verb) -> None:
    for name, text in (
        ("verify", "decide every kernel: the gate for CI"),
        ("check", "the same analysis for editors and hooks: an undecided kernel is only a warning"),
    ):
        added = verb(name, verify, text)
        add_analysis(added, ("full", "concise", "json"))
        added.add_argument(
            "--fail-on", choices=("error", "warning", "info"), metavar="LEVEL",
            help="the weakest finding that fails the run: error (default), warning or info",
        )  # fmt: skip
        add_input(added)
        added.add_argument("-q", "--quiet", action="store_true", help="print findings only")
        added.add_argument(
            "--emit-verdicts", metavar="FILE",
            help="write verdicts and launch conditions, for launching where nothing can be verified",
        )  # fmt: skip
        added.set_defaults(certify=None, dump_smt=None)
        if name == "verify":
            added.add_argument(
                "--certify", metavar="DIR", help="write a certificate of every proof to an empty folder"
            )
            added.add_argument(
                "--dump-smt", metavar="DIR",
                help="write the SMT-LIB queries that decided obligations to an empty folder",
            )  # fmt: skip


def verify(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """`verify` and `check`: the same analysis; they differ in what is demanded of it."""
    gate = arguments.verb == "verify"
    choice = choice_of(arguments)
    settings = settings_of_run(choice)
    arguments.format = arguments.format or settings.format
    options = Options(
        without=frozenset().union(*arguments.without),
        jobs=jobs_of(settings),
        config=choice,
        fail_on=settings.fail_on,
        undecided_fails=gate,
        needs_kernels=gate,
        certify=arguments.certify,
        dump_smt=arguments.dump_smt,
    )
    for folder in (arguments.certify, arguments.dump_smt):
        if folder is not None:
            prepare_folder(folder)
    report = verified(arguments, options, engine)
    if arguments.format == "json":
        from tilecheck.report.json import render_json  # lazy: only for this format

        emit_text(render_json(report), arguments, streams)
    else:
        emit_lines(_findings(report, arguments, streams), arguments, streams)
    if arguments.emit_verdicts:
        from tilecheck.jit.records import dump, records_of  # lazy: only on demand

        write_file(arguments.emit_verdicts, lambda: dump(records_of(report)))
    if arguments.certify is not None:
        write_index(arguments.certify, report, streams)
    if arguments.dump_smt is not None:
        queries = sum(1 for _ in Path(arguments.dump_smt).rglob("*.smt2"))
        streams.log(
            f"tilecheck: {count(queries, 'quer', 'y', 'ies')} in {arguments.dump_smt}, all of them refuted"
        )
    code = exit_code_of(report, options)
    if arguments.verbose:
        log_skipped(report, streams)
    log_end(report, arguments, streams, code)
    return code


def _findings(report: Report, arguments: argparse.Namespace, streams: Streams) -> Iterator[Line]:
    from tilecheck.report import concise, full, verdicts  # lazy: not for `explain`

    shown = arguments.format or ("concise" if os.environ.get("PRE_COMMIT") else "full")
    if arguments.format is None and shown == "full" and len(report.diagnostics) > _MANY:
        many = len(report.diagnostics)
        streams.log(f"tilecheck: {many} findings, one line each; `--format full` shows the source")
        shown = "concise"
    yield from (full if shown == "full" else concise).render_findings(report)
    if arguments.quiet:
        return
    if arguments.verb == "verify":
        yield from verdicts.render_verdicts(report)
        if report.kernels:
            yield ()
    yield from verdicts.render_summary(report)
