"""The kernels of the tests on a real GPU; `kits.FakeKit` has their likes. Blocks are of 8 elements."""

from __future__ import annotations

import cuda.tile as ct

TILE = 8


@ct.kernel
def add_one(x, out):
    ct.store(out, (ct.bid(0),), ct.load(x, (ct.bid(0),), shape=(TILE,)) + 1)


@ct.kernel
def double(out):
    ct.store(out, (ct.bid(0),), ct.load(out, (ct.bid(0),), shape=(TILE,)) * 2)


@ct.kernel
def add(x, y, out):
    tile = ct.load(x, (ct.bid(0),), shape=(TILE,)) + ct.load(y, (ct.bid(0),), shape=(TILE,))
    ct.store(out, (ct.bid(0),), tile)
