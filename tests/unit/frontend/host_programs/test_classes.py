"""Methods are read on an object that `__init__` made, after each other."""

from __future__ import annotations

from collections.abc import Callable

from tilecheck.frontend.host_programs import HostFunction
from tilecheck.ir.host_text import action_text

Hosts = Callable[[str], dict[str, HostFunction]]
Paths = Callable[..., list[list[str]]]

PREFETCHER = """
    class Prefetcher:
        def __init__(self, loader):
            self.loader = loader
            self.stream = torch.cuda.Stream()
            self._preload()

        def _preload(self):
            batch = next(self.loader)
            with torch.cuda.stream(self.stream):
                self.batch = batch.cuda(non_blocking=True)

        def next(self):
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.batch
            batch.record_stream(torch.cuda.current_stream())
            self._preload()
            return batch
    """


def test_a_prefetcher(paths: Paths) -> None:
    (path,) = paths(PREFETCHER, "Prefetcher.next")
    assert path == [
        "allocate self.batch",
        "work cuda on self.stream: reads batch writes self.batch",
        "record current after self.stream on self.stream",
        "current awaits current after self.stream",
        "allocate self.batch (2)",
        "work cuda on self.stream: reads batch (2) writes self.batch (2)",
        # Between two calls the caller uses what it got.
        "launch the caller on current: reads self.batch",
        "record current after self.stream (2) on self.stream",
        "current awaits current after self.stream (2)",
        "allocate self.batch (3)",
        "work cuda on self.stream: reads batch (3) writes self.batch (3)",
        "free self.batch after current",
        "return self.batch (2)",
    ]


def test_private_methods_are_judged_where_they_are_called(hosts: Hosts) -> None:
    assert list(hosts(PREFETCHER)) == ["Prefetcher.__init__", "Prefetcher.next"]


def test_a_method_that_captures_and_one_that_replays(paths: Paths) -> None:
    (path,) = paths(
        """
        class Runner:
            def __init__(self, x: torch.Tensor):
                self.x = torch.empty_like(x)
                self.graph = None

            def capture(self):
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.out = self.x * 2

            def run(self, x: torch.Tensor):
                self.x.copy_(x)
                self.graph.replay()
                return self.out
        """,
        "Runner.run",
    )
    assert [line for line in path if line.split()[0] in ("capture", "replay", "return")] == [
        "capture self.graph on the capture stream",
        "replay self.graph on current",
        "replay self.graph on current",
        "return self.out",
    ]


def test_attributes_that_other_methods_set_are_not_known(paths: Paths) -> None:
    (path,) = paths(
        """
        class Runner:
            def __init__(self):
                self.graph = None

            def set_graph(self, graph):
                self.graph = graph

            def run(self):
                self.graph.replay()
        """,
        "Runner.run",
    )
    assert path == ["unread what this graph holds is not in view: `self.graph.replay()`"]


def test_methods_of_bases_and_super(paths: Paths) -> None:
    path = paths(
        """
        class Base:
            def __init__(self):
                self.stream = torch.cuda.Stream()

        class Derived(Base):
            def __init__(self):
                super().__init__()
                self.done = torch.cuda.Event()

            def run(self, x: torch.Tensor):
                with torch.cuda.stream(self.stream):
                    x.add_(1)
                    self.done.record()
                self.done.wait()
        """,
        "Derived.run",
    )[0]
    assert path[:3] == [
        "launch add_ on self.stream: reads x writes x",
        "record self.done on self.stream",
        "current awaits self.done",
    ]


def test_functions_that_are_handed_out_run_after_the_one_around_them(paths: Paths) -> None:
    (path,) = paths(
        """
        def make(x: torch.Tensor):
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                out = x * 2

            def run():
                g.replay()
                return out

            return run
        """,
        "make.run",
    )
    assert [line for line in path if line.startswith("replay")] == ["replay g on current"] * 2


def test_context_managers_of_the_module(paths: Paths) -> None:
    (path,) = paths(
        """
        import contextlib

        @contextlib.contextmanager
        def on(stream):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                yield
            torch.cuda.current_stream().wait_stream(stream)

        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            with on(side):
                x.add_(1)
        """
    )
    assert path == [
        "record side after current on current",
        "side awaits side after current",
        "launch add_ on side: reads x writes x",
        "record current after side on side",
        "current awaits current after side",
    ]


def test_methods_without_streams_run_after_those_that_leave_work(hosts: Hosts) -> None:
    host = hosts(
        """
        class Pipe:
            def __init__(self, n: int):
                self.side = torch.cuda.Stream()
                self.front = torch.zeros(n, device="cuda")
                self.back = torch.zeros(n, device="cuda")

            def start(self):
                with torch.cuda.stream(self.side):
                    self.front.add_(1)

            def swap(self):
                self.front, self.back = self.back, self.front

            def read(self):
                return self.back.sum()
        """
    )["Pipe.start"]
    found = [[action_text(action) for action in program.actions] for program in host.programs]
    ends = [[line for line in lines if line.startswith("launch")][-2:] for lines in found]
    assert [
        "launch add_ on self.side: reads self.front writes self.front",
        "launch sum on current: reads self.back writes sum",
    ] in ends
    assert [
        "launch add_ on self.side: reads self.front writes self.front",
        "launch sum on current: reads self.front writes sum",
    ] in ends


def test_a_function_is_judged_alone_if_the_call_of_its_name_is_that_of_another(hosts: Hosts) -> None:
    source = """
        def make(x: torch.Tensor, optimizer):
            side = torch.cuda.Stream()
            def step():
                with torch.cuda.stream(side):
                    x.add_(1)
            {call}
            return step
        """
    assert hosts(source.format(call="optimizer.step()")).keys() == {"make", "make.step"}
    assert hosts(source.format(call="step()")).keys() == {"make"}


def test_a_context_entered_by_its_method_is_left_by_its_method(paths: Paths) -> None:
    (path,) = paths(
        """
        class On:
            def __init__(self, stream):
                self.context = torch.cuda.stream(stream)

            def __enter__(self):
                self.context.__enter__()

            def __exit__(self, *error):
                self.context.__exit__(*error)

        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            with On(side):
                x.add_(1)
            x.mul_(2)
        """
    )
    assert path == ["launch add_ on side: reads x writes x", "launch mul_ on current: reads x writes x"]


def test_what_a_returned_function_holds_is_not_used_before_it_is_called(hosts: Hosts) -> None:
    host = hosts(
        """
        def make(x: torch.Tensor):
            side = torch.cuda.Stream()
            def fire():
                side.wait_stream(torch.cuda.current_stream())
                return x
            return fire
        """
    )["make.fire"]
    (program,) = host.programs
    lines = [action_text(action) for action in program.actions]
    assert [line for line in lines if "the caller" in line] == ["launch the caller on current: reads x"]


def test_what_a_graph_keeps_stays_in_the_hands_of_its_methods(hosts: Hosts) -> None:
    found = hosts(
        """
        class Op:
            def __init__(self, x: torch.Tensor, w: torch.Tensor):
                self.x, self.w = x, w
                self.g = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.g):
                    self.out = self.x @ self.w

            def load(self, w: torch.Tensor):
                self.w = w

            def run(self):
                self.g.replay()
                return self.out.clone()
        """
    )
    whys = [why for program in found["Op.run"].programs for _, why in program.unread]
    assert "a graph keeps `w`, which other methods bind anew" in whys
