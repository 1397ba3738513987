"""The page of every rule: complete, in step with its file, and its examples are what they say."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

import tilecheck.rules
from tilecheck.cli import main
from tilecheck.model import Severity
from tilecheck.registry import PACKAGE, LoadedRule, find_rule, load_rules, rule_files, rule_page
from tilecheck.rule import SECTIONS, page_sections
from tilecheck.testing import read_expectations
from tilecheck.testing.examples import BAD, GOOD, Example, check_example, page_examples

RULES = {loaded.rule.code: loaded for loaded in load_rules()}
EXAMPLES = [example for code, loaded in RULES.items() for example in page_examples(code, loaded.page)]
SAFE = ("proved", "conditional")
# Their findings say that something is not decided, or cannot be read.
UNDECIDED = ("TC901", "TC905", "TC906")
LANGUAGES = {"cuTile": "import cuda.tile", "Triton": "import triton"}
# Triton has no tiles, slices or lists of arrays that are checked, cuTile no decorator that tunes. The rules of
# the band TC9 that are listed look at files and comments.
ONE_LANGUAGE = {
    **dict.fromkeys(("TC302", "TC304", "TC306"), ("cuTile",)),
    "TC502": ("Triton",),
    **dict.fromkeys(("TC901", "TC902", "TC903", "TC904", "TC907", "TC908", "TC909", "TC910"), ("cuTile",)),
}
# Words of the implementation, which no author of a kernel should have to know.
INTERNALS = re.compile(
    r"\b(Expr|Access|Obligation|Holds|Disjoint|Diagnostic|Severity|libcst|networkx|z3|smt|rung|witness|frontend)\b"
)
ROOT = Path(__file__).parents[1]
WIDTH = 100
ROOMS = (
    "__future__",
    "collections.abc",
    "tilecheck.analysis",
    "tilecheck.ir",
    "tilecheck.model",
    "tilecheck.proof.obligation",
    "tilecheck.rule",
)

every_rule = pytest.mark.parametrize("loaded", [pytest.param(r, id=code) for code, r in RULES.items()])


@pytest.mark.parametrize("example", [pytest.param(e, id=e.name) for e in EXAMPLES])
def test_example(example: Example, tmp_path: Path) -> None:
    """The verdict of every kernel in an example, and every finding, are as its comments say."""
    problems = check_example(example, tmp_path)
    assert not problems, "\n".join((example.name, *problems))


@every_rule
def test_a_bad_example_has_the_finding(loaded: LoadedRule) -> None:
    bad = [e for e in page_examples(loaded.rule.code, loaded.page) if e.section == BAD]
    assert bad
    for example in bad:
        expected = read_expectations(example.text)
        assert loaded.rule.code in {f.code for f in expected.findings if f.key == "expect"}
        if loaded.rule.code in UNDECIDED:
            assert not {v.word for v in expected.verdicts}.intersection((*SAFE, "violated"))


@every_rule
def test_a_good_example_is_safe(loaded: LoadedRule) -> None:
    """Every good example is free of the finding, and at least one needs no trust."""
    good = [e for e in page_examples(loaded.rule.code, loaded.page) if e.section == GOOD]
    words = []
    for example in good:
        expected = read_expectations(example.text)
        assert loaded.rule.code not in {f.code for f in expected.findings}
        words += [v.word for v in expected.verdicts]
    assert any(word in SAFE for word in words)
    assert set(words) <= {*SAFE, "trusted"}


@every_rule
def test_both_languages_have_examples(loaded: LoadedRule) -> None:
    """A bad and a good one each, but for what a language lacks, or where the text alone is looked at."""
    examples = page_examples(loaded.rule.code, loaded.page)
    languages = set(ONE_LANGUAGE.get(loaded.rule.code, LANGUAGES))
    for section in (BAD, GOOD):
        texts = [e.text for e in examples if e.section == section]
        shown = {name for name, mark in LANGUAGES.items() if any(mark in text for text in texts)}
        assert shown >= languages, (section, languages - shown)
    assert loaded.rule.code not in ONE_LANGUAGE or len(shown) == 1, "no exception is needed"


@every_rule
def test_page(loaded: LoadedRule) -> None:
    """All sections, in their order; no internal words; lines that fit a terminal."""
    titles = [title for title in page_sections(loaded.page) if title]
    assert titles[: len(SECTIONS)] == list(SECTIONS)
    assert titles[len(SECTIONS) :] in ([], ["References"])
    assert not INTERNALS.search(loaded.page)
    in_code = False
    for line in loaded.page.splitlines():
        in_code = in_code != line.startswith("```")
        assert in_code or len(line) <= WIDTH, line


@every_rule
def test_page_begins_with_the_summary(loaded: LoadedRule) -> None:
    first = loaded.page.splitlines()[0]
    assert first.endswith(".")
    assert (first[0].lower() + first[1:-1]) == loaded.rule.summary


def source_of(code: str) -> ast.Module:
    """The syntax tree of the file of a rule."""
    file = find_rule(code)
    assert file is not None
    folder = Path(next(iter(tilecheck.rules.__path__)))
    return ast.parse((folder / f"{file.module.rpartition('.')[2]}.py").read_text("utf-8"))


def test_file_and_rule_and_page_agree() -> None:
    for file in rule_files():
        loaded = RULES[file.code]
        assert file.module == f"{PACKAGE}.{file.code.lower()}_{file.name.replace('-', '_')}"
        assert (loaded.rule.code, loaded.rule.name) == (file.code, file.name)
        assert loaded.page == rule_page(file) == ast.get_docstring(source_of(file.code))
    assert [file.code for file in rule_files()] == list(RULES)


@every_rule
def test_rules_know_neither_syntax_nor_solver(loaded: LoadedRule) -> None:
    """A rule reads the borrow graph and the kernel, and states; it parses and decides nothing."""
    tree = source_of(loaded.rule.code)
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert all(name.startswith(ROOMS) for name in imported), imported


@every_rule
def test_explain_prints_the_page(loaded: LoadedRule, capsys: pytest.CaptureFixture[str]) -> None:
    for word in (loaded.rule.code, loaded.rule.code.lower(), loaded.rule.name):
        assert main(["explain", word]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(f"# {loaded.rule.code}: {loaded.rule.name}\n")
        assert loaded.page.strip() in printed


def test_every_band_is_there() -> None:
    """The codes that other parts of the program state findings under all have a rule."""
    assert {"TC105", "TC402", "TC403", "TC901", "TC902", "TC903", "TC904", "TC905", "TC906"} <= set(RULES)
    assert all(loaded.rule.level in Severity for loaded in RULES.values())


def test_codes_in_pages_exist() -> None:
    """A page speaks of no rule that is not there."""
    for code, loaded in RULES.items():
        assert set(re.findall(r"\bTC[0-9]{3}\b", loaded.page)) <= set(RULES), code


def test_the_document_of_the_pages_is_fresh() -> None:
    """`python docs/build_rules.py` was run after the last change of a page."""
    script = runpy.run_path(str(ROOT / "docs" / "build_rules.py"))
    text = (ROOT / "docs" / "rule-pages.md").read_text(encoding="utf-8")
    assert script["document"]() == text, "run `python docs/build_rules.py`"
