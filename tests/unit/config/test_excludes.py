"""Which files are looked at: patterns, nested configurations, and paths that are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.config.files import Configs
from tilecheck.errors import UsageError
from tilecheck.options import ConfigChoice
from tilecheck.verify.discover import Discovery, discover

KERNEL = "import cuda.tile as ct\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("k.py", "gen/k.py", "gen/wip/k.py", "gen/wip/deep/k.py", "lib/gen/k.py", "lib/build/k.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(KERNEL)
    (tmp_path / "lib/plain.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.tilecheck]\n{text}\n")


def searched(*paths: str, force: bool = False, **choice: object) -> Discovery:
    return discover(paths, Configs(ConfigChoice(force_exclude=force, **choice)))  # type: ignore[arg-type]


def found(*paths: str, force: bool = False, **choice: object) -> list[str]:
    return sorted(candidate.path for candidate in searched(*paths, force=force, **choice).candidates)


ALL = ["gen/k.py", "gen/wip/deep/k.py", "gen/wip/k.py", "k.py", "lib/gen/k.py"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", ALL),
        ('extend-exclude = ["wip"]', ["gen/k.py", "k.py", "lib/gen/k.py"]),
        ('extend-exclude = ["gen/wip/**"]', ["gen/k.py", "k.py", "lib/gen/k.py"]),
        ('extend-exclude = ["gen/*/deep"]', ["gen/k.py", "gen/wip/k.py", "k.py", "lib/gen/k.py"]),
        ('extend-exclude = ["k.py"]', []),
        ('extend-exclude = ["gen"]', ["k.py"]),
        ('exclude = ["gen"]', ["k.py", "lib/build/k.py"]),  # in place of the defaults
        ('include = ["gen/**/*.py"]', ["gen/k.py", "gen/wip/deep/k.py", "gen/wip/k.py"]),
        ('include = ["gen/*.py"]\nexclude = ["wip"]', ["gen/k.py"]),
    ],
)
def test_what_is_searched(tree: Path, text: str, paths: list[str]) -> None:
    config(tree, text)
    assert found(".") == paths
    assert found(str(tree)) == paths


def test_patterns_start_at_their_file_wherever_a_run_starts(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(tree, 'extend-exclude = ["gen/wip"]')
    monkeypatch.chdir(tree / "gen")
    assert found(".") == ["k.py"]
    assert found("..") == ["../gen/k.py", "../k.py", "../lib/gen/k.py"]
    assert found("..", values=(("extend-exclude", ["wip", "k.py"], "--exclude"),)) == []


def test_a_flag_leaves_out_more(tree: Path) -> None:
    config(tree, 'extend-exclude = ["wip"]')
    assert found(".", values=(("extend-exclude", ["lib/gen"], "--exclude"),)) == ["gen/k.py", "k.py"]


def test_the_closest_table_counts_and_no_other(tree: Path) -> None:
    config(tree, 'extend-exclude = ["wip"]')
    config(tree / "gen", 'extend-exclude = ["deep"]')
    assert found(".") == ["gen/k.py", "gen/wip/k.py", "k.py", "lib/gen/k.py"]


def test_a_configuration_in_an_excluded_folder_is_not_read(tree: Path) -> None:
    config(tree, 'extend-exclude = ["gen/wip"]')
    config(tree / "gen/wip", "nonsense = 1")
    assert found(".") == ["gen/k.py", "k.py", "lib/gen/k.py"]
    assert found("k.py", "gen/wip/k.py", force=True) == ["k.py"]
    with pytest.raises(UsageError, match="nonsense"):
        discover(["gen/wip"])


def test_what_is_named_is_looked_at(tree: Path) -> None:
    config(tree, 'extend-exclude = ["wip", "k.py"]\ninclude = ["none/*.py"]')
    assert found("gen/wip/k.py") == ["gen/wip/k.py"]
    config(tree, 'extend-exclude = ["gen/**"]')
    assert found("gen/wip") == ["gen/wip/deep/k.py", "gen/wip/k.py"]
    config(tree, 'extend-exclude = ["wip"]')
    assert found("gen/wip") == ["gen/wip/deep/k.py", "gen/wip/k.py"]
    config(tree, 'extend-exclude = ["wip", "deep"]')
    assert found("gen/wip") == ["gen/wip/k.py"]


def test_unless_the_run_forces_excludes(tree: Path) -> None:
    config(tree, 'extend-exclude = ["gen/wip"]')
    assert found("gen/wip/deep/k.py", "gen/wip", "k.py", "lib/build/k.py", force=True) == ["k.py"]
    assert found(str(tree / "gen/wip/k.py"), str(tree / "k.py"), force=True) == ["k.py"]
    (tree / "pyproject.toml").unlink()
    assert found("lib/build/k.py", "k.py", force=True) == ["k.py"]


def test_folders_above_the_project_are_nobodys_to_exclude(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "lib" / "build")
    assert found("k.py", force=True) == ["k.py"]
    config(tree / "lib" / "build", "")
    assert found("k.py", force=True) == ["k.py"]
    assert found(".") == ["k.py"]
    ci = tree / "ci.toml"
    ci.write_text("[tool.tilecheck]\n")
    assert found("k.py", force=True, file="../../ci.toml") == []  # its folder is above `build`


def test_what_is_skipped_is_told_with_the_reason(tree: Path) -> None:
    config(tree, 'extend-exclude = ["gen/wip"]\ninclude = ["gen/**", "lib/plain.py"]')
    (tree / "env").mkdir()
    (tree / "env/pyvenv.cfg").write_text("")
    assert searched(".").skipped == (
        ("env", "a virtual environment"),
        ("k.py", "no pattern of `include` matches it"),
        ("gen/wip", "`gen/wip` is excluded by pyproject.toml: `gen/wip`"),
        ("lib/build", "`lib/build` is excluded by default: `build`"),
        ("lib/gen/k.py", "no pattern of `include` matches it"),
        ("lib/plain.py", "nothing in it looks like a kernel, or like a host function of streams or graphs"),
    )
    assert searched("gen/wip/k.py", force=True).skipped == (
        ("gen/wip/k.py", "`gen/wip` is excluded by pyproject.toml: `gen/wip`"),
    )


def test_links_count_by_their_names(tree: Path) -> None:
    (tree / "linked").symlink_to("gen/wip", target_is_directory=True)
    config(tree, 'extend-exclude = ["gen/wip"]')
    assert found("linked", force=True) == ["linked/deep/k.py", "linked/k.py"]
