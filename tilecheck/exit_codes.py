"""The exit codes, in one table, and the one place that computes them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from tilecheck.demand import host_shortfall, shortfall
from tilecheck.hygiene import BELOW_DEMAND, UNREADABLE_SOURCE
from tilecheck.model import Verdict

if TYPE_CHECKING:
    from tilecheck.model import Report
    from tilecheck.options import Options


class ExitCode(enum.IntEnum):
    """4 wins over 1, 1 over 3; 2 only if nothing could be analysed."""

    OK = 0  # every kernel proved, conditional or trusted, and no finding at or above --fail-on
    FINDINGS = 1  # at least one finding at or above --fail-on
    USAGE = 2  # the invocation is wrong, a path is missing or unreadable, or verify found nothing to judge
    UNDECIDED = 3  # nothing found, but a kernel is unknown or below --require, or a file does not parse
    INTERNAL = 4  # a bug in tilecheck
    INTERRUPTED = 130


def exit_code_of(report: Report, options: Options) -> ExitCode:
    """The exit code of a finished run; the one place that computes it."""
    if any(judged.internal_error is not None for judged in report.judged):
        return ExitCode.INTERNAL
    if _has_findings(report, options):
        return ExitCode.FINDINGS
    # A missing path left no bytes; a file that was read and is no Python did.
    unparsed = any(path in report.sources for path in report.unreadable)
    if options.needs_kernels and not (report.kernels or report.hosts or report.unchanged):
        return ExitCode.UNDECIDED if unparsed else ExitCode.USAGE
    open_ = any(k.verdict is Verdict.UNKNOWN and not k.accepted for k in report.kernels)
    undecided = options.undecided_fails and open_
    undecided |= any(shortfall(kernel, options.require) for kernel in report.kernels)
    undecided |= any(host_shortfall(host, options.require) for host in report.hosts)
    return ExitCode.UNDECIDED if undecided or report.unreadable else ExitCode.OK


def _has_findings(report: Report, options: Options) -> bool:
    findings = [d for d in report.diagnostics if d.code not in (UNREADABLE_SOURCE, BELOW_DEMAND)]
    if any(not d.suppressed and d.severity >= options.fail_on for d in findings):
        return True
    # A violated kernel or host function always has a finding; should one ever lack it, the run must not pass.
    named, codes = frozenset(d.kernel for d in findings), frozenset(d.code for d in findings)
    if any(host.status == "violated" and not codes & set(host.findings) for host in report.hosts):
        return True
    return any(k.verdict is Verdict.VIOLATED and k.name not in named for k in report.kernels)
