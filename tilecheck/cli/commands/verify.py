"""`verify` and `check`: the same analysis; they differ in what is demanded of it."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import Verb, add_analysis
from tilecheck.cli.commands.baseline import add_arguments, add_since, check_baseline, with_baseline
from tilecheck.cli.commands.cache import log_problem, with_cache
from tilecheck.cli.commands.certificates import prepare_folder, write_index
from tilecheck.cli.output import count, log_end, write_file
from tilecheck.cli.reports import add_reports, check_files, emit, final_code
from tilecheck.cli.settings import add_input, choice_of, jobs_of, log_skipped, settings_of_run, verified
from tilecheck.cli.streams import Streams
from tilecheck.demand import held_to
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.options import DEMANDS, Options
from tilecheck.parallel import one_thread_each
from tilecheck.report.formats import FORMATS
from tilecheck.report.progress import is_wanted
from tilecheck.report.run import Run, root_of

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine


VERBS = {
    "verify": "decide every kernel: the gate for CI",
    "check": "the same analysis for editors and hooks: an undecided kernel is only a warning",
}


def add(verb: Verb, *names: str) -> None:
    """Add the commands of these names."""
    for name in names:
        text = VERBS[name]
        added = verb(name, verify, text)
        add_reports(add_analysis(added, tuple(FORMATS)))
        gate = added.add_argument_group("what fails the run")
        gate.add_argument(
            "--fail-on", choices=("error", "warning", "info"), metavar="LEVEL",
            help="the weakest finding that fails the run: error (default), warning or info",
        )  # fmt: skip
        gate.add_argument(
            "--require", choices=DEMANDS, metavar="LEVEL",
            help="what every kernel must meet, or the run ends with 3: conditional (default), launches (each "
            "launch in view decided, nothing promised) or proved",
        )  # fmt: skip
        gate.add_argument("--exit-zero", action="store_true", help="end with 0 whatever is found or undecided")
        add_arguments(gate)
        add_since(gate)
        add_input(added)
        proofs = added.add_argument_group("proofs")
        proofs.add_argument(
            "--emit-verdicts", metavar="FILE",
            help="write verdicts and launch conditions, for launching where nothing can be verified",
        )  # fmt: skip
        added.set_defaults(certify=None, dump_smt=None, propose=False)
        if name == "verify":
            proofs.add_argument(
                "--propose", action="store_true",
                help="verify the contracts that the report names: decides such kernels once more",
            )  # fmt: skip
            proofs.add_argument(
                "--certify", metavar="DIR", help="write a certificate of every proof to an empty folder"
            )
            proofs.add_argument(
                "--dump-smt", metavar="DIR",
                help="write the SMT-LIB queries that decided obligations to an empty folder",
            )  # fmt: skip


def verify(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """`verify` and `check`: the same analysis; they differ in what is demanded of it."""
    one_thread_each()
    gate = arguments.verb == "verify"
    choice = choice_of(arguments)
    settings = settings_of_run(choice)
    arguments.format = arguments.format or settings.format
    options = Options(
        without=frozenset().union(*arguments.without),
        jobs=jobs_of(settings),
        config=choice,
        since=arguments.since,
        fail_on=settings.fail_on,
        undecided_fails=gate,
        needs_kernels=gate,
        require=settings.require,
        certify=arguments.certify,
        dump_smt=arguments.dump_smt,
        propose=arguments.propose,
    )
    check_files(arguments)
    check_baseline(arguments)
    options = with_cache(arguments, options, settings)
    options = replace(options, progress=not arguments.no_progress and is_wanted(streams.stderr))
    for folder in (arguments.certify, arguments.dump_smt):
        if folder is not None:
            prepare_folder(folder)
    report = with_baseline(verified(arguments, options, engine), arguments, streams)
    report = held_to(report, options.require)
    code = final_code(exit_code_of(report, options), arguments)
    run = Run(
        report,
        root_of(os.environ),
        exit_code=code,
        fail_on=options.fail_on,
        lists_verdicts=gate,
        quiet=arguments.quiet > 0,
        includes_pass=arguments.sarif_include_pass,
    )
    emit(run, arguments, streams)
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
    if arguments.verbose:
        log_skipped(report, streams)
    if arguments.add_ignore is not None:
        from tilecheck.cli.commands.ignores import add_ignores  # lazy: only on demand

        add_ignores(report, arguments, streams)
    log_problem(report, streams)
    log_end(report, arguments, streams, code)
    return code
