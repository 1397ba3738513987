"""One small change to a case, of a kind that people make by mistake."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

from soundness_cases import CONTRACTS, Case, Place, Reach

_Text = Callable[[str], str]
_OTHER_DIVISORS = ("n", "m", "T", "S", "2", "3")


def drop_id(case: Case, rng: random.Random) -> Case:
    """A block index or iteration number is forgotten: 0 in its place, in one line or index."""
    return _in_text(case, rng, r"\b(b0|b1|k)\b", lambda _: "0")


def swap_indices(case: Case, rng: random.Random) -> Case:
    """The indices of the two axes are exchanged."""

    def swapped(reach: Reach) -> Reach:
        if len(reach.places) != 2:
            return reach
        one, two = reach.places
        return replace(reach, places=(replace(one, index=two.index), replace(two, index=one.index)))

    return (
        _both(case, swapped) if not any("l0" in p.index or "l1" in p.index for p in case.first.places) else case
    )


def off_by_one(case: Case, rng: random.Random) -> Case:
    """`<` becomes `<=`, or a factor is one too small."""
    if rng.random() < 0.5:
        changed = _guards(case, lambda text: text.replace(" < ", " <= ", 1))
        if changed != case:
            return changed
    return _in_text(case, rng, r"(?<=\* )(T|S|n|m|G0|G1|2|3)\b", lambda text: f"({text} - 1)")


def drop_mask(case: Case, rng: random.Random) -> Case:
    """The mask goes, or else the guard."""
    if case.first.mask != "True":
        return _both(case, lambda reach: replace(reach, mask="True"))
    return _both(case, lambda reach: replace(reach, guard=_last_term(reach.guard)))


def change_divisor(case: Case, rng: random.Random) -> Case:
    """One division or remainder gets another divisor."""
    other = rng.choice(_OTHER_DIVISORS)
    return _in_text(
        case, rng, r"(?<=(?:/|%) )(\w+(?:\([^()]*\))?|\([^()]*(?:\([^()]*\))?[^()]*\))", lambda _: other
    )


def change_step(case: Case, rng: random.Random) -> Case:
    """A loop steps, or tiles lie, a little closer together."""
    if "k * G0" in case.text() or "k * G1" in case.text():
        return _in_text(case, rng, r"(?<=\bk \* )(G0|G1)\b", lambda text: f"({text} - 1)")

    def closer(place: Place) -> Place:
        return place if place.step == "1" else replace(place, step=f"{place.step} - 1")

    return _both(case, lambda reach: replace(reach, places=tuple(map(closer, reach.places))))


def widen_tile(case: Case, rng: random.Random) -> Case:
    """A tile has one lane more than its step."""

    def wider(place: Place) -> Place:
        return place if place.size == "1" and not place.has_lane else replace(place, size=f"{place.size} + 1")

    return _both(case, lambda reach: replace(reach, places=tuple(map(wider, reach.places))))


def drop_premise(case: Case, rng: random.Random) -> Case:
    """A contract about the table, or one fact about the launch, is not there."""
    if case.contract:
        return replace(case, contract="")
    rest = [f for f in case.facts if f not in ("T >= 1", "S >= 1")]
    if not rest:
        return case
    gone = rng.choice(rest)
    return replace(case, facts=tuple(f for f in case.facts if f != gone))


def change_contract(case: Case, rng: random.Random) -> Case:
    """The table keeps another promise."""
    others = [c for c in CONTRACTS if c != case.contract]
    return replace(case, contract=rng.choice(others)) if case.contract else case


OPERATORS: tuple[Callable[[Case, random.Random], Case], ...] = (
    drop_id,
    swap_indices,
    off_by_one,
    drop_mask,
    change_divisor,
    change_step,
    widen_tile,
    drop_premise,
    change_contract,
)


# ---- where the changes are made ------------------------------------------------------------------------------


def _both(case: Case, change: Callable[[Reach], Reach]) -> Case:
    """Change both accesses, so that two that were one stay one."""
    return replace(case, first=change(case.first), second=change(case.second))


def _guards(case: Case, change: _Text) -> Case:
    return _both(case, lambda reach: replace(reach, guard=change(reach.guard)))


def _last_term(guard: str) -> str:
    """The guard without its first term."""
    return guard.partition(" and ")[2] or "True"


def _in_text(case: Case, rng: random.Random, pattern: str, change: _Text) -> Case:
    """Change one match of `pattern` in an index or in a line, alike in both accesses."""
    texts = dict.fromkeys((*(p.index for r in (case.first, case.second) for p in r.places), *case.lets))
    matches = [(text, m) for text in texts for m in re.finditer(pattern, text) if "=" not in text[m.end() :]]
    if not matches:
        return case
    text, match = rng.choice(matches)
    changed = text[: match.start()] + change(match.group()) + text[match.end() :]

    def of(reach: Reach) -> Reach:
        places = (replace(p, index=changed) if p.index == text else p for p in reach.places)
        return replace(reach, places=tuple(places))

    lets = tuple(changed if line == text else line for line in case.lets)
    return replace(_both(case, of), lets=lets)
