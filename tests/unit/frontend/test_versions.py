"""Names of a module that depend on the release of Triton."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.model import Verdict

MODULE = """
import triton
import triton.language as tl
from somewhere import Version, DEVICE

if {test}:
    if DEVICE == "xpu":
        tanh = tl.extra.intel.libdevice.tanh
    else:
        from triton.language.extra import libdevice
        tanh = libdevice.tanh
    cast = tl.cast
    WIDTH = 1
else:
    tanh = tl.math.tanh
    WIDTH = 2
    @triton.jit
    def cast(x, dtype):
        return x.to(dtype)

@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs * WIDTH < n)
    tl.store(o_ptr + offs, cast(tanh(x), tl.float32), mask=offs < n)
"""


@pytest.mark.parametrize(
    ("test", "decided"),
    [
        ('Version(triton.__version__) >= Version("3.0.0")', True),
        ('version.parse(triton.__version__) > version.parse("2.1")', True),
        ('Version(triton.__version__) >= Version("3.6.0")', False),
        ('Version(triton.__version__) == Version("3.0.0")', False),
        ('Version(other.__version__) >= Version("3.0.0")', False),
    ],
)
def test_releases_that_are_too_old_do_not_count(tmp_path: Path, test: str, decided: bool) -> None:
    path = tmp_path / "k.py"
    path.write_text(MODULE.format(test=test))
    (kernel,) = (k for k in verify_paths([str(path)]).kernels if k.name == "k")
    assert (kernel.verdict is Verdict.CONDITIONAL) is decided
    assert decided or "bound more than once" in (kernel.reason or "")
