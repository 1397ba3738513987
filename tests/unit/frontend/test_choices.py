"""Names that are one thing under a compile-time flag and another without it."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

from tilecheck import verify_paths
from tilecheck.frontend.values.values import Choice, chosen
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
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


def _value(value: Any, truths: dict[Expr, bool]) -> Any:
    while isinstance(value, Choice):
        value = value.first if _holds(value.cond, truths) else value.second
    return value


def _holds(cond: Expr, truths: dict[Expr, bool]) -> bool:
    match cond.op:
        case "not":
            return not _holds(cond.args[0], truths)
        case "all":
            return all(_holds(term, truths) for term in cond.args)
        case "any":
            return any(_holds(term, truths) for term in cond.args)
        case "true" | "false":
            return cond.op == "true"
        case _:
            return truths[cond]


def _leaves(value: Any) -> int:
    return _leaves(value.first) + _leaves(value.second) if isinstance(value, Choice) else 1


def test_a_branch_that_is_there_already_is_not_copied() -> None:
    rng = random.Random(11)
    flags = [E.bool_sym(Symbol(f"c{i}", Kind.HOST)) for i in range(5)]
    for _ in range(300):
        values: list[Any] = ["u", "v", "w"]
        for _ in range(8):
            flag, (a, b) = rng.choice(flags), rng.sample(values, 2)
            value = chosen(flag, a, b)
            for bits in itertools.product((False, True), repeat=len(flags)):
                truths = dict(zip(flags, bits, strict=True))
                assert _value(value, truths) == _value(a if truths[flag] else b, truths)
            values.append(value)
    held: Any = chosen(flags[0], "u", "v")
    after = chosen(flags[2], chosen(flags[1], held, "w"), held)
    assert _leaves(after) == 3
    assert _leaves(chosen(flags[2], held, chosen(flags[1], "w", chosen(flags[3], held, "x")))) == 4
