"""What a run rests on: the verdicts of its kernels, what was checked of launches, and the captured graphs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tilecheck
from qwen3.decoder import Decoder
from qwen3.errors import UserError

CHECKED = (
    "every launch: grid, shapes, strides, types and numbers against what the proof of its kernel asks for",
    "every launch: what it reads and writes against all work in flight, by ranges of memory",
    "every dependent launch: what it touches before its wait against all launches that may still run",
    "every captured graph: its memory lives as long as the graph, and its inputs change between launches alone",
)


def begin(path: Path) -> None:
    """Empty the file of a certificate: a run that does not end well leaves none, and no earlier one either.

    Raises:
        UserError: it cannot be written.
    """
    _write(path, "")


def finish(path: Path, model: str, decoder: Decoder) -> None:
    """Write the certificate of a run.

    Raises:
        UserError: it cannot be written.
    """
    _write(path, json.dumps(certificate(model, decoder), indent=2) + "\n")


def certificate(model: str, decoder: Decoder) -> dict[str, Any]:
    """The certificate of what a decoder has done."""
    machine = decoder.machine
    kernels = [
        {
            "name": record.name,
            "file": record.file,
            "line": record.line,
            "language": record.language,
            "verdict": record.verdict,
            "conditions": record.conditions,
            "standing": record.standing,
            "contracts": [contract.text for contract in record.contracts],
            "sources": record.sources,
            "launches": launches,
        }
        for record, launches in machine.launched()
    ]
    return {
        "program": "qwen3",
        "tilecheck": tilecheck.__version__,
        "model": model,
        "machine": machine.name,
        "checked": CHECKED,
        "kernels": kernels,
        "graphs": [asdict(graph) for graph in decoder.captured],
    }


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
