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
    if any(_is_part_of(name, launch.doubted) for name in spoken):
        return True
    tests = [s.name for s in symbols(*launch.facts) if s.origin == OPAQUE]
    words = {word for name in tests for word in re.findall(r"\w+", name)}
    # `not (unread() or n % 256)`: what a fact says of `n` it says only where the unread part lets it.
    mixed = (fact for fact in launch.facts if any(s.origin == OPAQUE for s in symbols(fact)))
    words |= {_root(name) for name in owners(*mixed)}
    return any(_root(name) in words for name in spoken)


def _root(name: str) -> str:
    return re.split(r"\W", name, maxsplit=1)[0]


def is_unread(name: str, launch: Launch) -> bool:
    """Whether unread code computes a value, or may have turned some of its values away."""
    return _is_part_of(name, launch.unread) or _is_part_of(name, launch.doubted)


def _is_part_of(name: str, unread: Collection[str]) -> bool:
    """Whether a tensor or number is one of those, or of an object such as `ctx` that is."""
    return name in unread or name.partition(".")[0] in unread
