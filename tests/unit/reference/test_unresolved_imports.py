"""A kernel is replayed also where the module from which it has Triton is not found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import check_source, verify_paths
from tilecheck.model import Verdict

KERNEL = """

@triton.jit
def k(x, out, n, B: tl.constexpr):
    o = tl.program_id(0){} * B + tl.arange(0, B)
    m = o < n
    tl.store(out + o, tl.load(x + o, mask=m) * 2.0, mask=m)
"""
HEADS = {
    "package": "from package.compat import tl, triton",
    "two modules": "from package.compat import triton\nfrom package.language import tl",
    "sibling": "from .compat import triton, tl",
    "own language": "import triton\nfrom package.compat import tl",
    "star": "from package.compat import *\nimport triton\nimport triton.language as tl",
    "none": "try:\n    import triton\n    import triton.language as tl\n"
    "except ImportError:\n    triton = tl = None",
    "object": "try:\n    import triton\n    import triton.language as tl\n"
    "except ImportError:\n    triton = object()\n    tl = object()",
    "fallback": "try:\n    from package.compat import triton, tl\n"
    "except ImportError:\n    import triton\n    import triton.language as tl",
    "environment": 'import os\nif os.environ.get("A"):\n    from a.compat import triton, tl\n'
    "else:\n    from b.compat import triton, tl",
    "type checking": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import triton\n"
    "    import triton.language as tl\nelse:\n    from package.compat import tl, triton",
}


@pytest.mark.parametrize("head", HEADS)
def test_a_race_is_violated_and_its_right_neighbour_is_not(head: str) -> None:
    for change, verdict in ((" // 2", Verdict.VIOLATED), ("", Verdict.CONDITIONAL)):
        (kernel,) = check_source(HEADS[head] + KERNEL.format(change)).kernels
        assert kernel.verdict is verdict


def test_a_name_of_triton_that_a_found_module_binds_otherwise_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "compat.py").write_text("class tl:\n    def program_id(axis):\n        return 0\n")
    (tmp_path / "k.py").write_text("import triton\nfrom compat import tl\n" + KERNEL.format(" // 2"))
    (kernel,) = verify_paths(tmp_path / "k.py").kernels
    assert kernel.verdict is Verdict.UNKNOWN
