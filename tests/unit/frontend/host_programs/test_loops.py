"""Which rounds of loops are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Paths = Callable[..., list[list[str]]]


def rounds(path: list[str], line: str) -> int:
    return sum(one.startswith(line) for one in path)


def test_two_rounds_stand_for_a_plain_loop(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            for _ in range(n):
                with torch.cuda.stream(side):
                    x.add_(1)
        """
    )
    assert [rounds(path, "launch add_") for path in found] == [2, 1, 0]


def test_a_ring_is_gone_round_once_more(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            buffers = [torch.empty_like(x) for _ in range(3)]
            for i in range(n):
                with torch.cuda.stream(side):
                    buffers[i % 3].copy_(x)
        """
    )
    longest = found[0]
    assert [line for line in longest if line.startswith("work copy_")] == [
        "work copy_ on side: reads x writes buffers",
        "work copy_ on side: reads x writes buffers (2)",
        "work copy_ on side: reads x writes buffers (3)",
        "work copy_ on side: reads x writes buffers",
    ]
    assert sorted(rounds(path, "work copy_") for path in found) == [0, 1, 2, 3, 4]


def test_variables_that_are_exchanged_are_a_ring(paths: Paths) -> None:
    longest = paths(
        """
        def f(x: torch.Tensor, y: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            for _ in range(n):
                with torch.cuda.stream(side):
                    x.copy_(y)
                x, y = y, x
        """
    )[0]
    copies = [line for line in longest if line.startswith("work copy_")]
    assert copies[:3] == [
        "work copy_ on side: reads y writes x",
        "work copy_ on side: reads x writes y",
        "work copy_ on side: reads y writes x",
    ]


def test_a_condition_on_the_round_is_read_on_both_sides(paths: Paths) -> None:
    longest = paths(
        """
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            for i in range(n):
                if i >= 2:
                    side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    x.add_(1)
        """
    )[0]
    first_wait = next(i for i, line in enumerate(longest) if line.startswith("side awaits"))
    assert rounds(longest[:first_wait], "launch add_") == 2
    assert rounds(longest[first_wait:], "launch add_") >= 2


def test_a_long_loop_is_read_at_both_ends(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            for i in range(100):
                with torch.cuda.stream(side):
                    x[i].add_(1)
                if i == 99:
                    torch.cuda.current_stream().wait_stream(side)
        """
    )
    assert path[0] == "launch add_ on side: reads x[0:1] writes x[0:1]"
    assert "launch add_ on side: reads x[99:100] writes x[99:100]" in path
    assert path[-1] == "current awaits current after side"


def test_chunks_that_move_at_one_speed_are_exact(paths: Paths) -> None:
    longest = paths(
        """
        def f(x: torch.Tensor, n: int, size: int):
            side = torch.cuda.Stream()
            for i in range(n):
                with torch.cuda.stream(side):
                    x[i * size:(i + 1) * size].zero_()
                x[(i + 2) * size:(i + 3) * size].zero_()
        """
    )[0]
    assert longest[:3] == [
        "launch zero_ on side: writes x[0:size]",
        "launch zero_ on current: writes x[2 * size:3 * size]",
        "launch zero_ on side: writes x[size:2 * size]",
    ]
    # What is two rounds ahead must be met in the rounds that are read.
    assert "launch zero_ on side: writes x[2 * size:3 * size]" in longest


@pytest.mark.parametrize("other", ["x[2 * i]", "x[5]", "x[n - i]"])
def test_parts_that_may_meet_later_count_as_the_whole(paths: Paths, other: str) -> None:
    longest = paths(
        f"""
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            for i in range(n):
                with torch.cuda.stream(side):
                    x[i].zero_()
                {other}.zero_()
        """
    )[0]
    assert longest[:2] == [
        "launch zero_ on side: writes ~x[0:x.shape[0]]",
        "launch zero_ on current: writes ~x[0:x.shape[0]]",
    ]


def test_counters_of_while_loops_move_too(paths: Paths) -> None:
    longest = paths(
        """
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            start = 0
            while start < n:
                with torch.cuda.stream(side):
                    x[start:start + 4].zero_()
                start += 4
        """
    )[0]
    zeros = [line for line in longest if line.startswith("launch zero_")]
    assert zeros[:2] == ["launch zero_ on side: writes x[0:4]", "launch zero_ on side: writes x[4:8]"]


def test_a_loop_without_end_is_joined_at_its_end(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            while True:
                with torch.cuda.stream(side):
                    x.add_(1)
        """
    )
    assert rounds(path, "launch add_") == 2
    assert path[-1] == "join device"


def test_a_loop_that_replays_runs_once_at_least(paths: Paths) -> None:
    for path in paths(
        """
        def f(x: torch.Tensor, n: int):
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                out = x * 2
            for _ in range(n):
                g.replay()
            return out
        """
    ):
        assert rounds(path, "replay g") >= 1


def test_lists_of_streams_of_unknown_length(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, n: int):
            streams = [torch.cuda.Stream() for _ in range(n)]
            for s in streams:
                with torch.cuda.stream(s):
                    x.add_(1)
        """
    )
    assert [[line.split(":")[0] for line in path] for path in found] == [
        ["launch add_ on streams"],
        ["launch add_ on streams", "launch add_ on streams (2)"],
        ["launch add_ on streams", "launch add_ on streams (2)", "launch add_ on streams (3)"],
    ]


@pytest.mark.parametrize(
    "condition", ["step % 50 == 49", "step > 20", "step == 40", "not step % 50", "step // 9"]
)
def test_a_condition_that_turns_behind_the_rounds_that_are_read_is_open(paths: Paths, condition: str) -> None:
    found = paths(
        f"""
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            for step in range(n):
                if {condition}:
                    with torch.cuda.stream(side):
                        x.add_(1)
        """
    )
    assert {rounds(path, "launch add_") for path in found} == {0, 1, 2}


def test_one_condition_has_one_answer_in_a_round(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            for step in range(n):
                if step % 50 == 0:
                    x.add_(1)
                if step % 50 == 0:
                    side.synchronize()
        """
    )
    assert all(rounds(path, "launch add_") == rounds(path, "join side") for path in found)
    assert {rounds(path, "join side") for path in found} == {0, 1, 2}


def test_a_condition_on_the_last_round_is_decided(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            for step in range(100):
                if step == 99:
                    side.synchronize()
        """
    )
    assert [rounds(path, "join side") for path in found] == [1]
