"""Rules are found by their files, agree with them, and have a whole page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilecheck import hygiene, registry
from tilecheck.errors import SourceError
from tilecheck.model import Span
from tilecheck.registry import RuleError, RuleFile, find_rule, load_rules, rule_files, rule_level, rule_page
from tilecheck.report.explain import rules_table
from tilecheck.rule import SECTIONS, page_sections

ROOT = Path(__file__).parents[2]


def test_every_file_is_a_rule() -> None:
    files = sorted(path.stem for path in (ROOT / "rules").glob("tc*.py"))
    assert [loaded.rule.code for loaded in load_rules()] == sorted(name[:5].upper() for name in files)


def test_the_level_in_the_text_of_a_rule_is_its_level() -> None:
    levels = [(loaded.rule.code, loaded.rule.level) for loaded in load_rules()]
    assert [(file.code, rule_level(file)) for file in rule_files()] == levels


@pytest.mark.parametrize("file", rule_files(), ids=lambda file: file.code)
def test_every_page_has_its_sections(file: RuleFile) -> None:
    sections = page_sections(rule_page(file))
    assert all(sections.get(title) for title in SECTIONS)


def test_rules_are_found_by_code_and_by_name() -> None:
    file = rule_files()[0]
    assert find_rule(file.code) == find_rule(file.code.lower()) == find_rule(file.name) == file
    assert find_rule("TC000") is None


def test_findings_about_files_are_rules() -> None:
    span, error = Span(0, 0), SourceError("why")
    findings = (
        hygiene.unreadable_source("a.py", None, error),
        hygiene.unused_suppression("a.py", span, ("TC201",)),
        hygiene.missing_reason("a.py", span, ("TC201",)),
        hygiene.malformed_comment("a.py", span, "why"),
    )
    rules = {loaded.rule.code: loaded.rule for loaded in load_rules()}
    for finding in findings:
        rule = rules[finding.code]
        assert (finding.name, finding.severity) == (rule.name, rule.level)


def test_the_table_of_rules_is_fresh() -> None:
    assert (ROOT / "docs/rules.md").read_text() == rules_table(load_rules())


PAGE = '"""Page.\n\n' + "".join(f"## {title}\ntext\n" for title in SECTIONS) + '"""\n'
RULE = "from tilecheck.model import Severity\nfrom tilecheck.rule import Rule\n"
RULE += 'RULE = Rule({code!r}, {name!r}, Severity.ERROR, "a summary", "0.1.0")\n'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package of rules made for the test, in the place of ours."""
    registry.rule_files.cache_clear()
    registry.load_rules.cache_clear()
    name = f"rules_{abs(hash(tmp_path))}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "PACKAGE", name)
    yield SimpleNamespace(folder=folder)
    registry.rule_files.cache_clear()
    registry.load_rules.cache_clear()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tc900_a_b": PAGE}, "defines no RULE"),
        ({"tc900_a_b": PAGE + RULE.format(code="TC900", name="a-c")}, "file and rule must agree"),
        ({"tc900_a": PAGE + RULE.format(code="TC901", name="a")}, "file and rule must agree"),
        ({"tc900_a": RULE.format(code="TC900", name="a")}, "has no page"),
        ({"tc900_a": '"""Page."""\n' + RULE.format(code="TC900", name="a")}, "lacks: What it does"),
        ({"tc900_a": PAGE, "tc900_b": PAGE}, "TC900 is claimed by"),
        ({"tc900_a": PAGE, "tc901_a": PAGE}, "the name a is claimed by"),
    ],
)
def test_what_is_refused(package, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (package.folder / f"{name}.py").write_text(text)
    with pytest.raises(RuleError, match=message):
        load_rules()


def test_a_good_rule_is_loaded_and_helpers_are_not(package) -> None:
    (package.folder / "tc900_a_b.py").write_text(PAGE + RULE.format(code="TC900", name="a-b"))
    (package.folder / "_retired.py").write_text("raise SystemExit\n")
    assert [loaded.rule.name for loaded in load_rules()] == ["a-b"]


def test_rules_that_are_not_installed_are_said_to_be(tmp_path: Path) -> None:
    """`python -m tilecheck` in the root of a checkout sees a `tilecheck` without rules in it."""
    package = tmp_path / "tilecheck"
    package.mkdir()
    for part in (ROOT / "tilecheck").iterdir():
        if part.name != "rules":  # a checkout may hold a copy
            (package / part.name).symlink_to(part)
    command = [sys.executable, "-S", "-m", "tilecheck", "rules"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert "the rules are not installed" in ran.stderr
