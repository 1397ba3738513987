"""Which program gave a result: a digest of tilecheck's own files and of what it stands on.

A version number is not enough, because a development install keeps its number while its files change. The
digest is of names and contents, so it is the same on every machine with the same tilecheck.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import tilecheck
from tilecheck.installed import version_of

_STANDS_ON = ("z3-solver", "libcst", "networkx", "numpy")


_YOUNG_NS = 2_000_000_000  # a file may change again within the resolution of its times


DIGESTS: dict[str, str] = {}  # what earlier runs noted, by stamps


@functools.lru_cache(maxsize=1)
def own_digest() -> str:
    """The SHA-256 of tilecheck's own Python files, rules included, in this process."""
    at = stamp()  # before the files are read: if one changes meanwhile, this stamp comes never again
    return DIGESTS.get(at) or _digest_of_files()


def recall(note: bytes) -> None:
    """Take the digest from what an earlier run noted, if none of the files has changed since.

    Python itself decides by less, size and seconds, whether the bytecode that it runs is that of a file.
    """
    at, _, digest = note.decode("ascii", "replace").partition(" ")
    if at:
        DIGESTS[at] = digest


def note() -> bytes:
    """What later runs may recall; nothing if that is not certain."""
    return f"{stamp()} {own_digest()}".encode() if stamp() else b""


@functools.lru_cache(maxsize=1)
def stamp() -> str:
    """The files by their places, sizes and times; empty if one has changed just now."""
    whole = hashlib.sha256()
    newest = 0
    for _, path in sorted(_own_files()):
        status = os.stat(path)  # noqa: PTH116 - hundreds of files, at the start of every run
        newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
        seen = f"{path} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n"
        whole.update(seen.encode("utf-8", "surrogateescape"))
    return whole.hexdigest() if newest < time.time_ns() - _YOUNG_NS else ""


def _digest_of_files() -> str:
    whole = hashlib.sha256(tilecheck.__version__.encode())
    for name, path in sorted(_own_files()):
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            data = file.read()
        whole.update(f"{name} {len(data)}:".encode())
        whole.update(data)
    return whole.hexdigest()


def _own_files() -> Iterator[tuple[str, str]]:
    package = str(Path(tilecheck.__file__).parent)
    yield from _files(package, "")
    from tilecheck import rules  # lazy: of a checkout, they lie beside the package

    folder = str(Path(rules.__file__).parent)
    if os.path.dirname(folder) != package:  # noqa: PTH120 - as above
        yield from _files(folder, "rules/")


def _files(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if (
                    entry.name != "__pycache__" and prefix + entry.name != "kernels"
                ):  # the library's: input, not program
                    yield from _files(entry.path, f"{prefix}{entry.name}/")
            elif entry.name.endswith(".py"):
                yield prefix + entry.name, entry.path


@functools.lru_cache(maxsize=1)
def engine_digest() -> str:
    """Everything beside the input and the options that a verdict may depend on."""
    parts = [own_digest(), sys.version, sys.platform, str(sys.maxsize), str(sys.flags.optimize)]
    parts += [f"{name} {version_of(name) or 'none'}" for name in _STANDS_ON]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
