"""The findings that come from reading files rather than from proofs: one function for each."""

from __future__ import annotations

from tilecheck.errors import SourceError
from tilecheck.model import Diagnostic, Severity, Site, Span
from tilecheck.text import decode_leniently

UNREADABLE_SOURCE = "TC901"
UNUSED_SUPPRESSION = "TC902"
MISSING_REASON = "TC903"
MALFORMED_COMMENT = "TC904"
UNDECIDED_KERNEL = frozenset({"TC905", "TC906"})  # what tells why a kernel is unknown
# A file that cannot be read, and the state of the suppressions themselves, cannot be suppressed.
NEVER_SUPPRESSED = frozenset({UNREADABLE_SOURCE, UNUSED_SUPPRESSION, MISSING_REASON, MALFORMED_COMMENT})


def unreadable_source(path: str, data: bytes | None, error: SourceError) -> Diagnostic:
    """TC901: a file cannot be read, decoded or parsed; `data` are its bytes as far as they are known."""
    start = decode_leniently(path, data or b"").offset(error.line, error.column)
    end = start + 1 if data and start < len(data) and data[start] not in b"\r\n" else start
    what = "the file is not read" if data is None else "the file is not valid Python"
    return Diagnostic(
        code=UNREADABLE_SOURCE,
        name="unreadable-source",
        severity=Severity.ERROR,
        message=f"{what}: {error.message}",
        site=Site(path, Span(start, end)),
        label=error.message if data else None,
        notes=("no kernel of this file was looked at; the other files were",),
    )


def malformed_comment(path: str, span: Span, problem: str) -> Diagnostic:
    """TC904: a `# tilecheck:` comment is not understood."""
    return Diagnostic(
        code=MALFORMED_COMMENT,
        name="malformed-comment",
        severity=Severity.ERROR,
        message=f"this tilecheck comment is not understood: {problem}",
        site=Site(path, span),
        label="has no effect",
    )


def missing_reason(path: str, span: Span, rules: tuple[str, ...]) -> Diagnostic:
    """TC903: a suppression does not say why."""
    return Diagnostic(
        code=MISSING_REASON,
        name="missing-reason",
        severity=Severity.ERROR,
        message=f"the suppression of {_list(rules)} gives no reason",
        site=Site(path, span),
        label="has no effect without a reason",
        help=f"write `# tilecheck: ignore[{', '.join(rules)}] -- ` and then why the finding may stand",
    )


def unused_suppression(path: str, span: Span, rules: tuple[str, ...]) -> Diagnostic:
    """TC902: a suppression silences nothing."""
    return Diagnostic(
        code=UNUSED_SUPPRESSION,
        name="unused-suppression",
        severity=Severity.WARNING,
        message=f"no finding of {_list(rules)} stands here",
        site=Site(path, span),
        label="silences nothing",
        help="remove it",
    )


def _list(rules: tuple[str, ...]) -> str:
    return ", ".join(f"`{rule}`" for rule in rules)
