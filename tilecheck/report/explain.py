"""What `tilecheck explain` and `tilecheck rules` print."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tilecheck.registry import LoadedRule, RuleFile
from tilecheck.report.style import Line, line


def rule_page_text(file: RuleFile, page: str) -> str:
    """A rule's page with its code and name above it."""
    return f"# {file.code}: {file.name}\n\n{page.strip()}\n"


def render_rules(rules: Sequence[LoadedRule]) -> list[Line]:
    """One line for each rule: code, level, name, what it says."""
    width = max((len(loaded.rule.name) for loaded in rules), default=0)
    return [
        line(
            (loaded.rule.code, "strong"),
            f"  {loaded.rule.level.word:<7}  {loaded.rule.name:<{width}}  {loaded.rule.summary}",
        )
        for loaded in rules
    ]


def rules_table(rules: Sequence[LoadedRule]) -> str:
    """The rules as a Markdown page; `docs/rules.md` is this text."""
    rows = [
        f"| {loaded.rule.code} | `{loaded.rule.name}` | {loaded.rule.level.word} | {loaded.rule.summary} |"
        for loaded in rules
    ]
    return "\n".join([_TABLE_HEAD, *rows, ""])


_TABLE_HEAD = """# Rules

`tilecheck explain CODE` prints the page of a rule: what it does, how it is proved, examples, and when it says
unknown. This table is made by `make docs`.

| code | name | level | says |
|---|---|---|---|"""


def rules_object(rules: Sequence[LoadedRule]) -> str:
    """The rules as one JSON object with a final newline."""
    listed = [
        {
            "code": loaded.rule.code,
            "name": loaded.rule.name,
            "level": loaded.rule.level.word,
            "summary": loaded.rule.summary,
            "since": loaded.rule.since,
        }
        for loaded in rules
    ]
    return json.dumps({"schema_version": 1, "rules": listed}, indent=2) + "\n"
