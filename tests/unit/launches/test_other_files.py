"""Launches in other files of a run reach the kernels that these files import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.frontend.modules.project import Project
from tilecheck.model import Report
from tilecheck.options import Options
from tilecheck.text import decode
from tilecheck.verify.discover import Candidate, discover
from tilecheck.verify.importers import launchers
from tilecheck.verify.launch_sites import LaunchesOf, launches_around

KERNELS = """
import triton
import triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=[]
)
@triton.jit
def copy(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

def host(x):
    pass
"""
LAUNCH = """
def run(x):
    n = x.numel()
    o = torch.empty(n // 2)
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    {}[grid](x, o, n)
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py" if name != "__init__" else folder / "__init__.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def launched(report: Report) -> list[tuple[str, str]]:
    """The files of the launches that were judged, and the worst status at each."""
    order = ("holds", "caller", "unknown", "broken")
    return [
        (Path(at.site.file).name, max((c.status for c in at.conditions), key=order.index))
        for kernel in report.kernels
        for at in kernel.launches
    ]


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("from kern import copy", "copy"),
        ("from .kern import copy", "copy"),
        ("from kern import (\n    host,\n    copy as it,\n)", "it"),
        ("from kern import host, \\\n    copy", "copy"),
        ("import kern", "kern.copy"),
        ("import kern as k", "k.copy"),
        ("from . import kern", "kern.copy"),
    ],
)
def test_importing_file_supplies_the_launch(imports: str, name: str, tmp_path: Path) -> None:
    host = f"import torch\nimport triton\n{imports}\n{LAUNCH.format(name)}"
    write(tmp_path, kern=KERNELS, host=host)
    report = verify_paths([tmp_path.as_posix()])
    assert launched(report) == [("host.py", "broken")]
    assert [d.code for d in report.diagnostics] == ["TC402"]
    assert Path(report.diagnostics[0].site.file).name == "host.py"


def test_launch_of_another_kernel_of_that_name_is_not_taken(tmp_path: Path) -> None:
    """The import decides whose kernel it is, not the name."""
    write(tmp_path, kern=KERNELS, other=KERNELS)
    write(tmp_path, host=f"import torch\nimport triton\nfrom other import copy\n{LAUNCH.format('copy')}")
    report = verify_paths([tmp_path.as_posix()])
    assert [(Path(k.site.file).name, len(k.launches)) for k in report.kernels] == [
        ("kern.py", 0),
        ("other.py", 1),
    ]


@pytest.mark.parametrize("jobs", [1, 3])
def test_number_of_processes_changes_nothing(jobs: int, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, **{f"kern{number}": KERNELS})
        imports = f"import torch\nimport triton\nfrom kern{number} import copy\n"
        write(tmp_path, **{f"a_host{number}": imports + LAUNCH.format("copy")})
    report = verify_paths([tmp_path.as_posix()], Options(jobs=jobs))
    assert launched(report) == [(f"a_host{n}.py", "broken") for n in range(3)]


def test_files_are_chosen_by_their_imports(tmp_path: Path) -> None:
    """Who imports host functions only, or launches nothing, is not read for a kernel's sake."""
    write(
        tmp_path,
        kern=KERNELS,
        host="from kern import copy\ncopy[grid](x)\n",
        only_calls="from kern import host\nf[1](host(x))\n",
        says_so="import numpy\n# kern copy\nf[1](x)\n",
        launches_nothing="from kern import copy\n",
    )
    found = discover([tmp_path.as_posix()])
    chosen = dict(launchers(found.candidates, found.hosts))
    names = {Path(c.path).name: [Path(h.path).name for h in hosts] for c, hosts in chosen.items()}
    assert names == {"kern.py": ["host.py"]}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("from kern import copy\ncopy[grid](x)", True),
        ("from kern import copy\ncopy [grid](x)", True),
        ("from kern import copy\nf[1](x)\ncopy.run(x, grid=grid)", True),
        ("from kern import copy\nf[1](x)\nrun(copy, grid, x)", True),
        ("from kern import copy\nk = copy if x else None\nk[grid](x)", True),
        ("from kern import copy\nk = copy\nk[grid](x)", True),
        ("from kern import copy\nk = None or copy  # one\nk[grid](x)", True),
        ("from kern import copy as k\nk[grid](x)", True),
        ("from kern import copy\nk = copy\n(grid, n) = ((8,), 4)\nk[grid](x)", True),
        ("from kern import copy; copy[grid](x)", True),
        ("from kern import (\n    host,  # (of no use)\n    copy,\n)\ncopy[grid](x)", True),
        ("import kern\nkern.copy[grid](x)", True),
        ("from kern import *\nf[1](x)\ncopy[grid](x)", True),
        ("from kern import copy\nf[1](x)\n@triton.jit\ndef g(x):\n    copy(x)", False),
        ("from kern import copy\nf[1](x)\n# copy", False),
        ("from kern import copy\nf[1](x)\n'A copy of it.'", False),
    ],
)
def test_only_files_that_may_launch_a_kernel_are_read_for_it(text: str, read: bool, tmp_path: Path) -> None:
    write(tmp_path, kern=KERNELS, host=f"import triton\n{text}\n")
    found = discover([tmp_path.as_posix()])
    chosen = dict(launchers(found.candidates, found.hosts))
    hosts = {Path(c.path).name: [Path(h.path).name for h in hosts] for c, hosts in chosen.items()}
    assert hosts["kern.py"] == (["host.py"] if read else [])


@pytest.mark.parametrize(
    ("other", "host", "read"),
    [
        ("", "from p.b.ops import copy", False),
        ("", "from .b.ops import copy", False),
        ("", "from p.b import ops", False),
        ("", "from p.a.ops import copy", True),
        ("", "from .a.ops import copy", True),
        ("", "from p.a import copy", True),
        ("", "from elsewhere.ops import copy", True),
        ("from p.a.ops import copy\n", "from p.b.ops import copy", True),
        ("from ..a.ops import *\n", "from .b.ops import copy", True),
        ("from p.a import ops as _ops\ncopy = _ops.copy\n", "from p.b.ops import copy", True),
        ("from ..a import ops as o\ncopy = o.copy\n", "from .b.ops import copy", True),
        ("import p.a.ops as _o\nfast = _o.copy\n", "from p.b.ops import fast as copy", True),
    ],
)
def test_a_kernel_of_another_module_of_the_same_name_is_another_one(
    other: str, host: str, read: bool, tmp_path: Path
) -> None:
    for folder in ("p", "p/a", "p/b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "p/a/ops.py").write_text(KERNELS)
    (tmp_path / "p/b/ops.py").write_text(other or KERNELS)
    use = "ops.copy" if host.endswith("ops") else "copy"
    (tmp_path / "p/host.py").write_text(f"import triton\n{host}\n{use}[grid](x)\n")
    found = discover([tmp_path.as_posix()])
    chosen = dict(launchers(found.candidates, found.hosts, found.texts))
    (hosts,) = (hosts for c, hosts in chosen.items() if c.path.endswith("a/ops.py"))
    assert [Path(h.path).name for h in hosts if h.path.endswith("host.py")] == (["host.py"] if read else [])


def test_a_module_that_a_package_calls_otherwise_is_read(tmp_path: Path) -> None:
    for folder in ("p", "p/a"):
        (tmp_path / folder).mkdir()
    (tmp_path / "p/__init__.py").write_text("from .a import ops\n")
    (tmp_path / "p/a/__init__.py").write_text("")
    for name in ("p/ops.py", "p/a/ops.py"):
        (tmp_path / name).write_text(KERNELS)
    (tmp_path / "host.py").write_text("import triton\nfrom p import ops\nops.copy[grid](x)\n")
    found = discover([tmp_path.as_posix()])
    chosen = launchers(found.candidates, found.hosts, found.texts)
    assert all(
        [Path(h.path).name for h in hosts] == ["host.py"] for c, hosts in chosen if c.path.endswith("ops.py")
    )


def test_importing_file_that_is_no_python(tmp_path: Path) -> None:
    write(tmp_path, kern=KERNELS, host="from kern import copy\ncopy[1](\n")
    report = verify_paths([tmp_path.as_posix()])
    assert [k.launches for k in report.kernels] == [()]
    assert report.kernels[0].internal_error is None


def test_a_file_is_read_once_however_many_kernels_it_launches(tmp_path: Path) -> None:
    kernel = "import triton\n@triton.jit\ndef {0}(x):\n    pass\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(kernel.format(name))
    host = "from one import one\nfrom two import two\ndef f(x):\n    one[(1,)](x)\n    two[(2,)](x)\n"
    (tmp_path / "host.py").write_text(host)
    project = Project()
    read: dict[str, LaunchesOf] = {}
    importer = Candidate((tmp_path / "host.py").as_posix(), host.encode())
    for name in ("one", "two"):
        source = decode((tmp_path / f"{name}.py").as_posix(), kernel.format(name).encode())
        table = project.read(source)
        [launch] = launches_around(table, [importer], read)
        assert (launch.kernel, launch.kernel_file) == (name, table.file)
        assert project.read(source) is table
        kept = read[importer.path]
    assert [la.kernel for la in kept.every] == ["one", "two"]
    assert launches_around(table, [importer], {}) == launches_around(table, [importer], read)
    assert read[importer.path] is kept


def test_a_file_is_read_again_when_its_text_is_another(tmp_path: Path) -> None:
    project = Project()
    path = (tmp_path / "a.py").as_posix()
    before = project.read(decode(path, b"x = 1\n"))
    after = project.read(decode(path, b"y = 1\n"))
    assert (set(before.bindings), set(after.bindings)) == ({"x"}, {"y"})
