"""Streams generated kernels through `tilecheck gate`: how many a second, at what latency, in how much memory.

    python benchmarks/gate.py [--count N] [-j N] [--soundness PART] [--hostile PART] [--seed N] [--timeout S]

The lines are those of `gate_kernels.py`, every kernel a text of its own; nothing is cached. The real command
reads them from a pipe, with as many of them ahead as it takes. Latency is the time from a line's being written
to its answer, in a second run of a part of them that writes one line and reads one. Memory is the resident size
of the command's process and of its workers, sampled through the run. The exit code is 1 when a bar is missed, a
broken kernel is proved, or an answer is missing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gate_kernels import Line, lines

RATE_BAR = 150.0  # kernels a second
GROWTH_BAR = 1.25  # the most that all processes may have in the last quarter, of what they had in the second
_ALONE = 200  # lines whose latency is taken


@dataclass
class Memory:
    """The resident memory of a process and its children, in MiB, by seconds. Mutable: sampled by a thread."""

    process: int
    samples: list[tuple[float, float, float]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        start = time.monotonic()
        while not self.ended.wait(0.5):
            own, workers = _resident(self.process), sum(map(_resident, _children(self.process)))
            if own:
                self.samples.append((time.monotonic() - start, own, workers))

    def quarter(self, number: int) -> float:
        """The mean of all processes in one quarter of the run."""
        many = max(1, len(self.samples) // 4)
        part = self.samples[number * many : (number + 1) * many] or self.samples
        return statistics.mean(own + workers for _, own, workers in part)


def _resident(process: int) -> float:
    """What a process has to itself: pages that it shares with others count by their part."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:  # it has just ended
        pass
    return 0.0


def _children(process: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _command(arguments: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-m", "tilecheck", "gate", "-j", str(arguments.jobs)]
    return [*command, "--timeout", str(arguments.timeout), "--memory", str(arguments.memory)]


def _started(arguments: argparse.Namespace) -> subprocess.Popen[bytes]:
    # Not in the checkout, whose folders `kernels` and `rules` would shadow modules.
    return subprocess.Popen(
        _command(arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tempfile.gettempdir()
    )


def _file(made: list[Line]) -> Path:
    with tempfile.NamedTemporaryFile(prefix="gate-", suffix=".jsonl", delete=False) as file:
        file.writelines(line.data for line in made)
    return Path(file.name)


@dataclass(frozen=True)
class Run:
    """What one stream gave."""

    answers: list[dict[str, Any]]
    seconds: float
    cpu: float
    code: int
    memory: Memory


def streamed(made: list[Line], arguments: argparse.Namespace) -> Run:
    """All lines at once, from a pipe."""
    file = _file(made)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = _started(arguments)
    memory = Memory(process.pid)
    watcher = threading.Thread(target=memory.watch)
    watcher.start()
    writer = threading.Thread(target=_write, args=(process, file))
    writer.start()
    assert process.stdout is not None
    answers = [json.loads(line) for line in process.stdout]
    code = process.wait()
    seconds = time.monotonic() - start
    memory.ended.set()
    writer.join()
    watcher.join()
    file.unlink()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(answers, seconds, cpu, code, memory)


def _write(process: subprocess.Popen[bytes], file: Path) -> None:
    assert process.stdin is not None
    with file.open("rb") as data, process.stdin:
        for line in data:
            process.stdin.write(line)


def latencies(made: list[Line], arguments: argparse.Namespace) -> list[float]:
    """Seconds from writing a line to reading its answer, one line at a time."""
    process = _started(arguments)
    assert process.stdin is not None
    assert process.stdout is not None
    found = []
    for number, line in enumerate(made):
        start = time.monotonic()
        process.stdin.write(line.data)
        process.stdin.flush()
        process.stdout.readline()
        if number:  # the first waits for the command to start
            found.append(time.monotonic() - start)
    process.stdin.close()
    process.wait()
    return found


def _verdict(answer: dict[str, Any]) -> str:
    if answer["error"] is not None:
        return "error"
    return "+".join(sorted({kernel["verdict"] for kernel in answer["kernels"]}))


def _milliseconds(answer: dict[str, Any]) -> float:
    """What the analysis of its kernels took, without reading the source; nothing for an error."""
    return sum(float(kernel["time_ms"]) for kernel in answer["kernels"])


def _what(error: str) -> str:
    """An error without its particulars."""
    text = error.split(": ", 1)[-1] if error.startswith(("line ", "source.py:")) else error
    return " ".join(text.split()[:6])


def _print(made: list[Line], run: Run) -> list[str]:
    verdicts: dict[str, Counter[str]] = {}
    times: defaultdict[str, float] = defaultdict(float)
    errors: Counter[str] = Counter()
    wrong = []
    for line, answer in zip(made, run.answers, strict=True):
        verdict = _verdict(answer)
        verdicts.setdefault(line.family, Counter())[verdict] += 1
        times[line.family] += _milliseconds(answer)
        if verdict == "error":
            errors[_what(str(answer["error"]))] += 1
        if line.broken and verdict == "proved":
            wrong.append(f"{line.name} is broken and proved")
    for family, counts in sorted(verdicts.items()):
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        print(f"  {family:20} {counts.total():6} {times[family] / counts.total():7.1f} ms  {told}")
    for error, count in errors.most_common(12):
        print(f"  {count:6} {error}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--soundness", type=float, default=0.05, metavar="PART")
    parser.add_argument("--hostile", type=float, default=0.01, metavar="PART")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=2.0)
    parser.add_argument("--memory", type=int, default=512)
    arguments = parser.parse_args()
    made = list(lines(arguments.count, arguments.seed, arguments.soundness, arguments.hostile))
    texts = len({line.data for line in made})
    print(f"{len(made)} lines, {texts} of them unlike all others; load {os.getloadavg()}")
    print("$", " ".join(_command(arguments)[1:]))
    run = streamed(made, arguments)
    problems = _problems(made, run)
    if not problems:
        problems += _print(made, run)
    rate = len(made) / run.seconds
    print(
        f"{rate:.1f} kernels a second (bar {RATE_BAR:g}): {run.seconds:.1f} s, processor {run.cpu:.1f} s, "
        f"{1000 * run.cpu / len(made):.1f} ms of it a kernel; load {os.getloadavg()}"
    )
    if rate < RATE_BAR:
        problems.append(f"{rate:.1f} kernels a second")
    many = max(1, len(run.memory.samples) // 8)
    for seconds, own, workers in run.memory.samples[many::many]:
        print(f"  {seconds:7.1f} s  service {own:6.1f} MiB  workers {workers:7.1f} MiB")
    growth = run.memory.quarter(3) / run.memory.quarter(1)
    print(f"memory in the last quarter over that in the second: {growth:.2f} (bar {GROWTH_BAR:g})")
    if growth > GROWTH_BAR:
        problems.append(f"memory grew by {growth:.2f}")
    alone = [line for line in itertools.islice(made, _ALONE) if line.family not in ("hostile", "no line")]
    waited = sorted(latencies(alone, arguments))
    p50, p95 = waited[len(waited) // 2], waited[int(0.95 * len(waited))]
    print(f"latency of {len(waited)} lines, one at a time: p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms")
    for problem in problems:
        print("missed:", problem)
    return 1 if problems else 0


def _problems(made: list[Line], run: Run) -> list[str]:
    problems = [] if run.code == 0 else [f"the command ended with {run.code}"]
    if len(run.answers) != len(made):
        problems.append(f"{len(run.answers)} answers to {len(made)} lines")
    named = [line.name for line in made if line.family != "no line"]
    told = [answer["id"] for answer, line in zip(run.answers, made, strict=False) if line.family != "no line"]
    if named[: len(told)] != told:
        problems.append("answers are not in the order of the lines")
    return problems


if __name__ == "__main__":
    sys.exit(main())
