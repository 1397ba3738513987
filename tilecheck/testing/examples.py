"""The examples on the pages of rules: complete modules that say what a run must find in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tilecheck.config.files import read_toml
from tilecheck.dataclass import dataclass
from tilecheck.demand import held_to
from tilecheck.history.baseline import Coverage, absolute, applied, stale, with_warnings
from tilecheck.history.baseline_file import parse
from tilecheck.history.baseline_location import FILE
from tilecheck.model import Diagnostic, Report, Severity
from tilecheck.options import Options
from tilecheck.testing.expect import Expectations, read_expectations
from tilecheck.testing.fixtures import compare
from tilecheck.text import Source, decode_leniently
from tilecheck.verify.discover import display_path

BAD, GOOD = "Example", "Use instead"


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block of a page; `section` is `Example` or `Use instead`, `number` counts within it.
    `baseline` is the block of JSON before it, `config` the block of TOML. The gate answers those of
    `python gate`."""

    code: str
    section: str
    number: int
    text: str
    baseline: str = ""
    config: str = ""
    is_for_gate: bool = False

    @property
    def name(self) -> str:
        """A file name that says which example this is."""
        kind = "bad" if self.section == BAD else "good"
        return f"{self.code.lower()}_{kind}_{self.number}.py"

    @property
    def is_readable(self) -> bool:
        """Whether the example is valid Python; those of one rule are not."""
        try:
            ast.parse(self.text)
        except SyntaxError:
            return False
        return True


def page_examples(code: str, page: str) -> tuple[Example, ...]:
    """The fenced python blocks of a page under `Example` and `Use instead`, in order."""
    found: list[Example] = []
    section, number = "", 0
    beside: dict[str, str] = {}
    block: list[str] | None = None
    language = ""
    for line in page.splitlines():
        if block is not None:
            if line != "```":
                block.append(line)
                continue
            text, block = "\n".join(block) + "\n", None
            if language in _BESIDE:
                beside[_BESIDE[language]] = text
            else:
                number += 1
                is_for_gate = language == "python gate"
                found.append(Example(code, section, number, text, is_for_gate=is_for_gate, **beside))
                beside = {}
        elif line.startswith("## "):
            section, number, beside = line[3:].strip(), 0, {}
        elif line.startswith("```") and line[3:] in _LANGUAGES and section in (BAD, GOOD):
            language, block = line[3:], []
    return tuple(found)


_BESIDE = {"json": "baseline", "toml": "config"}  # what stands before an example, and the field that it fills
_LANGUAGES = ("python", "python gate", *_BESIDE)


def check_example(example: Example, folder: Path, options: Options | None = None) -> list[str]:
    """Write an example into `folder`, verify it, and list what is not as its comments expect.

    Unlike in a fixture, a warning that no comment expects is a problem too.
    """
    from tilecheck.verify.pipeline import verify_paths  # lazy: loads the analysis

    if example.is_for_gate:
        return _gate_problems(example, options or Options())
    baseline = parse(example.baseline.encode(), example.name) if example.baseline else None
    path = folder / (example.name if baseline is None else baseline.kernels[0].kernel.path)
    path.write_text(example.text, encoding="utf-8", newline="\n")
    report = verify_paths([str(path)], options)
    if baseline is not None:
        gone = stale(baseline, Coverage(report, str(folder), ((absolute(str(path)), None),)))
        report = applied(report, baseline, str(folder))
        report = with_warnings(report, gone, str(folder / FILE), example.baseline.encode(), Severity.WARNING)
    if example.config:
        report = held_to(report, read_toml(example.config)["tool"]["tilecheck"]["require"])
    expected = read_expectations(example.text)
    source = decode_leniently(display_path(str(path)), path.read_bytes())
    if not example.is_readable:
        return list(_unreadable(source, expected, report))
    problems = [f"line {p.line}: {p.message}" for p in compare(source, report)]
    return problems + list(_warnings(source, expected, report))


def _gate_problems(example: Example, options: Options) -> list[str]:
    from tilecheck.gate.analyse import SOURCE, judged, table_of  # lazy: loads the analysis
    from tilecheck.gate.protocol import Item

    item = Item(example.name, example.text)
    report = judged(item, table_of(item), options)
    source = decode_leniently(SOURCE, example.text.encode())
    problems = [f"line {p.line}: {p.message}" for p in compare(source, report)]
    return problems + list(_warnings(source, read_expectations(example.text), report))


def _unreadable(source: Source, expected: Expectations, report: Report) -> Iterator[str]:
    """A file that does not parse has no kernels, and its findings are those that the comments expect."""
    if report.kernels or expected.verdicts:
        yield "a file that is not read has no verdicts"
    found = [(d.code, _line(source, d)) for d in report.diagnostics]
    wanted = [(e.code, e.line) for e in expected.findings]
    if found != wanted:
        yield f"found {found}, expected {wanted}"


def _warnings(source: Source, expected: Expectations, report: Report) -> Iterator[str]:
    wanted = {(e.code, e.line) for e in expected.findings}
    for diagnostic in report.diagnostics:
        line = _line(source, diagnostic)
        if diagnostic.severity < Severity.ERROR and (diagnostic.code, line) not in wanted:
            yield f"line {line}: unexpected {diagnostic.code}: {diagnostic.message}"


def _line(source: Source, diagnostic: Diagnostic) -> int:
    return source.position(diagnostic.site.span.start)[0]
