"""The installed program in a process of its own: imports, signals, pipes and the files that people have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KERNEL = """import cuda.tile as ct


@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
RACE = KERNEL.replace("ct.bid(0)", "ct.bid(0) // 2")
HEAVY = ("libcst", "networkx", "z3", "rich", "cuda", "numpy")


def tilecheck(*arguments: str, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PRE_COMMIT", "FORCE_COLOR", "GITHUB_ACTIONS")
    }
    command = [sys.executable, "-m", "tilecheck", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, **more
    )


def loaded(*arguments: str, cwd: Path) -> list[str]:
    """Which heavy packages a command loads."""
    code = (
        "import io, sys; from tilecheck.cli import main\n"
        f"main({list(arguments)!r}, stdout=io.StringIO(), stderr=io.StringIO())\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.replace("'", '"'))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["verify", "--help"],
        ["explain", "TC201"],
        ["explain", "unknown/budget"],
        ["check", "plain.py", "folder"],
        ["check", "broken.py"],
        ["check", "plain.py", "broken.py", "--format", "sarif", "--statistics"],
        ["verify", "plain.py"],
        ["verify", "missing.py"],
    ],
)
def test_cheap_commands_load_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "other.py").write_text("import torch\n")
    assert loaded(*arguments, cwd=tmp_path) == []


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    code = f"import sys, tilecheck; print([n for n in {(*HEAVY, 'argparse')!r} if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "[]\n"


def test_verify_a_good_and_a_bad_kernel(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(KERNEL)
    (tmp_path / "bad.py").write_text(RACE)
    good = tilecheck("verify", "good.py", cwd=tmp_path)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "grid[0] <= cdiv(out.shape[0], T)" in good.stdout
    bad = tilecheck("verify", ".", cwd=tmp_path)
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert bad.stdout.startswith("error[TC201]: ")
    assert "bad.py:7:5" in bad.stdout
    assert "violated" in bad.stdout
    assert tilecheck("verify", "good.py::double", "bad.py::double", cwd=tmp_path).returncode == 1
    missing = tilecheck("verify", "good.py::triple", cwd=tmp_path)
    assert missing.returncode == 2
    assert "double" in missing.stderr


def test_json_of_a_race(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(RACE)
    found = json.loads(tilecheck("verify", "bad.py", "--format", "json", cwd=tmp_path).stdout)
    (kernel,) = found["kernels"]
    assert (kernel["file"], kernel["line"], kernel["name"], kernel["verdict"]) == (
        "bad.py",
        5,
        "double",
        "violated",
    )
    race = next(d for d in found["diagnostics"] if d["code"] == "TC201")
    assert (race["file"], race["line"], race["column"], race["kernel"]) == ("bad.py", 7, 5, "double")
    assert race["witness"]["replayed"] is True
    assert len(race["witness"]["blocks"]) == 2
    assert found["complete"] is True


def test_the_users_file_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "exits.py").write_text(KERNEL.replace("\n\n\n", "\nraise SystemExit(7)\n\n\n", 1))
    ran = tilecheck("verify", "exits.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "data",
    [
        ("\ufeff" + KERNEL).encode(),
        KERNEL.replace("\n", "\r\n").encode(),
        KERNEL.replace("    ", "\t").encode(),
        ("# -*- coding: latin-1 -*-\n# \xe9\n" + KERNEL).encode("latin-1"),
        ("\x0c\n" + KERNEL).encode(),
        (KERNEL + "".join(f"\n\ndef f{n}(x):\n    return x + {n}\n" for n in range(2_500))).encode(),
    ],
    ids=["BOM", "CRLF", "tabs", "latin-1", "form feed", "10000 lines"],
)
def test_every_layout_of_a_file_is_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "k.py").write_bytes(data)
    ran = tilecheck("verify", "k.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (tmp_path / "k.py").write_bytes(data.replace(b"ct.bid(0)", b"ct.bid(0) // 2"))
    ran = tilecheck("verify", "k.py", "--format", "concise", cwd=tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    column = 2 if b"\t" in data else 5
    row = next(n for n, text in enumerate(data.decode("latin-1").splitlines(), 1) if "ct.store" in text)
    row -= 1 if data.startswith(b"\x0c") else 0  # `splitlines` takes a form feed for a newline; Python does not
    assert f"k.py:{row}:{column}: error[TC201]" in ran.stdout


def test_a_file_that_does_not_parse_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(KERNEL)
    (tmp_path / "bad.py").write_text(KERNEL + "def f(:\n")
    ran = tilecheck("verify", ".", cwd=tmp_path)
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "error[TC901]: the file is not valid Python: invalid syntax" in ran.stdout
    assert "bad.py:8:7" in ran.stdout
    assert "good.py:5" in ran.stdout


def test_files_and_folders_that_are_odd(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to("..")
    (tmp_path / "loop" / "k.py").write_text(KERNEL)
    assert tilecheck("verify", "empty", cwd=tmp_path).returncode == 2
    assert tilecheck("check", "empty", cwd=tmp_path).returncode == 0
    assert tilecheck("verify", "missing.py", cwd=tmp_path).returncode == 2
    looped = json.loads(tilecheck("verify", "loop", "--format", "json", cwd=tmp_path).stdout)
    assert [kernel["file"] for kernel in looped["kernels"]] == ["loop/k.py"]
    beside = tilecheck("verify", "missing.py", "loop", cwd=tmp_path)
    assert beside.returncode == 3, beside.stdout + beside.stderr
    assert "missing.py" in beside.stdout


def test_output_does_not_depend_on_the_hash_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.py").write_text(RACE)
    (tmp_path / "good.py").write_text(KERNEL)
    outputs = set()
    for seed in ("0", "1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        found = json.loads(tilecheck("verify", ".", "--no-cache", "--format", "json", cwd=tmp_path).stdout)
        for timed in (
            found["summary"],
            *found["kernels"],
            *(o for k in found["kernels"] for o in k["obligations"]),
        ):
            for name in ("time_ms", "time_s", "parse_time_s"):
                timed.pop(name, None)
        outputs.add(json.dumps(found))
    assert len(outputs) == 1


def test_optimised_python_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(RACE)
    command = [
        sys.executable,
        "-O",
        "-m",
        "tilecheck",
        "verify",
        "bad.py",
        "--format",
        "concise",
        "-q",
        "--no-cache",
    ]
    optimised = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    plain = tilecheck("verify", "bad.py", "--format", "concise", "-q", "--no-cache", cwd=tmp_path)
    assert (optimised.returncode, optimised.stdout) == (plain.returncode, plain.stdout)


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(RACE)
    command = f"{sys.executable} -m tilecheck verify bad.py | head -n 1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == "1"
    assert ran.stderr == ""


def many(folder: Path) -> None:
    for number in range(6):
        (folder / f"k{number}.py").write_text(RACE if number == 2 else KERNEL)


def test_the_number_of_processes_changes_nothing_but_the_time(tmp_path: Path) -> None:
    many(tmp_path)
    runs = []
    for jobs in ([], ["-j1"]):
        report = json.loads(
            tilecheck("verify", ".", "--no-cache", "--format", "json", *jobs, cwd=tmp_path).stdout
        )
        obligations = [o for kernel in report["kernels"] for o in kernel["obligations"]]
        for timed in (report["summary"], *report["kernels"], *obligations):
            for name in ("time_ms", "time_s", "parse_time_s"):
                timed.pop(name, None)
        runs.append(report)
    assert runs[0] == runs[1]
    assert [k["verdict"] for k in runs[0]["kernels"]].count("violated") == 1


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_a_number_of_processes_that_is_none(tmp_path: Path, jobs: str) -> None:
    ran = tilecheck("verify", ".", f"-j{jobs}", cwd=tmp_path)
    assert (ran.returncode, "is not a number of processes" in ran.stderr) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("delay", [1.0, 1.5, 2.0])
def test_ctrl_c_ends_all_processes(tmp_path: Path, delay: float) -> None:
    """A terminal sends SIGINT to every process of the group."""
    many(tmp_path)
    for path in tmp_path.glob("*.py"):
        path.write_text("".join(KERNEL.replace("double", f"double{k}") for k in range(200)))
    command = [sys.executable, "-m", "tilecheck", "verify", ".", "-j2"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        time.sleep(delay)
        os.killpg(run.pid, signal.SIGINT)
        output = run.communicate(timeout=30)
    assert (run.returncode, *output) == (130, "", "tilecheck: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)


@pytest.mark.parametrize("where", ["signal.pause()", "exec('signal.pause()')"])
def test_interrupt_ends_with_130(where: str, tmp_path: Path) -> None:
    """Also in an `exec` of text, after which Python ends by the signal itself."""
    (tmp_path / "slow.py").write_text(
        "import signal, sys\n"
        "from tilecheck.cli import main\n"
        "from tilecheck.cli.engine import Engine\n"
        "class Slow(Engine):\n"
        "    def verify(self, paths, options):\n"
        "        signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0.1)\n"
        f"        {where}\n"
        "sys.exit(main(['verify', 'k.py'], engine=Slow()))\n"
    )
    command = [sys.executable, "-m", "slow"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "tilecheck: interrupted\n")


def test_show_prints_each_stage(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(KERNEL)
    for stage in ("ast", "ir", "borrow", "obligations", "smt"):
        ran = tilecheck("show", stage, "k.py::double", cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip()
