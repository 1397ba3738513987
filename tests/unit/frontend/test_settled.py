"""Names of a module that several of its parts bind, some of them only to stand in where Triton is missing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tilecheck import verify_paths

HEAD = "import os\nimport triton\nimport triton.language as tl\n\n"
KERNEL = """

@triton.jit
def kernel(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + place(i), i, mask=i < n)
"""
TILES = """

@triton.jit
def kernel(x, n):
    i = tl.program_id(0) * N + tl.arange(0, 8)
    tl.store(x + i, i, mask=i < n)
"""
LARGEST = """

@triton.jit
def kernel(x, n):
    i = max(tl.program_id(0), 0)
    tl.store(x + i, i, mask=i < n)
"""
ROUNDED = """

@triton.jit
def kernel(x, n):
    i = tl.cdiv(tl.program_id(0) * 2, 2)
    tl.store(x + i, i, mask=i < n)
"""
ONE = "@triton.jit\ndef place(x):\n    return x\n"
HALF = "@triton.jit\ndef place(x):\n    return x // 2\n"
RAISES = 'def place(x):\n    raise RuntimeError("no Triton")\n'


def verdict(root: Path, text: str, *, head: str = HEAD, **others: str) -> str:
    for name, other in others.items():
        (root / f"{name}.py").write_text(HEAD + textwrap.dedent(other))
    (root / "kernels.py").write_text(head + textwrap.dedent(text))
    [kernel] = verify_paths([str(root / "kernels.py")]).kernels
    return kernel.verdict.value


def guarded(text: str, test: str = 'os.environ.get("WIDE")') -> str:
    return f"if {test}:\n{textwrap.indent(text, '    ')}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RAISES + guarded(ONE), "conditional"),
        (RAISES + guarded(ONE) + "another = place\n", "conditional"),
        (HALF + "seen = place\n" + RAISES + guarded(ONE) + KERNEL.replace("place", "seen"), "unknown"),
        (ONE + "seen = place\n" + KERNEL.replace("place", "seen"), "conditional"),
        (RAISES + "seen = place\n" + guarded(ONE) + KERNEL.replace("place", "seen"), "unknown"),
    ],
)
def test_what_code_of_the_module_saw_is_no_later_function(tmp_path: Path, text: str, expected: str) -> None:
    assert verdict(tmp_path, text if "def kernel" in text else text + KERNEL) == expected


@pytest.mark.parametrize(
    "text",
    [
        "M = 4\ndef size():\n    return M\nN: tl.constexpr = size()\nM = 8\n",
        "M = 4\ndef size(m=0):\n    return m + M\nN = tl.constexpr(size())\nM = 8\n",
        "for M in (4,):\n    pass\nN = tl.constexpr(M)\nM = 8\n",
        "from sizes import *\nN = tl.constexpr(M)\nM = 8\n",
        "tl = None\nM = 4 if tl is None else 8\nimport triton.language as tl\nN = tl.constexpr(M)\n",
        "lang = tl\nif flag:\n    tl = None\nN = lang.constexpr(4 if tl is None else 8)\n",
        "*rest, N = (tl.constexpr(4), tl.constexpr(8), tl.constexpr(4))\n",
        "N = tl.constexpr(8)\n(N, b), c = (tl.constexpr(4), 1), 2\n",
        "N = tl.constexpr(4)\ntry:\n    import missing\n    N = tl.constexpr(8)\nexcept Exception:\n    pass\n",
        "try:\n    N = tl.constexpr(4)\n    import odd\n    N = tl.constexpr(8)\nexcept OSError:\n    pass\n",
        "N = tl.constexpr(4)\nwith suppress(ImportError):\n    import missing\n    N = tl.constexpr(8)\n",
        'N = tl.constexpr(8)\nfor name in ("Q", *"NM"):\n    globals()[name] = tl.constexpr(4)\n',
    ],
)
def test_a_value_that_may_be_another_is_not_known(tmp_path: Path, text: str) -> None:
    assert verdict(tmp_path, text + TILES, sizes="M = 4") == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "M = 8\ndef size():\n    return M\nN: tl.constexpr = tl.constexpr(size())\n",
        "rest, N = (tl.constexpr(4), tl.constexpr(8))\n",
        "with suppress(ImportError):\n    N = tl.constexpr(8)\n",
        "try:\n    N = tl.constexpr(8)\nexcept ImportError:\n    pass\n",
        'N = tl.constexpr(8)\nfor name in ("Q", "M"):\n    globals()[name] = tl.constexpr(4)\n',
        "try:\n    import triton.language as tl\nexcept ImportError:\n    tl = None\nN = tl.constexpr(8)\n",
        "from sizes import M\nif flag:\n    N = tl.constexpr(8)\n",
    ],
)
def test_a_value_that_is_bound_in_one_way_is_known(tmp_path: Path, text: str) -> None:
    assert verdict(tmp_path, text + TILES, sizes="M = 4") == "conditional"


TWO = "@triton.jit\ndef two(a, b):\n    return a * 0\n"
NAMED = TWO.replace("two", "max")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "conditional"),
        (TWO + 'globals()["min"] = two\n', "conditional"),
        (TWO + 'globals()["max"] = two\n', "unknown"),
        (TWO + 'for name in ("min", "max"):\n    globals()[name] = two\n', "unknown"),
        (TWO + "import builtins\nbuiltins.max = two\n", "unknown"),
        (TWO + "if (max := two):\n    pass\n", "unknown"),
        (guarded(NAMED), "unknown"),
        ("try:\n    from somewhere import max\nexcept ImportError:\n    pass\n", "unknown"),
        ("from sizes import *\n", "conditional"),
        ("from largest import *\n", "violated"),
        ("from nowhere import *\n", "unknown"),
    ],
)
def test_a_function_of_python_may_be_hidden(tmp_path: Path, text: str, expected: str) -> None:
    head = text + HEAD if "*" in text.partition("\n")[0] else HEAD + text
    assert verdict(tmp_path, LARGEST, head=head, sizes="M = 4", largest=NAMED) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from tiles import *\n" + HEAD + guarded("N = tl.constexpr(8)"), "unknown"),
        ("from nowhere import *\n" + HEAD + guarded("N = tl.constexpr(8)"), "unknown"),
        ("from sizes import *\n" + HEAD + guarded("N = tl.constexpr(8)"), "conditional"),
        ("from tiles import *\n" + HEAD + "N = tl.constexpr(8)\n", "conditional"),
    ],
)
def test_a_star_may_have_bound_a_name_already(tmp_path: Path, text: str, expected: str) -> None:
    assert verdict(tmp_path, TILES, head=text, tiles="N = tl.constexpr(4)", sizes="M = 4") == expected


@pytest.mark.parametrize(
    ("text", "here", "expected"),
    [
        ("from here import *\n", ONE, "conditional"),
        ("from here import *\n", HALF, "violated"),
        ("from between import *\n", ONE, "conditional"),
        ("from here import *\n" + HALF, ONE, "violated"),
        (HALF + "from here import *\n", ONE, "unknown"),
        ("from here import *\nfrom there import *\n", ONE, "unknown"),
        ("from here import *\nfrom nowhere import *\n", ONE, "unknown"),
        ("from nowhere import *\nfrom here import *\n", ONE, "conditional"),
        (guarded("from here import *\n"), ONE, "unknown"),
        ("from here import *\n", '__all__ = ["place"]\n' + ONE, "unknown"),
        ("from here import *\n", "__all__ = []\n" + ONE, "unknown"),
        ("from here import *\n", ONE + "if os.name:\n" + textwrap.indent(HALF, "    "), "unknown"),
    ],
)
def test_a_star_binds_what_the_module_does(tmp_path: Path, text: str, here: str, expected: str) -> None:
    modules = {"here": here, "there": HALF, "between": "from here import *\n"}
    assert verdict(tmp_path, KERNEL, head=HEAD + text, **modules) == expected


def test_a_star_binds_no_name_that_begins_with_an_underscore(tmp_path: Path) -> None:
    own, kernel = ONE.replace("place", "_place"), KERNEL.replace("place", "_place")
    assert verdict(tmp_path, kernel, head=HEAD + "from here import *\n", here=own) == "unknown"


def tried(handler: str) -> str:
    return f"try:\n    from here import place\nexcept ImportError:\n{textwrap.indent(handler, '    ')}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (tried("place = None"), "conditional"),
        (tried("pass"), "conditional"),
        (tried(RAISES), "conditional"),
        (tried("raise"), "conditional"),
        (tried("from here import place"), "conditional"),
        (tried("from there import place"), "unknown"),
        (tried("place = other"), "unknown"),
        (tried(HALF), "unknown"),
        (HALF + tried("pass"), "unknown"),
        ("from here import place\nfrom nowhere import *\n", "unknown"),
        ("from nowhere import *\nfrom here import place\n", "conditional"),
        (ONE + "from nowhere import *\n", "unknown"),
        ("from nowhere import *\n" + ONE, "conditional"),
    ],
)
def test_an_import_counts_beside_what_no_kernel_can_use(tmp_path: Path, text: str, expected: str) -> None:
    assert verdict(tmp_path, text + KERNEL, here=ONE, there=HALF) == expected


def test_what_is_bound_later_counts_for_what_code_changes(tmp_path: Path) -> None:
    early = "from found import Missing\n" + either("Missing()")
    late = "import builtins as b\nb.globals()['place'] = half\n"
    text = early + ONE + HALF.replace("place", "half") + late + KERNEL
    assert verdict(tmp_path, text, found="class Missing:\n    pass\n") == "unknown"


def either(way: str) -> str:
    return f"if flag:\n    import triton.language as tl\nelse:\n    tl = {way}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (either("None"), "conditional"),
        ("class Missing:\n    pass\n" + either("Missing()"), "conditional"),
        ("import types\nclass Missing(types.ModuleType):\n    pass\n" + either("Missing('tl')"), "conditional"),
        ("from unittest.mock import MagicMock\n" + either("MagicMock()"), "conditional"),
        ("import mine\nif flag:\n    tl = mine\n", "unknown"),
        ("import mine\n" + either("mine"), "unknown"),
        ("import importlib\n" + either("importlib.import_module('mine')"), "unknown"),
        ("from somewhere import Missing\n" + either("Missing()"), "unknown"),
        ("import types\n" + either("types.ModuleType('tl')"), "unknown"),
        (
            "import mine\ndef Missing():\n    return mine\n"
            + either("Missing()")
            + "class Missing:\n    pass\n",
            "unknown",
        ),
        (
            "import mine\nclass Missing:\n    def __new__(cls):\n        return mine\n" + either("Missing()"),
            "unknown",
        ),
        (
            "class Missing:\n    def __getattr__(self, name):\n        return 1\n" + either("Missing()"),
            "unknown",
        ),
    ],
)
def test_a_module_may_be_used_for_the_language(tmp_path: Path, text: str, expected: str) -> None:
    mine = "from triton.language import *\n@triton.jit\ndef cdiv(a, b):\n    return a // b\n"
    assert verdict(tmp_path, text + ROUNDED, mine=mine) == expected
