"""The table of Triton's functions. Each family of operations adds its own; a name stands once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilecheck.reference.values.values import Operation

_F = TypeVar("_F", bound=Callable[..., Any])

OPERATIONS: dict[str, Operation] = {}  # functions of `triton.language`: called with the machine first
MEMBERS: dict[str, Operation] = {}  # those that are methods of tensors and of pointers as well
METHODS: dict[tuple[str, str], Operation] = {}  # (class of the value, name), for the other values


def operation(*names: str, member: bool = False) -> Callable[[_F], _F]:
    """Register a function of `triton.language` under each of `names`."""

    def register(function: _F) -> _F:
        for name in names:
            OPERATIONS[name] = Operation(name, function)
            if member:
                MEMBERS[name] = OPERATIONS[name]
        return function

    return register


def method(owner: str, *names: str) -> Callable[[_F], _F]:
    """Register a method of the values of class `owner`."""

    def register(function: _F) -> _F:
        for name in names:
            METHODS[owner, name] = Operation(name, function)
        return function

    return register
