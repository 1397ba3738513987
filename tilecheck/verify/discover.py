"""From the paths of a command line to the files that may hold kernels.

Directories are searched for `.py` files whose bytes could make a kernel; files that are named are always
read, unless the run says that patterns keep out these too. A folder that a pattern keeps out is not entered, so
a configuration in it does not count. Nothing here parses a kernel, so a run over files without kernels stays
cheap.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from tilecheck.config.files import Configs
from tilecheck.config.patterns import Pattern, absolute
from tilecheck.config.settings import DEFAULT
from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError, UsageError
from tilecheck.frontend.text.source import cannot_read, check_syntax, read_bytes
from tilecheck.hygiene import unreadable_source
from tilecheck.identifiers import normalised, words_in
from tilecheck.model import Diagnostic
from tilecheck.text import decode
from tilecheck.uses.values import Use

# A kernel needs `cuda.tile` or `triton`; a file that gets them from a sibling still decorates or launches.
MAY_HOLD_KERNELS = re.compile(
    r"cuda\s*\.\s*tile|cuda\s+import|@\s*[\w.]*\bkernel\b|\bct\s*\.\s*(?:kernel|launch)\b"
    r"|\btriton\s*\.\s*jit\b|\btriton\b.*\bimport\b.*\bjit\b|@\s*[\w.]*\bjit\b"
)
# What a host function needs to put work into another order than that of one stream.
MAY_ORDER = re.compile(
    r"\b(?:Stream|ExternalStream|CUDAGraph|make_graphed_callables|launch_pdl|programmatic_dependent_launch)\b"
    r"|\b(?:non_blocking|wait_stream|wait_event|record_stream)\b|\bcuda\s*\.\s*(?:graph|stream)\b"
    r"|\btilecheck\b[^\n]*\bhost\b"
)
MAY_LAUNCH = re.compile(r"\b(?:launch|enqueue)\b|\]\s*\(")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to analyse. `kernels` are the ones asked for by `file.py::kernel` (empty: all). `orders` says
    whether its host functions are asked for. `uses` are the places in it at which some kernel may be launched
    by another expression than its name."""

    path: str
    data: bytes = field(repr=False)
    kernels: tuple[str, ...] = ()
    orders: bool = False
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the paths of one run lead to.

    `files` counts every file that was looked at. `unreadable` are the paths that could not be read or are
    no Python, each with a TC901 in `diagnostics`; `sources` holds the bytes of those that could be read.
    `hosts` are the files that may launch kernels, those of other files included. `skipped` are the files and
    folders in which no kernel is looked for, each with the reason. `left_out` are files whose kernels are not
    to be verified; comments in them still speak of findings there. `texts` are all files that were read, and
    `named` those that were not found in a folder.
    """

    candidates: tuple[Candidate, ...]
    diagnostics: tuple[Diagnostic, ...]
    unreadable: tuple[str, ...]
    files: int
    sources: dict[str, bytes]
    hosts: tuple[Candidate, ...] = ()
    left_out: tuple[Candidate, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    texts: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    named: tuple[str, ...] = ()


def discover(paths: Sequence[str], configs: Configs | None = None) -> Discovery:
    """Find the files to analyse, in the order of `paths`, directories sorted, each file once.

    Raises:
        UsageError: no path is given, a configuration is not understood, or paths are missing or unreadable and
            nothing else could be read.
    """
    if not paths:
        raise UsageError("no path is given", "name files or directories, e.g. `tilecheck verify kernels/`")
    search = _Search(configs or Configs())
    for path in paths:
        search.add_path(path)
    return search.read()


def display_path(path: str) -> str:
    """The path as reports show it: POSIX, relative to the working directory where it lies below it."""
    shown = Path(path)
    if shown.is_absolute():
        try:
            shown = shown.relative_to(Path.cwd())
        except ValueError:
            return shown.as_posix()
    return shown.as_posix()


def split_target(path: str) -> tuple[str, str | None]:
    """`file.py::kernel` in its two halves; a path that exists as it is written is one path."""
    file, separator, kernel = path.partition("::")
    if not file:  # Python would take it for the working directory, as when a variable of a script is not set
        raise UsageError(
            f"`{path}` names no file" if path else "a path is empty", "`.` is the working directory"
        )
    if not separator or os.path.exists(path):  # noqa: PTH110 - a folder may not be readable
        return path, None
    if not kernel:
        raise UsageError(f"no kernel is named in `{path}`", "write `file.py::kernel`")
    return file, normalised(kernel)


@dataclass(slots=True)
class _Found:
    """A file to read. Mutable: the same file may be met again. `kernels` None stands for all of them."""

    shown: str
    path: str
    named: bool
    kernels: list[str] | None

    def meet(self, kernel: str | None, *, named: bool) -> None:
        self.named |= named
        if kernel is None:
            self.kernels = None
        elif self.kernels is not None and kernel not in self.kernels:
            self.kernels.append(kernel)


@dataclass(slots=True)
class _Search:
    """The state of one search. Mutable: it is filled path by path, keyed by device and inode."""

    configs: Configs
    found: dict[tuple[int, int], _Found] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    entered: set[tuple[int, int]] = field(default_factory=set)
    failures: list[tuple[str, SourceError, bool]] = field(default_factory=list)  # path, why, was it named

    def add_path(self, path: str) -> None:
        file, kernel = split_target(path)
        status = self._status(file, named=True)
        if status is None or self._is_kept_out(file):
            return
        if not stat.S_ISDIR(status.st_mode):
            self._add_file(file, status, kernel, named=True)
        elif kernel is None:
            self._walk(file, status)
        else:
            raise UsageError(f"`{file}` is a directory; `::{kernel}` follows the name of a file")

    def _is_kept_out(self, path: str) -> bool:
        found = self.configs.excluding(path) if self.configs.choice.force_exclude else None
        if found is not None:
            self.skipped.append((display_path(path), why_excluded(*found)))
        return found is not None

    def _status(self, path: str, *, named: bool) -> os.stat_result | None:
        try:
            return Path(path).stat()
        except (OSError, ValueError) as error:
            self.failures.append((display_path(path), cannot_read(error), named))
            return None

    def _add_file(self, path: str, status: os.stat_result, kernel: str | None, *, named: bool) -> None:
        key = (status.st_dev, status.st_ino)
        if key not in self.found:
            self.found[key] = _Found(display_path(path), path, named, [kernel] if kernel else None)
        else:
            self.found[key].meet(kernel, named=named)

    def _walk(self, root: str, root_status: os.stat_result) -> None:
        """Read a directory and what is below it; one that a link leads back to is not entered twice.

        Whoever names a folder that a pattern keeps out means what is in it: that pattern does not count there.
        """
        named = absolute(root)
        overridden = {p for p in self.configs.of(named).exclude if p.matches(named)}
        stack = [(root, root_status)]
        while stack:
            folder, status = stack.pop()
            key = (status.st_dev, status.st_ino)
            if key not in self.entered:
                self.entered.add(key)
                stack.extend(reversed(self._enter(folder, overridden)))

    def _enter(self, folder: str, overridden: set[Pattern]) -> list[tuple[str, os.stat_result]]:
        try:
            entries = sorted(Path(folder).iterdir())
        except OSError as error:
            self.failures.append((display_path(folder), cannot_read(error), False))
            return []
        below = []
        place = Path(absolute(folder))
        settings = self.configs.of_folder(place)
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError as error:  # what it is cannot be told
                self.failures.append((display_path(str(entry)), cannot_read(error), False))
                continue
            if not is_folder and entry.suffix != ".py":
                continue
            path = (place / entry.name).as_posix()
            pattern = next((p for p in settings.exclude if p.matches(path) and p not in overridden), None)
            if pattern is not None:
                if pattern.origin != DEFAULT or entry.name[0] not in "._":  # nobody looks for kernels in `.git`
                    self.skipped.append((display_path(str(entry)), why_excluded(path, pattern)))
                continue
            if is_folder and os.path.isfile(entry / "pyvenv.cfg"):  # noqa: PTH113 - a folder may not be readable
                self.skipped.append((display_path(str(entry)), "a virtual environment"))
                continue
            if not is_folder and not settings.includes(path):
                self.skipped.append((display_path(str(entry)), "no pattern of `include` matches it"))
                continue
            status = self._status(str(entry), named=False)
            if status is None:
                continue
            if not is_folder:
                self._add_file(str(entry), status, None, named=False)
            else:
                below.append((str(entry), status))
        return below

    def read(self) -> Discovery:
        candidates: list[Candidate] = []
        hosts: list[Candidate] = []
        sources: dict[str, bytes] = {}
        texts: dict[str, bytes] = {}
        for file in self.found.values():
            try:
                data = read_bytes(file.path)
            except SourceError as error:
                self.failures.append((file.shown, error, file.named))
                continue
            texts[file.shown] = data
            words = words_in(data)
            if MAY_LAUNCH.search(words):
                hosts.append(Candidate(file.shown, data))
            orders = not file.kernels and MAY_ORDER.search(words) is not None
            if file.kernels or orders or MAY_HOLD_KERNELS.search(words):
                candidates.append(Candidate(file.shown, data, tuple(file.kernels or ()), orders))
            else:
                self.skipped.append((file.shown, NO_KERNELS))
                if file.named:
                    self._check_syntax(file.shown, data, sources)
        named = [(path, error) for path, error, is_named in self.failures if is_named]
        if named and not texts:
            path, why = named[0]
            more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
            raise UsageError(f"{path}: {why.message}{more}")
        return Discovery(
            candidates=tuple(candidates),
            diagnostics=tuple(unreadable_source(p, sources.get(p), e) for p, e, _ in self.failures),
            unreadable=tuple(path for path, _, _ in self.failures),
            files=len(self.found),
            sources=sources,
            hosts=tuple(hosts),
            skipped=tuple(self.skipped),
            texts=texts,
            named=tuple(file.shown for file in self.found.values() if file.named),
        )

    def _check_syntax(self, path: str, data: bytes, sources: dict[str, bytes]) -> None:
        """A file that was named and holds no kernel is only checked for being Python."""
        try:
            check_syntax(decode(path, data))
        except SourceError as error:
            self.failures.append((path, error, False))
            sources[path] = data


NO_KERNELS = "nothing in it looks like a kernel, or like a host function of streams or graphs"


def why_excluded(part: str, pattern: Pattern) -> str:
    """What keeps out a path, in words: `part` is the path itself or a folder above it."""
    who = "by default" if pattern.origin == DEFAULT else f"by {pattern.origin}"
    return f"`{display_path(part)}` is excluded {who}: `{pattern.text}`"
