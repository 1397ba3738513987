"""The commands: each takes the parsed arguments, the streams and the engine, and returns an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.certificates import prepare_folder, write_index
from tilecheck.cli.crash import log_internal_errors
from tilecheck.cli.streams import Streams, wants_colour
from tilecheck.errors import UsageError, refusal
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.model import Report, Severity
from tilecheck.options import Options

if TYPE_CHECKING:
    import argparse

    from tilecheck.cli.engine import Engine
    from tilecheck.report.style import Line

# More findings than this are listed one a line, unless a format was asked for.
_MANY = 20


def verify(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """`verify` and `check`: the same analysis; they differ in what is demanded of it."""
    gate = arguments.verb == "verify"
    options = Options(
        without=frozenset().union(*arguments.without),
        jobs=_jobs(arguments),
        fail_on=Severity[arguments.fail_on.upper()],
        undecided_fails=gate,
        needs_kernels=gate,
        certify=arguments.certify,
        dump_smt=arguments.dump_smt,
    )
    for folder in (arguments.certify, arguments.dump_smt):
        if folder is not None:
            prepare_folder(folder)
    report = engine.verify(arguments.paths, options)
    if arguments.format == "json":
        from tilecheck.report.json import render_json  # lazy: only for this format

        _emit_text(render_json(report), arguments, streams)
    else:
        _emit_lines(_findings(report, arguments, streams), arguments, streams)
    if arguments.emit_verdicts:
        from tilecheck.jit.records import dump, records_of  # lazy: only on demand

        _write_file(arguments.emit_verdicts, lambda: dump(records_of(report)))
    if arguments.certify is not None:
        write_index(arguments.certify, report, streams)
    if arguments.dump_smt is not None:
        count = sum(1 for _ in Path(arguments.dump_smt).rglob("*.smt2"))
        streams.log(
            f"tilecheck: {_count(count, 'quer', 'y', 'ies')} in {arguments.dump_smt}, all of them refuted"
        )
    code = exit_code_of(report, options)
    _log_end(report, arguments, streams, code)
    return code


def _jobs(arguments: argparse.Namespace) -> int:
    from tilecheck.parallel import available_cores  # lazy: not for `explain`

    return arguments.jobs or available_cores()


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


def _log_end(report: Report, arguments: argparse.Namespace, streams: Streams, code: ExitCode) -> None:
    """What a user must know of the run itself, apart from the report."""
    log_internal_errors(report, [arguments.verb, *arguments.paths], streams)
    if code is ExitCode.USAGE:
        streams.log(f"tilecheck: no kernels found in {_count(report.files, 'file')}")
        streams.log("  hint: name the files that hold kernels; `tilecheck check` accepts finding none")


def explain(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Print the page of a rule, a verdict, a reason of `unknown` or a standing obligation."""
    from tilecheck import registry  # lazy
    from tilecheck.report.explain import rule_page_text
    from tilecheck.report.topics import topic_page, topics

    page = topic_page(arguments.topic)
    if page is None:
        file = registry.find_rule(arguments.topic)
        if file is None:
            known = [word for f in registry.rule_files() for word in (f.code, f.name)] + list(topics())
            raise UsageError(f"nothing is known of `{arguments.topic}`", _did_you_mean(arguments.topic, known))
        page = rule_page_text(file, registry.rule_page(file))
    streams.out(page)
    return ExitCode.OK


def _did_you_mean(word: str, known: list[str]) -> str:
    import difflib  # lazy: only after a mistake

    folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(folded), n=1)
    return f"did you mean `{folded[near[0]]}`?" if near else "`tilecheck rules` lists the rules"


def rules(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """List the rules."""
    from tilecheck.registry import load_rules  # lazy: imports every rule
    from tilecheck.report.explain import render_rules, rules_object, rules_table  # lazy

    loaded = load_rules()
    if arguments.format == "json":
        streams.out(rules_object(loaded))
    elif arguments.format == "markdown":
        streams.out(rules_table(loaded))
    else:
        colour = wants_colour(arguments.color, streams.stdout, os.environ)
        streams.out_lines(render_rules(loaded), colour=colour)
    return ExitCode.OK


def show(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Print one stage of the pipeline for one kernel."""
    from tilecheck.discover import split_target  # lazy

    path, kernel = split_target(arguments.target)
    if kernel is None:
        raise UsageError(f"`{arguments.target}` names no kernel", "write `file.py::kernel`")
    text = engine.show(arguments.stage, path, kernel)
    streams.out(text if text.endswith("\n") else text + "\n")
    return ExitCode.OK


def audit(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """List what the verdicts rest on. Findings do not fail it: it is a listing, which must be whole."""
    from tilecheck.report.audit import audit_object, render_audit  # lazy

    options = Options(
        without=frozenset().union(*arguments.without),
        jobs=_jobs(arguments),
        undecided_fails=False,
        needs_kernels=False,
    )
    report = engine.verify(arguments.paths, options)
    if arguments.format == "json":
        _emit_text(audit_object(report), arguments, streams)
    else:
        _emit_lines(render_audit(report), arguments, streams)
    code = exit_code_of(report, options)
    _log_end(report, arguments, streams, code)
    if code is not ExitCode.FINDINGS:
        return code
    return ExitCode.UNDECIDED if report.unreadable else ExitCode.OK


def _emit_text(text: str, arguments: argparse.Namespace, streams: Streams) -> None:
    if arguments.output_file:
        _write_file(arguments.output_file, lambda: text)
    else:
        streams.out(text)


def _emit_lines(lines: Iterator[Line], arguments: argparse.Namespace, streams: Streams) -> None:
    from tilecheck.report.style import plain  # lazy

    if arguments.output_file:
        _write_file(arguments.output_file, lambda: plain(lines))
    else:
        streams.out_lines(lines, colour=wants_colour(arguments.color, streams.stdout, os.environ))


def _write_file(path: str, text: Callable[[], str]) -> None:
    try:
        Path(path).write_text(text(), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {refusal(error)}") from None


def _count(number: int, noun: str, one: str = "", many: str = "s") -> str:
    return f"{number} {noun}{one if number == 1 else many}"
