"""How launch arguments become the parameters of a Triton kernel."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.interpret.modules import Module
from tilecheck.reference.interpret.scopes import parameter_names
from tilecheck.reference.machine import Reject
from tilecheck.reference.triton.dtypes import UINT64, dtype_from_text, is_integer
from tilecheck.reference.triton.values import HostDescriptor, Pointer, block_shape
from tilecheck.reference.values.dtypes import BOOL, FLOAT32, INT32, INT64, DType, dtype_of_numpy
from tilecheck.reference.values.values import Array, Closure, Tile, TypeMark, scalar

_CONSTANT = "constexpr"
_MOST_MADE = 1 << 24  # elements of one array


def bind_parameters(interpreter: Interpreter, kernel: Closure, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every parameter of the kernel."""
    spec = kernel.node.args
    if spec.kwarg:
        raise Reject("a kernel with `**` parameters")
    annotations = {argument.arg: argument.annotation for argument in _parameters(spec)}
    kept = _not_specialized(interpreter, kernel)
    bound: dict[str, Any] = {}
    for name in parameter_names(spec):
        annotation = _read(interpreter, kernel.module, annotations.get(name))
        if name in arguments:
            value = arguments[name]
        elif name in kernel.defaults:
            value = kernel.defaults[name]
        else:
            raise Reject(f"no value for parameter `{name}`")
        if isinstance(value, np.ndarray) and (value.ndim != 1 or f"{name}.block_shape[0]" in arguments):
            bound[name] = _descriptor(name, value, arguments)
        else:
            bound[name] = _bind(name, None, value, annotation, keep=name in kept)
    return bound


def _parameters(spec: ast.arguments) -> Sequence[ast.arg]:
    return (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)


def _not_specialized(interpreter: Interpreter, kernel: Closure) -> frozenset[str]:
    """The parameters that `@triton.jit(do_not_specialize=[...])` names, or counts."""
    names = parameter_names(kernel.node.args)
    kept: set[str] = set()
    for decorator in getattr(kernel.node, "decorator_list", []):
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else []:
            if keyword.arg != "do_not_specialize":
                continue
            try:
                listed = interpreter.fold(keyword.value, kernel.module.frame())
            except Reject:
                return frozenset(names)  # unknown: every one stays a runtime value
            for item in listed if isinstance(listed, (tuple, list)) else ():
                kept.add(names[item] if isinstance(item, int) and 0 <= item < len(names) else str(item))
    return frozenset(kept)


def _read(interpreter: Interpreter, module: Module, node: ast.expr | None) -> str | DType | None:
    """What an annotation says: a compile-time value, a scalar type, or nothing."""
    if node is None:
        return None
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    last = text.rpartition(".")[2]
    if last == _CONSTANT:
        return _CONSTANT
    try:
        value = interpreter.fold(node, module.frame())
    except Reject:
        return dtype_from_text(last)
    if isinstance(value, DType):
        return value
    if isinstance(value, TypeMark) and value.name == _CONSTANT:
        return _CONSTANT
    return dtype_from_text(last)


def _bind(name: str, member: int | None, value: Any, annotation: str | DType | None, *, keep: bool) -> Any:
    if isinstance(value, np.ndarray):
        return _pointer(name, member, value)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype_of_numpy(np.dtype(value))
    if isinstance(value, (tuple, list)) and annotation != _CONSTANT:
        return tuple(_bind(name, at, item, None, keep=keep) for at, item in enumerate(value))
    if isinstance(value, np.generic):
        if annotation == _CONSTANT:
            return value.item()
        return Tile(np.asarray(value), dtype_of_numpy(value.dtype))
    if annotation == _CONSTANT or value is None or not isinstance(value, (bool, int, float)):
        return value
    return _scalar(name, value, annotation if isinstance(annotation, DType) else None, keep=keep)


def _descriptor(name: str, data: np.ndarray[Any, Any], arguments: Mapping[str, Any]) -> HostDescriptor:
    """A descriptor that the host made. `name.block_shape[k]` among the arguments says its blocks' shape."""
    if any(stride % data.itemsize for stride in data.strides if data.size):
        raise Reject(f"strides {data.strides} bytes of `{name}`")
    sizes = [arguments.get(f"{name}.block_shape[{axis}]") for axis in range(data.ndim)]
    shape = () if None in sizes else block_shape(tuple(sizes))
    return HostDescriptor(Array(name, None, data, data, dtype_of_numpy(data.dtype), (0,) * data.ndim), shape)


def _pointer(name: str, member: int | None, data: np.ndarray[Any, Any]) -> Pointer:
    # Memory that is too large to be made is given as one cell in all its places: what counts is where it is
    # touched. No tensor that a host expands is as large.
    is_plain = data.strides == (data.itemsize,) or (data.strides == (0,) and data.size > _MOST_MADE)
    if data.ndim != 1 or (data.size > 1 and not is_plain):
        raise Reject(f"`{name}` given as an array of rank {data.ndim} that is no plain memory")
    dtype = dtype_of_numpy(data.dtype)
    array = Array(name, member, data, data, dtype, (0,))
    return Pointer(array, np.zeros((), np.int64), dtype)


def _scalar(name: str, value: bool | float, wanted: DType | None, *, keep: bool) -> Any:
    """A number: an int is int32 if it fits, a float float32. A plain 1 becomes a compile-time constant."""
    if wanted is not None:
        if is_integer(wanted) and not isinstance(value, float) and wanted != BOOL:
            low, high = wanted.bounds
            if not low <= value <= high:
                raise Reject(f"argument `{name}` = {value} does not fit in {wanted}")
        return scalar(value, wanted)
    if isinstance(value, bool):
        return scalar(value, BOOL)
    if isinstance(value, float):
        return scalar(value, FLOAT32)
    if value == 1 and not keep:
        return 1
    for dtype in (INT32, INT64, UINT64):
        low, high = dtype.bounds
        if low <= value <= high:
            return scalar(value, dtype)
    raise Reject(f"argument `{name}` = {value} does not fit in any integer type")
