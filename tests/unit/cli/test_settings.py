"""What flags and variables say of the configuration, and sources from standard input."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from tilecheck.cli.engine import Engine
from tilecheck.model import Report, Severity
from tilecheck.options import FORMATS, ConfigChoice, Options
from tilecheck.report import formats

RACY = """
import cuda.tile as ct

@ct.kernel
def racy(out, T: ct.Constant[int]):
    b = ct.bid(0)
    ct.store(out, index=(b // 2,), tile=ct.zeros((T,), dtype=ct.float32))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.py").write_text(RACY)
    monkeypatch.chdir(tmp_path)
    for name in ("TILECHECK_FORMAT", "TILECHECK_BUDGET", "TILECHECK_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def asked(run, prepared):
    """The options with which the engine is asked."""

    def options(*arguments: str) -> Options:
        engine = prepared(Report((), (), 0))
        ran = run("check", "k.py", *arguments, engine=engine)
        assert engine.asked, ran.err
        return engine.asked[0][1]

    return options


def refusal(run, *arguments: str) -> str:
    ran = run("check", "k.py", *arguments)
    assert ran.code == 2
    assert not ran.out
    return ran.err


def test_formats_are_those_that_can_be_printed() -> None:
    assert tuple(formats.FORMATS) == FORMATS


def test_flags_become_values_that_say_where_they_are_from(project: Path, asked, monkeypatch) -> None:
    monkeypatch.setenv("TILECHECK_BUDGET", "5k")
    options = asked(
        "--select", "TC2,TC3", "--select", "TC5", "--ignore", "TC501", "--exclude", "a,b", "--budget", "2M",
        "--config", "jobs=3", "--force-exclude", "--fail-on", "warning",
    )  # fmt: skip
    assert options.config == ConfigChoice(
        values=(
            ("budget", "5k", "TILECHECK_BUDGET"),
            ("jobs", 3, "--config"),
            ("select", ["TC2", "TC3", "TC5"], "--select"),
            ("ignore", ["TC501"], "--ignore"),
            ("extend-exclude", ["a", "b"], "--exclude"),
            ("budget", "2M", "--budget"),
            ("fail-on", "warning", "--fail-on"),
        ),
        force_exclude=True,
    )
    assert (options.jobs, options.fail_on) == (3, Severity.WARNING)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('fail-on="info"', "info"),
        ("fail-on=info", "info"),  # a shell takes quotes away
        ("budget=500k", "500k"),
        ("budget=500", 500),
        ('ignore=["TC5"]', ["TC5"]),
        ('levels.TC501="error"', {"TC501": "error"}),
    ],
)
def test_a_key_is_set_on_the_command_line(project: Path, asked, text: str, value: object) -> None:
    assert [said[1:] for said in asked("--config", text).config.values] == [(value, "--config")]


def test_the_run_has_the_settings_of_the_working_directory(project: Path, asked, monkeypatch) -> None:
    (project / "pyproject.toml").write_text('[tool.tilecheck]\nfail-on = "warning"\njobs = 7\n')
    assert (asked().fail_on, asked().jobs) == (Severity.WARNING, 7)
    assert (asked("--fail-on", "info", "-j", "2").fail_on, asked("-j", "2").jobs) == (Severity.INFO, 2)
    assert asked("--isolated").fail_on is Severity.ERROR
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    assert asked().jobs == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "ignor=[]"], "--config has no key `ignor`\n  hint: did you mean `ignore`?"),
        (["--config", "budget=[1"], "--config budget=[1 is not understood"),
        (["--config", "none.toml"], "cannot read"),
        (["--config", "a.toml", "--config", "b.toml"], "--config names 2 files"),
        (["--config", "a.toml", "--isolated"], "--isolated reads no configuration file"),
        (["--budget", "lots"], "--budget: `budget` must be a number of steps such as 2000k"),
        (["--select", "TC7"], "--select: `select`: no rule has the code or name `TC7`"),
        (["--ignore", ","], "it names nothing"),
        (["--ignore", "TC904"], "TC904 cannot be ignored"),
        (["--stdin-filename", "k.py"], "give `-` as the path"),
    ],
)
def test_what_is_not_understood_ends_with_2(project: Path, run, arguments: list[str], message: str) -> None:
    assert message in refusal(run, *arguments)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TILECHECK_FORMAT", "xml", "TILECHECK_FORMAT: `format` must be one of full, concise"),
        ("TILECHECK_BUDGET", "x", "TILECHECK_BUDGET: `budget` must be a number of steps"),
    ],
)
def test_variables_that_are_not_understood_end_with_2(
    project: Path, run, monkeypatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    assert message in refusal(run)


def test_other_variables_change_nothing(project: Path, asked, monkeypatch) -> None:
    for key in ("SELECT", "IGNORE", "EXCLUDE", "JOBS", "FAIL_ON"):
        monkeypatch.setenv(f"TILECHECK_{key}", "TC2")
    assert asked().config == ConfigChoice()


# ---- the real engine ---------------------------------------------------------------------------------------


def test_a_format_is_taken_from_a_flag_a_variable_and_a_file_in_this_order(
    project: Path, run, monkeypatch
) -> None:
    def first_line(*arguments: str) -> str:
        return run("check", "k.py", *arguments, engine=Engine()).out.splitlines()[0]

    (project / "pyproject.toml").write_text('[tool.tilecheck]\nformat = "concise"\n')
    assert first_line().startswith("k.py:7:5: error[TC201]")
    monkeypatch.setenv("TILECHECK_FORMAT", "json")
    assert first_line() == "{"
    assert first_line("--format", "full").startswith("error[TC201]: ")


def test_results_are_kept_where_a_flag_a_variable_or_a_file_says(project: Path, run, monkeypatch) -> None:
    def kept(*arguments: str) -> set[str]:
        before = set(project.rglob("CACHEDIR.TAG"))
        assert run("check", "k.py", *arguments, engine=Engine()).code == 1
        return {tag.parent.relative_to(project).as_posix() for tag in project.rglob("CACHEDIR.TAG")} - {
            tag.parent.relative_to(project).as_posix() for tag in before
        }

    (project / "sub").mkdir()
    (project / "pyproject.toml").write_text('[tool.tilecheck]\ncache-dir = "sub/by-file"\n')
    assert kept("--no-cache") == set()
    assert kept() == {"sub/by-file"}
    assert run("cache", "show").out.startswith(f"{project}/sub/by-file: ")
    monkeypatch.setenv("TILECHECK_CACHE_DIR", "by-variable")
    assert kept() == {"by-variable"}
    assert run("cache", "show").out.startswith(f"{project}/by-variable: ")
    assert kept("--cache-dir", "by-flag") == {"by-flag"}
    monkeypatch.delenv("TILECHECK_CACHE_DIR")
    monkeypatch.chdir(project / "sub")
    assert run("cache", "clean").out.startswith(f"{project}/sub/by-file: ")


def test_an_ignored_race_is_counted_and_listed_by_audit(project: Path, run) -> None:
    ran = run("verify", "k.py", "--ignore", "TC201", engine=Engine())
    assert ran.code == 0
    assert "error[TC201]" not in ran.out
    assert "1 violated" in ran.out
    assert "1 suppressed" in ran.out
    ran = run("audit", "k.py", "--ignore", "TC201", engine=Engine())
    assert "suppressed TC201" in ran.out
    assert "-- `ignore` of --ignore" in ran.out


def test_verbose_lists_what_was_skipped(project: Path, run) -> None:
    (project / "plain.py").write_text("x = 1\n")
    (project / "helpers.py").write_text("import cuda.tile as ct\n\ndef twice(x):\n    return x * 2\n")
    (project / "build").mkdir()
    ran = run("check", ".", "-v", engine=Engine())
    assert ran.err.splitlines() == [
        "skipped build: `build` is excluded by default: `build`",
        "skipped plain.py: nothing in it looks like a kernel, or like a host function of streams or graphs",
        "skipped helpers.py: none of its functions is a kernel, or uses streams or graphs",
    ]
    assert run("check", ".", engine=Engine()).err == ""


def test_a_source_from_standard_input(project: Path, run, monkeypatch) -> None:
    def piped(*arguments: str):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(RACY.replace("racy", "piped").encode())))
        return run(*arguments, engine=Engine())

    ran = piped("check", "-", "--format", "concise")
    assert ran.code == 1
    assert ran.out.startswith("-:7:5: error[TC201] two blocks write the same element of `out` (piped)")
    (project / "gen").mkdir()
    table = '[tool.tilecheck]\nignore = ["TC2"]\nextend-exclude = ["new.py"]\n'
    (project / "gen/pyproject.toml").write_text(table)
    ran = piped("verify", "-", "--stdin-filename", "gen/new.py", "--format", "concise")
    assert ran.code == 0
    assert "gen/new.py:5" in ran.out
    ran = piped("check", "-", "--stdin-filename", "gen/new.py", "--force-exclude", "-v")
    assert ran.code == 0
    assert "skipped gen/new.py: `gen/new.py` is excluded by gen/pyproject.toml" in ran.err
    ran = run("check", "-", "k.py", engine=Engine())
    assert (ran.code, ran.out) == (2, "")
    assert "goes with no other path" in ran.err


def test_standard_input_that_cannot_be_read(project: Path, run, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    ran = run("check", "-", engine=Engine())
    assert (ran.code, ran.err) == (2, "tilecheck: `-` reads standard input, which is closed\n")
    with Path("/dev/null").open() as empty:
        monkeypatch.setattr("sys.stdin", empty)
        assert run("check", "-", engine=Engine()).code == 0
        monkeypatch.setattr("sys.stdin", empty)
        assert run("verify", "-", engine=Engine()).code == 2


def test_a_working_directory_that_is_gone(project: Path, run, monkeypatch) -> None:
    (project / "gone").mkdir()
    monkeypatch.chdir(project / "gone")
    (project / "gone").rmdir()
    ran = run("check", "../k.py", engine=Engine())
    assert ran.code == 2
    assert ran.err.startswith("tilecheck: the working directory cannot be read: ")


def test_a_contract_from_the_command_line_is_named_as_such(project: Path, run) -> None:
    entry = 'kernel=[{match="k.py::racy", requires=["increasing(zz)"]}]'
    ran = run("check", "k.py", "--config", entry, "--format", "concise", engine=Engine())
    assert "--config:1:1: error[TC103]" in ran.out
    ran = run("check", "k.py", "--config", entry.replace("increasing(zz)", "T >="), engine=Engine())
    assert "--config: `[[tool.tilecheck.kernel]]` number 1" in ran.err


def test_a_run_over_files_without_kernels_loads_nothing_heavy(project: Path) -> None:
    """Although there is a configuration with everything in it."""
    (project / "k.py").write_text("x = 1\n")
    (project / "pyproject.toml").write_text(
        '[tool.tilecheck]\nrequired-version = ">=0.1"\nselect = ["TC2"]\nignore = ["output-not-filled"]\n'
        'include = ["**/*.py"]\n[tool.tilecheck.levels]\nTC502 = "info"\n'
        '[[tool.tilecheck.kernel]]\nmatch = "*"\nrequires = ["n > 1"]\n'
    )
    code = (
        "import sys\nfrom tilecheck.cli import main\ncode = main(['check', '.'])\n"
        "print(code, sorted({'libcst', 'networkx', 'z3', 'rich', 'cuda', 'numpy'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=project)
    assert ran.stdout.splitlines()[-1] == "0 []"
