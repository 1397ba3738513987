"""What a parameter's annotation says: constant, array, scalar, width, declared ownership."""

from __future__ import annotations

import re

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.source import parse_expression
from tilecheck.ir.kernel import Ownership

_CONSTANTS = (
    "cuda.tile.Constant",
    "cuda.tile.ConstantAnnotation",
    "triton.language.constexpr",
    "triton.language.core.constexpr",
)
_UNMODELLED = re.compile(  # Triton also takes the names alone, also those that C has, and types of NumPy
    r"(?:(?:triton\.language\.(?:core\.)?|cuda\.tile\.|numpy\.)?"
    r"(?:uint\d+|int1|int8|int16|float16|float64|half|double)|u\d+|i1|i8|i16|fp16|f16|fp64|f64)(?:_t)?"
)
_ARRAYS = ("cuda.tile.Array", "cuda.tile.IndexedWithInt64", "cuda.tile.ArrayAnnotation", "torch.Tensor")


@dataclass(frozen=True, slots=True)
class Annotation:
    """The facts that an annotation gives; `scalar` is int, bool, float, str or empty.

    `value` is what a config file says that a compile-time parameter is. `unmodelled` says that it is a number
    of a type that is not modelled: an unsigned one, or one of fewer than 32 bits, or a double.
    """

    constant: bool = False
    array: bool = False
    array_list: bool = False
    scalar: str = ""
    wide: bool = False
    declared: Ownership | None = None
    value: int | bool | None = None
    unmodelled: bool = False


def read_annotation(table: ModuleTable, node: cst.BaseExpression | None) -> Annotation:
    """Flatten an annotation, aliases and strings included, to the markers that it mentions."""
    marks = _marks(table, node, 0)
    scalar = next((s for s in ("bool", "int", "float", "str") if s in marks), "")
    declared = None
    for mark in marks:
        if mark in ("tilecheck.Mut", "tilecheck.Shared"):
            declared = Ownership.MUT if mark.endswith("Mut") else Ownership.SHARED
    listed = any(m in marks for m in ("list", "tuple", "typing.List", "cuda.tile.ListAnnotation"))
    return Annotation(
        constant=any(m in marks for m in _CONSTANTS),
        array=declared is not None or any(m in marks for m in _ARRAYS),
        array_list=listed and "cuda.tile.Constant" not in marks,
        scalar=scalar or ("int" if "cuda.tile.ScalarInt64" in marks else ""),
        wide="cuda.tile.IndexedWithInt64" in marks
        or "cuda.tile.ScalarInt64" in marks
        or "cuda.tile.int64" in marks,
        declared=declared,
        unmodelled=any(map(_UNMODELLED.fullmatch, marks)),
    )


def _marks(table: ModuleTable, node: cst.CSTNode | None, depth: int) -> set[str]:
    if node is None or depth > 12:
        return set()
    match node:
        case cst.Name() | cst.Attribute():
            return _resolve(table, dotted(node), depth)
        case cst.SimpleString():
            return _text(table, node, depth)
        case cst.Subscript():
            found = _marks(table, node.value, depth + 1)
            for element in node.slice:
                if isinstance(element.slice, cst.Index):
                    found |= _marks(table, element.slice.value, depth + 1)
            return found
        case cst.Call():
            found = _marks(table, node.func, depth + 1)
            for arg in node.args:
                found |= _marks(table, arg.value, depth + 1)
            return found
        case cst.Tuple() | cst.List():
            return set().union(*(_marks(table, e.value, depth + 1) for e in node.elements))
        case cst.BinaryOperation():
            return _marks(table, node.left, depth + 1) | _marks(table, node.right, depth + 1)
        case _:
            return set()


def _text(table: ModuleTable, node: cst.SimpleString, depth: int) -> set[str]:
    value = node.evaluated_value
    if not isinstance(value, str):
        return set()
    try:
        return _marks(table, parse_expression(value.strip()), depth + 1)
    except SourceError:
        return set()


def _resolve(table: ModuleTable, name: str, depth: int) -> set[str]:
    head, _, rest = name.partition(".")
    binding = table.bindings.get(head)
    if binding is None:
        return {name}
    if isinstance(binding, Import):
        found = table.project.find(Import(binding.module, None, binding.level), table.file)
        if binding.member is not None and found is not None and binding.member in found.bindings:
            return _resolve(found, binding.member + (f".{rest}" if rest else ""), depth + 1)
        return {f"{binding.name}.{rest}" if rest else binding.name}
    if isinstance(binding, cst.BaseExpression) and not rest and head not in table.ambiguous:
        return _marks(table, binding, depth + 1)
    return {name}
