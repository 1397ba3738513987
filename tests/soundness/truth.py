"""What a case really does, in small launches: its text is run as Python, block by block.

Nothing here knows how the prover works. A step that divides by zero, or reads outside the table, has no
meaning and touches nothing, unless division by zero is what is looked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from soundness_cases import LAUNCH, Case, Reach

from tilecheck.ir.kernel import Space

STEPS = 7  # iterations that are looked at
_SMALL = {"T": (1, 3), "S": (1, 3), "n": (-2, 7), "m": (-1, 5), "G0": (1, 5), "G1": (1, 3), "L": (0, 8)}
_SMALL |= {"E0": (0, 12), "E1": (0, 8)}

Launch = Mapping[str, Any]
Touch = tuple[tuple[int, ...], tuple[int, int], int, tuple[int, int]]  # element, block, iteration, lanes


class Table(list[int]):
    """Memory: nothing lies before its beginning."""

    def __getitem__(self, index: Any) -> Any:
        if index < 0:
            raise IndexError(index)
        return super().__getitem__(index)


@dataclass(frozen=True)
class Runner:
    """The text of a case as functions of a launch."""

    case: Case
    facts: Callable[[Launch], bool]
    first: Callable[[Launch], list[Touch]]
    second: Callable[[Launch], list[Touch]]

    @classmethod
    def of(cls, case: Case, *, strict: bool = False) -> Runner:
        """With `strict`, division by zero is raised."""
        first = _compiled(case, case.first, strict)
        second = first if case.second == case.first else _compiled(case, case.second, strict)
        text = " and ".join(f"({f})" for f in case.facts)
        return cls(case, _function(f"    return {text}\n"), first, second)

    def refuted(self, launch: Launch) -> tuple[Touch, Touch] | None:
        """Two touches that the goal rules out; for a bound, one touch twice."""
        touches = self.first(launch)
        if self.case.goal == "bounds":
            return (touches[0], touches[0]) if touches else None
        seen: dict[tuple[int, ...], list[Touch]] = {}
        for touch in touches:
            seen.setdefault(touch[0], []).append(touch)
        for two in touches if self.case.goal == "lanes" else self.second(launch):
            for one in seen.get(two[0], ()):
                if self._are_two(one, two):
                    return one, two
        return None

    def _are_two(self, one: Touch, two: Touch) -> bool:
        _, block, step, lanes = one
        match self.case.goal:
            case "blocks":
                return block != two[1]
            case "lanes":
                return (block, step) == two[1:3] and lanes != two[3]
            case _:
                return block == two[1] and step != two[2]


def launches(case: Case, runner: Runner, rng: random.Random, count: int) -> Iterator[Launch]:
    """Up to `count` small launches that meet the facts and the contract."""
    for _ in range(count):
        launch: dict[str, Any] = {name: rng.randint(*_SMALL[name]) for name in LAUNCH}
        for axis in (0, 1):  # standing obligation S3: one block along an axis that the kernel does not read
            if not (case.mentions(f"b{axis}") or case.mentions(f"G{axis}")):
                launch[f"G{axis}"] = 1
        for fact in case.facts:
            _mend(fact, launch, rng)
        launch["t"] = _table(case.contract, max(0, launch["L"]), launch["n"], rng)
        try:
            if launch["t"] is not None and _exists(launch) and runner.facts(launch):
                yield launch
        except ZeroDivisionError:
            continue


def _exists(launch: Launch) -> bool:
    """Grids have blocks and extents are not negative."""
    return min(launch["G0"], launch["G1"]) >= 1 and min(launch["E0"], launch["E1"], launch["L"]) >= 0


def _mend(fact: str, launch: dict[str, Any], rng: random.Random) -> None:
    """Give the name on the left of an equality or a bound a value that meets it, most of the time."""
    name, operator, right = (*fact.split(" ", 2), "", "")[:3]
    if name not in launch or operator not in ("==", "<=", ">=") or rng.random() < 0.2:
        return
    try:
        value = eval(right, {"cdiv": _cdiv}, launch)
    except ZeroDivisionError:
        return
    if operator == "==" or (value < launch[name]) == (operator == "<="):
        launch[name] = max(1, value) if name[0] == "G" else value


def _table(contract: str, length: int, bound: int, rng: random.Random) -> Table | None:
    """Values that keep the contract."""
    match contract:
        case "distinct":
            return Table(rng.sample(range(length + 3), length))
        case "increasing":
            return Table(sorted(rng.randint(0, 8) for _ in range(length)))
        case "within":
            return Table(rng.randrange(bound) for _ in range(length)) if bound > 0 or not length else None
        case _:
            return Table(rng.randint(-1, 6) for _ in range(length))


def _cdiv(a: int, b: int) -> int:
    return (a + b - 1) // b


# ---- the text as Python --------------------------------------------------------------------------------------


def _function(body: str) -> Callable[[Launch], Any]:
    unpacked = "".join(f"    {name} = launch[{name!r}]\n" for name in LAUNCH)
    scope: dict[str, Any] = {"cdiv": _cdiv}
    exec(f"def run(launch):\n{unpacked}{body}", scope)
    found: Callable[[Launch], Any] = scope["run"]
    return found


def _compiled(case: Case, reach: Reach, strict: bool) -> Callable[[Launch], list[Touch]]:
    """The touches of one access; for a goal about bounds, the steps that are out of bounds."""
    uses_k = case.mentions("k")
    meaningless = "IndexError" if strict else "(ZeroDivisionError, IndexError)"
    lines = ["t = launch['t']", "found = []", "for b0 in range(G0):", " for b1 in range(G1):"]
    lines += [f"  for k in range({STEPS if uses_k else 1}):", "   try:"]
    lines += [f"    {line}" for line in case.lets]
    lines += [f"    if not ({reach.guard}): continue"]
    sizes = [p.size for p in reach.places] + ["1"]
    if case.goal == "bounds":
        inside = " and ".join(
            f"0 <= ({p.index}) and ({p.index}) * ({p.step}) < ({p.extent})" for p in reach.places
        )
        lines += ["    l0 = l1 = 0", f"    if not ({inside}): found.append(((), (b0, b1), k, (0, 0)))"]
    else:
        lines += [f"    for l0 in range({sizes[0]}):", f"     for l1 in range({sizes[1]}):", "      try:"]
        lines += [f"       if not ({reach.mask}): continue"]
        for k, p in enumerate(reach.places):
            lane = f" + l{k}" if p.size != "1" and not p.has_lane else ""
            lines += [f"       local{k} = ({p.index}) * ({p.step}){lane}", f"       base{k} = {p.base}"]
            if reach.space is not Space.RAW:
                lines += [f"       if not 0 <= local{k} < ({p.extent}): continue"]
        element = "".join(f"base{k} + local{k}, " for k in range(len(reach.places)))
        lines += [f"       found.append((({element}), (b0, b1), k, (l0, l1)))"]
        lines += [f"      except {meaningless}: pass"]
    lines += [f"   except {meaningless}: pass", "return found"]
    return _function("".join(f"    {line}\n" for line in lines))
