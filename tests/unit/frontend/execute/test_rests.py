"""What values of every shape rest on, and what a tile that is broadcast takes along."""

from __future__ import annotations

import pytest

from tilecheck.frontend.execute.overflow import coarse, spread
from tilecheck.frontend.execute.overflow_dependencies import resting, rests_of
from tilecheck.frontend.values.values import (
    BlockPointer,
    Choice,
    Method,
    Num,
    Pointer,
    Rest,
    Seq,
    lane,
)
from tilecheck.ir import expr as E

ONE, OTHER = frozenset({Rest(1, E.ONE)}), frozenset({Rest(2)})
NUMBER = Num((), E.ZERO, "int", rests=ONE)


@pytest.mark.parametrize(
    "value",
    [
        NUMBER,
        Pointer("p", NUMBER),
        Seq((NUMBER, NUMBER)),
        Choice(E.TRUE, NUMBER, NUMBER),
        Method(NUMBER, "to"),
        BlockPointer(Pointer("p", Num((), E.ZERO, "int")), (NUMBER,), (), (), ()),
    ],
)
def test_a_value_rests_on_more(value: object) -> None:
    assert rests_of(resting(value, OTHER)) == ONE | OTHER
    assert resting(value, coarse(ONE)) == value
    assert rests_of(resting(value, coarse(ONE))) == ONE  # which it is known to rest on more closely


def test_numbers_are_equal_whatever_they_rest_on() -> None:
    assert Num((), E.ZERO, "int", rests=OTHER) == NUMBER


def test_a_tile_that_is_broadcast_takes_its_checks_along() -> None:
    rests = frozenset({Rest(1, lane(0), E.lt(lane(0), 3))})
    wide = (E.const(4), E.const(8))
    assert set(spread(rests, (E.ONE,), wide)) == {Rest(1, E.ZERO, E.TRUE)}
    assert set(spread(rests, (E.const(8),), wide)) == rests
    assert set(spread(rests, wide, (E.const(8),))) == {Rest(1)}
