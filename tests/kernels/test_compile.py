"""Every kernel compiles for sm_90 with the real compiler; none of it needs a GPU."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from kernel_cases import MODULES, examples, kernels, parameters

ct = pytest.importorskip("cuda.tile", reason="cuda-tile is not installed")
compilation = pytest.importorskip("cuda.tile.compilation", reason="cuda-tile is too old")

TILE_IR = "13.4"  # the version that brought dependent launches


@dataclass(frozen=True)
class Signature:
    """A kernel and what is known of each argument when it is compiled.

    That is (element type, rank) of an array, (type, None) of a scalar, or ("constant", value).
    """

    module: str
    kernel: str
    arguments: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        described = (str(value) if kind == "constant" else kind for kind, value in self.arguments)
        return f"{self.kernel}-{'-'.join(described)}"

    def in_bfloat16(self) -> Signature:
        """NumPy has no bfloat16: the examples in half precision speak for it too."""
        halves = (("bfloat16" if kind == "float16" else kind, value) for kind, value in self.arguments)
        return replace(self, arguments=tuple(halves))


def signature(module: str, kernel: str, args: tuple[Any, ...]) -> Signature:
    known: list[tuple[str, Any]] = []
    for value, constant in zip(args, parameters(module, kernel).values(), strict=True):
        if constant:
            known.append(("constant", value))
        elif isinstance(value, np.ndarray):
            known.append((value.dtype.name, value.ndim))
        else:
            known.append(("float32" if isinstance(value, float) else "int32", None))
    return Signature(module, kernel, tuple(known))


SIGNATURES = list(
    dict.fromkeys(
        signature(module, kernel, example.args) for module in MODULES for kernel, example in examples(module)
    )
)
WITH_BFLOAT16 = list(dict.fromkeys([*SIGNATURES, *(form.in_bfloat16() for form in SIGNATURES)]))


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


def compiled(signature: Signature, output_format: str, *, contiguous: bool = True) -> bytes:
    constraints: list[Any] = []
    for kind, value in signature.arguments:
        if kind == "constant":
            constraints.append(value)
        elif value is None:
            constraints.append(compilation.ScalarConstraint(getattr(ct, kind)))
        else:
            constraints.append(constraint(kind, value, contiguous=contiguous))
    form = compilation.KernelSignature(constraints, compilation.CallingConvention.cutile_python_v1())
    target = io.BytesIO()
    compilation.export_kernel(
        kernels(signature.module)[signature.kernel],
        [form],
        target,
        gpu_code="sm_90",
        output_format=output_format,
        bytecode_version=TILE_IR,
    )
    return target.getvalue()


@pytest.mark.parametrize("contiguous", [True, False], ids=["contiguous", "strided"])
@pytest.mark.parametrize("signature", WITH_BFLOAT16, ids=str)
def test_compiles_to_tile_ir(signature: Signature, contiguous: bool) -> None:
    assert compiled(signature, "tileir_bytecode", contiguous=contiguous).startswith(b"\x7fTileIR")


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_compiles_to_machine_code(signature: Signature) -> None:
    assert compiled(signature, "cubin").startswith(b"\x7fELF")
