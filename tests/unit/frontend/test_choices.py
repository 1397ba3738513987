"""Names that are one thing under a compile-time flag and another without it."""

from __future__ import annotations

from pathlib import Path

from tilecheck import verify_paths
from tilecheck.model import KernelReport, Verdict

HEAD = "import triton\nimport triton.language as tl\n\n@triton.jit\n"


def verified(folder: Path, kernel: str) -> KernelReport:
    path = folder / "k.py"
    path.write_text(HEAD + kernel)
    return verify_paths([str(path)]).kernels[0]


def test_a_pointer_to_one_element_or_to_several(tmp_path: Path) -> None:
    report = verified(
        tmp_path,
        """
def k(b_ptr, o_ptr, T, V: tl.constexpr, WISE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if WISE:
        p = b_ptr + row * T * V + tl.arange(0, BLOCK)
    else:
        p = b_ptr + row * T
    q = o_ptr + row * T * BLOCK + tl.arange(0, BLOCK)
    for _ in range(T):
        tl.store(q, tl.load(p) + tl.arange(0, BLOCK))
        p += V if WISE else 1
        q += BLOCK
""",
    )
    assert report.verdict is Verdict.CONDITIONAL
    assert any(c.startswith("WISE or ") and "numel(b_ptr)" in c for c in report.conditions)
    assert any(c.startswith("not WISE or ") and "numel(b_ptr)" in c for c in report.conditions)


def test_a_number_that_is_a_parameter_or_was_computed(tmp_path: Path) -> None:
    report = verified(
        tmp_path,
        """
def k(o_ptr, n, most, CLAMP: tl.constexpr):
    if CLAMP:
        n = tl.minimum(n, most)
    q = o_ptr + tl.program_id(0) * most
    for i in range(n):
        tl.store(q + i, i)
""",
    )
    assert report.reason is None or not report.reason.startswith("unsupported")
