"""The findings that come from reading files rather than from proofs: one function for each."""

from __future__ import annotations

from tilecheck.errors import SourceError
from tilecheck.model import Diagnostic, HostReport, KernelReport, Severity, Site, Span
from tilecheck.text import decode_leniently

UNREADABLE_SOURCE = "TC901"
UNUSED_SUPPRESSION = "TC902"
MISSING_REASON = "TC903"
MALFORMED_COMMENT = "TC904"
VERDICT_REGRESSION = "TC907"
STALE_ENTRY = "TC908"
BELOW_DEMAND = "TC909"
UNTAKEN_TRUST = "TC910"
UNDECIDED_KERNEL = frozenset({"TC905", "TC906"})  # what tells why a kernel is unknown
# What cannot be suppressed: a file that cannot be read, the state of suppressions and baselines themselves, and
# what the run asks of every kernel.
NEVER_SUPPRESSED = frozenset(
    {
        UNREADABLE_SOURCE, UNUSED_SUPPRESSION, MISSING_REASON, MALFORMED_COMMENT,
        VERDICT_REGRESSION, STALE_ENTRY, BELOW_DEMAND, UNTAKEN_TRUST,
    }
)  # fmt: skip


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


def verdict_regression(kernel: KernelReport, before: str) -> Diagnostic:
    """TC907: a kernel was decided when the baseline was written and is not any more."""
    now = f"unknown({kernel.reason})" if kernel.reason else "unknown"
    return Diagnostic(
        code=VERDICT_REGRESSION,
        name="verdict-regression",
        severity=Severity.ERROR,
        message=f"`{kernel.name}` was {before} and is {now} now",
        site=kernel.site,
        kernel=kernel.name,
        label=f"{before} in the baseline",
        notes=("nothing was refuted; what was shown before is not shown any more",),
        help="undo what changed, or accept it with `tilecheck baseline write --reason ...`",
    )


def stale_entry(
    rule: str, name: str, operation: str, kernel: KernelReport | None, file: str, severity: Severity
) -> Diagnostic:
    """TC908: the baseline `file` accepts a finding of `name` that is gone; `kernel` is what became of it."""
    return Diagnostic(
        code=STALE_ENTRY,
        name="stale-baseline-entry",
        severity=severity,
        message=f"the baseline accepts a finding of {rule} in `{name}` that is not found any more",
        site=Site(file, Span(0, 0)) if kernel is None else kernel.site,
        kernel=None if kernel is None else kernel.name,
        label="no such finding here" if kernel is not None else "no such kernel any more",
        notes=(f"it was at: {operation}",),
        help="`tilecheck baseline prune` drops it",
    )


def below_demand(kernel: KernelReport, demand: str, why: str) -> Diagnostic:
    """TC909: a kernel does not meet what `--require` asks of every kernel."""
    return Diagnostic(
        code=BELOW_DEMAND,
        name="below-required-level",
        severity=Severity.ERROR,
        message=f"`{kernel.name}` does not meet `--require {demand}`: {why}",
        site=kernel.site,
        kernel=kernel.name,
        label=f"below `{demand}`",
        help=_RAISED[demand],
    )


def host_below_demand(host: HostReport, demand: str, why: str) -> Diagnostic:
    """TC909: a host function does not meet what `--require` asks."""
    return Diagnostic(
        code=BELOW_DEMAND,
        name="below-required-level",
        severity=Severity.ERROR,
        message=f"`{host.name}` does not meet `--require {demand}`: {why}",
        site=host.site,
        label=f"below `{demand}`",
        help="write its streams, events and graphs so that they are read, "
        "or use `tilecheck.host` for all of them",
    )


_RAISED = {
    "proved": "state what launches must meet in the kernel itself: a mask, a bounds check",
    "launches": "give tilecheck the file that launches it, let that file show what is needed, "
    "or launch through `tilecheck.launch` or `tilecheck.verified`",
}


def untaken_trust(file: str, span: Span, text: str, kernel: str | None) -> Diagnostic:
    """TC910: what a source says in its own favour is not taken by the gate."""
    return Diagnostic(
        code=UNTAKEN_TRUST,
        name="untaken-trust",
        severity=Severity.INFO,
        message=f"the source asks for trust, which is not given: `{text}`",
        site=Site(file, span),
        kernel=kernel,
        label="has no effect",
        help="give contracts with the key `contracts`, or start the gate with `--trust-source`",
    )


def _list(rules: tuple[str, ...]) -> str:
    return ", ".join(f"`{rule}`" for rule in rules)
