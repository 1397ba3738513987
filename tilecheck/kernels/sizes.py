"""Host-side sizes that several kernels need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def next_power_of_two(n: int) -> int:
    """The smallest power of two that is at least `n` (and at least 1)."""
    return 1 << (n - 1).bit_length() if n > 1 else 1


def multiprocessors(device: torch.device) -> int:
    """How many multiprocessors the device has: the natural number of persistent blocks."""
    import torch

    count: int = torch.cuda.get_device_properties(device).multi_processor_count
    return count
