"""`config show` and `config check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilecheck.config.shown import toml_text


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "gen/deep").mkdir(parents=True)
    (tmp_path / "gen/deep/k.py").write_text("x = 1\n")
    (tmp_path / "k.py").write_text("x = 1\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tilecheck]\nfail-on = "warning"\nbudget = "500k"\nignore = ["TC501"]\nextend-exclude = ["old"]\n'
    )
    (tmp_path / "gen/pyproject.toml").write_text(
        '[tool.tilecheck]\nfail-on = "info"\nselect = ["TC2"]\n'
        '[tool.tilecheck.per-file-ignores]\n"k.py" = { rules = ["TC203"], reason = "same values" }\n'
    )
    monkeypatch.chdir(tmp_path)
    for name in ("TILECHECK_FORMAT", "TILECHECK_BUDGET", "TILECHECK_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def shown(text: str) -> dict[str, list[str]]:
    """Each key with its values, without the padding."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines()[1:]:
        key, _, value = line.partition(" = ")
        found.setdefault(key, []).append("  # ".join(part.strip() for part in value.rsplit("  # ", 1)))
    return found


def test_each_value_is_shown_with_who_said_it(project: Path, run, monkeypatch) -> None:
    monkeypatch.setenv("TILECHECK_FORMAT", "concise")
    ran = run("config", "show", "k.py", "--ignore", "TC502", "--config", "budget=1k")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "# k.py: pyproject.toml"
    found = shown(ran.out)
    assert found["fail-on"] == ['"warning"  # pyproject.toml']
    assert found["budget"] == ['"1k"  # --config']
    assert found["ignore"] == ['["TC501"]  # pyproject.toml', '["TC502"]  # --ignore']
    assert found["extend-exclude"] == ['["old"]  # pyproject.toml']
    assert found["format"] == ['"concise"  # TILECHECK_FORMAT']
    assert found["select"] == ['["TC"]  # default']
    assert found["jobs"] == ['"auto"  # default']


def test_the_closest_table_counts_and_what_is_of_the_run_is_the_runs(project: Path, run) -> None:
    found = shown(run("config", "show", "gen/deep/k.py").out)
    assert found["select"] == ['["TC2"]  # gen/pyproject.toml']
    assert found["budget"] == ['"2000k"  # default']
    assert "ignore" not in found
    assert found["per-file-ignores"] == [
        '{ "k.py" = { rules = ["TC203"], reason = "same values" } }  # gen/pyproject.toml'
    ]
    assert found["fail-on"] == ['"warning"  # pyproject.toml']
    assert found["# fail-on"] == ['"info"  # gen/pyproject.toml, which counts in runs that start below it']


def test_a_folder_has_the_settings_of_what_lies_in_it(project: Path, run) -> None:
    assert shown(run("config", "show", "gen").out)["select"] == ['["TC2"]  # gen/pyproject.toml']
    assert shown(run("config", "show").out)["budget"] == ['"500k"  # pyproject.toml']


def test_without_a_file_the_defaults_are_shown(project: Path, run) -> None:
    ran = run("config", "show", "k.py", "--isolated")
    assert ran.out.startswith("# k.py: no configuration file\n")
    assert {line.rsplit("  # ", 1)[1] for line in ran.out.splitlines()[1:]} == {"default"}


def test_what_is_excluded_is_said_to_be(project: Path, run) -> None:
    (project / "old").mkdir()
    (project / "old/k.py").write_text("x = 1\n")
    assert "`old` is excluded by pyproject.toml: `old`" in run("config", "show", "old/k.py").out
    found = json.loads(run("config", "show", "old/k.py", "--format", "json").out)
    assert found["excluded"] == "`old` is excluded by pyproject.toml: `old`"


def test_json(project: Path, run) -> None:
    found = json.loads(run("config", "show", "gen", "--format", "json").out)
    assert (found["path"], found["file"], found["excluded"]) == ("gen", "gen/pyproject.toml", None)
    assert {"key": "select", "value": ["TC2"], "origin": "gen/pyproject.toml", "counts": True} in found[
        "values"
    ]
    assert {"key": "fail-on", "value": "info", "origin": "gen/pyproject.toml", "counts": False} in found[
        "values"
    ]


def test_what_is_shown_can_be_read_again(project: Path, run) -> None:
    """Strings with quotes and line breaks, tables and lists are as TOML has them."""
    tomllib = pytest.importorskip("tomllib")
    table = {
        "levels": {"TC501": "error"},
        "per-file-ignores": {'a "b" \\ \n.py': {"rules": ["TC5"], "reason": "é"}},
    }
    text = "\n".join(f"{key} = {toml_text(value)}" for key, value in table.items())
    assert tomllib.loads(text) == table


def test_a_path_that_does_not_exist(project: Path, run) -> None:
    ran = run("config", "show", "none.py")
    assert (ran.code, ran.out) == (2, "")
    assert "none.py: no such file or directory" in ran.err


def test_check_reads_the_files_around_a_path(project: Path, run) -> None:
    ran = run("config", "check")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "pyproject.toml: understood\ngen/pyproject.toml: understood\n"
    assert run("config", "check", "gen/deep").out == "gen/pyproject.toml: understood\n"
    assert run("config", "check", "--isolated").out == "no configuration file: the defaults count\n"


def test_check_tells_all_that_is_wrong(project: Path, run) -> None:
    """Contracts too, which other commands read only where there are kernels."""
    (project / "pyproject.toml").write_text("[tool.tilecheck]\nbudgt = 1\n")
    (project / "gen/pyproject.toml").write_text(
        '[[tool.tilecheck.kernel]]\nmatch = "*"\nrequires = ["increasng(t)"]\n'
    )
    ran = run("config", "check")
    assert ran.code == 2
    assert "has no key `budgt`\n  hint: did you mean `budget`?" in ran.out
    assert "contract `increasng` is not understood" in ran.out
    assert ran.err == "tilecheck: 2 configuration files not understood\n"
    found = json.loads(run("config", "check", "--format", "json").out)
    assert found["files"] == []
    assert [error["hint"] for error in found["errors"]] == ["did you mean `budget`?", None]


def test_check_warns_of_contracts_for_no_kernel(project: Path, run) -> None:
    kernel = "import cuda.tile as ct\n\n@ct.kernel\ndef gemm_nt(x): ...\n"
    (project / "gen/deep/gemm.py").write_text(kernel)
    entry = '[[tool.tilecheck.kernel]]\nmatch = "{}"\nrequires = ["n > 1"]\n'
    matches = ("deep/*.py::gemm_*", "deep.gemm.gemm_nt", "deep/*.py::gem_*", "gen/deep/gemm.py::gemm_nt")
    (project / "gen/pyproject.toml").write_text("".join(map(entry.format, matches)))
    ran = run("config", "check", "gen")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        f'warning: gen/pyproject.toml: `match = "{match}"` speaks of no function in the files that are '
        "looked at"
        for match in matches[2:]
    ] + ["gen/pyproject.toml: understood"]
    assert len(json.loads(run("config", "check", "--format", "json").out)["warnings"]) == 2
    (project / "gen/deep/pyproject.toml").write_text("[tool.tilecheck]\nbudgt = 1\n")
    ran = run("config", "check", "gen")
    assert (ran.code, ran.out.count("budgt")) == (2, 1)
    assert "gen/pyproject.toml: understood" in ran.out


def test_check_reads_what_flags_say(project: Path, run) -> None:
    assert run("config", "check", "--isolated", "--config", "budgt=1").code == 2
    assert run("config", "check", "--config", "budgt=1").code == 2


def test_check_does_not_read_what_is_excluded(project: Path, run) -> None:
    (project / "old").mkdir()
    (project / "old/pyproject.toml").write_text("[tool.tilecheck]\nnonsense = 1\n")
    assert run("config", "check").code == 0
    assert run("config", "check", "old").code == 2
