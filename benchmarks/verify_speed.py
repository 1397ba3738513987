"""How long `tilecheck verify kernels/` takes cold, and how that compares with importing what it needs.

    python benchmarks/verify_speed.py [--runs N] [PATH ...]

Each run is a fresh process without a cache. The ratio is what to compare between machines and versions: both
sides grow alike on a slow or busy machine.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORTS = "import z3, libcst, networkx"


def seconds(command: list[str]) -> float:
    """Wall time of one process; a crash or a wrong call ends the measurement, verdicts do not."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - start
    if done.returncode not in (0, 1, 3):
        last = "\n".join(done.stderr.splitlines()[-20:])
        raise SystemExit(f"{' '.join(command)} exited {done.returncode}\n{last}")
    return elapsed


def medians(commands: list[list[str]], runs: int) -> list[float]:
    """The median of each command; they take turns, so that a busy minute falls on all of them."""
    times: list[list[float]] = [[] for _ in commands]
    for command in commands:
        seconds(command)  # once unmeasured: byte code is compiled and files are read into memory
    for _ in range(runs):
        for command, measured in zip(commands, times, strict=True):
            measured.append(seconds(command))
    return [statistics.median(measured) for measured in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each command (default: 5)")
    parser.add_argument("paths", nargs="*", default=["kernels/"], help="what to verify (default: kernels/)")
    options = parser.parse_args()
    python = sys.executable
    commands = {
        f"tilecheck verify {' '.join(options.paths)}": [
            python,
            "-m",
            "tilecheck",
            "verify",
            "--no-cache",
            *options.paths,
        ],
        "tilecheck --version": [python, "-m", "tilecheck", "--version"],
        f'python -c "{IMPORTS}"': [python, "-c", IMPORTS],
        "python -c pass": [python, "-c", "pass"],
    }
    measured = medians(list(commands.values()), options.runs)
    yardstick = measured[2]
    width = max(map(len, commands))
    print(f"median of {options.runs} cold runs")
    for name, value in zip(commands, measured, strict=True):
        print(f"{name:<{width}}  {value:7.3f} s  {value / yardstick:6.2f} x imports")


if __name__ == "__main__":
    main()
