"""Waiting for the GPU without keeping an event loop from its other tasks."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from tilecheck.host.streams.clocks import Mark

if TYPE_CHECKING:
    from tilecheck.host.runtime import Runtime

_EAGER = 200e-6  # seconds during which every round of the loop asks
_SHORTEST, _LONGEST = 100e-6, 2e-3  # seconds between two questions after that


async def completion(runtime: Runtime, mark: Mark) -> None:
    """Return when the event has ended.

    A task that is cancelled meanwhile leaves the work in flight: what it uses is kept as if nobody waited.
    """
    begin = time.monotonic()
    pause = _SHORTEST
    while not runtime.driver.is_done(mark.event):
        if time.monotonic() - begin < _EAGER:
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST)
    with runtime.lock:
        runtime.ledger.passed(mark)
