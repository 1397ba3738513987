"""TC3: the goals of bounds and definedness, compared with what they mean on small numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tilecheck.ir.expr import Symbol, evaluate, render, symbols
from tilecheck.proof.obligation import Holds, Obligation

State = Callable[[str, str], list[Obligation]]
Snippet = Callable[[object], str]


def kernel(body: str, parameters: str = "x, n: int, m: int, T: ct.Constant[int]") -> str:
    return f"""\
@ct.kernel
def k({parameters}):
    {body}
"""


def goal_of(obligation: Obligation) -> Holds:
    assert isinstance(obligation.goal, Holds)
    return obligation.goal


def holds(obligation: Obligation, **values: int) -> bool:
    """The goal under values for its symbols, by name."""

    def of(symbol: Symbol) -> int:
        return values[symbol.name.replace(".shape[0]", "").replace("len(xs)", "length")]

    return bool(evaluate(goal_of(obligation).goal, of))


def test_a_tile_has_an_element_inside(stated: State) -> None:
    (obligation,) = stated("TC302", kernel("ct.load(x, index=(n,), shape=(T,))"))
    assert obligation.stage == 1
    for n, tile, x in product(range(-3, 4), (1, 2, 4), range(7)):
        inside = any(0 <= n * tile + lane < x for lane in range(tile))
        assert holds(obligation, n=n, T=tile, x=x) == inside


def test_an_unchecked_tile_is_inside_as_a_whole(stated: State) -> None:
    (obligation,) = stated("TC303", kernel("ct.load(x, index=(n,), shape=(T,), check_bounds=False)"))
    for n, tile, x in product(range(-3, 4), (1, 2, 4), range(7)):
        inside = all(0 <= n * tile + lane < x for lane in range(tile))
        assert holds(obligation, n=n, T=tile, x=x) == inside


def test_overlapping_tiles_start_inside(stated: State) -> None:
    body = "x.tiled_view((4,), traversal_steps=(2,)).load((n,))"
    (obligation,) = stated("TC302", kernel(body))
    for n, x in product(range(-3, 4), range(7)):
        assert holds(obligation, n=n, x=x) == (0 <= 2 * n < x)


def test_an_unchecked_element_is_inside(stated: State) -> None:
    (obligation,) = stated("TC303", kernel("ct.gather(x, n, check_bounds=False)"))
    for n, x in product(range(-3, 4), range(4)):
        assert holds(obligation, n=n, x=x) == (0 <= n < x)


def test_a_mask_is_a_premise(stated: State) -> None:
    body = "ct.scatter(x, n, 1.0, mask=m > 0, check_bounds=False)"
    (obligation,) = stated("TC303", kernel(body))
    assert {s.name for s in symbols(goal_of(obligation).given)} == {"m"}


@pytest.mark.parametrize(
    "body",
    [
        "ct.gather(x, n)",
        "ct.scatter(x, n, 1.0)",
        "ct.load(x, index=(n,), shape=(T,))",
        "ct.store(x, index=(n,), tile=1.0)",
        "ct.atomic_add(x, n, 1.0)",
    ],
)
def test_checked_accesses_are_not_unchecked(stated: State, body: str) -> None:
    assert stated("TC303", kernel(body)) == []


@pytest.mark.parametrize(
    "body",
    ["x.get_raw_memory().load_offset(n)", "x.get_raw_memory().store_offset(n, 1.0)"],
)
def test_raw_memory_is_never_checked(stated: State, body: str) -> None:
    assert len(stated("TC303", kernel(body))) == 1


def test_one_goal_for_each_axis(stated: State, snippet: Snippet) -> None:
    access = "ct.load(x, index=(n, m), shape=(1, T))"
    obligations = stated("TC302", kernel(access))
    assert len(obligations) == 2
    assert {snippet(s) for o in obligations for s in o.sites} == {access}


def test_a_slice_exists(stated: State) -> None:
    (obligation,) = stated("TC304", kernel("ct.gather(x.slice(axis=0, start=n, stop=m), 0)"))
    assert obligation.stage == 0
    for n, m, x in product(range(-2, 5), range(-2, 5), range(4)):
        assert holds(obligation, n=n, m=m, x=x) == (0 <= n < x and n <= m <= x)


@pytest.mark.parametrize("operation", ["n // m", "n % m", "ct.cdiv(n, m)"])
def test_a_divisor_is_positive(stated: State, operation: str) -> None:
    (obligation,) = stated("TC301", kernel(f"ct.gather(x, {operation})"))
    assert obligation.stage == 0
    for m in range(-2, 3):
        assert holds(obligation, m=m) == (m >= 1)


def test_the_step_of_a_range_is_positive(stated: State) -> None:
    (obligation,) = stated("TC301", kernel("for i in range(0, n, m):\n        ct.gather(x, i)"))
    for m in range(-2, 3):
        assert holds(obligation, m=m) == (m >= 1)


@pytest.mark.parametrize("step", ["2", "-1", "ct.num_blocks(0)"])
def test_a_step_that_is_positive_anyway_needs_no_proof(stated: State, step: str) -> None:
    assert stated("TC301", kernel(f"for i in range(0, n, {step}):\n        ct.gather(x, i)")) == []


def test_a_branch_before_a_division_is_a_premise(stated: State) -> None:
    (obligation,) = stated("TC301", kernel("if m > 0:\n        ct.gather(x, n // m)"))
    assert {s.name for s in symbols(goal_of(obligation).given)} == {"m"}


def test_a_list_index_names_a_member(stated: State) -> None:
    (obligation,) = stated("TC306", kernel("ct.gather(xs[n], 0)", "xs, n: int"))
    for n, length in product(range(-2, 4), range(4)):
        assert holds(obligation, n=n, length=length) == (0 <= n < length)


@pytest.mark.parametrize(
    ("index", "count"),
    [
        ("ct.bid(0) * T + n", 0),  # fits at the sizes of the launch: S5
        ("ct.bid(0) * (1 << 28)", 1),
        ("(n * 1000000007) % m", 1),
        ("ct.astype(ct.bid(0), ct.int64) * (1 << 28)", 0),
        ("n + 64", 0),
    ],
)
def test_what_wraps_although_all_sizes_are_small(stated: State, index: str, count: int) -> None:
    obligations = stated("TC305", kernel(f"ct.scatter(x, {index}, 1.0)"))
    assert len(obligations) == count
    for obligation in obligations:
        assert obligation.kind == "overflow"
        assert obligation.stage == 0


@pytest.mark.parametrize(
    ("index", "advice"),
    [
        ("ct.gather(t, n).item()", None),
        ("ct.gather(t, n).item() + n", "requires within(t, 0, x.shape[0] + 1)"),
        ("ct.gather(t, n).item() * 2 + ct.gather(u, n).item()", "requires within(u, 0, x.shape[0] + 1)"),
        ("(ct.gather(t, n).item() + 1) % 8", "requires within(t, 0, x.shape[0] + 1)"),
        ("ct.gather(t, n).item() % 8 + n", None),
        ("max(0, min(ct.gather(t, n).item(), m)) + n", None),
        ("ct.astype(ct.gather(t, n).item(), ct.int64) + n", None),
        ("ct.atomic_add(t, 0, 1) + n", "compute in 64 bits"),
    ],
)
def test_what_memory_may_make_wrap(stated: State, index: str, advice: str | None) -> None:
    """A sum with a value from memory is asked for, and said is what would bound the value."""
    text = f"""
        @ct.kernel
        def k(x, t, u, n: int, m: int):
            ct.scatter(x, {index}, 1.0)
        """
    obligations = stated("TC305", text)
    assert len(obligations) == (advice is not None)
    assert all(advice in o.advice for o in obligations if advice is not None)


def test_a_contract_that_holds_for_every_element_leaves_the_rest_to_the_launch(stated: State) -> None:
    text = """
        # tilecheck: requires within(t, 0, n) -- why
        @ct.kernel
        def k(x, t, n: int, T: ct.Constant[int]):
            row = ct.load(t, index=(ct.bid(0),), shape=())
            ct.scatter(x, row + ct.arange(T, dtype=ct.int32), 1.0)
        """
    (obligation,) = stated("TC305", text)
    assert isinstance(obligation.goal, Holds)
    assert "t[ct.bid(0)] < n" in render(obligation.goal.goal)


def test_tests_of_a_value_speak_of_it_as_its_path_has_it(stated: State) -> None:
    """Where `n < m`, `row` is the element that was read: its test and its product name it alike."""
    text = """
        @ct.kernel
        def k(x, t, n: int, m: int, T: ct.Constant[int]):
            row = ct.load(t, index=(ct.bid(0),), shape=()) if n < m else -100
            if n < m and 0 <= row and row < m:
                ct.scatter(x, row * n + ct.arange(T, dtype=ct.int32), 1.0)
        """
    goal = goal_of(stated("TC305", text)[0])
    assert "else" not in render(goal.goal) + render(goal.given)
    assert "n < m" in render(goal.given)
    assert "t[ct.bid(0)] < m" in render(goal.given)
