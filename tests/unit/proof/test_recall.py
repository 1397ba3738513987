"""Models that are found without the solver satisfy what they were asked for."""

from __future__ import annotations

import random

from proof_brute import random_boolean

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Kind, Symbol, const, eq, lt, read, sym
from tilecheck.ir.kernel import Contract, block_symbol, extent_symbol, grid_symbol
from tilecheck.model import Site, Span
from tilecheck.proof.goals.contracts import instances
from tilecheck.proof.goals.instances import symbol_in_instance
from tilecheck.proof.solver.known_models import Recall
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

N = sym(Symbol("n", Kind.SCALAR))
LOOP = sym(Symbol("i", Kind.LOOP))
SIZE = sym(Symbol("T", Kind.CONSTANT))


def test_every_model_satisfies_its_question() -> None:
    """Random questions of one session: each model makes its assertions true, and no proof contradicts one."""
    rng = random.Random(5)
    found = 0
    with_models = Recall()
    for _ in range(400):
        question = tuple(
            random_boolean(rng, [N, LOOP, SIZE], rng.randint(0, 2)) for _ in range(rng.randint(1, 5))
        )
        model = with_models.find(question) or with_models.repaired(question, wanted=True)
        if model is None:
            continue
        found += 1
        with_models.learn(model.symbols, model.reads)
        for assertion in question:
            assert ex.evaluate(
                assertion, model.value, lambda array, cell, m=model: m.reads.get((array, cell), 0)
            )
    assert found > 100


def test_division_by_zero_is_no_model() -> None:
    question = (ex.eq(ex.floordiv(N, LOOP), 0), ex.eq(LOOP, 0))
    recall = Recall()
    assert recall.find(question) is None
    assert recall.repaired(question, wanted=True) is None


def test_an_earlier_model_answers_without_the_solver() -> None:
    session = Session()
    first = satisfiable((ex.lt(ex.mul(N, SIZE), -70), ex.lt(2, SIZE)), session=session)
    asked = session.checks
    again = satisfiable((ex.lt(ex.mul(N, SIZE), -60), ex.lt(1, SIZE)), session=session)
    session.close()
    assert (first.status, again.status, session.checks) == ("sat", "sat", asked)
    assert again.model is not None
    assert again.model.evaluate(ex.lt(ex.mul(N, SIZE), -60))


def test_what_sums_prove_needs_no_solver() -> None:
    session = Session()
    answer = satisfiable((ex.lt(N, LOOP), ex.lt(LOOP, SIZE), ex.le(SIZE, N)), session=session)
    assert (answer.status, session.checks) == ("unsat", 0)


def test_plain_tables_keep_their_contracts() -> None:
    """A plain launch has two sequences with two chunks each, where the contracts ask for tables like that."""
    site = Site("kernel.py", Span(0, 1))
    said = [
        Contract("increasing", "start", (), "", None, site),
        Contract("chunks", "work", (const(4),), "", None, site, ("start",)),
    ]
    recall = Recall()
    recall.promise(said)
    reads = [read("work", const(k)) for k in range(4)]
    asked = [lt(read("start", reads[0]), read("start", reads[2])), *instances(said, reads)]
    extents = [eq(sym(extent_symbol(name, 0)), 64) for name in ("work", "start")]
    found = recall.find([*extents, *asked])
    assert found is not None
    assert found.cells["work", (2,)] == 1
    assert Recall().find([*extents, *asked]) is None


def test_arrays_have_room_for_what_tables_say_lies_in_them() -> None:
    """`out` has a place of 16 elements for each chunk of each sequence, and several groups of heads."""
    site = Site("kernel.py", Span(0, 1))
    out = sym(extent_symbol("out", 0))
    said = [
        Contract("chunk_sums", "place", (const(4),), "", None, site, ("start",)),
        Contract("within", "place", (const(0), ex.add(ex.floordiv(out, 64), 1)), "", None, site),
        Contract("increasing", "place", (), "", None, site),
        Contract("increasing", "start", (), "", None, site),
    ]
    recall = Recall()
    recall.promise(said)
    block, heads, group = sym(block_symbol(0)), SIZE, sym(Symbol("G", Kind.CONSTANT))
    n = ex.floordiv(block, heads)
    reads = (read("place", n), read("place", ex.add(n, 1)), read("start", n), read("start", ex.add(n, 1)))
    asked = [lt(8, ex.sub(reads[1], reads[0])), ex.le(1, ex.floordiv(ex.mod(block, heads), group))]
    asked += [lt(block, sym(grid_symbol(0))), ex.le(0, block), *instances(said, reads)]
    found = recall.repaired(asked, wanted=True)
    assert found is not None
    assert found.satisfies(asked)
    assert Recall().repaired(asked, wanted=True) is None
    one = [*asked[:1], *asked[2:], ex.le(group, 1), ex.eq(ex.floordiv(ex.mod(block, heads), group), 0)]
    found = recall.repaired(one, wanted=True)
    assert found is not None
    assert found.satisfies(one)


def test_a_grid_grows_with_the_block_that_is_asked_for() -> None:
    """Block indices are in the grid: to have a second digit of one is to have more blocks."""
    block, grid = sym(block_symbol(0)), sym(grid_symbol(0))
    question = (ex.le(1, SIZE), ex.le(0, block), lt(block, grid), ex.le(5, SIZE))
    asked = (*question, ex.le(2, ex.floordiv(block, SIZE)))
    found = Recall().repaired(asked, wanted=False)
    assert found is not None
    assert found.satisfies(asked)
    assert found.number(block) >= 10


def test_literals_and_quotients_are_met_before_anything_is_searched() -> None:
    """One block along an axis, a number that is a literal, and a stride that steps of another have room in."""
    rows, steps = sym(Symbol("rows", Kind.SCALAR)), sym(Symbol("steps", Kind.SCALAR))
    grid = grid_symbol(0)
    block = sym(symbol_in_instance(block_symbol(0), 2))
    sizes = [(sym(Symbol(f"s{i}", Kind.SCALAR)), sym(Symbol(f"t{i}", Kind.SCALAR))) for i in range(30)]
    many = (ex.le(ex.mul(3, low), high) for low, high in sizes)
    question = (eq(sym(grid), 1), lt(block, sym(grid)), eq(N, 7), lt(9, ex.floordiv(rows, steps)), *many)
    model = Recall().repaired(question, wanted=False)
    assert model is not None
    assert all(model.holds(assertion) for assertion in question)
