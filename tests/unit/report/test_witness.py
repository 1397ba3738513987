"""Counterexamples in words."""

from __future__ import annotations

import pytest

from tilecheck.model import Witness
from tilecheck.report.witness import describe, launch_values


def _witness(kind: str, **more) -> Witness:
    values = {"grid[0]": 2, "T": 1, "x.shape[1]": 4, "x.shape[0]": 3, "y.shape[1]": 7, "ids": [0, 0]}
    return Witness(
        kind, (2, 1), more.pop("blocks", ((0, 0), (1, 0))), values, "x", more.pop("element", (0, 3)), **more
    )


def test_extents_of_one_array_are_shown_together() -> None:
    assert launch_values(_witness("overlap")) == "grid=(2, 1), T=1, x.shape=(3, 4), y.shape[1]=7, ids=[0, 0]"


@pytest.mark.parametrize(
    ("witness", "event"),
    [
        (_witness("overlap"), "block (0, 0) and block (1, 0) both touch `x[0, 3]`"),
        (
            _witness("overlap", iterations=((2,), (0, 1))),
            "block (0, 0) in iteration 2 and block (1, 0) in iteration (0, 1) both touch `x[0, 3]`",
        ),
        (
            _witness("overlap", blocks=((1, 0),), lanes=((0,), (1,))),
            "block (1, 0) touches `x[0, 3]` twice, from tile positions (0,) and (1,)",
        ),
        (_witness("overlap", blocks=((1, 0),)), "block (1, 0) touches `x[0, 3]` twice"),
        (_witness("bounds", blocks=((1, 0),)), "block (1, 0) touches `x[0, 3]`, outside `x`"),
        (_witness("bounds", blocks=((1, 0),), element=None), "block (1, 0) reaches outside `x`"),
        (_witness("overflow", blocks=((1, 0),)), "block (1, 0) computes an index that does not fit in 32 bits"),
        (_witness("alias", blocks=()), "two arguments share `x[0, 3]`"),
        (
            _witness("ownership", blocks=((1, 0),)),
            "block (1, 0) touches `x[0, 3]` against its declared ownership",
        ),
        (
            _witness("undefined", blocks=((1, 0),)),
            "block (1, 0) reaches an operation that is not defined for these values",
        ),
    ],
)
def test_events(witness: Witness, event: str) -> None:
    assert describe(witness)[1] == event
