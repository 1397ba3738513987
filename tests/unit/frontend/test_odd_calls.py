"""Calls that Python accepts and the library refuses: they are not understood, and nothing else happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import ModuleTable, Project
from tilecheck.frontend.text.source import decode, parse
from tilecheck.ir.launch import HostTensor

_HOST = """
import numpy as np
import torch
import triton
import triton.language as tl
@triton.jit
def fill(p, B: tl.constexpr):
    tl.store(p + tl.program_id(0) * B + tl.arange(0, B), 1)
def launch(t, n):
    odd = {}
    fill[(n,)](t, B=16)
"""

_KERNEL = """
import triton
import triton.language as tl
@triton.jit
def fill(p, n, B: tl.constexpr, F: tl.constexpr):
    tile = tl.arange(0, B)
    odd = {}
    tl.store(p + tl.program_id(0) * B + tile, odd)
"""


def _table(tmp_path: Path, text: str) -> ModuleTable:
    return Project().add(parse(decode(str(tmp_path / "kernels.py"), text.encode())))


@pytest.mark.parametrize(
    "call",
    [
        "np.arange()",
        "torch.arange(step=2)",
        "torch.arange(0, end=n)",
        "torch.arange(1, n, 2, 3)",
        "divmod(n)",
        "divmod()",
        "triton.next_power_of_2()",
        "t.expand_as()",
        "t.swapaxes(0)",
        "t[0].permute(3)",
        "t.permute(10**30)",
    ],
)
def test_in_host_code(tmp_path: Path, call: str) -> None:
    (launch,) = find_launches(_table(tmp_path, _HOST.format(call)))
    assert launch.kernel == "fill"


def test_the_length_of_a_range_by_names(tmp_path: Path) -> None:
    shapes = set()
    for call in (
        "torch.arange(2, n, 3)",
        "torch.arange(start=2, end=n, step=3)",
        "np.arange(2, stop=n, step=3)",
    ):
        (launch,) = find_launches(_table(tmp_path, _HOST.format(call).replace("(t, B", "(odd, B")))
        tensor = dict(launch.arguments)["p"]
        assert isinstance(tensor, HostTensor)
        shapes.add(tensor.shape)
    assert len(shapes) == 1
    assert None not in shapes


@pytest.mark.parametrize(
    "call",
    [
        "n.T",
        "tl.broadcast_to(tile)",
        "tl.histogram(tile, ())",
        "tl.histogram(tile, (2, 3))",
        "tl.split(n)",
        "tl.dot_scaled(tile, tile, 'e4m3', n, tile, 'e4m3')",
        "range(tile if F else tile[:, None])",
    ],
)
def test_in_a_kernel(tmp_path: Path, call: str) -> None:
    (definition,) = find_kernels(_table(tmp_path, _KERNEL.format(call)))
    with pytest.raises(UnsupportedConstruct):
        lower(definition)
