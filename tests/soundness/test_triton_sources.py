"""Random Triton kernels as text: safe ones are proved, and no launch refutes a verdict.

The launches are run as plain Python, with nothing of tilecheck in them. To look at a kernel, run
`benchmarks/soundness.py --level triton --seed NUMBER --count 1`.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from soundness_held import attacked
from soundness_plain import Memory, Refused, compiled
from soundness_triton_plain import run
from soundness_triton_sources import triton_source

LAUNCHES = 12
SAFE = range(0, 80, 2)
CHANGED = range(1, 56, 2)


def test_safe_kernels_are_proved() -> None:
    """Under conditions on the length of memory that the launches of a host meet, and no launch goes wrong."""
    missed = []
    ran = 0
    for number in SAFE:
        kernel = attacked(number, LAUNCHES, triton_source)
        assert kernel is not None
        drawn, held = kernel.source, kernel.result
        assert held.problem is None, f"kernel {number}: {held.problem}\n{drawn.text}"
        assert held.wrong is None, f"kernel {number} is not safe: {held.wrong}\n{drawn.text}"
        assert held.verdict != "violated", f"kernel {number} is safe\n{drawn.text}"
        ran += held.launches
        if not (held.safe and held.usual):
            missed.append(f"{number}: {drawn.way}: {held.verdict} {held.reason} {held.conditions}")
    assert len(missed) <= len(SAFE) // 8, "\n".join(missed)
    assert ran > LAUNCHES * len(SAFE) // 3


def test_no_launch_refutes_a_changed_kernel() -> None:
    verdicts: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for number in CHANGED:
        kernel = attacked(number, LAUNCHES, triton_source)
        if kernel is None:
            continue
        held = kernel.result
        assert held.problem is None, f"kernel {number}: {kernel.what}: {held.problem}\n{kernel.text}"
        verdicts[held.verdict] += 1
        wrong[held.verdict] += held.wrong is not None
    assert not wrong["proved"]
    assert verdicts["violated"] >= len(CHANGED) // 8
    assert verdicts["proved"] + verdicts["conditional"] >= len(CHANGED) // 8


# ---- the stand-in itself -------------------------------------------------------------------------------------


def _memory(body: str, grid: tuple[int, ...] = (2,), **arguments: object) -> Memory:
    text = f"import triton.language as tl\n\ndef kernel({', '.join(arguments)}):\n" + "".join(
        f"    {line}\n" for line in body.split("; ")
    )
    return run(compiled(text), "kernel", grid, arguments)


PAIR = "x = tl.load(out + tl.arange(0, 2))"


@pytest.mark.parametrize(
    ("body", "races", "undefined"),
    [
        ("tl.store(out + tl.program_id(0), 1.0)", 0, 0),
        ("tl.store(out, 1.0)", 1, 0),
        ("tl.store(out + 4 * tl.program_id(0) + tl.arange(0, 4), 1.0)", 0, 0),
        ("tl.store(out + 3 * tl.program_id(0) + tl.arange(0, 4), 1.0)", 1, 0),
        ("tl.store(out + tl.arange(0, 8), 1.0, mask=tl.arange(0, 8) < 0)", 0, 0),
        ("tl.store(out + 7 + tl.program_id(0), 1.0)", 0, 1),
        ("tl.load(out - 1 + tl.program_id(0))", 0, 1),
        ("tl.store(out + 4 * tl.program_id(0) + tl.arange(0, 2) // 2, 1.0)", 0, 4),
        ("tl.atomic_add(out, 1.0)", 0, 0),
        ("tl.atomic_add(out + tl.program_id(0), 1.0); tl.store(out, 1.0)", 1, 0),
        ("n = 1 // tl.program_id(0)", 0, 1),
        ("tl.store(out + (tl.program_id(0) - 1) // 2, 1.0)", 1, 0),
        ("tl.store(out + 1 + (tl.program_id(0) - 2) % 2, 1.0)", 0, 0),
        ("p = tl.make_block_ptr(out, (8,), (1,), (tl.program_id(0) * 8 - 2,), (4,), (0,))", 0, 0),
        ("tl.load(tl.make_block_ptr(out, (3, 2), (2, 1), (2, 0), (2, 2), (1, 0)), boundary_check=(0,))", 0, 0),
        ("tl.load(tl.make_block_ptr(out, (3, 2), (2, 1), (3, 0), (2, 2), (1, 0)))", 0, 4),
    ],
)  # fmt: skip
def test_the_stand_in_sees_what_goes_wrong(body: str, races: int, undefined: int) -> None:
    memory = _memory(body, out=np.zeros(8))
    assert (len(memory.races()), len(memory.undefined)) == (races, undefined)


def test_lanes_of_a_program_have_no_order() -> None:
    for body, wrong in (
        (f"{PAIR}; tl.store(out + tl.arange(0, 2), x)", 0),
        (f"{PAIR}; tl.store(out + 1 - tl.arange(0, 2), x)", 2),
        (f"{PAIR}; tl.debug_barrier(); tl.store(out + 1 - tl.arange(0, 2), x)", 0),
        (f"{PAIR}; tl.store(out, 1.0)", 1),
    ):
        assert len(_memory(body, (1,), out=np.zeros(8)).undefined) == wrong, body


def test_launches_that_the_compiler_refuses_are_not_run() -> None:
    with pytest.raises(Refused):
        _memory("tl.arange(0, 3)")
    with pytest.raises(Refused):
        _memory("tl.store(1, 1.0)")
