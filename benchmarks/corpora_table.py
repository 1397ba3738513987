"""The table of `corpora.py`: counts, times and bars of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

_DECIDED = ("proved", "conditional", "trusted", "violated")
_REASONS = ("needs-contract", "nonlinear", "budget", "vacuous")
_COLUMNS = (
    "package", "files", "kernels", "proved", "cond.", "violated", "decided",
    "contract", "nonlin.", "budget", "vacuous", "unsupp.", "over", "crash",
    "median ms", "p95 ms", "CPU s", "bars",
)  # fmt: skip
_TEXTS = (0, len(_COLUMNS) - 1)  # the others are numbers
MEDIAN_MS, P95_MS = 20.0, 200.0


def print_table(rows: Sequence[tuple[str, float | None, list[dict[str, Any]]]]) -> list[str]:
    """Print the table and what most often is not supported; returns the bars that are missed."""
    missed: list[str] = []
    lines = [_COLUMNS, *(_line(name, bar, records, missed) for name, bar, records in rows)]
    everything = [record for _, _, records in rows for record in records]
    if len(rows) > 1:
        lines.append(_line("all", None, everything, []))
    widths = [max(len(line[i]) for line in lines) for i in range(len(_COLUMNS))]
    for number, line in enumerate(lines):
        cells = [_cell(i, text, widths[i]) for i, text in enumerate(line)]
        print(f"| {' | '.join(cells)} |")
        if not number:
            print(f"|{'|'.join('-' * (w + 1) + ('-' if i in _TEXTS else ':') for i, w in enumerate(widths))}|")
    print()
    reasons = Counter(_general(r["reason"]) for r in everything if str(r["reason"]).startswith("unsupported"))
    for reason, count in reasons.most_common(20):
        print(f"{count:6} {reason}")
    for bar in missed:
        print(f"missed: {bar}")
    return missed


def _cell(column: int, text: str, width: int) -> str:
    return text.ljust(width) if column in _TEXTS else text.rjust(width)


def _line(name: str, bar: float | None, records: list[dict[str, Any]], missed: list[str]) -> tuple[str, ...]:
    verdicts = Counter(r["verdict"] for r in records)
    reasons = Counter(str(r["reason"]).partition(":")[0] for r in records)
    decided = sum(verdicts[word] for word in _DECIDED) / max(1, len(records))
    times = sorted(r["ms"] for r in records if r["ms"] is not None) or [0.0]
    median, p95 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 95 // 100)]
    total = sum(times) + sum({r["file"]: r.get("reading_ms", 0) for r in records}.values())
    bars = []
    for what, met in (
        ("no crash", not reasons["internal"]),
        (f"median {MEDIAN_MS:.0f} ms", median <= MEDIAN_MS),
        (f"p95 {P95_MS:.0f} ms", p95 <= P95_MS),
        *([(f"{bar:.0%} decided", decided >= bar)] if bar is not None else []),
    ):
        if not met:
            bars.append(what)
            missed.append(f"{name}: {what}")
    return (
        name,
        str(len({r["file"] for r in records})),
        str(len(records)),
        str(verdicts["proved"] + verdicts["trusted"]),
        str(verdicts["conditional"]),
        str(verdicts["violated"]),
        f"{decided:.1%}",
        *(str(reasons[reason]) for reason in _REASONS),
        str(reasons["unsupported"]),
        str(verdicts["over"]),
        str(reasons["internal"]),
        f"{median:.1f}",
        f"{p95:.1f}",
        f"{total / 1000:.1f}",
        "missed: " + ", ".join(bars) if bars else "met",
    )


def _general(reason: str) -> str:
    """A reason without the names in it, so that equal ones count together."""
    parts = reason.split("`")
    return "`…`".join(parts[::2]) if len(parts) > 2 else reason
