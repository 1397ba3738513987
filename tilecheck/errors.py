"""The exceptions tilecheck raises; every one becomes a verdict, a finding or an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilecheck.model import Span


class TilecheckError(Exception):
    """Base of all errors that tilecheck raises on purpose."""


class UsageError(TilecheckError):
    """The invocation is wrong: exit code 2. `hint` says what to do instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SourceError(TilecheckError):
    """A file cannot be read or parsed (TC901). `line` and `column` are 1-based code points."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class UnsupportedConstruct(TilecheckError):
    """A construct that is not read: the kernel becomes `unknown(unsupported:<construct>)`.

    Args:
        construct: the word shown to the user, e.g. `match statement`.
        span: where it stands, in bytes of the file that `file` names (None: the kernel's own file).
    """

    def __init__(self, construct: str, span: Span | None = None, file: str | None = None) -> None:
        super().__init__(construct)
        self.construct = construct
        self.span = span
        self.file = file


class LaunchRefused(TilecheckError):
    """A launch that its kernel's verdict does not cover. `report` says what is broken and where."""

    def __init__(self, message: str, report: str = "") -> None:
        super().__init__(f"{message}\n{report}" if report else message)
        self.message = message
        self.report = report


def refusal(error: OSError) -> str:
    """Why the system refused a file, in lower case, to follow `cannot read k.py: `."""
    return (error.strerror or str(error)).lower()


_SHOWN = 120  # characters of a text of the user's inside a message


def shortened(text: str) -> str:
    """A text of the user's, cut where it is too long for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A hint that names the known word that is closest, in capitals or not; `otherwise` if none is close."""
    import difflib  # lazy: only after a mistake

    folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(folded), n=1)
    return f"did you mean `{folded[near[0]]}`?" if near else otherwise


def trace_of_bug() -> str:
    """The exception of ours that is being handled, as text."""
    import traceback  # lazy: after a bug

    return traceback.format_exc()
