"""What a project has accepted: findings that are known, and the verdict that each kernel had.

A finding is named as `fingerprint` names it, so edits elsewhere in its file do not matter and an edit of the
operation itself does. An accepted finding stays in the report, marked, and no verdict is ever changed: the
baseline decides about the exit code alone. A kernel that it has as decided and that is unknown is a finding.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tilecheck.dataclass import dataclass
from tilecheck.history.fingerprint import identities
from tilecheck.hygiene import NEVER_SUPPRESSED, UNDECIDED_KERNEL, stale_entry, verdict_regression
from tilecheck.model import Diagnostic, KernelReport, Report, Severity, Site, Suppression, Verdict

_ACCEPTED = frozenset({Verdict.PROVED, Verdict.CONDITIONAL, Verdict.TRUSTED})
_STRENGTH = {Verdict.TRUSTED: 1, Verdict.CONDITIONAL: 2, Verdict.PROVED: 3}


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A finding without its place. `claim` is its message where the code alone does not tell what it is."""

    path: str
    kernel: str
    rule: str
    operation: str
    claim: str
    occurrence: int


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A finding that is accepted, and why."""

    key: Key
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class KernelKey:
    """A kernel; `occurrence` counts those of one name in a file, from 0 and down the file."""

    path: str
    name: str
    occurrence: int


@dataclass(frozen=True, slots=True, order=True)
class Recorded:
    """The verdict of a kernel when the baseline was written; `reason` is why it was unknown."""

    kernel: KernelKey
    verdict: str
    reason: str | None = None

    @property
    def text(self) -> str:
        return self.verdict + (f"({self.reason})" if self.reason else "")


@dataclass(frozen=True, slots=True)
class Baseline:
    """Everything that a baseline file says, sorted."""

    findings: tuple[Entry, ...] = ()
    kernels: tuple[Recorded, ...] = ()


def absolute(path: str) -> str:
    """The path from the root as it is written: links are not followed, so that the names are the user's."""
    return os.path.abspath(path)  # noqa: PTH100


def relative(file: str, root: str) -> str:
    """The path of a file as a baseline in the folder `root` has it: POSIX, from that folder."""
    inner = _relative(absolute(file), absolute(root))
    if inner.startswith("../") or Path(inner).is_absolute():  # it may still be inside, by another name
        real = _relative(os.path.realpath(file), os.path.realpath(root))
        inner = inner if real.startswith("../") else real
    return inner


def _relative(file: str, root: str) -> str:
    try:
        return os.path.relpath(file, root).replace(os.sep, "/")
    except ValueError:  # on another drive
        return file.replace(os.sep, "/")


def keys(report: Report, root: str) -> tuple[Key, ...]:
    """The key of each finding of a report, in their order; no two are equal."""
    named = identities(report.diagnostics, report.sources, path=lambda file: relative(file, root))
    return tuple(Key(i.path, i.kernel, i.rule, i.operation, i.claim, i.occurrence) for i in named)


def kernel_keys(report: Report, root: str) -> dict[KernelKey, KernelReport]:
    """The kernels of a report by their keys."""
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for kernel in sorted(report.kernels, key=lambda k: (k.site.file, k.site.span.start)):
        name = (relative(kernel.site.file, root), kernel.name)
        found[KernelKey(*name, seen[name])] = kernel
        seen[name] += 1
    return found


def captured(report: Report, root: str, reason: str) -> Baseline:
    """The baseline that accepts all of a report but what never is: a file that cannot be read, the state of
    suppressions, a bug of ours."""
    findings = [
        Entry(key, reason)
        for key, diagnostic in zip(keys(report, root), report.diagnostics, strict=True)
        if not diagnostic.suppressed and diagnostic.code not in NEVER_SUPPRESSED
    ]
    kernels = [
        Recorded(key, kernel.verdict.value, kernel.reason)
        for key, kernel in kernel_keys(report, root).items()
        if kernel.internal_error is None
    ]
    return Baseline(tuple(sorted(findings)), tuple(sorted(kernels, key=lambda known: known.kernel)))


# ---- applying it -------------------------------------------------------------------------------------------


def applied(report: Report, baseline: Baseline, root: str) -> Report:
    """The report with accepted findings marked, undecided kernels that were undecided before accepted, and a
    finding for each kernel that was decided before and is not now."""
    reasons = {entry.key: entry.reason for entry in baseline.findings}
    diagnostics: list[Diagnostic] = []
    accepted = 0
    for key, diagnostic in zip(keys(report, root), report.diagnostics, strict=True):
        known = not diagnostic.suppressed and diagnostic.code not in NEVER_SUPPRESSED and key in reasons
        accepted += known
        diagnostics.append(
            replace(diagnostic, suppression=Suppression("external", reasons[key])) if known else diagnostic
        )
    recorded = {known.kernel: known for known in baseline.kernels}
    kernels: dict[Site, KernelReport] = {}
    for name, kernel in kernel_keys(report, root).items():
        before = recorded.get(name)
        if before is None or kernel.verdict is not Verdict.UNKNOWN or kernel.internal_error is not None:
            continue
        if Verdict(before.verdict) in _ACCEPTED:
            diagnostics.append(verdict_regression(kernel, before.text))
        elif before.verdict == Verdict.UNKNOWN.value and _is_known(kernel, before, diagnostics):
            kernels[kernel.site] = replace(kernel, accepted=True)
    return replace(
        report,
        kernels=tuple(kernels.get(kernel.site, kernel) for kernel in report.kernels),
        diagnostics=tuple(diagnostics),
        baselined=accepted,
    )


def _is_known(kernel: KernelReport, before: Recorded, diagnostics: list[Diagnostic]) -> bool:
    """Whether all that is said of why a kernel is unknown has been accepted: a question that is open since then
    is not."""
    told = [d for d in diagnostics if d.code in UNDECIDED_KERNEL and d.kernel == kernel.name]
    return all(d.suppressed for d in told) if told else kernel.reason == before.reason


# ---- keeping it --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a run has looked at, and so can say of an entry that it is stale.

    `paths` are those of the command line from the root of the file system, each with the kernel that
    `file.py::kernel` names, or None. `plain` are files that were looked at and cannot hold a kernel.
    """

    report: Report
    root: str
    paths: tuple[tuple[str, str | None], ...]
    plain: frozenset[str] = frozenset()

    def covers(self, path: str, kernel: str) -> bool:
        """Whether a kernel would be in the report if it were still in its file."""
        if not self._is_asked_for(path, kernel) or path in set(map(self._relative, self.report.unreadable)):
            return False
        if any((self._relative(file), name) == (path, kernel) for file, name in self.report.unchanged):
            return False
        if any(k.name == kernel and k.internal_error is not None for k in self.report.kernels):
            return False
        read = {self._relative(file) for file in (*self.report.sources, *self.plain)}
        return path in read or not os.path.lexists(self._absolute(path))

    def _is_asked_for(self, path: str, kernel: str) -> bool:
        file = self._absolute(path)
        return any(
            name in (None, kernel)
            and (
                file == given or file.startswith(given.rstrip(os.sep) + os.sep) or path == self._relative(given)
            )
            for given, name in self.paths
        )

    def _absolute(self, path: str) -> str:
        return absolute(str(Path(self.root, *path.split("/"))))

    def _relative(self, file: str) -> str:
        return relative(file, self.root)


def stale(baseline: Baseline, coverage: Coverage) -> tuple[Entry, ...]:
    """The entries whose finding is gone: fixed, or its kernel is."""
    present = set(keys(coverage.report, coverage.root))
    unknown = {k.name for k in coverage.report.kernels if k.verdict is Verdict.UNKNOWN}
    unread = {relative(h.site.file, coverage.root) for h in coverage.report.hosts if h.status == "unread"}
    return tuple(
        entry
        for entry in baseline.findings
        if entry.key not in present
        and all(coverage.covers(path, entry.key.kernel) for path in _homes(entry.key, baseline))
        # What was found in a kernel or host function that is undecided now may only be out of reach.
        and (entry.key.rule in UNDECIDED_KERNEL or entry.key.kernel not in unknown)
        and (entry.key.kernel or entry.key.path not in unread)
    )


def _homes(key: Key, baseline: Baseline) -> set[str]:
    """The files that must have been looked at: that of the finding, and that of a kernel that calls into it."""
    files = {known.kernel.path for known in baseline.kernels if known.kernel.name == key.kernel}
    return {key.path} if key.path in files else {key.path, *files}


def with_warnings(
    report: Report, entries: tuple[Entry, ...], file: str, data: bytes, severity: Severity
) -> Report:
    """The report with a finding for each stale entry of the baseline `file`."""
    if not entries:
        return report
    root = str(Path(absolute(file)).parent)
    kernels = {(key.path, key.name): k for key, k in kernel_keys(report, root).items() if not key.occurrence}
    found = []
    for entry in entries:
        kernel = kernels.get((entry.key.path, entry.key.kernel))
        found.append(stale_entry(entry.key.rule, entry.key.kernel, entry.key.operation, kernel, file, severity))
    sources = {**report.sources, file: data}
    return replace(report, diagnostics=(*report.diagnostics, *found), sources=sources)


def without(baseline: Baseline, entries: tuple[Entry, ...]) -> Baseline:
    gone = {entry.key for entry in entries}
    return replace(baseline, findings=tuple(e for e in baseline.findings if e.key not in gone))


def pruned(baseline: Baseline, coverage: Coverage) -> Baseline:
    """The baseline without what is gone, with the verdicts that have become better."""
    now = kernel_keys(coverage.report, coverage.root)
    kept = without(baseline, stale(baseline, coverage))
    return replace(kept, kernels=tuple(_still(kept, coverage, now)))


def _still(baseline: Baseline, coverage: Coverage, now: Mapping[KernelKey, KernelReport]) -> Iterator[Recorded]:
    for known in baseline.kernels:
        kernel = now.get(known.kernel)
        if kernel is None:
            if not coverage.covers(known.kernel.path, known.kernel.name):
                yield known
        elif _STRENGTH.get(kernel.verdict, 0) > _STRENGTH.get(Verdict(known.verdict), 0):
            yield Recorded(known.kernel, kernel.verdict.value)
        else:
            yield known


def rewritten(baseline: Baseline, coverage: Coverage, reason: str) -> Baseline:
    """The baseline with what a run found in place of what it said of the same kernels; an entry that was there
    keeps its reason."""
    new = captured(coverage.report, coverage.root, reason)
    old = {entry.key: entry for entry in baseline.findings}
    findings = {
        **{
            key: entry
            for key, entry in old.items()
            if not all(coverage.covers(path, key.kernel) for path in _homes(key, baseline))
        },
        **{entry.key: old.get(entry.key, entry) for entry in new.findings},
    }
    kernels = {
        **{k.kernel: k for k in baseline.kernels if not coverage.covers(k.kernel.path, k.kernel.name)},
        **{k.kernel: k for k in new.kernels},
    }
    return Baseline(
        tuple(findings[key] for key in sorted(findings)), tuple(kernels[k] for k in sorted(kernels))
    )
