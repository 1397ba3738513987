"""The answer to one item: the pipeline on one module of text, with nothing around it.

No config file counts here and no other file is imported from: an answer depends on its line alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.errors import SourceError, UnsupportedConstruct
from tilecheck.frontend.kernels.contracts import check_text
from tilecheck.frontend.kernels.definitions import Definition, Given, find_kernels
from tilecheck.frontend.kernels.trust import withdraw_trust
from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.modules.bindings import Import
from tilecheck.frontend.modules.project import ModuleTable, Project
from tilecheck.frontend.text.source import check_syntax, parse
from tilecheck.gate.decisions import Decisions
from tilecheck.gate.protocol import BadLine, Item
from tilecheck.hygiene import unreadable_source, untaken_trust
from tilecheck.model import Diagnostic, KernelReport, Report, Site, Span, Verdict
from tilecheck.options import Options
from tilecheck.overlay import overlaid
from tilecheck.report.emitters.json import to_object
from tilecheck.text import decode
from tilecheck.verify.launch_sites import launches_of
from tilecheck.verify.stages import verify_kernel
from tilecheck.verify.suppressions import apply_suppressions

if TYPE_CHECKING:
    from tilecheck.text import Source

SOURCE = "source.py"  # the file that reports name; `launch` goes on below the last line of `source`
CONTRACTS = "contracts"  # the file in which contracts are said to stand, one a line
_REASON = "given with the source"
_LARGE = 1_000_000  # bytes


class _Sealed(Project):
    """A module on its own: what it imports is not looked for."""

    def find(self, imported: Import, importer: str) -> ModuleTable | None:
        return None


class BrokenAnalysis(Exception):
    """A bug of ours in the analysis of a kernel. `traceback` is for the log."""

    def __init__(self, kernel: str, traceback: str) -> None:
        super().__init__(kernel)
        self.kernel = kernel
        self.traceback = traceback


def answered(
    item: Item, options: Options, decisions: Decisions | None = None
) -> tuple[list[Any], list[Any], str | None]:
    """The kernels and diagnostics of an item, as the JSON report has them, and the error if it has no kernels.
    `decisions` are those of the items before it.

    The working directory must be empty: modules that the source imports are looked for there.

    Raises:
        BadLine: a contract is not understood, or is for a kernel that does not exist.
        BrokenAnalysis: a bug of ours.
        MemoryError: the limit on memory was met.
    """
    data = _module(item).encode()
    try:
        table = table_of(item)
    except SourceError as problem:
        if isinstance(problem.__context__, MemoryError) and len(data) > _LARGE:
            raise MemoryError from None  # Python's parser says so of deep nesting too, which takes less text
        finding = unreadable_source(SOURCE, data, problem)
        found = to_object(Report((), (finding,), 1, (SOURCE,), sources={SOURCE: data}))
        return [], found["diagnostics"], f"{SOURCE}:{problem.line}:{problem.column}: {problem.message}"
    report = judged(item, table, options, decisions)
    if not report.kernels:
        return [], [], "the source has no kernel"
    said = to_object(report)
    return said["kernels"], said["diagnostics"], None


def table_of(item: Item) -> ModuleTable:
    """The module that is analysed.

    Raises:
        SourceError: it is not Python.
    """
    return _Sealed().add(parse(_source(item)))


def judged(item: Item, table: ModuleTable, options: Options, decisions: Decisions | None = None) -> Report:
    """The report of an item, whose module is `table`; without kernels it is empty."""
    definitions = find_kernels(table)
    if not definitions:
        return Report((), (), files=1)
    data = _module(item).encode()
    untaken = () if options.trust_source else tuple(_untaken(table, definitions, data))
    with overlaid({SOURCE: data}):  # counterexamples are replayed from this text
        report = _verified(table, _with_contracts(item, definitions), options, decisions or Decisions())
    sources = {SOURCE: data, CONTRACTS: "\n".join(_lines(item)).encode()}
    return replace(report, diagnostics=(*report.diagnostics, *untaken), sources=sources)


def _module(item: Item) -> str:
    """The text that is analysed: `launch` stands below `source`."""
    return f"{_closed(item.source)}{item.launch}" if item.launch else item.source


def _closed(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _source(item: Item) -> Source:
    """The whole as a file. Each part must be Python on its own: neither may change how the other is read.

    Raises:
        SourceError: it is not Python; lines are counted as in the whole.
    """
    text = _module(item)
    whole = decode(SOURCE, text.encode())
    if whole.text != text.removeprefix("\ufeff"):
        raise SourceError("the source declares another encoding than UTF-8")
    if item.launch:
        check_syntax(decode(SOURCE, item.source.encode()), nesting=False)  # of the whole it counts
        above = "\n" * _closed(item.source).count("\n")
        check_syntax(decode(SOURCE, f"{above}{item.launch}".encode()), nesting=False)
    return whole


def _verified(
    table: ModuleTable, definitions: tuple[Definition, ...], options: Options, decisions: Decisions
) -> Report:
    launches = find_launches(table)
    kernels: list[KernelReport] = []
    diagnostics: list[Diagnostic] = []
    for definition in definitions:
        made = launches_of(definition, launches)
        kernel, found = verify_kernel(definition, made, options, decisions=decisions)
        if kernel.internal_error is not None:
            if "MemoryError" in kernel.internal_error or "out of memory" in kernel.internal_error:
                raise MemoryError
            raise BrokenAnalysis(kernel.name, kernel.internal_error)
        kernels.append(kernel)
        diagnostics += found
    partial = frozenset(k.site.file for k in kernels if k.verdict is Verdict.UNKNOWN)
    marked = apply_suppressions(diagnostics, {SOURCE: table.pragmas}, partial=partial)
    return Report(tuple(kernels), marked, files=1)


def _untaken(table: ModuleTable, definitions: tuple[Definition, ...], data: bytes) -> Iterator[Diagnostic]:
    """A finding for each place at which the text asks for trust, with the kernel that it is in or above."""
    for span in withdraw_trust(table):
        ends = ((table.span(definition.node).end, definition.name) for definition in definitions)
        kernel = next((name for end, name in ends if span.start < end), None)
        yield untaken_trust(SOURCE, span, data[span.start : span.end].decode(), kernel)


# ---- contracts ---------------------------------------------------------------------------------------------


def _lines(item: Item) -> tuple[str, ...]:
    return (*item.contracts, *(text for texts in item.contracts_of.values() for text in texts))


def _with_contracts(item: Item, definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    names = {d.name for d in definitions}
    for kernel in item.contracts_of:
        if kernel not in names:
            listed = ", ".join(f"`{name}`" for name in sorted(names))
            raise BadLine(f"`contracts` are for `{kernel}`, which is no kernel of the source: it has {listed}")
    start = 0
    given: list[tuple[str | None, Given]] = []  # for which kernel (None: all), and what
    every: tuple[None, tuple[str, ...]] = (None, item.contracts)
    for whom, texts in (every, *item.contracts_of.items()):
        for text in texts:
            try:
                check_text(text)
            except UnsupportedConstruct as problem:
                raise BadLine(f"{problem.construct} is not understood") from None
            end = start + len(text.encode())
            site = Site(CONTRACTS, Span(start, end))
            given.append((whom, Given((text,), (), _REASON, site, named=True, origin="gate")))
            start = end + 1
    return tuple(replace(d, given=tuple(g for whom, g in given if whom in (None, d.name))) for d in definitions)
