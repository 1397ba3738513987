"""The element types of tensors, where the text names them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tilecheck.frontend.host.values import Tensor
from tilecheck.frontend.values.values import Named

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments

_USUAL = "?"  # behind the name of a type that a program may have set otherwise
DEFAULT_TYPE = "torch.float32" + _USUAL
# The methods that convert to one type.
_TYPES = {
    "float": "torch.float32",
    "double": "torch.float64",
    "half": "torch.float16",
    "bfloat16": "torch.bfloat16",
    "bool": "torch.bool",
    "char": "torch.int8",
    "short": "torch.int16",
    "int": "torch.int32",
    "long": "torch.int64",
    "byte": "torch.uint8",
}


def asked_type(name: str, args: Arguments) -> str:
    """The type that a conversion names; empty if it names none, or none that is known."""
    if name in _TYPES:
        return _TYPES[name]
    given = [*args.positional, *(v for k, v in args.keywords if k in ("dtype", "type"))]
    names = [v.name for v in given if isinstance(v, Named)]
    return next((full_type(n) for n in names if full_type(n)), "")


def full_type(name: str) -> str:
    """The full name of a torch type: `torch.half` is `torch.float16`."""
    head, _, last = name.rpartition(".")
    if head != "torch":
        return ""
    return _TYPES.get(last, name) if last in _TYPES or re.fullmatch(r"(?:u?int|float|bfloat)\d+", last) else ""


def width(name: str) -> int | None:
    """The bytes of an element of a torch type, given by its full name."""
    plain = full_type(name)
    found = re.search(r"\d+$", plain)
    return 1 if plain == "torch.bool" else max(1, int(found[0]) // 8) if found else None


def keeps_type(t: Tensor, name: str, args: Arguments) -> bool:
    """Whether a conversion asks for the type that a tensor has, and for no more: it gives the tensor."""
    kind, alone = asked_type(name, args), len(args.positional) + len(args.keywords) <= (name == "to")
    return bool(kind) and alone and kind == t.dtype.removesuffix(_USUAL)


def other_type(t: Tensor, name: str, args: Arguments) -> str:
    """The type that a conversion makes a copy of, as the tensor certainly has another; empty if it may not."""
    kind = asked_type(name, args)
    return kind if t.dtype and kind != t.dtype and not t.dtype.endswith(_USUAL) else ""
