"""A finished run, as an emitter is given it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tilecheck.dataclass import dataclass
from tilecheck.model import Report, Severity
from tilecheck.report.places import Place

# What a service that reads reports calls the folder that it checked out.
_CHECKOUT = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


@dataclass(frozen=True, slots=True)
class Root:
    """The folder that services take paths to be relative to; `here` is the working directory."""

    folder: str
    here: str

    def path(self, file: str) -> str:
        """A file of the report from the root, POSIX style; absolute if it does not lie below."""
        whole = os.path.normpath(f"{self.here}/{file}" if not PurePosixPath(file).is_absolute() else file)
        posix = PurePosixPath(Path(whole).as_posix())
        return posix.relative_to(self.folder).as_posix() if posix.is_relative_to(self.folder) else str(posix)

    def place(self, place: Place) -> str:
        """`file:line:column`, the file from the root."""
        return f"{self.path(place.file)}:{place.line}:{place.column}"


def root_of(environment: Mapping[str, str]) -> Root:
    """The checkout that the environment names if the working directory lies in it, else that directory."""
    here = Path.cwd().resolve()
    for name in _CHECKOUT:
        named = environment.get(name)
        if named and here.is_relative_to(Path(named).resolve()):
            return Root(Path(named).resolve().as_posix(), here.as_posix())
    return Root(here.as_posix(), here.as_posix())


@dataclass(frozen=True, slots=True)
class Run:
    """A report, and what an emitter has to know beside it.

    `lists_verdicts` asks the emitters for people for a line on every kernel (`verify`); `quiet` for findings
    alone; `includes_pass` asks SARIF for a result on every kernel that passes.
    """

    report: Report
    root: Root
    exit_code: int = 0
    fail_on: Severity = Severity.ERROR
    lists_verdicts: bool = True
    quiet: bool = False
    includes_pass: bool = False
