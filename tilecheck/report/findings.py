"""What of a report a reader must not miss, in one order and in words that all emitters share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from tilecheck.hygiene import UNDECIDED_KERNEL
from tilecheck.model import Diagnostic, KernelReport, Report, Severity, Site, Verdict
from tilecheck.report import witness
from tilecheck.report.places import in_order, kernels_in_order, undecided_without_finding
from tilecheck.report.topics import topic_of_reason


def told(report: Report, *, suppressed: bool = False) -> tuple[Diagnostic, ...]:
    """Every finding, and one made up for each kernel that does not pass and that no finding speaks of.

    The code of one that is made up is a word that `tilecheck explain` knows, such as `unknown/budget`.
    """
    named = frozenset(d.kernel for d in report.diagnostics)
    violated = (k for k in kernels_in_order(report.kernels) if k.verdict is Verdict.VIOLATED)
    silent = [kernel for kernel in violated if kernel.name not in named]
    shown = (d for d in in_order(report) if suppressed or not d.suppressed)
    return (*shown, *map(_unsaid, [*silent, *undecided_without_finding(report)]))


def _unsaid(kernel: KernelReport) -> Diagnostic:
    violated = kernel.verdict is Verdict.VIOLATED
    reason = kernel.reason or "internal"
    word = Verdict.VIOLATED.value if violated else topic_of_reason(reason)
    return Diagnostic(
        code=word,
        name=word.replace("/", "-"),
        severity=Severity.ERROR if violated else Severity.WARNING,
        message=f"`{kernel.name}` is {f'not decided: {reason}' if not violated else 'violated'}",
        site=kernel.reason_site or kernel.site,
        kernel=kernel.name,
        notes=() if violated else ("nothing was proved and nothing was refuted: not a pass",),
    )


class Owners:
    """Finds the kernel that a finding names: of several with the name, the one in the finding's own file."""

    def __init__(self, report: Report) -> None:
        self.named: dict[str, list[KernelReport]] = defaultdict(list)
        for kernel in kernels_in_order(report.kernels):
            self.named[kernel.name].append(kernel)

    def of(self, diagnostic: Diagnostic) -> KernelReport | None:
        named = self.named.get(diagnostic.kernel or "", [])
        near = (kernel for kernel in named if kernel.site.file == diagnostic.site.file)
        return next(near, named[0] if named else None)


def is_open(diagnostic: Diagnostic) -> bool:
    """Whether a finding says that something is not decided, rather than that something is wrong."""
    return diagnostic.code in UNDECIDED_KERNEL or diagnostic.code.startswith(Verdict.UNKNOWN.value)


def details(diagnostic: Diagnostic) -> Iterator[tuple[str, str]]:
    """What is said below the message of a finding, each part with its title."""
    if diagnostic.kernel:
        yield "kernel", f"`{diagnostic.kernel}`"
    if diagnostic.witness:
        yield "counterexample", "\n".join(witness.describe(diagnostic.witness))
    for note in diagnostic.notes:
        yield "note", note
    if diagnostic.help:
        yield "help", diagnostic.help
    yield "more", f"tilecheck explain {diagnostic.code}"


def paragraph(diagnostic: Diagnostic, where: Callable[[Site], str]) -> str:
    """A finding without its source: the message, then a line for each other place and each detail.

    Args:
        diagnostic: the finding.
        where: how a place is written.
    """
    others = diagnostic.related
    lines = [diagnostic.message]
    lines += [f"here: {diagnostic.label}"] if diagnostic.label and others else []
    lines += [f"also: {where(o.site)}" + (f": {o.message}" if o.message else "") for o in others]
    lines += [f"{title}: {text}" for title, text in details(diagnostic)]
    return "\n".join(lines)
