"""The hook as users have it: pre-commit clones this repository and installs it apart from all else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("pre_commit", reason="pre-commit is not installed")

RACY = """import cuda.tile as ct


@ct.kernel
def racy(out, T: ct.Constant[int]):
    b = ct.bid(0)
    ct.store(out, index=(b // 2,), tile=ct.zeros((T,), dtype=ct.float32))
"""
_NO_INDEX = re.compile(
    r"Could not fetch URL|No matching distribution|Failed to establish a new connection|name resolution"
    r"|ReadTimeout"
)


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout of git")
def test_the_hook_of_this_repository_is_installed_and_finds_a_race(tmp_path: Path) -> None:
    if git(ROOT, "ls-files", ".pre-commit-hooks.yaml") == "":
        pytest.skip("the manifest is not committed")
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q")
    revision = git(ROOT, "rev-parse", "HEAD")
    (repository / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {ROOT}\n    rev: {revision}\n    hooks:\n      - id: tilecheck\n"
    )
    (repository / "racy.py").write_text(RACY)
    git(repository, "add", ".")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"PRE_COMMIT_HOME": str(tmp_path / "home"), "PIP_RETRIES": "1", "PIP_TIMEOUT": "10"}
    ran = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"],
        cwd=repository, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    if ran.returncode == 3 and _NO_INDEX.search(ran.stdout):
        pytest.skip("the package index cannot be reached")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "racy.py:7:5: error[TC201] two blocks write the same element of `out` (racy)" in ran.stdout
