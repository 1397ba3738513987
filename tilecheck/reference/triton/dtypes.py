"""The types of Triton: scalars, pointers and blocks, what they promote to, and their attributes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilecheck.reference.machine import Reject
from tilecheck.reference.values.dtypes import (
    BFLOAT16,
    BOOL,
    DTYPES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Category,
    DType,
)
from tilecheck.reference.values.values import Operation

UINT32 = DTYPES["uint32"]
UINT64 = DTYPES["uint64"]


def _float8(name: str, mantissa: int, lowest: int, largest: float) -> DType:
    return DType(name, Category.RESTRICTED, 8, "float32", True, mantissa, lowest, largest, saturates=True)


# `tl.int1` is the shared boolean. The 8-bit floats that other vendors use are close to their neighbours.
TRITON_DTYPES: dict[str, DType] = {
    "int1": BOOL,
    **{name: DTYPES[name] for name in ("int8", "int16", "int32", "int64")},
    **{name: DTYPES[name] for name in ("uint8", "uint16", "uint32", "uint64")},
    "float16": FLOAT16,
    "bfloat16": BFLOAT16,
    "float32": FLOAT32,
    "float64": FLOAT64,
    "float8e4nv": DTYPES["float8_e4m3fn"],
    "float8e5": DTYPES["float8_e5m2"],
    "float8e4b15": _float8("float8e4b15", 3, -14, 1.875),
    "float8e4b8": _float8("float8e4b8", 3, -7, 240.0),
    "float8e5b16": _float8("float8e5b16", 2, -15, 57344.0),
}
# How Triton spells the types in `str(dtype)` and in annotations.
SHORT_NAMES = {
    "int1": "int1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b15": "fp8e4b15", "float8e4b8": "fp8e4b8",
    "float8e5b16": "fp8e5b16",
}  # fmt: skip
_TRITON_NAMES = {dtype: name for name, dtype in TRITON_DTYPES.items()}
_SIGNED_PREFIX = {"i": "int", "u": "uint"}


@dataclass(frozen=True, slots=True)
class PointerType:
    """`tl.pointer_type(element)`."""

    element: DType


@dataclass(frozen=True, slots=True)
class BlockType:
    """The type of a block: `x.type`."""

    scalar: Any
    shape: tuple[int, ...]


def dtype_from_text(text: str) -> DType | None:
    """The type of a short spelling: `fp16`, `i32`, `int64`, `*fp16` is not one."""
    for name, dtype in TRITON_DTYPES.items():
        if text in (name, SHORT_NAMES.get(name)):
            return dtype
    if text[:1] in _SIGNED_PREFIX and text[1:].isdigit():
        return BOOL if text in ("i1", "u1") else TRITON_DTYPES.get(_SIGNED_PREFIX[text[0]] + text[1:])
    return None


def is_signed(dtype: DType) -> bool:
    """Whether an integer type is signed; a boolean counts as an unsigned integer of one bit."""
    return dtype.signed and dtype.category is not Category.BOOL


def bits_of(dtype: DType) -> int:
    """The width in bits that promotion looks at."""
    return 1 if dtype.category is Category.BOOL else dtype.bitwidth


def is_integer(dtype: DType) -> bool:
    """Whether integer operations apply: integers and booleans."""
    return dtype.category <= Category.INTEGER


def type_of_constant(value: bool | float) -> DType:
    """The type that a compile-time number takes when it becomes a tensor."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        for low, high, dtype in (
            (-(2**31), 2**31, INT32),
            (2**31, 2**32, UINT32),
            (-(2**63), 2**63, INT64),
            (2**63, 2**64, UINT64),
        ):
            if low <= value < high:
                return dtype
        raise Reject(f"constant {value} is out of range of every integer type")
    size = abs(value)
    normal = not math.isfinite(size) or size == 0 or 2**-126 <= size <= (2 - 2**-23) * 2**127
    return FLOAT32 if normal else FLOAT64


def promote_integers(first: DType, second: DType) -> DType:
    """The wider type; of two signednesses the unsigned one unless it is narrower."""
    if is_signed(first) == is_signed(second):
        return first if bits_of(first) > bits_of(second) else second
    unsigned, signed = (second, first) if is_signed(first) else (first, second)
    return unsigned if bits_of(unsigned) >= bits_of(signed) else signed


def _kind(dtype: DType) -> int:
    return min(int(dtype.category), int(Category.FLOAT))


def computation_type(
    first: DType, second: DType, *, first_constant: bool, second_constant: bool, division: bool
) -> DType:
    """The type in which an operation runs. A constant of a lower or equal kind does not take part."""
    if first_constant != second_constant:
        constant, other = (first, second) if first_constant else (second, first)
        if _kind(constant) <= _kind(other):
            first = second = other
    both = (first, second)
    if FLOAT64 in both:
        return FLOAT64
    if division and (first.is_float or second.is_float):
        return FLOAT32
    if FLOAT32 in both:
        return FLOAT32
    if FLOAT16 in both:
        return FLOAT16
    if BFLOAT16 in both:
        return BFLOAT16 if first == second else FLOAT32
    if first.is_float and second.is_float:
        return first if first == second else FLOAT16
    if first.is_float or second.is_float:
        raise Reject(f"an operation on {first} and {second}")
    if division and is_signed(first) != is_signed(second):
        raise Reject(f"division of {first} by {second}")
    return promote_integers(first, second)


_QUESTIONS: dict[str, Callable[[DType], bool]] = {
    "is_fp8": lambda d: d.is_float and d.bitwidth == 8,
    "is_fp16": lambda d: d == FLOAT16,
    "is_bf16": lambda d: d == BFLOAT16,
    "is_fp32": lambda d: d == FLOAT32,
    "is_fp64": lambda d: d == FLOAT64,
    "is_fp8e4nv": lambda d: _TRITON_NAMES.get(d) == "float8e4nv",
    "is_fp8e5": lambda d: _TRITON_NAMES.get(d) == "float8e5",
    "is_fp8e4b15": lambda d: _TRITON_NAMES.get(d) == "float8e4b15",
    "is_fp8e4b8": lambda d: _TRITON_NAMES.get(d) == "float8e4b8",
    "is_fp8e5b16": lambda d: _TRITON_NAMES.get(d) == "float8e5b16",
    "is_int": is_integer,
    "is_bool": lambda d: d.category is Category.BOOL,
    "is_int1": lambda d: d.category is Category.BOOL,
    "is_int_signed": lambda d: d.is_integer and d.signed,
    "is_int_unsigned": lambda d: is_integer(d) and not is_signed(d),
    "is_floating": lambda d: d.is_float,
    "is_standard_floating": lambda d: d in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64),
    "is_ptr": lambda d: False,
    "is_block": lambda d: False,
    "is_void": lambda d: False,
    "is_const": lambda d: False,
}
_MANTISSA = {FLOAT16: 10, BFLOAT16: 7, FLOAT32: 23, FLOAT64: 52}


def triton_name(dtype: DType) -> str:
    """How Triton spells a type: `int32`, `fp16`."""
    name = _TRITON_NAMES.get(dtype, dtype.name)
    return SHORT_NAMES.get(name, name)


def type_attribute(kind: DType | PointerType | BlockType, name: str) -> Any:
    """An attribute of a type."""
    if isinstance(kind, BlockType):
        return _block_attribute(kind, name)
    if isinstance(kind, PointerType):
        return _pointer_attribute(kind, name)
    if name in _QUESTIONS or name.removeprefix("is_") in TRITON_DTYPES:
        known = _QUESTIONS.get(name)
        answer = known(kind) if known else kind == TRITON_DTYPES[name.removeprefix("is_")]
        return Operation(name, lambda machine: answer)
    if name in ("scalar", "value"):
        return kind
    if name == "name":
        return triton_name(kind)
    if name in ("primitive_bitwidth", "int_bitwidth"):
        return bits_of(kind)
    if name == "itemsize":
        return max(1, kind.bitwidth // 8)
    if name == "fp_mantissa_width" and kind in _MANTISSA:
        return _MANTISSA[kind]
    raise Reject(f"attribute `{name}` of a data type")


def _pointer_attribute(kind: PointerType, name: str) -> Any:
    if name == "element_ty":
        return kind.element
    if name in ("scalar", "value"):
        return kind
    if name in ("primitive_bitwidth", "int_bitwidth"):
        return 64
    if name == "is_ptr":
        return Operation(name, lambda machine: True)
    if name in _QUESTIONS:
        return Operation(name, lambda machine: False)
    raise Reject(f"attribute `{name}` of a pointer type")


def _block_attribute(kind: BlockType, name: str) -> Any:
    if name in ("scalar", "element_ty"):
        return kind.scalar
    if name == "shape":
        return kind.shape
    if name == "numel":
        return math.prod(kind.shape)
    if name == "is_block":
        return Operation(name, lambda machine: True)
    if name == "get_block_shapes":
        return Operation(name, lambda machine: kind.shape)
    return type_attribute(kind.scalar, name)
