"""The commands that tell what is known: of rules, of a kernel's stages, of what verdicts rest on."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from tilecheck.cli.command import Verb, add_analysis, add_colour
from tilecheck.cli.commands.baseline import add_arguments, check_baseline, with_baseline
from tilecheck.cli.commands.cache import log_problem, with_cache
from tilecheck.cli.output import emit_lines, emit_text, log_end
from tilecheck.cli.settings import choice_of, jobs_of, settings_of_run
from tilecheck.cli.streams import Streams, wants_colour
from tilecheck.errors import UsageError, did_you_mean
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.options import Options
from tilecheck.verify.show import HOST, PICTURES, STAGES

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine


def add(verb: Verb) -> None:
    topic = verb("explain", explain, "explain a rule, a verdict or a reason")
    topic.add_argument("topic", metavar="TOPIC", help="for example TC201, conditional, unknown/budget, S1")
    listing = verb("rules", rules, "list the rules")
    listing.add_argument(
        "--format",
        choices=("text", "markdown", "json"),
        default="text",
        help="text (default), markdown or json",
    )
    add_colour(listing)
    stage = verb("show", show, "show a stage of the pipeline for one kernel or host function")
    stages = (*STAGES, HOST)
    stage.add_argument("stage", choices=stages, metavar="STAGE", help=", ".join(stages))
    stage.add_argument("target", metavar="FILE::KERNEL", help="the kernel; for `host` the host function")
    stage.add_argument(
        "--format", choices=("text", *PICTURES), default="text", help="of `host`: text (default), dot or svg"
    )
    trust = verb("audit", audit, "list everything that is trusted, assumed or suppressed")
    add_analysis(trust, ("text", "json"))
    add_arguments(trust)


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
            hint = did_you_mean(arguments.topic, known, "`tilecheck rules` lists the rules")
            raise UsageError(f"nothing is known of `{arguments.topic}`", hint)
        page = rule_page_text(file, registry.rule_page(file))
    streams.out(page)
    return ExitCode.OK


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
    """Print one stage of the pipeline for one kernel, or the order of one host function."""
    from tilecheck.verify.discover import split_target  # lazy

    path, name = split_target(arguments.target)
    if name is None:
        raise UsageError(f"`{arguments.target}` names no kernel", "write `file.py::kernel`")
    if arguments.format != "text" and arguments.stage != HOST:
        raise UsageError(f"`{arguments.stage}` is text alone", "`tilecheck show dot` is the graph of a kernel")
    text = engine.show(arguments.stage, path, name, arguments.format)
    streams.out(text if text.endswith("\n") else text + "\n")
    return ExitCode.OK


def audit(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """List what the verdicts rest on. Findings do not fail it: it is a listing, which must be whole."""
    from tilecheck.report.audit import audit_object, render_audit  # lazy

    choice = choice_of(arguments)
    settings = settings_of_run(choice)
    options = Options(
        without=frozenset().union(*arguments.without),
        jobs=jobs_of(settings),
        config=choice,
        undecided_fails=False,
        needs_kernels=False,
    )
    check_baseline(arguments)
    report = engine.verify(arguments.paths, with_cache(arguments, options, settings))
    report = with_baseline(report, arguments, streams)
    if arguments.format == "json":
        emit_text(audit_object(report), arguments, streams)
    else:
        emit_lines(render_audit(report), arguments, streams)
    code = exit_code_of(report, options)
    log_problem(report, streams)
    log_end(report, arguments, streams, code)
    if code is not ExitCode.FINDINGS:
        return code
    return ExitCode.UNDECIDED if report.unreadable else ExitCode.OK
