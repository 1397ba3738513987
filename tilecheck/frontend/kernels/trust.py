"""What a source says in its own favour, taken out of it for callers that do not trust it.

Whoever writes a kernel must not decide what is assumed of it: a `requires` hides a race, an `unsafe` block
turns an open obligation into `trusted`, and an `ignore` takes a finding out of sight. Declared ownership and
`fills` stay: each asks for one more check.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.pragmas import Pragma, PragmaKind
from tilecheck.model import Span

# Kinds that are not listed are taken out, so that a new kind of contract is no way in.
_CHECKED = frozenset({PragmaKind.MUT, PragmaKind.SHARED, PragmaKind.FILLS, PragmaKind.MALFORMED})


def withdraw_trust(table: ModuleTable) -> tuple[Span, ...]:
    """Take contracts, unsafe blocks and suppressions out of a module; where each stands, in order."""
    comments = [pragma.span for pragma in table.pragmas if not _is_check(pragma)]
    blocks = list(_unsafe_blocks(table))
    table.pragmas = tuple(filter(_is_check, table.pragmas))
    table.project.trusts_unsafe = False
    return tuple(sorted((*comments, *blocks), key=lambda span: span.start))


def _is_check(pragma: Pragma) -> bool:
    return pragma.kind in _CHECKED


def _unsafe_blocks(table: ModuleTable) -> Iterator[Span]:
    """The `unsafe(...)` of `with unsafe(...)`, as far as names tell."""
    for node in table.nodes(cst.WithItem):
        match node:
            case cst.WithItem(item=cst.Call(func=func) as call):
                if table.full_name(dotted(func)).rpartition(".")[2] == "unsafe":
                    yield table.span(call)
