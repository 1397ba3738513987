"""Versions of installed packages, read from the names of their folders."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from tilecheck.installed import in_folders, version_of


@pytest.fixture
def _afresh() -> None:
    version_of.cache_clear()
    in_folders.cache_clear()


@pytest.mark.parametrize("package", ["z3-solver", "libcst", "networkx", "numpy"])
def test_the_version_is_that_of_the_installer(package: str) -> None:
    assert version_of(package) == metadata.version(package)


def test_a_package_that_is_not_there_has_no_version() -> None:
    assert version_of("no-such-package-anywhere") is None


@pytest.mark.usefixtures("_afresh")
def test_the_first_folder_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, version in (("one", "1.5rc1"), ("two", "2.0")):
        (tmp_path / folder / f"Some_Thing-{version}.dist-info").mkdir(parents=True)
    paths = [str(tmp_path / name) for name in ("missing", "one", "two")]
    monkeypatch.setattr(sys, "path", [*paths, *sys.path])
    assert version_of("some-thing") == "1.5rc1"


@pytest.mark.usefixtures("_afresh")
def test_a_package_without_such_a_folder_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "older.egg-info").write_text("Metadata-Version: 2.1\nName: older\nVersion: 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert version_of("older") == "3"
