"""Where calls inside a `try` may raise."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_programs.execute.code_texts import names_in, once
from tilecheck.frontend.host_programs.execute.merging import raises
from tilecheck.frontend.host_programs.knowledge import PathEnds
from tilecheck.frontend.host_programs.machine import CURRENT, Machine
from tilecheck.frontend.host_programs.values.lifetimes import used_streams


def perhaps_raise(m: Machine, statement: cst.CSTNode) -> None:
    """A statement that calls something may raise inside a `try`: what stands before it has run then.

    Raises:
        PathEnds: it does.
    """
    only_next = m.guards[-1]
    if only_next and "next" not in once(m, names_in, statement):
        return
    if m.choices.pick(2) == 1:
        raise PathEnds("a call inside a `try` raises")


def guarded(m: Machine, node: cst.Try, body: Callable[[], None]) -> None:
    """Run the body of a `try`. Where some handler goes on while work is in flight, each call may raise."""
    goes_on = [handler for handler in node.handlers if not raises(handler.body)]
    in_flight = m.is_relevant(node.body) or bool(used_streams(m).keys() - {CURRENT})
    before = m.guards
    if goes_on and in_flight and not m.captures:
        kinds = [handler.type for handler in goes_on]
        m.guards = [*before, all(isinstance(k, cst.Name) and k.value == "StopIteration" for k in kinds)]
    try:
        body()
    finally:
        m.guards = before
