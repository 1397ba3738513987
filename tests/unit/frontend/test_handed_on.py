"""Triton by way of another module of the package, or of a name that is a stand-in where Triton is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNEL = """
@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places, mask=places < n), mask=places < n)
"""
GUARDED = """
from typing import TYPE_CHECKING
from package.found import HAS_TRITON, Placeholder

if TYPE_CHECKING or HAS_TRITON:
    import triton
    import triton.language as tl
else:
    triton = Placeholder()
    tl = None
"""
TRIED = """
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None
"""
EITHER = """
import triton
from package.found import HAS_TRITON

if HAS_TRITON:
    import triton.language as tl
else:
    import package.language as tl
"""
OTHER = """
import triton
import package.language as tl
"""


FOUND = """
HAS_TRITON = True

class Placeholder:
    pass
"""


def verdicts(root: Path, compat: str | None, head: str, *, packaged: bool = True) -> list[str]:
    package = root / "package"
    (package / "deep").mkdir(parents=True)
    if packaged:
        (package / "__init__.py").touch()
        (package / "deep" / "__init__.py").touch()
    (package / "found.py").write_text(FOUND)
    if compat is not None:
        (package / "compat.py").write_text(compat)
    (package / "deep" / "kernels.py").write_text(head + KERNEL)
    return [k.verdict.value for k in verify_paths([str(package / "deep" / "kernels.py")]).kernels]


ABSOLUTE, RELATIVE = "from package.compat import tl, triton\n", "from ..compat import tl, triton\n"


@pytest.mark.parametrize("head", [ABSOLUTE, RELATIVE])
@pytest.mark.parametrize("compat", [GUARDED, TRIED])
@pytest.mark.parametrize("packaged", [True, False])
def test_another_module_hands_triton_on(tmp_path: Path, head: str, compat: str, packaged: bool) -> None:
    assert verdicts(tmp_path, compat, head, packaged=packaged) == ["conditional"]


def test_a_module_that_is_not_found_means_what_its_names_say(tmp_path: Path) -> None:
    assert verdicts(tmp_path, None, ABSOLUTE) == ["conditional"]


@pytest.mark.parametrize("head", [GUARDED, TRIED])
def test_a_stand_in_is_no_module(tmp_path: Path, head: str) -> None:
    assert verdicts(tmp_path, None, head) == ["conditional"]


@pytest.mark.parametrize("text", [EITHER, OTHER])
def test_another_language_is_not_taken_for_triton(tmp_path: Path, text: str) -> None:
    assert verdicts(tmp_path / "here", None, text) == ["unknown"]
    assert verdicts(tmp_path / "there", text, ABSOLUTE) == ["unknown"]


def test_a_folder_may_have_the_name_of_a_language(tmp_path: Path) -> None:
    folder = tmp_path / "package" / "triton"
    folder.mkdir(parents=True)
    (folder / "language.py").touch()
    (folder / "kernels.py").write_text(TRIED + KERNEL)
    assert [k.verdict.value for k in verify_paths([str(folder / "kernels.py")]).kernels] == ["conditional"]


INDUCTOR = """
import triton
import triton.language as tl
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

@triton.jit
def exponents(x, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = libdevice.tanh(tl_math.exp(tl.load(x + places, places < n)))
    tl.store(out + {place}, value, places < n)
"""


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (INDUCTOR.format(place="places"), "conditional"),
        (INDUCTOR.format(place="places // 2"), "violated"),  # which the other interpreter has run, too
        (INDUCTOR.format(place="places").replace("torch._inductor.runtime.", "package."), "unknown"),
        (INDUCTOR.format(place="places").replace("math as", "maths as"), "unknown"),
    ],
)
def test_pytorch_hands_on_functions_of_triton(tmp_path: Path, text: str, verdict: str) -> None:
    (tmp_path / "kernels.py").write_text(text)
    [kernel] = verify_paths([str(tmp_path / "kernels.py")]).kernels
    assert kernel.verdict.value == verdict
