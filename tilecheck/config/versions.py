"""`required-version`: whether a version meets a list such as `>=0.1,<0.2`."""

from __future__ import annotations

import re

_CLAUSE = re.compile(r"(==|!=|>=|<=|>|<|~=)?\s*([0-9]+(?:\.[0-9]+)*)")


def is_met(required: str, version: str) -> bool:
    """Whether `version` meets every clause; a bare number asks for just that version.

    Raises:
        ValueError: a clause is not understood.
    """
    have = _release(version)
    met = [_meets(clause.strip(), have) for clause in required.split(",")]  # all of them must be understood
    return all(met)


def _meets(clause: str, have: tuple[int, ...]) -> bool:
    found = _CLAUSE.fullmatch(clause)
    if found is None or (found[1] == "~=" and "." not in found[2]):
        raise ValueError(clause)
    operator, wanted = found[1] or "==", _release(found[2])
    width = max(len(have), len(wanted))
    left, right = (numbers + (0,) * (width - len(numbers)) for numbers in (have, wanted))
    if operator == "~=":
        return left >= right and have[: len(wanted) - 1] == wanted[:-1]
    return {
        "==": left == right, "!=": left != right, ">=": left >= right, "<=": left <= right, ">": left > right,
        "<": left < right,
    }[operator]  # fmt: skip


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without what marks a pre-release or a local build."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
