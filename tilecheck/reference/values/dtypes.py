"""The data types of cuTile, how they are stored in NumPy, and how two of them promote."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilecheck.reference.machine import Reject

Data = np.ndarray[Any, Any]


class Category(enum.IntEnum):
    """The numeric families; a loosely typed constant takes the stronger of its own and its partner's."""

    BOOL = 0
    INTEGER = 1
    FLOAT = 2
    RESTRICTED = 3  # floats that never promote implicitly: tfloat32, float8, float4


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """A data type. `mantissa`, `lowest` and `largest` describe floats NumPy cannot store natively.

    Each type is one object. What each operation asks of it is kept: `numpy`, `is_integer`, `is_float`, and
    `bounds`, the smallest and largest value of an integer type.
    """

    name: str
    category: Category
    bitwidth: int
    storage: str
    signed: bool = True
    mantissa: int | None = None
    lowest: int = 0  # exponent of the smallest normal number
    largest: float = 0.0
    saturates: bool = False
    numpy: np.dtype[Any] = field(init=False, repr=False)
    is_integer: bool = field(init=False, repr=False)
    is_float: bool = field(init=False, repr=False)
    bounds: tuple[int, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = 1 << self.bitwidth
        lowest = -(values >> 1) if self.signed else 0
        object.__setattr__(self, "numpy", np.dtype(self.storage))
        object.__setattr__(self, "is_integer", self.category is Category.INTEGER)
        object.__setattr__(self, "is_float", self.category >= Category.FLOAT)
        object.__setattr__(self, "bounds", (lowest, lowest + values - 1))

    def __str__(self) -> str:
        return self.name


def _integer(name: str) -> DType:
    return DType(name, Category.INTEGER, int(name.lstrip("uint")), name, signed=name.startswith("i"))


def _restricted(name: str, bits: int, mantissa: int, lowest: int, largest: float) -> DType:
    return DType(name, Category.RESTRICTED, bits, "float32", True, mantissa, lowest, largest, saturates=True)


BOOL = DType("bool_", Category.BOOL, 8, "bool")
FLOAT16 = DType("float16", Category.FLOAT, 16, "float16")
BFLOAT16 = DType("bfloat16", Category.FLOAT, 16, "float32", True, 7, -126, float.fromhex("0x1.fep127"))
FLOAT32 = DType("float32", Category.FLOAT, 32, "float32")
FLOAT64 = DType("float64", Category.FLOAT, 64, "float64")

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        BOOL,
        *(_integer(name) for name in ("int8", "int16", "int32", "int64")),
        *(_integer(name) for name in ("uint8", "uint16", "uint32", "uint64")),
        FLOAT16,
        BFLOAT16,
        FLOAT32,
        FLOAT64,
        DType("tfloat32", Category.RESTRICTED, 32, "float32", True, 10, -126, float.fromhex("0x1.ffcp127")),
        _restricted("float8_e4m3fn", 8, 3, -6, 448.0),
        _restricted("float8_e5m2", 8, 2, -14, 57344.0),
        _restricted("float8_e8m0fnu", 8, 0, -127, 2.0**127),
        _restricted("float8_e5m3fnu", 8, 3, -14, 114688.0),
        _restricted("float4_e2m1fn", 4, 1, 0, 6.0),
    )
}
INT32, INT64, UINT8 = DTYPES["int32"], DTYPES["int64"], DTYPES["uint8"]

# The names that PyTorch and NumPy use for the same types.
FOREIGN_DTYPES: dict[str, DType] = {
    **{name: dtype for name, dtype in DTYPES.items() if not name.endswith("fnu")},
    "bool": BOOL,
    "half": FLOAT16,
    "float": FLOAT32,
    "single": FLOAT32,
    "double": FLOAT64,
    "int": INT32,
    "long": INT64,
    "short": DTYPES["int16"],
    "float8_e8m0fnu": DTYPES["float8_e8m0fnu"],
}


def dtype_of_numpy(dtype: np.dtype[Any]) -> DType:
    """The cuTile type of a NumPy array's elements."""
    found = BOOL if dtype == np.dtype(bool) else DTYPES.get(dtype.name)
    if found is None:
        raise Reject(f"array of dtype {dtype}")
    return found


def dtype_of_constant(value: bool | float) -> DType:
    """The type that a loosely typed constant takes where nothing else decides."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return FLOAT32
    for dtype in (INT32, INT64, DTYPES["uint64"]):
        low, high = dtype.bounds
        if low <= value <= high:
            return dtype
    raise Reject(f"constant {value} is out of range of every integer type")


def promote(first: DType, second: DType) -> DType:
    """The common type of two strictly typed values."""
    if first == second:
        return first
    strong, weak = (first, second) if first.category >= second.category else (second, first)
    if strong.category is Category.RESTRICTED:
        raise Reject(f"implicit promotion of {first} and {second}")
    if strong.category is not weak.category:
        return strong
    if strong.is_integer and strong.signed != weak.signed:
        raise Reject(f"implicit promotion of {first} and {second}")
    if strong.bitwidth == weak.bitwidth:  # float16 with bfloat16
        raise Reject(f"implicit promotion of {first} and {second}")
    return max(first, second, key=lambda dtype: dtype.bitwidth)


def promote_constant(dtype: DType, value: bool | float, *, force_float: bool = False) -> DType:
    """The common type of a strictly typed value and a loosely typed constant."""
    loose = dtype_of_constant(value)
    category = min(dtype.category, Category.FLOAT)
    if loose.category is not category:
        return loose if loose.category > category else dtype
    if category is Category.INTEGER and not force_float:
        low, high = dtype.bounds
        if not low <= value <= high:
            raise Reject(f"integer constant {value} is out of range of {dtype}")
    return dtype


def convert(data: Data, source: DType, target: DType) -> Data:
    """Convert element values as `astype` does: integers wrap, floats round, out-of-range floats saturate."""
    if source == target:
        return data
    if target.category is Category.BOOL:
        return np.asarray(data != 0)
    if target.is_integer and source.is_float:
        return _float_to_integer(data, target)
    return round_float(data.astype(target.numpy), target)


def _float_to_integer(data: Data, target: DType) -> Data:
    low, high = target.bounds
    truncated = np.trunc(data.astype(np.float64))
    inside = (truncated >= float(low)) & (truncated < float(high) + (high < 2**53))
    result = np.where(inside, truncated, 0).astype(target.numpy)
    result = np.where(truncated < float(low), np.array(low, target.numpy), result)
    result = np.where(~inside & (truncated > 0), np.array(high, target.numpy), result)
    return np.asarray(result, target.numpy)


def round_float(data: Data, dtype: DType) -> Data:
    """Round to the precision of a float type that NumPy stores wider than it is."""
    if dtype.mantissa is None:
        return data
    wide = data.astype(np.float64)
    _, exponent = np.frexp(wide)
    quantum = np.ldexp(1.0, np.maximum(exponent - 1, dtype.lowest) - dtype.mantissa)
    rounded = np.where(np.isfinite(wide), np.rint(wide / quantum) * quantum, wide)
    limit = dtype.largest if dtype.saturates else np.inf
    too_big = np.abs(rounded) > dtype.largest
    rounded = np.where(too_big, np.copysign(limit, wide), rounded)
    return np.asarray(rounded, dtype.numpy)
