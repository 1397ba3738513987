"""The real Neovim, headless, with its built-in client and the settings that docs/editors.md shows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NEOVIM = shutil.which("nvim")
KERNEL = """import cuda.tile as ct


@ct.kernel
def shift(x, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, index=(i,), shape=(T,))
    ct.store(x, index=(i + 1,), tile=t)
"""

pytestmark = pytest.mark.skipif(NEOVIM is None, reason="Neovim (`nvim`) is not installed")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("neovim")
    (folder / "shift.py").write_text(KERNEL)
    environment = {
        **os.environ,
        "TILECHECK_COMMAND": json.dumps([sys.executable, "-m", "tilecheck", "server"]),
        "TILECHECK_EDITORS": str(HERE.parents[1] / "editors" / "neovim"),
        "TILECHECK_SEEN": str(folder / "seen.json"),
        "XDG_STATE_HOME": str(folder),
    }
    script = f"luafile {HERE / 'editor.lua'}"
    command = [NEOVIM, "--headless", "-u", "NONE", "-n", "shift.py", "-c", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    assert (folder / "seen.json").exists(), done.stderr
    found = json.loads((folder / "seen.json").read_text())
    assert "problem" not in found, (found["problem"], done.stderr)
    return found


def test_the_race_is_shown_with_both_sites(seen: dict) -> None:
    [found] = seen["diagnostics"]
    assert (found["code"], found["source"], found["lnum"], found["col"]) == ("TC202", "tilecheck", 7, 4)
    assert found["message"].startswith("a block reads an element of `x` that another block writes\n")
    [other] = found["user_data"]["lsp"]["relatedInformation"]
    assert other["location"]["range"]["start"] == {"line": 6, "character": 8}
    assert "is read here" in other["message"]


def test_hover_says_what_is_owned(seen: dict) -> None:
    assert seen["hover"].startswith("**`x`** of `shift`: `mut`: written by the kernel (inferred)")
    assert "x[(ct.bid(0) + 1) * T : (ct.bid(0) + 1) * T + T]" in seen["hover"]


def test_the_lens_says_the_verdict(seen: dict) -> None:
    [title] = seen["lenses"]
    assert title.startswith("violated")
    assert "6 obligations" in title


def test_the_action_applies_and_the_diagnostic_goes(seen: dict) -> None:
    assert seen["offered"] == ["Suppress TC202 here, with a reason", "Explain TC202"]
    assert seen["text"][7] == "    # tilecheck: ignore[TC202] -- TODO: say why"
    assert seen["text"][8] == KERNEL.splitlines()[7]
