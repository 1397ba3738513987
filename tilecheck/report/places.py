"""Byte spans to lines and columns: the one place where reports do it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.hygiene import UNDECIDED_KERNEL
from tilecheck.model import Diagnostic, HostReport, KernelReport, Report, Site, Verdict
from tilecheck.text import Source, decode_leniently


@dataclass(frozen=True, slots=True)
class Place:
    """Where a site is: 1-based lines and code-point columns, the end exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one report. Decodes each file once."""

    sources: Mapping[str, bytes]
    _decoded: dict[str, Source] = field(default_factory=dict, repr=False)

    def source(self, file: str) -> Source:
        """The text of a file; empty for one that was never read."""
        if file not in self._decoded:
            self._decoded[file] = decode_leniently(file, self.sources.get(file, b""))
        return self._decoded[file]

    def of(self, site: Site) -> Place:
        source = self.source(site.file)
        line, column = source.position(site.span.start)
        end_line, end_column = source.position(max(site.span.end, site.span.start))
        return Place(site.file, line, column, end_line, end_column)


def in_order(report: Report) -> tuple[Diagnostic, ...]:
    """The findings by file, place and code: the order does not depend on how they were found."""
    return tuple(sorted(report.diagnostics, key=lambda d: (d.site.file, d.site.span.start, d.code, d.message)))


def kernels_in_order(kernels: Iterable[KernelReport]) -> tuple[KernelReport, ...]:
    return tuple(sorted(kernels, key=lambda k: (k.site.file, k.site.span.start, k.name)))


def hosts_in_order(hosts: Iterable[HostReport]) -> tuple[HostReport, ...]:
    return tuple(sorted(hosts, key=lambda h: (h.site.file, h.site.span.start, h.name)))


def undecided_without_finding(report: Report) -> tuple[KernelReport, ...]:
    """The unknown kernels whose reason no finding tells."""
    told = frozenset((d.site.file, d.kernel) for d in report.diagnostics if d.code in UNDECIDED_KERNEL)
    unknown = (k for k in report.kernels if k.verdict is Verdict.UNKNOWN)
    return kernels_in_order(k for k in unknown if (k.site.file, k.name) not in told)
