"""Shared by all tests: the option that rewrites golden files, and how an interrupt arrives."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite the golden files; review the diff")


def pytest_configure() -> None:
    # A shell starts background commands with interrupts ignored, and a child inherits that: the tests of
    # interrupts would wait for something that never comes.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a file, or rewrite the file under `--bless`."""
    bless = request.config.getoption("--bless")

    def compare(path: Path, text: str) -> None:
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"{path.name} is missing: run `pytest --bless` and review it"
        assert text == path.read_text(encoding="utf-8")

    return compare
