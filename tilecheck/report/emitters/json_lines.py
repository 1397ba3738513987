"""The machine interface as JSON lines: one object a line, each with a `type`, for readers of streams."""

from __future__ import annotations

import json
from typing import Any

from tilecheck.report.emitters.json import SCHEMA_VERSION, to_object
from tilecheck.report.run import Run


def render(run: Run) -> str:
    """A `run` line, a line for each kernel, host function and finding, and a `summary` line that says
    `complete`."""
    whole = to_object(run.report)
    lines: list[dict[str, Any]] = [
        {"type": "run", "schema_version": SCHEMA_VERSION, "tool": whole["tool"]},
        *({"type": "kernel", **kernel} for kernel in whole["kernels"]),
        *({"type": "host", **host} for host in whole["hosts"]),
        *({"type": "diagnostic", **diagnostic} for diagnostic in whole["diagnostics"]),
        {"type": "summary", **whole["summary"], "complete": whole["complete"]},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
