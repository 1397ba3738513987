"""What the oracle says of a hazard, what it refuses, and how long it takes."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import pytest
from proof_host_text import program

from tilecheck.ir.expr import FALSE, Kind, Symbol, const, sym
from tilecheck.ir.host_program import Region
from tilecheck.proof.interleavings import hazards
from tilecheck.proof.interleavings.boxes import WHOLE, intersection, left_over
from tilecheck.proof.interleavings.hazard import Verb


def test_the_schedule_leads_to_the_moment_and_holds_no_other_step() -> None:
    text = """launch a writes y
        launch a writes x
        record e a
        launch b writes y[0:0]
        await b e
        launch c reads x[3:5]"""
    (hazard,) = hazards(program(text))
    assert hazard.element == (3,)
    assert [str(step) for step in hazard.schedule] == [
        "host 0",
        "start 0",
        "end 0",
        "host 1",
        "start 1",
        "host 2",
        "host 3",
        "host 4",
        "host 5",
        "start 5",
    ]


def test_a_schedule_passes_the_waits_of_the_host() -> None:
    text = "launch a writes y\njoin stream a\nlaunch a writes x\nlaunch b reads x"
    (hazard,) = hazards(program(text))
    assert [str(step) for step in hazard.schedule if step.verb is not Verb.HOST] == [
        "start 0",
        "end 0",
        "start 2",
        "start 3",
    ]


def test_steps_of_replays_name_both_actions() -> None:
    text = "capture g a\nlaunch a writes x\nend g\nreplay g a\nlaunch b reads x"
    (hazard,) = hazards(program(text))
    assert "start 1 in 3" in map(str, hazard.schedule)


def test_an_exact_pair_is_preferred_to_one_that_may_not_be() -> None:
    (maybe,) = hazards(program("launch a writes x~[0:4]\nlaunch b reads x[0:4]"))
    assert not maybe.exact
    (surely,) = hazards(program("launch a writes x~[0:4] x[2:4]\nlaunch b reads x[0:4]"))
    assert surely.exact
    assert surely.element == (2,)


def test_writes_that_may_not_be_made_leave_a_read_in_doubt() -> None:
    text = "launch a writes x{}\ncapture g a\nlaunch a writes x\nend g\nlaunch a reads x"
    assert hazards(program(text.format(""))) == ()
    (hazard,) = hazards(program(text.format("~")))
    assert (hazard.code, hazard.exact) == ("TC426", False)


def test_what_has_no_meaning_is_refused() -> None:
    size = sym(Symbol("n", Kind.HOST))
    right = program("launch a writes x")
    with pytest.raises(ValueError, match="is no number"):
        hazards(replace(right, returned=(Region("x", ((const(0), size),)),)))
    with pytest.raises(ValueError, match="contradict"):
        hazards(replace(right, facts=(FALSE,)))
    with pytest.raises(ValueError, match="no memory is named z"):
        hazards(program("launch a writes z"))
    with pytest.raises(ValueError, match="before it is complete"):
        hazards(program("replay g a"))
    with pytest.raises(ValueError, match="axes"):
        hazards(program("launch a writes x[0:4]\nlaunch b writes x[0:2,0:2]"))


def test_boxes_are_sets_of_elements() -> None:
    spans = ((0, 2), (1, 3), (0, 3))
    boxes = [(one, other) for one in spans for other in spans]
    for one, other in product(boxes, boxes):
        inside = set(product(range(*one[0]), range(*one[1])))
        cut = set(product(range(*other[0]), range(*other[1])))
        pieces = [set(product(range(*p[0]), range(*p[1]))) for p in left_over(one, [other])]
        assert set().union(*pieces) == inside - cut
        assert sum(map(len, pieces)) == len(inside - cut)
        both = intersection(one, other)
        assert (set(product(*(range(*axis) for axis in both))) if both else set()) == inside & cut
    assert left_over(WHOLE, [boxes[0]]) == [WHOLE]
    assert left_over(boxes[0], [WHOLE]) == []


def test_small_programs_take_milliseconds() -> None:
    text = "\n".join(
        f"launch s{k % 4} writes x[{k}:{k + 3}]\nrecord e{k} s{k % 4}\nawait s{(k + 1) % 4} e{k}"
        for k in range(4)
    )
    small = program(text)
    begin = time.perf_counter()
    for _ in range(20):
        hazards(small)
    assert (time.perf_counter() - begin) / 20 < 0.02
