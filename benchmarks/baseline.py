"""Verdicts, conditions and statuses of launches, by kernel, as JSON; and what differs between two of them.

    python benchmarks/baseline.py write OUT PATH... [--jobs N]
    python benchmarks/baseline.py diff OLD NEW

`write` verifies files and folders without a cache. `diff` prints what changed, and ends with 1 if anything did;
steps of the solver and times are summed up and never count as a change.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tilecheck import verify_paths
from tilecheck.model import KernelReport
from tilecheck.options import Options


def _record(kernel: KernelReport) -> dict[str, Any]:
    return {
        "verdict": kernel.verdict.value,
        "reason": kernel.reason,
        "conditions": list(kernel.conditions),
        "launches": [
            f"{launch.site.file}: {c.text}: {c.status}" for launch in kernel.launches for c in launch.conditions
        ],
        "steps": kernel.steps,
        "ms": round(kernel.time_ms, 1),
    }


def write(out: Path, paths: list[str], jobs: int) -> int:
    report = verify_paths(paths, Options(jobs=jobs))
    kernels: dict[str, dict[str, Any]] = {}
    for kernel in report.kernels:
        place = f"{kernel.site.file}::{kernel.name}"
        while place in kernels:
            place += "'"
        kernels[place] = _record(kernel)
    findings = sorted(f"{d.site.file}::{d.kernel}: {d.code}: {d.message}" for d in report.diagnostics)
    out.write_text(json.dumps({"kernels": kernels, "findings": findings}, indent=1), encoding="utf-8")
    return 0


def diff(old: Path, new: Path) -> int:
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    changed = 0
    for name in sorted(before["kernels"].keys() | after["kernels"].keys()):
        one, other = before["kernels"].get(name), after["kernels"].get(name)
        if one is None or other is None:
            print(f"{name}: {'new' if one is None else 'gone'}")
            changed += 1
            continue
        for key in ("verdict", "reason", "conditions", "launches"):
            if one[key] != other[key]:
                changed += 1
                print(f"{name}: {key}\n    - {one[key]}\n    + {other[key]}")
    for sign, here, there in (("-", before, after), ("+", after, before)):
        for finding in here["findings"]:
            if finding not in there["findings"]:
                changed += 1
                print(f"{sign} {finding}")
    for key in ("steps", "ms"):
        sums = [sum(k[key] or 0 for k in found["kernels"].values()) for found in (before, after)]
        print(f"{key}: {sums[0]:.0f} -> {sums[1]:.0f}")
    print(f"{changed} changes in {len(after['kernels'])} kernels")
    return int(changed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True, dest="verb")
    one = verbs.add_parser("write")
    one.add_argument("out", type=Path)
    one.add_argument("paths", nargs="+")
    one.add_argument("--jobs", type=int, default=1)
    two = verbs.add_parser("diff")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.verb == "write":
        return write(given.out, given.paths, given.jobs)
    return diff(given.old, given.new)


if __name__ == "__main__":
    sys.exit(main())
