"""What a command line and the environment say of the configuration, and what a run makes of it."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError, refusal
from tilecheck.model import Report
from tilecheck.options import ConfigChoice, Options

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine
    from tilecheck.config.settings import Settings

# The variables that count, and the keys that they stand for. No variable changes what is checked.
VARIABLES = {"TILECHECK_FORMAT": "format", "TILECHECK_BUDGET": "budget", "TILECHECK_CACHE_DIR": "cache-dir"}
_BARE = re.compile(r"[A-Za-z][\w.:-]*|[0-9]+[kM]")  # words that need no quotes on a command line
STDIN = "-"


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The arguments of commands that verify, as far as `[tool.tilecheck]` speaks of the same."""
    group = parser.add_argument_group("configuration")
    group.add_argument(
        "--select", action="append", default=[], metavar="RULES", type=_list,
        help="only findings of these rules count (codes, prefixes, names): the others are suppressed",
    )  # fmt: skip
    group.add_argument(
        "--ignore", action="append", default=[], metavar="RULES", type=_list,
        help="suppress the findings of these rules: they leave the exit code, and are counted",
    )  # fmt: skip
    group.add_argument(
        "--budget", metavar="N", help="the solver's steps for one obligation, such as 2000k (default) or 2M"
    )
    group.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERNS", type=_list,
        help="leave out files and folders that match, besides those that are left out anyway",
    )  # fmt: skip
    group.add_argument(
        "--force-exclude", action="store_true", help="leave out what is excluded even if it is named"
    )
    group.add_argument(
        "--config", action="append", default=[], metavar="FILE|KEY=VALUE",
        help="read this file alone, or set a key of [tool.tilecheck]",
    )  # fmt: skip
    group.add_argument("--isolated", action="store_true", help="read no configuration file")


def add_input(parser: argparse.ArgumentParser) -> None:
    """The arguments of commands that take a source from standard input, and tell what they skip."""
    parser.add_argument(
        "--stdin-filename", metavar="NAME", help="with the path `-`: what the source that is read counts as"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="list the files in which no kernel was looked for, and why"
    )
    parser.add_argument(
        "--add-ignore", metavar="REASON", type=_reason,
        help="write comments that silence the warnings that are found",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="with --add-ignore: silence errors too")


def _reason(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError("it gives no reason on one line: say why the findings may stand")
    return text.strip()


def _list(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise argparse.ArgumentTypeError("it names nothing")
    return words


def choice_of(arguments: argparse.Namespace) -> ConfigChoice:
    """What the command line and the environment say, the weakest first.

    Raises:
        UsageError: a value of `--config` is not understood.
    """
    files, values = [], list(_from_environment())
    for text in arguments.config:
        if "=" in text and not Path(text).is_file():
            values.extend(_assignment(text))
        else:
            files.append(text)
    if len(files) > 1:
        raise UsageError(
            f"--config names {len(files)} files", "one file counts, and no other is merged into it"
        )
    if files and arguments.isolated:
        raise UsageError("--isolated reads no configuration file, and --config names one")
    values.extend((key, given, f"--{flag}") for key, flag, given in _from_flags(arguments) if given)
    return ConfigChoice(
        file=files[0] if files else None,
        isolated=arguments.isolated,
        values=tuple(values),
        force_exclude=arguments.force_exclude,
    )


def environment() -> ConfigChoice:
    """What the environment alone says, for commands that have no arguments of `add_settings`."""
    return ConfigChoice(values=tuple(_from_environment()))


def _from_environment() -> Iterator[tuple[str, object, str]]:
    for name, key in VARIABLES.items():
        if os.environ.get(name):
            yield key, os.environ[name], name


def _from_flags(arguments: argparse.Namespace) -> Iterator[tuple[str, str, object]]:
    yield "select", "select", _joined(arguments.select)
    yield "ignore", "ignore", _joined(arguments.ignore)
    yield "extend-exclude", "exclude", _joined(arguments.exclude)
    yield "budget", "budget", arguments.budget
    yield "fail-on", "fail-on", getattr(arguments, "fail_on", None)
    yield "require", "require", getattr(arguments, "require", None)
    yield "jobs", "jobs", arguments.jobs
    yield "cache-dir", "cache-dir", getattr(arguments, "cache_dir", None)


def _joined(lists: list[list[str]]) -> list[str]:
    return [word for words in lists for word in words]


def _assignment(text: str) -> Iterator[tuple[str, object, str]]:
    """`KEY=VALUE` as TOML has it; a value that is one word may stand without quotes."""
    from tilecheck.config.files import read_toml  # lazy: few runs set a key

    key, _, value = text.partition("=")
    quoted = f'{key}="{value}"' if _BARE.fullmatch(value) and value not in ("true", "false") else text
    try:
        table = read_toml(quoted)
    except ValueError as problem:
        hint = "write `--config KEY=VALUE` with a value as in TOML, or name a file"
        raise UsageError(f"--config {text} is not understood: {problem}", hint) from None
    for name, said in table.items():
        yield name, said, "--config"


def settings_of_run(choice: ConfigChoice) -> Settings:
    """What counts for the run itself: how it prints, what fails it, how many processes work.

    Raises:
        UsageError: the configuration is not understood.
    """
    from tilecheck.config.files import Configs  # lazy: `--help` and `explain` need none

    try:
        Path.cwd()
    except OSError as error:
        raise UsageError(f"the working directory cannot be read: {refusal(error)}") from None
    return Configs(choice).of_run()


def jobs_of(settings: Settings) -> int:
    """How many processes may work."""
    from tilecheck.parallel import available_cores  # lazy: not for `explain`

    return settings.jobs or available_cores()


def verified(arguments: argparse.Namespace, options: Options, engine: Engine) -> Report:
    """The report of the paths, or of the source on standard input."""
    if STDIN not in arguments.paths:
        if arguments.stdin_filename is not None:
            raise UsageError("--stdin-filename names the source of the path `-`", "give `-` as the path")
        return engine.verify(arguments.paths, options)
    if len(arguments.paths) > 1:
        raise UsageError("`-` stands for standard input, and goes with no other path")
    name = arguments.stdin_filename or STDIN
    data = _standard_input()
    if options.config.force_exclude:
        from tilecheck.config.files import Configs  # lazy
        from tilecheck.verify.discover import why_excluded  # lazy

        found = Configs(options.config).excluding(name)
        if found is not None:
            return Report((), (), 0, skipped=((name, why_excluded(*found)),))
    return engine.verify_source(data, name, options)


def _standard_input() -> bytes:
    if sys.stdin is None:  # closed by whoever started this
        raise UsageError("`-` reads standard input, which is closed")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(f"cannot read standard input: {refusal(error)}") from None


def log_skipped(report: Report, streams: Streams) -> None:
    """Say in which files no kernel was looked for, and why."""
    for path, why in report.skipped:
        streams.log(f"skipped {path}: {why}")
