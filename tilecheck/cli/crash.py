"""What is said of a bug in tilecheck: the text of an issue."""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.cli.streams import Streams
from tilecheck.model import Report

_HEAD = """tilecheck: internal error. This is a bug in tilecheck, not in your code.
Please report it with the text between the lines; take out what you may not share.
----------------------------------------------------------------------"""
_LINE = "-" * 70


def issue_text(arguments: Sequence[str], details: str | None = None) -> str:
    """A ready issue for the exception that is being handled, or for a traceback given as text."""
    import platform  # lazy, like the others: every command imports this module
    import shlex
    import traceback

    from tilecheck.report.versions import versions  # lazy

    tool = versions()
    return "\n".join(
        [
            _HEAD,
            f"tilecheck {tool['version']}, z3 {tool['z3']}, Python {platform.python_version()}",
            platform.platform(),
            f"command: tilecheck {shlex.join(arguments)}",
            "",
            (details or traceback.format_exc()).rstrip(),
            _LINE,
        ]
    )


def log_internal_errors(report: Report, arguments: Sequence[str], streams: Streams) -> None:
    """A ready issue for each kernel and host function in whose analysis a bug of ours was met."""
    for judged in report.judged:
        if judged.internal_error is not None:
            streams.log(issue_text(arguments, judged.internal_error))
