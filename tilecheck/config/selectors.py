"""Which rules a code, a prefix of codes or a name means."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilecheck.errors import UsageError, did_you_mean

ALL = "TC"
_CODE = re.compile(r"TC[0-9]*")


def selector(word: str, where: str) -> str:
    """The code or prefix that a user means: `TC2` and `tc201` as they are, a name as its code.

    Raises:
        UsageError: no rule is meant.
    """
    if word.upper() == ALL:
        return ALL
    from tilecheck.registry import rule_files  # lazy: most configurations name no rule

    files = rule_files()
    for file in files:
        if word.lower() == file.name:
            return file.code
    prefix = word.upper()
    if len(prefix) > len(ALL) and any(file.code.startswith(prefix) for file in files):
        return prefix
    known = [file.name for file in files]
    listed = "`tilecheck rules` lists the rules; `TC2` means all of a family"
    hint = listed if _CODE.fullmatch(prefix) else did_you_mean(word, known, listed)
    raise UsageError(f"{where}: no rule has the code or name `{word}`", hint)


def closest(prefixes: Iterable[str], code: str) -> str | None:
    """The longest of the prefixes that a code has."""
    return max((prefix for prefix in prefixes if code.startswith(prefix)), key=len, default=None)
