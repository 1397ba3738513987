"""The functions of Python itself that kernels call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from tilecheck.reference.interpret.namespaces import constant_function
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.arithmetic import binary, unary
from tilecheck.reference.values.dtypes import BOOL, FLOAT32, INT32, dtype_of_constant, promote
from tilecheck.reference.values.values import (
    ArrayList,
    Operation,
    Range,
    Tile,
    TypeMark,
    as_int,
    cast,
    describe,
    is_constant,
    scalar,
    static_items,
    truth,
)


def make_range(machine: Machine, *bounds: Any) -> Range:
    """`range`: bounds and induction variable share a type, at least int32. A step of 0 is undefined."""
    if not 1 <= len(bounds) <= 3:
        raise Reject("range with no or too many bounds")
    numbers = [as_int(bound) for bound in bounds]
    if len(numbers) == 3 and numbers[2] == 0:
        machine.undefined("divisor", detail="the step of a range is 0")
        numbers = [0, 0, 1]
    if len(numbers) == 3 and numbers[2] < 0 and isinstance(bounds[2], Tile):
        raise Reject("a runtime step that is negative")  # the device counts up whatever the step is
    dtype = INT32
    for bound in bounds:
        dtype = promote(dtype, bound.dtype if isinstance(bound, Tile) else dtype_of_constant(as_int(bound)))
    return Range(range(*numbers), dtype, all(isinstance(bound, int) for bound in bounds))


def _length(machine: Machine, value: Any, /) -> Any:
    if isinstance(value, ArrayList):
        return scalar(len(value.members), INT32)
    if isinstance(value, Range):
        return len(value.values)
    if isinstance(value, (tuple, list, str, dict)):
        return len(value)
    raise Reject(f"`len` of {describe(value)}")


def _extreme(name: str) -> Callable[..., Any]:
    def run(machine: Machine, *values: Any) -> Any:
        items = static_items(values[0]) if len(values) == 1 else list(values)
        return functools.reduce(lambda x, y: binary(machine, name, x, y), items)

    return run


def _total(machine: Machine, values: Any, start: Any = 0, /) -> Any:
    return functools.reduce(lambda x, y: binary(machine, "add", x, y), static_items(values), start)


def _integer(machine: Machine, value: Any = 0, /) -> Any:
    return cast(value, INT32) if isinstance(value, Tile) else int(value)


def _floating(machine: Machine, value: Any = 0.0, /) -> Any:
    return cast(value, FLOAT32) if isinstance(value, Tile) else float(value)


def _boolean(machine: Machine, value: Any = False, /) -> Any:
    return cast(value, BOOL) if isinstance(value, Tile) else truth(value)[0]


def _collect(kind: Callable[[Iterable[Any]], Any]) -> Callable[..., Any]:
    return lambda machine, value=(), /: kind(static_items(value))


def _zipped(machine: Machine, *values: Any, strict: bool = False) -> list[Any]:
    return list(zip(*(static_items(value) for value in values), strict=strict))


def _enumerated(machine: Machine, value: Any, start: int = 0) -> list[Any]:
    return list(enumerate(static_items(value), start))


def _every(kind: Callable[[Iterable[bool]], bool]) -> Callable[..., Any]:
    return lambda machine, value, /: kind(truth(item)[0] for item in static_items(value))


def _power(machine: Machine, x: Any, y: Any, /) -> Any:
    return binary(machine, "pow", x, y)


def _divmod(machine: Machine, x: Any, y: Any, /) -> Any:
    return binary(machine, "floordiv", x, y), binary(machine, "mod", x, y)


def _text(machine: Machine, value: Any = "", /) -> str:
    return str(value) if is_constant(value) or isinstance(value, str) else describe(value)


def _slice(machine: Machine, *bounds: Any) -> slice:
    return slice(*bounds)


def _print(machine: Machine, *values: Any, **options: Any) -> None:
    """Its arguments have been evaluated; nothing else happens."""


BUILTINS: dict[str, Any] = {
    **{
        name: Operation(name, function)
        for name, function in (
            ("range", make_range),
            ("len", _length),
            ("min", _extreme("min")),
            ("max", _extreme("max")),
            ("abs", lambda machine, x: unary(machine, "abs", x)),
            ("sum", _total),
            ("int", _integer),
            ("float", _floating),
            ("bool", _boolean),
            ("tuple", _collect(tuple)),
            ("list", _collect(list)),
            ("sorted", _collect(sorted)),
            ("reversed", _collect(lambda items: list(items)[::-1])),
            ("zip", _zipped),
            ("enumerate", _enumerated),
            ("all", _every(all)),
            ("any", _every(any)),
            ("pow", _power),
            ("divmod", _divmod),
            ("str", _text),
            ("repr", _text),
            ("slice", _slice),
            ("print", _print),
        )
    },
    "round": constant_function("round", round),
    "object": TypeMark("object"),
    "dict": TypeMark("dict"),
    "NotImplemented": NotImplemented,
    "Ellipsis": Ellipsis,
}
