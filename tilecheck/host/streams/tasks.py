"""Who runs code of the host: what a block allows, it allows to whoever entered it."""

from __future__ import annotations

import sys
import threading


def current_task() -> object:
    """The task of the event loop that runs in this thread; where there is none, the thread."""
    asyncio = sys.modules.get("asyncio")
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # no loop runs
        task = None
    return threading.current_thread() if task is None else task
