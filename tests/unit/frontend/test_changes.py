"""Module-level values that code changes where no binding shows it: what they hold is then not known."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import ModuleTable, Project
from tilecheck.frontend.text.source import load, parse
from tilecheck.ir import expr as E
from tilecheck.ir.launch import Launch
from tilecheck.text import decode

HEAD = """
import random
import sys

import torch
import triton
import triton.language as tl
from elsewhere import unknown
"""
KERNEL = """
@triton.jit
def kernel(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, 1.0)

def launch():
    out = torch.empty(128, device="cuda")
    kernel[(2,)](out, 128, BLOCK={value})
"""
DATA = "@d.dataclass\n"


def module(text: str) -> ModuleTable:
    return Project().add(parse(decode("kernel.py", (HEAD + textwrap.dedent(text)).encode())))


def launched(text: str) -> Launch:
    [launch] = find_launches(module(text))
    return launch


def block(text: str, value: str) -> int | None:
    """What the launch passes as BLOCK, if that is known."""
    launch = launched(textwrap.dedent(text) + KERNEL.format(value=value))
    assert not launch.problem
    passed = dict(launch.arguments).get("BLOCK")
    return passed.value if isinstance(passed, E.Expr) else None


@pytest.mark.parametrize(
    "text",
    [
        "S = [64]\nS.append(128)",
        "S = ([64], 4)\nunknown(S[0])",
        "S = (4, *[[64]])\nunknown(S[1])",
        "S = [64]\nS.extend([128])",
        "S = [64]\nfor b in (128, 256):\n    S.append(b)",
        "S = [64]\nS += [128]",
        "S = [64]\nS[0] = 128",
        "S = [64]\ndel S[0]",
        "S = [64]\nA = S\nA.append(128)",
        "S = [64]\nA = B = S\nB.append(128)",
        "S = [64]\nm = S.append\nm(128)",
        "S = [64]\n(A := S).append(128)",
        "S = [64]\nA, B = S, 1\nA.append(128)",
        "S = [64]\nA = [S]\nA[0].append(128)",
        "S = [64]\nfor a in [S]:\n    a.append(128)",
        "S = [64]\nfor i, a in enumerate([S]):\n    a.append(128)",
        "S = [64]\n[a.append(128) for a in [S]]",
        "S = [64]\nA = {'s': S}\nA['s'].append(128)",
        "S = [64]\nA = {'s': S}\nA.get('s').append(128)",
        "S = [64]\nfor k, v in {'s': S}.items():\n    v.append(128)",
        "S = [64]\ndef grow(l):\n    l.append(128)\ngrow(S)",
        "S = [64]\ndef grow(*, l):\n    l.append(128)\ngrow(l=S)",
        "S = [64]\ndef grow(l=S):\n    l.append(128)\ngrow()",
        "S = [64]\ndef grow(a, l):\n    inner(l)\ndef inner(m):\n    m.insert(0, 1)\ngrow(1, S)",
        "S = [64]\ndef grow(*l):\n    l[0].append(128)\ngrow(S)",
        "S = [64]\ndef get():\n    return S\nget().append(128)",
        "S = [64]\ndef get():\n    return S\na = get()\na.append(128)",
        "S = [64]\ndef get():\n    yield S\nfor a in get():\n    a.append(128)",
        "S = [64]\nget = lambda: S\nget().append(128)",
        "S = [64]\ndef f():\n    l = S\n    l.append(128)",
        "S = [64]\ndef f(a):\n    l = S if a else []\n    l.append(128)",
        "S = [64]\ndef f():\n    def g():\n        S.append(128)\n    g()",
        "S = [64]\nunknown(S)",
        "S = [64]\nunknown.take(S)",
        "S = [64]\nrandom.shuffle(S)",
        "S = [64]\nlist.append(S, 128)",
        "S = [64]\nS.__setitem__(0, 128)",
        "S = [64]\ngetattr(S, 'append')(128)",
        "S = [64]\nclass C:\n    s = S\nC.s.append(128)",
        "S = [64]\nclass C:\n    def f(self):\n        self.s = S\n",
        "S = [64]\nx = unknown\nx.s = S",
        "S = list((64,))\nS.append(128)",
        "S = [b for b in (64,)]\nS.append(128)",
        "S = {'b': 64}\nS.update(b=128)",
        "S = {'b': 64}\nS |= {'b': 128}",
        "S = [[64]]\nS[0].append(128)",
        "S = [[64]]\nfor s in S:\n    s.append(128)",
        "S = [[64]]\nlist(S)[0].append(128)",
    ],
)
def test_what_code_may_change_is_lost(text: str) -> None:
    assert "S" in module(text).lost


@pytest.mark.parametrize(
    "text",
    [
        "S = (4, [64])\nunknown(S[0])",
        "S = [64]\nA = S\nB = A[0] + len(A)",
        "S = [64]\nfor s in S:\n    unknown(s)",
        "S = [64]\nA = [unknown(s) for s in S]\nA.append(1)",
        "S = [64]\nA = list(S)\nA.append(1)",
        "S = [64]\nA = sorted(S) + S\nA.append(1)",
        "S = [64]\nA = [*S]\nA.append(1)",
        "S = [64]\nA = S.copy()\nA.append(1)",
        "S = [64]\nassert 64 in S and S",
        "S = [64]\ndef f(l):\n    return l[0]\nf(S)",
        "S = [64]\ndef f():\n    S = []\n    S.append(1)",
        "S = [64]\ndef f(S):\n    S.append(1)",
        "S = [64]\nf = lambda S: S.append(1)",
        "S = [64]\ndef f():\n    for S in ([],):\n        S.append(1)",
        "S = [64]\n[S.append(1) for S in ([],)]",
        "S = [64]\nclass C:\n    S = []\n",
        "S = [64]\ntorch.empty(S)",
        "S = {'b': 64}\nx = S.get('b')\nfor k, v in S.items():\n    unknown(k, v)",
        "S = (64, 128)\nunknown(S)",
        "S = 64\nunknown(S)",
        "S = [unknown()]\n@triton.autotune(configs=S, key=[])\n@triton.jit\ndef k(p):\n    pass\nk[(1,)]()",
    ],
)
def test_what_is_only_read_is_kept(text: str) -> None:
    assert "S" not in module(text).lost


@pytest.mark.parametrize(
    "text",
    [
        "C = tl.constexpr(4)\nglobals()['C'] = tl.constexpr(400)",
        "C = tl.constexpr(4)\nglobals().update(C=tl.constexpr(400))",
        "C = tl.constexpr(4)\nfor n in ('C',):\n    globals()[n] = 400",
        "C = tl.constexpr(4)\ng = globals()\ng['C'] = 400",
        "C = tl.constexpr(4)\nvars()['C'] = 400",
        "C = tl.constexpr(4)\nlocals()['C'] = 400",
        "C = tl.constexpr(4)\nsetattr(sys.modules[__name__], 'C', 400)",
        "C = tl.constexpr(4)\nsys.modules[__name__].C = 400",
        "C = tl.constexpr(4)\nsys.modules[__name__].__dict__['C'] = 400",
        "C = tl.constexpr(4)\nme = sys.modules[__name__]\nme.C = 400",
        "C = tl.constexpr(4)\nexec('C = 400')",
        "C = tl.constexpr(4)\nexec('C = 400', globals())",
        "C = tl.constexpr(4)\neval('globals().update(C=400)')",
        "C = tl.constexpr(4)\ndef f():\n    pass\nf.__globals__['C'] = 400",
        "C = tl.constexpr(4)\nsetattr(C, 'value', 400)",
        "C = tl.constexpr(4)\nimport builtins\nbuiltins.exec('C = 400')",
        "C = tl.constexpr(4)\nimport builtins\ngetattr(builtins, 'exec')('C = 400')",
        "C = tl.constexpr(4)\nfrom builtins import exec as run\nrun('C = 400')",
        "C = tl.constexpr(4)\n__builtins__['exec']('C = 400')",
        "C = tl.constexpr(4)\nrun = exec\nrun('C = 400')",
        "C = tl.constexpr(4)\ng = globals\ng()['C'] = 400",
        "C = tl.constexpr(4)\nlist(map(setattr, [me], ['C'], [400]))",
        "C = tl.constexpr(4)\nimport inspect\ninspect.currentframe().f_globals['C'] = 400",
        "C = tl.constexpr(4)\nimport sys\nsys._getframe().f_locals.update(C=400)",
        "C = tl.constexpr(4)\nimport sys\ngetattr(sys._getframe(), 'f_globals')['C'] = 400",
        "C = tl.constexpr(4)\nimport __main__\n__main__.C = 400",
        "C = tl.constexpr(4)\nimport __main__ as me\nsetattr(me, 'C', 400)",
        "C = tl.constexpr(4)\nM = C\nM.value = 400",
        "C = tl.constexpr(4)\nfor M in (C,):\n    M.value = 400",
        "C = tl.constexpr(4)\ndef f(c):\n    c.value += 400\nf(C)",
        # A loop whose variable, or the tuple that it goes over, may hold texts that do not stand there.
        "C = tl.constexpr(4)\nfor n in ('f',):\n    n = 'C'\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('f',):\n    n += g\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('f',):\n    if (n := 'C'):\n        globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('f',):\n    for n in all_names():\n        globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('f',):\n    pass\nn = 'C'\nglobals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('f',):\n    pass\nelse:\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ['f', g]:\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('f', *g):\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nNAMES = ('f',)\nNAMES = ('C',)\nfor n in NAMES:\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nNAMES = ('f',)\nNAMES += ('C',)\nfor n in NAMES:\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nNAMES = ('f',)\nfrom other import *\nfor n in NAMES:\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nNAMES = ('f',)\nvars()['NAMES'] = (g,)\nfor n in NAMES:\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('n', 'f'):\n    globals()[n] = 400",
        "C = tl.constexpr(4)\ndef f(n):\n    globals()[n] = 400\nfor n in ('f',):\n    pass",
        "C = tl.constexpr(4)\nfor n in ('f', 'C'):\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nNAMES = ('f', 'C')\nfor n in NAMES:\n    globals()[n] = 400",
        "C = tl.constexpr(4)\nfor n in ('f',):\n    globals()[n + 'g'] = 400",
        "C = tl.constexpr(4)\nfor n in ('f',):\n    globals()[n], globals()[h()] = 400, 400",
    ],
)
def test_what_the_namespace_of_a_module_is_given_is_lost(text: str) -> None:
    assert "C" in module(text).lost


@pytest.mark.parametrize(
    "text",
    [
        "C = tl.constexpr(4)\nx = globals()['C']",
        "C = tl.constexpr(4)\nglobals()['D'] = 400",
        "C = tl.constexpr(4)\nif 'C' in globals():\n    pass",
        "C = tl.constexpr(4)\ndef f():\n    return locals()",
        "C = tl.constexpr(4)\nexec('C = 400', {})",
        "C = tl.constexpr(4)\nx = eval(f'tl.{C}')",
        "C = tl.constexpr(4)\nmodel.eval()\nmodel.exec = 3",
        "C = tl.constexpr(4)\nimport builtins\nprint(builtins.len([1]), C)",
        "C = tl.constexpr(4)\nimport inspect\nx = inspect.currentframe().f_globals['C']",
        "C = tl.constexpr(4)\nimport __main__\nx = __main__.C",
        "C = tl.constexpr(4)\nM = C\nx = M.value",
        "C = tl.constexpr(4)\nD = 4\nD.value = 400",
        "C = tl.constexpr(4)\nif __name__ == '__main__':\n    print(sys.modules['x'])",
        "C = tl.constexpr(4)\nfor n in ('f', 'g'):\n    globals()[n] = wrapped(globals()[n])\ndel n",
        "C = tl.constexpr(4)\nNAMES = ('f', 'g')\nfor n in NAMES:\n    globals()[n] = wrapped(globals()[n])",
    ],
)
def test_a_namespace_that_is_only_read_changes_nothing(text: str) -> None:
    assert "C" not in module(text).lost


def test_a_loop_binds_the_names_that_it_goes_over() -> None:
    lost = module("f = 1\ng = 2\nh = 3\nfor n in ('f', 'g'):\n    globals()[n] = 400").lost
    assert {"f", "g"} <= lost
    assert "h" not in lost


CONFIGS = """
CONFIGS = [triton.Config({"BLOCK": 64})]
%s
@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def kernel(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, 1.0)
%s
def launch():
    out = torch.empty(128, device="cuda")
    kernel[(2,)](out, 128)
"""
MORE = 'triton.Config({"BLOCK": 128})'


def tuned(before: str = "", after: str = "") -> bool:
    """Whether the configurations of the launch are known."""
    return "kernel.BLOCK" in {
        symbol.name for fact in launched(CONFIGS % (before, after)).facts for symbol in E.symbols(fact)
    }


def test_configurations_that_nothing_changes_are_read() -> None:
    assert tuned()
    assert tuned("assert len(CONFIGS) == 1", "print(kernel.configs[0])")
    assert tuned("", "kernel.cache.clear()")
    assert tuned("", "best = kernel.best_config\nunknown(best.kwargs['BLOCK'], best)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"CONFIGS.append({MORE})", ""),
        (f"for b in (128, 256):\n    CONFIGS.append({MORE})", ""),
        (f"CONFIGS += [{MORE}]", ""),
        (f"def grow(l):\n    l.append({MORE})\ngrow(CONFIGS)", ""),
        ("for c in CONFIGS:\n    c.kwargs['BLOCK'] = 128", ""),
        ("CONFIGS[0].kwargs['BLOCK'] = 128", ""),
        ("CONFIGS[0].kwargs.update(BLOCK=128)", ""),
        ("", f"CONFIGS.append({MORE})"),
        ("", f"kernel.configs.append({MORE})"),
        ("", f"kernel.configs = [{MORE}]"),
        ("", f"k = kernel\nk.configs.append({MORE})"),
        ("", f"c = kernel.configs\nc.append({MORE})"),
        ("", f"def grow(k):\n    k.configs.append({MORE})\ngrow(kernel)"),
        ("", "for c in kernel.configs:\n    c.kwargs['BLOCK'] = 128"),
        ("", "unknown(kernel)"),
        ("", "unknown.best = kernel.best_config\nunknown.best.kwargs['BLOCK'] = 128"),
        ("", "unknown.best = kernel.best_config\nkw = unknown.best.kwargs\nkw.update(BLOCK=128)"),
        ("", f"setattr(kernel, 'configs', [{MORE}])"),
    ],
)
def test_configurations_that_code_changes_are_not_read(before: str, after: str) -> None:
    assert not tuned(before, after)


def pruned(prune: str, options: str = "prune_configs_by={'early_config_prune': prune}") -> bool:
    """Whether the configurations are known of a tuner that prunes them."""
    text = CONFIGS % (textwrap.dedent(prune), "")
    text = text.replace('configs=CONFIGS, key=["n"]', f'CONFIGS, ["n"], {options}')
    return any("kernel.BLOCK" in str(fact) for fact in launched(text).facts)


CHOOSE = "LEAST = 32\ndef prune(configs, nargs, **kwargs):\n"


@pytest.mark.parametrize(
    "body",
    [
        "return configs",
        "return [c for c in configs if c.kwargs['BLOCK'] <= {**nargs, **kwargs}['n']]",
        "n = min(kwargs['n'], LEAST)\n    return [c for c in configs if c.kwargs['BLOCK'] > n] or configs[:1]",
        "kept = []\n    for c in configs:\n        kw = c.kwargs\n        kept.append(c)\n    return kept",
        "return sorted(configs, key=lambda c: triton.cdiv(c.kwargs['BLOCK'], 2))",
        "return list(filter(small, configs))\ndef small(c):\n    return c.kwargs['BLOCK'] < 128",
    ],
)
def test_a_prune_that_only_chooses_leaves_the_configurations_known(body: str) -> None:
    assert pruned(f"{CHOOSE}    {body}")


@pytest.mark.parametrize(
    "body",
    [
        f"return [{MORE}]",
        "return [triton.runtime.autotuner.Config({'BLOCK': 128})]",
        "from triton import Config as C\n    return [C({'BLOCK': 128})]",
        "return list(map(triton.Config, [{'BLOCK': 128}]))",
        "return [type(configs[0])({'BLOCK': 128})]",
        "return [configs[0].__class__({'BLOCK': 128})]",
        "make = configs[0].__class__\n    return [make({'BLOCK': 128})]",
        "return MORE\nMORE = [triton.Config({'BLOCK': 128})]",
        "return more()\ndef more():\n    return [triton.Config({'BLOCK': 128})]",
        "return unknown(configs)",
        "return list(map(unknown, configs))",
        "for c in configs:\n        c.kwargs['BLOCK'] = 128\n    return configs",
        "for c in configs:\n        c.kwargs.update(BLOCK=128)\n    return configs",
        "f = configs[0].kwargs.update\n    f(BLOCK=128)\n    return configs",
        "list(map(configs[0].kwargs.update, [{'BLOCK': 128}]))\n    return configs",
        "kw = configs[0].kwargs\n    kw |= {'BLOCK': 128}\n    return configs",
        "for configs[0].kwargs['BLOCK'] in (128,):\n        pass\n    return configs",
        "(c := configs[0]).kwargs = {'BLOCK': 128}\n    return configs",
        "setattr(configs[0], 'kwargs', {'BLOCK': 128})\n    return configs",
        "dict.update(configs[0].kwargs, BLOCK=128)\n    return configs",
        "return nargs['p'].more(configs)",
        "return [ONE]\nONE = triton.Config(unknown)",
        "return [ONE]\nONE = unknown",
        "return [ONE[0]]\nONE = (triton.Config(unknown),)",
        "return FOUND\nFOUND = []\nFOUND.append(triton.Config({'BLOCK': 128}))",
    ],
)
def test_a_prune_that_may_make_configurations_leaves_them_unknown(body: str) -> None:
    assert not pruned(f"{CHOOSE}    {body}")


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ("**{}", True),
        ("**({'cache_results': True} if unknown else {})", True),
        ("prune_configs_by={'perf_model': unknown, 'top_k': 2}", True),
        ("prune_configs_by={'early_config_prune': lambda configs, nargs, **kw: configs[:1]}", True),
        ("prune_configs_by={'early_config_prune': lambda configs, nargs, **kw: unknown(configs)}", False),
        ("prune_configs_by=unknown", False),
        ("prune_configs_by={'early_config_prune': unknown}", False),
        ("prune_configs_by={**unknown}", False),
        ("**{'prune_configs_by': {'early_config_prune': unknown}}", False),
        ("**unknown", False),
        ("unknown", False),
        ("*unknown", False),
    ],
)
def test_options_of_a_tuner_that_may_prune(options: str, known: bool) -> None:
    assert pruned("", options) == known


@pytest.mark.parametrize(
    ("decorators", "known"),
    [
        ("@triton.heuristics({'M': lambda args: 1})\n@triton.autotune(configs=CONFIGS, key=[])", True),
        ("@triton.autotune(configs=CONFIGS, key=[])\n@unknown", True),
        ("@unknown\n@triton.autotune(configs=CONFIGS, key=[])", False),
        ("@unknown()\n@triton.heuristics({})\n@triton.autotune(configs=CONFIGS, key=[])", False),
    ],
)
def test_a_decorator_may_change_the_tuner_that_it_is_given(decorators: str, known: bool) -> None:
    text = (CONFIGS % ("", "")).replace('@triton.autotune(configs=CONFIGS, key=["n"])', decorators)
    assert any("kernel.BLOCK" in str(fact) for fact in launched(text).facts) == known


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", True),
        ("t = [s[0]]\nt.append(128)", True),
        ("def look(l):\n    return l[0]\nlook(s)", True),
        ("f = s.append\nf(128)", False),
        ("t = [s]\nt[0].append(128)", False),
        ("def grow(l):\n    m = l\n    m.append(128)\ngrow(s)", False),
    ],
)
def test_a_list_of_a_function_is_read_while_each_change_is_seen(text: str, known: bool) -> None:
    made = '    out = torch.empty(128, device="cuda")\n    s = [64]\n'
    lines = f"def host():\n{made}{textwrap.indent(text, '    ')}\n"
    kernel = KERNEL.partition("def launch")[0]
    [launch] = find_launches(module(f"{kernel}\n{lines}    kernel[(2,)](out, 128, BLOCK=s[-1])\n"))
    passed = dict(launch.arguments)["BLOCK"]
    assert (isinstance(passed, E.Expr) and passed.value == 64) == known


def inside(text: str) -> str:
    """The kernel, its configurations and its launch inside one function."""
    return "def host():\n" + textwrap.indent(text.replace("def launch():", "if True:"), "    ")


def test_configurations_of_a_function_are_read() -> None:
    [launch] = find_launches(module(inside(CONFIGS % ("", ""))))
    assert any("kernel.BLOCK" in str(fact) for fact in launch.facts)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"CONFIGS = [{MORE}]"),
        ("", f"kernel.configs.append({MORE})"),
        ("", f"c = [CONFIGS]\nc[0].append({MORE})"),
        (f"def grow(l):\n    m = l\n    m.append({MORE})\ngrow(CONFIGS)", ""),
    ],
)
def test_configurations_that_a_function_changes_are_not_read(before: str, after: str) -> None:
    [launch] = find_launches(module(inside(CONFIGS % (before, after))))
    assert not any("kernel.BLOCK" in str(fact) for fact in launch.facts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("class C:\n    B = 64\n    B += 64", "C.B"),
        ("class C:\n    B = 64\n    if True:\n        B = 128", "C.B"),
        ("class C:\n    B = 64\n    for B in (128,):\n        pass", "C.B"),
        ("class C:\n    B = 64\n    B, D = 128, 1", "C.B"),
        ("class C:\n    B = 64\n    del B", "C.B"),
        ("class C:\n    B = 64\n    vars()['B'] = 128", "C.B"),
        ("def deco(c):\n    c.B = 128\n    return c\n@deco\nclass C:\n    B = 64", "C.B"),
        ("@unknown\nclass C:\n    B = 64", "C.B"),
        ("class C(metaclass=unknown):\n    B = 64", "C.B"),
        ("class C:\n    B = 64\n    @property\n    def B(self):\n        return 128", "C().B"),
        ("class C:\n    B = 64\n    @classmethod\n    def set(cls):\n        cls.B = 128\nC.set()", "C.B"),
        ("class C:\n    B = 64\n    def set(self):\n        setattr(type(self), 'B', 128)\nC().set()", "C.B"),
        ("class C:\n    B = 64\n    def set(self):\n        type(self).B += 64\nC().set()", "C.B"),
        ("class C:\n    B = 64\n    def set(self):\n        type(self).B = 128\nC().set()", "C.B"),
        (
            "class D:\n    def __set_name__(self, c, n):\n        c.B = 128\nclass C:\n    B = 64\n    d = D()",
            "C.B",
        ),
        ("class D:\n    def __get__(self, c, t):\n        return 128\nclass C:\n    B = D()", "C.B"),
        ("class C:\n    B = [64]\n    def set(self):\n        self.B.append(128)\nC().set()", "C.B[-1]"),
        ("class C:\n    B = 64\nC.B = 128", "C.B"),
        ("class C:\n    B = 64\nsetattr(C, 'B', 128)", "C.B"),
        ("class C:\n    B = 64\nD = C\nD.B = 128", "C.B"),
        ("class C:\n    B = 64\ndef f(c):\n    c.B = 128\nf(C)", "C.B"),
        ("class A:\n    def __init__(self):\n        self.B = 128\nclass C(A):\n    B = 64", "C().B"),
        ("class A:\n    def set(self):\n        self.B = 128\nclass C(A):\n    B = 64\nC().set()", "C.B"),
        (
            "class A:\n    def __init_subclass__(cls):\n        cls.B = 128\nclass C(A):\n    B = 64",
            "C.B",
        ),
        ("class C:\n    B = 64\nc = C()\nc.B = 128", "c.B"),
        ("class C:\n    B = 64\nc = C()\ndef f(d):\n    d.B = 128\nf(c)", "c.B"),
    ],
)
def test_fields_that_code_may_change_are_not_known(text: str, value: str) -> None:
    assert block(text, value) is None


def test_what_a_function_with_other_code_returns_is_not_known() -> None:
    text = "def pick():\n    return 64\n"
    assert block(text, "pick()") == 64
    assert block(f"{text}def other():\n    return 128\npick.__code__ = other.__code__", "pick()") is None
    assert block("def pick(b=64):\n    return b\npick.__defaults__ = (128,)", "pick()") is None


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("class C:\n    'Sizes.'\n    B: int = 64\n    def f(self):\n        return self.B", "C.B", 64),
        ("class C:\n    B = 64\n    B = 128", "C.B", 128),
        ("class C:\n    A = B = 64", "C.B", 64),
        ("A = 32\nclass C:\n    A = 64\n    B = A * 2", "C.B", 128),
        ("class A:\n    B = 64\nclass C(A):\n    D = 1", "C.B", 64),
        ("class A:\n    B = 64\nclass C(A):\n    B = 128", "C.B", 128),
        ("class C:\n    B = 64\n    @staticmethod\n    def f(x):\n        x.y = 1\nC.f(unknown)", "C.B", 64),
        (
            "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass C:\n    B: int\nc = C(64)",
            "c.B",
            64,
        ),
        (
            f"import dataclasses as d\n{DATA}class A:\n    B: int\n{DATA}class C(A):\n    D: int\nc = C(64, 2)",
            "c.B",
            64,
        ),
    ],
)
def test_fields_of_plain_classes_are_read(text: str, value: str, expected: int) -> None:
    assert block(text, value) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from sizes import S\nS.append(128)\nBLOCK = tl.constexpr(S[-1])",
        "from sizes import S as T\nA = T\nA.append(128)\nBLOCK = tl.constexpr(T[-1])",
        "import sizes\nsizes.S.append(128)\nBLOCK = tl.constexpr(sizes.S[-1])",
        "import sizes\nsizes.B = 128\nBLOCK = tl.constexpr(sizes.B)",
        "import sizes\nS = sizes.S\nS.append(128)\nBLOCK = tl.constexpr(S[-1])",
        "from sizes import C\nC.B = 128\nBLOCK = tl.constexpr(C.B)",
    ],
)
def test_what_code_changes_in_another_module_is_lost(text: str, tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("S = [64]\nB = 64\nclass C:\n    B = 64\n")
    path = tmp_path / "kernel.py"
    path.write_text(f"{HEAD}{text}\n@triton.jit\ndef kernel(p):\n    tl.store(p + BLOCK, 1.0)\n")
    [definition] = find_kernels(Project().add(load(path.as_posix())))
    with pytest.raises(UnsupportedConstruct, match="that other code changes"):
        lower(definition)


@pytest.mark.parametrize("statement", ["import own as me", "from . import own as me"])
def test_a_module_that_imports_itself_may_bind_its_names(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    for change, lost in (("me.C = 400", True), ("x = me.C", False)):
        path.write_text(f"C = 4\nD = 5\n{statement}\n{change}\n", encoding="utf-8")
        table = Project().add(load(path.as_posix()))
        assert ("C" in table.lost) == lost
        path.unlink()


def test_a_library_with_the_name_of_the_file_is_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "triton.py"
    path.write_text("import triton\nC = 4\nk = triton.jit(f)\nunknown(triton)\n", encoding="utf-8")
    assert "C" not in Project().add(load(path.as_posix())).lost
