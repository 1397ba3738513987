"""Arithmetic with values that may be tensors or numbers counts as work, unless they are used as numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Paths = Callable[..., list[list[str]]]


def on_side(paths: Paths, text: str, parameters: str = "x") -> set[str]:
    """The work of one statement on a stream of its own, on every path."""
    found = paths(
        f"""
        def f({parameters}):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                {text}
        """
    )
    return {line for path in found for line in path if "side" in line}


@pytest.mark.parametrize(
    ("statement", "work"),
    [
        ("y = x * 2", "launch * on side: reads ~x writes ~y"),
        ("y = -x", "launch - on side: reads ~x writes ~y"),
        ("y = [x + k for k in (1, 2)]", "launch + on side: reads ~x writes ~y (2)"),
        ("x += 1", "launch add_ on side: reads ~x writes ~x"),
        ("x[0] = 1.0", "launch setitem on side: writes ~x"),
    ],
)
def test_arithmetic_with_what_may_be_a_tensor_is_work(paths: Paths, statement: str, work: str) -> None:
    assert work in on_side(paths, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "y = [0 for i in range(x * 2)]",
        "y = torch.empty(x // 2 + 1)",
        "y = w[x * 2 :]",
        "y = 3 if x + 1 > 4 else 5",
        "double[(4,)](w, w, x * 128, B=128)",
        "y = 'layer %d' % x",
    ],
)
def test_what_is_used_as_a_number_is_one(paths: Paths, statement: str) -> None:
    found = on_side(paths, statement, "x, w: torch.Tensor")
    assert not [line for line in found if "~x" in line]


def test_arithmetic_before_it_is_known_to_matter_counts_too(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x):
            y = x * 2
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                x += 1
            return y
        """
    )
    assert path[:2] == ["allocate y", "launch * on current: reads ~x writes ~y"]


def test_a_graph_keeps_what_may_be_a_tensor(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(batches: list):
            x = batches[0]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = x * 2
            x = batches[1]
            graph.replay()
            return out.clone()
        """
    )
    assert "rebind batches[0]" in path
