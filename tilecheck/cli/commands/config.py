"""`config show` and `config check`: what the configuration comes to, and whether it is understood."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import Verb
from tilecheck.cli.output import count
from tilecheck.cli.settings import add_settings, choice_of
from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError
from tilecheck.exit_codes import ExitCode

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine
    from tilecheck.options import ConfigChoice

_FUNCTION = re.compile(rb"\bdef\s+(\w+)")


def add(verb: Verb) -> None:
    config = verb("config", show, "tell what the configuration comes to, and where each value comes from")
    actions = config.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, text in (
        ("show", show, "print each value for a path, and the file, flag or variable that says it"),
        ("check", check, "read every configuration file above and below the paths"),
    ):
        action = actions.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        many = "?" if name == "show" else "*"
        action.add_argument(
            "paths", nargs=many, metavar="PATH", default="." if many == "?" else ["."],
            help="a file or a folder (default: the working directory)",
        )  # fmt: skip
        action.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
        add_settings(action)
        action.set_defaults(run=run, action=name, jobs=0)


def show(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Print each value for a path, and where it comes from."""
    from tilecheck.config.files import FILE, Configs  # lazy: as for all that reads a configuration
    from tilecheck.config.shown import shown_for, toml_text  # lazy
    from tilecheck.verify.discover import display_path, why_excluded  # lazy

    configs = Configs(choice_of(arguments))
    path = arguments.paths
    if not Path(path).exists():
        raise UsageError(f"{display_path(path)}: no such file or directory")
    inner = f"{path}/{FILE}" if Path(path).is_dir() else path  # a folder has the settings of what lies in it
    values = shown_for(inner, configs)
    excluded = configs.excluding(path)
    why = None if excluded is None else why_excluded(*excluded)
    file = configs.of(inner).file
    if arguments.format == "json":
        streams.out(
            json.dumps(
                {
                    "path": display_path(path),
                    "file": None if file is None else display_path(str(file)),
                    "excluded": why,
                    "values": [
                        {"key": v.key, "value": v.value, "origin": v.origin, "counts": v.counts} for v in values
                    ],
                },
                indent=2,
            )
            + "\n"
        )
        return ExitCode.OK
    named = "no configuration file" if file is None else display_path(str(file))
    streams.out(f"# {display_path(path)}: {named}\n")
    if why is not None:
        streams.out(f"# excluded where it is not named: {why}\n")
    lines = [(f"{'' if v.counts else '# '}{v.key} = {toml_text(v.value)}", v) for v in values]
    width = min(max(len(text) for text, _ in lines), 48)
    for text, value in lines:
        vain = "" if value.counts else ", which counts in runs that start below it"
        streams.out(f"{text:<{width}}  # {value.origin}{vain}\n")
    return ExitCode.OK


def check(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Read every configuration file above and below the paths, contracts included."""
    from tilecheck.config.files import Configs, files_around  # lazy: as for all that reads a configuration
    from tilecheck.verify.discover import display_path  # lazy

    choice = choice_of(arguments)
    understood: list[str] = []
    wrong: list[UsageError] = []
    warnings: list[str] = []

    def read(file: Path) -> None:
        try:
            warnings.extend(_checked(file, choice))
            understood.append(display_path(str(file)))
        except UsageError as error:
            wrong.append(error)

    files = files_around(arguments.paths, Configs(choice))
    for file in files:
        read(file)
    if not files:
        Configs(choice).of_run()  # what flags and variables say is checked all the same
    if arguments.format == "json":
        errors = [{"message": problem.message, "hint": problem.hint} for problem in wrong]
        streams.out(json.dumps({"files": understood, "errors": errors, "warnings": warnings}, indent=2) + "\n")
    else:
        for problem in wrong:
            streams.out(f"error: {problem.message}\n" + (f"  hint: {problem.hint}\n" if problem.hint else ""))
        for text in warnings:
            streams.out(f"warning: {text}\n")
        for name in understood:
            streams.out(f"{name}: understood\n")
        if not files:
            streams.out("no configuration file: the defaults count\n")
    if wrong:
        streams.log(f"tilecheck: {count(len(wrong), 'configuration file')} not understood")
    return ExitCode.USAGE if wrong else ExitCode.OK


def _checked(file: Path, choice: ConfigChoice) -> Iterator[str]:
    """What is probably not meant in a configuration file that is understood."""
    from tilecheck.config.contracts import contracts_of  # lazy: loads libcst
    from tilecheck.config.files import Configs, load  # lazy
    from tilecheck.config.patterns import absolute, below  # lazy
    from tilecheck.verify.discover import discover, display_path  # lazy

    settings = load(file, choice)
    entries = () if settings is None else contracts_of(settings).entries
    if not entries:
        return
    configs = Configs(choice)
    try:
        found = discover([str(file.parent)], configs)
    except UsageError:  # another file below is not understood, which is said of that one
        return
    functions = [
        (below(absolute(candidate.path), file.parent) or candidate.path, name.decode(errors="replace"))
        for candidate in found.candidates
        if configs.of(candidate.path).file == file
        for name in _FUNCTION.findall(candidate.data)
    ]
    for entry in entries:
        if not any(entry.speaks_of(*function) for function in functions):
            where = display_path(entry.given.site.file)
            yield f'{where}: `match = "{entry.match}"` speaks of no function in the files that are looked at'
