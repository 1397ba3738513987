"""Every kernel compiles for sm_90 with the real compiler; none of it needs a GPU."""

from __future__ import annotations

import importlib
import io
from dataclasses import dataclass
from typing import Any

import pytest

ct = pytest.importorskip("cuda.tile", reason="cuda-tile is not installed")
compilation = pytest.importorskip("cuda.tile.compilation", reason="cuda-tile is too old")

TILE_IR = "13.3"  # the version that brought sm_90


@dataclass(frozen=True)
class Signature:
    """How a kernel is compiled: `arrays` are (element type, rank), in order, before the scalars."""

    module: str
    kernel: str
    arrays: tuple[tuple[str, int], ...]
    scalars: tuple[str, ...]
    constants: tuple[int, ...]


MATRICES = (("float16", 2),) * 3

SIGNATURES = (
    Signature("vector_add", "vector_add_kernel", (("float16", 1),) * 3, (), (1024,)),
    Signature(
        "rms_norm",
        "rms_norm_kernel",
        (("bfloat16", 2), ("bfloat16", 1), ("bfloat16", 2)),
        ("float32",),
        (4096,),
    ),
    Signature(
        "rms_norm",
        "rms_norm_persistent_kernel",
        (("bfloat16", 2), ("float32", 1), ("bfloat16", 2)),
        ("float32",),
        (8, 512),
    ),
    Signature("softmax", "softmax_kernel", (("float32", 2),) * 2, (), (2, 4096)),
    Signature("softmax", "softmax_online_kernel", (("float16", 2),) * 2, (), (4096,)),
    Signature("transpose", "transpose_kernel", (("float16", 2),) * 2, (), (64, 64)),
    Signature("permute_heads", "permute_heads_kernel", (("float16", 4),) * 2, (), (64, 128)),
    Signature("matmul", "matmul_kernel", MATRICES, (), (128, 128, 64)),
    Signature("matmul", "matmul_grouped_kernel", MATRICES, (), (128, 128, 64)),
    Signature("matmul", "matmul_persistent_kernel", MATRICES, (), (128, 128, 64)),
    Signature(
        "embedding",
        "embedding_kernel",
        (("int64", 1), ("float32", 2), ("float32", 2)),
        (),
        (8, 128),
    ),
)


def constraint(element: str, rank: int, *, contiguous: bool) -> Any:
    """An array as a framework passes it: rows in one piece, or any strides at all."""
    known: dict[str, Any] = {}
    if contiguous:
        known = {"stride_constant": (None,) * (rank - 1) + (1,), "base_addr_divisible_by": 16}
    return compilation.ArrayConstraint(
        getattr(ct, element),
        rank,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        **known,
    )


def compiled(signature: Signature, output_format: str, *, contiguous: bool) -> bytes:
    module = importlib.import_module(f"tilecheck.kernels.{signature.module}")
    parameters = [
        *(constraint(element, rank, contiguous=contiguous) for element, rank in signature.arrays),
        *(compilation.ScalarConstraint(getattr(ct, name)) for name in signature.scalars),
        *signature.constants,
    ]
    form = compilation.KernelSignature(parameters, compilation.CallingConvention.cutile_python_v1())
    target = io.BytesIO()
    compilation.export_kernel(
        getattr(module, signature.kernel),
        [form],
        target,
        gpu_code="sm_90",
        output_format=output_format,
        bytecode_version=TILE_IR,
    )
    return target.getvalue()


def test_every_kernel_of_the_library_is_listed() -> None:
    kernels = set()
    for name in sorted({signature.module for signature in SIGNATURES}):
        module = importlib.import_module(f"tilecheck.kernels.{name}")
        kernels |= {(name, key) for key, value in vars(module).items() if isinstance(value, ct.kernel)}
    assert kernels == {(signature.module, signature.kernel) for signature in SIGNATURES}


@pytest.mark.parametrize("contiguous", [True, False], ids=["contiguous", "strided"])
@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.kernel)
def test_compiles_to_tile_ir(signature: Signature, contiguous: bool) -> None:
    assert compiled(signature, "tileir_bytecode", contiguous=contiguous).startswith(b"\x7fTileIR")


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.kernel)
def test_compiles_to_machine_code(signature: Signature) -> None:
    try:
        code = compiled(signature, "cubin", contiguous=True)
    except FileNotFoundError:
        pytest.skip("tileiras is not installed (cuda-tile[tileiras])")
    assert code.startswith(b"\x7fELF")
