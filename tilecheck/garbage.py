"""What processes that are ours alone do with memory that is not needed any more.

The analysis makes many objects that live long, and few cycles: with Python's own numbers, a tenth of its time
goes into looking through what is not garbage. All else is freed at once, by counting references. And the
solver's state for one kernel, some megabytes, is followed by that for the next: to hand it back to the system
and ask for it again, page by page, takes ten times as long as to make it.
"""

from __future__ import annotations

import atexit
import functools
import gc
import sys

# Objects, then collections of the generation before. Loading the analysis makes 60,000, and verifying one file
# makes up to 100,000 more: a short run looks for none.
_NEW, _YOUNG, _OLD = 200_000, 5, 50

# Options of glibc's `mallopt`, from its `malloc.h`, and bytes.
_TRIM, _TRIM_ABOVE = -1, 256 << 20  # free memory at the end of the heap that goes back
_PAD, _PAD_BY = -2, 4 << 20  # what is asked for beside what is needed
_MAP, _MAP_ABOVE = -3, 32 << 20  # blocks that are mapped, and go back, by themselves


def collect_rarely() -> None:
    """For programs; a library must not decide this for its caller.

    At the end of the process nothing is searched for cycles either: the system takes back all memory at once.
    """
    gc.set_threshold(_NEW, _YOUNG, _OLD)
    _leave_the_rest()


@functools.cache
def _leave_the_rest() -> None:
    atexit.register(gc.freeze)


@functools.cache
def keep_freed() -> None:
    """Keep freed memory, up to a bound, for what comes next: in processes that collect rarely, and have glibc.

    Asked for when the solver is loaded, which needs `ctypes` as well.
    """
    if gc.get_threshold() != (_NEW, _YOUNG, _OLD) or not sys.platform.startswith("linux"):
        return
    import ctypes  # lazy: runs that find all in the cache do without

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_TRIM, _TRIM_ABOVE), (_PAD, _PAD_BY), (_MAP, _MAP_ABOVE)):
            mallopt(option, value)
