"""Identifiers as Python reads them: in the compatibility form NFKC, so a full-width `D` and `D` are one name.

Text literals are not normalised: `getattr(x, "...")` finds no attribute under another form of its name.
"""

from __future__ import annotations

import re
import unicodedata

from tilecheck.errors import SourceError
from tilecheck.text import decode

# The tokenizer takes every character outside ASCII for a part of a name, and judges the name afterwards.
_WIDE = re.compile(r"(?<!(?a:\w))(?a:\w)*[^\x00-\x7f][^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]*")
_CONSTANTS = frozenset({"True", "False", "None"})


def normalised(name: str) -> str:
    """The name that Python's parser makes of an identifier."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def is_misread_constant(name: str) -> bool:
    """Whether an identifier only looks like a name: Python keeps a variable that is called `True`."""
    return not name.isascii() and normalised(name) in _CONSTANTS


def words_of(text: str) -> str:
    """A text with its identifiers normalised: for a look at words, as it has other places than the text."""
    return text if text.isascii() else _WIDE.sub(_word, text)


def words_in(data: bytes) -> str:
    """The text of a file likewise; what cannot be decoded is replaced."""
    try:
        return words_of(data.decode())
    except UnicodeDecodeError:
        pass
    try:
        return words_of(decode("", data).text)
    except SourceError:
        return data.decode(errors="replace")


def _word(found: re.Match[str]) -> str:
    word = found[0]
    return normalised(word) if word.isidentifier() else word
