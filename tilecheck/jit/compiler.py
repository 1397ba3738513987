"""A property of the installed Tile IR compiler on which the safety of a launch rests."""

from __future__ import annotations

import re
from functools import cache

GRANULE = 16  # bytes: the bulk copy engine stores whole pieces of this size
_FIXED = (13, 5)  # the first release seen to use the engine only where rows end on a piece


@cache
def stores_whole_pieces() -> bool:
    """Whether compiled kernels may store past the end of a row, up to a multiple of `GRANULE` bytes.

    Measured on Hopper: releases 13.4 store through the bulk copy engine where rows *begin* on multiples of 16
    bytes, and overwrite with zeros what follows a row that ends within one; 13.5 does not. A compiler whose
    release cannot be told is taken to.
    """
    try:
        import cuda.tile._compile as compiler  # lazy: only where kernels are compiled

        text = compiler._get_compiler_version_string() or ""  # noqa: SLF001 - cuTile has no public name for it
    except Exception:  # noqa: BLE001 - whatever a private function does in another version of cuTile
        return True
    found = re.search(r"release (\d+)\.(\d+)", text)
    return found is None or (int(found[1]), int(found[2])) < _FIXED
