"""The digest of the program, and what a cache folder remembers of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilecheck.cache import program
from tilecheck.cache.store import FolderStore


def _new_process() -> None:
    program.own_digest.cache_clear()
    program.stamp.cache_clear()
    program.DIGESTS.clear()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The one file of a program, old enough not to change within the resolution of its times."""
    path = tmp_path / "own.py"
    path.write_text("x = 1\n")
    monkeypatch.setattr(program, "_own_files", lambda: iter([("own.py", str(path))]))
    monkeypatch.setattr(program, "_YOUNG_NS", 0)
    _new_process()
    yield path
    _new_process()


def _kept(path: Path) -> None:
    before = path.stat()
    path.write_text("x = 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replaced(path: Path) -> None:
    before = path.stat()
    other = path.with_name("other.py")
    other.write_text("x = 2\n")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


CHANGES = (_kept, _replaced, lambda path: path.write_text("x = 10\n"))


def test_a_digest_is_recalled_while_no_file_changes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest, note = program.own_digest(), program.note()
    _new_process()
    monkeypatch.setattr(program, "_digest_of_files", lambda: pytest.fail("the files are read"))
    program.recall(note)
    assert program.own_digest() == digest


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_gives_another_digest(file: Path, change: Callable[[Path], object]) -> None:
    """Also where its size and the time of its text stay the same."""
    digest, note = program.own_digest(), program.note()
    time.sleep(0.02)  # the clock of a file system moves in steps
    change(file)
    _new_process()
    program.recall(note)
    assert program.own_digest() != digest


def test_a_digest_is_not_that_of_a_text_written_meanwhile(file: Path) -> None:
    program.stamp()
    time.sleep(0.02)
    file.write_text("x = 2\n")
    digest, note = program.own_digest(), program.note()
    file.write_text("x = 3\n")
    _new_process()
    program.recall(note)
    assert program.own_digest() != digest


def test_nothing_is_noted_of_files_that_have_just_changed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_YOUNG_NS", 10**12)
    assert program.note() == b""


def test_a_note_that_is_damaged_says_nothing(file: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "cache")
    digest = program.own_digest()
    store.put("ab" * 32, b"a result")
    store.note = program.note()
    assert FolderStore(tmp_path / "cache").note == program.note() != b""
    (tmp_path / "cache" / "program").write_bytes(b"0" * 64 + b"\n" + program.note().replace(b" ", b" 0"))
    _new_process()
    program.recall(FolderStore(tmp_path / "cache").note)
    assert program.own_digest() == digest
