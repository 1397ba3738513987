"""Where results are kept: a folder that many processes may use at once, or the memory of one.

A file of the folder is written whole, under another name, and renamed; it begins with the digest of the rest,
so one that is damaged is as good as none. Whatever goes wrong with the folder costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

_FOLDER = "entries"
_NOTE = "program"
_MOST_BYTES = 256 * 1024 * 1024
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of tilecheck: it may be deleted.\n"
)


class Store(Protocol):
    """Keeps bytes under names; may forget them. `problem` says why nothing could be kept, if so."""

    problem: str

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, data: bytes) -> None: ...

    def trim(self) -> None: ...


class MemoryStore:
    """Keeps results as long as the process lives; of too many, it forgets the oldest. For one thread."""

    problem = ""

    def __init__(self, most_bytes: int = 64 * 1024 * 1024) -> None:
        self._kept: dict[str, bytes] = {}
        self._most = most_bytes
        self._size = 0

    def get(self, key: str) -> bytes | None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._kept[key] = found  # the last that were asked for are forgotten last
        return found

    def put(self, key: str, data: bytes) -> None:
        self._size += len(data) - len(self._kept.pop(key, b""))
        self._kept[key] = data

    def trim(self) -> None:
        while self._size > self._most:
            self._size -= len(self._kept.pop(next(iter(self._kept))))


class FolderStore:
    """Keeps results in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.problem = ""
        self._is_prepared = False

    def _prepare(self) -> None:
        (self.folder / _FOLDER).mkdir(parents=True, exist_ok=True)
        for name, text in (("CACHEDIR.TAG", _TAG), (".gitignore", "*\n")):
            if not (self.folder / name).exists():
                (self.folder / name).write_text(text, encoding="utf-8", newline="\n")
        self._is_prepared = True

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, _FOLDER, key[:2], key[2:])  # noqa: PTH118 - hundreds in a warm run

    def get(self, key: str) -> bytes | None:
        try:
            with open(self._path(key), "rb") as file:  # noqa: PTH123 - as above
                return _checked(file.read())
        except OSError:
            return None

    def put(self, key: str, data: bytes) -> None:
        path = Path(self._path(key))
        if self.problem:
            return
        try:
            if not self._is_prepared:
                self._prepare()
            path.parent.mkdir(exist_ok=True)
            self._write(path, _with_digest(data))
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror or error}"

    def _write(self, path: Path, data: bytes) -> None:
        import tempfile  # lazy: with all that it imports, a good part of a run that keeps nothing

        handle, own = tempfile.mkstemp(dir=path.parent, prefix="new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(own).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(own).unlink()
            raise

    @property
    def note(self) -> bytes:
        """What the program keeps of itself; empty where there is nothing."""
        try:
            return _checked((self.folder / _NOTE).read_bytes()) or b""
        except OSError:
            return b""

    @note.setter
    def note(self, data: bytes) -> None:
        if (self.folder / _FOLDER).exists() and not self.problem:
            with contextlib.suppress(OSError):
                self._write(self.folder / _NOTE, _with_digest(data))

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Every file below the folder that this class may have written."""
        for path in (self.folder / _FOLDER).glob("*/*"):
            with contextlib.suppress(OSError):
                yield path, path.stat()

    def results(self) -> Iterator[bytes]:
        """What is kept, the newest first."""
        for path, _ in sorted(self.entries(), key=lambda e: (-e[1].st_mtime_ns, e[0].as_posix())):
            data = self.get(path.parent.name + path.name)
            if data is not None:
                yield data

    def trim(self, most_bytes: int = _MOST_BYTES) -> None:
        """Forget the oldest results where all together are too large."""
        found = sorted(self.entries(), key=lambda e: e[1].st_mtime_ns)
        size = sum(status.st_size for _, status in found)
        for path, status in found:
            if size <= most_bytes:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                size -= status.st_size

    def clean(self) -> int:
        """Forget everything; how many results there were."""
        count = 0
        for path, _ in list(self.entries()):
            with contextlib.suppress(OSError):
                path.unlink()
                count += 1
        for folder in (*(self.folder / _FOLDER).glob("*"), self.folder / _FOLDER):
            with contextlib.suppress(OSError):
                folder.rmdir()
        for name in ("CACHEDIR.TAG", ".gitignore", _NOTE):
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
        with contextlib.suppress(OSError):
            self.folder.rmdir()
        return count

    def is_cache(self) -> bool:
        """Whether the folder is one of ours."""
        try:
            return (self.folder / "CACHEDIR.TAG").read_text(encoding="utf-8") == _TAG
        except (OSError, UnicodeDecodeError):
            return False


def _with_digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode() + b"\n" + data


def _checked(raw: bytes) -> bytes | None:
    digest, _, data = raw.partition(b"\n")
    return data if hashlib.sha256(data).hexdigest().encode() == digest else None
