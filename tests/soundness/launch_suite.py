"""Scores a run on labelled launches: what became of each kernel of `fixtures/launches`, right or wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soundness_launch_truth import Label, read_labels

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "fixtures" / "launches"
WRONG = ("violated", "unmet")  # labels of launches that must not pass
STATUSES = ("holds", "caller", "unmet", "broken", "unread")
_PASSES = ("proved", "conditional", "trusted")
_CLEAN = {"holds", "caller"}


@dataclass(frozen=True)
class Scored:
    """One labelled kernel: what it was called, and what it came to.

    `came` is `passed`, `unmet` (its verdict passes, and some requirement of a launch is neither shown nor the
    caller's), `violated`, `unknown`, `refused` (it passes, with an error finding of its own) or `missing`.
    """

    file: str
    label: Label
    came: str
    statuses: tuple[str, ...]


def files() -> list[Path]:
    return sorted(SUITE.rglob("*.py"))


def scored(path: Path, report: dict[str, Any]) -> Iterator[Scored]:
    """The labelled kernels of one file against the report of a run over it, in the form of `--format json`."""
    by_name = {k["name"]: k for k in report["kernels"]}
    errors = {d["kernel"] for d in report["diagnostics"] if d["severity"] == "error"}
    for label in read_labels(path.read_text(encoding="utf-8")):
        kernel = by_name.get(label.kernel)
        if kernel is None:
            yield Scored(path.name, label, "missing", ())
            continue
        statuses = tuple(_statuses(kernel))
        yield Scored(path.name, label, _came(kernel, statuses, label.kernel in errors), statuses)


def _statuses(kernel: dict[str, Any]) -> Iterator[str]:
    for launch in kernel["launches"]:
        if launch.get("status", "read") == "unread":
            yield "unread"
        yield from (condition["status"] for condition in launch["conditions"])


def _came(kernel: dict[str, Any], statuses: Iterable[str], is_error: bool) -> str:
    if kernel["verdict"] not in _PASSES:
        return str(kernel["verdict"])
    if is_error:
        return "refused"
    return "passed" if set(statuses) <= _CLEAN else "unmet"


# ---- the table -----------------------------------------------------------------------------------------------


@dataclass
class Counts:
    """What the kernels of one kind came to, by label."""

    wrong: Counter[str]
    right: Counter[str]
    caller: int = 0  # right ones that pass with something left to the caller

    @classmethod
    def of(cls, results: Iterable[Scored]) -> Counts:
        found = cls(Counter(), Counter())
        for result in results:
            if result.label.word in WRONG:
                found.wrong[result.came] += 1
            elif result.label.word == "passes":
                found.right[result.came] += 1
                found.caller += result.came == "passed" and "caller" in result.statuses
        return found


def by_kind(results: Iterable[Scored]) -> dict[str, Counts]:
    kinds: dict[str, list[Scored]] = defaultdict(list)
    for result in results:
        kinds[result.label.kind].append(result)
    return {kind: Counts.of(kinds[kind]) for kind in sorted(kinds)}


def table(results: list[Scored]) -> str:
    """The counts by kind, their sums, and the statuses that were seen."""
    wrong, right = (
        ("passed", "violated", "unknown", "unmet", "refused"),
        ("passed", "unmet", "unknown", "violated", "refused"),
    )
    width = max(len(r.label.kind) for r in results)
    head = f"{'':{width}}  wrong: {'  '.join(wrong)}   right: {'  '.join(right)}  (caller)"
    rows = [head]
    for kind, counts in [*by_kind(results).items(), ("all", Counts.of(results))]:
        left = "  ".join(f"{counts.wrong[w]:{len(w)}}" for w in wrong)
        more = "  ".join(f"{counts.right[w]:{len(w)}}" for w in right)
        rows.append(f"{kind:{width}}         {left}          {more}  {counts.caller:8}")
    seen = Counter(s for r in results for s in r.statuses)
    rows.append("statuses: " + ", ".join(f"{s} {seen[s]}" for s in STATUSES))
    other = [
        f"{r.label.kernel} ({r.label.word}): {r.came}" for r in results if r.label.word in ("refused", "unread")
    ]
    rows.append("findings of their own: " + ", ".join(other))
    return "\n".join(rows)


# ---- the bars ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bars:
    """Shares that a run must reach, of 1. `statuses`: every status occurs."""

    wrong_passed: int = 0
    wrong_violated: float = 0.95
    kind_violated: float = 0.8
    right_violated: int = 0
    right_passed: float = 0.95
    statuses: bool = True


def missed(results: list[Scored], bars: Bars) -> list[str]:
    """The bars that are not reached, in words."""
    found = [f"`{r.label.kernel}` of {r.file} is not reported" for r in results if r.came == "missing"]
    decided = [r for r in results if r.label.word == "violated"]
    right = [r for r in results if r.label.word == "passes"]
    passing = [r for r in results if r.label.word in WRONG and r.came in ("passed", "unmet")]
    alarms = [r for r in right if r.came == "violated"]
    if len(passing) > bars.wrong_passed:
        found.append(f"{len(passing)} wrong ones pass: {_names(passing)}")
    if len(alarms) > bars.right_violated:
        found.append(f"{len(alarms)} right ones are violated: {_names(alarms)}")
    found += _short("wrong ones are violated", decided, "violated", bars.wrong_violated)
    found += _short("right ones pass with nothing unmet", right, "passed", bars.right_passed)
    for kind in sorted({r.label.kind for r in decided}):
        mine = [r for r in decided if r.label.kind == kind]
        found += _short(f"wrong ones of {kind} are violated", mine, "violated", bars.kind_violated)
    found += [
        f"`{r.label.kernel}` should be {r.label.word}: it is {r.came}"
        for r in results
        if (r.label.word == "refused" and r.came != "refused")
        or (r.label.word == "unread" and r.came != "unmet")
    ]
    absent = [s for s in STATUSES if all(s not in r.statuses for r in results)]
    if bars.statuses and absent:
        found.append(f"statuses that never occur: {', '.join(absent)}")
    return found


def _short(what: str, results: list[Scored], came: str, share: float) -> list[str]:
    others = [r for r in results if r.came != came]
    if len(results) - len(others) >= share * len(results):
        return []
    return [f"{len(results) - len(others)} of {len(results)} {what}: not {_names(others)}"]


def _names(results: list[Scored]) -> str:
    return ", ".join(f"{r.label.kernel} ({r.came})" for r in results)
