"""Patterns for files and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.config.patterns import Pattern, below

BASE = Path("/project")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("wip", "/project/wip", True),
        ("wip", "/project/kernels/wip", True),
        ("wip", "/project/wip/k.py", False),  # the folder is, and what is in it is not asked
        ("wip/", "/project/wip", True),
        ("*.egg-info", "/project/x.egg-info", True),
        ("*_pb2.py", "/project/gen/a_pb2.py", True),
        ("kernels/wip", "/project/kernels/wip", True),
        ("./kernels/wip", "/project/kernels/wip", True),
        ("/kernels/wip", "/project/kernels/wip", True),
        ("kernels/wip", "/project/other/kernels/wip", False),
        ("kernels/wip", "/elsewhere/kernels/wip", False),
        ("kernels/*", "/project/kernels/k.py", True),
        ("kernels/*", "/project/kernels/deep/k.py", False),
        ("kernels/**", "/project/kernels/deep/k.py", True),
        ("kernels/**", "/project/kernels", True),
        ("kernels/**", "/project/kernels2", False),
        ("kernels/**/*.py", "/project/kernels/k.py", True),
        ("kernels/**/*.py", "/project/kernels/a/b/k.py", True),
        ("**/wip", "/project/wip", True),
        ("**/wip", "/project/a/b/wip", True),
        ("**", "/project/a/b", True),
        ("**/**", "/project/a/b", True),
        ("gen/**/**/k.py", "/project/gen/k.py", True),
        ("gen/gen/k.py", "/project/gen/gen/k.py", True),
        ("gen//k.py", "/project/gen/k.py", True),
        ("gen/k?.py", "/project/gen/k1.py", True),
        ("gen/k?.py", "/project/gen/k12.py", False),
        ("gen/k[0-9].py", "/project/gen/k7.py", True),
        ("gen/k[!0-9].py", "/project/gen/k7.py", False),
        ("gen/k.py", "/project/gen/kxpy", False),  # a dot is a dot
        ("a+(b)/k.py", "/project/a+(b)/k.py", True),
    ],
)
def test_what_a_pattern_matches(pattern: str, path: str, matches: bool) -> None:
    assert Pattern(pattern, BASE, "test").matches(path) is matches


def test_paths_from_a_folder() -> None:
    assert below("/project/a/k.py", BASE) == "a/k.py"
    assert below("/projects/a", BASE) is None
