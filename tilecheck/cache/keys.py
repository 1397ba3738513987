"""Values of dataclasses as a text in which everything is written that is in them, field by field.

The text form that a reader sees leaves out what it does not need. A key may leave out nothing: a field that is
added to one of the classes is in the key at once.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any


class NoKey(Exception):
    """A value cannot be written: it holds something of another kind, or a place that cannot be kept."""


class Writer:
    """Writes values; one of other kinds overrides `special`."""

    def write(self, value: Any) -> str:
        """The value as text; different values have different texts.

        Raises:
            NoKey: there is none.
        """
        if isinstance(value, enum.Enum):
            return f"{type(value).__name__}.{value.name}"
        if value is None or isinstance(value, (bool, int, float, str)):
            return f"{type(value).__name__}:{value!r}"
        special = self.special(value)
        if special is not None:
            return special
        if isinstance(value, (tuple, list)):
            return f"({','.join(map(self.write, value))})"
        if isinstance(value, (frozenset, set)):
            return f"{{{','.join(sorted(map(self.write, value)))}}}"
        if isinstance(value, dict):
            return f"{{{','.join(f'{self.write(k)}={self.write(v)}' for k, v in value.items())}}}"
        if is_dataclass(value) and not isinstance(value, type):
            # What is no argument follows from the rest, and may be of this process alone, such as a hash.
            inner = (f"{f.name}={self.write(getattr(value, f.name))}" for f in fields(value) if f.init)
            return f"{type(value).__name__}({','.join(inner)})"
        raise NoKey(type(value).__name__)

    def special(self, value: Any) -> str | None:
        """The text of a value that is not to be written field by field."""
        return None


def key_of(parts: Iterable[str]) -> str:
    """The digest of texts."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        whole.update(b"%d:%s" % (len(data), data))
    return whole.hexdigest()
