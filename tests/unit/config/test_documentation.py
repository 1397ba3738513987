"""docs/configuration.md says what the keys are; what it shows is understood."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilecheck.cli.parser import HelpShown, parse_arguments
from tilecheck.cli.settings import VARIABLES
from tilecheck.config.contracts import contracts_of
from tilecheck.config.files import load
from tilecheck.config.schema import KEYS
from tilecheck.config.shown import OF_THE_RUN

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")


def test_every_key_is_shown_and_described(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(block)
    settings = load(tmp_path / "pyproject.toml")
    assert settings is not None
    assert len(contracts_of(settings).entries) == 1
    # `exclude` stands in the place of a default that is long.
    assert {said.key for said in settings.said} == set(KEYS) - {"exclude"}
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, flags=re.MULTILINE) == list(KEYS)


def test_what_counts_for_a_run_and_which_variables_count() -> None:
    (run,) = re.findall(r"For the run itself \((.*?)\)", PAGE)
    assert tuple(re.findall(r"`(.*?)`", run)) == OF_THE_RUN
    assert set(re.findall(r"TILECHECK_[A-Z_]+", PAGE)) == set(VARIABLES)


@pytest.mark.parametrize("flag", sorted(set(re.findall(r"`(--?[a-z-]+)", PAGE))))
def test_every_flag_exists(flag: str) -> None:
    with pytest.raises(HelpShown, match=rf"(?<![\w-]){flag}(?![\w-])"):
        parse_arguments(["check", "--help"])


def test_the_hooks_that_are_shown_exist() -> None:
    manifest = (ROOT / ".pre-commit-hooks.yaml").read_text()
    shown = re.findall(r"- id: ([a-z-]+)", PAGE)
    assert shown == re.findall(r"- id: ([a-z-]+)", manifest)
