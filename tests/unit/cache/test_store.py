"""Folders and memory that keep results."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tilecheck.cache.evidence import Evidence, Files, FileText
from tilecheck.cache.store import FolderStore, MemoryStore

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64


def test_what_is_put_is_found_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "a" / "b")
    assert store.get(ONE) is None
    assert not (tmp_path / "a").exists()
    store.put(ONE, b"one")
    store.put(TWO, b"two\nlines")
    store.put(ONE, b"uno")
    assert (store.get(ONE), store.get(TWO), store.get(THREE)) == (b"uno", b"two\nlines", None)
    assert FolderStore(tmp_path / "a" / "b").get(ONE) == b"uno"
    assert len(list((tmp_path / "a").rglob("*/entries/*/*"))) == 2  # and no file that is half written


@pytest.mark.parametrize("damage", [b"", b"uno", b"\n", b"0" * 64 + b"\nuno"])
def test_what_is_damaged_is_not_there(tmp_path: Path, damage: bytes) -> None:
    store = FolderStore(tmp_path)
    store.put(ONE, b"uno")
    ((path, _),) = store.entries()
    path.write_bytes(damage)
    assert store.get(ONE) is None
    assert list(store.results()) == []
    path.write_bytes(b"")
    store.put(ONE, b"uno")
    assert store.get(ONE) == b"uno"


def test_the_oldest_are_forgotten_first(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for number, key in enumerate((TWO, ONE, THREE)):
        store.put(key, b"x" * 1000)
        for path, _ in store.entries():
            if path.parent.name == key[:2]:
                os.utime(path, (number, number))
    assert [len(data) for data in store.results()] == [1000, 1000, 1000]
    store.trim(2500)
    assert (store.get(TWO), store.get(ONE) is None, store.get(THREE) is None) == (None, False, False)
    store.trim(0)
    assert list(store.entries()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path)
    store.put(ONE, b"uno")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.put(TWO, b"two")
    assert [path.parent.name for path, _ in store.entries()] == ["11"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = FolderStore(tmp_path / "file")
    store.put(ONE, b"uno")
    assert store.problem.startswith(f"{tmp_path / 'file'}: ")
    assert store.get(ONE) is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="modes do not bind here")
def test_a_folder_that_can_only_be_read(tmp_path: Path) -> None:
    FolderStore(tmp_path / "kept").put(ONE, b"uno")
    for path in (tmp_path / "kept").rglob("*"):
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    store = FolderStore(tmp_path / "kept")
    assert store.get(ONE) == b"uno"
    store.put(TWO, b"two")
    assert store.problem


def test_cleaning_leaves_what_others_put_there(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "kept")
    store.put(ONE, b"uno")
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    assert store.is_cache()
    assert store.clean() == 1
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["mine.txt"]
    assert not store.is_cache()
    other = FolderStore(tmp_path / "other")
    other.put(ONE, b"uno")
    other.clean()
    assert not (tmp_path / "other").exists()


def test_memory_forgets_what_was_not_asked_for_longest() -> None:
    store = MemoryStore(25)
    store.put(ONE, b"x" * 10)
    store.put(TWO, b"x" * 10)
    assert store.get(ONE) is not None
    store.put(THREE, b"x" * 10)
    store.trim()
    assert [store.get(key) is None for key in (ONE, TWO, THREE)] == [False, True, False]


def test_evidence_that_names_no_path_does_not_hold(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("a\0b", "x" * 5000, str(tmp_path / "pipe"), str(tmp_path)):
        text = FileText(path, "0" * 64, "", path)
        assert not Files().holds(Evidence((text,)))
        assert not Files().holds(Evidence((), present=(path,)))
