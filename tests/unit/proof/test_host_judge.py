"""An error of a host program stands only if it is exact, has sizes, and interleavings show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tilecheck.analysis.hosts.regions import Answer
from tilecheck.ir.expr import Expr, Kind, Symbol, const, le, lt, mul, sym
from tilecheck.ir.host_program import Footprint, HostProgram, Memory, Region, Work
from tilecheck.model import Site, Span
from tilecheck.proof.interleavings import judge as host_judge
from tilecheck.proof.interleavings.judge import NOT_REPLAYED, judge
from tilecheck.proof.solver.session import Session

SITE = Site("host.py", Span(0, 1))
COUNT = Symbol("n", Kind.HOST)
N = sym(COUNT)


@pytest.fixture
def session() -> Iterator[Session]:
    with closing(Session()) as own:
        yield own


def program(first: Region, second: Region, *facts: Expr) -> HostProgram:
    """A write and a read on two streams that nothing orders."""
    write = Work(SITE, "write", "a", Footprint(writes=(first,)))
    read = Work(SITE, "read", "b", Footprint(reads=(second,)))
    return HostProgram("run", SITE, (Memory("x", SITE, stream="a"),), (write, read), facts=facts)


def box(start: Expr, stop: Expr, *, exact: bool = True) -> Region:
    return Region("x", ((start, stop),), exact)


def test_sizes_that_show_a_race(session: Session) -> None:
    found = judge(program(box(const(0), N), box(const(4), const(8))), session)
    (error,) = found.errors
    assert error.finding.code == "TC411"
    assert error.values[COUNT] > 4
    assert error.finding.meeting.element == (4,)
    assert not found.open


def test_regions_that_never_meet(session: Session) -> None:
    found = judge(program(box(const(0), N), box(const(4), const(8)), le(N, const(4))), session)
    assert found == host_judge.Judgement((), ())


def test_a_region_that_may_reach_less_is_open(session: Session) -> None:
    found = judge(program(box(const(0), const(8), exact=False), box(const(4), const(8))), session)
    assert not found.errors
    assert [o.finding.code for o in found.open] == ["TC411"]


def test_an_overlap_that_is_not_decided_is_open(session: Session) -> None:
    square = Symbol("k", Kind.HOST)
    cubes = mul(sym(square), sym(square), sym(square))
    hard = lt(const(10**12), cubes), lt(cubes, const(10**12 + 10**7))
    tight = Session(budget=200)
    with closing(tight):
        found = judge(program(box(cubes, N), box(const(4), mul(N, N)), *hard), tight)
    assert not found.errors
    assert [o.finding.meeting.answer for o in found.open] == [Answer.OPEN]


def test_what_no_interleaving_shows_is_no_error(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_judge, "hazards", lambda _: ())
    found = judge(program(box(const(0), N), box(const(4), const(8))), session)
    assert not found.errors
    assert [o.why for o in found.open] == [NOT_REPLAYED]


def test_sizes_of_regions_beside_the_finding_are_filled_in(session: Session) -> None:
    other = Work(SITE, "other", "a", Footprint(writes=(Region("y", ((const(0), N),)),)))
    whole = program(Region("x"), Region("x"), lt(const(2), N))
    memories = (*whole.memories, Memory("y", SITE, stream="a"))
    both = HostProgram("run", SITE, memories, (*whole.actions, other), facts=whole.facts)
    (error,) = judge(both, session).errors
    assert error.values[COUNT] > 2
