from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.lsp.uris import path_of, uri_of


@pytest.mark.parametrize("name", ["k.py", "a b/é.py", "100%/k.py", "a#b?.py"])
def test_there_and_back(tmp_path: Path, name: str) -> None:
    path = (tmp_path / name).as_posix()
    assert path_of(uri_of(path), "/nowhere") == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("untitled:Untitled-1", "/root/Untitled-1.py"),
        ("vscode-notebook-cell:/home/a/n.ipynb#x", "/root/home-a-n.py"),
        ("untitled:", "/root/document.py"),
        ("file:///home/a%20b/k.py", "/home/a b/k.py"),
        ("file://localhost/home/k.py", "/home/k.py"),
    ],
)
def test_documents_without_a_file_lie_in_the_root(uri: str, path: str) -> None:
    assert path_of(uri, "/root") == path
