"""The formats of a report, in one table; an emitter is a module of this package with a `render`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tilecheck.dataclass import dataclass
from tilecheck.report.style import Line, plain

if TYPE_CHECKING:
    from tilecheck.report.run import Run


@dataclass(frozen=True, slots=True)
class Format:
    """One format. `render` of its module gives lines where it is for people, and the whole text otherwise."""

    name: str
    module: str
    for_people: bool = False


FORMATS = {
    entry.name: entry
    for entry in (
        Format("full", "full", for_people=True),
        Format("concise", "concise", for_people=True),
        Format("grouped", "grouped", for_people=True),
        Format("json", "json"),
        Format("json-lines", "json_lines"),
        Format("sarif", "sarif"),
        Format("github", "github"),
        Format("gitlab", "gitlab"),
        Format("junit", "junit"),
    )
}


def lines_of(name: str, run: Run) -> Iterator[Line]:
    """The lines of a format that is for people."""
    found: Iterator[Line] = _emitter(name).render(run)
    return found


def text_of(name: str, run: Run) -> str:
    """The whole text of a format, with a final newline."""
    if FORMATS[name].for_people:
        return plain(lines_of(name, run))
    text: str = _emitter(name).render(run)
    return text


def _emitter(name: str) -> Any:
    # Loaded on demand: what one format needs (XML, the pages of rules) no other run pays for.
    return importlib.import_module(f"tilecheck.report.emitters.{FORMATS[name].module}")
