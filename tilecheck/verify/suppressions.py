"""Applies `# tilecheck: ignore[...]` comments to findings.

A suppressed finding stays in the report, marked; it leaves the exit code and never changes a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tilecheck import hygiene
from tilecheck.errors import did_you_mean
from tilecheck.frontend.text.pragmas import Pragma, PragmaKind
from tilecheck.model import Diagnostic, Suppression
from tilecheck.registry import find_rule, rule_files


def apply_suppressions(
    diagnostics: Iterable[Diagnostic],
    pragmas: Mapping[str, Sequence[Pragma]],
    *,
    partial: frozenset[str] = frozenset(),
) -> tuple[Diagnostic, ...]:
    """Mark suppressed findings and add the findings about the comments themselves.

    Args:
        diagnostics: all findings of the run.
        pragmas: for each file, its comments.
        partial: files in which not every kernel was decided; an unused suppression is not reported there,
            because the finding it waits for may only have been out of reach.
    """
    active = [
        (file, pragma)
        for file in sorted(pragmas)
        for pragma in pragmas[file]
        if pragma.kind is PragmaKind.IGNORE and pragma.reason
    ]
    used: set[tuple[str, int, str]] = set()
    result: list[Diagnostic] = []
    for diagnostic in diagnostics:
        matches = [
            (file, pragma, rule)
            for file, pragma in active
            for rule in pragma.arguments
            if _matches(diagnostic, file, pragma, rule)
        ]
        used.update((file, pragma.span.start, rule) for file, pragma, rule in matches)
        why = Suppression("inSource", matches[0][1].reason or "") if matches else diagnostic.suppression
        result.append(replace(diagnostic, suppression=why))
    for file in sorted(pragmas):
        result.extend(_about_comments(file, pragmas[file]))
    for file, pragma in active:
        result.extend(_unknown(file, pragma))
        unused = tuple(
            rule
            for rule in pragma.arguments
            if (file, pragma.span.start, rule) not in used and find_rule(rule) is not None
        )
        if unused and file not in partial:
            result.append(hygiene.unused_suppression(file, pragma.span, unused))
    return tuple(result)


def _matches(diagnostic: Diagnostic, file: str, pragma: Pragma, rule: str) -> bool:
    """Whether the primary place of a finding lies in the statement that the comment speaks of."""
    return (
        diagnostic.site.file == file
        and rule.lower() in (diagnostic.code.lower(), diagnostic.name)
        and diagnostic.code not in hygiene.NEVER_SUPPRESSED
        and pragma.target.start <= diagnostic.site.span.start < max(pragma.target.end, pragma.target.start + 1)
    )


def _unknown(file: str, pragma: Pragma) -> Iterator[Diagnostic]:
    for rule in pragma.arguments:
        if find_rule(rule) is None:
            names = [known.name for known in rule_files()]
            hint = did_you_mean(rule, names, "`tilecheck rules` lists the rules")
            problem = f"no rule has the code or name `{rule}`; {hint}"
            yield hygiene.malformed_comment(file, pragma.span, problem)


def _about_comments(file: str, pragmas: Sequence[Pragma]) -> Iterator[Diagnostic]:
    for pragma in pragmas:
        if pragma.kind is PragmaKind.MALFORMED:
            yield hygiene.malformed_comment(file, pragma.span, pragma.problem or "")
        elif pragma.kind is PragmaKind.IGNORE and not pragma.reason:
            yield hygiene.missing_reason(file, pragma.span, pragma.arguments)
