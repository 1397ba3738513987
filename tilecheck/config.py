"""`[tool.tilecheck]` of a `pyproject.toml`: so far contracts and constants for kernels that one cannot edit.

The closest file above a kernel's own that has the table counts, and no other is merged into it. Whatever is not
understood ends the run: a typing error must not leave a kernel without its contract in silence.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tilecheck.errors import UnsupportedConstruct, UsageError, refusal
from tilecheck.frontend.contracts import check_text
from tilecheck.frontend.definitions import Definition, Given
from tilecheck.model import Site, Span

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "pyproject.toml"
_TABLE = "tool.tilecheck.kernel"
_HEADER = re.compile(rb"^[ \t]*\[\[\s*tool\s*\.\s*tilecheck\s*\.\s*kernel\s*\]\][^\n]*", re.MULTILINE)
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One `[[tool.tilecheck.kernel]]`: which kernels it speaks of, and what it says of them."""

    match: str
    given: Given

    def speaks_of(self, path: str, kernel: str) -> bool:
        """Whether a kernel is meant; `path` is its file's, from the folder of the config file."""
        if "::" in self.match:
            return fnmatchcase(f"{path}::{kernel}", self.match)
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return fnmatchcase(f"{module}.{kernel}", self.match)


@dataclass(frozen=True, slots=True)
class Config:
    """What one file says; its patterns start at `folder`."""

    folder: Path
    kernels: tuple[Entry, ...] = ()

    def given_to(self, definition: Definition) -> Definition:
        """The definition with what the entries that speak of it say."""
        if not self.kernels:
            return definition
        try:
            path = Path(definition.table.file).resolve().relative_to(self.folder.resolve()).as_posix()
        except ValueError:
            return definition
        given = tuple(e.given for e in self.kernels if e.speaks_of(path, definition.name))
        return replace(definition, given=given) if given else definition


@dataclass(slots=True)
class Configs:
    """The configs above files. Mutable cache, by folder."""

    known: dict[Path, Config | None] = field(default_factory=dict)

    def of(self, file: str) -> Config | None:
        """The config for a file: the closest above it."""
        return self._of(Path(file).resolve().parent)

    def _of(self, folder: Path) -> Config | None:
        if folder not in self.known:
            own = load(folder / FILE) if (folder / FILE).is_file() else None
            above = self._of(folder.parent) if own is None and folder.parent != folder else None
            self.known[folder] = own or above
        return self.known[folder]


def load(path: Path) -> Config | None:
    """The config in a file; None if it has no table for tilecheck.

    Raises:
        UsageError: the file cannot be read, or something in the table is not understood.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {refusal(error)}") from None
    if b"tilecheck" not in data:
        return None
    try:
        table = tomllib.loads(data.decode()).get("tool", {}).get("tilecheck")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    if table is None:
        return None
    where = f"{path}: `[tool.tilecheck]`"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is no table")
    _check_keys(table, ("kernel",), where)
    entries = table.get("kernel", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{where}: `kernel` is no array of tables", f"write `[[{_TABLE}]]`")
    places = [Span(found.start(), found.end()) for found in _HEADER.finditer(data)]
    if len(places) != len(entries):  # written in another of TOML's ways
        places = [Span(0, 0)] * len(entries)
    sites = [Site(path.as_posix(), place) for place in places]
    read = (_entry(*item, path) for item in enumerate(zip(entries, sites, strict=True), 1))
    return Config(path.parent, tuple(read))


def _entry(number: int, item: tuple[dict[str, Any], Site], path: Path) -> Entry:
    table, site = item
    match = table.get("match")
    named = f' (match = "{match}")' if isinstance(match, str) else ""
    where = f"{path}: `[[{_TABLE}]]` number {number}{named}"
    _check_keys(table, ("match", "requires", "constants", "reason"), where)
    requires, constants = table.get("requires", []), table.get("constants", {})
    for what, right in (
        ("`match` must be a text", isinstance(match, str) and bool(match)),
        ("`requires` must be a list of texts", _is_list_of(requires, lambda text: isinstance(text, str))),
        ("`constants` must be a table", isinstance(constants, dict)),
        ("`reason` must be a text", isinstance(table.get("reason", ""), str)),
        ("neither `requires` nor `constants` is given", bool(requires or constants)),
    ):
        if not right:
            raise UsageError(f"{where}: {what}")
    try:
        for text in requires:
            check_text(text)
    except UnsupportedConstruct as problem:
        raise UsageError(f"{where}: {problem.construct} is not understood") from None
    for name, value in constants.items():
        if not name.isidentifier() or not isinstance(value, int):
            raise UsageError(f"{where}: `{name} = {value!r}` is no integer or truth value of a parameter")
    is_named = _WILD.search(str(match)) is None
    given = Given(tuple(requires), tuple(constants.items()), table.get("reason") or None, site, is_named)
    return Entry(str(match), given)


def _is_list_of(value: object, is_right: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and all(map(is_right, value))


def _check_keys(table: Iterable[str], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(f'`{k}`' for k in known)}"
            raise UsageError(f"{where} has no key `{key}`", hint)
