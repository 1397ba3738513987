"""`--add-ignore`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.cli.engine import Engine

KERNELS = """import cuda.tile as ct

T = 64


@ct.kernel
def racy(x, out):
    b = ct.bid(0)
    for i in range(4):
        ct.store(out, index=(b // 2,), tile=ct.load(x, index=(b // 2,), shape=(T,)) + i)


@ct.kernel
def open_(x, out):
    match T:
        case _:
            ct.store(out, index=(ct.bid(0),), tile=ct.load(x, index=(ct.bid(0),), shape=(T,)))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "k.py"


def test_warnings_are_silenced_and_errors_stay(file: Path, run) -> None:
    ran = run("check", "k.py", "--add-ignore", "read by hand", "-q", engine=Engine())
    assert ran.code == 1
    assert ran.err == (
        "tilecheck: silenced 1 finding in 1 file\n  hint: 1 error left: with --force they are silenced too\n"
    )
    comment = "    # tilecheck: ignore[TC905] -- read by hand\n    match T:"
    assert file.read_text() == KERNELS.replace("    match T:", comment)
    ran = run("check", "k.py", "--format", "concise", engine=Engine())
    assert "TC905" not in ran.out
    assert "1 suppressed" in ran.out


def test_errors_are_silenced_where_that_is_asked_for(file: Path, run) -> None:
    ran = run("verify", "k.py::racy", "--add-ignore", "one block only", "--force", engine=Engine())
    assert ran.code == 1  # what was found before
    assert "TC905" not in file.read_text()
    ran = run("verify", "k.py::racy", engine=Engine())
    assert ran.code == 0
    assert "1 violated" in ran.out  # the verdict stays
    before = file.read_text()
    ran = run("verify", "k.py::racy", "--add-ignore", "again", "--force", engine=Engine())
    assert ran.err == "tilecheck: silenced 0 findings in 0 files\n"
    assert file.read_text() == before


def test_a_file_in_another_encoding_is_left_alone(file: Path, run) -> None:
    data = ("# coding: latin-1\n" + KERNELS + "# é\n").encode("latin-1")
    file.write_bytes(data)
    ran = run("check", "k.py", "--add-ignore", "read by hand", "--force", engine=Engine())
    assert "hint: no comment can be written for 2 of them" in ran.err
    assert file.read_bytes() == data


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_a_reason_is_needed(file: Path, run, reason: str) -> None:
    ran = run("check", "k.py", "--add-ignore", reason, engine=Engine())
    assert ran.code == 2
    assert "--add-ignore: it gives no reason on one line" in ran.err
    assert file.read_text() == KERNELS
