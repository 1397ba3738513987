"""The rules that a SARIF log refers to, each with its page: a rule's own, or that of a verdict."""

from __future__ import annotations

from typing import Any

from tilecheck.model import Severity
from tilecheck.registry import find_rule, load_rule
from tilecheck.report.topics import topic_page
from tilecheck.rule import page_sections

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def describe_rule(code: str) -> dict[str, Any]:
    """The reporting descriptor of a rule, or of a word that `tilecheck explain` knows."""
    file = find_rule(code)
    if file is None:
        page = topic_page(code) or code
        return {
            "id": code,
            "name": code.replace("/", "-"),
            "shortDescription": {"text": f"the verdict `{code}`"},
            "fullDescription": {"text": _first("\n".join(page.split("\n")[1:]).strip()) or code},
            "help": {"text": page, "markdown": page},
            "defaultConfiguration": {"level": "none"},
        }
    loaded = load_rule(file)
    level = LEVELS[loaded.rule.level]
    return {
        "id": code,
        "name": loaded.rule.name,
        "shortDescription": {"text": loaded.rule.summary},
        "fullDescription": {"text": _first(page_sections(loaded.page)["What it does"])},
        "help": {"text": loaded.page, "markdown": loaded.page},
        "defaultConfiguration": {"level": level},
        "properties": {
            # A violation is reported only after its counterexample was replayed.
            "precision": "very-high",
            "problem.severity": "recommendation" if level == "note" else level,
            "tags": ["correctness", "gpu"],
        },
    }


def _first(page: str) -> str:
    """The first paragraph, in one line."""
    return " ".join(page.partition("\n\n")[0].split())
