"""The judge shares nothing with what it judges, and runs no user code."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import tilecheck.reference

FILES = sorted(Path(tilecheck.reference.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_imports_its_own_package_numpy_and_the_standard_library(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            names = [node.module or ""]
        else:
            continue
        for name in names:
            root = name.partition(".")[0]
            # The overlay holds bytes by the names of files, and knows nothing of what they say.
            own = name.startswith("tilecheck.reference") or name == "tilecheck.overlay"
            assert own or root == "numpy" or root in sys.stdlib_module_names
            assert root not in ("importlib", "runpy", "inspect", "subprocess", "pickle")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_runs_no_user_code(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "compile", "__import__")
