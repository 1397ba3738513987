"""Where the user's program asked for something, at the cost of two attributes of a frame."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import TypeAlias

Place: TypeAlias = tuple[CodeType, int]
"""A code object and an offset in its byte code. The line is computed when a message needs it."""

_OWN = "tilecheck.host"


def caller() -> Place:
    """The innermost place outside this package."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - `inspect` reads the source as well
    assert frame is not None
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def line_of(place: Place) -> int:
    code, at = place
    for start, end, line in code.co_lines():
        if start <= at < end and line is not None:
            return line
    return code.co_firstlineno


def text_of(place: Place) -> str:
    return f"{place[0].co_filename}:{line_of(place)}"
