"""Ctrl-C ends a command wherever it lands."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import signal
import sys
import time
import weakref

from tilecheck.cli.interrupts import interrupts_are_not_lost


class Held:
    pass


left = int(sys.argv[1])


def dropped(_entry):
    global left
    left -= 1
    signal.raise_signal(signal.SIGINT)


def work():
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        held = Held()
        watched = weakref.ref(held, dropped if left else None)
        del held
        time.sleep(0.001)
    return "the interrupt was lost"


try:
    with interrupts_are_not_lost():
        print(work())
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("times", [1, 4])
def test_an_interrupt_in_a_callback_comes_again(tmp_path: Path, times: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run([sys.executable, str(program), str(times)], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "interrupted\n", "")
