"""The commands and their options. Nothing here loads the analysis."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from tilecheck import __version__
from tilecheck.cli import commands, execute
from tilecheck.cli.certificates import check_certificates
from tilecheck.cli.engine import Engine
from tilecheck.cli.selftest import run_tests
from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError
from tilecheck.exit_codes import ExitCode
from tilecheck.options import RUNGS
from tilecheck.show import STAGES

Run = Callable[[argparse.Namespace, Streams, Engine], ExitCode]

_EPILOG = """exit codes:
  0    every kernel is proved, conditional or trusted, and nothing was found
  1    a finding at or above --fail-on
  2    the invocation is wrong, a path is missing or unreadable, or verify found no kernels
  3    nothing was found, but a kernel is undecided or a file does not parse
  4    a bug in tilecheck
  130  interrupted
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command line."""

    run: Run
    arguments: argparse.Namespace


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
    parsed = _build().parse_args(arguments)
    return Command(parsed.run, parsed)


def _build() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tilecheck",
        description="Ownership and race checks for GPU tile kernels written in Python.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", nargs=0, action=_Version, help="print the version and exit")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def verb(name: str, run: Run, text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = verbs.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        added.set_defaults(run=run, verb=name)
        return added

    for name, text in (
        ("verify", "decide every kernel: the gate for CI"),
        ("check", "the same analysis for editors and hooks: an undecided kernel is only a warning"),
    ):
        added = verb(name, commands.verify, text)
        _add_analysis(added, ("full", "concise", "json"))
        added.add_argument(
            "--fail-on", choices=("error", "warning", "info"), default="error", metavar="LEVEL",
            help="the weakest finding that fails the run: error (default), warning or info",
        )  # fmt: skip
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
    certificate = verb("certificate", check_certificates, "check the certificates that verify --certify wrote")
    certificate.add_argument("action", choices=("check",), metavar="check", help="the only action so far")
    certificate.add_argument("folder", metavar="DIR", help="the folder with the certificates")
    certificate.add_argument(
        "--source", metavar="PATH",
        help="the folder in which verify ran: check too that the sources have not changed since",
    )  # fmt: skip
    explain = verb("explain", commands.explain, "explain a rule, a verdict or a reason")
    explain.add_argument("topic", metavar="TOPIC", help="for example TC201, conditional, unknown/budget, S1")
    rules = verb("rules", commands.rules, "list the rules")
    rules.add_argument(
        "--format",
        choices=("text", "markdown", "json"),
        default="text",
        help="text (default), markdown or json",
    )
    _add_colour(rules)
    show = verb("show", commands.show, "show a stage of the pipeline for one kernel")
    show.add_argument("stage", choices=STAGES, metavar="STAGE", help=", ".join(STAGES))
    show.add_argument("target", metavar="FILE::KERNEL", help="the kernel")
    audit = verb("audit", commands.audit, "list everything that is trusted, assumed or suppressed")
    _add_analysis(audit, ("text", "json"))
    build = verb("compile", execute.compile_kernels, "compile verified kernels ahead of time; needs no GPU")
    build.add_argument("paths", nargs="+", metavar="PATH", help="a file, a directory, or file.py::kernel")
    build.add_argument("--arch", required=True, metavar="ARCH", help="the GPU to compile for, such as sm_90")
    build.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder to write to")
    build.add_argument(
        "--format", choices=("cubin", "tileir", "both"), default="both", metavar="FORMAT",
        help="cubin, tileir or both (default); Triton kernels have cubins alone",
    )  # fmt: skip
    build.add_argument(
        "--signature", action="append", default=[], metavar="KERNEL=TYPES",
        help="compile a Triton kernel for these types and constants, such as 'add=*fp32, *fp32, i32, 1024'",
    )  # fmt: skip
    start = verb("run", execute.run, "run the examples of modules whose kernels are verified")
    start.add_argument("paths", nargs="+", metavar="PATH", help="a file, a directory, or file.py::kernel")
    start.add_argument(
        "--backend", choices=("auto", "gpu", "reference"), default="auto", metavar="BACKEND",
        help="auto (default: the GPU if there is one), gpu, or reference (NumPy)",
    )  # fmt: skip
    test = verb("test", run_tests, "run the examples of rules, and annotated fixtures")
    test.add_argument(
        "targets", nargs="*", metavar="RULE|PATH", help="rules, files or directories (default: all rules)"
    )
    return parser


def _add_analysis(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a directory, or file.py::kernel")
    parser.add_argument("--format", choices=formats, help=f"how to print: {', '.join(formats)}")
    parser.add_argument("--output-file", metavar="FILE", help="write the report to a file")
    parser.add_argument(
        "--without", action="append", default=[], metavar="RUNG", type=_rungs,
        help=f"leave out a rung of the proof ladder: {', '.join(RUNGS)}",
    )  # fmt: skip
    parser.add_argument(
        "-j", "--jobs", type=_jobs, metavar="N", default=0,
        help="how many processes work (default: one for each processor)",
    )  # fmt: skip
    _add_colour(parser)


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of processes")
    return int(text)


def _add_colour(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", metavar="WHEN",
        help="auto (default), always or never",
    )  # fmt: skip


def _rungs(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(names - frozenset(RUNGS))
    if unknown or not names:
        wrong = unknown[0] if unknown else text
        raise argparse.ArgumentTypeError(f"`{wrong}` is not a rung: {', '.join(RUNGS)}")
    return names
