"""Keys that are not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilecheck.errors import UsageError, did_you_mean


def check_keys(table: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse a key that is not known.

    Raises:
        UsageError: there is one.
    """
    for key in table:
        if key not in known:
            listed = f"known are {', '.join(f'`{k}`' for k in known)}"
            raise UsageError(f"{where} has no key `{key}`", did_you_mean(key, known, listed))
