"""What a hover says: of a kernel, of one of its parameters, of a rule that a comment names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.errors import TilecheckError
from tilecheck.lsp.lenses import verdict_line
from tilecheck.lsp.outline import outline, parameters
from tilecheck.model import KernelReport, LaunchReport, ParamReport, Span, Verdict
from tilecheck.registry import find_rule, rule_page
from tilecheck.report.explain import rule_page_text
from tilecheck.report.topics import STANDING, topic_page

if TYPE_CHECKING:
    from tilecheck.lsp.analysed import Analysed
    from tilecheck.lsp.positions import Json

_IGNORE = re.compile(r"#\s*tilecheck\s*:\s*ignore\s*\[(?P<rules>[^\]]*)\]")
_WORD = re.compile(r"[\w-]+")
Borrows = Mapping[str, Sequence[str]]  # of one kernel: for each array, how blocks borrow its parts


@dataclass(frozen=True, slots=True)
class Target:
    """What stands under the cursor: a rule, a kernel, or with `parameter` one of the kernel's."""

    span: Span
    rule: str = ""
    kernel: KernelReport | None = None
    parameter: str = ""


def target(analysed: Analysed, position: Json) -> Target | None:
    """What a hover at a position is about; None if there is nothing to say."""
    positions = analysed.positions()
    offset = positions.offset(position)
    named = _rule_at(positions.source.line(position["line"] + 1), position["line"], analysed, offset)
    if named is not None:
        return named
    read = outline(positions.source)
    found = None if read is None else read.name_at(offset)
    if read is None or found is None:
        return None
    name, span = found
    for kernel in analysed.kernels:
        function = read.function(kernel)
        if function is None:
            continue
        inside = read.first(function) <= offset <= read.span(function).end
        if inside and any(p.arg == name for p in parameters(function)):
            return Target(span, kernel=kernel, parameter=name)
    kernels = (Target(span, kernel=kernel) for kernel in analysed.kernels if kernel.name == name)
    return next(kernels, None)


def _rule_at(line: str, number: int, analysed: Analysed, offset: int) -> Target | None:
    source = analysed.positions().source
    for comment in _IGNORE.finditer(line):
        for word in _WORD.finditer(comment["rules"]):
            first = comment.start("rules") + word.start()
            span = Span(
                source.offset(number + 1, first + 1), source.offset(number + 1, first + len(word[0]) + 1)
            )
            if span.start <= offset <= span.end and find_rule(word[0]) is not None:
                return Target(span, rule=word[0])
    return None


def hover_text(analysed: Analysed, found: Target, borrows: Borrows | None = None) -> str:
    """The Markdown of a hover."""
    if found.rule:
        return page(found.rule) or ""
    if found.kernel is None:
        return ""
    if found.parameter:
        return "\n".join(_of_parameter(found.kernel, found.parameter, borrows))
    return "\n".join(_of_kernel(analysed, found.kernel))


def page(word: str) -> str | None:
    """The page of a rule or a topic, as Markdown; None if there is none."""
    rule = find_rule(word)
    if rule is None:
        return topic_page(word)
    try:
        return rule_page_text(rule, rule_page(rule))
    except TilecheckError:
        return None


def _of_kernel(analysed: Analysed, kernel: KernelReport) -> Iterator[str]:
    yield f"**`{kernel.name}`**: {verdict_line(kernel)}"
    launches = "even at launches that meet" if kernel.verdict is Verdict.VIOLATED else "at launches that meet"
    yield from _list(launches, (f"`{c}`" for c in kernel.conditions))
    yield from _list("given", (f"`{p.text}` ({p.origin}, {p.status})" for p in kernel.premises))
    yield from _list("launches", (_launch(analysed, la) for la in kernel.launches))
    blocks = (
        f"line {_line(analysed, b.site.file, b.site.span)}: {b.reason or 'no reason'}" for b in kernel.trusted
    )
    yield from _list("trusting", blocks)
    yield from _list("of every launch", (f"{s}: {STANDING[s]}" for s in kernel.standing))
    if kernel.obligations:
        rungs: dict[str, int] = {}
        for obligation in kernel.obligations:
            word = obligation.rung if obligation.verdict in ("proved", "conditional") else obligation.verdict
            rungs[word] = rungs.get(word, 0) + 1
        settled = ", ".join(f"{number} {rung}" for rung, number in rungs.items())
        yield f"\nobligations: {settled}"


def _list(title: str, items: Iterator[str]) -> Iterator[str]:
    lines = [f"- {item}" for item in dict.fromkeys(items)]
    if lines:
        yield f"\n{title}:"
        yield from lines


def _launch(analysed: Analysed, launch: LaunchReport) -> str:
    line = _line(analysed, launch.site.file, launch.site.span)
    where = f"line {line}" if launch.site.file == analysed.path else f"{launch.site.file}, line {line}"
    if launch.is_unread:
        return f"{where}: unread: {launch.problem}"
    if not launch.is_read:
        return f"{where}: guarded, checked by tilecheck.host when it happens"
    if not launch.conditions:
        return f"{where}: nothing to meet"
    words = {"caller": "left to the caller"}
    judged = dict.fromkeys(f"`{c.text}` {words.get(c.status, c.status)}" for c in launch.conditions)
    return f"{where}: {'; '.join(judged)}"


def _line(analysed: Analysed, file: str, span: Span) -> int:
    return int(analysed.positions(file).position(span.start)["line"]) + 1


_OWNERSHIP = {
    "mut": "`mut`: written by the kernel",
    "shared": "`shared`: only read by the kernel",
    "value": "a value of the launch, the same in all blocks",
    "constant": "a constant of compile time",
    "unused": "not used by the kernel",
}


def _of_parameter(kernel: KernelReport, name: str, borrows: Borrows | None) -> Iterator[str]:
    report = next((p for p in kernel.params if p.name == name), None)
    if report is None:
        yield f"**`{name}`** of `{kernel.name}`: the kernel was not read this far ({kernel.reason})"
        return
    yield f"**`{name}`** of `{kernel.name}`: {_OWNERSHIP[report.ownership]}{_how_known(report)}"
    parts = () if borrows is None else borrows.get(name, ())
    if parts:
        yield "\n```text"
        yield from parts
        yield "```"


def _how_known(report: ParamReport) -> str:
    if not report.array:
        return ""
    return " (declared)" if report.declared else " (inferred)"
