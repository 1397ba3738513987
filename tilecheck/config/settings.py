"""What the configuration comes to for one file, or for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilecheck.config.patterns import Pattern
from tilecheck.config.selectors import ALL, closest
from tilecheck.dataclass import dataclass
from tilecheck.model import Severity, Site
from tilecheck.options import DEFAULT_BUDGET, DEMANDS

DEFAULT = "default"
# Folders that hold no code of the user's, wherever they lie.
EXCLUDED = (
    ".eggs", ".git", ".hg", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".svn", ".tilecheck_cache",
    ".tox", ".venv", "*.egg-info", "__pycache__", "build", "dist", "node_modules", "venv",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """A value as TOML has it, who said it (a file, a flag, a variable), and where its paths start."""

    key: str
    value: Any
    origin: str
    base: Path
    file: Path | None = None  # only where a file says it


@dataclass(frozen=True, slots=True)
class Ignored:
    """Findings of rules that are taken out of the exit code: all of them, or those in files of a pattern."""

    rules: tuple[str, ...]
    reason: str
    files: Pattern | None = None


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One `[[tool.tilecheck.kernel]]` as it stands: which kernels it speaks of, and what it says of them."""

    match: str
    requires: tuple[str, ...]
    constants: tuple[tuple[str, int | bool], ...]
    reason: str | None
    where: str  # for messages
    site: Site


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the configuration says. `file` is where the table stands, `folder` the folder around it.

    `said` are the values as they were written, in the order in which they count.
    """

    file: Path | None = None
    folder: Path = Path()
    said: tuple[Said, ...] = ()
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    select: tuple[str, ...] = (ALL,)
    ignored: tuple[Ignored, ...] = ()
    levels: tuple[tuple[str, Severity | None], ...] = ()  # None: ignored
    fail_on: Severity = Severity.ERROR
    require: str = DEMANDS[-1]
    budget: int = DEFAULT_BUDGET
    format: str | None = None
    jobs: int = 0  # as many as there are processors
    cache_dir: str | None = None
    kernels: tuple[KernelEntry, ...] = ()

    def excluding(self, path: str) -> Pattern | None:
        """The pattern that keeps an absolute path out, unless it is only in a folder that one keeps out."""
        return next((pattern for pattern in self.exclude if pattern.matches(path)), None)

    def includes(self, path: str) -> bool:
        """Whether a file that was found in a folder is to be looked at."""
        return not self.include or any(pattern.matches(path) for pattern in self.include)

    def level(self, code: str) -> Severity | None:
        """The level that is stated for a rule; None if none is."""
        return dict(self.levels).get(closest((prefix for prefix, _ in self.levels), code) or "")

    def why_ignored(self, code: str, path: str) -> str | None:
        """Why a finding is out of the exit code; None if it is not. `path` is absolute.

        The entry that names the rule most closely counts, and one for a file before one for all of them.
        """
        picked = closest(self.select, code)
        best, why = (len(picked), None) if picked else (-1, f"not in {self._who('select')}")
        stated = closest((prefix for prefix, level in self.levels if level is not None), code)
        if picked and stated is not None and len(stated) > best:
            best, why = len(stated), None
        for entry in self.ignored:
            prefix = closest(entry.rules, code)
            if prefix is not None and entry.files is not None and entry.files.matches(path):
                return entry.reason
            if prefix is not None and entry.files is None and len(prefix) >= best:
                best, why = len(prefix), entry.reason
        return why

    def _who(self, key: str) -> str:
        return next((f"`{key}` of {s.origin}" for s in reversed(self.said) if s.key == key), f"`{key}`")
