"""Progress is for people who wait at a terminal."""

from __future__ import annotations

import io
import time

import pytest

from tilecheck.report import progress
from tilecheck.report.progress import Progress, is_wanted


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_only_people_are_shown_it() -> None:
    assert is_wanted(Terminal(), {"TERM": "xterm"})
    assert not is_wanted(io.StringIO(), {})
    for variable in ("PRE_COMMIT", "CI"):
        assert not is_wanted(Terminal(), {variable: "1"})
    assert not is_wanted(Terminal(), {"TERM": "dumb"})


def test_a_short_run_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    with (run := Progress(3)):
        run.ended("a.py", 2, 5)
    import sys  # the stream of this test

    assert sys.stderr.getvalue() == ""


def test_a_long_run_shows_counts_and_takes_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    run = Progress(3)
    with run:
        run.began("kernels/[bold]a.py")
        run.ended("kernels/[bold]a.py", 2, 5)
        deadline = time.monotonic() + 20
        while "1/3 files" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
    shown = stream.getvalue()
    assert "1/3 files, 2 kernels, 5 obligations  kernels/[bold]a.py" in shown
    assert shown.endswith("\x1b[2K")  # the line is empty again
