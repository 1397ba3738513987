"""What the names of `triton` and its submodules stand for."""

from __future__ import annotations

from typing import Any

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton import ops_block, ops_math, ops_memory, ops_random, ops_reduce, ops_shape
from tilecheck.reference.triton.arithmetic import ceiling_division
from tilecheck.reference.triton.dtypes import (
    TRITON_DTYPES,
    BlockType,
    PointerType,
    promote_integers,
    type_of_constant,
)
from tilecheck.reference.triton.operations import OPERATIONS
from tilecheck.reference.triton.values import MAX_ELEMENTS, flatten_shape, runtime_int, static_int
from tilecheck.reference.values.dtypes import INT32, DType
from tilecheck.reference.values.values import (
    Namespace,
    Opaque,
    Operation,
    Range,
    Tile,
    TypeMark,
    describe,
    is_constant,
)

FAMILIES = (
    ops_block,
    ops_math,
    ops_memory,
    ops_random,
    ops_reduce,
    ops_shape,
)  # importing them fills the table
_MAX_UNROLLED = 4096
_SUBMODULES = frozenset({"math", "extra", "core", "standard", "random", "libdevice", "cuda", "hip"})
_TYPE_MARKS = frozenset({"tensor", "dtype", "const", "constexpr_type", "block_ptr", "tensor_descriptor"})
_NO_EFFECT = frozenset({"gdc_wait", "gdc_launch_dependents"})


def make_range(machine: Machine, *bounds: Any, **options: Any) -> Range:
    """`range` and `tl.range`: the variable has the promoted type of the bounds. A step of 0 is undefined."""
    named = [options.pop(name) for name in ("arg1", "arg2", "step") if options.get(name) is not None]
    bounds = (*bounds, *named)
    if not 1 <= len(bounds) <= 3:
        raise Reject("range with no or too many bounds")
    numbers = [runtime_int(bound) for bound in bounds]
    if len(numbers) == 3 and numbers[2] == 0:
        machine.undefined("divisor", detail="the step of a range is 0")
        numbers = [0, 0, 1]
    if len(numbers) == 3 and numbers[2] < 0 and isinstance(bounds[2], Tile):
        raise Reject("a runtime step that is negative")
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
    types = [
        bound.dtype if isinstance(bound, Tile) else type_of_constant(bound) for bound in (start, stop, step)
    ]
    dtype = promote_integers(promote_integers(types[0], types[1]), types[2])
    return Range(range(*numbers), dtype, all(is_constant(bound) for bound in bounds))


def static_range(machine: Machine, *bounds: Any, **options: Any) -> list[int]:
    """`tl.static_range`: unrolled at compile time."""
    named = [options.pop(name) for name in ("arg1", "arg2", "step") if options.get(name) is not None]
    values = range(*(static_int(bound) for bound in (*bounds, *named)))
    if len(values) > _MAX_UNROLLED:
        raise Reject(f"static_range over {len(values)} values")
    return list(values)


def _pointer_type(machine: Machine, element_ty: Any, address_space: Any = 1, const: Any = False) -> PointerType:
    if not isinstance(element_ty, DType):
        raise Reject(f"a pointer to {describe(element_ty)}")
    return PointerType(element_ty)


def _block_type(machine: Machine, element_ty: Any, shape: Any) -> BlockType:
    return BlockType(element_ty, flatten_shape((shape,)))


def _jit(machine: Machine, function: Any = None, /, **options: Any) -> Any:
    """`triton.jit(f)` and `triton.jit(...)(f)`: the function itself."""
    return function if function is not None else JIT


def _decorator(machine: Machine, *values: Any, **options: Any) -> Operation:
    """`triton.autotune(...)`, `triton.heuristics(...)`: what they return changes nothing."""
    return JIT


def _next_power_of_2(machine: Machine, n: Any) -> int:
    value = static_int(n)
    return 1 << (value - 1).bit_length() if value > 0 else 0


def _integer_type(machine: Machine, bitwidth: Any, signed: Any) -> DType:
    name = f"{'' if signed else 'u'}int{static_int(bitwidth)}"
    if name not in TRITON_DTYPES:
        raise Reject(f"an integer type of {bitwidth} bits")
    return TRITON_DTYPES[name]


def _constant(machine: Machine, value: Any) -> Any:
    return value


def _condition(machine: Machine, value: Any, disable_licm: Any = False) -> Any:
    return value


JIT = Operation("triton.jit", _jit)
DECORATORS = (JIT, Operation("triton.autotune", _decorator), Operation("triton.heuristics", _decorator))
_TRITON: dict[str, Any] = {
    "jit": JIT,
    "autotune": DECORATORS[1],
    "heuristics": DECORATORS[2],
    "constexpr_function": Operation("triton.constexpr_function", _constant),
    "Config": Operation("triton.Config", lambda machine, *values, **options: Opaque("a configuration")),
    "cdiv": Operation("cdiv", ceiling_division),
    "next_power_of_2": Operation("next_power_of_2", _next_power_of_2),
}
_LANGUAGE: dict[str, Any] = {
    **TRITON_DTYPES,
    "range": Operation("range", make_range),
    "static_range": Operation("static_range", static_range),
    "pointer_type": Operation("pointer_type", _pointer_type),
    "block_type": Operation("block_type", _block_type),
    "condition": Operation("condition", _condition),
    "_log2": Operation("_log2", lambda machine, i: static_int(i).bit_length() - 1),
    "get_int_dtype": Operation("get_int_dtype", _integer_type),
    "pi32_t": PointerType(INT32),
    "TRITON_MAX_TENSOR_NUMEL": MAX_ELEMENTS,
    "void": TypeMark("void"),
}


def triton_attribute(namespace: str, name: str) -> Any:
    """`namespace.name`, for `triton` and what is below it."""
    if namespace == "triton":
        if name in _TRITON:
            return _TRITON[name]
        return (
            Namespace(f"triton.{name}")
            if name in ("language", "experimental", "runtime")
            else _unknown("triton", name)
        )
    if not namespace.startswith("triton.language"):
        if namespace.startswith("triton.runtime") and name in _TRITON:
            return _TRITON[name]
        return Namespace(f"{namespace}.{name}") if namespace == "triton.runtime" else _unknown(namespace, name)
    if namespace.endswith(".PropagateNan"):
        return name
    if name in OPERATIONS:
        return OPERATIONS[name]
    if name in _LANGUAGE:
        return _LANGUAGE[name]
    if name in _TYPE_MARKS:
        return TypeMark(name)
    if name in _NO_EFFECT:
        return OPERATIONS["debug_barrier"]
    if name in _SUBMODULES or name == "PropagateNan":
        return Namespace(f"{namespace}.{name}")
    return _unknown(namespace, name)


def _unknown(namespace: str, name: str) -> Opaque:
    return Opaque(f"`{namespace}.{name}`")


def has_attribute(machine: Machine, owner: Any, name: Any) -> bool:
    """`hasattr(tl, "name")`: whether this interpreter knows the name."""
    if isinstance(owner, Namespace) and owner.name.partition(".")[0] == "triton":
        return not isinstance(triton_attribute(owner.name, str(name)), Opaque)
    raise Reject(f"`hasattr` of {describe(owner)}")
