"""What files assign in modules of each other: followed where the text tells it, and else taken for assigned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.options import Options
from tilecheck.patches.hints import may_patch
from tilecheck.patches.index import patches_of
from tilecheck.patches.patched import Patches

CFG = "D = 1\nE = 1\nOPTS = {'D': 1}\n\n\nclass C:\n    D = 1\n\n\ndef f():\n    pass\n"
HAND = "import cfg\n\n\ndef go(m):\n    m.D = 2\n\n\ndef put(m, x):\n    m.D = 2\n"
TRITON = """import triton
import triton.language as tl

import patch
from cfg import D


@triton.jit
def k(out):
    tl.store(out + tl.program_id(0) // D, 1.0)
"""
CUTILE = """import cuda.tile as ct

import patch
from cfg import D


@ct.kernel
def k(out, T: ct.Constant[int]):
    ct.store(out, index=(ct.bid(0) // D,), tile=ct.zeros((T,), dtype=ct.float32))
"""

PATCHING = {
    "attr": "import cfg\ncfg.D = 2\n",
    "attr aug": "import cfg\ncfg.D += 1\n",
    "attr tuple": "import cfg\ncfg.D, x = 2, 1\n",
    "attr list": "import cfg\n[cfg.D] = [2]\n",
    "attr paren": "import cfg\n(\n    cfg.D,\n    x,\n) = 2, 1\n",
    "attr star": "import cfg\n*cfg.D, x = 2, 1\n",
    "attr ann": "import cfg\ncfg.D: int = 2\n",
    "attr for": "import cfg\nfor cfg.D in (2,):\n    pass\n",
    "attr with": "import cfg, contextlib\nwith contextlib.nullcontext(2) as cfg.D:\n    pass\n",
    "attr del": "import cfg\ndel cfg.D\n",
    "attr semicolon": "import os; import cfg; cfg.D = 2\n",
    "attr if": "if True: import cfg; cfg.D = 2\n",
    "attr comp": "import cfg\n[0 for cfg.D in (2,)]\n",
    "attr backslash": "import os, \\\n  cfg\ncfg \\\n  .D = 2\n",
    "alias": "import cfg as c\nc.D = 2\n",
    "alias2": "import cfg\nc = cfg\nc.D = 2\n",
    "alias walrus": "import cfg\n(c := cfg).D = 2\n",
    "alias tuple": "import cfg\nc, x = cfg, 1\nc.D = 2\n",
    "alias before a line": "import cfg\nc = cfg\n(x) = 1\nc.D = 2\n",
    "alias chain": "import cfg\nb = cfg\nc = b\nc.D = 2\n",
    "alias if": "import cfg, os\nc = cfg if os.name else None\nc.D = 2\n",
    "in fn": "import cfg\ndef go():\n    cfg.D = 2\ngo()\n",
    "in fn import": "def go():\n    import cfg\n    cfg.D = 2\ngo()\n",
    "in method": "import cfg\nclass A:\n    def __init__(self):\n        cfg.D = 2\nA()\n",
    "in class": "import cfg\nclass A:\n    cfg.D = 2\n",
    "param": "import cfg\ndef go(m):\n    m.D = 2\ngo(cfg)\n",
    "param kw": "import cfg\ndef go(*, m):\n    m.D = 2\ngo(m=cfg)\n",
    "default": "import cfg\ndef go(m=cfg):\n    m.D = 2\ngo()\n",
    "star args": "import cfg\ndef go(*ms):\n    for m in ms: m.D = 2\ngo(cfg)\n",
    "result": "import cfg\ndef get():\n    return cfg\nget().D = 2\n",
    "attr of self": (
        "import cfg\nclass A:\n    def __init__(self):\n        self.m = cfg\n        self.m.D = 2\nA()\n"
    ),
    "loop": "import cfg, os\nfor m in (os, cfg):\n    m.D = 2\n",
    "list": "import cfg\nms = [cfg]\nms[0].D = 2\n",
    "dict": "import cfg\nms = {'a': cfg}\nms['a'].D = 2\n",
    "lambda": "import cfg\n(lambda m: setattr(m, 'D', 2))(cfg)\n",
    "map": "import cfg\nlist(map(lambda m: setattr(m, 'D', 2), [cfg]))\n",
    "partial": "import cfg, functools\nfunctools.partial(setattr, cfg, 'D')(2)\n",
    "setattr": "import cfg\nsetattr(cfg, 'D', 2)\n",
    "setattr var": "import cfg\nn = 'D'\nsetattr(cfg, n, 2)\n",
    "setattr join": "import cfg\nsetattr(cfg, ''.join(['D']), 2)\n",
    "dunder setattr": "import cfg\ncfg.__setattr__('D', 2)\n",
    "type setattr": "import cfg\ntype(cfg).__setattr__(cfg, 'D', 2)\n",
    "object setattr": "import cfg\nobject.__setattr__(cfg, 'D', 2)\n",
    "dict attr": "import cfg\ncfg.__dict__['D'] = 2\n",
    "dict update": "import cfg\ncfg.__dict__.update(D=2)\n",
    "dict update2": "import cfg\ncfg.__dict__.update({'D': 2})\n",
    "dict update3": "import cfg\nd = {'D': 2}\ncfg.__dict__.update(d)\n",
    "dict alias": "import cfg\nd = cfg.__dict__\nd['D'] = 2\n",
    "dict ior": "import cfg\nd = cfg.__dict__\nd |= {'D': 2}\n",
    "vars": "import cfg\nvars(cfg)['D'] = 2\n",
    "vars update": "import cfg\nvars(cfg).update(D=2)\n",
    "vars setitem": "import cfg, operator\noperator.setitem(vars(cfg), 'D', 2)\n",
    "dict setitem": "import cfg\ndict.__setitem__(cfg.__dict__, 'D', 2)\n",
    "dict dictupdate": "import cfg\ndict.update(vars(cfg), D=2)\n",
    "sysmod": "import sys, cfg\nsys.modules['cfg'].D = 2\n",
    "sysmod from": "from sys import modules\nimport cfg\nmodules['cfg'].D = 2\n",
    "sysmod alias": "import sys as s, cfg\nm = s.modules\nm['cfg'].D = 2\n",
    "sysmod get": "import sys, cfg\nsys.modules.get('cfg').D = 2\n",
    "sysmod var": "import sys, cfg\nn = 'cfg'\nsys.modules[n].D = 2\n",
    "sysmod values": (
        "import sys, cfg\nfor m in list(sys.modules.values()):\n    if hasattr(m, 'D'):\n        m.D = 2\n"
    ),
    "sysmod items": "import sys, cfg\nfor n, m in sys.modules.items():\n    if n == 'cfg':\n        m.D = 2\n",
    "sysmod name": "import sys, cfg\nsys.modules[cfg.__name__].D = 2\n",
    "sysmod fn": "import sys\nfrom cfg import f\nsys.modules[f.__module__].D = 2\n",
    "sysmod setattr": "import sys, cfg\nsetattr(sys.modules['cfg'], 'D', 2)\n",
    "sysmod replace": "import sys, types\nm = types.ModuleType('cfg')\nm.D = 2\nsys.modules['cfg'] = m\n",
    "importlib": "import importlib\nimportlib.import_module('cfg').D = 2\n",
    "importlib from": "from importlib import import_module\nm = import_module('cfg')\nm.D = 2\n",
    "importlib from as": "from importlib import import_module as im\nm = im('cfg')\nm.D = 2\n",
    "importlib var": (
        "from importlib import import_module\ndef mod(n):\n    return import_module(n)\nmod('cfg').D = 2\n"
    ),
    "dunder import": "__import__('cfg').D = 2\n",
    "globals fn": "from cfg import f\nf.__globals__['D'] = 2\n",
    "globals fn2": "import cfg\ncfg.f.__globals__['D'] = 2\n",
    "getattr mod": "import sys\ngetattr(sys, 'modules')['cfg'].D = 2\n",
    "inspect": "import inspect\nfrom cfg import f\ninspect.getmodule(f).D = 2\n",
    "monkey": "import cfg\ndef test_x(monkeypatch):\n    monkeypatch.setattr(cfg, 'D', 2)\n",
    "monkey text": "def test_x(monkeypatch):\n    monkeypatch.setattr('cfg.D', 2)\n",
    "mock text": "from unittest import mock\nmock.patch('cfg.D', 2).start()\n",
    "mock object": "from unittest import mock\nimport cfg\nmock.patch.object(cfg, 'D', 2).start()\n",
    "mock multiple": "from unittest import mock\nmock.patch.multiple('cfg', D=2).start()\n",
    "exec": "exec('import cfg; cfg.D = 2')\n",
    "reexport": "import hand\nhand.cfg.D = 2\n",
    "reexport from": "from hand import cfg\ncfg.D = 2\n",
    "other fn": "import cfg, hand\nhand.go(cfg)\n",
    "other fn from": "import cfg\nfrom hand import go\ngo(cfg)\n",
    "other fn name": "import cfg\nfrom hand import put\nput(cfg, 'x')\n",
    "contextmanager": (
        "import cfg\nclass Ctx:\n    def __enter__(self):\n        self.old, cfg.D = cfg.D, 2\n"
        "    def __exit__(self, *a):\n        cfg.D = self.old\nCtx().__enter__()\n"
    ),
    "nonlocal": (
        "import cfg\ndef outer():\n    m = cfg\n    def inner():\n        nonlocal m\n"
        "        m.D = 2\n    inner()\nouter()\n"
    ),
    "global": "import cfg\nm = None\ndef init():\n    global m\n    m = cfg\ninit()\nm.D = 2\n",
    "match": "import cfg\nmatch cfg:\n    case m:\n        m.D = 2\n",
    "yield": "import cfg\ndef g():\n    yield cfg\nfor m in g():\n    m.D = 2\n",
    "decorator": "import cfg\ndef d(fn):\n    cfg.D = 2\n    return fn\n@d\ndef g(): pass\n",
    "nfkc": "import \N{FULLWIDTH LATIN SMALL LETTER C}fg\ncfg.\N{FULLWIDTH LATIN CAPITAL LETTER D} = 2\n",
    "star import": "from hand import *\ncfg.D = 2\n",
    "try": "try:\n    import cfg\nexcept ImportError:\n    cfg = None\nif cfg is not None:\n    cfg.D = 2\n",
    "or": "import cfg\n(cfg or None).D = 2\n",
    "getattr cfg": "import hand\ngetattr(hand, 'cfg').D = 2\n",
}


def patches(root: Path, **files: str) -> Patches:
    for name, text in files.items():
        path = root / f"{name}.py"
        path.write_text(text)
    return patches_of({(root / f"{name}.py").as_posix(): text.encode() for name, text in files.items()})


def loses(found: Patches, file: Path, name: str) -> bool:
    patched = found.of(file.as_posix())
    return not patched.bound.isdisjoint({name, ""})


@pytest.mark.parametrize("text", PATCHING.values(), ids=PATCHING.keys())
def test_an_assignment_in_another_module_is_seen(tmp_path: Path, text: str) -> None:
    found = patches(tmp_path, cfg=CFG, hand=HAND, patch=text)
    assert loses(found, tmp_path / "cfg.py", "D")


HARMLESS = {
    "self": "import cfg\nclass A:\n    def __init__(self):\n        self.D = 2\n        self.x = cfg.D\nA()\n",
    "other name": "import cfg\ncfg.E = 2\n",
    "other mod": "import os, hand\nos.D = 2\nhand.D = 2\n",
    "read": "import cfg\nx = cfg.D\nprint(cfg.D, getattr(cfg, 'D'), hasattr(cfg, 'D'), dir(cfg))\n",
    "local": "import cfg\ndef f(cfg):\n    cfg.D = 2\n",
    "param": "import cfg\ndef f(ctx):\n    ctx.D = cfg.D\n",
    "call": "import cfg\ncfg.f()\nx = cfg.C()\nx.D = 2\n",
    "item": "import cfg\nd = {}\nd['D'] = cfg.D\n",
    "ctx": (
        "import cfg\nclass F:\n    @staticmethod\n    def forward(ctx, x):\n        ctx.D = cfg.D\n"
        "        return x\n"
    ),
    "none": "import cfg\nif cfg is None: raise ImportError\nassert cfg\n",
    "lazy": "import importlib\ndef load(n):\n    return importlib.import_module(n)\n",
    "reload": "import cfg, importlib\nimportlib.reload(cfg)\n",
    "from": "from cfg import D, E, f\nx = [D, E]\nf()\n",
    "all": "from cfg import *\nZ = 3\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_reaches_no_other_module_patches_nothing(tmp_path: Path, text: str) -> None:
    found = patches(tmp_path, cfg=CFG, hand="import cfg\n", patch=text)
    assert not loses(found, tmp_path / "cfg.py", "D")


CHANGING = {
    "item": "import cfg\ncfg.OPTS['D'] = 2\n",
    "from item": "from cfg import OPTS\nOPTS['D'] = 2\n",
    "update": "from cfg import OPTS\nOPTS.update(D=2)\n",
    "alias": "import cfg\no = cfg.OPTS\no['D'] = 2\n",
    "class": "import cfg\ncfg.C.D = 2\n",
    "class from": "from cfg import C\nC.D = 2\n",
    "class setattr": "from cfg import C\nsetattr(C, 'D', 2)\n",
    "ior": "from cfg import OPTS\nOPTS |= {'D': 2}\n",
    "value": "from cfg import D\nD.value = 2\n",
}


@pytest.mark.parametrize("text", CHANGING.values(), ids=CHANGING.keys())
def test_a_change_of_what_a_name_holds_is_seen(tmp_path: Path, text: str) -> None:
    found = patches(tmp_path, cfg=CFG, patch=text)
    assert found.of((tmp_path / "cfg.py").as_posix()).changed & {"C", "D", "OPTS"}


def test_packages_are_followed(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    texts = {
        "p/__init__.py": "from . import cfg\nfrom .cfg import OPTS\ncfg.D = 2\n",
        "p/cfg.py": CFG,
        "q.py": "import p\np.OPTS['D'] = 2\np.cfg.E = 2\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = patches_of({(tmp_path / name).as_posix(): text.encode() for name, text in texts.items()})
    patched = found.of((tmp_path / "p" / "cfg.py").as_posix())
    assert (patched.bound, patched.changed) == ({"D", "E"}, {"OPTS"})


@pytest.mark.parametrize("kernel", [TRITON, CUTILE], ids=["triton", "cutile"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_patched_constant_proves_nothing(tmp_path: Path, kernel: str, *, alone: bool) -> None:
    value = ("tl.constexpr(1)", "tl.constexpr(2)") if kernel == TRITON else ("1", "2")
    for name, text in {"cfg": "D = ONE\n", "patch": "import cfg\ncfg.D = TWO\n"}.items():
        constant = text.replace("ONE", value[0]).replace("TWO", value[1])
        (tmp_path / f"{name}.py").write_text(f"import triton.language as tl\n{constant}")
    (tmp_path / "k.py").write_text(kernel)
    [found] = verify_paths([str(tmp_path / "k.py" if alone else tmp_path)]).kernels
    reason = "unsupported:name `D` that other code changes"
    assert (found.verdict.value, found.reason) == ("unknown", reason)


def test_modules_outside_the_given_paths_patch_nothing(tmp_path: Path) -> None:
    for name in ("given", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "given" / "cfg.py").write_text("import triton.language as tl\nD = tl.constexpr(1)\n")
    (tmp_path / "given" / "k.py").write_text(TRITON.replace("import patch\n", ""))
    (tmp_path / "other" / "patch.py").write_text("import given.cfg\ngiven.cfg.D = 2\n")
    [found] = verify_paths([str(tmp_path / "given")]).kernels
    assert found.verdict.value == "conditional"


def test_a_patched_number_of_blocks_is_no_longer_known(tmp_path: Path) -> None:
    (tmp_path / "cfg.py").write_text("G = 4\n")
    (tmp_path / "patch.py").write_text("import cfg\ncfg.G = 8\n")
    (tmp_path / "k.py").write_text(
        "import torch\nimport triton\nimport triton.language as tl\nfrom cfg import G\n\n"
        "@triton.jit\ndef k(out, B: tl.constexpr):\n"
        "    tl.store(out + tl.program_id(0) * B + tl.arange(0, B), 1.0)\n\n"
        "def host():\n    k[(G,)](torch.empty(4 * 64), 64)\n"
    )
    [found] = verify_paths([str(tmp_path)]).kernels
    assert "holds" not in {c.status for launch in found.launches for c in launch.conditions}


def test_a_kept_verdict_does_not_outlive_a_new_patch(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    (project / "cfg.py").write_text("import triton.language as tl\nD = tl.constexpr(1)\n")
    (project / "k.py").write_text(TRITON.replace("import patch\n", ""))
    options = Options(cache=str(cache))
    assert verify_paths([str(project)], options).kernels[0].verdict.value == "conditional"
    (project / "main.py").write_text("import triton.language as tl\nimport cfg\ncfg.D = tl.constexpr(2)\n")
    assert verify_paths([str(project)], options).kernels[0].verdict.value == "unknown"
    (project / "main.py").unlink()
    assert verify_paths([str(project)], options).kernels[0].verdict.value == "conditional"


def test_a_name_that_leads_on_and_on_hands_no_other_module_on(tmp_path: Path) -> None:
    (tmp_path / "cfg.py").write_text(CFG)
    (tmp_path / "other.py").write_text("name = None\n")
    (tmp_path / "user.py").write_text(
        "import cfg, other\nx = other\nwhile x:\n    x = x.name\n    y = x[0]\n    x = y\n"
    )
    files = {str(path): path.read_bytes() for path in tmp_path.glob("*.py")}
    assert patches_of(files).of(str(tmp_path / "cfg.py")) == Patches().of("")


def test_packages_that_import_everything_from_each_other_are_walked_once(tmp_path: Path) -> None:
    names = [f"m{k}" for k in range(12)]
    stars = "".join(f"from .{name} import *\nfrom . import {name}\n" for name in names)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text(stars)
    for name in names:
        (tmp_path / "pkg" / f"{name}.py").write_text(stars)
    (tmp_path / "user.py").write_text("import pkg\npkg.m0.m1.D = 2\n")
    files = {str(path): path.read_bytes() for path in tmp_path.rglob("*.py")}
    assert "D" in str(patches_of(files))


def test_a_name_that_is_called_is_no_module() -> None:
    """A package may hand on a function under the name of its module: `@libentry()`."""
    called = "from utils import cfg\n\n\n@cfg()\ndef f(x):\n    return cfg (x)\n"
    handed = "from utils import cfg\nf(cfg)\n"
    assert [may_patch(text, frozenset({"cfg"}), lambda _: True) for text in (called, handed)] == [False, True]
