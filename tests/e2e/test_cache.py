"""The cache of the command line: what a hit costs, what an interrupt leaves, and folders that are odd."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KERNEL = """import cuda.tile as ct


@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
HARD = """import cuda.tile as ct


@ct.kernel
def hard(x, out, A: ct.Constant[int], B: ct.Constant[int], C: ct.Constant[int]):
    i = ct.bid(0)
    j = (i * i * A + i * B * C + (i // A) * (i % B)) % (A * B * C + 7)
    k = (j * j + A * j) // (B + C * C) + (j % A) * B
    ct.store(out, index=(k,), tile=ct.load(x, index=(i,), shape=(1,)))
"""
HEAVY = ("libcst", "networkx", "z3", "rich", "cuda", "numpy", "multiprocessing")


def tilecheck(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilecheck", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=120
    )


def cached(*arguments: str, cwd: Path) -> int:
    """How many kernels of a run come from the cache."""
    found = json.loads(tilecheck("verify", *arguments, "--format", "json", cwd=cwd).stdout)
    count: int = found["summary"]["cached"]
    assert count == sum(kernel["cached"] for kernel in found["kernels"])
    return count


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "entries").glob("*/*"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TILECHECK_CACHE_DIR")
    folder = tmp_path / "project"
    (folder / "kernels").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "kernels" / "k.py").write_text(KERNEL)
    return folder


def test_a_hit_loads_nothing_heavy(project: Path) -> None:
    code = (
        "import io, sys; from tilecheck.cli import main\n"
        "main(['verify', 'kernels'], stdout=io.StringIO(), stderr=io.StringIO())\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )

    def loaded() -> str:
        ran = subprocess.run(
            [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, timeout=60
        )
        return ran.stdout or ran.stderr

    assert "libcst" in loaded()
    assert loaded() == "[]\n"
    (project / "kernels" / "k.py").write_text("# a comment\n" + KERNEL)
    assert loaded() == "[]\n"


def test_where_results_are_kept(project: Path) -> None:
    inner = project / "kernels"
    assert cached("k.py", cwd=inner) == 0
    folder = project / ".tilecheck_cache"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert cached("k.py", cwd=inner) == 1
    assert " \N{MIDDLE DOT} 1 cached \N{MIDDLE DOT} " in tilecheck("verify", "k.py", cwd=inner).stdout
    assert cached("kernels/k.py", cwd=project) == 0  # another path, another report
    assert not list(project.rglob("kernels/.tilecheck_cache"))
    assert ": 4 results, 0.0 MB\n" in tilecheck("cache", "show", cwd=inner).stdout
    assert cached("k.py", "--no-cache", cwd=inner) == 0
    assert "deleted" in tilecheck("cache", "clean", cwd=inner).stdout
    assert not folder.exists()
    assert cached("k.py", cwd=inner) == 0


def test_the_variable_and_the_flag(project: Path, tmp_path: Path) -> None:
    ran = tilecheck("verify", "kernels", cwd=project, TILECHECK_CACHE_DIR=str(tmp_path / "by variable"))
    assert ran.returncode == 0
    assert len(entries(tmp_path / "by variable")) == 2
    tilecheck("verify", "kernels", "--cache-dir", str(tmp_path / "by flag"), cwd=project)
    assert len(entries(tmp_path / "by flag")) == 2
    assert not (project / ".tilecheck_cache").exists()


def test_runs_that_keep_nothing(project: Path) -> None:
    tilecheck("verify", "kernels", "--certify", "proofs", cwd=project)
    tilecheck("verify", "kernels", "--dump-smt", "queries", cwd=project)
    (project / "empty").mkdir()
    tilecheck("check", "empty", cwd=project)
    assert not (project / ".tilecheck_cache").exists()


def test_a_folder_that_cannot_be_written_is_a_warning(project: Path) -> None:
    (project / "taken").write_text("a file\n")
    ran = tilecheck("verify", "kernels", "--cache-dir", "taken", cwd=project)
    assert ran.returncode == 0
    assert ran.stderr.startswith("tilecheck: warning: no results are kept in ")
    assert "1 kernel" in ran.stdout


def test_a_folder_that_is_no_cache_is_not_cleaned(project: Path) -> None:
    ran = tilecheck("cache", "clean", "kernels", cwd=project)
    assert (ran.returncode, "is no cache of tilecheck" in ran.stderr) == (2, True)
    assert (project / "kernels" / "k.py").exists()
    assert tilecheck("cache", "clean", "missing", cwd=project).returncode == 2


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 99, None], ids=["empty", "other", "bytes", "edited"])
def test_damaged_entries_are_made_again(project: Path, damage: bytes | None) -> None:
    assert cached("kernels", cwd=project) == 0
    kept = entries(project / ".tilecheck_cache")
    for path in kept:
        data = path.read_bytes()
        path.write_bytes(data.replace(b"conditional", b"proved") if damage is None else damage)
    assert cached("kernels", cwd=project) == 0
    assert cached("kernels", cwd=project) == 1


def test_runs_at_the_same_time(project: Path) -> None:
    for number in range(6):
        (project / "kernels" / f"k{number}.py").write_text(KERNEL)
    command = [sys.executable, "-m", "tilecheck", "verify", "kernels", "--format", "concise", "-q"]
    runs = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = {run.communicate(timeout=120)[0] for run in runs}
    assert (len(outputs), [run.returncode for run in runs]) == (1, [0, 0, 0])
    assert cached("kernels", cwd=project) == 7


# ---- interrupts ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_ctrl_c_leaves_whole_entries_alone(project: Path, jobs: str) -> None:
    for number in range(3):
        (project / "kernels" / f"k{number}.py").write_text(KERNEL)
    (project / "kernels" / "z.py").write_text(HARD)
    command = [sys.executable, "-m", "tilecheck", "verify", "kernels", jobs]
    with subprocess.Popen(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        folder = project / ".tilecheck_cache"
        deadline = time.monotonic() + 60
        while len(entries(folder)) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)  # now it is at the hard one
        begun = time.monotonic()
        os.killpg(run.pid, signal.SIGINT)
        output = run.communicate(timeout=30)
        spent = time.monotonic() - begun
    assert (run.returncode, *output) == (130, "", "tilecheck: interrupted\n")
    assert spent < 3  # a second on a machine that does nothing else
    kept = entries(folder)
    assert len(kept) == 8  # of each file but the hard one: the file and its kernel
    for path in kept:
        digest, _, data = path.read_bytes().partition(b"\n")
        assert hashlib.sha256(data).hexdigest().encode() == digest
        assert b'"hard"' not in data
