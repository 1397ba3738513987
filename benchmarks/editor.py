"""How long a user waits for a diagnostic: the real Neovim, headless, opens a racy kernel, and then edits it.

    python benchmarks/editor.py [RUNS]

Cold is from before Neovim is started until the diagnostic with both sites is there, the start of the server
included; after an edit, from the edit until the diagnostic of the new text. Times are wall-clock, so the load
is printed. Python's bytecode is kept in a folder of its own and is there before the first time is taken, as
it is after an installation with pip.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNEL = """import cuda.tile as ct


@ct.kernel
def shift(x, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, index=(i,), shape=(T,))
    ct.store(x, index=(i + 1,), tile=t)
"""
BARS = {"cold": 1.0, "edit": 0.1}


def main() -> int:
    editor = shutil.which("nvim")
    if editor is None:
        print("Neovim (`nvim`) is not installed", file=sys.stderr)
        return 2
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    cold: list[float] = []
    edits: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(runs + 1):
            load = os.getloadavg()[0]
            times = _times(editor, Path(name))
            if number:  # the first run writes bytecode
                cold.append(times[0])
                edits += times[1:]
                shown = " ".join(f"{t * 1000:.0f}" for t in times[1:])
                print(f"run {number}: cold {times[0] * 1000:.0f} ms; after edits {shown} ms; load {load:.2f}")
    for word, values in (("cold", cold), ("edit", edits)):
        middle, worst = statistics.median(values), max(values)
        bar = f"bar {BARS[word] * 1000:.0f} ms"
        print(f"{word}: median {middle * 1000:.0f} ms, worst {worst * 1000:.0f} ms, {bar}")
    return int(statistics.median(cold) >= BARS["cold"] or statistics.median(edits) >= BARS["edit"])


def _times(editor: str, folder: Path) -> list[float]:
    (folder / "shift.py").write_text(KERNEL, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "TILECHECK_COMMAND": json.dumps(_server()),
        "TILECHECK_EDITORS": str(HERE.parent / "editors" / "neovim"),
        "TILECHECK_TIMES": str(folder / "times.json"),
        "TILECHECK_BEGIN": repr(time.time()),
        "XDG_STATE_HOME": str(folder),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [editor, "--headless", "-u", "NONE", "-n", "shift.py", "-c", f"luafile {HERE / 'editor.lua'}"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=300)
    times: list[float] = json.loads((folder / "times.json").read_text(encoding="utf-8"))
    return times


def _server() -> list[str]:
    """The command beside this Python, as an installation has it."""
    script = Path(sys.executable).with_name("tilecheck")
    return [str(script), "server"] if script.exists() else [sys.executable, "-m", "tilecheck", "server"]


if __name__ == "__main__":
    raise SystemExit(main())
