"""Copies between the device and the host, and reads of the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Paths = Callable[..., list[list[str]]]


def test_an_asynchronous_copy_from_pinned_memory_is_work(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            host = torch.empty(4, pin_memory=True)
            x.copy_(host, non_blocking=True)
            host.zero_()
        """
    )
    assert path == [
        "allocate host",
        "work copy_ on current: reads host writes x",
        "host zero_: writes host",
    ]


def test_a_blocking_one_joins_the_stream(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            host = torch.empty(4, pin_memory=True)
            x.copy_(host)
            x.record_stream(torch.cuda.current_stream())
        """
    )
    assert path == ["allocate host", "work copy_ on current: reads host writes x", "join current"]


def test_a_pageable_source_is_read_by_the_host(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            host = torch.empty(4)
            x.copy_(host, non_blocking=True)
        """
    )
    assert path == ["allocate host", "host copy_: reads host", "work copy_ on current: writes x"]


def test_a_pageable_target_is_waited_for(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            host = torch.empty(4)
            host.copy_(x, non_blocking=True)
        """
    )
    assert path == ["allocate host", "work copy_ on current: reads x writes host", "join current"]


def test_a_tensor_of_the_caller_that_is_moved_without_waiting_is_pinned(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(batch):
            x = batch.to("cuda", non_blocking=True)
            batch.zero_()
            return x
        """
    )
    assert path == [
        "allocate x",
        "work to on current: reads batch writes x",
        "host zero_: writes batch",
        "return x",
    ]


def test_to_the_host_without_waiting_gives_pinned_memory(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            y = x + 1
            host = y.to("cpu", non_blocking=True)
            return host.tolist()
        """
    )
    assert path[2:4] == ["allocate host", "work to on current: reads y writes host"]
    assert path[4] == "host tolist: reads host"


@pytest.mark.parametrize("read", ["x.item()", "x.tolist()", "float(x)", "print(x)", "f'{x}'", "bool(x)"])
def test_reads_of_the_host_wait_for_the_stream(paths: Paths, read: str) -> None:
    path = paths(
        f"""
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                {read}
        """
    )[0]
    assert path[0].endswith("on side: reads x")
    assert path[1] == "join side"


def test_arrays_of_the_host_are_views_of_its_memory(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            host = torch.empty(4, pin_memory=True)
            host.copy_(x, non_blocking=True)
            array = host.numpy()
            array[0] = 1
        """
    )
    assert path == [
        "allocate host",
        "work copy_ on current: reads x writes host",
        "host setitem: writes host[0:1]",
    ]


def test_pinned_memory_may_be_dropped_under_a_copy_but_not_under_a_kernel(paths: Paths) -> None:
    source = """
        def f(x: torch.Tensor, n):
            host = torch.empty(4, pin_memory=True)
            x.copy_(host, non_blocking=True)
            {launch}
            del host
        """
    (copied,) = paths(source.format(launch="pass"))
    (launched,) = paths(source.format(launch="double[(1,)](host, x, n, B=128)"))
    assert "free host" not in copied
    assert "free host" in launched


def test_the_host_may_fill_its_own_memory_without_waiting(paths: Paths) -> None:
    ways = paths(
        """
        def f(out: torch.Tensor, value):
            host = torch.empty(4, pin_memory=True)
            host[0] = value
            out.copy_(host, non_blocking=True)
        """
    )
    assert ["join current" in way for way in ways] == [True, False]
    assert all("host copy_: writes host[0:1]" in way for way in ways[1:]), ways


def test_what_the_device_uses_lies_there(paths: Paths) -> None:
    for line in ("double[(1,)](x, x, 4, B=4); host.copy_(x)", "host.copy_(x); double[(1,)](x, x, 4, B=4)"):
        ways = paths(
            f"""
            def f(x):
                host = torch.empty(4, pin_memory=True)
                {line}
                x.record_stream(torch.cuda.current_stream())
            """
        )
        assert ["join current" in way for way in ways] == [True]


def test_functions_that_fill_write_what_out_names(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            host = torch.empty(4, pin_memory=True)
            torch.randn(4, out=host)
            torch.arange(4, out=x)
            x.record_stream(torch.cuda.current_stream())
        """
    )
    assert "host randn: writes host" in path
    assert "launch arange on current: writes x" in path


@pytest.mark.parametrize(
    "call", ["host.copy_(x, True)", 'x.to("cpu", torch.float32, True)', 'x.to("cpu", True)']
)
def test_the_flag_of_a_copy_may_stand_at_its_position(paths: Paths, call: str) -> None:
    for path in paths(
        f"""
        def f(x: torch.Tensor):
            host = torch.empty(4, pin_memory=True)
            {call}
        """
    ):
        assert any(line.startswith("work") for line in path)
        assert not any(line.startswith("join") for line in path)


def test_a_result_may_be_its_input(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            y = torch.einsum("ij->ji", x)
            y.add_(1)
            x.record_stream(torch.cuda.current_stream())
        """
    )
    assert any(line.startswith("launch add_") and "~x" in line.partition("writes")[2] for line in path), path


def test_a_view_of_bytes_is_the_memory(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, file):
            host = torch.empty(4, pin_memory=True)
            file.readinto(memoryview(host.numpy()))
            x.copy_(host, non_blocking=True)
        """
    )
    assert any(line.startswith("host readinto") and "writes ~host" in line for line in path), path
