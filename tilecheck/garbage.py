"""How often Python looks for garbage in cycles, in processes that are ours alone.

The analysis makes many objects that live long, and few cycles: with Python's own numbers, a tenth of its time
goes into looking through what is not garbage. All else is freed at once, by counting references.
"""

from __future__ import annotations

import gc

_NEW, _YOUNG, _OLD = 50_000, 20, 50  # objects, then collections of the generation before


def collect_rarely() -> None:
    """For programs; a library must not decide this for its caller."""
    gc.set_threshold(_NEW, _YOUNG, _OLD)
