"""Host functions in texts beside the tests, and whether `tilecheck.host` checks what they leave in flight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck.frontend.host_guards import Guarding, Guards
from tilecheck.frontend.host_programs import HostFunction, read_host_programs
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.text import decode
from tilecheck.verify.host_functions import footprint_of

HERE = Path(__file__).parent
Judged = Callable[[str], dict[str, Guarding]]


def is_read(function: HostFunction) -> bool:
    return not function.unread and not any(program.unread for program in function.programs)


def judged_in(text: str, path: str = "hosts.py") -> dict[str, Guarding]:
    """The host functions of a file, by name."""
    table = Project().add(parse(decode(path, text.encode())))
    functions = read_host_programs(table, footprint_of)
    guards = Guards(table, [function for function in functions if is_read(function)])
    return {function.name: guards.of(function.entry) for function in functions}


@pytest.fixture(scope="session")
def guarded_hosts() -> dict[str, Guarding]:
    return judged_in((HERE / "guarded_hosts.txt").read_text())


@pytest.fixture(scope="session")
def unguarded_hosts() -> dict[str, Guarding]:
    return judged_in((HERE / "unguarded_hosts.txt").read_text())


@pytest.fixture
def judged() -> Judged:
    return judged_in
