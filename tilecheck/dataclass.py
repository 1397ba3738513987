"""`dataclass` of the standard library, with the methods of a class compiled in one piece.

The standard decorator compiles each of up to six methods by itself, and a short run spends more on that than on
its analysis. Here those that do not depend on the fields are shared, and the others are one text. Instances are
made faster as well: slots are set directly, not by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_HANDLED = frozenset({"eq", "frozen", "repr", "slots"})


def _dataclass(cls: type | None = None, /, **options: Any) -> Any:
    """As `dataclasses.dataclass`. Classes without slots, or with options that are rare here, are left to it."""
    if cls is not None or not options.get("slots") or options.keys() - _HANDLED:
        return dataclasses.dataclass(cls, **options)
    return partial(_made, **options)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _made(cls: type, *, slots: bool, frozen: bool = False, eq: bool = True, repr: bool = True) -> type:  # noqa: A002
    if not cls.__doc__:  # or it would be the signature of an `__init__` that is not there yet
        cls.__doc__ = cls.__name__
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    methods = _compiled(made, frozen=frozen, eq=eq)
    if repr:
        methods["__repr__"] = _shown
    if eq and not frozen:
        methods["__hash__"] = None
    own = cls.__dict__
    for name, method in methods.items():
        # What a class defines itself stays. Beside an `__eq__`, Python defines `__hash__ = None`.
        if name not in own or (name == "__hash__" and own[name] is None and "__eq__" in own):
            setattr(made, name, method)
    return made


def _compiled(made: Any, *, frozen: bool, eq: bool) -> dict[str, Any]:
    """The methods that depend on the fields, and those of frozen classes."""
    every = fields(made)
    scope: dict[str, Any] = {"__name__": made.__module__}
    lines = [*_init(made, every, scope, frozen=frozen)]
    if eq:
        compared = [f.name for f in every if f.compare]
        hashed = [f.name for f in every if (f.compare if f.hash is None else f.hash)]
        lines += [
            "def __eq__(self, other):",
            " if other.__class__ is self.__class__:",
            f"  return {_tuple('self', compared)} == {_tuple('other', compared)}",
            " return NotImplemented",
            "def __hash__(self):",
            f" return hash({_tuple('self', hashed)})",
        ]
    exec("\n".join(lines), scope)  # noqa: S102 - names of fields alone, as the standard library does
    methods = {name: scope[name] for name in ("__init__", "__eq__", "__hash__") if name in scope}
    for name, method in methods.items():
        method.__qualname__ = f"{made.__qualname__}.{name}"
    return methods | (_FROZEN if frozen else {})


def _init(made: Any, every: Sequence[Field[Any]], scope: dict[str, Any], *, frozen: bool) -> Iterator[str]:
    """The lines of `__init__`. What they mention goes into `scope`."""
    parameters, body = ["self"], []
    scope["_MISSING"] = MISSING
    for f in every:
        value = f.name
        if f.default is not MISSING:
            scope[f"_default_{f.name}"] = f.default
            value = f"_default_{f.name}"
        elif f.default_factory is not MISSING:
            scope[f"_default_{f.name}"] = f.default_factory
            value = f"_default_{f.name}()"
        elif not f.init:
            continue  # `__post_init__` sets it
        if f.init and f.default_factory is not MISSING:
            parameters.append(f"{f.name}=_MISSING")
            value = f"{value} if {f.name} is _MISSING else {f.name}"
        elif f.init:
            parameters.append(f.name if value == f.name else f"{f.name}={value}")
            value = f.name
        if frozen:
            scope[f"_set_{f.name}"] = getattr(made, f.name).__set__
            body.append(f" _set_{f.name}(self, {value})")
        else:
            body.append(f" self.{f.name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()")
    yield f"def __init__({', '.join(parameters)}):"
    yield from body or [" pass"]


def _tuple(owner: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{owner}.{name},' for name in names)})"


@recursive_repr()
def _shown(self: Any) -> str:
    said = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({said})"


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: Sequence[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


_FROZEN: dict[str, Callable[..., Any]] = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
