"""The hooks, run by the real pre-commit on throw-away repositories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
yaml = pytest.importorskip("yaml", reason="pre-commit is not installed")
pytest.importorskip("pre_commit", reason="pre-commit is not installed")

GOOD = """import cuda.tile as ct


@ct.kernel
def good(out, T: ct.Constant[int]):
    b = ct.bid(0)
    ct.store(out, index=(b,), tile=ct.zeros((T,), dtype=ct.float32))
"""
RACY = GOOD.replace("(b,)", "(b // 2,)").replace("good", "racy")
RACE = "error[TC201] two blocks write the same element of `out` (racy)"


def hook(name: str, **more: object) -> dict[str, object]:
    """A hook of the manifest, as one that runs the tilecheck of this environment: nothing is installed."""
    (found,) = (entry for entry in yaml.safe_load(MANIFEST.read_text()) if entry["id"] == name)
    program, _, arguments = found["entry"].partition(" ")
    entry = f"{Path(sys.executable).parent / program} {arguments}"
    return found | {"language": "system", "entry": entry} | more


class Repository:
    """A git repository with hooks; its files are staged when the hooks run."""

    def __init__(self, folder: Path, *hooks: dict[str, object]) -> None:
        self.folder = folder
        self.home = folder.parent / "pre-commit"
        self.write(".pre-commit-config.yaml", json.dumps({"repos": [{"repo": "local", "hooks": list(hooks)}]}))
        self._git("init", "-q")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str, cwd: str = ".") -> subprocess.CompletedProcess[str]:
        self._git("add", ".")
        return self.pre_commit("run", "--color", "never", *arguments, cwd=cwd)

    def pre_commit(self, *arguments: str, cwd: str = ".") -> subprocess.CompletedProcess[str]:
        return self._call(sys.executable, "-m", "pre_commit", *arguments, cwd=cwd)

    def commit(self, *, cwd: str, stage: bool = True) -> subprocess.CompletedProcess[str]:
        if stage:
            self._git("add", ".")
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return self._call("git", *author, "commit", "-m", "kernels", cwd=cwd)

    def _call(self, *command: str, cwd: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if k not in ("PRE_COMMIT", "TILECHECK_FORMAT")}
        environment["PRE_COMMIT_HOME"] = str(self.home)
        return subprocess.run(
            command, cwd=self.folder / cwd, capture_output=True, text=True, check=False, env=environment
        )

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "repository").mkdir()
    return Repository(tmp_path / "repository", hook("tilecheck"))


def test_the_manifest_is_valid() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [entry["id"] for entry in yaml.safe_load(MANIFEST.read_text())] == ["tilecheck", "tilecheck-verify"]


def test_a_race_fails_the_hook_with_its_report_until_it_is_fixed(repository: Repository) -> None:
    repository.write("kernels/good.py", GOOD)
    repository.write("kernels/racy.py", RACY)
    ran = repository.run()
    assert ran.returncode == 1
    assert "- hook id: tilecheck\n- exit code: 1\n" in ran.stdout
    assert f"\nkernels/racy.py:7:5: {RACE}\n" in ran.stdout  # one line, as PRE_COMMIT asks for
    assert "2 kernels: 1 conditional, 1 violated" in ran.stdout
    assert ran.stderr == ""
    repository.write("kernels/racy.py", RACY.replace("b // 2", "b"))
    ran = repository.run()
    assert ran.returncode == 0
    assert ran.stdout.count("Passed") == 1


def test_a_commit_is_refused_and_then_made(repository: Repository) -> None:
    """By git itself, from a subdirectory; what is only in the working tree does not count."""
    assert repository.pre_commit("install").returncode == 0
    repository.write("kernels/k.py", RACY)
    refused = repository.commit(cwd="kernels")
    assert refused.returncode == 1
    assert f"kernels/k.py:7:5: {RACE}" in refused.stdout + refused.stderr
    repository.write("kernels/k.py", RACY.replace("b // 2", "b"))
    assert repository.commit(cwd="kernels", stage=False).returncode == 1
    made = repository.commit(cwd="kernels")
    assert made.returncode == 0, made.stdout + made.stderr


def test_it_runs_from_a_subdirectory(repository: Repository) -> None:
    repository.write("kernels/deep/racy.py", RACY)
    repository.write("pyproject.toml", '[tool.tilecheck]\nextend-exclude = ["kernels/wip"]\n')
    repository.write("kernels/wip/racy.py", RACY)
    ran = repository.run(cwd="kernels/deep")
    assert ran.returncode == 1
    assert [line for line in ran.stdout.splitlines() if "TC201" in line] == [
        f"kernels/deep/racy.py:7:5: {RACE}"
    ]
    ran = repository.run("--files", "racy.py", cwd="kernels/deep")
    assert f"kernels/deep/racy.py:7:5: {RACE}" in ran.stdout


def test_nested_configurations_and_excluded_files_count_as_on_the_command_line(repository: Repository) -> None:
    """Nothing is found by the hook that `tilecheck check .` does not find, and the other way round."""
    repository.write("pyproject.toml", '[tool.tilecheck]\nextend-exclude = ["old", "gen/wip/**"]\n')
    repository.write(
        "gen/pyproject.toml", '[tool.tilecheck]\nignore = ["TC201"]\nextend-exclude = ["scratch.py"]\n'
    )
    repository.write("old/pyproject.toml", "[tool.tilecheck]\nnonsense = 1\n")
    repository.write("lib/pyproject.toml", "[tool.other]\nx = 1\n")
    for name in ("old/k.py", "gen/k.py", "gen/scratch.py", "lib/k.py", "build/k.py", "top.py"):
        repository.write(name, RACY)
    ran = repository.run()
    assert ran.returncode == 1, ran.stdout
    by_hook = [line for line in ran.stdout.splitlines() if "TC201" in line or line.startswith("3 kernels")]
    command = [sys.executable, "-m", "tilecheck", "check", ".", "--format", "concise"]
    ran = subprocess.run(command, cwd=repository.folder, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "")

    def timeless(lines: list[str]) -> list[str]:
        return sorted(line.partition(" · ")[0] for line in lines)

    assert timeless(by_hook) == timeless(ran.stdout.splitlines())
    assert timeless(by_hook) == ["3 kernels: 3 violated", f"lib/k.py:7:5: {RACE}", f"top.py:7:5: {RACE}"]


def test_very_many_files_are_taken_in_several_calls(repository: Repository) -> None:
    for number in range(1500):
        repository.write(f"{'long' * 30}/{'name' * 20}{number}.py", "x = 1\n")
    repository.write("zz/racy.py", RACY)
    ran = repository.run()
    assert ran.returncode == 1
    assert f"zz/racy.py:7:5: {RACE}" in ran.stdout
    assert ran.stdout.count(" files · ") > 1


def test_a_terminal_gets_no_progress(repository: Repository) -> None:
    """pre-commit runs hooks on a terminal of its own where it may colour what they print."""
    repository.write("racy.py", RACY)
    ran = repository.run("--color", "always")
    assert ran.returncode == 1
    assert "\r" not in ran.stdout.replace("\r\n", "\n")
    assert "TC201" in ran.stdout


def test_a_tree_is_verified_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    repository = Repository(
        tmp_path / "repository", hook("tilecheck-verify", args=["kernels/"], files="^kernels/")
    )
    repository.write("kernels/good.py", GOOD)
    repository.write("kernels/racy.py", RACY)
    repository.write("elsewhere.py", RACY)
    ran = repository.run()
    assert ran.returncode == 1
    assert f"kernels/racy.py:7:5: {RACE}" in ran.stdout
    assert "elsewhere" not in ran.stdout
    assert "\nconditional  kernels/good.py:5  good\n" in ran.stdout
    ran = repository.run("--files", "kernels/good.py")  # another kernel of the tree is racy: this commit fails
    assert ran.returncode == 1
    ran = repository.run("--files", "elsewhere.py")
    assert (ran.returncode, ran.stdout.count("Skipped")) == (0, 1)
    (repository.folder / "kernels/racy.py").unlink()
    assert repository.run().returncode == 0
