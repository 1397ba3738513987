"""Host-side sizes that several kernels need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def next_power_of_two(n: int) -> int:
    """The smallest power of two that is at least `n` (and at least 1)."""
    return 1 << (n - 1).bit_length() if n > 1 else 1


def power_of_two_below(n: int) -> int:
    """The largest power of two that is less than `n` (and at least 1)."""
    return max(1, next_power_of_two(n) // 2)


def may_depend(device: torch.device) -> bool:
    """Whether a launch can start before the launch before it has ended (programmatic dependent launch)."""
    import torch

    capability: tuple[int, int] = torch.cuda.get_device_capability(device)
    return capability >= (9, 0)


def multiprocessors(device: torch.device) -> int:
    """How many multiprocessors the device has: the natural number of persistent blocks."""
    import torch

    count: int = torch.cuda.get_device_properties(device).multi_processor_count
    return count
