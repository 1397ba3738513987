"""The installed program where the shell, the disk and the names of files are against it: never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck.report.formats import FORMATS

RACE = """import cuda.tile as ct


@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0) // 2
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
GOOD = RACE.replace(" // 2", "")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells and file systems of POSIX")


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[bytes]]:
    """Runs a line of shell in a folder with a good and a racy kernel; `$T` is tilecheck."""
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(RACE)
    left_out = ("PRE_COMMIT", "CI", "FORCE_COLOR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment["T"] = f"{sys.executable} -m tilecheck"

    def run(line: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True
        )

    return run


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("$T verify bad.py >&-", 1, ""),
        ("$T verify missing.py 2>&-", 2, ""),
        ("$T verify bad.py >&- 2>&- <&-", 1, ""),
        ("$T verify - <&-", 2, "`-` reads standard input, which is closed"),
        ("$T verify bad.py >/dev/full", 2, "cannot write to standard output: no space left on device"),
        ("$T --help >/dev/full", 2, "cannot write to standard output"),
        ("$T verify bad.py --output-file /dev/full", 2, "no space left on device"),
        ('$T verify ""', 2, "a path is empty"),
        ("mkdir d && cd d && rmdir ../d && $T verify ../good.py", 2, "the working directory "),
        ("mkdir d && cd d && rmdir ../d && $T baseline show", 2, "the working directory "),
        ("mkdir d && cd d && rmdir ../d && $T explain TC201", 0, ""),
        ("$T verify 'x\033[31m.py'", 2, "no such file or directory"),
    ],
)
def test_streams_and_folders(
    shell: Callable[[str], subprocess.CompletedProcess[bytes]], line: str, code: int, says: str
) -> None:
    ran = shell(line)
    assert ran.returncode == code, ran.stderr.decode()
    assert says in ran.stderr.decode()
    assert b"Traceback" not in ran.stderr + ran.stdout
    assert b"\x1b" not in ran.stderr
    assert b"Exception ignored" not in ran.stderr


def test_names_of_files_in_every_format(
    shell: Callable[[str], subprocess.CompletedProcess[bytes]], tmp_path: Path
) -> None:
    names = ["esc\x1b[31m.py", "line\nend.py", "bytes\udcff.py", "quo'te\".py", "-rf.py"]
    (tmp_path / "d").mkdir()
    for name in names:
        (tmp_path / "d" / name).write_text(RACE)
    reports = " ".join(f"--report {format_}=r.{format_}" for format_ in FORMATS)
    ran = shell(f"$T verify -j1 d {reports}")
    assert ran.returncode == 1, ran.stderr.decode()
    assert b"\x1b" not in ran.stdout + ran.stderr
    for format_ in FORMATS:
        text = (tmp_path / f"r.{format_}").read_bytes().decode()
        assert text.count("TC201") >= len(names), format_
    json.loads((tmp_path / "r.sarif").read_text())
    ran = shell("$T baseline write -j1 --reason known d && $T verify -j1 d")
    assert ran.returncode == 0, ran.stderr.decode()


@pytest.mark.parametrize("settings", ["LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0", "COLUMNS=20"])
def test_terminals(shell: Callable[[str], subprocess.CompletedProcess[bytes]], settings: str) -> None:
    ran = shell(f"{settings} $T verify . && true")
    assert ran.returncode == 1, ran.stderr.decode()
    assert b"error[TC201]" in ran.stdout
    assert b"bad.py:7:5" in ran.stdout


def _without_privileges() -> str | None:
    """What makes a command obey the permissions of files; None if root cannot be made to."""
    if os.geteuid() != 0:
        return ""
    dropped = "-dac_override,-dac_read_search"
    return f"setpriv --bounding-set={dropped} --inh-caps={dropped}" if shutil.which("setpriv") else None


@pytest.mark.skipif(_without_privileges() is None, reason="root may read everything")
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_folders_that_cannot_be_read(
    shell: Callable[[str], subprocess.CompletedProcess[bytes]], tmp_path: Path, mode: int
) -> None:
    (tmp_path / "secret" / "deeper").mkdir(parents=True)
    (tmp_path / "secret" / "deeper" / "k.py").write_text(RACE)
    (tmp_path / "secret").chmod(mode)
    command = f"{_without_privileges()} $T"
    try:
        for arguments, code, says in (
            ("verify good.py secret", 3, b"TC901"),
            ("verify secret/deeper/k.py::double", 2, b"permission denied"),
            ("verify good.py --output-file secret/report", 2, b"cannot write"),
            ("baseline show --baseline secret/b.json", 2, b"cannot read the baseline"),
        ):
            ran = shell(f"{command} {arguments}")
            assert (ran.returncode, b"Traceback" in ran.stderr) == (code, False), ran.stderr.decode()
            assert says in ran.stdout + ran.stderr
    finally:
        (tmp_path / "secret").chmod(0o755)
