"""What a run says depends on the files alone: not on hash seeds, processes, the order of paths, or the load."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = [
    "kernels/matmul.py",
    "fixtures/cutile/gather/tables.py",
    "fixtures/cutile/races/grid3d.py",
    "fixtures/cutile/races/leader_guard.py",
    "fixtures/cutile/races/permute_heads.py",
    "fixtures/cutile/swizzle/grouped.py",
]
CACHED = re.compile(r'"cached": (\w+)')
TIMES = re.compile(r'"(time_ms|time_s|parse_time_s)": [0-9.e+-]+')


def verified(*arguments: str, hash_seed: str = "0") -> str:
    """The JSON of a run in a process of its own, without times."""
    paths = [a if a.startswith("-") else str(ROOT / a) for a in arguments]
    command = [sys.executable, "-m", "tilecheck", "verify", "--format", "json", *paths]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    # Where the checkout is not the working directory, `-m` finds the installed package.
    ran = subprocess.run(
        command, cwd=ROOT / "fixtures", env=environment, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 1, ran.stderr
    return CACHED.sub(r'"cached": 0', TIMES.sub(r'"\1": 0', ran.stdout))


@contextmanager
def load() -> Iterator[None]:
    """Keep every processor busy."""
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(min(os.cpu_count() or 1, 4))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def first() -> str:
    return verified(*SAMPLE, "-j1")


def test_the_sample_has_all_there_is_to_compare(first: str) -> None:
    found = json.loads(first)
    assert {k["verdict"] for k in found["kernels"]} >= {"conditional", "violated", "unknown"}
    assert {o["rung"] for k in found["kernels"] for o in k["obligations"]} >= {
        "provenance", "entail", "smt", "launch", "none",
    }  # fmt: skip
    assert sum(d["witness"] is not None for d in found["diagnostics"]) > 2
    assert '"time_ms": 0' in first


def test_hash_seeds_and_processes_change_nothing(first: str) -> None:
    assert verified(*SAMPLE, "-j2", hash_seed="1") == first


def test_the_order_of_paths_changes_nothing(first: str) -> None:
    assert verified(*reversed(SAMPLE), "-j2", hash_seed="4294967295") == first


def test_load_changes_nothing(first: str) -> None:
    with load():
        assert verified(*SAMPLE, "-j1", hash_seed="random") == first


def test_a_cache_changes_nothing(first: str, tmp_path: Path) -> None:
    kept = f"--cache-dir={tmp_path / 'kept'}"
    assert verified(*SAMPLE, "-j2", kept, hash_seed="1") == first  # cold
    assert len(list((tmp_path / "kept" / "entries").glob("*/*"))) > len(SAMPLE)
    assert verified(*SAMPLE, "-j1", kept, hash_seed="2") == first  # warm
    assert verified(*reversed(SAMPLE), "-j2", kept, hash_seed="3") == first
