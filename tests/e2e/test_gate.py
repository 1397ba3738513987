"""The gate as a process: order, limits, crashes, interrupts, and callers that behave in every way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilecheck.gate.protocol import MAX_LINE
from tilecheck.gate.service import AHEAD

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

HEAD = "import cuda.tile as ct\nimport torch\n"
COPY = f"""{HEAD}
@ct.kernel
def copy(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)))
"""
RACY = COPY.replace("out, index=(i,)", "out, index=(i // 2,)")
NO_KERNEL = "x = 1\n"
TIMES = re.compile(r'"time_ms": [0-9.e+-]+')


def _nested(depth: int) -> str:
    index = "i"
    for number in range(depth):
        index = f"({index} * 7 + 1) % (x.shape[0] + {number})"
    return index


HANGS = COPY.replace("out, index=(i,)", f"out, index=({_nested(60)},)")
DOUBLES = "def run(x, out):\n    n = [1]\n" + "    n = n + n\n" * 60 + "    copy[(len(n),)](x, out)\n"
DOUBLES = DOUBLES.replace(
    "copy[(len(n),)](x, out)", "ct.launch(torch.cuda.current_stream(), (len(n),), copy, (x, out, 1))"
)


def line(name: str | int, source: str = COPY, **more: object) -> bytes:
    return json.dumps({"id": name, "source": source, **more}).encode() + b"\n"


class Gate:
    """A running gate, used as a caller uses it."""

    def __init__(self, folder: Path, *arguments: str, hash_seed: str = "0") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tilecheck", "gate", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def write(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def read(self) -> dict[str, Any]:
        said = self.stdout.readline()
        assert said.endswith(b"\n"), said
        answer: dict[str, Any] = json.loads(said)
        assert list(answer) == ["id", "kernels", "diagnostics", "error"]
        return answer

    def ask(self, data: bytes) -> dict[str, Any]:
        self.write(data)
        return self.read()

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in children.split()]

    def end(self, data: bytes = b"") -> tuple[list[dict[str, Any]], int]:
        """Write the rest, close the input, and return the answers that come and the exit code."""
        out, err = self.process.communicate(data, timeout=60)
        assert err == b""
        return [json.loads(said) for said in out.splitlines()], self.process.returncode


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Any]:
    started: list[Gate] = []

    def start(*arguments: str, hash_seed: str = "0") -> Gate:
        started.append(Gate(tmp_path, *arguments, hash_seed=hash_seed))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()


def _gone(processes: list[int], seconds: float) -> bool:
    """Whether processes end within some time. A zombie has ended; whoever started it has not looked yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(_is_alive(process) for process in processes):
            return True
        time.sleep(0.02)
    return False


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- lines and answers ---------------------------------------------------------------------------------------


def test_one_line_at_a_time(gate) -> None:
    one = gate("-j1")
    assert one.ask(line("a"))["kernels"][0]["verdict"] == "conditional"
    assert one.ask(line("b", RACY))["kernels"][0]["verdict"] == "violated"
    assert one.ask(b"\n")["error"] == "line 3: the line is empty"
    assert one.ask(line("c"))["id"] == "c"
    assert one.end() == ([], 0)


def test_answers_come_in_the_order_of_lines_and_nothing_else_comes(gate) -> None:
    bad = [
        b"{\n",
        b"\xff\n",
        b'{"id": 1}\n',
        line("p", "x = (\n"),
        line("q", "raise SystemExit\nprint('x')\n" + COPY),
    ]
    many = [line(f"{n}", RACY if n % 3 else COPY, contracts=[f"T <= {n + 1}"]) for n in range(12)]
    lines = [made for pair in zip(many, [*bad, *([b"\n"] * 7)], strict=True) for made in pair]
    answers, code = gate("-j2").end(b"".join(lines))
    assert code == 0
    assert [a["id"] for a in answers[::2]] == [f"{n}" for n in range(12)]
    assert [a["kernels"][0]["verdict"] for a in answers[::2]] == ["conditional", "violated", "violated"] * 4
    assert [bool(a["error"]) for a in answers[1::2]] == [True] * 4 + [False] + [True] * 7


def test_the_last_line_needs_no_newline_and_no_line_gives_no_answer(gate) -> None:
    answers, code = gate().end(line("a", NO_KERNEL).rstrip(b"\n"))
    assert ([a["error"] for a in answers], code) == (["the source has no kernel"], 0)
    assert gate().end() == ([], 0)


def test_lines_of_one_id_are_told_apart_by_their_order(gate) -> None:
    answers, _ = gate("-j2").end(line("a") + line(7) + line("a", RACY) + line(7))
    assert [a["id"] for a in answers] == ["a", 7, "a", 7]
    assert [a["kernels"][0]["verdict"] for a in answers] == [
        "conditional",
        "conditional",
        "violated",
        "conditional",
    ]
    assert [a["error"] for a in answers] == [None] * 4


def test_processes_and_hash_seeds_change_nothing(gate) -> None:
    lines = b"".join(line(f"{n}", RACY if n % 2 else COPY, contracts=[f"T <= {n + 1}"]) for n in range(6))
    said = {
        TIMES.sub("", json.dumps(gate(jobs, hash_seed=seed).end(lines)[0]))
        for jobs, seed in (("-j1", "0"), ("-j2", "1"), ("-j3", "random"))
    }
    assert len(said) == 1


def test_workers_are_replaced_and_no_line_is_lost(gate) -> None:
    answers, code = gate("-j2").end(b"".join(line(f"{n}", NO_KERNEL) for n in range(1200)))
    assert [a["id"] for a in answers] == [f"{n}" for n in range(1200)]
    assert {a["error"] for a in answers} == {"the source has no kernel"}
    assert code == 0


# ---- limits --------------------------------------------------------------------------------------------------


def test_a_kernel_that_hangs_costs_itself(gate) -> None:
    one = gate("-j1", "--timeout", "1")
    start = time.monotonic()
    answers, code = one.end(line("a") + line("hangs", HANGS) + line("b"))
    assert [a["id"] for a in answers] == ["a", "hangs", "b"]
    assert [a["error"] for a in answers] == [None, "the analysis takes more than 1 s", None]
    assert answers[1]["kernels"] == answers[1]["diagnostics"] == []
    assert code == 0
    assert time.monotonic() - start < 30


def test_a_source_that_takes_memory_costs_itself(gate) -> None:
    large = f"{COPY}\nNUMBERS = [{'1, ' * 1_500_000}]\n"
    answers, code = gate("-j1", "--memory", "200").end(line("a") + line("big", large) + line("b"))
    assert [a["error"] for a in answers] == [None, "the analysis needs more than 200 MiB", None]
    assert code == 0


def test_a_list_of_the_launch_that_doubles_costs_nothing(gate) -> None:
    (answer,), code = gate("-j1", "--memory", "200").end(line("doubles", launch=DOUBLES))
    assert (answer["error"], code) == (None, 0)
    assert answer["kernels"][0]["verdict"] in ("conditional", "unknown", "violated")


def test_a_process_that_crashes_costs_its_line(gate) -> None:
    one = gate("-j1", "--timeout", "60")
    one.ask(line("a"))
    (worker,) = one.workers()
    one.write(line("crashes", HANGS))
    time.sleep(0.3)  # until the worker has read it
    os.kill(worker, signal.SIGSEGV)
    assert one.read() == {
        "id": "crashes",
        "kernels": [],
        "diagnostics": [],
        "error": "the analysis crashed (SIGSEGV)",
    }
    assert one.ask(line("b"))["error"] is None
    assert one.workers() != [worker]
    assert one.end() == ([], 0)


def test_a_process_that_crashes_while_nothing_is_asked_costs_nothing(gate) -> None:
    one = gate("-j1")
    one.ask(line("a"))
    os.kill(one.workers()[0], signal.SIGKILL)
    assert one.ask(line("b"))["error"] is None
    assert one.end() == ([], 0)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (COPY.replace("out, index=(i,)", "out, index=(i * 10**400,)"), None),
        (COPY.replace("out, index=(i,)", "out, index=(i ** 99999999,)"), None),
        (
            COPY.replace("out, index=(i,)", f"out, index=({'(' * 1000}i{')' * 1000},)"),
            "too many nested parentheses",
        ),
        (COPY.replace("out, index=(i,)", f"out, index=({'+'.join(['i'] * 5000)},)"), "nested too deeply"),
        (COPY.replace("i = ct.bid(0)", "i = (lambda f: f(f))(lambda f: f(f))"), None),
        (COPY + "# " + "x" * 5_000_000, None),
        (COPY + "\0", "null byte"),
    ],
)
def test_hostile_sources_are_answered(gate, source: str, error: str | None) -> None:
    answers, code = gate("-j1", "--timeout", "30").end(line("a", source) + line("b"))
    assert code == 0
    assert answers[1]["error"] is None
    if error is None:
        assert answers[0]["error"] is None
        assert answers[0]["kernels"][0]["verdict"] != "proved"
    else:
        assert error in answers[0]["error"]


def test_an_endless_host_loop_is_answered(gate) -> None:
    host = "def run(x, out):\n    n = 0\n    while True:\n        n += 1\n"
    host += "    ct.launch(0, (n,), copy, (x, out, 1))\n"
    (answer,), _ = gate("-j1").end(line("a", launch=host))
    assert answer["kernels"][0]["verdict"] == "conditional"


def test_a_line_of_50_megabytes_is_refused_and_not_kept(gate) -> None:
    one = gate("-j1")
    one.ask(line("a"))
    assert one.ask(b"x" * 50_000_000 + b"\n") == {
        "id": None,
        "kernels": [],
        "diagnostics": [],
        "error": f"line 2: the line has 50,000,000 bytes; lines over {MAX_LINE:,} bytes are not read",
    }
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{one.process.pid}/status").read_text())
    assert peak is not None
    assert int(peak[1]) < 400_000
    assert one.ask(line("b"))["error"] is None
    assert one.end() == ([], 0)


def test_input_is_not_read_ahead_of_answers(gate) -> None:
    """A caller that only writes is held up, in bounded memory; what it wrote is answered."""
    one = gate("-j1")
    one.ask(line("first", NO_KERNEL))
    os.set_blocking(one.stdin.fileno(), False)
    pad = "# " + "x" * 2000 + "\n"
    written = 0
    end = time.monotonic() + 20
    held = time.monotonic()
    while time.monotonic() < end and time.monotonic() - held < 1.0:
        try:
            os.write(one.stdin.fileno(), line(f"{written:06}", NO_KERNEL + pad))  # whole: less than PIPE_BUF
            written += 1
            held = time.monotonic()
        except BlockingIOError:  # noqa: PERF203 - what is awaited
            time.sleep(0.01)
    # What stands in the two pipes and is read ahead; answers are smaller than lines.
    assert AHEAD < written < 20 * AHEAD
    os.set_blocking(one.stdin.fileno(), True)
    answers, code = one.end()
    assert [a["id"] for a in answers] == [f"{n:06}" for n in range(written)]
    assert code == 0


# ---- the end -------------------------------------------------------------------------------------------------


def test_an_interrupt_ends_all_at_once(gate) -> None:
    one = gate("-j2")
    one.ask(line("a"))
    one.write(line("hangs", HANGS) + line("too", HANGS))
    time.sleep(0.3)
    workers = one.workers()
    assert len(workers) == 2
    os.kill(one.process.pid, signal.SIGINT)
    assert one.process.wait(timeout=10) == 130
    assert one.process.stderr.read() == b"tilecheck: interrupted\n"
    assert _gone(workers, 5)


def test_a_reader_that_goes_away_ends_it(gate) -> None:
    one = gate("-j1")
    one.ask(line("a"))
    workers = one.workers()
    one.stdout.close()
    one.write(line("b"))
    assert one.process.wait(timeout=20) == 0
    assert one.process.stderr.read() == b""
    assert _gone(workers, 5)


def test_workers_of_a_service_that_was_killed_end(gate) -> None:
    one = gate("-j2", "--timeout", "2")
    one.ask(line("a"))
    one.write(line("hangs", HANGS) + line("b"))
    time.sleep(0.5)
    workers = one.workers()
    one.process.kill()
    assert _gone(workers, 10)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--timeout", "0"], "`0` is not a number of seconds"),
        (["--timeout", "nan"], "`nan` is not a number of seconds"),
        (["--memory", "1"], "`1` is not a number of MiB from 64"),
        (["-j", "0"], "`0` is not a number of processes"),
        (["kernels.py"], "unrecognized arguments: kernels.py"),
    ],
)
def test_wrong_calls(tmp_path: Path, arguments: list[str], problem: str) -> None:
    command = [sys.executable, "-m", "tilecheck", "gate", *arguments]
    ran = subprocess.run(command, cwd=tmp_path, input="", capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert problem in ran.stderr


def test_no_input_at_all_is_a_wrong_call(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tilecheck gate <&-"
    ran = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "standard input" in ran.stderr


def test_its_folder_is_removed(gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    one = gate("-j1")
    one.ask(line("a"))
    assert [path.name.startswith("tilecheck-gate-") for path in tmp_path.iterdir()] == [True]
    assert one.end() == ([], 0)
    assert list(tmp_path.iterdir()) == []


def test_the_example_of_the_manual(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/gate.md").read_text(encoding="utf-8")
    code, printed = re.findall(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", text, re.DOTALL)[0]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == printed


def test_what_a_source_promises_counts_only_where_sources_are_trusted(gate) -> None:
    source = COPY.replace("@ct.kernel", "# tilecheck: requires T >= 16 -- large tiles\n@ct.kernel")
    answer = gate("-j1").ask(line("a", source))
    assert answer["kernels"][0]["premises"] == []
    assert [(d["code"], d["line"]) for d in answer["diagnostics"]] == [("TC910", 4)]
    answer = gate("-j1", "--trust-source").ask(line("a", source))
    assert [p["origin"] for p in answer["kernels"][0]["premises"]] == ["source"]
    assert answer["diagnostics"] == []
