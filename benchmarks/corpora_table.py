"""The table of `corpora.py`: counts, times and bars of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

_PASSES = ("proved", "conditional", "trusted")
_REASONS = ("needs-contract", "nonlinear", "budget", "vacuous")
_COLUMNS = (
    "package", "files", "kernels", "proved", "cond.", "violated",
    "contract", "nonlin.", "budget", "vacuous", "unsupp.", "over", "crash",
    "median ms", "p95 ms", "CPU s", "bars",
)  # fmt: skip
_LAUNCHED = (
    "package", "kernels", "pass", "launches decided", "unmet", "unread", "no launch", "promised",
    "holds", "caller", "of memory", "of layout", "of numbers", "others", "bars",
)  # fmt: skip
_FINDINGS = ("S1", "S7", "S8")
MEDIAN_MS, P95_MS = 20.0, 200.0


def print_table(rows: Sequence[tuple[str, float | None, list[dict[str, Any]]]]) -> list[str]:
    """Print the tables and what most often is not supported; returns the bars that are missed.

    A kernel is decided if it passes, has a launch in view, and each requirement of each launch in view holds or
    is its caller's.
    """
    missed: list[str] = []
    everything = [record for _, _, records in rows for record in records]
    lines = [_line(name, records, missed) for name, _, records in rows]
    launched = [_launched(name, bar, records, missed) for name, bar, records in rows]
    if len(rows) > 1:  # the bars are those of the rows
        lines.append(_line("all", everything, []))
        launched.append(_launched("all", None, everything, []))
    _print(_COLUMNS, lines)
    print()
    _print(_LAUNCHED, launched)
    print()
    reasons = Counter(_general(r["reason"]) for r in everything if str(r["reason"]).startswith("unsupported"))
    for reason, count in reasons.most_common(20):
        print(f"{count:6} {reason}")
    for bar in missed:
        print(f"missed: {bar}")
    return missed


def _print(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    texts = (0, len(columns) - 1)  # the others are numbers
    widths = [max(len(line[i]) for line in (columns, *lines)) for i in range(len(columns))]
    for number, line in enumerate((columns, *lines)):
        cells = [
            text.ljust(w) if i in texts else text.rjust(w)
            for i, (text, w) in enumerate(zip(line, widths, strict=True))
        ]
        print(f"| {' | '.join(cells)} |")
        if not number:
            print(f"|{'|'.join('-' * (w + 1) + ('-' if i in texts else ':') for i, w in enumerate(widths))}|")


def _line(name: str, records: list[dict[str, Any]], missed: list[str]) -> tuple[str, ...]:
    verdicts = Counter(r["verdict"] for r in records)
    reasons = Counter(str(r["reason"]).partition(":")[0] for r in records)
    times = sorted(r["ms"] for r in records if r["ms"] is not None) or [0.0]
    median, p95 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 95 // 100)]
    total = sum(times) + sum({r["file"]: r.get("reading_ms", 0) for r in records}.values())
    bars = [
        ("no crash", not reasons["internal"]),
        (f"median {MEDIAN_MS:.0f} ms", median <= MEDIAN_MS),
        (f"p95 {P95_MS:.0f} ms", p95 <= P95_MS),
    ]
    return (
        name,
        str(len({r["file"] for r in records})),
        str(len(records)),
        str(verdicts["proved"] + verdicts["trusted"]),
        str(verdicts["conditional"]),
        str(verdicts["violated"]),
        *(str(reasons[reason]) for reason in _REASONS),
        str(reasons["unsupported"]),
        str(verdicts["over"]),
        str(reasons["internal"]),
        f"{median:.1f}",
        f"{p95:.1f}",
        f"{total / 1000:.1f}",
        _met(name, bars, missed),
    )


def _launched(
    name: str, bar: float | None, records: list[dict[str, Any]], missed: list[str]
) -> tuple[str, ...]:
    """The kernels that pass, by what became of their launches, and the requirements that are their callers'."""
    passing = [r for r in records if r["verdict"] in _PASSES]
    found = Counter(r.get("launched", "none") for r in passing)
    decided = found["decided"] / max(1, len(records))
    said = [
        (text, word)
        for r in records
        for la in r.get("launches", ())
        for text, word in la.items()
        if text != "at"
    ]
    statuses = Counter(word for _, word in said)
    kinds = Counter(_kind(text) for text, word in said if word == "caller")
    bars = [] if bar is None else [(f"{bar:.0%} pass with every launch decided", decided >= bar)]
    return (
        name,
        str(len(records)),
        str(len(passing)),
        f"{found['decided']} ({decided:.1%})",
        *(str(found[word]) for word in ("unmet", "unread", "none")),
        str(sum(bool(r.get("promised")) for r in passing)),
        *(str(statuses[word]) for word in ("holds", "caller")),
        *(str(kinds[kind]) for kind in ("memory", "layout", "numbers", "others")),
        _met(name, bars, missed),
    )


def _kind(requirement: str) -> str:
    """What a requirement speaks of: how long memory is, strides, numbers and sizes, or something else."""
    if requirement.startswith(_FINDINGS):
        return "others"
    if "numel(" in requirement or ".shape[" in requirement:
        return "memory"
    return "layout" if "stride" in requirement else "numbers"


def _met(name: str, bars: Sequence[tuple[str, bool]], missed: list[str]) -> str:
    failed = [what for what, met in bars if not met]
    missed += [f"{name}: {what}" for what in failed]
    return "missed: " + ", ".join(failed) if failed else "met"


def _general(reason: str) -> str:
    """A reason without the names in it, so that equal ones count together."""
    parts = reason.split("`")
    return "`…`".join(parts[::2]) if len(parts) > 2 else reason
