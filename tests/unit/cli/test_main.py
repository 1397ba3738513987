"""The command line in-process: what each command asks, prints and returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilecheck import __version__
from tilecheck.errors import UsageError
from tilecheck.model import Diagnostic, KernelReport, Report, Severity, Site, Span, Verdict
from tilecheck.options import ConfigChoice, Options
from tilecheck.parallel import available_cores

SITE = Site("k.py", Span(4, 5))
SOURCES = {"k.py": b"def k(out): ...\n"}
PROVED = KernelReport("k", "cutile", SITE, Verdict.PROVED)
UNKNOWN = KernelReport("u", "cutile", SITE, Verdict.UNKNOWN, reason="budget")


def _report(*kernels: KernelReport, findings: int = 0, severity: Severity = Severity.ERROR) -> Report:
    found = tuple(Diagnostic("TC201", "x", severity, f"finding {n}", SITE, "k") for n in range(findings))
    return Report(kernels, found, files=1, sources=SOURCES)


def test_version(run) -> None:
    assert run("--version").out == f"tilecheck {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["verify", "--help"], ["show", "-h"]])
def test_help(run, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("usage: tilecheck")


def test_help_lists_the_exit_codes(run) -> None:
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130"):
        assert f"\n  {code}" in run("--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["verfy", "k.py"],
        ["verify"],
        ["verify", "--fromat", "json", "k.py"],
        ["verify", "--format", "xml", "k.py"],
        ["verify", "--without", "magic", "k.py"],
        ["verify", "--without", "", "k.py"],
        ["verify", "--fail-on", "never", "k.py"],
        ["show", "borrow", "k.py"],
        ["show", "tokens", "k.py::k"],
        ["explain", "TC999"],
        ["explain"],
        ["verify", "--output-file", "/nonexistent/x", "k.py"],
    ],
)
def test_wrong_invocations_end_with_2(run, arguments: list[str]) -> None:
    ran = run(*arguments, report=_report(PROVED))
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("tilecheck: ")
    assert "Traceback" not in ran.err


def test_the_engine_is_asked_for_what_the_options_say(run, prepared, monkeypatch) -> None:
    monkeypatch.delenv("TILECHECK_CACHE_DIR")
    engine = prepared(_report(PROVED))
    run("verify", "a.py", "b/", "--without", "smt,fold", "--without", "entail", "--no-cache", engine=engine)
    run("check", "a.py", "--fail-on", "warning", "--no-cache", engine=engine)
    run("audit", "a.py", "-j", "3", "--cache-dir", "/kept", engine=engine)
    run("verify", "a.py", "--propose", "--no-cache", engine=engine)
    lax = {"undecided_fails": False, "needs_kernels": False}
    warned = ConfigChoice(values=(("fail-on", "warning", "--fail-on"),))
    three = ConfigChoice(values=(("jobs", 3, "--jobs"), ("cache-dir", "/kept", "--cache-dir")))
    cores = available_cores()
    assert engine.asked == [
        (("a.py", "b/"), Options(without=frozenset({"smt", "fold", "entail"}), jobs=cores)),
        (("a.py",), Options(fail_on=Severity.WARNING, jobs=cores, config=warned, **lax)),
        (("a.py",), Options(jobs=3, config=three, cache="/kept", **lax)),
        (("a.py",), Options(propose=True, jobs=cores)),
    ]


def test_exit_codes(run) -> None:
    crashed = KernelReport("c", "cutile", SITE, Verdict.UNKNOWN, "internal", internal_error="Traceback: boom")
    assert run("verify", "k.py", report=_report(PROVED)).code == 0
    assert run("verify", "k.py", report=_report(PROVED, findings=1)).code == 1
    assert run("verify", "k.py", report=_report()).code == 2
    assert run("check", "k.py", report=_report()).code == 0
    assert run("verify", "k.py", report=_report(UNKNOWN)).code == 3
    assert run("check", "k.py", report=_report(UNKNOWN)).code == 0
    ran = run("verify", "k.py", report=_report(crashed, findings=1))
    assert ran.code == 4
    assert "Traceback: boom" in ran.err
    assert "command: tilecheck verify k.py" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "k.py"],
        ["check", "k.py"],
        ["audit", "k.py"],
        ["run", "k.py", "--backend", "reference"],
        ["compile", "k.py", "--arch", "sm_90", "-o", "made"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_that_verifies_prints_the_traceback_of_a_bug(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    if arguments[0] == "compile":
        pytest.importorskip("cuda.tile", reason="cuda-tile is installed on Linux only")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_bytes(SOURCES["k.py"])
    crashed = KernelReport("c", "cutile", SITE, Verdict.UNKNOWN, "internal", internal_error="Traceback: boom")
    ran = run(*arguments, report=_report(crashed))
    assert ran.code == 4
    assert "Traceback: boom" in ran.err
    assert f"command: tilecheck {arguments[0]} k.py" in ran.err


def test_errors_of_the_run(run) -> None:
    wrong = run("verify", "k.py", report=UsageError("k.py: no such file", "look again"))
    assert (wrong.code, wrong.err) == (2, "tilecheck: k.py: no such file\n  hint: look again\n")
    stopped = run("verify", "k.py", report=KeyboardInterrupt())
    assert (stopped.code, stopped.out) == (130, "")
    bug = run("verify", "my file.py", report=KeyError("lane"))
    assert bug.code == 4
    assert "KeyError: 'lane'" in bug.err
    assert "command: tilecheck verify 'my file.py'" in bug.err
    assert f"tilecheck {__version__}" in bug.err


def test_verify_prints_every_verdict_and_check_does_not(run) -> None:
    assert "proved       k.py:1  k\n" in run("verify", "k.py", report=_report(PROVED)).out
    assert "k.py:1" not in run("check", "k.py", report=_report(PROVED)).out
    assert run("verify", "k.py", "-q", report=_report(PROVED)).out == ""


def test_no_kernels_is_said(run) -> None:
    ran = run("verify", "k.py", report=_report())
    assert "no kernels found in 1 file" in ran.err
    assert run("check", "k.py", report=_report()).err == ""


def test_json_is_alone_on_standard_output(run) -> None:
    ran = run("verify", "k.py", "--format", "json", report=_report(PROVED, findings=30))
    assert json.loads(ran.out)["complete"] is True
    assert ran.err == ""


def test_many_findings_are_listed_one_a_line_unless_asked_otherwise(run, monkeypatch) -> None:
    many = _report(PROVED, findings=21)
    short = run("verify", "k.py", report=many)
    assert "k.py:1:5: error[TC201] finding 0 (k)\n" in short.out
    assert "21 findings, one line each" in short.err
    assert " --> k.py:1:5" in run("verify", "k.py", "--format", "full", report=many).out
    assert " --> k.py:1:5" in run("verify", "k.py", report=_report(PROVED, findings=20)).out
    monkeypatch.setenv("PRE_COMMIT", "1")
    assert (
        "k.py:1:5: error[TC201] finding 0 (k)\n"
        in run("verify", "k.py", report=_report(PROVED, findings=1)).out
    )


def test_output_file(run, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    ran = run("verify", "k.py", "--format", "json", "--output-file", str(target), report=_report(PROVED))
    assert (ran.code, ran.out) == (0, "")
    assert json.loads(target.read_text())["summary"]["proved"] == 1
    ran = run(
        "verify", "k.py", "--output-file", str(target), "--color", "always", report=_report(PROVED, findings=1)
    )
    assert target.read_text().startswith("error[TC201]: finding 0\n")


def test_colour(run, monkeypatch) -> None:
    def coloured(*more: str) -> bool:
        return "\x1b[" in run("verify", "k.py", *more, report=_report(PROVED, findings=1)).out

    assert not coloured()
    assert coloured("--color", "always")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert coloured()
    assert not coloured("--color", "never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured()
    assert coloured("--color", "always")


@pytest.mark.parametrize(
    ("topic", "title"),
    [
        ("proved", "# proved\n"),
        ("CONDITIONAL", "# conditional\n"),
        ("unknown", "# unknown\n"),
        ("unknown/budget", "# unknown/budget\n"),
        ("budget", "# unknown/budget\n"),
        ("unsupported:match statement", "# unknown/unsupported\n"),
        ("s4", "# S4: a standing obligation\n"),
    ],
)
def test_explain_words(run, topic: str, title: str) -> None:
    ran = run("explain", topic)
    assert ran.code == 0
    assert ran.out.startswith(title)


def test_explain_guesses(run) -> None:
    assert "did you mean `unknown/vacuous`?" in run("explain", "unknown/vacous").err


def test_show_and_audit(run) -> None:
    assert run("show", "borrow", "k.py::k").out == "borrow of k in k.py\n"
    ran = run("audit", "k.py", report=_report(PROVED, UNKNOWN, findings=1))
    assert ran.code == 0
    assert "undecided budget" in ran.out
    assert json.loads(run("audit", "k.py", "--format", "json", report=_report(PROVED)).out)["complete"] is True


def test_a_listing_that_is_not_whole_fails(run) -> None:
    unread = Report((PROVED,), (), files=2, unreadable=("b.py",), sources=SOURCES)
    assert run("audit", "k.py", report=unread).code == 3
