"""Finds the rules: every module of `tilecheck.rules` whose name is a code and a kebab name.

Adding a rule is adding a file. A rule's page can be read without importing it, so `explain` stays cheap.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
from functools import cache

from tilecheck.dataclass import dataclass
from tilecheck.errors import TilecheckError, UsageError
from tilecheck.model import Severity
from tilecheck.rule import SECTIONS, Rule, page_sections

PACKAGE = "tilecheck.rules"
_MODULE = re.compile(r"tc([0-9]{3})_([a-z0-9]+(?:_[a-z0-9]+)*)")


class RuleError(TilecheckError):
    """A rule's file is not as a rule's file must be."""


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A rule as its file name gives it, before anything is imported."""

    code: str
    name: str
    module: str


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule and its page."""

    rule: Rule
    page: str


@cache
def rule_files() -> tuple[RuleFile, ...]:
    """Every rule that is installed, by code.

    Raises:
        RuleError: two files claim one code or one name.
        UsageError: the rules are not installed.
    """
    try:
        package = importlib.import_module(PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        # A checkout that is run from its root: its `tilecheck` hides the installed one, and has no rules in it.
        hint = "install it with `pip install -e .`, or run `tilecheck` instead of `python -m tilecheck`"
        raise UsageError("the rules are not installed beside this copy of tilecheck", hint) from None
    found: dict[str, RuleFile] = {}
    names: dict[str, str] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        match = _MODULE.fullmatch(info.name)
        if match is None:
            continue  # shared helpers and retired codes
        file = RuleFile(f"TC{match[1]}", match[2].replace("_", "-"), f"{PACKAGE}.{info.name}")
        if file.code in found:
            raise RuleError(f"{file.code} is claimed by {found[file.code].module} and by {file.module}")
        if file.name in names:
            raise RuleError(f"the name {file.name} is claimed by {names[file.name]} and by {file.code}")
        found[file.code] = file
        names[file.name] = file.code
    return tuple(found.values())


def find_rule(word: str) -> RuleFile | None:
    """The rule that a user means by a code (any case) or a name."""
    for file in rule_files():
        if word.upper() == file.code or word.lower() == file.name:
            return file
    return None


def rule_page(file: RuleFile) -> str:
    """The docstring of a rule's module, read from its text."""
    page = ast.get_docstring(ast.parse(_text(file)))
    if not page:
        raise RuleError(f"{file.module} has no page: its docstring is empty")
    return page


def _text(file: RuleFile) -> str:
    spec = importlib.util.find_spec(file.module)
    source: str | None = getattr(spec.loader, "get_source", lambda _: None)(file.module) if spec else None
    if source is None:
        raise RuleError(f"the text of {file.module} is not installed")
    return source


def rule_level(file: RuleFile) -> Severity:
    """The level of a rule's findings, read from the text of its module."""
    found = [
        keyword.value.attr
        for node in ast.walk(ast.parse(_text(file)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Rule"
        for keyword in node.keywords
        if keyword.arg == "level" and isinstance(keyword.value, ast.Attribute)
    ]
    if len(found) != 1:
        raise RuleError(f"{file.module} does not state one level")
    return Severity[found[0]]


@cache
def load_rules() -> tuple[LoadedRule, ...]:
    """Import every rule and check that it agrees with its file.

    Raises:
        RuleError: a rule has no `RULE`, its code or name is not its file's, or its page lacks a section.
    """
    return tuple(load_rule(file) for file in rule_files())


def load_rule(file: RuleFile) -> LoadedRule:
    """Import one rule and check that it agrees with its file.

    Raises:
        RuleError: as `load_rules`.
    """
    module = importlib.import_module(file.module)
    rule = getattr(module, "RULE", None)
    if not isinstance(rule, Rule):
        raise RuleError(f"{file.module} defines no RULE")
    if (rule.code, rule.name) != (file.code, file.name):
        raise RuleError(f"{file.module} defines {rule.code} {rule.name}: file and rule must agree")
    page = inspect.cleandoc(module.__doc__) if module.__doc__ else rule_page(file)
    sections = page_sections(page)
    missing = [title for title in SECTIONS if not sections.get(title)]
    if missing:
        raise RuleError(f"the page of {file.code} lacks: {', '.join(missing)}")
    return LoadedRule(rule, page)
