"""`verify --since`, in real repositories: what changed is verified, and so is what cannot be compared."""

from __future__ import annotations

import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tilecheck.cli import main

HEAD = "import cuda.tile as ct\n"
KERNEL = """

@ct.kernel
def {name}(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


def kernels(*names: str) -> str:
    return HEAD + "".join(KERNEL.format(name=name) for name in names)


class Repository:
    """A repository that is the working directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        ran = subprocess.run(
            ["git", *arguments], cwd=self.folder, env={**os.environ, **IDENTITY}, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, **files: str) -> None:
        self.write(**files)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x", "--allow-empty")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "CI", "PRE_COMMIT", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    return Repository(folder)


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["verify", "-j1", *arguments], stdout=out, stderr=err)
    return code, out.getvalue(), err.getvalue()


def looked_at(*paths: str, since: str = "HEAD") -> tuple[list[str], int]:
    """The kernels that were verified, and how many were not."""
    _, out, err = run("--since", since, "--format", "json", *(paths or (".",)))
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return sorted(kernel["name"] for kernel in found["kernels"]), found["summary"]["unchanged"]


def test_only_the_kernel_that_changed(repository: Repository) -> None:
    repository.commit(k=kernels("a", "b"), other=kernels("c"))
    assert looked_at() == ([], 3)
    repository.write(k=kernels("a", "b").replace("* 2", "* 3", 1))
    assert looked_at() == (["a"], 2)
    assert looked_at("k.py::b") == ([], 1)
    assert looked_at("k.py::a") == (["a"], 0)
    assert looked_at("other.py") == ([], 1)


def test_the_summary_says_it_and_calls_nothing_proved(repository: Repository) -> None:
    repository.commit(k=kernels("a", "b"))
    code, out, _ = run("--since", "main", ".")
    assert code == 0
    assert "2 unchanged since main, not looked at" in out
    assert "0 kernels" in out
    assert "proved" not in out
    assert "conditional" not in out
    assert run(".", "--isolated")[1].count("conditional") > 2


def test_layout_and_comments_are_no_change(repository: Repository) -> None:
    repository.commit(k=kernels("a", "b"))
    repository.write(k="# new\n\n" + kernels("a", "b").replace("ct.bid(0)", "ct.bid(0)  # why") + "\n\n# end\n")
    assert looked_at() == ([], 2)
    repository.write(k=kernels("a", "b").replace("\n", "\r\n"))
    assert looked_at() == ([], 2)


def test_comments_that_say_something_are_one(repository: Repository) -> None:
    repository.commit(k=kernels("a", "b"))
    comment = "    # tilecheck: ignore[TC201] -- known\n"
    text = kernels("a", "b").replace("    ct.store", f"{comment}    ct.store", 1)
    repository.write(k=text)
    assert looked_at() == (["a"], 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD + "N = 1\n", HEAD + "N = 2\n"),
        (HEAD, HEAD + "\n\ndef helper(x):\n    return x\n"),
        (HEAD, "import cuda.tile as ct, math\n"),
    ],
)
def test_the_rest_of_the_file_counts(repository: Repository, before: str, after: str) -> None:
    rest = kernels("a", "b").removeprefix(HEAD)
    repository.commit(k=before + rest)
    repository.write(k=after + rest)
    assert looked_at() == (["a", "b"], 0)


@pytest.mark.parametrize(
    "line",
    ["    Config.T = 4\n", "    global Z\n    Z = 1\n", "    (T2 := 4)\n", "    import m\n", "    a = 1\n"],
)
def test_a_kernel_that_says_something_of_its_module(repository: Repository, line: str) -> None:
    """What it binds or changes outside itself, and calls of other kernels, may decide about these."""
    text = kernels("a", "b") + "\n\nclass Config:\n    T = 2\n"
    repository.commit(k=text)
    repository.write(k=text.replace("    i = ct.bid(0)\n", f"    i = ct.bid(0)\n{line}", 1))
    assert looked_at() == (["a", "b"], 0)


def test_two_functions_of_one_name(repository: Repository) -> None:
    """A method that has the name of a kernel is host code, which may launch others."""
    text = kernels("a", "b") + (
        "\n\nclass Op:\n    def b(self, x, out):\n        ct.launch(0, (1,), a, (x, out, 128))\n"
    )
    repository.commit(k=text)
    repository.write(k=text.replace("(1,), a", "(2,), a"))
    assert looked_at() == (["a", "b"], 0)


def test_what_a_kernel_calls(repository: Repository) -> None:
    jitted = "\n\n@triton.jit\ndef {name}(p, N: tl.constexpr):\n    {body}\n"
    head = "import triton\nimport triton.language as tl\n"
    store = "tl.store(p + tl.program_id(0), 0)"
    text = head + jitted.format(name="a", body=store) + jitted.format(name="b", body="a(p, N)")
    text += jitted.format(name="c", body=store)
    text += "\n\ndef run(p):\n    a[(4,)](p, 1)\n    b[(4,)](p, 1)\n    c[(4,)](p, 1)\n"
    repository.commit(k=text)
    assert looked_at() == ([], 3)
    repository.write(k=text.replace(store, "tl.store(p, 0)", 1))
    assert looked_at() == (["a", "b"], 1)
    repository.write(k=text.replace("a(p, N)", store))  # `a` was a function that a kernel calls
    assert looked_at() == (["a", "b", "c"], 0)


def test_what_a_file_imports_counts_and_what_that_imports(repository: Repository) -> None:
    repository.commit(
        k="from m import N\n" + kernels("a"), m="from n import N\n", n="N = 1\n", free=kernels("c")
    )
    repository.write(n="N = 1  # as before\n")
    assert looked_at() == ([], 2)
    repository.write(n="N = 2\n")
    assert looked_at() == (["a"], 1)
    repository.git("checkout", "-q", ".")
    (repository.folder / "n.py").unlink()
    assert looked_at() == (["a"], 1)
    repository.git("checkout", "-q", ".")
    repository.write(**{"n/__init__": "N = 2\n"})  # a package of the same name has come
    assert looked_at() == (["a"], 1)


def test_a_new_package_around_a_file_changes_where_imports_begin(repository: Repository) -> None:
    repository.commit(**{"d/k": "from m import N\n" + kernels("a"), "d/m": "N = 1\n"})
    repository.write(**{"d/__init__": ""})
    assert looked_at() == (["a"], 0)


HOST = """from k import a
import cuda.tile as ct


def run(x, out):
    ct.launch(0, ({grid},), a, (x, out, 128))
"""


def test_launches_in_other_files(repository: Repository) -> None:
    repository.commit(k=kernels("a", "b"), host=HOST.format(grid=1))
    assert looked_at() == ([], 2)
    repository.write(host=HOST.format(grid=2))
    assert looked_at() == (["a"], 1)
    (repository.folder / "host.py").unlink()
    assert looked_at() == (["a"], 1)
    repository.git("checkout", "-q", ".")
    repository.write(more=HOST.format(grid=1))
    assert looked_at() == (["a"], 1)
    repository.git("mv", "host.py", "moved.py")
    (repository.folder / "more.py").unlink()
    assert looked_at() == (["a"], 1)


def test_what_a_launch_reads(repository: Repository) -> None:
    """Values of another module decide; the body of a kernel in it does not."""
    sizes = "N = 1\n"
    repository.commit(
        k=kernels("a", "b"), host="from sizes import N\nimport other\n" + HOST.format(grid="N"), sizes=sizes,
        other=kernels("c"),
    )  # fmt: skip
    repository.write(other=kernels("c").replace("* 2", "* 3"))
    assert looked_at() == (["c"], 2)
    repository.git("checkout", "-q", ".")
    repository.write(sizes="N = 4\n")
    assert looked_at() == (["a"], 2)


def test_the_configuration(repository: Repository) -> None:
    repository.commit(k=kernels("a"))
    config = repository.folder / "pyproject.toml"
    config.write_text("[project]\nname = 'x'\n")
    assert looked_at() == ([], 1)
    config.write_text('[[tool.tilecheck.kernel]]\nmatch = "k.a"\nrequires = ["x.shape[0] >= 1"]\n')
    assert looked_at() == (["a"], 0)
    repository.commit()
    assert looked_at() == ([], 1)
    config.unlink()
    assert looked_at() == (["a"], 0)


def test_untracked_renamed_staged_and_ignored_files(repository: Repository) -> None:
    repository.commit(k=kernels("a"))
    repository.write(new=kernels("b"))
    repository.git("mv", "k.py", "moved.py")
    (repository.folder / ".gitignore").write_text("generated.py\n")
    repository.write(generated=kernels("c"))
    assert looked_at() == (["a", "b", "c"], 0)
    repository.commit()
    assert looked_at() == (["c"], 2)
    assert looked_at(since="HEAD~1") == (["a", "b", "c"], 0)


def test_from_a_subdirectory_and_with_odd_names(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["ü b\n.py", "-x.py", "a'b\".py", "[1].py"]
    for name in names:
        (repository.folder / "sub").mkdir(exist_ok=True)
        (repository.folder / "sub" / name).write_text(kernels("a"))
    repository.commit(k=kernels("b"))
    monkeypatch.chdir(repository.folder / "sub")
    assert looked_at() == ([], 4)
    assert looked_at("..") == ([], 5)
    assert looked_at(str(repository.folder)) == ([], 5)
    for name in names:
        with (repository.folder / "sub" / name).open("a") as file:
            file.write("N = 1\n")
    assert looked_at("..") == (["a"] * 4, 1)


def test_links_are_not_compared(repository: Repository, tmp_path: Path) -> None:
    repository.commit(**{"d/k": kernels("a")})
    (repository.folder / "link").symlink_to("d", target_is_directory=True)
    (repository.folder / "k2.py").symlink_to("d/k.py")
    assert looked_at("link") == (["a"], 0)
    assert looked_at("k2.py") == (["a"], 0)
    (tmp_path / "outside.py").write_text(kernels("b"))
    assert looked_at("d", "../outside.py") == (["b"], 1)
    (tmp_path / "alias").symlink_to(repository.folder, target_is_directory=True)
    assert looked_at(str(tmp_path / "alias" / "d")) == ([], 1)


def test_other_encodings_and_broken_files(repository: Repository) -> None:
    text = "# -*- coding: latin-1 -*-\n# é\n" + kernels("a")
    (repository.folder / "k.py").write_bytes(text.encode("latin-1"))
    repository.commit(broken=kernels("b"))
    assert looked_at() == ([], 2)
    repository.write(broken="import cuda.tile as ct\nx = (\n")
    code, out, _ = run("--since", "HEAD", ".")
    assert code == 3
    assert "TC901" in out
    repository.commit()
    repository.write(broken=kernels("b"))
    assert looked_at() == (["b"], 1)


def test_suppressions_of_kernels_that_were_not_looked_at(repository: Repository) -> None:
    race = KERNEL.format(name="r").replace("ct.bid(0)", "ct.bid(0) // 2")
    race = race.replace("    ct.store", "    # tilecheck: ignore[TC201] -- known\n    ct.store")
    repository.commit(k=kernels("a") + race)
    repository.write(k=kernels("a").replace("* 2", "* 3") + race)
    _, out, _ = run("--since", "HEAD", ".")
    assert "TC902" not in out
    assert "1 unchanged since HEAD" in out


def test_comments_in_files_without_a_changed_kernel_still_count(repository: Repository) -> None:
    """A finding about a changed kernel may stand at its launch, in a file that is as it was."""
    ignore = "    # tilecheck: ignore[TC402] -- known\n    ct.launch"
    host = HOST.format(grid=4).replace("(x, out):\n", "(x):\n    import torch\n    out = torch.empty(128)\n")
    host = host.replace("    ct.launch", ignore)
    repository.commit(k=kernels("a", "b"), host=host, plain="import cuda.tile as ct\n")
    repository.write(k=kernels("a", "b").replace("* 2", "* 3", 1))
    code, found, _ = run("--since", "HEAD", "--format", "json", ".")
    report = json.loads(found)
    assert {(d["code"], d["suppressed"]) for d in report["diagnostics"]} == {("TC402", True)}
    assert (code, report["summary"]["unchanged"]) == (0, 1)


def test_many_files_in_several_processes(repository: Repository) -> None:
    repository.commit(**{f"k{n}": kernels(f"a{n}") for n in range(6)})
    repository.write(k3=kernels("a3").replace("* 2", "* 3"))
    out = io.StringIO()
    main(["verify", "-j2", "--since", "HEAD", "--format", "json", "."], stdout=out, stderr=io.StringIO())
    found = json.loads(out.getvalue())
    assert [kernel["name"] for kernel in found["kernels"]] == ["a3"]
    assert found["summary"]["unchanged"] == 5


def test_a_baseline_keeps_what_was_not_looked_at(repository: Repository) -> None:
    races = kernels("a", "b").replace("ct.bid(0)", "ct.bid(0) // 2")
    repository.write(k=races)
    main(["baseline", "write", "--reason", "known", "."], stdout=io.StringIO(), stderr=io.StringIO())
    repository.commit()
    repository.write(k=races.replace("ct.bid(0) // 2", "ct.bid(0)", 1))
    code, _, err = run("--since", "HEAD", ".")
    assert code == 0
    assert "dropped 1 entry" in err
    kept = json.loads((repository.folder / ".tilecheck-baseline.json").read_text())["findings"]
    assert [entry["kernel"] for entry in kept] == ["b"]


# ---- what is wrong with the invocation -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "git has no revision `nothing`"),
        ("-x", "`-x` names no revision"),
        ("--output=x", "names no revision"),
        ("", "names no revision"),
        ("HEAD:k.py", "git has no revision"),
        ("HEAD^{tree}", "git has no revision"),
        ("a b\nc", "git has no revision"),
    ],
)
def test_a_revision_that_is_none(repository: Repository, name: str, says: str) -> None:
    repository.commit(k=kernels("a"))
    code, out, err = run(f"--since={name}", ".")
    assert (code, out) == (2, "")
    assert says in err
    assert "hint:" in err
    assert sorted(path.name for path in repository.folder.iterdir()) == [".git", "k.py"]


def test_a_shallow_clone(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit(k=kernels("a"))
    first = repository.git("rev-parse", "HEAD").strip()
    repository.commit(k=kernels("b"))
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth=1", f"file://{repository.folder}", str(clone))
    monkeypatch.chdir(clone)
    code, _, err = run("--since", first, ".")
    assert code == 2
    assert "shallow" in err
    assert looked_at() == ([], 1)


def test_no_repository_and_no_git(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.py").write_text(kernels("a"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    code, _, err = run("--since", "HEAD", ".")
    assert code == 2
    assert "not a git repository" in err
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    code, _, err = run("--since", "HEAD", ".")
    assert code == 2
    assert "git" in err
    assert "cannot be run" in err


def test_no_commit_yet(repository: Repository) -> None:
    repository.write(k=kernels("a"))
    code, _, err = run("--since", "HEAD", ".")
    assert code == 2
    assert "git has no revision `HEAD`" in err


def test_a_new_assignment_in_another_module_counts(repository: Repository) -> None:
    repository.commit(a=kernels("first"), cfg="D = 1\n", main="import cfg\n")
    assert looked_at(".") == ([], 1)
    repository.write(main="import cfg\ncfg.D = 2\n")
    assert looked_at(".") == (["first"], 0)
