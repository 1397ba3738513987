"""JUnit XML: a test case for each kernel, a suite for each file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from tilecheck.hygiene import BELOW_DEMAND, UNREADABLE_SOURCE
from tilecheck.model import Diagnostic, KernelReport, Verdict
from tilecheck.report.emitters import full
from tilecheck.report.emitters.grouped import grouped
from tilecheck.report.findings import paragraph, told
from tilecheck.report.places import Places
from tilecheck.report.run import Run
from tilecheck.report.style import plain
from tilecheck.report.verdicts import grounds

# What XML 1.0 cannot carry, not even escaped.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> str:
    """Violated is a failure, unknown an error, and what passes says in its output what it rests on."""
    root = ET.Element("testsuites", name="tilecheck", time=_seconds(run.report.time_s))
    suites = _Suites(run, root)
    groups, rest = grouped(run.report, told(run.report, suppressed=True))
    for kernel, findings in groups:
        suites.add_kernel(kernel, findings)
    for file in dict.fromkeys(d.site.file for d in rest):
        suites.add_file(file, [d for d in rest if d.site.file == file])
    for file, name in run.report.unchanged:
        case = suites.case(file, name, 0.0)
        ET.SubElement(case, "skipped", message=_text(f"unchanged since {run.report.since}, not looked at"))
    if not groups and not run.report.unchanged and run.lists_verdicts:
        case = suites.case("tilecheck", "kernels", 0.0)
        ET.SubElement(case, "error", type="no-kernels", message="no kernels were found")
    for element in (root, *root):
        for name, path in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            element.set(name, str(sum(1 for _ in element.iter(path))))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


class _Suites:
    """The suites of one run. Mutable: cases are added file by file."""

    def __init__(self, run: Run, root: ET.Element) -> None:
        self.run = run
        self.root = root
        self.places = Places(run.report.sources)
        self.suites: dict[str, ET.Element] = {}
        self.named: Counter[tuple[str, str]] = Counter()

    def case(self, file: str, name: str, time_s: float, line: int | None = None) -> ET.Element:
        """A case in the suite of its file, under a name that no other case there has."""
        path = _text(self.run.root.path(file))
        if path not in self.suites:
            self.suites[path] = ET.SubElement(self.root, "testsuite", name=path)
        self.named[path, name] += 1
        number = self.named[path, name]
        unique = name if number == 1 else f"{name} ({number})"
        place: dict[str, str] = {} if line is None else {"file": path, "line": str(line)}
        named = {"classname": path, "name": _text(unique), "time": _seconds(time_s)}
        return ET.SubElement(self.suites[path], "testcase", named | place)

    def add_kernel(self, kernel: KernelReport, findings: Sequence[Diagnostic]) -> None:
        case = self.case(kernel.site.file, kernel.name, kernel.time_ms / 1000, self.places.of(kernel.site).line)
        standing = [d for d in findings if not d.suppressed]
        rests_on = [kernel.verdict.value, *grounds(kernel, self.places)]
        below = [d for d in standing if d.code == BELOW_DEMAND]
        if any(d.severity >= self.run.fail_on for d in standing if d not in below):
            self._mark(case, "failure", kernel.verdict.value, standing)
        elif below:
            self._mark(case, "error", below[0].name, standing)
        elif kernel.verdict is Verdict.UNKNOWN:
            reason = f"unknown({kernel.reason or 'internal'})"
            # The baseline, or a comment on the finding, takes it out of the exit code: no error, but no pass.
            if kernel.accepted:
                ET.SubElement(case, "skipped", message=_text(f"{reason}, as the baseline has it"))
            elif standing:
                self._mark(case, "error", reason, standing)
            else:
                ET.SubElement(case, "error", type=_text(reason), message=_text(reason))
        elif kernel.verdict is Verdict.VIOLATED:
            # Out of the exit code, and no pass either.
            why = "; ".join(f"{d.code}: {d.suppression.reason}" for d in findings if d.suppression)
            ET.SubElement(case, "skipped", message=_text(f"violated, and suppressed: {why}"))
        else:
            rests_on += map(self._paragraph, standing)
        self._output(case, rests_on)

    def add_file(self, file: str, findings: Sequence[Diagnostic]) -> None:
        """A case for the findings that belong to a file rather than to a kernel."""
        case = self.case(file, "source", 0.0, self.places.of(findings[0].site).line)
        standing = [d for d in findings if not d.suppressed]
        unread = [d for d in standing if d.code == UNREADABLE_SOURCE]
        if unread:
            self._mark(case, "error", UNREADABLE_SOURCE, unread)
        elif any(d.severity >= self.run.fail_on for d in standing):
            self._mark(case, "failure", standing[0].code, standing)
        else:
            self._output(case, map(self._paragraph, standing))

    def _mark(self, case: ET.Element, what: str, kind: str, findings: Sequence[Diagnostic]) -> None:
        worst = max(findings, key=lambda d: d.severity)
        element = ET.SubElement(case, what, type=_text(kind), message=_text(worst.message))
        lines = (line for d in findings for line in full.render_finding(d, self.places))
        element.text = _text(plain(lines))

    def _paragraph(self, diagnostic: Diagnostic) -> str:
        return paragraph(diagnostic, lambda site: self.run.root.place(self.places.of(site)))

    def _output(self, case: ET.Element, texts: Iterable[str]) -> None:
        ET.SubElement(case, "system-out").text = _text("\n".join(texts))


def _seconds(time_s: float) -> str:
    return f"{time_s:.3f}"


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
