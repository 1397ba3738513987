"""Where the user's program asked for something, at the cost of two attributes of a frame."""

from __future__ import annotations

import contextlib
import os
import sys
from types import CodeType, FrameType
from typing import TypeAlias

Place: TypeAlias = tuple[CodeType, int]
"""A code object and an offset in its byte code. The line is computed when a message needs it."""

get_frame = sys._getframe  # noqa: SLF001 - `inspect` reads the source as well


def caller() -> Place:
    """The innermost place outside this package, for a function of this package."""
    frame: FrameType = get_frame(2)
    code = frame.f_code
    while _inside.get(code.co_filename, True):  # of a file that is not known yet: look
        file = code.co_filename
        if not _inside.setdefault(file, file.startswith(_INSIDE)) or frame.f_back is None:
            break
        frame = frame.f_back
        code = frame.f_code
    return code, frame.f_lasti


_OWN = os.path.dirname(caller.__code__.co_filename)  # noqa: PTH120 - `pathlib` takes long to import
_INSIDE = (_OWN + os.sep, contextlib.__file__)
_inside: dict[str, bool] = {}  # whether a file is of this package


def line_of(place: Place) -> int:
    code, at = place
    for start, end, line in code.co_lines():
        if start <= at < end and line is not None:
            return line
    return code.co_firstlineno


def text_of(place: Place) -> str:
    return f"{place[0].co_filename}:{line_of(place)}"
