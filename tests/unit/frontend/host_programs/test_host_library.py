"""Handles and operations of `tilecheck.host`."""

from __future__ import annotations

from collections.abc import Callable

Paths = Callable[..., list[list[str]]]


def test_a_written_array_moves_into_a_launch_and_comes_back(paths: Paths) -> None:
    (path,) = paths(
        """
        from tilecheck import host

        def f(x: torch.Tensor, n):
            source, out = host.share(x), host.own(torch.empty_like(x))
            step = host.launch(double, (1,), (source, out, n), B=128)
            step.sync()
            return out.tolist()
        """
    )
    moved, back = path.index("move empty_like into step"), path.index("back empty_like")
    launched = next(i for i, line in enumerate(path) if line.startswith("launch double"))
    assert moved < path.index("move step into its run") < back < launched
    assert path[launched] == (
        "launch double on a stream of tilecheck.host: reads ~x, x[0:1] writes ~empty_like, empty_like[0:1]"
    )
    assert path[launched + 1] == "join a stream of tilecheck.host"


def test_what_follows_runs_with_the_operation(paths: Paths) -> None:
    (path,) = paths(
        """
        from tilecheck import host

        def f(n):
            step = host.zeros(4).then(lambda x: host.fill(x, 1))
            step.submit()
        """
    )
    works = [line for line in path if line.startswith(("launch", "move", "back"))]
    assert works == [
        "move zeros (2) into its run",
        "move then into its run",
        "launch zeros on a stream of tilecheck.host: writes zeros",
        "move zeros into fill",
        "back zeros",
        "launch fill on a stream of tilecheck.host: writes zeros",
    ]


def test_a_shared_operation_runs_once(paths: Paths) -> None:
    (path,) = paths(
        """
        from tilecheck import host

        def f(n):
            step = host.zeros(4).shared()
            step.submit()
            step.submit()
        """
    )
    assert sum(line.startswith("launch zeros") for line in path) == 1
    assert not [line for line in path if line.startswith("move")]


def test_partitions_are_left_to_the_run(paths: Paths) -> None:
    (path,) = paths(
        """
        from tilecheck import host

        def f(x: torch.Tensor):
            host.partition(host.own(x), 4)
        """
    )
    assert path[-1].startswith("unread this operation of tilecheck.host is checked as it runs")
