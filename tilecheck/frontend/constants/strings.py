"""Texts that module code makes of constants: `str.format`, formatted strings and the other methods of texts.

What a text may grow to is known before it is made.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst

LONGEST = 1 << 16  # characters or items

_METHODS = frozenset("split splitlines strip lstrip rstrip upper lower startswith endswith".split())
_SPEC = re.compile(r"(0?[1-9]?[dxX])?")  # what follows the colon of a field


class NotConstant(Exception):
    """The value is none that is found by reading constants."""


def method(text: str, name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """`text.name(...)`, where it is one of the methods that are read."""
    if name == "format":
        return _format(text, given, named)
    if named:
        raise NotConstant
    if name == "join":
        (items,) = given
        if sum(len(item) + len(text) for item in items) > LONGEST:
            raise NotConstant
        return text.join(items)
    if name == "replace":
        old, new = given
        if len(text) + (text.count(old) + 1) * len(new) > LONGEST:
            raise NotConstant
        return text.replace(old, new)
    if name not in _METHODS:
        raise NotConstant
    return getattr(text, name)(*given)


def _format(text: str, given: Sequence[Any], named: Mapping[str, Any]) -> str:
    """`text.format(...)`, whose fields are numbers and names alone: none that looks into a value."""
    found: list[str] = []
    size = number = 0
    for before, name, spec, conversion in string.Formatter().parse(text):
        found.append(before)
        if name is not None:
            if conversion or not (name.isidentifier() or name == "" or name.isdecimal()):
                raise NotConstant
            if name == "":
                found.append(field(given[number], spec or ""))
                number += 1
            else:
                found.append(field(given[int(name)] if name.isdecimal() else named[name], spec or ""))
        size += sum(map(len, found[-2:]))
        if size > LONGEST:
            raise NotConstant
    return "".join(found)


def field(value: Any, spec: str) -> str:
    """What stands in the place of a field."""
    if not _SPEC.fullmatch(spec) or not ((isinstance(value, str) and not spec) or type(value) is int):
        raise NotConstant
    return format(value, spec)


def literal(node: cst.FormattedString, part: cst.FormattedStringText) -> str:
    """What is written between the fields of a formatted string."""
    text = part.value.replace("{{", "{").replace("}}", "}")
    if "\\" not in text:
        return text
    if "r" in node.prefix or "\\N" in text:
        raise NotConstant
    return str(ast.literal_eval(f"{node.quote}{text}{node.quote}"))


def specification(part: cst.FormattedStringExpression) -> str:
    """What follows the colon of a field of a formatted string."""
    if part.conversion is not None or part.equal is not None:
        raise NotConstant
    return "".join(getattr(inner, "value", "?") for inner in part.format_spec or ())
