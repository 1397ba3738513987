"""Triton: the meaning that it gives to what the languages share."""

from __future__ import annotations

from typing import Any

from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.interpret.python_functions import BUILTINS
from tilecheck.reference.language import ABSENT, Language
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton import arithmetic
from tilecheck.reference.triton.dtypes import BlockType, PointerType, type_attribute
from tilecheck.reference.triton.namespaces import has_attribute, make_range
from tilecheck.reference.triton.operations import MEMBERS, METHODS
from tilecheck.reference.triton.ops_math import larger_constant, smaller_constant
from tilecheck.reference.triton.ops_shape import trans
from tilecheck.reference.triton.parameters import bind_parameters
from tilecheck.reference.triton.values import (
    BlockPointer,
    Descriptor,
    HostDescriptor,
    Pointer,
    to_tensor,
    truth,
)
from tilecheck.reference.values.dtypes import DType
from tilecheck.reference.values.values import Method, Operation, Tile, describe


def _attribute(interpreter: Interpreter, owner: Any, name: str) -> Any:
    if isinstance(owner, (Tile, Pointer)):
        return _tensor_attribute(interpreter, owner, name)
    if isinstance(owner, (DType, PointerType, BlockType)):
        return type_attribute(owner, name)
    if isinstance(owner, (BlockPointer, Descriptor, HostDescriptor)):
        return _block_attribute(owner, name)
    if name == "value" and (owner is None or isinstance(owner, (bool, int, float, str, tuple))):
        return owner  # `constexpr.value`
    if name in ("to", "cast") and isinstance(owner, (bool, int, float)) and not interpreter.machine.host:
        return Method(owner, MEMBERS[name], name)
    return ABSENT


def _tensor_attribute(interpreter: Interpreter, owner: Tile | Pointer, name: str) -> Any:
    kind = PointerType(owner.element) if isinstance(owner, Pointer) else owner.dtype
    if name == "dtype":
        return kind
    if name == "type":
        return BlockType(kind, owner.shape) if owner.shape else kind
    if name == "shape":
        return owner.shape
    if name == "numel":
        data = owner.offsets if isinstance(owner, Pointer) else owner.data
        return int(data.size)
    if name == "T":
        return trans(interpreter.machine, owner)
    if name in MEMBERS:
        return Method(owner, MEMBERS[name], name)
    raise Reject(f"attribute `{name}` of {describe(owner)}")


def _block_attribute(owner: BlockPointer | Descriptor | HostDescriptor, name: str) -> Any:
    found = METHODS.get(("BlockPointer" if isinstance(owner, BlockPointer) else "Descriptor", name))
    if found is not None:
        return Method(owner, found, name)
    if name == "block_shape" and owner.block_shape:
        return owner.block_shape
    if isinstance(owner, HostDescriptor):
        if name == "dtype":
            return owner.array.dtype
        raise Reject(f"attribute `{name}` of {describe(owner)}")
    if name in ("shape", "strides"):
        return getattr(owner, name)
    if name in ("dtype", "type") and isinstance(owner, BlockPointer):
        return PointerType(owner.base.element)
    if name == "dtype":
        return owner.base.element
    raise Reject(f"attribute `{name}` of {describe(owner)}")


def _item(interpreter: Interpreter, owner: Any, index: Any) -> Any:
    if isinstance(owner, (Tile, Pointer)):
        axes = index if isinstance(index, tuple) else (index,)
        return arithmetic.expand(interpreter.machine, owner, axes)
    return ABSENT


def _product(machine: Machine, x: Any, y: Any) -> Any:
    raise Reject("`@` between tensors")


TRITON = Language(
    name="Triton",
    asserts=True,
    builtins={
        **BUILTINS,
        "range": Operation("range", make_range),
        "min": Operation("min", smaller_constant),
        "max": Operation("max", larger_constant),
        "hasattr": Operation("hasattr", has_attribute),
    },
    transparent=frozenset({"jit", "constexpr_function", "constexpr"}),
    compile_time=frozenset({"constexpr_function", "constexpr"}),
    static_names=frozenset({"static_assert"}),
    binary=arithmetic.binary,
    unary=arithmetic.unary,
    product=_product,
    compare=arithmetic.compare,
    negated=arithmetic.negated,
    boolean=arithmetic.boolean,
    chain=arithmetic.chain,
    truth=truth,
    assigned=to_tensor,
    merged=lambda value: value,
    chosen=to_tensor,
    convert=arithmetic.convert,
    attribute=_attribute,
    item=_item,
    parameters=bind_parameters,
)
