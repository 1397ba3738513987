"""What a run rests on: the verdicts of its kernels, what was checked of launches, and the captured graph."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from qwen3.decoder import Decoder

CHECKED = (
    "every launch: grid, shapes, strides, types and numbers against what the proof of its kernel asks for",
    "every launch: what it reads and writes against all work in flight, by ranges of memory",
    "every dependent launch: what it touches before its wait against all launches that may still run",
    "every captured graph: its memory lives as long as the graph, and its inputs change between launches alone",
)


def certificate(model: str, decoder: Decoder) -> str:
    """The certificate of a decoder as JSON."""
    machine = decoder.machine
    kernels = []
    for record, launches in machine.launched():
        kernels.append(
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
        )
    told: dict[str, Any] = {
        "program": "qwen3",
        "model": model,
        "machine": machine.name,
        "checked": CHECKED,
        "kernels": kernels,
        "graph": asdict(decoder.describe()),
    }
    return json.dumps(told, indent=2) + "\n"
