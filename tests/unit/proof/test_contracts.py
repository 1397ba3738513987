"""What contracts say of elements: true of every small memory that keeps them, and false of every other one.

A contract is written out here once more, in Python, over the whole table.
"""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

import pytest

from tilecheck.ir.expr import Expr, Kind, Symbol, add, const, evaluate, mul, read, sym
from tilecheck.ir.kernel import Contract, extent_symbol
from tilecheck.ir.parts import WHOLE, lies_in, residue
from tilecheck.model import Site, Span
from tilecheck.proof.goals import contracts
from tilecheck.proof.goals.contracts import instances

SITE = Site("k.py", Span(0, 1))
PARTS = {
    "filled-odd": ((1, 2),),
    "within-odd": ((1, 2),),
    "distinct-even": ((0, 2),),
    "increasing-late": ((1, 1),),
    "within-third": ((2, 0),),
    "within-last": ((-1, 0),),
}
KINDS = (
    "filled",
    "within",
    "within_or",
    "distinct",
    "distinct-skip",
    "increasing",
    "distinct_pairs",
    "prefix_sum",
    "chunks",
    "chunk_sums",
    *PARTS,
)
FIRST, SECOND, THIRD = (sym(Symbol(name, Kind.SCALAR)) for name in "ijk")
Memory = Mapping[str, tuple[tuple[int, ...], ...] | tuple[int, ...]]


def contract_of(kind: str) -> Contract:
    said, _, variant = kind.partition("-")
    bounds = (const(0), const(2)) if said == "within" else (const(-1),) if variant == "skip" else ()
    bounds = (const(1),) if said == "filled" else bounds
    bounds = (const(2),) if kind in ("chunks", "chunk_sums") else bounds
    bounds = (const(0), const(2), const(-1)) if kind == "within_or" else bounds
    others = ("c",) if kind in ("prefix_sum", "chunks", "chunk_sums") else ()
    return Contract(said, "t", bounds, kind, None, SITE, others, part=PARTS.get(kind, WHOLE))


def memories(kind: str) -> Iterator[Memory]:
    """Small tables, whether they keep the contract or not."""
    if kind == "distinct_pairs":
        pairs = list(itertools.product((0, 1), repeat=2))
        yield from ({"t": rows} for n in range(4) for rows in itertools.product(pairs, repeat=n))
    elif kind == "prefix_sum":
        for n in range(3):
            for sums in itertools.product(range(-1, 4), repeat=n + 1):
                yield from ({"t": sums, "c": items} for items in itertools.product(range(-1, 3), repeat=n))
    elif kind == "chunks":
        for n in range(4):
            for pairs in itertools.product(range(-1, 3), repeat=n):
                yield from ({"t": pairs, "c": starts} for starts in ((), (0, 3), (1, 1, 4), (0, 4, 5)))
    elif kind == "chunk_sums":
        for n in range(4):
            for sums in itertools.product(range(4), repeat=n):
                yield from (
                    {"t": sums, "c": starts} for starts in ((), (0, 3), (1, 1, 4), (0, 2, 5), (0, 1, 1, 4))
                )
    else:
        yield from ({"t": cells} for n in range(4) for cells in itertools.product(range(-1, 4), repeat=n))


def keeps(kind: str, memory: Memory) -> bool:
    t = memory["t"]
    if kind in PARTS:
        ((first, step),) = PARTS[kind]
        only = [t[first]] if -len(t) <= first < len(t) else []
        return keeps(kind.partition("-")[0], {"t": t[first::step] if step else tuple(only)})
    match kind:
        case "filled":
            return all(v == 1 for v in t)
        case "within":
            return all(0 <= v < 2 for v in t)
        case "within_or":
            return all(0 <= v < 2 or v == -1 for v in t)
        case "distinct" | "distinct_pairs":
            return len(set(t)) == len(t)
        case "distinct-skip":
            kept = [v for v in t if v != -1]
            return len(set(kept)) == len(kept)
        case "increasing":
            return list(t) == sorted(t)
        case "chunks":  # what it says beside the contracts that it is made of
            c, rows = memory["c"], range(0, len(t) - 1, 2)
            known = [(c[t[r] + 1] - c[t[r]], t[r + 1]) for r in rows if 0 <= t[r] < len(c) - 1]
            return all(k >= 0 and 2 * k < length for length, k in known)
        case "chunk_sums":  # as for chunks
            c = memory["c"]
            known = [(i, -(-(c[i + 1] - c[i]) // 2)) for i in range(min(len(t), len(c) - 1))]
            steps = all(t[i] + k <= v for i, k in known for v in t[i + 1 :])
            return min(t, default=0) >= 0 and t[:1] in ((), (0,)) and steps and _count_on(t, known)
        case _:
            c = memory["c"]
            return min(c, default=0) >= 0 and list(t) == [sum(c[:i]) for i in range(len(c) + 1)]


def _count_on(t: Sequence[int], known: list[tuple[int, int]]) -> bool:
    return all(t[i + 1] == t[i] + k for i, k in known if i + 1 < len(t))


def reads_of(kind: str) -> list[Expr]:
    """Elements that a query may mention, at places that can be anything."""
    if kind == "distinct_pairs":
        return [read("t", FIRST, 0), read("t", SECOND, 1)]
    if kind == "prefix_sum":
        return [read("t", FIRST), read("t", SECOND), read("t", THIRD), read("c", THIRD)]
    if kind == "chunk_sums":
        return [read("t", FIRST), read("t", SECOND), read("c", THIRD)]
    if kind == "chunks":
        return [read("t", mul(2, FIRST)), read("c", SECOND)]
    if kind in (
        "filled-odd",
        "within-odd",
        "distinct-even",
    ):  # a place that is known to be odd or even, and one that is not
        known = mul(2, FIRST) if kind == "distinct-even" else add(mul(2, FIRST), 1)
        return [read("t", known), read("t", SECOND)]
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
        ("filled", "_filled", "eq(node, value)", "eq(node, add(value, 1))"),
        ("filled", "_filled", "all_of(_inside(node), taken)", "taken"),
        ("filled-odd", "_filled", "all_of(_inside(node), taken)", "_inside(node)"),
        ("within", "_within", "lt(node, high)", "lt(add(node, 1), high)"),
        ("within", "_within", "le(low, node)", "lt(low, node)"),
        ("within", "_within", "all_of(_inside(node), taken)", "all_of(le(0, node.args[1]), taken)"),
        ("within-odd", "_within", "all_of(_inside(node), taken)", "_inside(node)"),
        ("within_or", "_within_or", ", eq(node, skip))", ")"),
        ("within_or", "_within_or", "lt(node, high))", "lt(add(node, 1), high))"),
        ("within_or", "_within_or", "all_of(_inside(node), taken)", "taken"),
        ("distinct-even", "_distinct", "is_in, is_too", "is_in"),
        ("increasing-late", "_increasing", "is_in, is_too, ordered", "is_too, ordered"),
        ("distinct", "_distinct", "any_of(ne(a, b), same, *skipped)", "any_of(ne(a, b), *skipped)"),
        ("distinct", "_distinct", "_inside(a, b)", "_inside(a)"),
        ("distinct-skip", "_distinct", "same, *skipped", "same"),
        ("increasing", "_increasing", "le(a, b))", "lt(a, b))"),
        (
            "increasing",
            "_increasing",
            "ordered = _at_most(a.args[axis], b.args[axis])",
            "ordered = le(a.args[axis], add(b.args[axis], 1))",
        ),
        ("distinct_pairs", "_distinct_pairs", "ne(a, c), ne(b, d)", "ne(a, c)"),
        ("distinct_pairs", "_distinct_pairs", "_inside(a, b, c, d)", "_inside(a, b)"),
        ("distinct_pairs", "_distinct_pairs", "eq(i, j), ne", "ne"),
        ("chunks", "_chunks", "lt(mul(k, size)", "lt(mul(add(k, 1), size)"),
        ("chunks", "_chunks", "le(0, k)", "lt(0, k)"),
        ("chunks", "_chunks", "_inside(n, k, first, end)", "_inside(n, k)"),
        ("chunk_sums", "_chunk_sums", "_implies(_inside(a), le(0, a))", "le(0, a)"),
        ("chunk_sums", "_chunk_sums", "eq(i, 0)), eq(a, 0)", "eq(i, 1)), eq(a, 0)"),
        ("chunk_sums", "_chunk_sums", "lt(i, b.args[1])", "le(i, b.args[1])"),
        ("chunk_sums", "_chunk_sums", "le(add(a, number), b)", "lt(add(a, number), b)"),
        ("chunk_sums", "_chunk_sums", "eq(then, add(a, number))", "le(add(a, number, 1), then)"),
        ("chunk_sums", "_chunk_sums", "_inside(a, first, end)", "_inside(a, first)"),
        ("chunk_sums", "_chunk_sums", "all_of(here, _inside(then))", "here"),
        ("prefix_sum", "_prefix_sum", "eq(a.args[1], 0)), eq(a, 0)", "eq(a.args[1], 1)), eq(a, 0)"),
        ("prefix_sum", "_prefix_sum", "_implies(_inside(item), le(0, item))", "le(0, item)"),
        ("prefix_sum", "_prefix_sum", "le(i, j)), le(a, b)", "le(i, j)), lt(a, b)"),
        ("prefix_sum", "_prefix_sum", "eq(j, add(i, 1))", "eq(j, add(i, 2))"),
        ("prefix_sum", "_prefix_sum", "lt(k, j)", "le(k, j)"),
        ("prefix_sum", "_prefix_sum", "eq(then, add(start, item))", "eq(then, add(start, item, 1))"),
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


def test_elements_of_no_part_are_not_spoken_of() -> None:
    odd = read("t", add(mul(2, FIRST), 1))
    assert instances([contract_of("distinct-even")], [odd, read("t", mul(4, SECOND))]) == ()
    assert instances([contract_of("within-odd")], [odd]) != ()


def extent(axis: int) -> Expr:
    return const((20, 5)[axis])


SLICES = [((0, 2),), ((1, 3),), ((2, 0),), ((3, 1),), ((5, 2),), ((-1, 0),), ((-7, 0),)]


@pytest.mark.parametrize("part", SLICES)
def test_a_part_has_the_elements_that_a_slice_has(part) -> None:
    ((first, step),) = part
    taken = range(20)[first::step] if step else [first % 20]
    for scale, offset in itertools.product(range(-3, 7), range(-3, 8)):
        index = add(mul(scale, FIRST), offset)
        for i in range(4):
            at = scale * i + offset
            if 0 <= at < 20:
                assert evaluate(lies_in([index], part, extent), lambda _, i=i: i, None) == (at in taken)
                assert residue(index, 4) in (None, at % 4)


def test_a_part_of_a_table_is_one_of_its_columns() -> None:
    column = ((0, 1), (1, 0))
    assert evaluate(lies_in([FIRST, const(1)], column, extent), lambda _: 3, None)
    assert not evaluate(lies_in([FIRST, const(0)], column, extent), lambda _: 3, None)
    assert not evaluate(lies_in([FIRST], column, extent), lambda _: 3, None)


def test_arrays_apart_are_no_matter_of_values() -> None:
    apart = Contract("disjoint", "t", (), "disjoint(t, c)", None, SITE, ("c",))
    assert instances([apart], [read("t", FIRST), read("c", SECOND)]) == ()
    assert not apart.is_void({"t"})


def test_a_contract_is_void_where_any_of_its_arrays_is_written() -> None:
    assert contract_of("prefix_sum").is_void({"c"})
    assert contract_of("prefix_sum").is_void({"t"})
    assert not contract_of("prefix_sum").is_void({"out"})
