"""How much faster a cold run is with several processes, and from how many kernels on they are worth it.

    python benchmarks/parallel.py FOLDER [--jobs N] [--runs N]    # such as an unpacked wheel of Triton kernels
    python benchmarks/parallel.py --threshold

Each run is a fresh process without a cache; runs with one process and with several take turns, and the fastest
of each counts. Compare only where the load that is printed is that of this script: other work shows as a ratio
that is too low.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WANTED = 1.4  # a cold run over a large package, with two processes
TIMES = re.compile(r'"(time_ms|time_s|parse_time_s)": [0-9.e+-]+')
# Of little and of more work than most.
SMALL = """import cuda.tile as ct


@ct.kernel
def double{0}(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * {0})
"""


def run(folder: str, jobs: int) -> tuple[float, str]:
    """Wall time of a run over a folder, and what it says without times."""
    command = [sys.executable, "-m", "tilecheck", "verify", "--no-cache", "--format", "json"]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, f"-j{jobs}", folder], cwd=tempfile.gettempdir(), capture_output=True, text=True, check=False
    )
    spent = time.perf_counter() - start
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"tilecheck verify {folder} ended with {done.returncode}\n{done.stderr[-2000:]}")
    return spent, TIMES.sub(r'"\1": 0', done.stdout)


def compare(folder: str, jobs: int, runs: int) -> tuple[float, float]:
    """The fastest time with one process and with `jobs`; both must say the same."""
    alone: list[float] = []
    together: list[float] = []
    said: set[str] = set()
    for _ in range(runs):
        for number, times in ((1, alone), (jobs, together)):
            spent, text = run(folder, number)
            times.append(spent)
            said.add(text)
    if len(said) != 1:
        raise SystemExit("runs with different numbers of processes say different things")
    summary = json.loads(said.pop())["summary"]
    print(f"{folder}: {summary['files']} files, {summary['kernels']} kernels")
    return min(alone), min(together)


def show_load(when: str) -> None:
    one, five, _ = os.getloadavg()
    print(f"load {when}: {one:.2f} (a minute), {five:.2f} (five), {os.cpu_count()} processors")


def measure(folder: str, jobs: int, runs: int) -> int:
    show_load("before")
    alone, together = compare(folder, jobs, runs)
    print(
        f"-j1 {alone:.2f} s, -j{jobs} {together:.2f} s: {alone / together:.2f} times faster (at least {WANTED})"
    )
    show_load("after")
    return 0 if alone / together >= WANTED else 1


def measure_threshold(runs: int) -> int:
    """For more and more files, whether two processes are faster than one."""
    source = (Path(__file__).parents[1] / "kernels" / "softmax.py").read_text()
    show_load("before")
    for name in ("small", "as in kernels/"):
        for count in (2, 4, 8, 16, 32):
            with tempfile.TemporaryDirectory() as folder:
                for number in range(count):
                    text = (
                        SMALL.format(number + 2)
                        if name == "small"
                        else source.replace("softmax", f"s{number}x")
                    )
                    Path(folder, f"k{number}.py").write_text(text)
                alone, together = compare(folder, 2, runs)
            print(
                f"  {count:>2} files, {name}: -j1 {alone:.2f} s, -j2 {together:.2f} s, {alone / together:.2f}"
            )
    show_load("after")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes (default: 2)")
    parser.add_argument("--runs", type=int, default=1, help="of each kind (default: 1)")
    parser.add_argument("--threshold", action="store_true", help="find where processes begin to be worth it")
    arguments = parser.parse_args()
    if arguments.threshold:
        return measure_threshold(arguments.runs)
    if arguments.folder is None:
        parser.error("name a folder")
    return measure(str(Path(arguments.folder).resolve()), arguments.jobs, arguments.runs)


if __name__ == "__main__":
    sys.exit(main())
