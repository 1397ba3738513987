"""`python -m tilecheck` in a checkout in which nothing was installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import libcst
import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """import cuda.tile as ct


@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0) // 2
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("tilecheck", "rules", "kernels"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "racy.py").write_text(KERNEL)
    return tmp_path


def _run(checkout: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    # -S: no `.pth` file of an installed copy is read, so no other `tilecheck.rules` is there.
    command = [sys.executable, "-S", "-m", "tilecheck", *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def _dependencies() -> str:
    folders = [str(Path(libcst.__file__).parents[1]), *(p for p in sys.path if "site-packages" in p)]
    return os.pathsep.join(dict.fromkeys(folders))


@pytest.mark.skipif((ROOT / "tilecheck" / "rules").exists(), reason="this checkout holds a copy of its rules")
def test_the_rules_beside_the_package_are_found(checkout: Path) -> None:
    ran = _run(checkout, "verify", "racy.py", "--no-cache", path=_dependencies())
    assert ran.returncode == 1, ran.stderr
    assert "TC201" in ran.stdout
    ran = _run(checkout, "explain", "TC201", path=_dependencies())
    assert ran.returncode == 0
    assert ran.stdout.startswith("# TC201")


def test_a_missing_dependency_is_named_with_the_command_that_installs_it(checkout: Path) -> None:
    ran = _run(checkout, "verify", "racy.py", "--no-cache", path="")
    assert ran.returncode == 2
    assert "is not installed" in ran.stderr
    assert "pip install ." in ran.stderr
    assert "Traceback" not in ran.stderr
