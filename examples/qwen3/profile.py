"""Where the time of a run goes: its parts, and the kernels of a step on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from qwen3.decoder import Decoder
from qwen3.generate import Times

STEPS = 8  # that are looked at


@dataclass(frozen=True, slots=True)
class Span:
    """A kernel on the GPU, from its start to its end in microseconds."""

    name: str
    start: float
    end: float


@dataclass
class Profile:
    """Seconds of the parts of a run. Mutable: parts are added as they end."""

    parts: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.parts[name] = time.perf_counter() - began

    def text(self, decoder: Decoder, prompt: Sequence[int], times: Times) -> str:
        """All that is known, with the parts and the kernels that are measured now, after the run."""
        decoder.start([prompt])
        with self.part("capture"):
            decoder.describe()  # of a graph, which is captured for it
        parts = {
            **self.parts,
            "prompt": max(0.0, times.prompt - self.parts["capture"]),
            "steps": times.generation,
        }
        lines = ["where the time went:", *(f"  {name:24} {taken:9.3f} s" for name, taken in parts.items())]
        return "\n".join([*lines, *_of_kernels(decoder, prompt)])


def _of_kernels(decoder: Decoder, prompt: Sequence[int]) -> list[str]:
    steps = min(STEPS, decoder.slots - len(prompt))
    decoder.start([prompt])

    def work() -> None:
        for _ in range(steps):
            decoder.step()
        decoder.history()

    found: dict[str, list[float]] = {}
    for span in spans(work):
        found.setdefault(span.name, []).append(span.end - span.start)
    if not found:
        return [f"kernels of a step: not available on {decoder.machine.name}"]
    rows = sorted(found.items(), key=lambda row: -sum(row[1]))
    return [
        "kernels of a step on the GPU; those that depend on one another overlap:",
        *(
            f"  {name[:40]:40} {len(taken) / steps:6.0f} times {sum(taken) / steps:9.1f} us"
            for name, taken in rows
        ),
    ]


def spans(work: Callable[[], object]) -> list[Span]:
    """The kernels that run on the GPU while `work` does, by their starts.

    Nothing is run, and there are none, where nothing can see them.
    """
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    found = [
        Span(event.name, event.time_range.start, event.time_range.end)
        for event in seen.events()
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith("Mem")
    ]
    return sorted(found, key=lambda span: span.start)
