"""What contracts say of elements: true of every small memory that keeps them, and false of every other one.

A contract is written out here once more, in Python, over the whole table.
"""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Iterator, Mapping

import pytest

from tilecheck.ir.expr import Expr, Kind, Symbol, const, evaluate, read, sym
from tilecheck.ir.kernel import Contract, extent_symbol
from tilecheck.model import Site, Span
from tilecheck.proof import contracts
from tilecheck.proof.contracts import instances

SITE = Site("k.py", Span(0, 1))
KINDS = ("within", "distinct", "distinct-skip", "increasing", "distinct_pairs", "prefix_sum")
FIRST, SECOND, THIRD = (sym(Symbol(name, Kind.SCALAR)) for name in "ijk")
Memory = Mapping[str, tuple[tuple[int, ...], ...] | tuple[int, ...]]


def contract_of(kind: str) -> Contract:
    bounds = {"within": (const(0), const(2)), "distinct-skip": (const(-1),)}.get(kind, ())
    others = ("c",) if kind == "prefix_sum" else ()
    return Contract(kind.partition("-")[0], "t", bounds, kind, None, SITE, others)


def memories(kind: str) -> Iterator[Memory]:
    """Small tables, whether they keep the contract or not."""
    if kind == "distinct_pairs":
        pairs = list(itertools.product((0, 1), repeat=2))
        yield from ({"t": rows} for n in range(4) for rows in itertools.product(pairs, repeat=n))
    elif kind == "prefix_sum":
        for n in range(3):
            for sums in itertools.product(range(-1, 4), repeat=n + 1):
                yield from ({"t": sums, "c": items} for items in itertools.product(range(-1, 3), repeat=n))
    else:
        yield from ({"t": cells} for n in range(4) for cells in itertools.product(range(-1, 4), repeat=n))


def keeps(kind: str, memory: Memory) -> bool:
    t = memory["t"]
    match kind:
        case "within":
            return all(0 <= v < 2 for v in t)
        case "distinct" | "distinct_pairs":
            return len(set(t)) == len(t)
        case "distinct-skip":
            kept = [v for v in t if v != -1]
            return len(set(kept)) == len(kept)
        case "increasing":
            return list(t) == sorted(t)
        case _:
            c = memory["c"]
            return min(c, default=0) >= 0 and list(t) == [sum(c[:i]) for i in range(len(c) + 1)]


def reads_of(kind: str) -> list[Expr]:
    """Elements that a query may mention, at places that can be anything."""
    if kind == "distinct_pairs":
        return [read("t", FIRST, 0), read("t", SECOND, 1)]
    if kind == "prefix_sum":
        return [read("t", FIRST), read("t", SECOND), read("c", THIRD)]
    return [read("t", FIRST), read("t", SECOND)]


def holds(stated: Expr, memory: Memory, places: Mapping[str, int]) -> bool:
    """Whether an instance is true of a memory in which what is outside an array is random."""
    rng = random.Random(str(places))
    outside: dict[tuple[str, tuple[int, ...]], int] = {}

    def value(symbol: Symbol) -> int:
        if symbol == extent_symbol("t", 1):
            return 2
        for name, cells in memory.items():
            if symbol == extent_symbol(name, 0):
                return len(cells)
        return places[symbol.name]

    def cell(array: str, at: tuple[int, ...]) -> int:
        cells = memory[array]
        if not 0 <= at[0] < len(cells):
            return outside.setdefault((array, at), rng.randint(-2, 4))
        found = cells[at[0]]
        return found if isinstance(found, int) else found[at[1]]

    return bool(evaluate(stated, value, cell))


def false_for(kind: str) -> Memory | None:
    """A memory that keeps the contract and of which an instance is false."""
    stated = instances([contract_of(kind)], reads_of(kind))
    for memory in memories(kind):
        if keeps(kind, memory):
            for at in itertools.product(range(-1, 4), repeat=3):
                if not all(holds(s, memory, dict(zip("ijk", at, strict=True))) for s in stated):
                    return memory
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_instances_are_true_of_every_memory_that_keeps_the_contract(kind: str) -> None:
    assert false_for(kind) is None


@pytest.mark.parametrize("kind", KINDS)
def test_instances_are_false_of_every_memory_that_breaks_it(kind: str) -> None:
    """Taken at all elements that exist they say as much as the contract does."""
    stated = instances([contract_of(kind)], reads_of(kind))
    for memory in memories(kind):
        if not keeps(kind, memory):
            assert not all(
                holds(s, memory, dict(zip("ijk", at, strict=True)))
                for s in stated
                for at in itertools.product(range(3), repeat=3)
            ), memory


@pytest.mark.parametrize(
    ("kind", "function", "right", "wrong"),
    [
        ("within", "_within", "lt(node, high)", "lt(add(node, 1), high)"),
        ("within", "_within", "le(low, node)", "lt(low, node)"),
        ("within", "_within", "_implies(_inside(node), ", "_implies(le(0, node.args[1]), "),
        ("distinct", "_distinct", "any_of(ne(a, b), same, *skipped)", "any_of(ne(a, b), *skipped)"),
        ("distinct", "_distinct", "_inside(a, b)", "_inside(a)"),
        ("distinct-skip", "_distinct", "same, *skipped", "same"),
        ("increasing", "_increasing", "le(a, b))", "lt(a, b))"),
        ("increasing", "_increasing", "le(a.args[1], b.args[1])", "le(a.args[1], add(b.args[1], 1))"),
        ("distinct_pairs", "_distinct_pairs", "ne(a, c), ne(b, d)", "ne(a, c)"),
        ("distinct_pairs", "_distinct_pairs", "_inside(a, b, c, d)", "_inside(a, b)"),
        ("distinct_pairs", "_distinct_pairs", "eq(i, j), ne", "ne"),
        ("prefix_sum", "_prefix_sum", "eq(a.args[1], 0)), eq(a, 0)", "eq(a.args[1], 1)), eq(a, 0)"),
        ("prefix_sum", "_prefix_sum", "_implies(_inside(item), le(0, item))", "le(0, item)"),
        ("prefix_sum", "_prefix_sum", "le(i, j)), le(a, b)", "le(i, j)), lt(a, b)"),
        ("prefix_sum", "_prefix_sum", "eq(j, add(i, 1))", "eq(j, add(i, 2))"),
        ("prefix_sum", "_prefix_sum", "lt(k, j)", "le(k, j)"),
        ("prefix_sum", "_prefix_sum", "le(add(start, item), b)", "lt(add(start, item), b)"),
        ("prefix_sum", "_prefix_sum", "here = _inside(item, start, b)", "here = _inside(item, start)"),
    ],
)
def test_a_wrong_instance_is_noticed(kind: str, function: str, right: str, wrong: str, monkeypatch) -> None:
    """The first test is not vacuous: each kind, made slightly too strong, is false of some memory."""
    source = inspect.getsource(getattr(contracts, function))
    assert right in source
    scope = dict(vars(contracts))
    exec(f"from __future__ import annotations\n{source.replace(right, wrong, 1)}", scope)
    monkeypatch.setitem(contracts.INSTANCES, kind.partition("-")[0], scope[function])
    assert false_for(kind) is not None


def test_a_contract_says_nothing_of_arrays_that_do_not_occur() -> None:
    assert instances([contract_of("distinct")], [read("u", FIRST), read("u", SECOND)]) == ()


def test_arrays_apart_are_no_matter_of_values() -> None:
    apart = Contract("disjoint", "t", (), "disjoint(t, c)", None, SITE, ("c",))
    assert instances([apart], [read("t", FIRST), read("c", SECOND)]) == ()
    assert not apart.is_void({"t"})


def test_a_contract_is_void_where_any_of_its_arrays_is_written() -> None:
    assert contract_of("prefix_sum").is_void({"c"})
    assert contract_of("prefix_sum").is_void({"t"})
    assert not contract_of("prefix_sum").is_void({"out"})
