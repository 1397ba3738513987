"""`[[tool.tilecheck.kernel]]` as it stands: its form is checked here, what it demands by `contracts`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilecheck.config.settings import KernelEntry
from tilecheck.config.words import check_keys
from tilecheck.errors import UsageError
from tilecheck.model import Site, Span

_TABLE = "[[tool.tilecheck.kernel]]"
_HEADER = re.compile(rb"^[ \t]*\[\[\s*tool\s*\.\s*tilecheck\s*\.\s*kernel\s*\]\][^\n]*", re.MULTILINE)


def read_entries(entries: object, where: str, file: Path | None) -> tuple[KernelEntry, ...]:
    """The entries of a table; `file` is where they stand, None for a command line.

    Raises:
        UsageError: an entry is not as one must be.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{where}: `kernel` is no array of tables", f"write `{_TABLE}`")
    shown = where.partition(": `[")[0] if file is None else str(file)
    return tuple(
        _entry(entry, f"{shown}: `{_TABLE}` number {number}", site)
        for number, (entry, site) in enumerate(zip(entries, _sites(len(entries), shown, file), strict=True), 1)
    )


def _sites(number: int, shown: str, file: Path | None) -> list[Site]:
    """Where each entry begins; the start of the file if they are written in another of TOML's ways."""
    data = b"" if file is None else file.read_bytes()
    places = [Span(found.start(), found.end()) for found in _HEADER.finditer(data)]
    name = shown if file is None else file.as_posix()
    return [Site(name, place) for place in (places if len(places) == number else [Span(0, 0)] * number)]


def _entry(table: dict[str, Any], where: str, site: Site) -> KernelEntry:
    match = table.get("match")
    where += f' (match = "{match}")' if isinstance(match, str) else ""
    check_keys(table, ("match", "requires", "constants", "reason"), where)
    requires, constants = table.get("requires", []), table.get("constants", {})
    for what, right in (
        ("`match` must be a text", isinstance(match, str) and bool(match)),
        ("`requires` must be a list of texts", _is_list_of(requires, lambda text: isinstance(text, str))),
        ("`constants` must be a table", isinstance(constants, dict)),
        ("`reason` must be a text", isinstance(table.get("reason", ""), str)),
        ("neither `requires` nor `constants` is given", bool(requires or constants)),
    ):
        if not right:
            raise UsageError(f"{where}: {what}")
    for name, value in constants.items():
        if not name.isidentifier() or not isinstance(value, int):
            raise UsageError(f"{where}: `{name} = {value!r}` is no integer or truth value of a parameter")
    reason = table.get("reason") or None
    return KernelEntry(str(match), tuple(requires), tuple(constants.items()), reason, where, site)


def _is_list_of(value: object, is_right: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and all(map(is_right, value))
