"""What was found in a kernel, in the words of its language.

The proof speaks of every language in the words of cuTile. In Triton a block is a program, and the one extent of
a pointer's flat memory is the number of its elements, from the first that the tensor reaches to the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from tilecheck.model import Site

_T = TypeVar("_T")
_EXTENT = re.compile(r"\b(\w+)\.shape\[0\]")
_BLOCK = re.compile(r"\bct\.bid\(")
_BLOCKS = re.compile(r"\bct\.num_blocks\(")


def in_words_of(language: str, found: _T) -> _T:
    """`found` (a report, diagnostics) as a user of `language` ("cutile", "triton") would say it."""
    return with_texts(found, _triton) if language == "triton" else found


def _triton(text: str) -> str:
    text = _EXTENT.sub(r"numel(\1)", text)
    return _BLOCKS.sub("tl.num_programs(", _BLOCK.sub("tl.program_id(", text))


def with_texts(value: _T, change: Callable[[str], str], *, places: bool = False) -> _T:
    """The same value with every text in it changed, those of places in files only with `places`."""

    def inside(part: Any) -> Any:
        return with_texts(part, change, places=places)

    found: Any = value
    if isinstance(value, str):
        found = change(value)
    elif isinstance(value, tuple):
        found = tuple(map(inside, value))
    elif isinstance(value, dict):
        found = {inside(k): inside(v) for k, v in value.items()}
    elif is_dataclass(value) and not isinstance(value, type) and (places or not isinstance(value, Site)):
        found = replace(value, **{f.name: inside(getattr(value, f.name)) for f in fields(value)})
    return cast("_T", found)
