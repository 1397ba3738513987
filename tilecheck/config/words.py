"""Words that are not known, and the ones that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from tilecheck.errors import UsageError


def check_keys(table: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse a key that is not known.

    Raises:
        UsageError: there is one.
    """
    for key in table:
        if key not in known:
            listed = f"known are {', '.join(f'`{k}`' for k in known)}"
            raise UsageError(f"{where} has no key `{key}`", did_you_mean(key, known) or listed)


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the known word that is closest; None if none is close."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean `{near[0]}`?" if near else None
