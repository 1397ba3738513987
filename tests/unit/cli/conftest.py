"""Runs commands in this process, on an engine that answers with a report of the test's own."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tilecheck.cli import main
from tilecheck.cli.engine import Engine
from tilecheck.model import Report
from tilecheck.options import Options


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str


@dataclass(slots=True)
class Prepared(Engine):
    """Answers with `report`, or raises it."""

    report: Report | BaseException
    asked: list[tuple[tuple[str, ...], Options]] = field(default_factory=list)

    def verify(self, paths: Sequence[str], options: Options) -> Report:
        self.asked.append((tuple(paths), options))
        if isinstance(self.report, BaseException):
            raise self.report
        return self.report

    def show(self, kind: str, path: str, kernel: str, form: str = "text") -> str:
        return f"{kind} of {kernel} in {path}"


Run = Callable[..., Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PRE_COMMIT", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)

    def command(
        *arguments: str, report: Report | BaseException | None = None, engine: Engine | None = None
    ) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        used = engine or Prepared(report or Report((), (), 0))
        return Ran(main(arguments, stdout=out, stderr=err, engine=used), out.getvalue(), err.getvalue())

    return command


@pytest.fixture
def prepared() -> type[Prepared]:
    return Prepared
