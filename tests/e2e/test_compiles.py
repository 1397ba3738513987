"""`unsafe`, `Mut` and `Shared` in kernels that the real compiler accepts."""

from __future__ import annotations

import io

import pytest

import tilecheck
from tilecheck import Mut, Shared, unsafe

ct = pytest.importorskip("cuda.tile", reason="cuda-tile is installed on Linux only")


def marked(x: Shared, out: Mut, T: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    with unsafe("the test asks for it"):
        ct.store(out, index=(i,), tile=tile)


def attribute(x: tilecheck.Shared, out: tilecheck.Mut, T: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    for _ in range(2):
        with tilecheck.unsafe(reason="the test asks for it"):
            ct.store(out, index=(i,), tile=tile)


@pytest.mark.parametrize("function", [marked, attribute])
def test_the_compiler_accepts_the_markers(function) -> None:
    from cuda.tile import compilation as cc

    array = cc.ArrayConstraint(
        ct.float32,
        1,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
    )
    signature = cc.KernelSignature(
        [array, array, cc.ConstantConstraint(128)], cc.CallingConvention.cutile_python_v1()
    )
    out = io.BytesIO()
    cc.export_kernel(
        ct.kernel(function),
        [signature],
        out,
        output_format="tileir_bytecode",
        gpu_code="sm_90",
        bytecode_version="13.1",
    )
    assert out.getvalue()


def test_unsafe_does_nothing_on_the_host() -> None:
    with unsafe("nothing"):
        pass
