"""The examples on the pages of rules: complete modules that say what a run must find in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilecheck.discover import display_path
from tilecheck.model import Diagnostic, Report, Severity
from tilecheck.options import Options
from tilecheck.testing.expect import Expectations, read_expectations
from tilecheck.testing.fixtures import compare
from tilecheck.text import Source, decode_leniently

BAD, GOOD = "Example", "Use instead"


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block of a page; `section` is `Example` or `Use instead`, `number` counts within it."""

    code: str
    section: str
    number: int
    text: str

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
    block: list[str] | None = None
    for line in page.splitlines():
        if block is not None:
            if line == "```":
                found.append(Example(code, section, number, "\n".join(block) + "\n"))
                block = None
            else:
                block.append(line)
        elif line.startswith("## "):
            section, number = line[3:].strip(), 0
        elif line == "```python" and section in (BAD, GOOD):
            number += 1
            block = []
    return tuple(found)


def check_example(example: Example, folder: Path, options: Options | None = None) -> list[str]:
    """Write an example into `folder`, verify it, and list what is not as its comments expect.

    Unlike in a fixture, a warning that no comment expects is a problem too.
    """
    from tilecheck.pipeline import verify_paths  # lazy: loads the analysis

    path = folder / example.name
    path.write_text(example.text, encoding="utf-8", newline="\n")
    report = verify_paths([str(path)], options)
    expected = read_expectations(example.text)
    source = decode_leniently(display_path(str(path)), path.read_bytes())
    if not example.is_readable:
        return list(_unreadable(source, expected, report))
    problems = [f"line {p.line}: {p.message}" for p in compare(source, report)]
    return problems + list(_warnings(source, expected, report))


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
