"""The machine of a run: what it is, how fast it reads, and how fast it multiplies."""

from __future__ import annotations

import datetime as dt
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("torch", "triton", "transformers", "cuda-tile", "cuda-core", "tilecheck", "numpy")
ROUNDS, CALLS = 10, 4  # calls in a row, so that the wait of the host is a small part


def environment(device: str, commit: str | None) -> dict[str, Any]:
    """What a figure depends on beside the program.

    Args:
        device: "cuda" or "reference".
        commit: the measured commit; None asks git.
    """
    return {
        "device": device,
        "card": _card(device),
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[0],
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "commit": commit or _said("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"),
        "command": shlex.join(sys.argv),
        "at": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
    }


def _card(device: str) -> str:
    if device == "reference":
        return "the reference backend"
    import torch

    name: str = torch.cuda.get_device_name()
    return name


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def bandwidth(device: str) -> float:
    """Bytes a second of reading: 4 GiB of the card, or 64 MiB of the host."""
    if device == "reference":
        numbers = np.zeros(2**24, dtype=np.float32)
        return numbers.nbytes / _shortest(numbers.sum, lambda: None)
    import torch

    data = torch.empty(2**30, dtype=torch.float32, device="cuda").zero_()
    return data.numel() * 4 / _shortest(data.sum, torch.cuda.synchronize)


def multiplication(device: str) -> float | None:
    """Operations a second of a product of two matrices of 8192 rows in bfloat16; None without a card."""
    if device == "reference":
        return None
    import torch

    x, y = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    return 2 * 8192**3 / _shortest(lambda: x @ y, torch.cuda.synchronize)


def _shortest(work: Callable[[], object], wait: Callable[[], object]) -> float:
    """Seconds of one call in the fastest round: a ceiling, which what a slow moment shows is not."""
    taken = []
    for _ in range(ROUNDS + 2):
        wait()
        began = time.perf_counter()
        for _ in range(CALLS):
            work()
        wait()
        taken.append((time.perf_counter() - began) / CALLS)
    return min(taken[2:])
