"""`baseline`: what is known and accepted, in a file; and what runs that report make of it."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import Arguments, Verb, add_cache, add_jobs
from tilecheck.cli.commands.cache import log_problem, with_cache
from tilecheck.cli.crash import log_internal_errors
from tilecheck.cli.output import count
from tilecheck.cli.settings import add_settings, choice_of, jobs_of, settings_of_run
from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.history.baseline_location import default_file
from tilecheck.model import Report, Severity
from tilecheck.options import Options

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine
    from tilecheck.history.baseline import Baseline, Coverage

_PATHS = "a file, a directory, or file.py::kernel"


def add(verb: Verb) -> None:
    baseline = verb("baseline", show, "keep a list of findings that are accepted, and of what is proved")
    actions = baseline.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, text, paths in (
        ("write", write, "accept what is found now, and record the verdict of every kernel", "+"),
        ("prune", prune, "drop what is not found any more, and record verdicts that have become better", "*"),
        ("show", show, "list what is accepted", ""),
    ):
        action = actions.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        action.set_defaults(run=run, action=name)
        action.add_argument("--baseline", metavar="FILE", help="the file (default: that of the project)")
        if name == "write":
            action.add_argument("--reason", required=True, metavar="TEXT", help="why the findings may stand")
        if paths:
            default = "" if paths == "+" else " (default: the folder of the baseline)"
            action.add_argument("paths", nargs=paths, metavar="PATH", help=_PATHS + default)
            add_jobs(action)
            add_cache(action)
            add_settings(action)


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """What a run that reports asks about baselines."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--baseline", metavar="FILE", help="accept the findings in this baseline (default: that of the project)"
    )
    group.add_argument("--no-baseline", action="store_true", help="accept nothing that a baseline says")


def add_since(parser: Arguments) -> None:
    parser.add_argument(
        "--since", metavar="REV", help="look only at kernels that are not as they were at this revision of git"
    )


# ---- the actions -------------------------------------------------------------------------------------------


def write(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Accept what is found now. What other paths than these hold stays as it is."""
    from tilecheck.history.baseline import rewritten  # lazy
    from tilecheck.history.baseline_file import update  # lazy

    if not arguments.reason.strip():
        raise UsageError("no reason is given", 'say why the findings may stand: `--reason "..."`')
    path = _file(arguments)
    if path.exists():
        _load(path)  # a file that is not understood is never written over
    report = engine.verify(arguments.paths, _options(arguments))
    coverage = _coverage(report, arguments.paths, path)
    before, after = update(path, lambda old: rewritten(old, coverage, arguments.reason.strip()))
    streams.out(f"{_shown(path)}: {_what(after)}{_changes(before, after)}\n")
    return _code(report, arguments, streams)


def prune(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Drop what is not found any more."""
    from tilecheck.history.baseline import pruned  # lazy
    from tilecheck.history.baseline_file import update  # lazy

    path = _file(arguments)
    _load(path)
    arguments.paths = arguments.paths or [_shown(path.parent)]
    report = engine.verify(arguments.paths, _options(arguments))
    coverage = _coverage(report, arguments.paths, path)
    before, after = update(path, lambda old: pruned(old, coverage))
    streams.out(f"{_shown(path)}: {_what(after)}{_changes(before, after)}\n")
    return _code(report, arguments, streams)


def show(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """List what is accepted."""
    path = _file(arguments)
    baseline = _load(path)[0]
    for line in _listing(baseline):
        streams.out(line + "\n")
    streams.out(f"{_shown(path)}: {_what(baseline)}\n")
    return ExitCode.OK


def _listing(baseline: Baseline) -> Iterator[str]:
    for entry in baseline.findings:
        key = entry.key
        times = f" (number {key.occurrence + 1})" if key.occurrence else ""
        yield f"{key.path}: {key.rule} `{key.kernel}`{times}: {key.operation}"
        if key.claim:
            yield f"    {key.claim}"
        yield f"    -- {entry.reason}"
    for known in baseline.kernels:
        yield f"{known.kernel.path}: `{known.kernel.name}` {known.text}"


def _code(report: Report, arguments: argparse.Namespace, streams: Streams) -> ExitCode:
    """What a run that accepts its findings ends with: only what it could not look at fails it."""
    log_problem(report, streams)
    log_internal_errors(report, ["baseline", arguments.action, *arguments.paths], streams)
    code = exit_code_of(report, Options(undecided_fails=False, needs_kernels=False))
    if code is ExitCode.INTERNAL:
        return code
    for path in report.unreadable:
        streams.log(f"tilecheck: {path} is not read: what the baseline says of it is kept")
    return ExitCode.UNDECIDED if report.unreadable else ExitCode.OK


# ---- for `verify` and `check` ------------------------------------------------------------------------------


def check_baseline(arguments: argparse.Namespace) -> None:
    """Read the baseline before a run that may be long.

    Raises:
        UsageError: it cannot be read, or is not understood.
    """
    if not arguments.no_baseline and (arguments.baseline is not None or _file(arguments).is_file()):
        _load(_file(arguments))


def with_baseline(report: Report, arguments: argparse.Namespace, streams: Streams) -> Report:
    """The report by what the project's baseline says, if it has one. `verify` on a user's machine drops stale
    entries from the file; where it does not, each of them is a finding, and on CI an error."""
    if arguments.no_baseline:
        return report
    path = _file(arguments)
    if arguments.baseline is None and not path.is_file():
        return report
    from tilecheck.history.baseline import applied, stale, with_warnings, without  # lazy: as above
    from tilecheck.history.baseline_file import update  # lazy

    baseline, data = _load(path)
    root = str(path.parent)
    gone = () if _is_special(arguments) else stale(baseline, _coverage(report, arguments.paths, path))
    changed = applied(report, baseline, root)
    if not gone:
        return changed
    if _is_on_ci() or arguments.verb != "verify" or os.environ.get("PRE_COMMIT"):
        severity = Severity.ERROR if _is_on_ci() else Severity.WARNING
        return with_warnings(changed, gone, _shown(path), data, severity)
    try:
        update(path, lambda old: without(old, gone))
    except UsageError:  # the folder cannot be written to
        return with_warnings(changed, gone, _shown(path), data, Severity.WARNING)
    entries = count(len(gone), "entr", "y", "ies")
    streams.log(f"tilecheck: dropped {entries} from {_shown(path)}, whose findings are gone")
    return changed


def _is_special(arguments: argparse.Namespace) -> bool:
    """Whether a run proves more or less than others do: what it does not find may be there for them."""
    return bool(arguments.without or arguments.budget or arguments.config or arguments.isolated)


def _is_on_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


# ---- what they share ---------------------------------------------------------------------------------------


def _file(arguments: argparse.Namespace) -> Path:
    if arguments.baseline == "":
        raise UsageError("--baseline names no file")
    return Path(arguments.baseline) if arguments.baseline is not None else default_file(Path.cwd())


def _load(path: Path) -> tuple[Baseline, bytes]:
    from tilecheck.history.baseline_file import load  # lazy

    return load(path)


def _options(arguments: argparse.Namespace) -> Options:
    choice = choice_of(arguments)
    settings = settings_of_run(choice)
    options = Options(jobs=jobs_of(settings), config=choice, undecided_fails=False, needs_kernels=False)
    return with_cache(arguments, options, settings)


def _coverage(report: Report, paths: list[str], baseline: Path) -> Coverage:
    from tilecheck.history.baseline import Coverage, absolute  # lazy
    from tilecheck.verify.discover import NO_KERNELS, split_target  # lazy

    targets = (split_target(path) for path in paths)
    plain = frozenset(file for file, why in report.skipped if why == NO_KERNELS)
    return Coverage(
        report, str(baseline.parent), tuple((absolute(file), name) for file, name in targets), plain
    )


def _shown(path: Path) -> str:
    try:
        return os.path.relpath(path)
    except ValueError:  # on another drive
        return str(path)


def _what(baseline: Baseline) -> str:
    rules = Counter(entry.key.rule for entry in baseline.findings)
    listed = ", ".join(f"{number} {rule}" for rule, number in sorted(rules.items()))
    findings = count(len(baseline.findings), "finding") + (f" ({listed})" if listed else "")
    return f"{findings}, {count(len(baseline.kernels), 'kernel')}"


def _changes(before: Baseline, after: Baseline) -> str:
    old, new = ({entry.key for entry in b.findings} for b in (before, after))
    parts = [f"{len(new - old)} added"] if new - old else []
    parts += [f"{len(old - new)} dropped"] if old - new else []
    better = len(set(after.kernels) - set(before.kernels))
    parts += [f"{count(better, 'verdict')} recorded"] if better else []
    return f"; {', '.join(parts)}" if parts else "; nothing changed"
