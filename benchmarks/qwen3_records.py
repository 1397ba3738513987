"""The runs of a folder, one line of `run.jsonl` each, and the tables that are made from them."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwen3_models import bytes_of_step, config_of, operations_of_prompt
from qwen3_plots import Series, chart

RUNS, ACCURACY = "run.jsonl", "accuracy.jsonl"
CELL = ("at", "model", "name", "pp", "tg", "batch")  # what engines are compared at, in one call
NOT_CARRIED = "vLLM and SGLang are not measured: their wheels are not carried to the machine with the card."
INTRODUCTION = """\
Medians, with quartiles. `tgN` makes N tokens after a prompt of 18, `ppN` makes 36 after a prompt of N. A step
reads the weights once, but for an embedding that is not the output layer, and the keys and values of every
sequence at the mean context; its share is of the read bandwidth measured in the same call. The share of a
prompt is of the rate of a product of matrices in the same call."""
COLUMNS = (
    "model", "cell", "batch", "engine", "runs", "prompt, ms", "of the product", "times as fast", "step, ms",
    "tokens/s", "of the bandwidth", "bar", "times as fast", "request, tokens/s",
)  # fmt: skip
MEASURES = {  # of accuracy: the column, and the name in a record
    "error": "error", "theirs": "their_error", "with a wrong theta": "wrong_theta_error",
    "KL": "kl", "their KL": "their_kl", "NLL": "nll", "their NLL": "their_nll", "NLL in float32": "exact_nll",
}  # fmt: skip
BARS = {  # by model and context: the share of the read bandwidth that issue 25 asks for, in percent
    ("0.6B", 18): 52, ("4B", 18): 84, ("8B", 18): 90, ("32B", 18): 92,
    ("0.6B", 512): 45, ("4B", 512): 80, ("8B", 512): 87, ("32B", 512): 91,
}  # fmt: skip


def append(path: Path, record: dict[str, Any]) -> None:
    """Add one line to a file of records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles."""

    low: float
    median: float
    high: float

    def text(self, digits: int) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


def aggregate(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for the runs of an engine at a cell, in the order of their first runs."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((*(run[name] for name in CELL), run["engine"], run["variant"]), []).append(run)
    rows = {key: _row(key, group) for key, group in groups.items()}
    for key, row in rows.items():
        theirs = next(
            (rows[k] for k in rows if k[: len(CELL)] == key[: len(CELL)] and "transformers" in k), None
        )
        if theirs is not None and theirs is not row:
            row["decode_speedup"] = theirs["step_ms"] / row["step_ms"]
            row["prefill_speedup"] = theirs["prefill_ms"] / row["prefill_ms"]
    return list(rows.values())


def _row(key: tuple[Any, ...], runs: list[dict[str, Any]]) -> dict[str, Any]:
    _, model, _, pp, tg, batch = key[: len(CELL)]
    config = config_of(model)
    prefill, decode = (spread([run[name] for run in runs]) for name in ("prefill_ms", "decode_ms"))
    whole = spread([run["e2e_ms"] for run in runs])
    read_rate = statistics.median(run["bytes_per_s"] for run in runs)
    step = decode.median / (tg - 1)
    moved = bytes_of_step(config, pp + tg / 2, batch)  # the steps read from pp + 1 to pp + tg - 1 tokens
    row = {
        **dict(zip((*CELL, "engine", "variant"), key, strict=True)),
        "runs": len(runs),
        "prefill_ms": prefill.median,
        "prefill_ms_q1": prefill.low,
        "prefill_ms_q3": prefill.high,
        "step_ms": step,
        "step_ms_q1": decode.low / (tg - 1),
        "step_ms_q3": decode.high / (tg - 1),
        "decode_tokens_per_s": batch * 1e3 / step,
        "request_tokens_per_s": batch * tg * 1e3 / whole.median,
        "step_bytes": moved,
        "bytes_per_s": read_rate,
        "decode_share": 1e3 * moved / step / read_rate,
        "roofline_tokens_per_s": batch * read_rate / moved,
        "prefill_share": None,
        "decode_speedup": None,
        "prefill_speedup": None,
    }
    rates = [run["operations_per_s"] for run in runs if run["operations_per_s"]]
    if rates:
        rate = statistics.median(rates)
        row["prefill_share"] = 1e3 * operations_of_prompt(config, pp, batch) / prefill.median / rate
    return row


# ---- files ---------------------------------------------------------------------------------------------------


def write_tables(folder: Path) -> list[Path]:
    """Make the tables and plots of a folder from its runs."""
    rows, measured = aggregate(read(folder / RUNS)), read(folder / ACCURACY)
    files = {"aggregate.md": _markdown(read(folder / RUNS), rows, measured), **_plots(rows)}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    if rows:
        with (folder / "aggregate.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return [folder / name for name in (*files, *(["aggregate.csv"] if rows else []))]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _markdown(runs: list[dict[str, Any]], rows: list[dict[str, Any]], measured: list[dict[str, Any]]) -> str:
    lines = ["# Qwen3 with random weights", "", INTRODUCTION, "", NOT_CARRIED]
    for at, run in {run["at"]: run for run in runs}.items():
        table = _table(COLUMNS, [_cells(row) for row in rows if row["at"] == at])
        lines += ["", f"## Time, {at}", "", *_of_machine(run), "", *table]
    for at, record in {record["at"]: record for record in measured}.items():
        table = _accuracy([each for each in measured if each["at"] == at])
        lines += ["", f"## Accuracy, {at}", "", *_of_machine(record), "", *table]
    return "\n".join(lines) + "\n"


def _of_machine(run: dict[str, Any]) -> list[str]:
    """On what machine, from what, and by what command a run was made."""
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    rate = f", reads {run['bytes_per_s'] / 1e12:.3f} TB/s" if "bytes_per_s" in run else ""
    where = f"{run['card']}, driver {run['driver'] or 'none'}{rate}"
    return [f"Commit {run['commit']}; {where}; {versions}.", f"`{run['command']}`"]


def _cells(row: dict[str, Any]) -> list[str]:
    prefill, step = (
        Spread(row[f"{name}_q1"], row[name], row[f"{name}_q3"]) for name in ("prefill_ms", "step_ms")
    )
    is_ours = row["engine"] == "tilecheck" and row["batch"] == 1 and row["name"].startswith("pp")
    bar = BARS.get((row["model"], row["pp"])) if is_ours else None
    return [
        row["model"],
        row["name"],
        str(row["batch"]),
        f"{row['engine']}, {row['variant']}",
        str(row["runs"]),
        prefill.text(2),
        _percent(row["prefill_share"]),
        _times(row["prefill_speedup"]),
        step.text(3),
        f"{row['decode_tokens_per_s']:.1f}",
        _percent(row["decode_share"]),
        f"{bar} %" if bar else "",
        _times(row["decode_speedup"]),
        f"{row['request_tokens_per_s']:.1f}",
    ]


def _accuracy(measured: list[dict[str, Any]]) -> list[str]:
    rows = [
        [record["model"], str(record["batch"]), str(at["context"])]
        + [f"{at[m]:.3g}" for m in MEASURES.values()]
        for record in measured
        for at in record["contexts"]
    ]
    lines = _table(("model", "batch", "context", *MEASURES), rows) if rows else []
    for record in measured:
        lines += ["", f"{record['model']}, batch {record['batch']}: {record['verdict']}"]
        lines += [f"- {text}" for text in record["notes"]]
    return lines


def _plots(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The plots that there are at least two points for."""
    contexts = [row for row in rows if row["name"].startswith("pp")]
    alone = [row for row in contexts if row["batch"] == 1]
    found = {
        "decode.svg": chart(
            "Share of the read bandwidth", "tokens of context", "%",
            _series(alone, "pp", lambda row: 100 * row["decode_share"]),
        ),
        "prefill.svg": chart(
            "Prompts", "tokens of a prompt", "tokens/s",
            _series(alone, "pp", lambda row: 1e3 * row["pp"] / row["prefill_ms"]),
        ),
        "batch.svg": chart(
            "Decoding", "sequences", "tokens/s",
            _series(contexts, "batch", lambda row: row["decode_tokens_per_s"], "pp"),
        ),
    }  # fmt: skip
    return {name: text for name, text in found.items() if text}


def _series(
    rows: Iterable[dict[str, Any]], x: str, y: Callable[[dict[str, Any]], float], *apart: str
) -> list[Series]:
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        label = " ".join([row["model"], row["engine"], *(f"{name} {row[name]}" for name in apart)])
        found.setdefault(label, []).append((row[x], y(row)))
    return [Series(label, tuple(sorted(points))) for label, points in found.items() if len(points) > 1]
