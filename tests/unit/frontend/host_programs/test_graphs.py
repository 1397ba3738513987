"""CUDA graphs of PyTorch, read into host programs."""

from __future__ import annotations

from collections.abc import Callable

Paths = Callable[..., list[list[str]]]


def test_capture_and_replay_loop(paths: Paths) -> None:
    longest = paths(
        """
        def f(x: torch.Tensor, steps: int):
            static = torch.empty_like(x)
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                out = static * 2
            for _ in range(steps):
                static.copy_(x)
                g.replay()
            return out.clone()
        """
    )[0]
    assert longest == [
        "allocate static",
        "join device",
        "capture g on the capture stream",
        "allocate out",
        "launch * on the capture stream: reads static writes out; freezes static",
        "end capture g",
        "work copy_ on current: reads x writes static",
        "replay g on current",
        "work copy_ on current: reads x writes static",
        "replay g on current",
        "allocate clone",
        "launch clone on current: reads out writes clone",
        "free static",
        "free out after current",
        "return clone",
    ]
