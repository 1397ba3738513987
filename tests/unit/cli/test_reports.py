"""`--format`, `--report` and what is printed where."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tilecheck.errors import UsageError
from tilecheck.model import Diagnostic, KernelReport, Report, Severity, Site, Span, Verdict
from tilecheck.options import FORMATS

SITE = Site("k.py", Span(4, 5))
SOURCES = {"k.py": b"def k(out): ...\n"}
FINDING = Diagnostic("TC201", "write-write-overlap", Severity.ERROR, "a race", SITE, "k")
MACHINE = ("json", "json-lines", "sarif", "gitlab", "junit", "github")


def _report(verdict: Verdict = Verdict.PROVED, *, findings: int = 0) -> Report:
    kernel = KernelReport("k", "cutile", SITE, verdict, reason="budget" if verdict is Verdict.UNKNOWN else None)
    return Report((kernel,), (FINDING,) * findings, files=1, sources=SOURCES)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


def _read(name: str, text: str) -> object:
    if name == "json-lines":
        return [json.loads(line) for line in text.splitlines()]
    return ET.fromstring(text) if name == "junit" else json.loads(text)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("verb", ["verify", "check"])
def test_every_format_keeps_the_exit_code_and_stands_alone(run, verb: str, name: str) -> None:
    ran = run(verb, "k.py", "--format", name, report=_report(Verdict.VIOLATED, findings=30))
    assert (ran.code, ran.err) == (1, "")
    if name in MACHINE and name != "github":
        _read(name, ran.out)
    assert "a race" in ran.out


def test_one_run_feeds_all_readers(run) -> None:
    wanted = [f"--report={name}=out.{name}" for name in FORMATS]
    ran = run("verify", "k.py", "-q", *wanted, report=_report(Verdict.VIOLATED, findings=1))
    assert ran.code == 1
    assert " --> k.py:1:5" in ran.out
    for name in FORMATS:
        text = Path(f"out.{name}").read_text()
        assert text == run("verify", "k.py", "--format", name, report=_report(Verdict.VIOLATED, findings=1)).out
        assert text.endswith("\n")


def test_a_report_beside_a_machine_format(run) -> None:
    ran = run("verify", "k.py", "--format", "json", "--report", "junit=j.xml", report=_report())
    assert json.loads(ran.out)["complete"] is True
    assert ET.parse("j.xml").getroot().attrib["tests"] == "1"


def test_output_file_takes_the_place_of_standard_output(run) -> None:
    ran = run(
        "verify", "k.py", "--output-file", "a.txt", "--report", "sarif=b.sarif", report=_report(findings=1)
    )
    assert (ran.code, ran.out) == (1, "")
    assert Path("a.txt").read_text().startswith("error[TC201]: a race\n")
    assert json.loads(Path("b.sarif").read_text())["runs"][0]["invocations"][0]["exitCode"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--report", "sarif"], "`sarif` is not FORMAT=FILE"),
        (["--report", "sarif="], "`sarif=` is not FORMAT=FILE"),
        (["--report", "=x"], "`` is not a format: full, concise"),
        (["--report", "json=-"], "`json=-` names no file: `--format json` prints to standard output"),
        (["--report", "xml=x"], "`xml` is not a format: full, concise"),
        (["--report", "json=a", "--report", "sarif=./a"], "two reports go to one file: a and ./a"),
        (["--report", "json=a", "--output-file", "a"], "two reports go to one file: a and a"),
        (["--report", "json=a", "--emit-verdicts", "a"], "two reports go to one file: a and a"),
        (["--report", "json=no/such/a"], "cannot write no/such/a: there is no folder no/such"),
        (["--report", "json=."], "cannot write .: is a directory"),
        (["--output-file", "no/such/a"], "cannot write no/such/a: there is no folder no/such"),
    ],
)
def test_wrong_files_are_refused_before_the_analysis(run, prepared, arguments: list[str], said: str) -> None:
    engine = prepared(_report())
    ran = run("verify", "k.py", *arguments, engine=engine)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert engine.asked == []
    assert not list(Path().iterdir())


def test_no_source_is_written_over(run) -> None:
    Path("kernel.py").write_text("x = 1\n")
    for wrong in (
        ["--output-file", "kernel.py"],
        ["--report", "json=./kernel.py"],
        ["--emit-verdicts", "kernel.py"],
    ):
        ran = run("verify", "k.py", *wrong, report=_report())
        assert ran.code == 2
        assert "a Python file would be lost" in ran.err
    assert Path("kernel.py").read_text() == "x = 1\n"


def test_a_file_that_fails_late_does_not_take_the_others_with_it(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: str, text) -> None:
        if path == "a":
            raise UsageError("cannot write a: no space left on device")
        Path(path).write_text(text())

    monkeypatch.setattr("tilecheck.cli.reports.write_file", write)
    ran = run("verify", "k.py", "--report", "json=a", "--report", "junit=b", report=_report())
    assert ran.code == 2
    assert "cannot write a: no space left on device" in ran.err
    assert Path("b").is_file()


def test_a_full_device_is_a_usage_error(run) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    ran = run("verify", "k.py", "--report", "json=/dev/full", report=_report())
    assert ran.code == 2
    assert "cannot write /dev/full" in ran.err


@pytest.mark.parametrize(
    ("report", "plain"),
    [
        (_report(findings=1), 1),
        (_report(Verdict.UNKNOWN), 3),
        (Report((), (), 1), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_zero_forgives_what_was_found_and_nothing_that_went_wrong(run, report, plain: int) -> None:
    assert run("verify", "k.py", report=report).code == plain
    assert run("verify", "k.py", "--exit-zero", report=report).code == (0 if plain in (1, 3) else plain)


def test_exit_zero_forgives_no_bug(run) -> None:
    crashed = KernelReport("k", "cutile", SITE, Verdict.UNKNOWN, "internal", internal_error="Traceback")
    assert run("verify", "k.py", "--exit-zero", report=Report((crashed,), (), 1, sources=SOURCES)).code == 4


def test_sarif_tells_the_exit_code_that_the_process_has(run) -> None:
    ran = run("verify", "k.py", "--format", "sarif", "--exit-zero", report=_report(findings=1))
    assert json.loads(ran.out)["runs"][0]["invocations"][0]["exitCode"] == ran.code == 0


def test_sarif_lists_what_passes_on_demand(run) -> None:
    def kinds(*more: str) -> list[str]:
        ran = run("verify", "k.py", "--format", "sarif", *more, report=_report())
        return [result["kind"] for result in json.loads(ran.out)["runs"][0]["results"]]

    assert kinds() == []
    assert kinds("--sarif-include-pass") == ["pass"]


def test_statistics_follow_the_text_and_keep_out_of_the_way_of_programs(run) -> None:
    assert run("verify", "k.py", "--statistics", report=_report()).out.count("by verdict") == 1
    for more in (["--format", "json"], ["--output-file", "o"]):
        ran = run("verify", "k.py", "--statistics", *more, report=_report())
        assert "by verdict" not in ran.out
        assert ran.err.count("by verdict") == 1


def test_quiet(run) -> None:
    found = _report(findings=1)
    assert "1 kernel" in run("verify", "k.py", report=found).out
    once, twice = (run("verify", "k.py", flag, "--report", "full=o", report=found) for flag in ("-q", "-qq"))
    assert "a race" in once.out
    assert "1 kernel" not in once.out
    assert (twice.out, twice.code) == ("", 1)
    assert run("verify", "k.py", "-qq", report=_report(findings=30)).err == ""
    assert "1 kernel" in Path("o").read_text()
    assert run("verify", "k.py", "-qq", "--format", "json", report=found).out.startswith("{")


# ---- GitHub Actions ----------------------------------------------------------------------------------------


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    return summary


@pytest.mark.parametrize("name", [None, "full", "concise", "grouped"])
def test_actions_get_annotations_beside_the_text(run, actions: Path, name: str | None) -> None:
    chosen = ["--format", name] if name else []
    ran = run("verify", "k.py", *chosen, report=_report(Verdict.VIOLATED, findings=1))
    assert "k.py:1" in ran.out
    assert ran.out.count("::error file=k.py,line=1,") == 1
    assert actions.read_text().startswith("before\n## tilecheck\n")


@pytest.mark.parametrize("name", MACHINE)
def test_actions_leave_machine_formats_alone(run, actions: Path, name: str) -> None:
    ran = run("verify", "k.py", "--format", name, report=_report(Verdict.VIOLATED, findings=1))
    assert ran.out.count("::error") == (name == "github")
    assert "| violated | `k` |" in actions.read_text()


def test_actions_print_nothing_where_nothing_is_wanted(run, actions: Path) -> None:
    assert run("verify", "k.py", "-qq", report=_report(Verdict.VIOLATED, findings=1)).out == ""
    assert "| violated | `k` |" in actions.read_text()


def test_a_summary_that_cannot_be_written_is_no_failure(
    run, actions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/such/file")
    ran = run("verify", "k.py", report=_report())
    assert ran.code == 0
    assert "cannot write the summary to no/such/file" in ran.err


def test_elsewhere_there_are_no_annotations(run, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "false"):
        monkeypatch.setenv("GITHUB_ACTIONS", value)
        assert "::error" not in run("verify", "k.py", report=_report(findings=1)).out


# ---- terminals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["full", "concise", "grouped"])
@pytest.mark.parametrize("colour", ["never", "always"])
def test_width_of_the_terminal_changes_nothing(run, monkeypatch, name: str, colour: str) -> None:
    long = Report(
        (KernelReport("k", "cutile", Site("a/very/" * 30 + "k.py", Span(4, 5)), Verdict.PROVED),),
        (Diagnostic("TC201", "x", Severity.ERROR, "word " * 60, SITE, "k"),),
        files=1,
        sources=SOURCES,
    )

    def printed(columns: str) -> str:
        monkeypatch.setenv("COLUMNS", columns)
        return run("verify", "k.py", "--format", name, "--color", colour, "--statistics", report=long).out

    assert printed("20") == printed("500")


@pytest.mark.parametrize("columns", ["30", "80", "200"])
def test_help_fits_the_terminal(run, monkeypatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for arguments in (["--help"], ["verify", "--help"], ["check", "--help"]):
        text = run(*arguments).out
        assert text.startswith("usage: tilecheck")
        assert len(text.splitlines()[0]) < 60
        for line in text.splitlines():
            assert len(line) <= max(int(columns), 80)
