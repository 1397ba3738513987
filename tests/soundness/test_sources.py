"""Random kernels as text: safe ones are proved, and no launch of them or of their mutants refutes a verdict.

The launches are run as plain Python, with nothing of tilecheck in them. To look at a kernel, run
`benchmarks/soundness.py --level source --seed NUMBER --count 1`.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from soundness_held import attacked
from soundness_plain import Endless, Memory, Refused, compiled, run

LAUNCHES = 12
SAFE = range(0, 60, 2)
CHANGED = range(1, 60, 2)


def test_safe_kernels_are_proved() -> None:
    """Without conditions that the launches of a host do not meet, and no launch goes wrong."""
    missed = []
    ran = 0
    for number in SAFE:
        kernel = attacked(number, LAUNCHES)
        assert kernel is not None
        drawn, held = kernel.source, kernel.result
        assert held.problem is None, f"kernel {number}: {held.problem}\n{drawn.text}"
        assert held.wrong is None, f"kernel {number} is not safe: {held.wrong}\n{drawn.text}"
        ran += held.launches
        if not (held.safe and held.usual):
            missed.append(f"{number}: {drawn.way}: {held.verdict} {held.reason} {held.conditions}")
    assert len(missed) <= len(SAFE) // 20, "\n".join(missed)
    assert ran > LAUNCHES * len(SAFE) // 2


def test_no_launch_refutes_a_changed_kernel() -> None:
    verdicts: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for number in CHANGED:
        kernel = attacked(number, LAUNCHES)
        if kernel is None:
            continue
        held = kernel.result
        assert held.problem is None, f"kernel {number}: {kernel.what}: {held.problem}\n{kernel.text}"
        verdicts[held.verdict] += 1
        wrong[held.verdict] += held.wrong is not None
    assert not wrong["proved"]
    assert verdicts["violated"] > len(CHANGED) // 4
    assert verdicts["proved"] + verdicts["conditional"] > len(CHANGED) // 8


# ---- the stand-in itself -------------------------------------------------------------------------------------


def _memory(body: str, grid: tuple[int, ...] = (2,), **arguments: object) -> Memory:
    text = f"import cuda.tile as ct\n\ndef kernel({', '.join(arguments)}):\n" + "".join(
        f"    {line}\n" for line in body.split("; ")
    )
    return run(compiled(text), "kernel", grid, arguments)


OUT = np.zeros(8)


@pytest.mark.parametrize(
    ("body", "races", "undefined"),
    [
        ("ct.store(out, index=(ct.bid(0),), tile=ct.zeros((4,), dtype=ct.float32))", 0, 0),
        ("ct.store(out, index=(ct.bid(0) // 2,), tile=ct.zeros((4,), dtype=ct.float32))", 4, 0),
        ("ct.store(out, index=(ct.bid(0) + 1,), tile=ct.zeros((4,), dtype=ct.float32))", 0, 1),
        ("ct.store(out, index=(-ct.bid(0),), tile=ct.zeros((4,), dtype=ct.float32))", 0, 1),
        ("ct.scatter(out, ct.bid(0) + ct.arange(2, dtype=ct.int32), 1.0)", 1, 0),
        ("ct.scatter(out, ct.bid(0) + 7 + ct.arange(2, dtype=ct.int32), 1.0)", 0, 0),
        ("ct.scatter(out, ct.arange(2, dtype=ct.int32) // 2 + 4 * ct.bid(0), 1.0)", 0, 2),
        ("ct.atomic_add(out, 0, 1.0)", 0, 0),
        ("ct.atomic_add(out, ct.bid(0), 1.0); ct.scatter(out, 0, 1.0)", 1, 0),
        ("x = ct.gather(out, 0); ct.scatter(out, ct.bid(0), x)", 1, 0),
        ("n = ct.num_blocks(0) // ct.bid(0)", 0, 1),
        ("n = 5 % (ct.bid(0) - 2)", 0, 2),
        ("part = out.slice(axis=0, start=4 * ct.bid(0), stop=8); ct.scatter(part, 0, 1.0)", 0, 0),
        ("part = out.slice(axis=0, start=8, stop=8)", 0, 2),
        ("out.tiled_view((4,), traversal_steps=(2,)).store((ct.bid(0),), 1.0)", 2, 0),
        ("ct.scatter(out, ct.bid(0) + 7, 1.0, check_bounds=False)", 0, 1),
        ("x = ct.load(out, index=(2,), shape=(4,), check_bounds=False)", 0, 2),
        ("x = ct.load(out.slice(axis=0, start=0, stop=3), (0,), (4,), check_bounds=False)", 0, 2),
        ("out.get_raw_memory().store_offset(ct.bid(0) + 7, 1.0)", 0, 1),
    ],
)
def test_the_stand_in_sees_what_goes_wrong(body: str, races: int, undefined: int) -> None:
    memory = _memory(body, out=OUT.copy())
    assert (len(memory.races()), len(memory.undefined)) == (races, undefined)


def test_padded_rows_have_places_of_their_own() -> None:
    rows = np.zeros((2, 4))[:, :3]
    memory = _memory("ct.store(out, index=(ct.bid(0), 0), tile=ct.zeros((1, 4), dtype=ct.float32))", out=rows)
    assert sorted(place for _, place in memory.touched) == [0, 1, 2, 4, 5, 6]


def test_launches_that_the_compiler_refuses_are_not_run() -> None:
    with pytest.raises(Refused):
        _memory("ct.zeros((3,), dtype=ct.float32)")
    with pytest.raises(Refused):
        _memory("ct.bid(out)", out=OUT)
    with pytest.raises(Endless):
        _memory("while True: pass")
