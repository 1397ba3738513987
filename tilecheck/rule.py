"""What a rule is: a docstring page, metadata, and a `check` that yields obligations or findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tilecheck.dataclass import dataclass
from tilecheck.model import Severity

SECTIONS = (
    "What it does",
    "Why is this bad?",
    "How it is proved",
    "Example",
    "Use instead",
    "When it says unknown",
)
_CODE = re.compile(r"^TC[0-9]{3}$")
_NAME = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")


@dataclass(frozen=True, slots=True)
class Rule:
    """Metadata of one rule; its page is the docstring of the module that defines it.

    `check` takes a `Facts` (what analysis found of one kernel) and yields `Obligation` or `Diagnostic`
    values; it is None for rules whose findings come from the pipeline itself (TC9).
    """

    code: str
    name: str
    level: Severity
    summary: str
    since: str
    check: Callable[..., Iterator[object]] | None = None

    def __post_init__(self) -> None:
        if not _CODE.match(self.code):
            raise ValueError(f"rule code {self.code!r} is not TC and three digits")
        if not _NAME.match(self.name):
            raise ValueError(f"rule name {self.name!r} is not kebab-case")
        if not self.summary or self.summary.endswith("."):
            raise ValueError(f"{self.code}: the summary is one clause without a full stop")


def page_sections(page: str) -> dict[str, str]:
    """Split a rule's docstring into its `## ` sections; the text before the first is under ''."""
    sections: dict[str, str] = {}
    title = ""
    lines: list[str] = []
    for line in page.splitlines():
        if line.startswith("## "):
            sections[title] = "\n".join(lines).strip()
            title, lines = line[3:].strip(), []
        else:
            lines.append(line)
    sections[title] = "\n".join(lines).strip()
    return sections
