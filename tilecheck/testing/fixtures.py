"""Compares what a run says about a fixture with what the fixture expects."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from tilecheck.dataclass import dataclass
from tilecheck.model import Diagnostic, KernelReport, Report, Severity, Site, Verdict
from tilecheck.options import Options
from tilecheck.testing.expect import Expectations, ExpectedFinding, ExpectedVerdict, read_expectations
from tilecheck.text import Source, decode
from tilecheck.verify.discover import display_path


@dataclass(frozen=True, slots=True)
class Problem:
    """One difference. `kernel` is the kernel whose text holds the line, or None."""

    line: int
    kernel: str | None
    message: str


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A function that carries a verdict, with its lines; decorators are part of it."""

    name: str
    first: int
    header: int
    last: int
    expected: ExpectedVerdict


def check_fixture(path: str | Path, options: Options | None = None) -> list[str]:
    """Verify one annotated file; each problem as `path:line: message`, none if all is as expected.

    Raises:
        AnnotationError: an annotation of the file is not understood.
        SourceError: the file cannot be decoded or parsed.
    """
    shown = display_path(str(path))
    return [f"{shown}:{p.line}: {p.message}" for p in fixture_problems(path, options)]


def fixture_problems(path: str | Path, options: Options | None = None) -> tuple[Problem, ...]:
    """As `check_fixture`, but each problem with its line and kernel apart."""
    from tilecheck.verify.pipeline import verify_paths  # lazy: loads the analysis

    source = decode(display_path(str(path)), Path(path).read_bytes())
    return compare(source, verify_paths([str(path)], options))


def fixture_kernels(path: str | Path) -> tuple[str, ...]:
    """The names of the kernels that a fixture gives a verdict, in order; runs no analysis."""
    source = decode(Path(path).as_posix(), Path(path).read_bytes())
    return tuple(k.name for k in _kernels(source.text, read_expectations(source.text)))


def compare(source: Source, report: Report) -> tuple[Problem, ...]:
    """Every difference between the annotations of a file and a report on it, by line."""
    expected = read_expectations(source.text)
    kernels = _kernels(source.text, expected)
    found = [
        *_orphans(kernels, expected),
        *_verdicts(source, kernels, report),
        *_findings(source, expected, report.diagnostics),
    ]
    problems = {Problem(line, _owner(kernels, line), message): None for line, message in found}
    return tuple(sorted(problems, key=lambda p: (p.line, p.message)))


# ---- kernels and verdicts ----------------------------------------------------------------------------------


def _kernels(text: str, expected: Expectations) -> tuple[_Kernel, ...]:
    """The functions with a verdict on their header or above their decorators."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            header = node.body[0].lineno - 1 if node.body[0].lineno > node.lineno else node.lineno
            verdict = next((v for v in expected.verdicts if first <= v.line <= header), None)
            if verdict is not None:
                found.append(_Kernel(node.name, first, node.lineno, node.end_lineno or header, verdict))
    return tuple(sorted(found, key=lambda k: k.first))


def _owner(kernels: Sequence[_Kernel], line: int) -> str | None:
    inner = [k for k in kernels if k.first <= line <= k.last]
    return inner[-1].name if inner else None


def _orphans(kernels: Sequence[_Kernel], expected: Expectations) -> Iterator[tuple[int, str]]:
    placed = {k.expected for k in kernels}
    for verdict in expected.verdicts:
        if verdict not in placed:
            yield verdict.line, f"the verdict {verdict.word} stands at no function"


def _verdicts(source: Source, kernels: Sequence[_Kernel], report: Report) -> Iterator[tuple[int, str]]:
    by_line: dict[int, KernelReport] = {}
    for reported in report.kernels:
        if reported.site.file == source.path:
            by_line[source.position(reported.site.span.start)[0]] = reported
    for kernel in kernels:
        lines = [line for line in range(kernel.first, kernel.header + 1) if line in by_line]
        if not lines:
            yield kernel.header, f"`{kernel.name}` was not found to be a kernel"
            continue
        said = by_line.pop(lines[-1])
        yield from _verdict(kernel, said)
    for line, reported in sorted(by_line.items()):
        yield line, f"kernel `{reported.name}` has no verdict annotation"


def _verdict(kernel: _Kernel, said: KernelReport) -> Iterator[tuple[int, str]]:
    true, today = kernel.expected.word, kernel.expected.today
    text = said.verdict.value + (f"({said.reason})" if said.reason else "")
    if today is not None and _is_verdict(true, said):
        yield kernel.header, f"`{kernel.name}` is {text} at last: drop the todo-verdict"
    elif not _is_verdict(today or true, said):
        yield kernel.header, f"`{kernel.name}` is {text}, not {today or true}{_because(said)}"


def _is_verdict(word: str, said: KernelReport) -> bool:
    kind, _, reason = word.rstrip(")").partition("(")
    given = said.reason or ""
    return said.verdict.value == kind and (not reason or reason in (given, given.partition(":")[0]))


def _because(said: KernelReport) -> str:
    if said.internal_error:
        return f": {said.internal_error.strip().splitlines()[-1]}"
    if said.verdict is Verdict.CONDITIONAL:
        return f": {'; '.join((*said.conditions, *said.requires))}"
    return ""


# ---- findings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """A finding in lines and columns; `others` are the lines of its related places."""

    diagnostic: Diagnostic
    line: int
    column: int
    others: tuple[int, ...]


def _findings(
    source: Source, expected: Expectations, diagnostics: Sequence[Diagnostic]
) -> Iterator[tuple[int, str]]:
    everything = [_locate(source, d) for d in diagnostics if d.site.file == source.path]
    matched: set[int] = set()
    for wanted in expected.findings:
        hits = [n for n, found in enumerate(everything) if _matches(wanted, found, expected)]
        if wanted.key != "ok":
            matched.update(hits)
        yield from ((wanted.line, message) for message in _complaint(wanted, bool(hits)))
    for number, found in enumerate(everything):
        diagnostic = found.diagnostic
        if number not in matched and (diagnostic.suppressed or diagnostic.severity is Severity.ERROR):
            silenced = "suppressed " if diagnostic.suppressed else ""
            yield found.line, f"unexpected {silenced}{diagnostic.code}: {diagnostic.message}"


def _complaint(wanted: ExpectedFinding, hit: bool) -> Iterator[str]:
    match wanted.key, hit:
        case (("expect" | "suppressed" | "todo-ok"), False):
            again = " any more: drop the todo-ok" if wanted.key == "todo-ok" else ""
            yield f"{wanted.code} is not found here{again}"
        case "ok", True:
            yield f"{wanted.code} is found here"
        case "todo-expect", True:
            yield f"{wanted.code} is found here at last: make the todo-expect an expect"


def _locate(source: Source, diagnostic: Diagnostic) -> _Found:
    line, column = source.position(diagnostic.site.span.start)
    others = tuple(_line(source, r.site) for r in diagnostic.related if r.site.file == source.path)
    return _Found(diagnostic, line, column, others)


def _line(source: Source, site: Site) -> int:
    return source.position(site.span.start)[0]


def _matches(wanted: ExpectedFinding, found: _Found, expected: Expectations) -> bool:
    diagnostic = found.diagnostic
    return (
        diagnostic.code == wanted.code
        and diagnostic.suppressed == (wanted.key == "suppressed")
        and (wanted.column is None or wanted.column == found.column)
        and (wanted.text is None or wanted.text in diagnostic.message)
        and _is_placed(wanted, found, expected)
    )


def _is_placed(wanted: ExpectedFinding, found: _Found, expected: Expectations) -> bool:
    """One end here; of two ends either may be the first, because a race has no order."""
    if wanted.other is None:
        return found.line == wanted.line
    ends = {*expected.sites[wanted.other]}
    return (found.line == wanted.line and bool(ends.intersection(found.others))) or (
        found.line in ends and wanted.line in found.others
    )
