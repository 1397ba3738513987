"""The bit patterns of every data type, also of the floats that NumPy stores wider than they are."""

from __future__ import annotations

import functools

import numpy as np

from tilecheck.reference.machine import Reject
from tilecheck.reference.values.dtypes import Category, Data, DType


def to_bits(data: Data, dtype: DType) -> Data:
    """The elements' bit patterns, as unsigned integers of their own width (a 4-bit one in a byte)."""
    shape: tuple[int, ...] = data.shape  # a scalar's too, which a contiguous copy makes one-dimensional
    data = np.ascontiguousarray(data)
    if dtype.category is Category.BOOL:
        raise Reject("the bits of booleans")
    if dtype.bitwidth == dtype.numpy.itemsize * 8:
        return data.view(f"uint{dtype.bitwidth}").reshape(shape)
    if dtype.bitwidth == 16:
        return np.asarray((data.view(np.uint32) >> 16).astype(np.uint16)).reshape(shape)
    return _encode(data, dtype).reshape(shape)


def from_bits(bits: Data, dtype: DType) -> Data:
    """The inverse of `to_bits`."""
    shape: tuple[int, ...] = bits.shape
    bits = np.ascontiguousarray(bits)
    if dtype.bitwidth == dtype.numpy.itemsize * 8:
        return bits.view(dtype.numpy).reshape(shape)
    if dtype.bitwidth == 16:
        return np.asarray((bits.astype(np.uint32) << 16).view(np.float32)).reshape(shape)
    return np.asarray(_values(dtype)[bits]).reshape(shape)


def pack(bits: Data, dtype: DType) -> Data:
    """All bits as bytes, little-endian; of two 4-bit elements the first is the low half."""
    if dtype.bitwidth == 4:
        pairs = bits.reshape(-1, 2)
        return np.asarray(pairs[:, 0] | (pairs[:, 1] << 4), np.uint8)
    return np.ascontiguousarray(bits).reshape(-1).view(np.uint8)


def unpack(data: Data, dtype: DType) -> Data:
    """The inverse of `pack`."""
    if dtype.bitwidth == 4:
        return np.stack([data & 15, data >> 4], axis=1).reshape(-1)
    return np.ascontiguousarray(data).view(f"uint{dtype.bitwidth}")


@functools.cache
def _values(dtype: DType) -> Data:
    """What each bit pattern of a float of at most 8 bits means."""
    mantissa = dtype.mantissa or 0
    unsigned = dtype.name.endswith("fnu")
    magnitude_bits = dtype.bitwidth - (not unsigned)
    codes = np.arange(1 << dtype.bitwidth)
    magnitude = codes & ((1 << magnitude_bits) - 1)
    exponent, fraction = magnitude >> mantissa, magnitude & ((1 << mantissa) - 1)
    if mantissa:
        significand = np.where(exponent == 0, 0.0, 1.0) + fraction / (1 << mantissa)
        values = np.ldexp(significand, np.maximum(exponent, 1) - 1 + dtype.lowest)
    else:  # an exponent alone: no zero, no subnormal
        values = np.ldexp(1.0, exponent + dtype.lowest)
    values = np.where(values > dtype.largest, np.nan, values)
    if dtype.name.endswith("e5m2"):
        values = np.where((exponent == (1 << 5) - 1) & (fraction == 0), np.inf, values)
    return np.asarray(np.where(codes >> magnitude_bits, -values, values), np.float32)


def _encode(data: Data, dtype: DType) -> Data:
    """The bit pattern of values that the type can hold exactly."""
    values = _values(dtype)
    half = values if dtype.name.endswith("fnu") else values[: len(values) // 2]
    known = np.flatnonzero(~np.isnan(half))
    order = known[np.argsort(half[known], kind="stable")]
    position = np.clip(np.searchsorted(half[order], np.abs(data)), 0, len(order) - 1)
    codes = np.where(np.isnan(data), len(half) - 1, order[position])
    if len(half) < len(values):
        codes = codes + np.where(np.signbit(data), len(half), 0)
    return np.asarray(codes.reshape(data.shape), np.uint8)
