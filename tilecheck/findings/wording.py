"""What was found in a kernel, in the words of its language.

The proof speaks of every language in the words of cuTile. In Triton a block is a program, and the one extent of
a pointer's flat memory is the number of its elements, from the first that the tensor reaches to the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tilecheck.model import Literal, Site

if TYPE_CHECKING:
    from tilecheck.ir.kernel import Kernel

_T = TypeVar("_T")
_EXTENT = re.compile(r"\b(\w+)\.shape\[0\]")
_BLOCK = re.compile(r"\bct\.bid\(")
_BLOCKS = re.compile(r"\bct\.num_blocks\(")
_IN_TRITON = {
    "`ct.astype(value, ct.int64)`": "`value.to(tl.int64)`",
    "keep the bounds check on, or bound the index": "bound the index by a mask",
}


def in_words_of(kernel: Kernel, found: _T) -> _T:
    """What was found in `kernel` (a report, diagnostics) as a user of its language would say it."""
    if kernel.language != "triton":
        return found
    flat = {access.array for access in kernel.accesses if not access.checked}  # a descriptor has axes

    def extent(match: re.Match[str]) -> str:
        return f"numel({match[1]})" if match[1] in flat else match[0]

    def change(text: str) -> str:
        for phrase, said in _IN_TRITON.items():
            text = text.replace(phrase, said)
        text = _EXTENT.sub(extent, text)
        return _BLOCKS.sub("tl.num_programs(", _BLOCK.sub("tl.program_id(", text))

    return with_texts(found, change)


def with_texts(value: _T, change: Callable[[str], str]) -> _T:
    """The same value with every text in it changed, but for the places in files."""

    def inside(part: Any) -> Any:
        return with_texts(part, change)

    found: Any = value
    if isinstance(value, Literal):
        return value
    if isinstance(value, str):
        found = change(value)
    elif isinstance(value, tuple):
        found = tuple(map(inside, value))
    elif isinstance(value, dict):
        found = {inside(k): inside(v) for k, v in value.items()}
    elif is_dataclass(value) and not isinstance(value, type | Site):
        found = replace(value, **{f.name: inside(getattr(value, f.name)) for f in fields(value)})
    return cast("_T", found)
