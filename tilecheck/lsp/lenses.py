"""Code lenses with verdicts, and inlay hints with the ownership that was inferred."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilecheck.lsp.actions import EXPLAIN
from tilecheck.lsp.outline import outline, parameters
from tilecheck.model import KernelReport, Verdict
from tilecheck.report.topics import topic_of_reason

if TYPE_CHECKING:
    from tilecheck.lsp.analysed import Analysed
    from tilecheck.lsp.positions import Json

_TYPE = 1  # the kind of hint that stands for a type
_DOT = " \N{MIDDLE DOT} "


def lenses(analysed: Analysed) -> list[Json]:
    """The verdict above each kernel. The command explains it, and is the server's own."""
    positions = analysed.positions()
    return [
        {
            "range": positions.range(kernel.site.span),
            "command": {"title": verdict_line(kernel), "command": EXPLAIN, "arguments": [topic_of(kernel)]},
        }
        for kernel in analysed.kernels
    ]


def verdict_line(kernel: KernelReport) -> str:
    """`proved · 4 obligations · 12 ms`."""
    word = kernel.verdict.value
    number = len(kernel.obligations)
    parts = [f"{word} ({kernel.reason})" if kernel.verdict is Verdict.UNKNOWN and kernel.reason else word]
    if kernel.conditions:
        parts.append(_count(len(kernel.conditions), "condition"))
    parts.append(_count(number, "obligation"))
    parts.append("cached" if kernel.cached else f"{kernel.time_ms:.0f} ms")
    return _DOT.join(parts)


def topic_of(kernel: KernelReport) -> str:
    """The page that explains a kernel's verdict."""
    return topic_of_reason(kernel.reason) if kernel.reason else kernel.verdict.value


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def hints(analysed: Analysed, range_: Json) -> list[Json]:
    """`: Mut` or `: Shared` behind the arrays of kernels that do not declare it."""
    positions = analysed.positions()
    read = outline(positions.source)
    if read is None:
        return []
    found = []
    for kernel in analysed.kernels:
        function = read.function(kernel)
        known = {p.name: p for p in kernel.params if p.array and not p.declared}
        for parameter in parameters(function) if function is not None else ():
            report = known.get(parameter.arg)
            if report is None or report.ownership not in ("mut", "shared"):
                continue
            position = positions.position(read.span(parameter).end)
            if range_["start"]["line"] <= position["line"] <= range_["end"]["line"]:
                found.append(_hint(position, report.ownership, annotated=parameter.annotation is not None))
    return sorted(found, key=lambda h: (h["position"]["line"], h["position"]["character"]))


_SAYS = {
    "mut": "the kernel writes this array: inferred, as `Mut` or `# tilecheck: mut` declares it",
    "shared": "the kernel only reads this array: inferred, as `Shared` or `# tilecheck: shared` declares it",
}


def _hint(position: Json, ownership: str, *, annotated: bool) -> Json:
    word = ownership.capitalize()
    return {
        "position": position,
        "label": f" {word}" if annotated else f": {word}",
        "kind": _TYPE,
        "tooltip": _SAYS[ownership],
    }
