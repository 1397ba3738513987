"""`baseline` and what `verify` and `check` make of one: what an entry survives, and what it does not."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilecheck.cli import main

FILE = ".tilecheck-baseline.json"
HEAD = "import cuda.tile as ct\n"
GOOD = """

@ct.kernel
def good(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
STORE = "ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)"
RACE = GOOD.replace("def good", "def race").replace("ct.bid(0)", "ct.bid(0) // 2")
OPEN = GOOD.replace("def good", "def odd").replace("* 2)", "* unread(x))")
FINDINGS = (
    '{"path": "k.py", "kernel": "odd", "rule": "TC905", "operation": "unread", "reason": "before the gate"},\n'
    '{"path": "k.py", "kernel": "race", "rule": "TC201", "operation": '
    '"ct.store(out,index=(i,),tile=ct.load(x,index=(i,),shape=(T,))*2)", "reason": "before the gate"}\n'
)
KERNELS = (
    '{"path": "k.py", "kernel": "good", "verdict": "conditional"},\n'
    '{"path": "k.py", "kernel": "odd", "verdict": "unknown", "reason": "unsupported:unknown name `unread`"},\n'
    '{"path": "k.py", "kernel": "race", "verdict": "violated"}\n'
)
BASELINE = f'{{\n"tilecheck_baseline": 1,\n"findings": [\n{FINDINGS}],\n"kernels": [\n{KERNELS}]\n}}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a project with three kernels, and a baseline of them."""
    monkeypatch.chdir(tmp_path)
    for name in ("CI", "PRE_COMMIT", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".git").mkdir()
    (tmp_path / "k.py").write_text(HEAD + RACE + GOOD + OPEN)
    (tmp_path / FILE).write_text(BASELINE)
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(list(arguments), stdout=out, stderr=err)
    return code, out.getvalue(), err.getvalue()


def verify(*arguments: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = run("verify", "-j1", "--format", "json", *(arguments or (".",)))
    return code, json.loads(out), err


def standing(*arguments: str) -> list[str]:
    """The findings that are not suppressed."""
    return [d["code"] for d in verify(*arguments)[1]["diagnostics"] if not d["suppressed"]]


def entries(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / FILE).read_text())["findings"]
    return found


def test_the_file(folder: Path) -> None:
    """One entry a line, sorted, without places."""
    (folder / FILE).unlink()
    code, out, err = run("baseline", "write", "--reason", "before the gate", ".")
    assert (code, err) == (0, "")
    assert out == f"{FILE}: 2 findings (1 TC201, 1 TC905), 3 kernels; 2 added, 3 verdicts recorded\n"
    assert (folder / FILE).read_text() == BASELINE
    assert run("baseline", "write", "--reason", "again", ".")[1].endswith("; nothing changed\n")
    assert (folder / FILE).read_text() == BASELINE


def test_what_is_known_leaves_the_exit_code_and_stays_in_the_report(folder: Path) -> None:
    code, found, err = verify()
    assert (code, err) == (0, "")
    assert found["summary"]["suppressed"] == found["summary"]["baselined"] == 2
    assert {k["name"]: k["verdict"] for k in found["kernels"]} == {
        "race": "violated",
        "good": "conditional",
        "odd": "unknown",
    }
    assert "2 suppressed (2 by the baseline)" in run("verify", ".")[1]
    assert "before the gate" in run("verify", "--format", "sarif", ".")[1]
    assert run("verify", "--no-baseline", ".")[0] == 1
    assert run("verify", "--no-baseline", "k.py::odd")[0] == 3
    assert run("verify", "k.py::odd", "k.py::race")[0] == 0


def test_it_is_found_from_below_and_named_from_elsewhere(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert verify("..")[0] == 0
    assert verify(str(folder / "k.py"))[0] == 0
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert verify(str(folder))[0] == 1
    assert verify(str(folder), "--baseline", str(folder / FILE))[0] == 0
    Path("alias").symlink_to(folder, target_is_directory=True)
    assert verify("alias", "--baseline", f"alias/{FILE}")[0] == 0
    assert verify("alias", "--baseline", str(folder / FILE))[0] == 0
    assert run("baseline", "show", "--baseline", str(folder / FILE))[0] == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (HEAD, "# a comment\n\nimport math\nimport cuda.tile as ct\nN = 1\n"),
        ("    i = ct", "    # why\n\n    i = ct"),
        (STORE, f"ct.store(  # more\n        out,\n        index=(i,),\n{STORE[26:-1]},\n    )"),
        (GOOD, GOOD.replace("* 2", "* 3")),
        (GOOD, ""),
        (GOOD, GOOD + GOOD.replace("def good", "def more")),
        ("def race(x, out,", "def race(x, out, y,"),
    ],
)
def test_it_survives(folder: Path, old: str, new: str) -> None:
    """Lines that move, comments, layout, and edits of whatever else."""
    text = (folder / "k.py").read_text()
    assert old in text
    (folder / "k.py").write_text(text.replace(old, new, 1))
    assert standing() == []
    assert verify()[0] == 0
    assert len(entries(folder)) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STORE, STORE.replace("* 2", "* 3")),
        (STORE, STORE.replace("out, index=(i,)", "out, index=(i + 0,)")),
        ("def race", "def race2"),
        (STORE, f"{STORE}\n    {STORE}"),
    ],
)
def test_it_does_not_survive(folder: Path, old: str, new: str) -> None:
    """The operation changed, or the kernel did, or there is one more."""
    text = (folder / "k.py").read_text()
    (folder / "k.py").write_text(text.replace(old, new, 1))
    code, found, _ = verify()
    assert code == 1
    assert "TC201" in [d["code"] for d in found["diagnostics"] if not d["suppressed"]]


def test_a_file_that_moved_is_another(folder: Path) -> None:
    (folder / "k.py").rename(folder / "k2.py")
    assert verify()[0] == 1
    assert entries(folder) == []  # of a file that is gone


def test_equal_operations_are_counted(folder: Path) -> None:
    """One of two that is fixed is dropped; a third is new."""
    body = RACE.replace(STORE, f"{STORE}\n    {STORE}")
    (folder / "k.py").write_text(HEAD + body)
    run("baseline", "write", "--reason", "two", ".")
    known = [e for e in entries(folder) if e["rule"] == "TC201"]
    assert [(" with " in e["operation"], e.get("occurrence", 0)) for e in known] == [
        (False, 0), (False, 1), (True, 0),
    ]  # fmt: skip
    assert standing() == []
    (folder / "k.py").write_text(HEAD + body.replace(STORE, f"{STORE}\n    {STORE}", 1))
    assert "TC201" in standing()
    (folder / "k.py").write_text(HEAD + RACE)
    assert standing() == []
    assert len([e for e in entries(folder) if e["rule"] == "TC201"]) == 1


def test_what_breaks_at_a_launch_is_told_apart_by_what_it_is(folder: Path) -> None:
    """The code of the launch is the same whichever condition it breaks."""
    launch = "\n\ndef run(x):\n    import torch\n    out = torch.empty({size})\n"
    launch += "    ct.launch(0, (4,), good, (x, out, 128))\n"
    (folder / "k.py").write_text(HEAD + GOOD + launch.format(size=128))
    assert "TC402" in standing()
    run("baseline", "write", "--reason", "known", ".")
    assert standing() == []
    known = [entry for entry in entries(folder) if entry["rule"] == "TC402"]
    assert known
    assert all("breaks a condition" in entry["message"] for entry in known)
    text = (folder / FILE).read_text()
    (folder / FILE).write_text(text.replace("x.shape[0]", "out.shape[0]"))
    assert "TC402" in standing()


# ---- stale entries -------------------------------------------------------------------------------------------


def _fix(folder: Path) -> None:
    text = (folder / "k.py").read_text()
    (folder / "k.py").write_text(text.replace("ct.bid(0) // 2", "ct.bid(0)"))


def test_verify_drops_what_is_fixed(folder: Path) -> None:
    _fix(folder)
    code, _, err = verify()
    assert code == 0
    assert f"dropped 1 entry from {FILE}" in err
    assert [entry["rule"] for entry in entries(folder)] == ["TC905"]
    assert '"race", "verdict": "violated"' in (folder / FILE).read_text()  # `prune` records what got better
    assert "1 verdict recorded" in run("baseline", "prune")[1]
    assert '"race", "verdict": "conditional"' in (folder / FILE).read_text()
    assert run("baseline", "prune") == (0, f"{FILE}: 1 finding (1 TC905), 3 kernels; nothing changed\n", "")


@pytest.mark.parametrize(
    ("variable", "verb", "code", "severity"),
    [
        ("CI", "verify", 1, "error"),
        ("CI", "check", 1, "error"),
        ("PRE_COMMIT", "verify", 0, "warning"),
        ("", "check", 0, "warning"),
    ],
)
def test_elsewhere_what_is_fixed_is_a_finding(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, verb: str, code: int, severity: str
) -> None:
    _fix(folder)
    before = (folder / FILE).read_bytes()
    if variable:
        monkeypatch.setenv(variable, "true")
    found, out, _ = run(verb, "--format", "json", ".")
    stale = [d for d in json.loads(out)["diagnostics"] if d["code"] == "TC908"]
    assert (found, [d["severity"] for d in stale]) == (code, [severity])
    assert (stale[0]["file"], stale[0]["kernel"]) == ("k.py", "race")
    assert (folder / FILE).read_bytes() == before


def test_ci_that_says_no_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fix(folder)
    monkeypatch.setenv("CI", "false")
    assert verify()[0] == 0
    assert len(entries(folder)) == 1


@pytest.mark.parametrize("arguments", [["k.py::good"], ["other.py"], ["k.py", "--without", "smt"], ["sub"]])
def test_what_was_not_looked_at_is_kept(folder: Path, arguments: list[str]) -> None:
    (folder / "other.py").write_text(HEAD + GOOD)
    (folder / "sub").mkdir()
    (folder / "sub" / "k.py").write_text(HEAD + GOOD)
    _fix(folder)
    verify(*arguments)
    assert len(entries(folder)) == 2


def test_of_a_kernel_that_is_undecided_now_it_is_kept(folder: Path) -> None:
    text = (folder / "k.py").read_text()
    (folder / "k.py").write_text(text.replace("    i = ct.bid(0) // 2", "    i = unread(ct.bid(0))"))
    code, _, _ = verify()
    assert code == 3  # the kernel was violated, and is open now
    assert "race" in [entry["kernel"] for entry in entries(folder)]


def test_of_a_file_that_does_not_parse_it_is_kept(folder: Path) -> None:
    (folder / "k.py").write_text(HEAD + "x = (\n")
    (folder / "more.py").write_text(HEAD + GOOD)
    assert verify()[0] == 3
    code, _, err = run("baseline", "write", "--reason", "more", ".")
    assert (code, len(entries(folder))) == (3, 2)
    assert "k.py is not read" in err


def test_of_a_file_that_is_gone_or_has_no_kernels_it_is_dropped(folder: Path) -> None:
    (folder / "k.py").write_text("x = 1\n")
    (folder / "more.py").write_text(HEAD + GOOD)
    assert verify()[0] == 0
    assert entries(folder) == []
    assert '"kernel": "good"' in (folder / FILE).read_text()
    run("baseline", "prune")
    assert json.loads((folder / FILE).read_text())["kernels"] == []


def test_a_folder_that_cannot_be_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fix(folder)
    if os.geteuid() == 0:  # may write anywhere: the replacement is what fails
        monkeypatch.setattr("tempfile.mkstemp", _refuse)
    else:
        folder.chmod(0o555)
    try:
        code, found, _ = verify()
        assert code == 0
        assert [d["code"] for d in found["diagnostics"] if not d["suppressed"]] == ["TC908"]
        code, _, err = run("baseline", "prune")
        assert code == 2
        assert f"cannot write the baseline {folder / FILE}: permission denied" in err
    finally:
        folder.chmod(0o755)


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


# ---- verdicts ------------------------------------------------------------------------------------------------


def test_a_kernel_that_was_decided_and_is_not(folder: Path) -> None:
    text = (folder / "k.py").read_text()
    (folder / "k.py").write_text(
        text.replace(GOOD, GOOD.replace("* 2", "* more(x)")),
    )
    code, found, _ = verify()
    assert code == 1
    (regression,) = (d for d in found["diagnostics"] if d["code"] == "TC907")
    assert regression["message"].startswith("`good` was conditional and is unknown(unsupported:")
    assert (regression["severity"], regression["kernel"], regression["suppressed"]) == ("error", "good", False)
    assert run("check", ".")[0] == 1
    run("baseline", "prune")
    assert verify()[0] == 1  # only `write` accepts that it got worse
    run("baseline", "write", "--reason", "until the helper is read", ".")
    assert verify()[0] == 0
    reasons = {entry["kernel"]: entry["reason"] for entry in entries(folder)}
    assert reasons == {
        "good": "until the helper is read",
        "odd": "before the gate",
        "race": "before the gate",
    }


def test_an_undecided_kernel_with_a_new_question_is_not_accepted(folder: Path) -> None:
    text = (folder / "k.py").read_text()
    (folder / "k.py").write_text(text.replace("unread(x)", "other(x)"))
    code, found, _ = verify()
    assert code == 3
    assert "TC907" not in [d["code"] for d in found["diagnostics"]]


def test_a_comment_cannot_silence_a_regression(folder: Path) -> None:
    text = (folder / "k.py").read_text()
    changed = GOOD.replace("* 2", "* more(x)").replace("@ct", "# tilecheck: ignore[TC907] -- no\n@ct")
    (folder / "k.py").write_text(text.replace(GOOD, changed))
    assert "TC907" in standing()


def test_writing_for_some_paths_leaves_the_others(folder: Path) -> None:
    (folder / "other.py").write_text(HEAD + RACE)
    _fix(folder)
    code, out, _ = run("baseline", "write", "--reason", "new", "other.py")
    assert code == 0
    assert "1 added" in out
    assert sorted((e["path"], e["kernel"]) for e in entries(folder)) == [
        ("k.py", "odd"), ("k.py", "race"), ("other.py", "race"),
    ]  # fmt: skip
    run("baseline", "write", "--reason", "new", "k.py::race")
    assert sorted((e["path"], e["kernel"]) for e in entries(folder)) == [("k.py", "odd"), ("other.py", "race")]


def test_show(folder: Path) -> None:
    code, out, err = run("baseline", "show")
    assert (code, err) == (0, "")
    assert "k.py: TC201 `race`: ct.store(" in out
    assert "    -- before the gate" in out
    assert "k.py: `odd` unknown(unsupported:" in out


# ---- what is wrong with the invocation, or the file ----------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "says", "hint"),
    [
        (b"", "is no JSON", "baseline write"),
        (b"{", "is no JSON", "baseline write"),
        (b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> x\n", "is no JSON", "resolve the merge"),
        (b"\xff\xfe", "is no JSON", "baseline write"),
        (b"[" * 100_000, "is no JSON", "baseline write"),
        (b"[]", "is no baseline of tilecheck", "baseline write"),
        (b'{"version": 1, "files": {}}', "is no baseline of tilecheck", "baseline write"),
        (b'{"tilecheck_baseline": true}', "is no baseline of tilecheck", "baseline write"),
        (b'{"tilecheck_baseline": 2}', "has format 2; this version of tilecheck reads 1", "upgrade tilecheck"),
        (b'{"tilecheck_baseline": 1}', "has no list `findings`", "baseline write"),
        (b'{"tilecheck_baseline": 1, "findings": [1], "kernels": []}', "entry 1 of `findings`", "restore"),
        (BASELINE.replace("before the gate", " ").encode(), "has no reason", "say in `reason`"),
        (BASELINE.replace("violated", "fine").encode(), "`fine` is no verdict", "restore"),
        (BASELINE.replace('"violated"', '"violated", "occurrence": -1').encode(), "is no count", "restore"),
        (BASELINE.replace('"TC201"', "201").encode(), "entry 2 of `findings`", "restore"),
    ],
)
def test_a_file_that_is_not_understood(folder: Path, data: bytes, says: str, hint: str) -> None:
    (folder / FILE).write_bytes(data)
    for arguments in (["verify", "."], ["baseline", "show"], ["baseline", "write", "--reason", "x", "."]):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert says in err
        assert hint in err
    assert (folder / FILE).read_bytes() == data
    assert run("verify", "--no-baseline", "k.py::good")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["baseline", "write", "."],
        ["baseline", "write", "--reason", "  ", "."],
        ["baseline", "write", "--reason", "x"],
        ["baseline"],
        ["baseline", "drop"],
        ["baseline", "show", "k.py"],
        ["baseline", "show", "--baseline", "missing.json"],
        ["baseline", "prune", "--baseline", "missing.json"],
        ["baseline", "write", "--reason", "x", "missing.py"],
        ["baseline", "write", "--reason", "x", "--baseline", "missing/b.json", "."],
        ["baseline", "write", "--reason", "x", "--baseline", ".", "."],
        ["verify", "--baseline", "missing.json", "."],
        ["verify", "--baseline", FILE, "--no-baseline", "."],
    ],
)
def test_what_is_not_understood(folder: Path, arguments: list[str]) -> None:
    before = (folder / FILE).read_bytes()
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tilecheck: ")
    assert "Traceback" not in err
    assert (folder / FILE).read_bytes() == before


def _write(number: int) -> int:
    return run("baseline", "write", "-j1", "--reason", "at once", f"k{number}.py")[0]


def test_runs_at_the_same_time(folder: Path) -> None:
    """None of them loses what another has written, and nothing else is left behind."""
    for number in range(4):
        (folder / f"k{number}.py").write_text(HEAD + RACE)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(_write, range(4)) == [0, 0, 0, 0]
    assert [e["path"] for e in entries(folder) if e["path"] != "k.py"] == [f"k{n}.py" for n in range(4)]
    assert [path.name for path in folder.iterdir() if path.name.startswith(f"{FILE}.")] == []


def test_the_mode_and_the_place_of_the_file_stay(folder: Path) -> None:
    (folder / "real.json").write_bytes((folder / FILE).read_bytes())
    (folder / "real.json").chmod(0o640)
    (folder / FILE).unlink()
    (folder / FILE).symlink_to("real.json")
    _fix(folder)
    verify()
    assert (folder / FILE).is_symlink()
    assert (folder / "real.json").stat().st_mode & 0o777 == 0o640
    assert len(entries(folder)) == 1


def test_the_installed_command(folder: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "PRE_COMMIT", "GITHUB_ACTIONS")}
    command = [sys.executable, "-m", "tilecheck", "verify", "."]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "2 suppressed (2 by the baseline)" in ran.stdout


def test_audit_lists_what_is_accepted(folder: Path) -> None:
    """Everything that a verdict or an exit code rests on; it never changes the file."""
    _fix(folder)
    before = (folder / FILE).read_bytes()
    code, out, _ = run("audit", ".")
    assert code == 0
    assert "suppressed TC905" in out
    assert "-- before the gate" in out
    assert (folder / FILE).read_bytes() == before
    assert "suppressed TC905" not in run("audit", "--no-baseline", ".")[1]
