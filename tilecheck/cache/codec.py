"""Frozen dataclasses as JSON and back, by their annotations, without a word about the classes themselves.

What is read may come from anywhere: nothing of it is run or guessed. A value that is not exactly what the
annotation says, a field too many or too few, is an error.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

_T = TypeVar("_T")
_PLAIN = (bool, int, float, str)
_ALSO: dict[type, tuple[type, ...]] = {float: (int,), int: (bool,)}


class Misfit(ValueError):
    """A value does not have the form that its type asks for."""


def to_json(value: Any) -> Any:
    """A value of dataclasses, enums, tuples, dictionaries and plain values as what `json` writes.

    Raises:
        Misfit: there is something else in it.
    """
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, str):  # of a class of its own, such as `model.Literal`: the text is what counts
        return str(value)
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {str(key): to_json(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    raise Misfit(f"a {type(value).__name__}")


def from_json(kind: type[_T], data: Any) -> _T:
    """The value of type `kind` that `to_json` wrote.

    Raises:
        Misfit: it did not write this.
    """
    found: _T = _reader(cast("Any", kind))(data)
    return found


@functools.lru_cache(maxsize=256)
def _reader(kind: Any) -> Callable[[Any], Any]:
    if kind is None or kind is type(None):
        return _none
    if kind is object:
        return _anything_plain
    if kind in _PLAIN:
        return functools.partial(_exact, kind)
    if is_dataclass(kind):
        return _dataclass(cast("type", kind))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return functools.partial(_member, kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return functools.partial(_first_fit, [_reader(option) for option in arguments])
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return functools.partial(_sequence, tuple, _reader(arguments[0]))
    if origin is list:
        return functools.partial(_sequence, list, _reader(arguments[0]))
    if origin is tuple:
        return functools.partial(_record, [_reader(argument) for argument in arguments])
    if origin is dict and arguments[0] is str:
        return functools.partial(_mapping, _reader(arguments[1]))
    raise TypeError(f"no form for {kind}")


def _none(data: Any) -> None:
    if data is not None:
        raise Misfit("not nothing")


def _exact(kind: type, data: Any) -> Any:
    if type(data) is not kind and type(data) not in _ALSO.get(kind, ()):
        raise Misfit(f"no {kind.__name__}")
    return data


def _anything_plain(data: Any) -> Any:
    """A plain value, or a tuple of them, as names of modules may hold."""
    if isinstance(data, list):
        return tuple(map(_anything_plain, data))
    if data is not None and type(data) not in _PLAIN:
        raise Misfit("no plain value")
    return data


def _member(kind: type[enum.Enum], data: Any) -> Any:
    if not isinstance(data, str) or data not in kind.__members__:
        raise Misfit(f"no {kind.__name__}")
    return kind[data]


def _first_fit(readers: list[Callable[[Any], Any]], data: Any) -> Any:
    for reader in readers:
        with contextlib.suppress(Misfit):
            return reader(data)
    raise Misfit("none of what it may be")


def _sequence(kind: type, reader: Callable[[Any], Any], data: Any) -> Any:
    if type(data) is not list:
        raise Misfit("no list")
    return kind(map(reader, data))


def _record(readers: list[Callable[[Any], Any]], data: Any) -> Any:
    if type(data) is not list or len(data) != len(readers):
        raise Misfit("no list of this length")
    return tuple(reader(item) for reader, item in zip(readers, data, strict=True))


def _mapping(reader: Callable[[Any], Any], data: Any) -> Any:
    if type(data) is not dict:
        raise Misfit("no object")
    return {key: reader(item) for key, item in data.items()}


def _dataclass(kind: type) -> Callable[[Any], Any]:
    readers: dict[str, Callable[[Any], Any]] = {}

    def read(data: Any) -> Any:
        if not readers:  # not before: a class may hold values of its own kind, and many that are not there
            hints = typing.get_type_hints(kind)
            readers.update({f.name: _reader(hints[f.name]) for f in fields(kind)})
        if type(data) is not dict or data.keys() != readers.keys():
            raise Misfit(f"no {kind.__name__}")
        return kind(**{name: readers[name](item) for name, item in data.items()})

    return read
