"""The text of an issue about a bug in tilecheck."""

from __future__ import annotations

import platform
import shlex
import traceback
from collections.abc import Sequence

from tilecheck.report.versions import versions

_HEAD = """tilecheck: internal error. This is a bug in tilecheck, not in your code.
Please report it with the text between the lines; take out what you may not share.
----------------------------------------------------------------------"""
_LINE = "-" * 70


def issue_text(arguments: Sequence[str], details: str | None = None) -> str:
    """A ready issue for the exception that is being handled, or for a traceback given as text."""
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
