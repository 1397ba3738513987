"""Finds the table that counts for a path, and adds what the command line says."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tilecheck.config.patterns import Pattern, absolute, below
from tilecheck.config.schema import defaults, settings_of
from tilecheck.config.settings import Said, Settings
from tilecheck.dataclass import dataclass
from tilecheck.errors import UsageError, refusal
from tilecheck.options import ConfigChoice

FILE = "pyproject.toml"


@dataclass(slots=True)
class Configs:
    """The settings of files and folders, in a run that says `choice`. Mutable cache, by folder."""

    choice: ConfigChoice = field(default_factory=ConfigChoice)
    known: dict[Path, Settings | None] = field(default_factory=dict)
    kept: set[Path] = field(default_factory=set)  # what no pattern keeps out
    _without: Settings | None = None

    def of(self, path: str) -> Settings:
        """The settings for a file: those of its folder."""
        return self.of_folder(Path(absolute(path)).parent)

    def of_folder(self, folder: Path) -> Settings:
        """The settings for what lies in a folder (absolute): the closest table above it, or the defaults.

        Raises:
            UsageError: a table is not understood.
        """
        found = self._stated(Path() if self.choice.isolated or self.choice.file else folder)
        return found or self._nowhere()

    def of_run(self) -> Settings:
        """The settings of the run itself: those of the working directory."""
        return self.of_folder(Path.cwd())

    def excluding(self, path: str) -> tuple[str, Pattern] | None:
        """The path, or the folder above it, that a pattern keeps out, and the pattern.

        Folders are asked from the outermost: a table in a folder that another keeps out does not count. What
        lies above all tables and above the working directory is nobody's to keep out.
        """
        whole = Path(absolute(path))
        here = Path.cwd()
        above = list(itertools.takewhile(lambda folder: folder not in self.kept, whole.parents[:-1]))
        for part in (*reversed(above), whole):
            settings = self.of_folder(part.parent)
            if settings.folder in part.parents or here in part.parents:
                pattern = settings.excluding(part.as_posix())
                if pattern is not None:
                    return part.as_posix(), pattern
            self.kept.add(part)
        return None

    def _stated(self, folder: Path) -> Settings | None:
        """The settings of the closest table above a folder, or of the one file that is read."""
        found: Settings | None = None
        passed = []
        for place in (folder, *folder.parents):
            if place in self.known:
                found = self.known[place]
                break
            passed.append(place)
            found = self._read(place)
            if found is not None:
                break
        self.known.update(dict.fromkeys(passed, found))
        return found

    def _read(self, folder: Path) -> Settings | None:
        if self.choice.isolated:
            return None
        if self.choice.file is None:
            return load(folder / FILE, self.choice) if _is_file(folder / FILE) else None
        found = load(Path(absolute(self.choice.file)), self.choice)
        if found is None:
            message = f"{self.choice.file} has no table `[tool.tilecheck]`"
            raise UsageError(message, "it is what --config reads")
        return found

    def _nowhere(self) -> Settings:
        """The settings where no table counts."""
        if self._without is None:
            here = Path.cwd()
            extra = _extra(self.choice)
            self._without = settings_of(extra, None, here) if extra else defaults(here)
        return self._without


def load(path: Path, choice: ConfigChoice | None = None) -> Settings | None:
    """The settings of a file; None if it has no table for tilecheck.

    Raises:
        UsageError: the file cannot be read, or something in the table is not understood.
    """
    table = read_table(path)
    if table is None:
        return None
    shown = _shown(path)
    extra = _extra(choice or ConfigChoice())
    replaced = {said.key for said in extra} - set(ADDED)
    said = [Said(key, value, shown, path.parent, path) for key, value in table.items() if key not in replaced]
    return settings_of([*said, *extra], path, path.parent)


ADDED = ("ignore", "extend-exclude", "levels", "per-file-ignores")  # flags add to what a file says


def _extra(choice: ConfigChoice) -> list[Said]:
    """What flags and variables say; paths in them start at the working directory."""
    return [Said(key, value, origin, Path.cwd()) for key, value, origin in choice.values]


def files_around(paths: Sequence[str], configs: Configs) -> list[Path]:
    """The configuration files that runs over the paths read, understood or not: the closest above each path,
    and those in the folders that are searched below it."""
    if configs.choice.isolated or configs.choice.file is not None:
        return [Path(absolute(configs.choice.file))] if configs.choice.file else []
    found: dict[Path, None] = {}
    for path in paths:
        root = Path(absolute(path))
        above = (folder / FILE for folder in (root, *root.parents))
        found.update(dict.fromkeys(itertools.islice(filter(_states_something, above), 1)))
        found.update(dict.fromkeys(_files_below(root, configs)))
    return list(found)


def _files_below(root: Path, configs: Configs) -> Iterator[Path]:
    pending = [(root, defaults(root))]
    while pending:
        folder, settings = pending.pop()
        if _states_something(folder / FILE):
            yield folder / FILE
        with contextlib.suppress(UsageError):  # not understood: what lies below is searched as above
            settings = configs.of_folder(folder)
        with contextlib.suppress(OSError):
            inner = [entry for entry in sorted(folder.iterdir(), reverse=True) if entry.is_dir()]
            pending.extend((f, settings) for f in inner if settings.excluding(f.as_posix()) is None)


def _states_something(file: Path) -> bool:
    """Whether a file has a table for tilecheck, or cannot be read as one that might."""
    try:
        return _is_file(file) and read_table(file) is not None
    except UsageError:
        return True


def read_table(path: Path) -> dict[str, Any] | None:
    """`[tool.tilecheck]` as TOML has it; None if the file has none.

    Raises:
        UsageError: the file cannot be read, or is no TOML.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {refusal(error)}") from None
    if b"tilecheck" not in data:
        return None
    try:
        tool = read_toml(data.decode()).get("tool", {})
    except ValueError as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    table = tool.get("tilecheck") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{_shown(path)}: `[tool.tilecheck]` is no table")
    return table


def _is_file(path: Path) -> bool:
    """Whether there is a file that can be seen: a folder that may not be entered has none."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_toml(text: str) -> dict[str, Any]:
    """A TOML document.

    Raises:
        ValueError: it is none.
    """
    if sys.version_info >= (3, 11):  # lazy: not every run finds a file
        import tomllib
    else:
        import tomli as tomllib  # lazy: as above
    found: dict[str, Any] = tomllib.loads(text)
    return found


def _shown(path: Path) -> str:
    inner = below(str(path), Path.cwd())
    return path.as_posix() if inner is None else inner
