"""A look at the text of a file for launches, before the code that executes host functions is loaded."""

from __future__ import annotations

import re

_LAUNCHES = re.compile(r"launch|enqueue|\]\s*\(")


def may_launch(words: str) -> bool:
    """Whether a text may launch: a launch calls something subscripted, a `launch`, or an `enqueue`."""
    return _LAUNCHES.search(words) is not None
