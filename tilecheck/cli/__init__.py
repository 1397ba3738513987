"""The command line: `main` runs one command and returns its exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from tilecheck.cli.crash import issue_text
from tilecheck.cli.engine import Engine
from tilecheck.cli.interrupts import interrupts_are_not_lost
from tilecheck.cli.parser import HelpShown, parse_arguments
from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError
from tilecheck.exit_codes import ExitCode

# The dependencies in pyproject.toml.
_REQUIRED = frozenset({"libcst", "networkx", "numpy", "rich", "tomli", "z3"})


def main(
    argv: Sequence[str] | None = None,
    *,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    engine: Engine | None = None,
) -> int:
    """Run one command.

    Args:
        argv: the arguments after the program's name (default: those of the process).
        stdout: where findings go.
        stderr: where everything else goes.
        engine: what verifies and shows (default: the pipeline, loaded when it is needed).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Python has None for a stream that was closed before it began: what goes there goes nowhere.
    streams = Streams(stdout or sys.stdout or io.StringIO(), stderr or sys.stderr or io.StringIO())
    try:
        with interrupts_are_not_lost():
            return int(_run(arguments, streams, engine or Engine()))
    except UsageError as error:
        streams.log(f"tilecheck: {error.message}")
        if error.hint:
            streams.log(f"  hint: {error.hint}")
        return ExitCode.USAGE
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _REQUIRED:
            streams.log(issue_text(arguments))
            return ExitCode.INTERNAL
        streams.log(f"tilecheck: the package `{error.name}` is not installed")
        streams.log("  hint: install tilecheck with what it needs: `pip install .` in a checkout")
        return ExitCode.USAGE
    except KeyboardInterrupt:
        streams.log("tilecheck: interrupted")
        # Where the signal came in an `exec` of text, as those that make classes, Python ends by the signal,
        # whatever is returned here. The next such `exec` takes that back.
        exec("")  # noqa: S102 - of nothing
        return ExitCode.INTERRUPTED
    except Exception:  # noqa: BLE001 - the one handler for bugs of ours: they become exit code 4 and an issue
        if not _is_somewhere():
            streams.log("tilecheck: the working directory is gone\n  hint: change to one that exists")
            return ExitCode.USAGE
        streams.log(issue_text(arguments))
        return ExitCode.INTERNAL


def _is_somewhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - no path is asked for
    except OSError:
        return False
    return True


def _run(arguments: Sequence[str], streams: Streams, engine: Engine) -> ExitCode:
    try:
        command = parse_arguments(arguments)
    except HelpShown as shown:
        streams.out(shown.text)
        return ExitCode.OK
    return command.run(command.arguments, streams, engine)
