"""From paths to candidate files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilecheck.errors import UsageError
from tilecheck.verify.discover import discover

KERNEL = "import cuda.tile as ct\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "a/k.py": KERNEL,
        "a/b/k2.py": "from cuda import tile\n",
        "a/b/k3.py": "from common import ct\n@ct.kernel\ndef f(): ...\n",
        "a/plain.py": "x = 1\n",
        "a/notes.txt": KERNEL,
        "a/__pycache__/k.py": KERNEL,
        "a/.git/k.py": KERNEL,
        "a/node_modules/k.py": KERNEL,
        "env/pyvenv.cfg": "",
        "env/lib/k.py": KERNEL,
        "bad.py": "def f(:\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _found(*paths: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(candidate.path, candidate.kernels) for candidate in discover(paths).candidates]


def test_directories_are_searched_in_order_and_exclude_what_is_not_the_users(tree: Path) -> None:
    assert _found(".") == [("a/k.py", ()), ("a/b/k2.py", ()), ("a/b/k3.py", ())]
    assert discover(["."]).files == 5
    assert discover(["empty"]).files == 0


def test_an_excluded_directory_that_is_named_is_searched(tree: Path) -> None:
    assert _found("a/node_modules", "env") == [("a/node_modules/k.py", ()), ("env/lib/k.py", ())]


def test_a_file_is_found_once_however_often_it_is_named(tree: Path) -> None:
    (tree / "a/link.py").symlink_to("k.py")
    assert _found("a/k.py", "./a/k.py", "a/link.py", str(tree / "a/k.py"), "a/b/../k.py") == [("a/k.py", ())]


def test_directory_loops_end(tree: Path) -> None:
    (tree / "a/b/up").symlink_to("../..")
    (tree / "a/self").symlink_to(".")
    assert [path for path, _ in _found("a")] == ["a/k.py", "a/b/k2.py", "a/b/k3.py"]


def test_one_kernel_can_be_named(tree: Path) -> None:
    assert _found("a/k.py::f", "a/k.py::g", "a/k.py::f") == [("a/k.py", ("f", "g"))]
    assert _found("a/k.py::f", "a/k.py") == [("a/k.py", ())]
    assert _found("a/k.py", "a/k.py::f") == [("a/k.py", ())]
    assert _found("a/plain.py::f") == [("a/plain.py", ("f",))]


def test_paths_are_shown_relative_to_the_working_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _found(str(tree / "a/k.py")) == [("a/k.py", ())]
    monkeypatch.chdir(tree / "empty")
    assert _found("../a/k.py") == [("../a/k.py", ())]
    assert _found(str(tree / "a/k.py")) == [(f"{tree.as_posix()}/a/k.py", ())]


def test_a_named_file_without_kernels_must_still_be_python(tree: Path) -> None:
    found = discover(["bad.py", "a/plain.py"])
    assert found.candidates == ()
    assert [d.message for d in found.diagnostics] == ["the file is not valid Python: invalid syntax"]
    assert found.unreadable == ("bad.py",)
    assert discover(["."]).diagnostics == ()


def test_a_missing_path_beside_others_is_a_finding(tree: Path) -> None:
    found = discover(["missing.py", "a"])
    assert [path.path for path in found.candidates] == ["a/k.py", "a/b/k2.py", "a/b/k3.py"]
    assert [(d.code, d.site.file) for d in found.diagnostics] == [("TC901", "missing.py")]
    assert "missing.py" not in found.sources


def test_a_broken_link_below_a_directory_is_a_finding(tree: Path) -> None:
    (tree / "a/gone.py").symlink_to("nowhere.py")
    (tree / "a/round.py").symlink_to("round.py")
    assert [d.site.file for d in discover(["a"]).diagnostics] == ["a/gone.py", "a/round.py"]


def test_pipes_do_not_block(tree: Path) -> None:
    os.mkfifo(tree / "a/pipe.py")
    assert [d.message for d in discover(["a"]).diagnostics] == ["the file is not read: not a regular file"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_unreadable_files_and_directories_are_findings(tree: Path) -> None:
    (tree / "a/k.py").chmod(0)
    (tree / "a/b").chmod(0)
    try:
        found = discover(["a"])
        assert [d.message for d in found.diagnostics] == ["the file is not read: permission denied"] * 2
        with pytest.raises(UsageError, match="permission denied"):
            discover(["a/k.py"])
    finally:
        (tree / "a/b").chmod(0o755)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "no path is given"),
        (["missing.py"], "missing.py: no such file or directory"),
        (["missing.py", "gone", "empty"], r"missing.py: no such file or directory \(and 1 more\)"),
        (["missing.py::f"], "missing.py: no such file or directory"),
        (["a::f"], "`a` is a directory"),
        (["a/k.py::"], "no kernel is named"),
        (["a\0b"], "null"),
    ],
)
def test_wrong_invocations(tree: Path, paths: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        discover(paths)
