"""The command line as a whole. Nothing here loads the analysis."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from tilecheck import __version__
from tilecheck.cli.command import Command, Run, Verb
from tilecheck.cli.commands import verify
from tilecheck.errors import UsageError

_EPILOG = """exit codes:
  0    every kernel is proved, conditional or trusted, and nothing was found
  1    a finding at or above --fail-on
  2    the invocation is wrong, a path is unreadable, or verify found no kernels
  3    a kernel is undecided or below --require, or a file does not parse
  4    a bug in tilecheck
  130  interrupted
"""


class HelpShown(Exception):
    """The arguments asked for a text of the parser itself (`--help`, `--version`)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of printing and exiting, so that `main` stays the one way out."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"`{self.prog} --help` lists what is possible")

    def print_help(self, file: object = None) -> NoReturn:
        raise HelpShown(self.format_help())


class _Version(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        raise HelpShown(f"tilecheck {__version__}\n")


def parse_arguments(arguments: Sequence[str]) -> Command:
    """Parse a command line.

    Raises:
        UsageError: it is not one of tilecheck's.
        HelpShown: it asks for `--help` or `--version`.
    """
    parsed = _build(arguments).parse_args(arguments)
    return Command(parsed.run, parsed)


def _build(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tilecheck",
        description="Ownership and race checks for GPU tile kernels written in Python.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", nargs=0, action=_Version, help="print the version and exit")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog=parser.prog)

    def verb(name: str, run: Run, text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = verbs.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        added.set_defaults(run=run, verb=name)
        return added

    asked = [name for name in arguments[:1] if name in verify.VERBS]
    verify.add(verb, *(asked or verify.VERBS))
    if not asked:  # the others take time to load
        _add_others(verb)
    return parser


def _add_others(verb: Verb) -> None:
    """The other commands, in the order in which `--help` lists them."""
    from tilecheck.cli.commands import (  # lazy: `verify` needs none
        baseline,
        cache,
        certificates,
        config,
        execute,
        gate,
        inspect,
        selftest,
        server,
    )

    for module in (gate, baseline, cache, certificates, inspect, config, execute, server, selftest):
        module.add(verb)
