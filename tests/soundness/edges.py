"""Cases that go wrong by one thing alone: a sign, a bound, a branch. Nothing may prove them.

Each would be safe but for what its name says, so that a prover that is wrong about just that proves it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from soundness_alter import OPERATORS
from soundness_cases import SWIZZLE, Case, Place, Reach, drawn

from tilecheck.ir.kernel import Space

_SIZES = ("T >= 1", "S >= 1")


def _least(index: str, *facts: str) -> Case:
    """Whether the index can be negative."""
    return _bounds(index, *facts, guard=f"({index}) < E0")


def _bounds(index: str, *facts: str, guard: str = "True", extent: str = "E0") -> Case:
    reach = Reach((Place(index, extent=extent),), Space.ELEMENT, guard)
    return Case("bounds", reach, reach, (*_SIZES, *facts))


def _apart(
    *places: Place,
    goal: str = "blocks",
    facts: tuple[str, ...] = (),
    guard: str = "True",
    contract: str = "",
    copies: int = 0,
) -> Case:
    space = Space.ELEMENT if any(p.has_lane for p in places) else Space.TILE
    reach = Reach(places, space, guard)
    return Case(goal, reach, reach, (*_SIZES, *facts), contract=contract, copies=copies)


def _lane(index: str, size: str = "T") -> Place:
    return Place(index, "1", size, has_lane=True)


def _shifted(place: Place, base: str, *facts: str) -> Case:
    second = Place(place.index, place.step, place.size, base, place.extent)
    one, two = (Reach((p,), Space.TILE) for p in (place, second))
    return Case("blocks", one, two, (*_SIZES, *facts))


EDGES = {
    "a negative product": _least("b0 * n"),
    "a product that is -d at most": _least("0 - b0 * m - b0 - 1", "m <= -1"),
    "an order that a negative factor turns": _least("(G0 - b0) * n - n"),
    "an order by one factor": _least("G0 * n - b0 * n - n - 1", "n >= 1"),
    "a sum times a negative factor": _least("m - n", "S >= 2", "m == (S + T) * n - 2 * n"),
    "a minimum in a product": _apart(Place("min(n, 2) * b0"), facts=("n >= 0",)),
    "the least of two": _least("min(b0, n)"),
    "the least of one and a literal": _least("min(b0, 0 - 1)"),
    "the most of two": _least("E0 - 1 - max(b0, n) // T", "E0 >= G0", "n >= 0"),
    "a remainder by a negative number": _least("b0 % n"),
    "a quotient of a negative number": _least("(b0 - 3) // T + 1", "T >= 2"),
    "a number that is its least": _least("n - 3", "n >= 2"),
    "the last remainder": _bounds("b0 % n", "n >= 2", "E0 >= n - 1"),
    "the last remainder by a literal": _bounds("b0 % 3", "E0 >= 2"),
    "bits of a negative number": _bounds("(b0 - n) & m", "n >= 0", "E0 >= G0"),
    "the last block": _bounds("b0 + 1", "E0 >= G0"),
    "the last lane": _apart(_lane("b0 * 3 + l0", "3 + 1")),
    "a factor that may be 0": _apart(Place("b0 * n"), facts=("n >= 0",)),
    "a size that is one too large": _apart(_lane("b0 * n + l0"), facts=("n >= T - 1", "n >= 1")),
    "a group that is one too small": _apart(Place("b0 * n + k"), facts=("n >= 1",), guard="k <= n"),
    "factors that differ": _apart(Place("(b0 % 2 + 1) * b1"), Place("b0 // 2")),
    "a branch": _apart(Place("b0 if b0 < n else 0"), facts=("n >= 1",)),
    "exclusive or": _apart(Place("b0 ^ b1")),
    "one entry for two blocks": _apart(Place("t[b0]"), facts=("L >= G0", "G1 >= 1"), contract="distinct"),
    "equal entries of an ordered table": _apart(Place("t[b0]"), facts=("L >= G0",), contract="increasing"),
    "entries that differ": _least("t[b0] - t[0]", "L >= G0"),
    "digits by a negative number": _least("b0 // (m * n) - b0 // m // n", "m >= 1"),
    "any two entries": _apart(Place("t[b0]"), Place("t[b1]"), facts=("L >= G0", "L >= G1")),
    "blocks that differ along one axis": _apart(Place("b0"), facts=("G1 >= 1",)),
    "lanes that differ along one axis": _apart(_lane("l0"), _lane("l1 // 2", "2"), goal="lanes"),
    "a step below the size": _apart(Place("b0", "T", "T + 1")),
    "two views": _shifted(Place("b0", "T", "T"), "T"),
    "a quotient without its remainder": _apart(Place("b0 // 2"), Place("b1")),
    "a digit beside what is no multiple": _apart(_lane("b0 * T + b1 + l0")),
    "a digit that may be negative": _apart(Place("b0 * n - b1", "1", "1"), facts=("n >= 1",)),
    "a digit that may be its base": _apart(Place("b0 * n + b1", "1", "1"), facts=("n >= 1",), guard="b1 <= n"),
    "a digit of one of two accesses": Case(
        "blocks",
        Reach((Place("b0 * n + b1", "1", "1"),), Space.ELEMENT, "b1 < n"),
        Reach((Place("b0 * n + b1", "1", "1"),), Space.ELEMENT, "True"),
        (*_SIZES, "n >= 1"),
    ),
    "a value that may reach its limit": Case(
        "blocks",
        Reach((Place("b0", "1", "1"),), Space.ELEMENT, "b0 <= n"),
        Reach((Place("b0 + n", "1", "1"),), Space.ELEMENT, "True"),
        (*_SIZES, "n >= 1"),
    ),
    "a digit that counts down by its base": _apart(
        Place("b0 * n + n - b1", "1", "1"), facts=("n >= 1",), guard="b1 <= n"
    ),
    "a digit that is moved for one of two accesses": Case(
        "blocks",
        Reach((_lane("b0 * n + m - l0", "n"), Place("b1")), Space.ELEMENT),
        Reach((_lane("b0 * n + m + l0", "n"), Place("b1")), Space.ELEMENT),
        (*_SIZES, "n >= 1", "n == m + 1"),
    ),
    "a digit that counts down beside one that counts up": Case(
        "blocks",
        Reach((_lane("b0 // 2 * n + n - 1 - l0", "n"), Place("b1")), Space.ELEMENT),
        Reach((_lane("b0 // 2 * n + l0", "n"), Place("b1")), Space.ELEMENT, "b0 // 2 < 1"),
        (*_SIZES, "n >= 1"),
    ),
    "a number that is its divisor": _least("n - 2 * m", "m >= 1", "n // m >= 1"),
    "two values for two guards": Case(
        "blocks",
        Reach((Place("b1"),), Space.TILE, "b0 == n"),
        Reach((Place("b1"),), Space.TILE, "b0 == m"),
        _SIZES,
    ),
    "a quotient by another product": _apart(
        Place("b0 % 2"), Place("b0 // 2 % n"), Place("b0 // (3 * n)"), Place("b1"), facts=("n >= 1",)
    ),
    "a quotient that may be 0": _least("n // m - 1", "m >= 1", "n >= m - 1"),
    "a part that is not shared": _apart(Place("(b0 + b1) // 2 - b1 + 4"), Place("b0")),
    "two iterations": _apart(Place("b0"), goal="iterations", guard="k < 2"),
    "segments that are not whole": _bounds(
        "b0 // (n // T)", "n >= T", "m >= 0", guard="b0 * T < m", extent="cdiv(m, n)"
    ),
    "a part behind the last segment": _bounds(
        "b0 // (n // T)", "n >= T", "n % T == 0", "m >= 0", guard="b0 * T <= m", extent="cdiv(m, n)"
    ),
    "a tile that is not whole": _bounds("b0", "E0 == n // T", guard="b0 * T < n"),
    "tiles of more than there is": _bounds("b0 - 1", "E0 == n // T", guard="1 <= b0 and b0 * T < n + m"),
    "either of two": _bounds("b0", "G0 <= n or G0 <= m", "E0 == n"),
    "two that share a part": _least("m - 2", "not (n >= 2 and m >= 2)", "n >= 2 and S >= 2 or m >= 2"),
    "a multiple and one": _least("S * (T // S) - T", "T % S == 1"),
    "a pair and the next pair": Case(
        "blocks",
        Reach((Place("2 * b0", "1", "1"),), Space.ELEMENT),
        Reach((Place("2 * b0 + 2", "1", "1"),), Space.ELEMENT),
        _SIZES,
    ),
    "a remainder of another number": _apart(
        Place("b1 // n"), Place("b0 % n"), Place("b0 // n"), facts=("n >= 1",)
    ),
    "a branch beyond the end": _bounds("(b0 if b0 < 2 * E0 else n) // 2", "n >= 0", "E0 >= 1"),
    "a piece that is longer than its part": _apart(_lane("b0 * n + l0", "4"), facts=("n >= 3",), copies=3),
}


_SWIZZLED = (Place("pm"), Place("pn", extent="E1"))
# Stated with divisors, bounds and launch conditions.
WHOLE_EDGES = {
    "a divisor that may be 0": _apart(
        Place("b0 // n"), Place("b0 % n", extent="E1"), facts=("E0 >= G0", "E1 >= n")
    ),
    "two guards of a swizzle": Case(
        "blocks",
        Reach(_SWIZZLED, Space.TILE, "b0 < rows * columns"),
        Reach(_SWIZZLED, Space.TILE, "b0 <= rows * columns"),
        (*_SIZES, "n >= 1", "m >= 1", "E0 == cdiv(n, T)", "E1 == cdiv(m, S)"),
        tuple(line.format(pid="b0", group="2") for line in SWIZZLE),
    ),
}


def near_misses(numbers: range) -> Iterator[tuple[int, str, Case]]:
    """Random cases with one change each."""
    for number in numbers:
        case = drawn(number)
        for operator in OPERATORS:
            changed = operator(case, random.Random(f"{number} 0"))
            if changed != case:
                yield number, operator.__name__, changed
