"""`gate`: a service for generators of kernels, which no bad kernel stops."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from tilecheck.cli.command import Verb, add_jobs, jobs
from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError
from tilecheck.exit_codes import ExitCode
from tilecheck.options import Options
from tilecheck.parallel import one_thread_each

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine

_MOST_SECONDS = 86_400
_LEAST_MEMORY = 64


def add(verb: Verb) -> None:
    gate = verb("gate", serve, "answer kernels that come as JSON lines on standard input, each with one line")
    gate.add_argument(
        "--timeout", type=_seconds, default=10.0, metavar="SECONDS",
        help="how long one line may take (default: 10)",
    )  # fmt: skip
    gate.add_argument(
        "--memory", type=_mebibytes, default=1024, metavar="MIB",
        help="how much memory one line may take (default: 1024)",
    )  # fmt: skip
    gate.add_argument(
        "--trust-source", action="store_true",
        help="take contracts, unsafe blocks and suppressions that stand in a source; without it only the key "
        "`contracts` counts",
    )  # fmt: skip
    add_jobs(gate)


def serve(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Answer every line. What was found stands in the answers; the exit code says that the service worked."""
    if not hasattr(os, "fork"):
        raise UsageError("the gate needs a system with `fork`, such as Linux", "on Windows, run it under WSL")
    one_thread_each()
    from tilecheck.gate.service import Service  # lazy: loads the analysis
    from tilecheck.gate.worker import Limits

    try:
        source, target = sys.stdin.fileno(), streams.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        raise UsageError("standard input or standard output is closed") from None
    limits = Limits(arguments.timeout, arguments.memory)
    options = Options(trust_source=arguments.trust_source)
    Service(source, target, jobs(arguments), limits, options).run()
    return ExitCode.OK


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds")
    return seconds


def _mebibytes(text: str) -> int:
    if not text.isdecimal() or int(text) < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of MiB from {_LEAST_MEMORY}")
    return int(text)
