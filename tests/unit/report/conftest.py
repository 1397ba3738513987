"""Reports of one small file, built by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tilecheck.model import Diagnostic, KernelReport, Report, Severity, Site, Span, Verdict
from tilecheck.report.run import Root, Run

SOURCE = """@ct.kernel
def first(x, out):
    a = ct.load(x, index=(0,), shape=(1,))
    ct.store(out, index=(0,), tile=a)
    ct.store(
        out, index=(1,), tile=a)


@ct.kernel
def second(x, out):
    ct.store(out, index=(0,), tile=0)
    ct.store(out, index=(0,), tile=0)
"""


@dataclass(slots=True)
class Made:
    """Makes the parts of reports on `k.py`, and runs of them."""

    source: str = SOURCE
    file: str = "k.py"
    more: dict[str, bytes] = field(default_factory=dict)

    def site(self, text: str, nth: int = 0) -> Site:
        start = -1
        for _ in range(nth + 1):
            start = self.source.index(text, start + 1)
        begin = len(self.source[:start].encode())
        return Site(self.file, Span(begin, begin + len(text.encode())))

    def kernel(self, name: str, verdict: Verdict, **more: object) -> KernelReport:
        return KernelReport(name, "cutile", self.site(name), verdict, **more)  # type: ignore[arg-type]

    def finding(
        self, text: str = "ct.store(out, index=(0,), tile=a)", nth: int = 0, **more: object
    ) -> Diagnostic:
        given = {"code": "TC201", "name": "write-write-overlap", "message": "a message", "kernel": "first"}
        given |= {"severity": Severity.ERROR, "site": self.site(text, nth)}
        return Diagnostic(**given | more)  # type: ignore[arg-type]

    def report(self, *parts: KernelReport | Diagnostic, **more: object) -> Report:
        kernels = tuple(p for p in parts if isinstance(p, KernelReport))
        findings = tuple(p for p in parts if isinstance(p, Diagnostic))
        sources = {self.file: self.source.encode(), **self.more}
        return Report(kernels, findings, files=1, sources=sources, **more)  # type: ignore[arg-type]

    def run(self, *parts: KernelReport | Diagnostic, **more: object) -> Run:
        return Run(self.report(*parts), **{"root": Root("/repository", "/repository"), **more})  # type: ignore[arg-type]


@pytest.fixture
def made() -> Made:
    return Made()


@pytest.fixture
def make() -> Callable[..., Made]:
    return Made
