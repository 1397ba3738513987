"""A function finds the record of its own text, and of no other."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import types

import pytest

from tilecheck.cache.store import FolderStore
from tilecheck.errors import LaunchRefused, UsageError
from tilecheck.jit import records, verdicts
from tilecheck.jit.launch import guard_of, launch
from tilecheck.jit.modules import kernel_function
from tilecheck.verify.pipeline import verify_paths

KERNEL = """
import cuda.tile as ct
import helpers
from helpers import WIDTH, place as where

TILE = 128
AXES = (0, 1)


def half(i):
    return i // 2


def same(i, by=1):
    return i * by


class Config:
    STEP = 1


@ct.kernel
def copy(x, out):
    i = same(where(ct.bid(AXES[0]))) * Config.STEP
    tile = ct.load(x, (i,), shape=(min(TILE, 1024),))
    ct.store(out, (helpers.place(i),), tile)
"""
HELPERS = """
WIDTH = 64


def place(i):
    return i


def other(i):
    return i // 2
"""


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(verdicts, "_known", {})
    monkeypatch.setattr(verdicts, "_state", {"environment": True})


@pytest.fixture
def write(tmp_path):
    """Write a kernel module and its helpers into a folder."""

    def write(text=KERNEL, helpers=HELPERS, folder="here"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "helpers.py").write_text(helpers)
        path = tmp_path / folder / "k.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def load(monkeypatch):
    """Import a file, with the helpers that lie beside it."""

    def load(path):
        monkeypatch.syspath_prepend(str(path.parent))
        sys.modules.pop("helpers", None)
        spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield load
    sys.modules.pop("helpers", None)


def record_of(kernel):
    return verdicts.record_for(kernel_function(kernel))


def refused(kernel):
    with pytest.raises(LaunchRefused) as caught:
        record_of(kernel)
    return str(caught.value)


def test_a_kernel_is_verified_when_nothing_was_emitted(write, load):
    module = load(write())
    record = record_of(module.copy)
    assert (record.name, record.verdict) == ("copy", "conditional")
    assert record.conditions == ("grid[0] <= cdiv(x.shape[0], 128)", "grid[0] <= cdiv(out.shape[0], 128)")
    assert record_of(module.copy.replace_hints(occupancy=2)) is record


# ---- names that a program assigned to ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "TILE", 64),
        lambda m: setattr(m, "TILE", 128.0),
        lambda m: setattr(m, "AXES", (1, 0)),
        lambda m: setattr(m, "same", m.half),
        lambda m: setattr(m, "same", m.where),
        lambda m: setattr(m, "same", abs),
        lambda m: setattr(m, "same", m.ct.cdiv),
        lambda m: setattr(m, "same", lambda i: i),
        lambda m: setattr(m, "where", m.helpers.other),
        lambda m: setattr(m.helpers, "place", m.helpers.other),
        lambda m: setattr(m.Config, "STEP", 2),
        lambda m: setattr(m, "Config", types.SimpleNamespace(STEP=2)),
        lambda m: setattr(m, "helpers", types.SimpleNamespace(place=lambda i: i // 2)),
        lambda m: setattr(m, "helpers", m.ct),
        lambda m: setattr(m, "ct", types.SimpleNamespace(**{**vars(m.ct), "bid": m.ct.num_blocks})),
        lambda m: setattr(m, "ct", m.helpers),
        lambda m: setattr(m, "min", max),
        lambda m: setattr(m, "same", functools.wraps(m.same)(m.half)),
        lambda m: setattr(m.same, "__defaults__", (3,)),
    ],
)
def test_a_name_that_is_no_longer_what_the_text_says(write, load, change):
    module = load(write())
    record_of(module.copy)
    change(module)
    assert "not launched" in refused(module.copy)


def test_a_name_that_the_kernel_does_not_read_is_free(write, load):
    module = load(write())
    module.WIDTH = 1
    module.half = None
    assert record_of(module.copy).is_accepted


def test_another_module_of_the_helpers_name(write, load):
    module = load(write())
    elsewhere = load(write(helpers=HELPERS.replace("return i\n", "return i // 2\n"), folder="there"))
    module.where = elsewhere.where
    assert "not what" in refused(module.copy) or "not verified with it" in refused(module.copy)


def test_equal_values_of_other_types_of_containers_and_enums(write, load):
    text = KERNEL.replace("class Config:", "import enum\n\n\nclass Config(enum.IntEnum):")
    module = load(write(text))
    module.AXES = [0, 1]
    assert record_of(module.copy).is_accepted


# ---- the text that it was made from --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("(i,), shape", "(i + 1,), shape"),
        lambda text: text.replace("TILE = 128", "TILE = 64"),
        lambda text: text.replace("return i * by\n", "return i + 0\n"),
        lambda text: text.replace("by=1", "by=2"),
        lambda text: "\n" + text,
        lambda text: text.replace("@ct.kernel", "@ct.kernel\n@ct.kernel"),
        lambda text: "",
        lambda text: "def (",
        lambda text: "x = '\0'",
    ],
)
def test_a_file_that_was_edited_after_its_import(write, load, edit):
    path = write()
    module = load(path)
    path.write_text(edit(KERNEL))
    assert "not launched" in refused(module.copy)


def test_a_file_that_was_deleted_after_its_import(write, load):
    path = write()
    module = load(path)
    path.unlink()
    assert "cannot be read" in refused(module.copy)


ANNOTATED = """
import cuda.tile as ct


@ct.kernel
def copy(x, out, n, T: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, (i,), shape=(T,))
    ct.store(out, (i,), tile * n)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("copy(x", "copy(x: ct.IndexedWithInt64[ct.Array]"),
        ("n,", "n: ct.ScalarInt64[int],"),
        ("n,", "n: ct.Constant[int],"),
        (": ct.Constant[int]", ": ct.ScalarInt64[ct.Constant[int]]"),
    ],
)
def test_annotations_that_were_edited_after_their_import(write, load, old, new):
    path = write(ANNOTATED)
    module = load(path)
    path.write_text(ANNOTATED.replace(old, new))
    function = kernel_function(module.copy)
    edited = load(path)
    record = verdicts.record_for(kernel_function(edited.copy))
    assert verdicts.record_for(function) == record  # an annotation is in no code object
    with pytest.raises(LaunchRefused, match="not annotated as its file says"):
        launch(0, (1,), module.copy, ())


def test_helpers_that_were_edited_after_their_import(write, load):
    module = load(write())
    write(helpers=HELPERS.replace("return i\n", "return i // 2\n", 1))
    assert "not launched" in refused(module.copy)


def test_a_function_made_by_a_program(write, load):
    module = load(write())
    code = kernel_function(module.copy).__code__
    with pytest.raises(LaunchRefused, match="not what"):
        verdicts.record_for(types.FunctionType(code.replace(co_consts=(*code.co_consts, 3)), vars(module)))
    with pytest.raises(LaunchRefused, match="not what"):
        verdicts.record_for(types.FunctionType(code, {**vars(module), "TILE": 64}, "copy"))


def test_a_function_that_is_no_kernel(write, load):
    module = load(write())
    with pytest.raises(LaunchRefused, match="not a kernel that tilecheck knows"):
        verdicts.record_for(module.half)


def test_two_kernels_of_one_name(write, load):
    first = KERNEL[KERNEL.index("@ct.kernel") :]
    second = first.replace("Config.STEP", "2").replace("(TILE,)", "(32,)")
    module = load(write(KERNEL + "\nold = copy\n\n\n" + second))
    assert "grid[0] <= cdiv(x.shape[0], 128)" in record_of(module.old).conditions
    assert "grid[0] <= cdiv(x.shape[0], 128)" not in record_of(module.copy).conditions


def test_a_kernel_of_a_call(write, load):
    module = load(write(KERNEL.replace("@ct.kernel\ndef copy", "def plain") + "\n\ncopy = ct.kernel(plain)\n"))
    assert record_of(module.copy).name == "plain"


def test_a_kernel_around_which_a_variable_is_not_bound(write, load):
    text = """
import cuda.tile as ct


def make():
    @ct.kernel
    def copy(x, out):
        ct.store(out, (ct.bid(0),), ct.load(x, (ct.bid(0),), shape=(T,)))

    yield copy
    T = 64
    yield copy
"""
    made = load(write(text)).make()
    assert "not bound yet" in refused(next(made))
    assert "grid[0] <= cdiv(out.shape[0], T)" in record_of(next(made)).conditions


@pytest.mark.parametrize("around", ["T", "T, i", "*T", "**T"])
def test_variables_of_one_name_are_not_taken_for_one_another(write, load, around):
    text = f"""
import cuda.tile as ct


def make({around}):
    def helper(x, out, i):
        ct.store(out, (i,), ct.load(x, (i,), shape=(T,)))

    @ct.kernel
    def copy(x, out, T: ct.Constant[int]):
        tile = ct.load(x, (0,), shape=(T,))
        helper(x, out, ct.bid(0))

    return copy
"""
    (report,) = verify_paths([str(write(text))]).kernels
    assert report.verdict.value == "unknown"
    assert "hides" in report.reason


AROUND = """
import cuda.tile as ct


def half(i):
    return i // 2


def make(flag):
    {lines}

    @ct.kernel
    def copy(x, out):
        i = ct.bid(0)
        ct.store(out, (place(i),), ct.load(x, (i,), shape=(16,)))

    return copy
"""


@pytest.mark.parametrize(
    "lines",
    [
        "if flag:\n        place = half\n    else:\n        def place(i):\n            return i",
        "def place(i):\n        return half(i)\n    if flag:\n        def place(i):\n            return i",
        "def place(i):\n        return i\n    def change():\n        nonlocal place\n        place = half",
        "def place(i):\n        return i\n    place = flag(place)",
        "from elsewhere import place",
        "with flag as place:\n        pass",
        "class place:\n        pass",
    ],
)
def test_a_function_around_a_kernel_that_binds_a_name_in_two_ways(write, lines):
    (report,) = verify_paths([str(write(AROUND.format(lines=lines)))]).kernels
    assert report.verdict.value == "unknown"
    once = AROUND.format(lines="def place(i):\n        return i")
    (report,) = verify_paths([str(write(once))]).kernels
    assert report.verdict.value == "conditional"


# ---- places --------------------------------------------------------------------------------------------------


def test_files_of_equal_bytes_beside_different_helpers(write, load):
    here = load(write())
    assert record_of(here.copy).is_accepted
    racy = HELPERS.replace("return i\n", "return i // 2\n", 1)
    there = load(write(helpers=racy, folder="there"))
    assert not record_of(there.copy).is_accepted
    again = load(write(folder="again"))
    assert record_of(again.copy).is_accepted


def test_a_verdict_travels_with_the_bytes_of_its_files(write, load, tmp_path):
    found = records.records_of(verify_paths([str(write())]))
    (tmp_path / "v.json").write_text(records.dump(found))
    verdicts.use_verdicts(tmp_path / "v.json")
    module = load(write(folder="there"))
    loaded = record_of(module.copy)
    assert loaded == records.load(tmp_path / "v.json")[0]
    module.TILE = 64
    assert "TILE" in refused(module.copy)
    module = load(write(helpers=HELPERS + "\n", folder="edited"))
    assert record_of(module.copy) != loaded  # verified anew


def test_helpers_that_were_edited_and_imported_again(write, load):
    assert record_of(load(write()).copy).is_accepted
    racy = load(write(helpers=HELPERS.replace("return i\n", "return i // 2\n", 1)))
    assert not record_of(racy.copy).is_accepted


def test_a_verdict_file_that_is_missing_is_told_of_at_every_launch(write, load, monkeypatch):
    module = load(write())
    monkeypatch.setattr(verdicts, "_state", {"environment": False})
    monkeypatch.setenv("TILECHECK_VERDICTS", "/nonexistent.json")
    for _ in range(2):
        with pytest.raises(UsageError, match="cannot read"):
            record_of(module.copy)


def test_variables_that_only_a_helper_captures(write, load, tensor):
    text = """
import cuda.tile as ct


def make(T):
    def place(x, i):
        return ct.load(x, (i,), shape=(T,))

    @ct.kernel
    def copy(x, out):
        ct.store(out, (ct.bid(0),), place(x, ct.bid(0)))

    return copy
"""
    made = load(write(text)).make(16)
    args = (tensor(64), tensor(64, at=512))
    check = guard_of(made)
    check((4,), args)
    with pytest.raises(LaunchRefused, match="T = 16"):
        check((5,), args)


def test_a_link_to_a_kernel(write, load, tmp_path):
    path = write()
    link = tmp_path / "there"
    link.symlink_to(path.parent)
    assert record_of(load(link / "k.py").copy).is_accepted


def test_a_relative_path(write, load, monkeypatch):
    path = write()
    monkeypatch.chdir(path.parent.parent)
    module = load(path.relative_to(path.parent.parent))
    assert record_of(module.copy).is_accepted


def test_a_verdict_file_that_is_none(tmp_path):
    (tmp_path / "v.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="is not a verdict file"):
        verdicts.use_verdicts(tmp_path / "v.json")


# ---- a machine without the prover ----------------------------------------------------------------------------

BARE = """
import importlib.abc, sys


class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("z3", "libcst", "networkx", "rich"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


sys.meta_path.insert(0, Blocked())
sys.path.insert(0, sys.argv[1])
import k
from tilecheck.cache.store import FolderStore
from tilecheck.errors import LaunchRefused
from tilecheck.jit.guard import compile_guard
from tilecheck.jit.verdicts import record_for


class Tensor:
    dtype = "float32"

    def __init__(self, size, at):
        self.shape, self.at = (size,), at

    def stride(self):
        return (1,)

    def data_ptr(self):
        return self.at

    def element_size(self):
        return 4


try:
    record = record_for(k.copy._pyfunc)
except LaunchRefused as error:
    sys.exit(str(error))
check = compile_guard(record)
check((2,), (Tensor(256, 0), Tensor(256, 1024)))
for grid, at in (((3,), 1024), ((2,), 1020), ((2, 2), 1024)):
    try:
        check(grid, (Tensor(256, 0), Tensor(256, at)))
    except LaunchRefused as error:
        print(error.report.splitlines()[0])
assert not {"z3", "libcst", "networkx"} & sys.modules.keys()
"""


def bare(path, **environment):
    return subprocess.run(
        [sys.executable, "-B", "-c", BARE, str(path.parent)],
        cwd=path.parent,  # not the checkout, which would hide the installed package
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_an_emitted_verdict_guards_a_launch_where_nothing_can_be_verified(write, tmp_path):
    path, emitted = write(), tmp_path / "v.json"
    command = [sys.executable, "-m", "tilecheck", "verify", str(path), "--emit-verdicts", str(emitted)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120).returncode == 0
    there = write(folder="there")  # another place than it was verified in
    ran = bare(there, TILECHECK_VERDICTS=str(emitted))
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[1] for line in ran.stdout.splitlines()] == ["grid[0]", "S1:", "S3:"]
    edited = write(KERNEL.replace("// 2", "// 3"), folder="edited")
    ran = bare(edited, TILECHECK_VERDICTS=str(emitted))
    assert ran.returncode == 1
    assert "no emitted verdict speaks of" in ran.stderr
    assert "cannot be verified here" in ran.stderr


def test_a_folder_of_results_guards_a_launch_where_nothing_can_be_verified(write, tmp_path):
    path, kept = write(), tmp_path / "kept"
    command = [sys.executable, "-m", "tilecheck", "verify", str(path), "--cache-dir", str(kept), "-q"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120).returncode == 0
    there = write(folder="there")
    ran = bare(there, TILECHECK_VERDICTS=str(kept))
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[1] for line in ran.stdout.splitlines()] == ["grid[0]", "S1:", "S3:"]
    edited = write("# a comment\n" + KERNEL, folder="edited")
    ran = bare(edited, TILECHECK_VERDICTS=str(kept))
    assert (ran.returncode, "no emitted verdict speaks of" in ran.stderr) == (1, True)
    # Once a run has seen the text with the comment, which is a hit, the folder speaks of it.
    path.write_text(edited.read_text())
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert bare(edited, TILECHECK_VERDICTS=str(kept)).returncode == 0


def test_a_folder_that_holds_no_verdicts(tmp_path):
    with pytest.raises(UsageError, match="is no cache of tilecheck"):
        verdicts.use_verdicts(tmp_path)
    store = FolderStore(tmp_path / "kept")
    store.put("0" * 64, b"{}")
    with pytest.raises(UsageError, match="no verdicts of this tilecheck"):
        verdicts.use_verdicts(tmp_path / "kept")


def test_without_a_verdict_nothing_is_launched(write):
    ran = bare(write(), TILECHECK_VERDICTS="")
    assert ran.returncode == 1
    assert "--emit-verdicts" in ran.stderr
