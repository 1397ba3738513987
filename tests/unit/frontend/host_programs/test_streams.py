"""Streams and events of PyTorch, read into host programs."""

from __future__ import annotations

from collections.abc import Callable

Paths = Callable[..., list[list[str]]]


def test_work_on_a_side_stream_between_two_waits(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            y = torch.empty_like(x)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                double[(8,)](x, y, x.numel(), B=128)
            torch.cuda.current_stream().wait_stream(side)
            return y
        """
    )
    assert path == [
        "allocate y",
        "record side after current on current",
        "side awaits side after current",
        "launch double on side: reads ~x, x[0:1] writes ~y, y[0:1]",
        "record current after side on side",
        "current awaits current after side",
        "return y",
    ]


def test_without_the_waits_there_are_none(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                y = x + 1
            return y
        """
    )
    assert path == ["allocate y", "launch + on side: reads x writes y", "return y"]


def test_events_by_every_spelling(paths: Paths) -> None:
    (path,) = paths(
        """
        from torch import cuda
        from torch.cuda import Stream as S

        def f():
            a, b = S(), cuda.Stream()
            first = cuda.Event()
            first.record(a)
            b.wait_event(first)
            second = b.record_event()
            with cuda.stream(a):
                second.wait()
                first.record()
            first.synchronize()
            b.synchronize()
            torch.cuda.synchronize()
        """
    )
    assert path == [
        "record first on a",
        "b awaits first",
        "record second on b",
        "a awaits second",
        "record first on a",
        "join first",
        "join b",
        "join device",
    ]


def test_a_stream_of_the_caller_may_be_the_current_one(paths: Paths) -> None:
    own, same = paths(
        """
        def f(x: torch.Tensor, stream: torch.cuda.Stream):
            with torch.cuda.stream(stream):
                x.add_(1)
            x.mul_(2)
        """
    )
    assert own == [
        "launch add_ on stream: reads x writes x",
        "launch mul_ on current: reads x writes x",
        # The caller knows its stream, and orders it.
        "record current after stream on stream",
        "current awaits current after stream",
    ]
    assert same == ["launch add_ on current: reads x writes x", "launch mul_ on current: reads x writes x"]


def test_record_stream_keeps_memory_until_the_stream_is_done(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            t = x * 2
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x.copy_(t)
            t.record_stream(side)
            del t
            torch.cuda.current_stream().wait_stream(side)
        """
    )
    assert "free t after side" in path
    assert path.index("free t after side") < path.index("current awaits current after side")


def test_memory_is_free_when_its_last_name_is_bound_anew(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            a = x + 1
            b = a
            a = x + 2
            b = None
            return a
        """
    )
    assert path == [
        "allocate a",
        "launch + on current: reads x writes a",
        "allocate a (2)",
        "launch + on current: reads x writes a (2)",
        "free a",
        "return a (2)",
    ]


def test_slices_are_boxes(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            x[:n].zero_()
            with torch.cuda.stream(side):
                x[n:].zero_()
                x[2, 3:5] = 1
        """
    )
    assert path == [
        "launch zero_ on current: writes x[0:n, 0:x.shape[1]]",
        "launch zero_ on side: writes x[n:x.shape[0], 0:x.shape[1]]",
        "launch setitem on side: writes x[2:3, 3:5]",
    ]


def test_an_event_that_is_returned_is_for_the_caller_to_await(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side, done = torch.cuda.Stream(), torch.cuda.Event()
            with torch.cuda.stream(side):
                t = x + 1
                x.copy_(t)
                done.record()
            return x, done
        """
    )
    # What the function itself drops is dropped before that.
    assert path[-4:] == ["record done on side", "free t", "current awaits done", "return x"]


def test_the_default_stream_may_be_another_but_in_module_code(paths: Paths) -> None:
    source = """
        {head}
            side = torch.cuda.Stream()
            torch.cuda.default_stream().wait_stream(side)
        """
    inside = paths(source.format(head="def f():"))
    outside = paths(source.format(head="if True:"), "<module>")
    awaits = [path[-1] for path in (*inside, *outside)]
    assert awaits == [
        "current awaits current after side",
        "default awaits default after side",
        "current awaits current after side",
    ]


def test_what_unread_code_gets_may_be_no_tensor(paths: Paths) -> None:
    for path in paths(
        """
        def f(x: torch.Tensor, flag, helper):
            side = torch.cuda.Stream()
            helper(flag)
            if flag:
                side.wait_stream(torch.cuda.current_stream())
        """
    ):
        assert not [line for line in path if line.startswith("join")]


def test_the_module_of_the_device_has_the_streams_of_cuda(paths: Paths) -> None:
    source = """
        def f(x: torch.Tensor):
            device_module = {module}
            side = device_module.Stream()
            side.wait_stream(device_module.current_stream())
            with device_module.stream(side):
                x.add_(1)
            device_module.current_stream().wait_stream(side)
        """
    assert paths(source.format(module="torch.get_device_module()")) == paths(source.format(module="torch.cuda"))
