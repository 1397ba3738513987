"""Every row of the table of exit codes, with real files: the same for text and for a format for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tilecheck.cli import main
from tilecheck.exit_codes import ExitCode

HEAD = "import cuda.tile as ct\n\n\n"
GOOD = (
    HEAD
    + """@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
)
RACE = GOOD.replace("ct.bid(0)", "ct.bid(0) // 2").replace("double", "halved")
UNREAD = GOOD.replace("    i = ct", "    match T:\n        case _:\n            pass\n    i = ct").replace(
    "double", "odd"
)
BROKEN = "import cuda.tile as ct\ndef f(:\n"


def _run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["verify", *arguments, "-j1"], stdout=out, stderr=err)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("form", ["full", "sarif"])
@pytest.mark.parametrize(
    ("files", "arguments", "code", "said"),
    [
        ({"a.py": GOOD}, ["a.py"], ExitCode.OK, "double"),
        ({"a.py": GOOD, "b.py": RACE}, ["."], ExitCode.FINDINGS, "TC201"),
        ({"a.py": UNREAD, "b.py": RACE}, ["."], ExitCode.FINDINGS, "TC201"),
        ({"a.py": UNREAD}, ["."], ExitCode.UNDECIDED, "match statement"),
        ({"a.py": GOOD, "b.py": BROKEN}, ["."], ExitCode.UNDECIDED, "TC901"),
        ({"a.py": BROKEN}, ["a.py"], ExitCode.UNDECIDED, "TC901"),
        ({}, ["."], ExitCode.USAGE, "no kernels found"),
        ({"a.py": "x = 1\n"}, ["."], ExitCode.USAGE, "no kernels found"),
        ({}, ["gone.py"], ExitCode.USAGE, "gone.py"),
        ({"a.py": GOOD}, ["a.py::other"], ExitCode.USAGE, "no kernel `other`"),
        ({"a.py": RACE}, ["a.py", "--exit-zero"], ExitCode.OK, "TC201"),
        ({"a.py": UNREAD}, ["a.py", "--exit-zero"], ExitCode.OK, "match statement"),
        ({}, [".", "--exit-zero"], ExitCode.USAGE, "no kernels found"),
    ],
)
def test_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], arguments: list[str], code: int,
    said: str, form: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).write_text(text)
    ended, out, err = _run(*arguments, "--format", form, "--sarif-include-pass")
    assert ended == code, err
    assert said in out + err
    if form == "sarif" and out:
        assert json.loads(out)["runs"][0]["invocations"][0]["exitCode"] == code


def test_a_warning_fails_the_run_that_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(RACE.replace("    i = ct", "    # tilecheck: ignore[TC201] -- known\n    i = ct"))
    assert "TC902" in _run("a.py")[1]  # beside the race itself
    Path("a.py").write_text(GOOD.replace("    i = ct", "    # tilecheck: ignore[TC201] -- known\n    i = ct"))
    assert _run("a.py")[0] == ExitCode.OK
    assert _run("a.py", "--fail-on", "warning")[0] == ExitCode.FINDINGS
    assert _run("a.py", "--fail-on", "error")[0] == ExitCode.OK
