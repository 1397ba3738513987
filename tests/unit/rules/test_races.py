"""TC2: which pairs of accesses a rule states to be apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilecheck.proof.obligation import Between, Disjoint, Obligation, Ordered

State = Callable[[str, str], list[Obligation]]
Snippet = Callable[[object], str]

RELAXED = "memory_order=ct.MemoryOrder.RELAXED, memory_scope=ct.MemoryScope.DEVICE"
BODIES = {
    "one store": "ct.store(x, index=(i,), tile=tile)",
    "two stores": "ct.store(x, index=(i,), tile=tile)\n    ct.store(x, index=(i + 1,), tile=tile)",
    "store and load": "ct.store(x, index=(ct.load(y, index=(i,), shape=()).item(),), tile=tile)\n"
    "    ct.load(x, index=(i,), shape=(T,))",
    "atomic": "ct.atomic_add(x, i, 1.0)",
    "two atomics": "ct.atomic_add(x, i, 1.0)\n    ct.atomic_max(x, 0, 1.0)",
    "atomic of its block": "ct.atomic_add(x, i, 1.0, memory_scope=ct.MemoryScope.BLOCK)",
    "atomic and store": "ct.atomic_add(x, i, 1.0)\n    ct.scatter(x, i, 1.0)",
    "atomic and load": "ct.atomic_add(x, i, 1.0)\n    ct.gather(x, i)",
    "atomic and relaxed store": f"ct.atomic_add(x, i, 1.0)\n    ct.store(x, index=(i,), tile=1.0, {RELAXED})",
    "relaxed store": f"ct.store(x, index=(i,), tile=1.0, {RELAXED})",
    "loads": "ct.load(x, index=(i,), shape=(T,))\n    ct.gather(x, i)",
}
# How many pairs of blocks each rule asks about: a store is paired with itself.
PAIRS = {
    "one store": (1, 0, 0),
    "two stores": (3, 0, 0),
    "store and load": (1, 1, 0),
    "atomic": (0, 0, 0),
    "two atomics": (0, 0, 0),
    "atomic of its block": (0, 0, 1),
    "atomic and store": (1, 0, 1),
    "atomic and load": (0, 0, 1),
    "atomic and relaxed store": (0, 0, 0),
    "relaxed store": (0, 0, 0),
    "loads": (0, 0, 0),
}


def kernel(body: str) -> str:
    return f"""\
@ct.kernel
def k(x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(y, index=(i,), shape=(T,))
    {body}
"""


@pytest.mark.parametrize("name", BODIES)
def test_pairs_of_blocks(stated: State, name: str) -> None:
    """Every pair of accesses of which one is no read is stated by one rule, unless its atomics excuse it."""
    counts = []
    for code in ("TC201", "TC202", "TC205"):
        obligations = stated(code, kernel(BODIES[name]))
        assert all(isinstance(o.goal, Disjoint) and o.goal.between is Between.BLOCKS for o in obligations)
        assert all(o.array == "x" and o.stage == 2 for o in obligations)
        counts.append(len(obligations))
    assert tuple(counts) == PAIRS[name]


def test_a_store_is_paired_with_itself(stated: State, snippet: Snippet) -> None:
    (obligation,) = stated("TC201", kernel(BODIES["one store"]))
    assert isinstance(obligation.goal, Disjoint)
    assert obligation.goal.first is obligation.goal.second
    assert [snippet(s) for s in obligation.sites] == ["ct.store(x, index=(i,), tile=tile)"]


def test_a_write_and_a_read_name_both_places(stated: State, snippet: Snippet) -> None:
    (obligation,) = stated("TC202", kernel("ct.gather(x, i)\n    ct.scatter(x, i + 1, 1.0)"))
    assert {snippet(s) for s in obligation.sites} == {"ct.gather(x, i)", "ct.scatter(x, i + 1, 1.0)"}


@pytest.mark.parametrize("inside", ["ct.gather(x, i)", "ct.scatter(x, i + 1, 1.0)"])
def test_one_end_in_an_unsafe_block_is_enough(stated: State, inside: str) -> None:
    lines = [
        f'with unsafe("why"):\n        {s}' if s == inside else s
        for s in ("ct.gather(x, i)", "ct.scatter(x, i + 1, 1.0)")
    ]
    (obligation,) = stated("TC202", kernel("\n    ".join(lines)))
    assert obligation.unsafe == (0,)


def test_lanes_of_one_write(stated: State) -> None:
    """Only a write with several lanes can write an element twice; an atomic may."""
    lane = "ct.arange(T, dtype=ct.int32)"
    for body, count in (
        (f"ct.scatter(x, {lane} // 2, 1.0)", 1),
        (f"ct.atomic_add(x, {lane} // 2, 1.0)", 0),
        (f"ct.gather(x, {lane} // 2)", 0),
        ("ct.scatter(x, i, 1.0)", 0),
    ):
        obligations = stated("TC203", kernel(body))
        assert len(obligations) == count, body
        assert all(isinstance(o.goal, Disjoint) and o.goal.between is Between.LANES for o in obligations)


def test_accesses_of_one_array_are_ordered(stated: State) -> None:
    obligations = stated("TC204", kernel("ct.gather(x, i)\n    ct.scatter(x, i, 1.0)\n    ct.gather(x, i)"))
    assert [type(o.goal) for o in obligations] == [Ordered, Ordered]


LOOPS = {
    "alone": ("ct.store(x, index=(j,), tile=tile)", 1),
    "beside a load": ("ct.load(x, index=(j,), shape=(T,))\n        ct.store(x, index=(j,), tile=tile)", 0),
    "beside a store": ("ct.scatter(x, j, 1.0)\n        ct.store(x, index=(j,), tile=tile)", 0),
    "another index": ("ct.store(x, index=(j + 1,), tile=tile)", 0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_lone_tile_store_at_the_loop_variable_has_no_order(stated: State, name: str) -> None:
    body, count = LOOPS[name]
    obligations = stated("TC204", kernel(f"for j in range(8):\n        {body}"))
    between = [o.goal.between for o in obligations if isinstance(o.goal, Disjoint)]
    assert between == [Between.ITERATIONS] * count
