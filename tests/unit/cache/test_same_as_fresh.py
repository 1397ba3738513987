"""Whatever is edited, a run with the cache says what a run without it says."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tilecheck.cache.results import Cache
from tilecheck.cache.store import MemoryStore
from tilecheck.model import Report
from tilecheck.options import Options
from tilecheck.verify.pipeline import verify_paths, verify_source

SIZES = "SHIFT = 0\nTILE = 64\nHALF = TILE // 2\n"
HELPERS = """from sizes import SHIFT


def moved(i):
    return i + SHIFT


def halved(i):
    return i // 2
"""
KERNELS = '''"""Some kernels."""

import cuda.tile as ct

import helpers
from helpers import moved
from sizes import HALF, TILE

try:
    from faster import TILE as WIDTH
except ImportError:
    WIDTH = TILE


@ct.kernel
def copy(x, out):  # nothing special
    i = ct.bid(0)
    ct.store(out, index=(moved(i),), tile=ct.load(x, index=(i,), shape=(TILE,)))


# tilecheck: requires grid[0] <= 4 -- it is small
@ct.kernel
def pairs(x, out):
    i = ct.bid(0) // 2
    t = ct.load(x, index=(i,), shape=(HALF,))  # both blocks of a pair
    ct.store(out, index=(i,), tile=t)


@ct.kernel
def calm(x, out):
    i = helpers.halved(ct.bid(0))
    # tilecheck: ignore[TC201] -- both write the same
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(TILE,)))
'''
HOSTS = """import cuda.tile as ct
import torch

from kernels import copy, pairs


def run_copy(stream, x):
    out = torch.empty_like(x)
    ct.launch(stream, (ct.cdiv(x.shape[0], 64),), copy, (x, out))
    return out


def run_pairs(stream, x):
    out = torch.empty(256)
    ct.launch(stream, (2,), pairs, (x, out))
    return out
"""
FILES = {"sizes.py": SIZES, "helpers.py": HELPERS, "kernels.py": KERNELS, "hosts.py": HOSTS}
OPTIONS = Options(budget=200_000)


class Project:
    """A folder of files, with a cache that sees every state of it."""

    def __init__(self, folder: Path, cache: str) -> None:
        self.folder = folder
        self.cache = cache
        for name, text in FILES.items():
            (folder / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def check(self, *paths: str, options: Options = OPTIONS) -> Report:
        """Verify with the cache and without, and compare; the report with the cache."""
        found = verify_paths(paths or (".",), replace(options, cache=self.cache))
        assert plain(found) == plain(verify_paths(paths or (".",), options))
        return found


def plain(report: Report) -> str:
    """Everything in a report but times, and what came from a cache."""
    kernels = tuple(
        replace(k, time_ms=0.0, cached=False, obligations=tuple(replace(o, time_ms=0.0) for o in k.obligations))
        for k in report.kernels
    )
    return repr(replace(report, kernels=kernels, time_s=0.0, parse_time_s=0.0)).replace("),", "),\n")


def cached(report: Report) -> set[str]:
    return {kernel.name for kernel in report.kernels if kernel.cached}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture
def project(place: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The same files each time, and one cache, which remembers all that other tests did to them."""
    for path in (place / "code", place / "sizes.py"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    (place / "code").mkdir()
    monkeypatch.chdir(place / "code")
    made = Project(place / "code", str(place / "cache"))
    first = verify_paths((".",), replace(OPTIONS, cache=made.cache))
    assert {k.name: k.verdict.value for k in first.kernels} == VERDICTS
    return made


VERDICTS = {"copy": "conditional", "pairs": "violated", "calm": "violated"}
ALL = {"copy", "pairs", "calm"}


# ---- what may be used again --------------------------------------------------------------------------------


def test_nothing_changed(project: Project) -> None:
    assert cached(project.check()) == ALL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # nothing special", ""),
        ("# nothing special", "# something quite else"),
        ("import helpers\n", "# helpers\nimport helpers\n\n\n\n"),
        ("\n", "\r\n"),
        ("    ", "  "),
        ("(moved(i),)", "(  # where\n        moved(i),)"),
    ],
    ids=["removed", "changed", "lines", "CRLF", "indent", "inside"],
)
def test_comments_and_layout_are_no_change(project: Project, old: str, new: str) -> None:
    text = (project.folder / "kernels.py").read_bytes().decode()
    (project.folder / "kernels.py").write_bytes(text.replace(old, new).encode())
    again = cached(project.check())
    if old != "    ":  # a comment to tilecheck may speak of another statement now
        assert again == ALL
    assert cached(project.check()) == ALL


def test_a_mark_at_the_beginning_moves_every_place(project: Project) -> None:
    data = (project.folder / "kernels.py").read_bytes()
    (project.folder / "kernels.py").write_bytes(b"\xef\xbb\xbf" + data)
    assert cached(project.check()) == ALL
    (project.folder / "kernels.py").write_bytes(b"# coding: latin-1\n# \xe9\n" + data)
    assert cached(project.check()) == ALL


def test_another_kernel_alone_is_proved_again(project: Project) -> None:
    project.edit("kernels.py", "i = ct.bid(0) // 2", "j = ct.bid(0)\n    i = j // 2")
    assert cached(project.check()) == {"copy", "calm"}
    project.edit("kernels.py", "j = ct.bid(0)\n    i = j // 2", "i = ct.bid(0) // 2")
    assert cached(project.check()) == ALL


def test_one_kernel_of_a_file(project: Project) -> None:
    assert cached(project.check("kernels.py::copy")) == set()  # other launches are seen
    assert cached(project.check("kernels.py::copy")) == {"copy"}
    assert cached(project.check("kernels.py")) <= {"copy", "calm"}


# ---- what may not ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("sizes.py", "SHIFT = 0", "SHIFT = 1"),
        ("sizes.py", "TILE = 64", "TILE = 32"),
        ("helpers.py", "i + SHIFT", "i // 2 + SHIFT"),
        ("helpers.py", "i // 2", "i // 1"),
        ("hosts.py", "(2,), pairs", "(1,), pairs"),
        ("hosts.py", "torch.empty_like(x)", "x"),
        ("kernels.py", "grid[0] <= 4", "grid[0] <= 1"),
        ("kernels.py", "# tilecheck: requires grid[0] <= 4 -- it is small\n", ""),
        ("kernels.py", "    # tilecheck: ignore[TC201] -- both write the same\n", ""),
        ("kernels.py", "def copy(x, out)", "def copy(out, x)"),
        ("kernels.py", "    # tilecheck: ignore", "# tilecheck: ignore"),
    ],
)
def test_what_decides_is_seen(project: Project, name: str, old: str, new: str) -> None:
    project.edit(name, old, new)
    project.check()
    project.edit(name, new, old) if new else (project.folder / name).write_text(FILES[name])
    assert cached(project.check()) == ALL


def test_a_file_that_comes_to_be_imported(project: Project) -> None:
    project.edit("kernels.py", "shape=(TILE,)", "shape=(WIDTH,)")
    before = project.check()
    (project.folder / "faster.py").write_text("TILE = 16\n")
    assert plain(project.check()) != plain(before)
    (project.folder / "faster.py").unlink()
    assert plain(project.check()) == plain(before)


@pytest.mark.parametrize("name", ["sizes/__init__.py", "helpers/__init__.py", "../sizes.py", "__init__.py"])
def test_a_file_that_hides_another(project: Project, name: str) -> None:
    (project.folder / name).parent.mkdir(exist_ok=True)
    (project.folder / name).write_text("SHIFT = 1\nTILE = 64\nHALF = 1\n\n\ndef moved(i):\n    return i // 4\n")
    project.check()
    (project.folder / "sizes.py").unlink()
    project.check()


def test_a_configuration(project: Project) -> None:
    (project.folder / "pyproject.toml").write_text(
        '[[tool.tilecheck.kernel]]\nmatch = "kernels.py::calm"\nrequires = ["grid[0] <= 1"]\n'
    )
    assert {k.name: k.verdict.value for k in project.check().kernels}["calm"] != "violated"
    assert cached(project.check()) == ALL
    project.edit("pyproject.toml", "<= 1", "<= 2")
    assert {k.name: k.verdict.value for k in project.check().kernels}["calm"] == "violated"
    project.edit("pyproject.toml", "[[tool", "# moved\n\n[[tool")
    project.check()
    (project.folder / "pyproject.toml").write_text("[tool.tilecheck]\nbudget = 100\n")
    project.check(options=Options())
    project.edit("pyproject.toml", "100", "200000")
    project.check(options=Options())


def test_options(project: Project) -> None:
    assert not cached(project.check(options=replace(OPTIONS, without=frozenset({"smt"}))))
    assert not cached(project.check(options=replace(OPTIONS, budget=150)))
    assert cached(project.check(options=replace(OPTIONS, jobs=2, undecided_fails=False))) == ALL


def test_kernels_that_swap_and_files_that_move(project: Project) -> None:
    text = (project.folder / "kernels.py").read_text()
    head, one, two, three = re.split(
        r"(?m)^(?=@ct|# tilecheck: req)", text.replace("-- it is small\n@", "-- s\n@")
    )[:4]
    three = "".join(
        re.split(r"(?m)^(?=@ct|# tilecheck: req)", text.replace("-- it is small\n@", "-- s\n@"))[3:]
    )
    (project.folder / "kernels.py").write_text(head + three + "\n\n" + one + two)
    project.check()
    (project.folder / "kernels.py").rename(project.folder / "renamed.py")
    assert not cached(project.check())
    (project.folder / "renamed.py").rename(project.folder / "kernels.py")
    project.check()
    project.edit("kernels.py", "def pairs", "def twice")
    project.check()


def test_links(project: Project) -> None:
    (project.folder / "sizes.py").rename(project.folder / "real.py")
    (project.folder / "sizes.py").symlink_to("real.py")
    project.check()
    (project.folder / "real.py").write_text(SIZES.replace("SHIFT = 0", "SHIFT = 1"))
    project.check()


def test_another_working_directory(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder.parent)
    assert not cached(project.check("code"))
    assert cached(project.check("code")) == ALL
    monkeypatch.chdir(project.folder)
    assert cached(project.check()) == ALL


# ---- at random ---------------------------------------------------------------------------------------------


def _comment(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    if rng.random() < 0.5:
        lines.insert(at, rng.choice(["# note", "", "        # deep", "# tilecheck", "# tilecheck: mut out"]))
    elif '"""' not in lines[at]:
        lines[at] += rng.choice(["  # trailing", "   ", "  # tilecheck: ignore[TC201] -- so"])
    return "\n".join(lines)


def _number(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r"\b\d+\b", text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + rng.choice(["0", "1", "2", "64"]) + text[one.end() :]


def _drop(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def _rename(rng: random.Random, text: str) -> str:
    old, new = rng.sample(["copy", "pairs", "calm", "moved", "halved", "TILE", "HALF", "out", "x"], 2)
    return re.sub(rf"\b{old}\b", new, text)


def _blank(rng: random.Random, text: str) -> str:
    old, new = rng.choice(
        [(", ", ","), (" = ", "="), ("(i,)", "(\n        i,\n    )"), ("\n", "\r\n"), (" // ", "//")]
    )
    return text.replace(old, new)


def _swap(rng: random.Random, text: str) -> str:
    parts = re.split(r"(?m)^(?=@ct\.kernel|def )", text)
    if len(parts) < 3:
        return text
    a, b = rng.sample(range(1, len(parts)), 2)
    parts[a], parts[b] = parts[b], parts[a]
    return "".join(parts)


EDITS: list[Callable[[random.Random, str], str]] = [_comment, _comment, _number, _drop, _rename, _blank, _swap]


@pytest.mark.parametrize("seed", range(4))
def test_random_edits(project: Project, seed: int) -> None:
    rng = random.Random(seed)
    hits = 0
    for _ in range(12):
        name = rng.choice(list(FILES))
        path = project.folder / name
        if rng.random() < 0.25:
            path.write_text(FILES[name])
        else:
            data = rng.choice(EDITS)(rng, path.read_bytes().decode())
            path.write_bytes(data.encode())
        hits += len(cached(project.check()))
    assert hits > 5


# ---- in one process ----------------------------------------------------------------------------------------


def test_a_server_proves_edited_kernels_alone(project: Project) -> None:
    cache = Cache(MemoryStore())
    path = project.folder / "kernels.py"

    def check(text: str) -> Report:
        found = verify_source(text.encode(), str(path), OPTIONS, cache=cache)
        assert plain(found) == plain(verify_source(text.encode(), str(path), OPTIONS))
        return found

    assert not cached(check(KERNELS))
    assert cached(check(KERNELS)) == ALL
    assert cached(check("# new\n" + KERNELS)) == ALL
    assert cached(check(KERNELS.replace("moved(i)", "moved(i + 0)"))) >= {"pairs", "calm"}
    assert cached(check(KERNELS.replace("moved(i)", "moved(i // 2)"))) == {"pairs", "calm"}
