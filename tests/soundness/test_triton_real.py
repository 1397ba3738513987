"""Random Triton kernels in Triton's own interpreter: it touches what the stand-in touches and computes the
same; launches that meet a verdict's conditions stay inside their arrays, and the order of programs does
not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from soundness_held import attacked
from soundness_triton_real import Both, Interpreter, Unlike, missing
from soundness_triton_sources import triton_source

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

KERNELS = range(24)
LAUNCHES = 6


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with closing(Interpreter()) as process:
        yield process


def test_no_launch_in_the_interpreter_refutes_a_verdict(interpreter: Interpreter) -> None:
    verdicts: Counter[str] = Counter()
    for number in KERNELS:
        refused = interpreter.refusals.total()
        kernel = attacked(number, LAUNCHES, triton_source, interpreter.oracle)
        if kernel is None:
            continue
        if not kernel.what and "make_block_ptr" not in kernel.text:  # which newer releases do not have
            assert interpreter.refusals.total() == refused, f"kernel {number} is no Triton\n{kernel.text}"
        verdicts[kernel.result.verdict] += 1
        assert kernel.result.problem is None, f"kernel {number}: {kernel.result.problem}\n{kernel.text}"
        assert kernel.what or kernel.result.wrong is None, f"kernel {number}: {kernel.result.wrong}"
    assert verdicts["conditional"] > len(KERNELS) // 3
    counts = interpreter.counts
    assert counts["launches with equal results"] > LAUNCHES * len(KERNELS) // 3
    assert counts["launches"] > 2 * counts["not compared: the interpreter refuses the kernel"]


# ---- the oracle itself ---------------------------------------------------------------------------------------


def _both(interpreter: Interpreter, *lines: str) -> Both:
    body = "".join(f"    {line}\n" for line in lines)
    text = f"import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(out, n):\n{body}"
    return interpreter.oracle(text)


AT = "at = tl.program_id(0) * 4 + tl.arange(0, 4)"


def test_what_reaches_past_an_array_is_seen(interpreter: Interpreter) -> None:
    masked = _both(interpreter, AT, "tl.store(out + at, 1.0, mask=at < n)")
    assert not masked("kernel", (2,), {"out": np.zeros(7), "n": 7}).undefined
    assert len(masked("kernel", (2,), {"out": np.zeros(6), "n": 7}).undefined) == 1


def test_what_reaches_far_past_an_array_is_not_done(interpreter: Interpreter) -> None:
    far = _both(interpreter, "tl.store(out + n, 1.0)", "tl.load(out - n)")
    assert len(far("kernel", (1,), {"out": np.zeros(7), "n": 1 << 30}).undefined) == 2


def test_races_are_seen(interpreter: Interpreter) -> None:
    shifted = _both(interpreter, "at = tl.program_id(0) + tl.arange(0, 4)", "tl.store(out + at, 1.0)")
    assert len(shifted("kernel", (2,), {"out": np.zeros(7), "n": 7}).races()) == 3


def test_programs_run_in_any_order(interpreter: Interpreter) -> None:
    text = _both(interpreter, "tl.store(out, tl.program_id(0))").text
    programs = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    for order in (programs, programs[::-1]):
        seen = interpreter.launch(text, "kernel", (3, 1, 1), {"out": np.zeros(1), "n": 1}, order)
        assert seen.buffers == {"out": [order[-1][0]]}
        assert seen.touched == {("out", 0): {(program, "write") for program in programs}}


def test_the_interpreter_writes_around_an_array_when_told_to(interpreter: Interpreter) -> None:
    text = _both(interpreter, "tl.store(out - 1, 1.0)").text
    seen = interpreter.launch(text, "kernel", (1, 1, 1), {"out": np.zeros(1), "n": 1}, [(0, 0, 0)])
    assert (seen.overrun, seen.touched, seen.buffers) == (["out"], {}, {"out": [0.0]})


def test_what_the_stand_in_does_otherwise_is_told(interpreter: Interpreter) -> None:
    both = _both(interpreter, "tl.store(out + tl.program_id(0), tl.load(out))")
    both.stand_in = _both(interpreter, "tl.store(out, 0.0)").stand_in
    with pytest.raises(Unlike, match="in the interpreter"):
        both("kernel", (1,), {"out": np.ones(1), "n": 1})
