"""tilecheck finds launches of kernels that reach a file by any name, or lists the place as unread.

Each launch here has one block too many. A kernel without a broken or unread launch was missed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.verify.discover import discover
from tilecheck.verify.importers import launchers

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def scale(x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, 2 * tl.load(x + i))
"""
CUTILE = """
import cuda.tile as ct


@ct.kernel
def scale(x, B: ct.Constant[int]):
    ct.store(x, index=(ct.bid(0),), tile=ct.load(x, index=(ct.bid(0),), shape=(B,)))
"""
GRID = "[(triton.cdiv(x.numel(), 128) + 1,)]"
LAUNCH = f"{GRID}(x, 128)"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def seen(folder: Path) -> list[tuple[str, str]]:
    """The launches of the kernel: in which file, and whether each is broken or not read."""
    [kernel] = [k for k in verify_paths([folder.as_posix()]).kernels if k.name == "scale"]
    broken = kernel.verdict.value == "violated"
    return [
        (Path(la.site.file).name, "unread" if la.is_unread else "broken" if broken else "read")
        for la in kernel.launches
    ]


def host(imports: str, name: str) -> str:
    return f"import triton\n{imports}\n\n\ndef run(x):\n    {name}{LAUNCH}\n"


@pytest.mark.parametrize(
    ("imports", "name", "others"),
    [
        ("import pkg.ops\nscale = pkg.ops.scale", "scale", {}),
        ("import pkg.ops\np = pkg\nm = p.ops\nk = m.scale", "k", {}),
        ("import pkg.ops", "pkg.ops.scale", {}),
        ("from pkg import ops\nk = ops.scale", "k", {}),
        ("import pkg", "pkg.ops.scale", {"pkg/__init__.py": "from . import ops\n"}),
        ("from pkg.b import s1 as s2", "s2", {"pkg/b.py": "from .ops import scale as s1\n"}),
        ("from pkg import s1", "s1", {"pkg/__init__.py": "from .ops import scale as s1\n"}),
        ("from pkg import *", "scale", {"pkg/__init__.py": "from .ops import *\n"}),
        ("from pkg.b import *", "s1", {"pkg/b.py": "from .ops import *\ns1 = scale\n"}),
        ("from pkg.b import s1 as s2", "s2", {"pkg/b.py": "from . import ops\ns1 = ops.scale\n"}),
        ("from pkg import b", "b.impl.scale", {"pkg/b.py": "from . import ops as impl\n"}),
        (
            "from pkg.b import KERNELS",
            "KERNELS[0]",
            {"pkg/b.py": "from .ops import scale\nKERNELS = [scale]\n"},
        ),
        (
            "from pkg.b import get",
            "get()",
            {"pkg/b.py": "from .ops import scale\ndef get():\n    return scale\n"},
        ),
        ("from pkg.b import Op", "Op.k", {"pkg/b.py": "from .ops import scale\nclass Op:\n    k = scale\n"}),
    ],
)
def test_a_launch_is_read_by_way_of_names(
    imports: str, name: str, others: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/ops.py": KERNEL, "host.py": host(imports, name), **others})
    assert seen(tmp_path) == [("host.py", "broken")]


@pytest.mark.parametrize(
    ("imports", "name", "others"),
    [
        ("from pkg import ops", "getattr(ops, 'scale')", {}),
        ("from pkg import ops\nNAME = 'sca' + 'le'", "getattr(ops, NAME)", {}),
        ("from pkg import ops", "vars(ops)['scale']", {}),
        ("from pkg import ops", "ops.__dict__['scale']", {}),
        ("import sys\nimport pkg.ops", "sys.modules['pkg.ops'].scale", {}),
        ("import importlib\nops = importlib.import_module('pkg.ops')", "ops.scale", {}),
        ("try:\n    from pkg.ops import scale\nexcept ImportError:\n    from other import scale", "scale", {}),
        (
            "from pkg import scale",
            "scale",
            {"pkg/__init__.py": "def __getattr__(name):\n    return find(name)\n"},
        ),
        ("from pkg import *", "scale", {"pkg/__init__.py": "from .ops import *\n__all__ = ['scale']\n"}),
        ("import sys\nsys.path.append('pkg')\nfrom ops import scale", "scale", {}),
        (
            "from pkg.b import REG",
            "REG['s']",
            {"pkg/b.py": "from .ops import scale\nREG = {}\nREG['s'] = scale\n"},
        ),
    ],
)
def test_a_launch_whose_names_are_not_read_is_said_to_be_unread(
    imports: str, name: str, others: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/ops.py": KERNEL, "host.py": host(imports, name), **others})
    assert seen(tmp_path) == [("host.py", "unread")]


@pytest.mark.parametrize(
    "body",
    [
        f"KERNELS = {{'s': scale}}\ndef run(x, mode):\n    KERNELS[mode]{LAUNCH}",
        f"def run(x, k=scale):\n    k{LAUNCH}",
        f"def run(x):\n    f = functools.partial(scale{GRID}, x)\n    f(128)",
        f"def run(x):\n    scale.run(x, 128, grid={GRID[1:-1]}, warmup=False)",
        f"def run(x):\n    scale.__getitem__({GRID[1:-1]})(x, 128)",
        f"def run(x):\n    c = scale.warmup(x, 128, grid=(1,))\n    c{LAUNCH}",
        f"def run(x, other, p):\n    (scale if p else other){LAUNCH}",
        f"class Op:\n    k = scale\n    def run(self, x):\n        self.k{LAUNCH}",
        f"class Op:\n  def __init__(self, k):\n    self.k = k\n  def run(self):\n    self.k{LAUNCH}\nOp(scale)",
        f"@dataclass\nclass Op:\n    k: object\n    def run(self, x):\n        self.k{LAUNCH}\nop = Op(scale)",
        f"class Op(Enum):\n    S = (scale,)\ndef run(x):\n    Op.S.value[0]{LAUNCH}",
        f"ALL = []\nALL.append(scale)\ndef run(x):\n    for k in ALL:\n        k{LAUNCH}",
        f"def each():\n    yield scale\ndef run(x):\n    for k in each():\n        k{LAUNCH}",
        f"def go(k):\n    return lambda f: lambda x: k{LAUNCH}\n@go(scale)\ndef run(x):\n    return x",
        f"run = lambda x: scale{LAUNCH}",
        f"tuned = triton.autotune(configs=[], key=[])(scale)\ndef run(x):\n    tuned{LAUNCH}",
        "def run(x):\n    unknown_library(scale, x)",
        "@pytest.mark.parametrize('kernel', [scale])\ndef test(kernel):\n    pass",
    ],
)
def test_a_kernel_whose_value_goes_where_it_is_not_followed_is_unread(body: str, tmp_path: Path) -> None:
    write(tmp_path, {"ops.py": KERNEL, "host.py": f"import triton\nfrom ops import scale\n{body}\n"})
    assert seen(tmp_path) == [("host.py", "unread")]


def test_a_function_of_another_file_that_is_given_the_kernel_is_where_it_is_unread(tmp_path: Path) -> None:
    lib = f"import triton\ndef go(kernel, x):\n    kernel{LAUNCH}\n"
    write(tmp_path, {"ops.py": KERNEL, "lib.py": lib})
    write(tmp_path, {"host.py": "from lib import go\nfrom ops import scale\ndef run(x):\n    go(scale, x)\n"})
    assert seen(tmp_path) == [("lib.py", "unread")]


@pytest.mark.parametrize("name", ["K['s']", "s2", "get()"])
def test_launches_of_cutile(name: str, tmp_path: Path) -> None:
    launch = f"ct.launch(stream, (ct.cdiv(x.shape[0], 128) + 1,), {name}, (x, 128))"
    text = f"""
import cuda.tile as ct
from b import s1 as s2
K = {{"s": s2}}
def get():
    return s2
def run(x, stream):
    {launch}
"""
    write(tmp_path, {"ops.py": CUTILE, "b.py": "from ops import scale as s1\n", "host.py": text})
    assert seen(tmp_path) == [("host.py", "broken")]


def test_a_link_to_the_file_of_a_kernel_is_that_file(tmp_path: Path) -> None:
    write(tmp_path, {"ops.py": KERNEL, "host.py": host("from other import scale", "scale")})
    (tmp_path / "other.py").symlink_to("ops.py")
    assert seen(tmp_path) == [("host.py", "broken")]


@pytest.mark.parametrize("imports", ["from pkg.ops import scale", "from pkg import ops\nscale = ops.scale"])
def test_a_package_below_src_is_found_from_the_tests_beside_it(imports: str, tmp_path: Path) -> None:
    write(tmp_path, {"src/pkg/__init__.py": "", "src/pkg/ops.py": KERNEL})
    write(tmp_path, {"tests/test_ops.py": host(imports, "scale")})
    assert seen(tmp_path) == [("test_ops.py", "broken")]


@pytest.mark.parametrize(
    "tool",
    [
        '[tool.setuptools]\npackage-dir = { "pkg.kernels" = "kernels" }',
        '[tool.hatch.build.targets.wheel.force-include]\n"kernels" = "pkg/kernels"',
        '[tool.hatch.build.targets.wheel.sources]\n"kernels" = "pkg/kernels"',
    ],
)
def test_a_folder_that_is_installed_under_another_name_is_found_by_it(tool: str, tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": tool, "pkg/__init__.py": "", "kernels/__init__.py": ""})
    write(
        tmp_path,
        {"kernels/ops.py": KERNEL, "tools/bench.py": host("from pkg.kernels.ops import scale", "scale")},
    )
    assert seen(tmp_path) == [("bench.py", "broken")]


@pytest.mark.parametrize(
    "body",
    [
        "# scale[grid](x, 128)",
        "'''Beside scale[grid](x, 128).'''",
        "def run(scale, x):\n    scale[(1,)](x, 128)",
        "@triton.jit\ndef other(x):\n    scale(x, 128)",
        "@triton.jit\ndef other(x, f):\n    pass\ndef run(x):\n    other[(1,)](x, scale)",
        "def run(x):\n    print(isinstance(scale, object), scale.__name__)",
        "class Op:\n    f = [print]\n    def run(self, x):\n        self.f[0](x)\nk = scale",
        "__all__ = ['scale']",
    ],
)
def test_other_uses_of_the_name_are_no_launches(body: str, tmp_path: Path) -> None:
    write(tmp_path, {"ops.py": KERNEL, "host.py": f"import triton\nfrom ops import scale\n{body}\n"})
    assert seen(tmp_path) == []


def test_a_function_that_launches_hands_no_kernel_on(tmp_path: Path) -> None:
    """Who calls it is not read for the kernel's sake."""
    ops = KERNEL + f"\n\ndef run(x):\n    scale{LAUNCH}\n"
    write(tmp_path, {"ops.py": ops, "host.py": "from ops import run\ndef f(x):\n    run(x)\n    g[0](x)\n"})
    found = discover([tmp_path.as_posix()])
    [(_, hosts)] = launchers(found.candidates, found.hosts, found.texts)
    assert hosts == ()
