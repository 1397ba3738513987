"""Which file an import leads to: packages come first, and submodules take names of their packages."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.reference.interpret.attributes import static_attribute
from tilecheck.reference.interpret.modules import Modules

HEAD = "import triton\nimport triton.language as tl\n"
KERNEL = "\n\n@triton.jit\ndef k(out):\n    tl.store(out + tl.program_id(0) // D, 1.0)\n"
CUTILE = (
    "import cuda.tile as ct\n{}\n\n@ct.kernel\ndef k(out, T: ct.Constant[int]):\n"
    "    ct.store(out, index=(ct.bid(0) // D,), tile=ct.zeros((T,), dtype=ct.float32))\n"
)


def write(root: Path, files: dict[str, str], one: int, two: int) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("ONE", f"tl.constexpr({one})").replace("TWO", f"tl.constexpr({two})"))


TL = "import triton.language as tl\n"
ONE, TWO = f"{TL}D = ONE\n", f"{TL}D = TWO\n"

FOUND = {
    "package before module": ("from cfg import D", {"cfg.py": ONE, "cfg/__init__.py": TWO}),
    "module of a package": ("from p.cfg import D", {"p/cfg.py": ONE, "p/cfg/__init__.py": TWO}),
    "module under another name": (
        "import p.cfg as c\nD = c.D",
        {"p/cfg.py": ONE, "p/cfg/__init__.py": TWO, "p/__init__.py": ""},
    ),
    "alias": ("import cfg as c\nD = c.D", {"cfg.py": ONE, "cfg/__init__.py": TWO}),
    "star": ("from cfg import *", {"cfg.py": ONE, "cfg/__init__.py": TWO}),
    "submodule of the package": (
        "from cfg.d import D",
        {"cfg.py": ONE, "cfg/__init__.py": "", "cfg/d.py": TWO},
    ),
    "module before a folder": ("from cfg import D", {"cfg.py": TWO, "cfg/d.py": ONE}),
    "name of the package": ("from p import D", {"p/__init__.py": TWO, "p/cfg.py": ONE}),
    "name bound after its submodule": (
        "from p import D",
        {"p/__init__.py": f"{TL}from .D import E\nD = TWO\n", "p/D.py": f"{TL}E = D = ONE\n"},
    ),
    "name from its submodule": (
        "from p import D",
        {"p/__init__.py": "from .D import D\n", "p/D.py": TWO},
    ),
}


@pytest.mark.parametrize(("line", "files"), FOUND.values(), ids=FOUND.keys())
@pytest.mark.parametrize(("one", "two", "expected"), [(1, 2, "violated"), (2, 1, "conditional")])
def test_the_module_that_python_finds_is_read(
    tmp_path: Path, line: str, files: dict[str, str], one: int, two: int, expected: str
) -> None:
    write(tmp_path, files, one, two)
    (tmp_path / "k.py").write_text(f"{HEAD}{line}{KERNEL}")
    [kernel] = verify_paths([str(tmp_path / "k.py")]).kernels
    assert kernel.verdict.value == expected


@pytest.mark.parametrize(("one", "two", "expected"), [(1, 2, "violated"), (2, 1, "conditional")])
def test_modules_of_cutile_are_found_alike(tmp_path: Path, one: int, two: int, expected: str) -> None:
    (tmp_path / "cfg").mkdir()
    (tmp_path / "cfg.py").write_text(f"D = {one}\n")
    (tmp_path / "cfg" / "__init__.py").write_text(f"D = {two}\n")
    (tmp_path / "k.py").write_text(CUTILE.format("from cfg import D"))
    [kernel] = verify_paths([str(tmp_path / "k.py")]).kernels
    assert kernel.verdict.value == expected


DOUBTFUL = {
    "submodule loaded after the name is bound": f"{TL}D = ONE\nfrom .D import E\n",
    "submodule that others may load": f"{TL}D = ONE\n",
    "submodule loaded under a condition": f"{TL}import os\nif os.name:\n    from .D import E\nD = ONE\n",
}


@pytest.mark.parametrize("text", DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_a_name_that_a_submodule_may_take_is_unknown(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"p/__init__.py": text, "p/D.py": f"{TL}E = ONE\n"}, 1, 2)
    (tmp_path / "k.py").write_text(f"{HEAD}from p import D{KERNEL}")
    [kernel] = verify_paths([str(tmp_path / "k.py")]).kernels
    assert (kernel.verdict.value, kernel.reason) == (
        "unknown",
        "unsupported:name `D`, which may be the submodule of that name",
    )


def test_the_replay_finds_modules_alike(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"cfg.py": "D = 1\n", "cfg/__init__.py": "D = 2\n", "p/__init__.py": "", "p/cfg.py": "D = 3\n"},
        1,
        2,
    )
    (tmp_path / "p" / "k.py").write_text("from cfg import D\nfrom .cfg import D as E\n")
    modules = Modules(lambda node, frame: ast.literal_eval(node), static_attribute)
    module = modules.load((tmp_path / "p" / "k.py").as_posix())
    assert (modules.lookup(module, "D"), modules.lookup(module, "E")) == (2, 3)
