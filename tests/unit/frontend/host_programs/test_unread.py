"""What is not understood makes a function unread, with the construct; what cannot matter does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilecheck.frontend.host_programs import HostFunction

Hosts = Callable[[str], dict[str, HostFunction]]
Paths = Callable[..., list[list[str]]]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("helper(side)", "code that is not in view gets a stream, an event or a graph"),
        ("helper([side])", "code that is not in view gets a stream, an event or a graph"),
        (
            "helper(lambda: side.wait_stream(side))",
            "code that is not in view gets a function that uses streams",
        ),
        ("with helper(): pass", "what this context does to the current stream is not known"),
        ("helper().wait_stream(side)", "it is not known which stream this is"),
        ("side.priority_of(x)", "what `priority_of` of a stream does is not known"),
        ("torch.cuda.make_graphed_callables(helper, x)", "what this captures or runs on is not read"),
        ("x.set_(x)", "the tensor gets other memory"),
        ("torch.cuda.set_stream(side)", "it leaves another stream current"),
        ("torch.cuda.CUDAGraph().capture_begin()", "a capture is still open at its end"),
    ],
)
def test_constructs_that_may_touch_streams(paths: Paths, statement: str, why: str) -> None:
    found = paths(
        f"""
        def f(x: torch.Tensor, helper):
            side = torch.cuda.Stream()
            {statement}
        """
    )
    assert any(why in path[-1] and path[-1].startswith("unread") for path in found)


@pytest.mark.parametrize(
    "statement",
    [
        "torch.cuda.nvtx.range_push('step')",
        "with torch.no_grad(): x.add_(1)",
        "with torch.cuda.device(0): x.add_(1)",
        "print('done')",
        "logger.info('%s', x.shape)",
        "assert x.shape[0] > 3, f'{x.shape}'",
    ],
)
def test_constructs_that_leave_them_alone(paths: Paths, statement: str) -> None:
    for path in paths(
        f"""
        import logging
        logger = logging.getLogger()

        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            {statement}
        """
    ):
        assert not [line for line in path if line.startswith(("unread", "join"))]


def test_unknown_code_with_tensors_is_work_on_the_current_stream(paths: Paths) -> None:
    (path,) = paths(
        """
        import library

        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                y = library.run(x)
            return y
        """
    )
    # What it gives may be new, or what it was given.
    assert path == [
        "allocate y",
        "launch run on side: reads ~x writes ~x, ~y",
        "return ~y",
        "return ~x",
    ]


def test_helpers_of_the_module_are_read_where_they_are_called(paths: Paths) -> None:
    (path,) = paths(
        """
        def add(x, y):
            out = torch.empty_like(x)
            double[(1,)](x, out, 4, B=128)
            return out + y

        def f(x: torch.Tensor, y: torch.Tensor):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                return add(x, y)
        """
    )
    assert path == [
        "allocate out",
        "launch double on side: reads ~x, x[0:1] writes ~out, out[0:1]",
        "allocate +",
        "launch + on side: reads out, y writes +",
        "free out",
        "return +",
    ]


def test_a_helper_that_is_not_understood_counts_as_unknown_code(paths: Paths) -> None:
    (path,) = paths(
        """
        def odd(x):
            match x:
                case _:
                    return x

        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                odd(x)
        """
    )
    assert path[1] == "launch odd on side: reads ~x writes ~x, ~odd"


def test_files_without_streams_have_no_hosts(hosts: Hosts) -> None:
    assert hosts("def f(x):\n    torch.cuda.synchronize()\n    return x + 1\n") == {}


def test_functions_that_only_raise_are_read(hosts: Hosts) -> None:
    host = hosts(
        """
        def f(x, stream):
            raise NotImplementedError(x.to("cuda", non_blocking=True))
        """
    )["f"]
    assert (host.programs, host.unread) == ((), "")


def test_too_many_paths(hosts: Hosts) -> None:
    tests = "\n    ".join(f"if a{i}: side.wait_stream(torch.cuda.current_stream())" for i in range(9))
    names = ", ".join(f"a{i}" for i in range(9))
    host = hosts(f"def f(x, {names}):\n    side = torch.cuda.Stream()\n    {tests}\n")["f"]
    assert host.unread == "it has too many paths"


def test_branches_without_streams_are_joined_where_paths_are_many(paths: Paths) -> None:
    tests = "\n    ".join(f"if a{i}: y = y + {i}" for i in range(9))
    names = ", ".join(f"a{i}" for i in range(9))
    (path,) = paths(
        f"""
def f(x: torch.Tensor, {names}):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    y = x
    {tests}
    with torch.cuda.stream(side):
        y.zero_()
"""
    )
    # `y` may be `x`, or any of the sums: none of it is certain.
    assert path[2:4] == ["allocate y", "launch + on current: reads ~x writes ~y"]
    (zeroed,) = (line for line in path if line.startswith("launch zero_ on side: writes ~"))
    assert zeroed.endswith("~x")
    assert zeroed.count("~y") == 9


def test_one_choice_is_made_once(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, overlap: bool):
            side = torch.cuda.Stream()
            if overlap:
                side.wait_stream(torch.cuda.current_stream())
            if not overlap:
                x.add_(1)
            if overlap:
                torch.cuda.current_stream().wait_stream(side)
        """
    )
    assert sorted(len(path) for path in found) == [1, 4]


@pytest.mark.parametrize(
    "statement",
    ["threading.Thread(target=x.zero_)", "concurrent.futures.ThreadPoolExecutor()", "asyncio.run(x)"],
)
def test_what_goes_on_behind_the_call(paths: Paths, statement: str) -> None:
    for path in paths(
        f"""
        import asyncio, concurrent.futures, threading
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            {statement}
        """
    ):
        assert path[-1].startswith("unread what this does goes on behind the call")


def test_an_item_behind_the_rounds_that_are_read(hosts: Hosts) -> None:
    source = """
        def f(x: torch.Tensor, n: int):
            side = torch.cuda.Stream()
            buffers = []
            for _ in range(n):
                buffers.append(torch.empty_like(x))
            with torch.cuda.stream(side):
                buffers[{index}].zero_()
        """
    assert hosts(source.format(index=6))["f"].unread == "no list that is read here has the item `buffers[6]`"
    assert hosts(source.format(index=0))["f"].unread == ""


def test_a_partial_call_is_the_call(paths: Paths) -> None:
    (path,) = paths(
        """
        import functools
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            join = functools.partial(torch.cuda.current_stream().wait_stream, side)
            join()
        """
    )
    assert path == ["record current after side on side", "current awaits current after side"]


def test_modules_that_a_name_stands_for(hosts: Hosts) -> None:
    host = hosts(
        """
        device = vendors.module("cuda")
        def f(x: torch.Tensor):
            side = device.Stream()
            with device.stream(side):
                x.add_(1)
        """
    )["f"]
    assert "which streams and graphs this gives is not known" in str(host.programs[0].unread)


@pytest.mark.parametrize(
    "statement",
    [
        "torch.cuda.current_stream('cuda:1')",
        "torch.cuda.synchronize(1)",
        "x.to('cuda:1')",
        "with torch.cuda.device(1): x.add_(1)",
    ],
)
def test_streams_of_several_devices(paths: Paths, statement: str) -> None:
    source = """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream(device={device})
            {statement}
        """
    for path in paths(source.format(device=0, statement=statement)):
        assert "streams of several devices are not told apart" in path[-1]
    for path in paths(source.format(device=1, statement=statement)):
        assert not any(line.startswith("unread") for line in path)


def test_a_handler_runs_after_a_part_of_the_body(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, y: torch.Tensor):
            side = torch.cuda.Stream()
            try:
                with torch.cuda.stream(side):
                    x.add_(1)
                torch.cuda.current_stream().wait_stream(side)
            except RuntimeError:
                y.zero_()
        """
    )
    launched = [tuple(line.split()[1] for line in path if line.startswith("launch")) for path in found]
    assert set(launched) == {("add_",), ("zero_",), ("add_", "zero_")}


def test_a_handler_of_the_end_of_an_iterator_runs_at_next(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, items):
            side = torch.cuda.Stream()
            try:
                with torch.cuda.stream(side):
                    x.add_(1)
                batch = next(items)
            except StopIteration:
                x.zero_()
        """
    )
    launched = [tuple(line.split()[1] for line in path if line.startswith("launch")) for path in found]
    assert set(launched) == {("add_",), ("add_", "zero_")}


def test_a_call_of_a_function_that_launches_dependents_is_judged(hosts: Hosts) -> None:
    found = hosts(
        """
        def run(x: torch.Tensor, y: torch.Tensor, n, dependent=False):
            double[(4,)](x, y, n, B=256, launch_pdl=dependent)

        def f(x: torch.Tensor, y: torch.Tensor, n):
            run(x, y, n)
            run(y, x, n, dependent=True)

        def g(x: torch.Tensor, unseen):
            unseen(x, launch_pdl=True)
        """
    )
    assert "f" in found
    assert "what this launches to depend on" in str(found["g"].programs[0].unread)
