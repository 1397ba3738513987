"""Overlap of regions of a host program: for all sizes, or with sizes that show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tilecheck.analysis.hosts.regions import Answer
from tilecheck.ir.expr import Expr, Kind, Symbol, add, const, floordiv, le, lift, lt, mul, sub, sym
from tilecheck.ir.host_program import HostProgram, Memory, Region
from tilecheck.model import Site, Span
from tilecheck.proof.interleavings.region_overlaps import by_solver
from tilecheck.proof.solver.session import Session

SITE = Site("host.py", Span(0, 1))
EXTENT, COUNT = Symbol("x.shape[0]", Kind.EXTENT), Symbol("n", Kind.HOST)
M, N = sym(EXTENT), sym(COUNT)


@pytest.fixture
def session() -> Iterator[Session]:
    with closing(Session()) as own:
        yield own


def region(*box: tuple[Expr | int, Expr | int]) -> Region:
    return Region("x", tuple((lift(a), lift(b)) for a, b in box))


def program(*facts: Expr) -> HostProgram:
    return HostProgram("run", SITE, (Memory("x", SITE, extents=(M,)),), (), facts=facts)


def test_halves_are_apart_whatever_the_size(session: Session) -> None:
    half = floordiv(M, 2)
    overlap = by_solver(program(), session)
    assert overlap(region((0, half)), region((half, M))).answer is Answer.APART
    assert overlap(region((0, half)), region((sub(half, 1), M))).answer is Answer.MEET


def test_a_meeting_has_sizes_and_an_element(session: Session) -> None:
    overlap = by_solver(program(lt(const(4), N), le(N, M)), session)
    first, second = region((0, N)), region((sub(N, 3), M))
    meeting = overlap(first, second)
    assert meeting.answer is Answer.MEET
    n, m = meeting.values[COUNT], meeting.values[EXTENT]
    assert 4 < n <= m
    assert meeting.element == (n - 3,)


def test_facts_of_the_program_count(session: Session) -> None:
    blocks = region((mul(N, 4), add(mul(N, 4), 4))), region((0, 4))
    assert by_solver(program(), session)(*blocks).answer is Answer.MEET
    assert by_solver(program(le(const(1), N)), session)(*blocks).answer is Answer.APART


def test_a_whole_memory_meets_all_but_what_is_empty(session: Session) -> None:
    overlap = by_solver(program(), session)
    assert overlap(region(), region()).values[EXTENT] == 1
    assert overlap(region(), region((2, 5))).element == (2,)
    assert overlap(region(), region((N, N))).answer is Answer.APART
    assert overlap(region((0, 1)), region((0, 1), (0, 1))).answer is Answer.OPEN


def test_what_is_left_of_a_region(session: Session) -> None:
    overlap = by_solver(program(lt(const(2), N)), session)
    whole, head, tail = region((0, N)), region((0, sub(N, 1))), region((1, N))
    left = overlap(whole, whole, (head,))
    assert left.answer is Answer.MEET
    assert left.element == (left.values[COUNT] - 1,)
    assert overlap(whole, whole, (head, tail)).answer is Answer.APART
    assert overlap(region(), region(), (whole,)).element is not None
