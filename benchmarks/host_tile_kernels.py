"""The kernel of `host_runtime.py` in cuTile."""

from __future__ import annotations

import cuda.tile as ct

TILE = 1024


@ct.kernel
def add_one(x, out):
    ct.store(out, (ct.bid(0),), ct.load(x, (ct.bid(0),), shape=(TILE,)) + 1)
