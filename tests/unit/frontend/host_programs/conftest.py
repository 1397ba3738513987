"""Reads small host functions and gives their programs as text."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from tilecheck.analysis.launch_footprint import kernel_footprint
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host_programs import HostFunction, read_host_programs
from tilecheck.frontend.kernels.definitions import Definition
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.host_text import action_text, region_text
from tilecheck.ir.launch_footprint import KernelFootprint
from tilecheck.text import decode

KERNELS = """
import torch
import triton
import triton.language as tl
import cuda.tile as ct
import tilecheck

@triton.jit
def double(x, y, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.load(x + o, mask=o < n) * 2, mask=o < n)

@triton.jit
def waiting(x, w, y, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    weight = tl.load(w + o, mask=o < n)
    tl.extra.cuda.gdc_wait()
    tl.store(y + o, tl.load(x + o, mask=o < n) * weight, mask=o < n)

@triton.jit
def gated(x, y, n, B: tl.constexpr, PDL: tl.constexpr):
    if PDL:
        tl.extra.cuda.gdc_wait()
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.load(x + o, mask=o < n), mask=o < n)

@ct.kernel
def copied(x, y):
    ct.store(y, (ct.bid(0),), ct.load(x, (ct.bid(0),), (128,)))
"""


def footprint(definition: Definition) -> KernelFootprint | None:
    try:
        return kernel_footprint(lower(definition))
    except UnsupportedConstruct:
        return None


Hosts = Callable[[str], dict[str, HostFunction]]
Paths = Callable[..., list[list[str]]]


@pytest.fixture
def hosts() -> Hosts:
    """The host functions of a source that follows the kernels above, by name."""

    def read(source: str) -> dict[str, HostFunction]:
        table = Project().add(parse(decode("hosts.py", (KERNELS + dedent(source)).encode())))
        return {host.name: host for host in read_host_programs(table, footprint)}

    return read


@pytest.fixture
def paths(hosts: Hosts) -> Paths:
    """The actions of each path through a function, as lines; what is returned and unread comes last."""

    def read(source: str, name: str = "f") -> list[list[str]]:
        host = hosts(source)[name]
        assert not host.unread, host.unread
        found = []
        for program in host.programs:
            lines = [action_text(action) for action in program.actions]
            lines += [f"return {region_text(region)}" for region in program.returned]
            found.append([*lines, *(f"unread {why}" for _, why in program.unread)])
        return found

    return read
