"""Compares what the tool says of random launches with their truth."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soundness_launch_random import Input, Made, Ran, file_of, made, runs
from soundness_texts import Reading, Unreadable
from soundness_virtual_machine import Outcome
from soundness_virtual_tensors import Tensor

from tilecheck.options import Options
from tilecheck.report.emitters.json import to_object
from tilecheck.verify.pipeline import verify_source

PAIRS_OF_FILE = 5
_PASSES = ("proved", "conditional", "trusted")
_FURTHER: dict[str, Any] = {
    "largest": 9,
    "count": 600,
    "processors": (1, 2, 4, 5, 9),
}  # the inputs that are tried before a `violated` is called false


@dataclass(frozen=True)
class Judged:
    """One random launch.

    `problem` is "" or one of: `wrong pass` (harm, although the kernel passes with nothing unmet, and what it
    leaves to the caller is met or is not his), `wrong violated` (no admitted input does harm), `false holds`
    (a requirement that is said to hold does not), `layout alone` (violated, and all inputs that do harm
    have strides that are not row-major).
    """

    pair: Made
    came: str  # passed | caller | unmet | violated | unknown
    truth: str  # harm | none | never (no input starts it)
    problem: str = ""
    example: str = ""


def judged_file(seed: int, count: int = PAIRS_OF_FILE) -> list[Judged]:
    """The judgements of one file of random pairs; the same for the same seed."""
    rng = random.Random(seed)
    pairs = [made(rng, number) for number in range(count)]
    report = to_object(verify_source(file_of(pairs).encode(), f"launches_{seed}.py", Options()))
    kernels = {k["name"]: k for k in report["kernels"]}
    errors = {d["kernel"] for d in report["diagnostics"] if d["severity"] == "error"}
    return [_judged(pair, kernels[pair.kernel], pair.kernel in errors, rng) for pair in pairs]


def _judged(pair: Made, kernel: Mapping[str, Any], is_error: bool, rng: random.Random) -> Judged:
    ran = list(runs(pair, rng))
    harmful = [r for r in ran if r.outcome.is_harmful]
    truth = "harm" if harmful else "none" if ran else "never"
    statuses = [(c["text"], c["status"]) for launch in kernel["launches"] for c in launch["conditions"]]
    unread = any(launch.get("status") == "unread" for launch in kernel["launches"])
    came = _came(kernel["verdict"], {s for _, s in statuses}, unread or is_error)
    problem, example = "", ""
    false = _false(statuses, ran) if came in ("passed", "caller") else None
    if came in ("passed", "caller"):
        wrong = _unexcused(pair, [t for t, s in statuses if s == "caller"], harmful)
        if wrong is not None:
            problem, example = "wrong pass", f"{wrong.input} {wrong.outcome.harms[0]}"
        elif false is not None:
            problem, example = "false holds", false
    elif came == "violated":
        problem, example = _alarm(pair, harmful, rng)
    return Judged(pair, came, truth, problem, example)


def _came(verdict: str, statuses: set[str], is_doubtful: bool) -> str:
    if verdict not in _PASSES:
        return verdict
    if is_doubtful or statuses - {"holds", "caller"}:
        return "unmet"
    return "caller" if "caller" in statuses else "passed"


def _unexcused(pair: Made, texts: Sequence[str], harmful: Sequence[Ran]) -> Ran | None:
    """A harmful launch that nothing left to the caller excuses: all of it is met, or one input decides it."""
    independent = len(pair.takes) > 1
    for ran in harmful:
        broken = [t for t in texts if holds(t, ran.outcome) is not True]
        if not broken or (ran.input.ordinary and not independent):
            return ran
    return None


def _false(statuses: Sequence[tuple[str, str]], ran: Sequence[Ran]) -> str | None:
    for one in ran:
        if one.input.is_odd:
            continue
        for text, status in statuses:
            if status == "holds" and holds(text, one.outcome) is False:
                return f"{text}: {one.input}"
    return None


def _alarm(pair: Made, harmful: Sequence[Ran], rng: random.Random) -> tuple[str, str]:
    if not harmful:
        further = [r for r in runs(pair, rng, **_FURTHER) if r.outcome.is_harmful]
        if not further:
            return "wrong violated", ""
        harmful = further
    return ("", "") if any(r.input.ordinary for r in harmful) else ("layout alone", str(harmful[0].input))


# ---- conditions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Array:
    """A tensor as the language of conditions reads arrays."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    itemsize: int = 1

    @property
    def ndim(self) -> int:
        return len(self.shape)


def holds(text: str, outcome: Outcome) -> bool | None:
    """Whether a condition is met at a launch; None where it is not in the language of conditions."""
    arguments = {
        k: _Array(tuple(v.shape), v.strides, v.numel()) if isinstance(v, Tensor) else v
        for k, v in outcome.arguments.items()
    }
    try:
        return Reading(outcome.grid, arguments).holds(text)
    except (Unreadable, SyntaxError, KeyError, AttributeError, TypeError):
        return None


def described(one: Judged) -> str:
    """A judgement that is a problem, with the pair and the input."""
    return f"{one.problem}: {one.pair.family} is {one.came}, {one.example}\n{one.pair.text}\n"


__all__ = ["Input", "Judged", "described", "holds", "judged_file"]
