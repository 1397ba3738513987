"""Memory of processes that are ours alone."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator

import pytest

from tilecheck import garbage


class Library:
    """Stands for the C library; notes what is set."""

    def __init__(self) -> None:
        self.set: list[tuple[int, int]] = []

    def mallopt(self, option: int, value: int) -> int:
        self.set.append((option, value))
        return 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """The library that is asked, in a process of which nothing is known yet."""
    found = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: found)
    monkeypatch.setattr("sys.platform", "linux")
    garbage.keep_freed.cache_clear()
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield found
    gc.set_threshold(*before)
    garbage.keep_freed.cache_clear()


def test_a_program_keeps_what_is_freed(library: Library) -> None:
    garbage.collect_rarely()
    garbage.keep_freed()
    garbage.keep_freed()
    assert [option for option, _ in library.set] == [-1, -2, -3]


def test_a_library_leaves_that_to_its_caller(library: Library) -> None:
    garbage.keep_freed()
    assert library.set == []


def test_other_libraries_are_left_alone(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    garbage.collect_rarely()
    garbage.keep_freed()
    assert library.set == []
