"""A look at how a text uses a name, so that few files have to be parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tilecheck.dataclass import dataclass

_BY_TEXT = re.compile(r"\b(?:globals|locals|eval|exec)\b")
_QUOTES = ("'", '"')
_COMMENT = re.compile(r"[^\n\"']*#[^\n\"']*")
_PAIRS = {"[": "]", "(": ")", "{": "}"}
_LONGEST = 2000  # characters between the brackets of a launch
_DEFINES = re.compile(r"\b(?:def|class)[ \t]+\Z")
_CALLED = re.compile(r"[ \t]*\(")
_BOUND = re.compile(r"[ \t]*=(?!=)")
_GRIDDED = re.compile(r"[ \t]*\[")


@dataclass(frozen=True, slots=True)
class Usage:
    """How a name of a kernel is used: where `name[grid](...)` launches it, which functions decorate
    its definition, and whether it is used otherwise; calls as inside other kernels do not count."""

    launches: tuple[int, ...] = ()
    decorators: tuple[tuple[str, bool], ...] = ()
    otherwise: bool = False


def usage(words: str, name: str, imports: Sequence[tuple[int, int]], *, calls: bool = False) -> Usage:
    """With `calls` a call is a use of another kind as well: it may give a kernel."""
    launches: list[int] = []
    decorators: list[tuple[str, bool]] = []
    by_text = _names_by_text(words)
    for found in re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)", words):
        start, end = found.span()
        if _is_imported(words, start, imports):
            continue
        if (defines := _DEFINES.search(words, max(start - 20, 0), start)) is not None:
            decorators += _decorators(words, defines.start())
            continue
        if (not calls and _CALLED.match(words, end)) or _BOUND.match(words, end):
            continue
        if not by_text and words[start - 1 : start] in _QUOTES and words[start - 1] == words[end : end + 1]:
            continue  # as in `__all__`
        if _COMMENT.fullmatch(words, words.rfind("\n", 0, start) + 1, start):
            continue
        opened = _GRIDDED.match(words, end)
        closed = _closed(words, opened.end() - 1) if opened is not None else -1
        if closed < 0 or not _CALLED.match(words, closed):
            return Usage(tuple(launches), tuple(decorators), otherwise=True)
        launches.append(start)
    return Usage(tuple(launches), tuple(decorators))


@lru_cache(maxsize=16)
def _names_by_text(words: str) -> bool:
    return _BY_TEXT.search(words) is not None


def chains(words: str, name: str, imports: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The attributes that a text asks a name for, one after the other, and whether the last one is called; no
    attributes where the name stands for itself."""
    for found in re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)((?:\s*\.\s*\w+)*)", words):
        if not _is_imported(words, found.start(), imports):
            yield tuple(_WORD.findall(found[1])), _CALLED.match(words, found.end()) is not None


def _is_imported(words: str, start: int, imports: Sequence[tuple[int, int]]) -> bool:
    return any(a <= start < b for a, b in imports) or _FROM.search(words, max(start - 20, 0), start) is not None


def mentions(words: str, attributes: frozenset[str]) -> bool:
    """Whether a text may ask something for one of these attributes."""
    return _ASKS.search(words) is not None or any(
        re.search(rf"\.\s*{re.escape(name)}(?!\w)", words) for name in attributes if name in words
    )


_FROM = re.compile(r"\bfrom[ \t]+\Z")
_WORD = re.compile(r"\w+")
_ASKS = re.compile(r"\b(?:getattr|vars|attrgetter|__dict__)\b")


def _closed(words: str, start: int) -> int:
    """Where the bracket at a place is closed; -1 if that is not told so simply, as with brackets in texts."""
    stack: list[str] = []
    for at in range(start, min(start + _LONGEST, len(words))):
        character = words[at]
        if character in _PAIRS:
            stack.append(_PAIRS[character])
        elif character in ")]}":
            if not stack or stack.pop() != character:
                return -1
            if not stack:
                return at + 1
    return -1


def _decorators(words: str, start: int) -> Iterator[tuple[str, bool]]:
    """The names of the decorators above the definition at a place, and whether each is no call."""
    start = words.rfind("\n", 0, start) + 1
    while start > 0:
        above = words.rfind("\n", 0, start - 1) + 1
        line = words[above:start].strip()
        if not line or _STATEMENT.match(line) is not None:
            return
        found = _DECORATOR.match(line)
        if found is not None and found[1] not in _OF_LANGUAGES:
            yield found[1], not found[2]
        start = above


_STATEMENT = re.compile(r"(?:def|class|return|import|from)\b")
_DECORATOR = re.compile(r"@\s*(?:\w+\.)*(\w+)\s*(\(?)")
_OF_LANGUAGES = frozenset({"jit", "kernel", "autotune", "heuristics", "jit_cache"})
