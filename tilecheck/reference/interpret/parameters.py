"""How launch arguments become the kernel's parameters, by their annotations."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.interpret.modules import Module
from tilecheck.reference.interpret.scopes import parameter_names
from tilecheck.reference.machine import Reject
from tilecheck.reference.values.dtypes import FLOAT32, INT32, INT64, DType, dtype_of_numpy
from tilecheck.reference.values.values import Array, ArrayList, Closure, Tile, TypeMark, harden, scalar


@dataclass(frozen=True, slots=True)
class Annotation:
    """What an annotation says about a parameter."""

    constant: bool = False
    scalar_int64: bool = False
    index_dtype: DType = INT32
    static_shape: tuple[int, ...] = ()
    static_strides: tuple[int, ...] = ()


def bind_parameters(interpreter: Interpreter, kernel: Closure, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every parameter of the kernel."""
    spec = kernel.node.args
    if spec.vararg or spec.kwarg:
        raise Reject("a kernel with `*` parameters")
    annotations = {argument.arg: argument.annotation for argument in _parameters(spec)}
    bound: dict[str, Any] = {}
    for name in parameter_names(spec):
        annotation = _read(interpreter, kernel.module, annotations[name])
        if name in arguments:
            bound[name] = _bind(name, arguments[name], annotation)
        elif name in kernel.defaults:
            bound[name] = _scalar(name, kernel.defaults[name], annotation)
        else:
            raise Reject(f"no value for parameter `{name}`")
    return bound


def _parameters(spec: ast.arguments) -> Sequence[ast.arg]:
    return (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)


def _read(interpreter: Interpreter, module: Module, node: ast.expr | None) -> Annotation:
    """Fold an annotation. One that cannot be folded says nothing, unless its name says constant."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return Annotation()
    if node is None:
        return Annotation()
    text = ast.unparse(node)
    if isinstance(node, ast.BinOp):  # `A | B`: what either says
        return _merge(_read(interpreter, module, node.left), _read(interpreter, module, node.right))
    try:
        value = interpreter.fold(node, module.frame())
    except Reject:
        return Annotation(constant="Const" in text)
    if not isinstance(value, TypeMark):
        return Annotation(constant="Const" in text and not isinstance(value, DType))
    return _meaning(value)


def _merge(first: Annotation, second: Annotation) -> Annotation:
    return Annotation(
        first.constant or second.constant,
        first.scalar_int64 or second.scalar_int64,
        max(first.index_dtype, second.index_dtype, key=lambda dtype: dtype.bitwidth),
        first.static_shape + second.static_shape,
        first.static_strides + second.static_strides,
    )


def _meaning(mark: TypeMark) -> Annotation:
    options = dict(mark.options)
    own = Annotation(constant=mark.name in ("Constant", "ConstantAnnotation"))
    if mark.name == "IndexedWithInt64":
        own = replace(own, index_dtype=INT64)
    elif mark.name == "ScalarInt64" or (mark.name == "ScalarAnnotation" and options.get("dtype") == INT64):
        own = replace(own, scalar_int64=True)
    elif mark.name == "ArrayAnnotation":
        own = Annotation(
            index_dtype=options.get("index_dtype", INT32),
            static_shape=tuple(options.get("static_shape_dims", ())),
            static_strides=tuple(options.get("static_stride_dims", ())),
        )
    elif mark.name == "ListAnnotation" and isinstance(options.get("element"), TypeMark):
        own = _meaning(options["element"])
    for item in mark.items:
        if isinstance(item, TypeMark):
            own = _merge(own, _meaning(item))
    return own


def _bind(name: str, value: Any, annotation: Annotation) -> Any:
    if isinstance(value, np.ndarray):
        return bind_array(name, None, value, annotation)
    if isinstance(value, list):
        return ArrayList(name, tuple(_member(name, at, item, annotation) for at, item in enumerate(value)))
    if isinstance(value, tuple):
        return tuple(
            bind_array(name, at, item, annotation)
            if isinstance(item, np.ndarray)
            else _scalar(name, item, annotation)
            for at, item in enumerate(value)
        )
    return _scalar(name, value, annotation)


def _member(name: str, at: int, value: Any, annotation: Annotation) -> Array:
    if not isinstance(value, np.ndarray):
        raise Reject(f"list `{name}` of other things than arrays")
    return bind_array(name, at, value, annotation)


def bind_array(name: str, member: int | None, data: np.ndarray[Any, Any], annotation: Annotation) -> Array:
    """An array parameter."""
    rank = data.ndim
    if any(stride % data.itemsize for stride in data.strides if data.size):
        raise Reject(f"strides {data.strides} bytes of `{name}`")
    return Array(
        name,
        member,
        data,
        data,
        dtype_of_numpy(data.dtype),
        (0,) * rank,
        annotation.index_dtype,
        frozenset(axis % rank for axis in annotation.static_shape),
        frozenset(axis % rank for axis in annotation.static_strides),
    )


def _scalar(name: str, value: Any, annotation: Annotation) -> Any:
    """A scalar parameter: a constant stays a Python value, an int becomes int32, a float float32."""
    if isinstance(value, np.generic):
        return Tile(np.asarray(value), dtype_of_numpy(value.dtype))
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype_of_numpy(np.dtype(value))
    if annotation.constant or value is None or isinstance(value, (str, DType)):
        return value
    if isinstance(value, bool):
        return harden(value)
    if isinstance(value, int):
        dtype = INT64 if annotation.scalar_int64 else INT32
        low, high = dtype.bounds
        if not low <= value <= high:
            raise Reject(f"argument `{name}` = {value} does not fit in {dtype}")
        return scalar(value, dtype)
    if isinstance(value, float):
        return scalar(value, FLOAT32)
    return value
