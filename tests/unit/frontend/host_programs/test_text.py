"""Every kind of action has a line."""

from __future__ import annotations

import pytest

from tilecheck.ir import host_program as H
from tilecheck.ir.expr import const
from tilecheck.ir.host_text import action_text, memory_text, program_text, region_text
from tilecheck.model import Site, Span

SITE = Site("f.py", Span(0, 0))
BOX = H.Region("x", ((const(0), const(4)), (const(1), const(2))))
USE = H.Footprint((BOX,), (H.Region("y", exact=False),))


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (H.Work(SITE, "k", "s", USE), "launch k on s: reads x[0:4, 1:2] writes ~y"),
        (H.Work(SITE, "copy", "s", USE, is_launch=False), "work copy on s: reads x[0:4, 1:2] writes ~y"),
        (
            H.Work(SITE, "k", "s", H.Footprint(), USE, dependent=True, waits=False, frozen=("n",)),
            (
                "launch k on s dependent, perhaps without a wait: "
                "before the wait reads x[0:4, 1:2] writes ~y; freezes n"
            ),
        ),
        (H.Record(SITE, "e", "s"), "record e on s"),
        (H.Await(SITE, "s", "e"), "s awaits e"),
        (H.Join(SITE, stream="s"), "join s"),
        (H.Join(SITE), "join device"),
        (H.Touch(SITE, "fill", USE), "host fill: reads x[0:4, 1:2] writes ~y"),
        (H.Allocate(SITE, "x"), "allocate x"),
        (H.Free(SITE, "x", ("s", "t")), "free x after s,t"),
        (H.Move(SITE, "x", "op"), "move x into op"),
        (H.Back(SITE, "x"), "back x"),
        (H.Rebind(SITE, "n"), "rebind n"),
        (H.Keep(SITE, "x", "first"), "keep x as first"),
        (H.UseKept(SITE, "first"), "use kept first"),
        (H.Capture(SITE, "g", "s"), "capture g on s"),
        (H.EndCapture(SITE, "g"), "end capture g"),
        (H.Replay(SITE, "g", "s"), "replay g on s"),
        (H.Destroy(SITE, "g"), "destroy g"),
        (H.Forbidden(SITE, "item", "why"), "forbidden item: why"),
    ],
)
def test_actions(action: H.Action, text: str) -> None:
    assert action_text(action) == text


def test_memories_and_regions() -> None:
    assert memory_text(H.Memory("x", SITE, stream="s", pool="g", extents=(const(4),))) == (
        "memory x[4] device on s in the pool of g"
    )
    assert memory_text(H.Memory("h", SITE, H.Place.PINNED, handed_in=True)) == "memory h pinned, handed in"
    assert region_text(H.Region("x")) == "x"


def test_programs() -> None:
    memory = H.Memory("x", SITE, stream="s")
    program = H.HostProgram(
        "f", SITE, (memory,), (H.Allocate(SITE, "x"),), returned=(BOX,), unread=((SITE, "why"),)
    )
    assert program_text(program) == (
        "f\n  memory x device on s\n  allocate x\n  return x[0:4, 1:2]\n  unread why\n"
    )
