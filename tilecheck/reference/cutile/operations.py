"""The table of the DSL's functions. Each family of operations adds its own; a name stands once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilecheck.reference.values.values import Operation

_F = TypeVar("_F", bound=Callable[..., Any])

OPERATIONS: dict[str, Operation] = {}  # functions of `cuda.tile`: called with the machine first
METHODS: dict[tuple[str, str], Operation] = {}  # (class of the value, name): machine, then the value


def operation(*names: str) -> Callable[[_F], _F]:
    """Register a function of the DSL under each of `names`."""

    def register(function: _F) -> _F:
        for name in names:
            OPERATIONS[name] = Operation(name, function)
        return function

    return register


def method(owner: str, *names: str) -> Callable[[_F], _F]:
    """Register a method of the values of class `owner`."""

    def register(function: _F) -> _F:
        for name in names:
            METHODS[owner, name] = Operation(name, function)
        return function

    return register
