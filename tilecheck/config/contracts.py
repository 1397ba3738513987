"""Contracts and constants for kernels that one cannot edit, as the front end takes them."""

from __future__ import annotations

import re
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tilecheck.config.files import Configs
from tilecheck.config.patterns import absolute, below
from tilecheck.config.settings import KernelEntry, Settings
from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct, UsageError
from tilecheck.frontend.kernels.contracts import check_text
from tilecheck.frontend.kernels.definitions import Definition, Given

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Entry:
    """A pattern for kernels, and what is said of those that it matches."""

    match: str
    given: Given

    def speaks_of(self, path: str, kernel: str) -> bool:
        """Whether a kernel is meant; `path` is its file's, from the folder of the config file."""
        if "::" in self.match:
            return fnmatchcase(f"{path}::{kernel}", self.match)
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return fnmatchcase(f"{module}.{kernel}", self.match)


@dataclass(frozen=True, slots=True)
class Contracts:
    """What one table says of kernels; its patterns start at `folder`."""

    folder: Path
    entries: tuple[Entry, ...] = ()

    def given_to(self, definition: Definition) -> Definition:
        """The definition with what the entries that speak of it say."""
        path = below(absolute(definition.table.file), self.folder)
        if path is None:
            return definition
        given = tuple(e.given for e in self.entries if e.speaks_of(path, definition.name))
        return replace(definition, given=given) if given else definition


def contracts_of(settings: Settings) -> Contracts:
    """What the settings say of kernels.

    Raises:
        UsageError: a contract is not understood.
    """
    return Contracts(settings.folder, tuple(map(_entry, settings.kernels)))


def _entry(entry: KernelEntry) -> Entry:
    try:
        for text in entry.requires:
            check_text(text)
    except UnsupportedConstruct as problem:
        raise UsageError(f"{entry.where}: {problem.construct} is not understood") from None
    is_named = _WILD.search(entry.match) is None
    return Entry(entry.match, Given(entry.requires, entry.constants, entry.reason, entry.site, is_named))


@dataclass(slots=True)
class KernelContracts:
    """The contracts for the kernels of each file. Mutable cache, by the table that they stand in."""

    configs: Configs
    known: dict[Path, Contracts] = field(default_factory=dict)

    def of(self, path: str) -> Contracts:
        """The contracts for the kernels of a file.

        Raises:
            UsageError: one of them is not understood.
        """
        settings = self.configs.of(path)
        if settings.folder not in self.known:
            self.known[settings.folder] = contracts_of(settings)
        return self.known[settings.folder]
