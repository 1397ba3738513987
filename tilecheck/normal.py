"""The text of a program without what changes nothing: layout, and comments that the analysis does not read.

Two files that are equal here mean the same to every stage, apart from where things stand. The other way round
nothing is promised.
"""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass

from tilecheck.text import Source

_READ = re.compile(r"#\s*tilecheck\s*:")
_NO_TEXT = frozenset({tokenize.NL, tokenize.ENDMARKER, tokenize.ENCODING})
# The end of a line and of a block mean the same however they are written.
_MARKS = {tokenize.NEWLINE: "\n", tokenize.INDENT: "\x01", tokenize.DEDENT: "\x02"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token that means something, and the byte of the file where it begins (as `Span` counts)."""

    text: str
    start: int
    is_comment: bool = False


def tokens(source: Source) -> tuple[Token, ...] | None:
    """The tokens of a file with its `# tilecheck:` comments and no others; None if it is no Python.

    What a comment speaks of depends on where it stands. On a line of its own, its text ends with its column.
    """
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            line, column = token.start
            is_comment = token.type == tokenize.COMMENT
            if token.type in _NO_TEXT or (is_comment and not _READ.search(token.string)):
                continue
            text = _MARKS.get(token.type, token.string)
            if is_comment and not lines[line - 1][:column].strip():
                # Whether it closes a block or speaks of what follows is told by its column.
                text += f"\x03{column}"
            found.append(Token(text, source.offset(line, column + 1), is_comment))
    except (tokenize.TokenError, SyntaxError):  # IndentationError is one
        return None
    return tuple(found)


def digest(texts: Iterable[str]) -> str:
    """One short text for a list of texts: equal for equal lists alone."""
    joined = "".join(f"{len(text)}:{text}" for text in texts)
    return hashlib.sha256(joined.encode(errors="surrogatepass")).hexdigest()
