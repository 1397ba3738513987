"""Attributes and items of values: `x.shape[0]`, `tile[:, None]`, `arrays[i]`, `ct.float32`."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.interpret.modules import Module
from tilecheck.reference.interpret.namespaces import constant_function, dtype_attribute, namespace_attribute
from tilecheck.reference.language import ABSENT
from tilecheck.reference.machine import Reject
from tilecheck.reference.values.dtypes import DType
from tilecheck.reference.values.memory import member
from tilecheck.reference.values.values import (
    Array,
    ArrayList,
    EnumMember,
    Method,
    Namespace,
    Opaque,
    Range,
    RawMemory,
    Record,
    Tile,
    TiledView,
    TypeMark,
    UserClass,
    as_int,
    describe,
    scalar,
)

_TEXT_METHODS = frozenset(
    {"join", "format", "startswith", "endswith", "lower", "upper", "split", "strip", "replace"}
)
_SEQUENCE_METHODS = frozenset({"index", "count", "append", "extend", "insert", "pop", "copy"})
_MAPPING_METHODS = frozenset({"get", "items", "keys", "values", "copy"})


def attribute_of(interpreter: Interpreter, owner: Any, name: str) -> Any:
    """`owner.name`."""
    found = interpreter.language.attribute(interpreter, owner, name)
    if found is not ABSENT:
        return found
    if isinstance(owner, Namespace):
        return namespace_attribute(owner, name)
    if isinstance(owner, Opaque):
        return Opaque(f"`{name}` of {owner.what}")
    if isinstance(owner, DType):
        return dtype_attribute(owner, name)
    if isinstance(owner, (UserClass, Record, Module)):
        return _user_attribute(interpreter, owner, name)
    if isinstance(owner, TypeMark):
        return TypeMark(f"{owner.name}.{name}")
    return _value_attribute(owner, name)


def static_attribute(owner: Any, name: str) -> Any:
    """An attribute of a module that is known by name, outside every interpreter."""
    return namespace_attribute(owner, name) if isinstance(owner, Namespace) else Opaque(f"`{name}`")


def _value_attribute(owner: Any, name: str) -> Any:
    if isinstance(owner, Tile) and name in ("dtype", "shape", "ndim"):
        return {"dtype": owner.dtype, "shape": owner.shape, "ndim": len(owner.shape)}[name]
    if isinstance(owner, Array) and name in ("dtype", "shape", "strides", "ndim"):
        return _array_attribute(owner, name)
    if isinstance(owner, TiledView) and name in ("dtype", "tile_shape", "traversal_steps"):
        values = {"dtype": owner.array.dtype, "tile_shape": owner.tile_shape, "traversal_steps": owner.steps}
        return values[name]
    if isinstance(owner, RawMemory) and name == "dtype":
        return owner.array.dtype
    if isinstance(owner, EnumMember) and name in ("name", "value"):
        return getattr(owner, name)
    if isinstance(owner, Range) and name in ("start", "stop", "step"):
        return getattr(owner.values, name)
    for kind, names in ((str, _TEXT_METHODS), ((tuple, list), _SEQUENCE_METHODS), (dict, _MAPPING_METHODS)):
        if isinstance(owner, kind) and name in names:
            return _python_method(owner, name)
    raise Reject(f"attribute `{name}` of {describe(owner)}")


def _python_method(owner: Any, name: str) -> Any:
    bound = getattr(owner, name)
    if name in ("append", "extend", "insert", "get", "copy", "format", "join"):
        return Method(owner, lambda machine, value, *rest: bound(*rest), name)
    if name in ("items", "keys", "values"):
        return Method(owner, lambda machine, value: list(bound()), name)
    return constant_function(name, bound)


def _array_attribute(array: Array, name: str) -> Any:
    if name == "dtype":
        return array.dtype
    if name == "ndim":
        return len(array.shape)
    numbers = array.shape if name == "shape" else array.strides
    static = array.static_shape if name == "shape" else array.static_strides
    _, largest = array.index_dtype.bounds
    if max(numbers, default=0) > largest:
        raise Reject(f"{name} {numbers} of `{array.name}` in {array.index_dtype}")
    return tuple(
        number if axis in static else scalar(number, array.index_dtype) for axis, number in enumerate(numbers)
    )


def _user_attribute(interpreter: Interpreter, owner: UserClass | Record | Module, name: str) -> Any:
    if isinstance(owner, Module):
        return interpreter.modules.member(owner, name)
    if isinstance(owner, Record):
        if name in owner.fields:
            return owner.fields[name]
        return _record_method(interpreter, owner, name)
    return class_constant(interpreter, owner, name)


def class_constant(interpreter: Interpreter, owner: UserClass, name: str) -> Any:
    """A constant of a class body, or a member of an enumeration."""
    for node in owner.node.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == name and isinstance(value, ast.expr):
            found = interpreter.fold(value, owner.module.frame())
            bases = {ast.unparse(base).rpartition(".")[2] for base in owner.node.bases}
            return EnumMember(owner.node.name, name, found) if "Enum" in bases else found
        if isinstance(node, ast.FunctionDef) and node.name == name and _is_static(node):
            return interpreter.modules.closure(owner.module, node, None)
    raise Reject(f"attribute `{name}` of class `{owner.node.name}`")


def _is_static(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)


def _record_method(interpreter: Interpreter, record: Record, name: str) -> Any:
    for node in record.cls.node.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            closure = interpreter.modules.closure(record.cls.module, node, None)
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if decorators == ["property"]:
                return interpreter.invoke(closure, (record,), {})
            if decorators == ["staticmethod"]:
                return closure
            if not decorators:
                return Method(record, closure, name)
    return class_constant(interpreter, record.cls, name)


def item_of(interpreter: Interpreter, owner: Any, index: Any, name: str) -> Any:
    """`owner[index]`."""
    found = interpreter.language.item(interpreter, owner, index)
    if found is not ABSENT:
        return found
    if isinstance(owner, Tile):
        return _tile_item(owner, index)
    if isinstance(owner, ArrayList):
        return member(interpreter.machine, owner, as_int(index))
    if isinstance(owner, TypeMark):
        items = index if isinstance(index, tuple) else (index,)
        return TypeMark(owner.name, items)
    if isinstance(owner, dict):
        key = int(index.data) if isinstance(index, Tile) else index
        return owner[key]
    if isinstance(owner, (tuple, list, str)):
        return _sequence_item(interpreter, owner, index, name)
    if isinstance(owner, Record):
        return interpreter.invoke(_record_method(interpreter, owner, "__getitem__"), (index,), {})
    raise Reject(f"an item of {describe(owner)}")


def _sequence_item(interpreter: Interpreter, owner: Any, index: Any, name: str) -> Any:
    if isinstance(index, slice):
        return owner[index]
    at = as_int(index)
    if any(isinstance(value, Array) for value in owner):
        return member(interpreter.machine, tuple(owner), at + len(owner) if -len(owner) <= at < 0 else at, name)
    if not -len(owner) <= at < len(owner):
        raise Reject(f"item {at} of a sequence of length {len(owner)}")
    return owner[at]


def _tile_item(tile: Tile, index: Any) -> Tile:
    """Only new axes, full slices and an ellipsis are allowed on a tile."""
    items = index if isinstance(index, tuple) else (index,)
    for part in items:
        if not (part is None or part is Ellipsis or part == slice(None)):
            raise Reject("indexing into a tile")
    return Tile(np.asarray(tile.data[items]), tile.dtype)
