"""The modules that are known by name: what `ct.load`, `math.pi` or `np.float32` stand for."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tilecheck.reference.cutile import ops_atomic, ops_math, ops_memory, ops_shape
from tilecheck.reference.cutile.operations import OPERATIONS, operation
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton.namespaces import triton_attribute
from tilecheck.reference.values.arithmetic import binary, logical_not, unary
from tilecheck.reference.values.dtypes import DTYPES, FOREIGN_DTYPES, DType
from tilecheck.reference.values.values import (
    EnumMember,
    Namespace,
    Opaque,
    Operation,
    TypeMark,
    describe,
    is_constant,
    static_items,
    truth,
)

_MAX_STATIC_ITEMS = 1000
FAMILIES = (ops_atomic, ops_math, ops_memory, ops_shape)  # importing them fills the table

_ENUMS = {
    "MemoryOrder": ("WEAK", "RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL"),
    "MemoryScope": ("NONE", "BLOCK", "CLUSTER", "DEVICE", "SYS"),
    "PaddingMode": ("UNDETERMINED", "ZERO", "NEG_ZERO", "NAN", "POS_INF", "NEG_INF"),
    "RoundingMode": ("RN", "RZ", "RM", "RP", "RA", "FULL", "APPROX", "RZI"),
}
_TYPE_MARKS = frozenset(
    {
        "Array", "ArrayAnnotation", "Constant", "ConstantAnnotation", "DType", "IndexedWithInt64",
        "ListAnnotation",
        "Scalar", "ScalarAnnotation", "ScalarInt64", "Tile", "TiledView", "RawArrayMemory",
    }
)  # fmt: skip

_MATH_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "tau": math.tau}
_MATH_FUNCTIONS = (
    "acos", "asin", "atan", "atan2", "ceil", "comb", "copysign", "cos", "cosh", "degrees", "erf", "exp", "fabs",
    "floor", "fmod", "gcd", "hypot", "isclose", "isfinite", "isinf", "isnan", "isqrt", "lcm", "ldexp", "log",
    "log10", "log1p", "log2", "pow", "prod", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_OPERATOR_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "floordiv": "floordiv", "truediv": "truediv", "mod": "mod",
    "pow": "pow",
    "and_": "and", "or_": "or", "xor": "xor", "lshift": "lshift", "rshift": "rshift", "eq": "eq", "ne": "ne",
    "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
}  # fmt: skip


@operation("static_eval", "ensure_constant")
def same_value(machine: Machine, value: Any, /) -> Any:
    """Compile-time evaluation: values are already what they are."""
    return value


@operation("static_iter")
def static_iter(machine: Machine, iterable: Any, /) -> list[Any]:
    """The items of a loop that is unrolled at compile time."""
    items = static_items(iterable)
    if len(items) > _MAX_STATIC_ITEMS:
        raise Reject(f"static_iter over {len(items)} items")
    return items


@operation("static_assert")
def static_assert(machine: Machine, condition: Any, message: Any = None, /) -> None:
    """A kernel whose static assertion fails does not compile."""
    if not truth(condition)[0]:
        raise Reject("a static assertion that fails")


@operation("static_exception")
def static_exception(machine: Machine, error: Any = None, /) -> Any:
    """A kernel that raises at compile time does not compile."""
    raise Reject("a compile-time exception")


@operation(
    "print", "printf", "assert_", "grid_dependency_control_wait", "grid_dependency_control_launch_dependents"
)
def nothing(machine: Machine, *values: Any, **options: Any) -> None:
    """Operations without an effect on memory; their arguments have been evaluated."""


@operation("assume_divisible_by")
def assume_divisible_by(machine: Machine, x: Any, divisor: Any) -> Any:
    """A promise to the compiler; the value is unchanged."""
    return x


@operation("function")
def decorated_function(machine: Machine, function: Any = None, /, **options: Any) -> Any:
    """`ct.function(f)`."""
    return function


@operation("kernel")
def decorated_kernel(machine: Machine, function: Any = None, /, **options: Any) -> Any:
    """`ct.kernel(f)` and `ct.kernel(num_ctas=2)(f)`: the function itself."""
    return function if function is not None else Operation("kernel", decorated_kernel)


@operation("ByTarget")
def by_target(machine: Machine, *, default: Any = None, **targets: Any) -> Any:
    """A value that depends on the GPU: no GPU is at hand, so the default, else the first target's."""
    return default if default is not None or not targets else next(iter(targets.values()))


def constant_function(name: str, function: Callable[..., Any]) -> Operation:
    """A Python function on compile-time constants."""

    def run(machine: Machine, *values: Any, **options: Any) -> Any:
        for value in values:
            if not is_constant(value) and not isinstance(value, (tuple, list, str)):
                raise Reject(f"`{name}` of {describe(value)}")
        return function(*values, **options)

    return Operation(name, run)


def _operator_function(name: str) -> Operation:
    spelled = _OPERATOR_BINARY[name]
    return Operation(name, lambda machine, x, y: binary(machine, spelled, x, y))


_MATH: dict[str, Any] = {
    **_MATH_CONSTANTS,
    **{name: constant_function(f"math.{name}", getattr(math, name)) for name in _MATH_FUNCTIONS},
}
_OPERATOR: dict[str, Any] = {
    **{name: _operator_function(name) for name in _OPERATOR_BINARY},
    "neg": Operation("neg", lambda machine, x: unary(machine, "neg", x)),
    "invert": Operation("invert", lambda machine, x: unary(machine, "invert", x)),
    "not_": Operation("not_", lambda machine, x: logical_not(x)),
    "index": constant_function("operator.index", operator.index),
}
_NUMPY: dict[str, Any] = {**FOREIGN_DTYPES, **_MATH_CONSTANTS, "newaxis": None}


def cutile_attribute(name: str) -> Any:
    """A name of `cuda.tile`."""
    if name in OPERATIONS:
        return OPERATIONS[name]
    if name in DTYPES:
        return DTYPES[name]
    if name in _ENUMS:
        return Namespace(f"cuda.tile.{name}")
    if name in _TYPE_MARKS:
        return TypeMark(name)
    return Opaque(f"`cuda.tile.{name}`")


def namespace_attribute(namespace: Namespace, name: str) -> Any:
    """A name of a known module."""
    if namespace.name == "cuda":
        return Namespace("cuda.tile") if name == "tile" else Opaque(f"`cuda.{name}`")
    if namespace.name == "cuda.tile":
        return cutile_attribute(name)
    if namespace.name.partition(".")[0] == "triton":
        return triton_attribute(namespace.name, name)
    owner = namespace.name.rpartition(".")[2]
    if owner in _ENUMS:
        if name in _ENUMS[owner]:
            return EnumMember(owner, name, name.lower())
        raise Reject(f"`{owner}.{name}`")
    tables: dict[str, dict[str, Any]] = {
        "math": _MATH, "operator": _OPERATOR, "numpy": _NUMPY, "torch": FOREIGN_DTYPES | _MATH_CONSTANTS
    }  # fmt: skip
    found = tables.get(namespace.name, {}).get(name)
    if found is not None or (namespace.name, name) == ("numpy", "newaxis"):
        return found
    return _other_attribute(namespace.name, name)


@operation("os.getenv")
def unset_variable(machine: Machine, name: Any, default: Any = None) -> Any:
    """`os.getenv`, `os.environ.get`: a run has no environment, so that it depends on none."""
    return default


def _other_attribute(module: str, name: str) -> Any:
    if (module, name) in (("os", "getenv"), ("os.environ", "get")):
        return OPERATIONS["os.getenv"]
    if (module, name) == ("os", "environ"):
        return Namespace("os.environ")
    if module in ("typing", "typing_extensions", "collections"):
        return False if name == "TYPE_CHECKING" else TypeMark(name)
    if module == "tilecheck" and name in ("Mut", "Shared"):
        return TypeMark(name)
    return Opaque(f"`{module}.{name}`")


def dtype_attribute(dtype: DType, name: str) -> Any:
    """An attribute of a data type."""
    if name in ("name", "bitwidth"):
        return getattr(dtype, name)
    if name == "itemsize":
        return dtype.bitwidth // 8
    raise Reject(f"attribute `{name}` of a data type")
