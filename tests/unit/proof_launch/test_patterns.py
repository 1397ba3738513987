"""Launch conditions of kernels as people write them, read from their text."""

from __future__ import annotations

import pytest

from tilecheck.proof.conditions.abduction import condition_kind, condition_text, derive
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Ordered
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

CASES = {
    "rows of logsumexp without a mask": (
        """def k(lse, SEQ: int, TM: ct.Constant[int]):
    rows = ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32)
    ct.scatter(lse, ct.bid(1) * SEQ + rows, 1.0)
""",
        ["grid[0] <= SEQ // TM"],
    ),
    "rows of logsumexp with a mask": (
        """def k(lse, SEQ: int, TM: ct.Constant[int]):
    rows = ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32)
    ct.scatter(lse, ct.bid(1) * SEQ + rows, 1.0, mask=rows < SEQ)
""",
        [],
    ),
    "groups of channels": (
        """def k(out, C: int, CPG: ct.Constant[int]):
    for c in range(CPG):
        row = ct.bid(0) * C + ct.bid(1) * CPG + c
        ct.store(out, (row, 0), ct.zeros((1, 128), dtype=ct.float32))
""",
        ["grid[0] <= out.shape[0] // C", "grid[1] <= C // CPG", "out.shape[1] >= 1", "C >= 0"],
    ),
    "split of the inner dimension": (
        """def k(partial, KS: int, TM: ct.Constant[int], TN: ct.Constant[int]):
    tiles = ct.num_tiles(partial, axis=0, shape=(TM, TN)) // KS
    ct.store(partial, (ct.bid(0) * tiles + ct.bid(1), 0), ct.zeros((TM, TN), dtype=ct.float32))
""",
        ["grid[0] <= KS", "grid[1] <= cdiv(partial.shape[0], TM) // KS", "partial.shape[1] >= 1"],
    ),
    "flat tiles of a literal size": (
        """def k(scale, NB: int):
    ct.store(scale, (ct.bid(0) * NB + ct.bid(1),), ct.zeros((128,), dtype=ct.float32))
""",
        ["grid[0] <= cdiv(scale.shape[0], 128) // NB", "grid[1] <= NB"],
    ),
    "column-major scales": (
        """def k(s, pitch: int):
    ct.scatter(s, ct.bid(1) * pitch + ct.bid(0), 1.0)
""",
        ["grid[0] <= pitch"],
    ),
    "rows through raw memory": (
        """def k(out, TM: ct.Constant[int], TN: ct.Constant[int]):
    r = ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32)
    c = ct.bid(1) * TN + ct.arange(TN, dtype=ct.int32)
    at = r[:, None] * out.strides[0] + c[None, :] * out.strides[1]
    inside = (r[:, None] < out.shape[0]) & (c[None, :] < out.shape[1])
    out.get_raw_memory().store_offset(at, 1.0, mask=inside)
""",
        ["out.stride(0) >= out.shape[1] * out.stride(1)", "out.stride(1) >= 1"],
    ),
    "grouped query heads": (
        """def k(kv, o, H: int, GQA: ct.Constant[int], TM: ct.Constant[int], TD: ct.Constant[int]):
    b, h = ct.bid(1) // H, ct.bid(1) % H
    t = ct.load(kv, (b, h // GQA, ct.bid(0), 0), shape=(1, 1, TM, TD))
    ct.store(o, (b, h, ct.bid(0), 0), t)
""",
        [
            "grid[0] <= cdiv(kv.shape[2], TM)",
            "grid[0] <= cdiv(o.shape[2], TM)",
            "grid[1] <= H * kv.shape[0]",
            "grid[1] <= H * o.shape[0]",
            "kv.shape[1] >= cdiv(H, GQA)",
            "kv.shape[3] >= 1",
            "o.shape[1] >= H",
            "o.shape[3] >= 1",
            "GQA >= 1",
        ],
    ),
    "blocks dealt to dies": (
        """def k(out, T: ct.Constant[int]):
    t = (ct.bid(0) % 8) * (ct.num_blocks(0) // 8) + ct.bid(0) // 8
    ct.store(out, (t,), ct.zeros((T,), dtype=ct.float32))
""",
        ["grid[0] <= cdiv(out.shape[0], T)", "grid[0] % 8 == 0"],
    ),
}


def derived(found):
    context, session = Context(found.kernel), Session()
    stated = [o for o in found.obligations if not isinstance(o.goal, Ordered) and o.rule != "TC303"]
    open_ = [o for o in stated if not prove(o, context, session).proved]
    return open_, derive(
        open_,
        context,
        lambda o, extra: prove(o, context.under(*extra), session).proved,
        lambda assertions, refutes=None, *, solver=True, quick=False: satisfiable(
            assertions, session=session, refutes=refutes, solver=solver
        ),
    )


@pytest.mark.parametrize("name", CASES)
def test_conditions_of(read, name):
    text, expected = CASES[name]
    _, derivation = derived(read(text))
    assert [condition_text(c) for c in derivation.conditions] == expected
    assert None not in derivation.used


def test_tile_of_one_element_is_no_way_out(read):
    text = """def k(out, T: ct.Constant[int]):
    for i in range(out.shape[0]):
        ct.store(out, (i,), ct.zeros((T,), dtype=ct.float32))
"""
    _, derivation = derived(read(text))
    assert derivation.used == (None,)
    assert derivation.refuted == (True,)
    assert derivation.conditions == ()


def test_obligations_name_only_the_conditions_that_concern_them(read):
    text = """def k(a, out, T: ct.Constant[int]):
    ct.store(out, (ct.bid(0),), ct.load(a, (ct.bid(0),), shape=(T,)))
"""
    open_, derivation = derived(read(text))
    used = {o.array: [condition_text(c) for c in u] for o, u in zip(open_, derivation.used, strict=True)}
    assert used == {
        "a": ["grid[0] <= cdiv(a.shape[0], T)"],
        "out": ["grid[0] <= cdiv(out.shape[0], T)"],
    }


def test_kinds_of_conditions(read):
    kinds = {}
    for text, _ in CASES.values():
        _, derivation = derived(read(text))
        kinds.update({condition_text(c): condition_kind(c) for c in derivation.conditions})
    assert kinds["grid[0] <= KS"] == "a"
    assert kinds["grid[0] % 8 == 0"] == "b"
    assert kinds["out.stride(1) >= 1"] == "c"
    assert kinds["o.shape[1] >= H"] == "d"
