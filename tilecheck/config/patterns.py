"""Patterns for files and folders, as in `.gitignore` and ruff."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from tilecheck.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that starts at the folder `base`.

    Without a slash it speaks of the name of a file or a folder, wherever that is below `base`. With a slash it
    speaks of the whole path from `base`; `**` stands for any number of folders, `*` for any part of one name.
    """

    text: str
    base: Path
    origin: str

    def matches(self, path: str) -> bool:
        """Whether an absolute path is meant by the pattern itself: not what lies in a folder that is."""
        if "/" not in self.text.removeprefix("./").rstrip("/"):
            return compiled(self.text).fullmatch(path.rpartition("/")[2]) is not None
        inner = below(path, self.base)
        return inner is not None and compiled(self.text).fullmatch(inner) is not None


@cache
def compiled(text: str) -> re.Pattern[str]:
    """The regular expression of a pattern. Most runs need none: files that are named are not kept out.

    Raises:
        re.error: the text is not a valid pattern.
    """
    return re.compile(_regex_of(text.removeprefix("./").strip("/")))


def absolute(path: str) -> str:
    """The path from the root, POSIX style, in the names that the user wrote: links are not followed."""
    return Path(os.path.abspath(path)).as_posix()  # noqa: PTH100 - `resolve` would follow links


def below(path: str, folder: Path) -> str | None:
    """An absolute path from a folder above it, POSIX style; None if it does not lie below."""
    try:
        return Path(path).relative_to(folder).as_posix()
    except ValueError:
        return None


def _regex_of(text: str) -> str:
    """`a/**` also means `a` itself, so that an excluded folder need not be entered."""
    named = [part for part in text.split("/") if part]
    parts = [p for p, before in zip(named, ["", *named], strict=False) if (p, before) != ("**", "**")]
    regex = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part != "**":
            regex += _part(part) + ("" if last else "/")
        elif not last:
            regex += r"(?:[^/]+/)*"
        elif number:
            regex = regex.removesuffix("/") + r"(?:/.*)?"
        else:
            regex += r".*"
    return regex


_SPECIAL = re.compile(r"\*+|\?|\[!?\]?[^]]*\]|.", re.DOTALL)


def _part(part: str) -> str:
    """One name of a path: `*`, `?` and `[...]` stop at slashes."""
    return "".join(map(_piece, _SPECIAL.findall(part)))


def _piece(piece: str) -> str:
    if piece.startswith("*"):
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if piece.startswith("[") and len(piece) > 1:
        inner = piece[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^{inner[1:]}/]" if inner.startswith("!") else f"[{inner}]"
    return re.escape(piece)
