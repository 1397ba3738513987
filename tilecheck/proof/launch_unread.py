"""Whether a launch may be blamed: code that is not read could be what meets a condition."""

from __future__ import annotations

import re
from collections.abc import Collection

from tilecheck.ir.expr import Expr, symbols
from tilecheck.ir.host import OPAQUE, owners
from tilecheck.ir.launch import Launch


def rests_on_unread(launch: Launch, wanted: Expr) -> bool:
    """Whether values that unread code computes, or checks, decide `wanted`.

    A number of blocks that an unread function returns may be the right one, whatever the blocks do; and where
    execution went on only after an unread test of an argument (`if not fits(x): raise`), that test may have
    been about `wanted`.
    """
    spoken = owners(wanted)
    blocks = owners(*(size for size in launch.grid or () if size is not None))
    if any(_is_part_of(name, launch.unread) for name in (*spoken, *blocks)):
        return True
    tests = [s.name for s in symbols(*launch.facts) if s.origin == OPAQUE]
    words = {word for name in tests for word in re.findall(r"\w+", name)}
    return any(re.split(r"\W", name, maxsplit=1)[0] in words for name in spoken)


def _is_part_of(name: str, unread: Collection[str]) -> bool:
    """Whether a tensor or number is one of those, or of an object such as `ctx` that is."""
    return name in unread or name.partition(".")[0] in unread
