"""One mistake, one finding: findings with one cause and one witness become one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilecheck.model import Diagnostic, Severity

_PARTLY_WRITTEN = "TC504"
_HOST_RULES = "TC4"


def merged(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings of one kernel, each mistake once.

    Findings of one rule at one place that the same run shows are one: the first is the one that names the array
    of the witness. An output that is partly written because of an error is no finding of its own.
    """
    groups: dict[object, list[Diagnostic]] = {}
    for number, diagnostic in enumerate(diagnostics):
        groups.setdefault(_shown(diagnostic) or number, []).append(diagnostic)
    found = tuple(_joined(group) for group in groups.values())
    errors = [d for d in found if d.severity is Severity.ERROR]
    return tuple(d for d in found if d.code != _PARTLY_WRITTEN or not any(_explains(e, d) for e in errors))


def _shown(diagnostic: Diagnostic) -> object:
    """What a witness shows, and where; None without one."""
    seen = diagnostic.witness
    if seen is None:
        return None
    key = (diagnostic.code, diagnostic.kernel, diagnostic.site, diagnostic.label)
    return (*key, seen.kind, seen.grid, seen.blocks, seen.array, seen.element)


def _joined(group: Sequence[Diagnostic]) -> Diagnostic:
    first = next((d for d in group if _names_its_array(d)), group[0])
    others = [d for d in group if d is not first]
    texts = dict.fromkeys(d.message for d in (first, *others))
    if len(texts) > 1:
        heads = [text.partition(": ") for text in texts]
        same = len({head for head, *_ in heads}) == 1 and all(tail for *_, tail in heads)
        message = f"{heads[0][0]}: {', and '.join(tail for *_, tail in heads)}" if same else "; ".join(texts)
        first = replace(first, message=message)
    return replace(
        first,
        related=tuple(dict.fromkeys(r for d in (first, *others) for r in d.related)),
        notes=tuple(dict.fromkeys(note for d in (first, *others) for note in d.notes)),
    )


def _names_its_array(diagnostic: Diagnostic) -> bool:
    array = "" if diagnostic.witness is None else diagnostic.witness.array
    return bool(array) and re.search(rf"\b{re.escape(array)}\b", diagnostic.message) is not None


def _explains(error: Diagnostic, left: Diagnostic) -> bool:
    """Whether an error is why elements are left: one of the kernel itself, or of the same launch."""
    return error.kernel == left.kernel and (not error.code.startswith(_HOST_RULES) or error.site == left.site)
