"""CUDA graphs of PyTorch, read into host programs."""

from __future__ import annotations

from collections.abc import Callable

from tilecheck.frontend.host_programs import HostFunction

Hosts = Callable[[str], dict[str, HostFunction]]
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


def test_a_number_that_changes_before_a_replay_is_bound_anew(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            step, rate = 0, 0.5
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                x.mul_(rate)
                x.add_(step)
            step += 1
            rate = rate * 2
            g.replay()
        """
    )
    assert "launch mul_ on the capture stream: reads x writes x; freezes x, rate" in path
    assert "launch add_ on the capture stream: reads x writes x; freezes x, step" in path
    assert path[-3:] == ["rebind step", "rebind rate", "replay g on current"]


def test_a_number_that_stays_is_not(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            n = x.shape[0]
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                x.add_(n)
            n = x.shape[0]
            g.replay()
        """
    )
    assert not [line for line in path if line.startswith("rebind")]


def test_the_batch_size_of_a_capture_loop_picks_its_graph(paths: Paths) -> None:
    for path in paths(
        """
        def f(x: torch.Tensor):
            graphs = {}
            for size in (1, 2):
                g = torch.cuda.CUDAGraph()
                with torch.cuda.graph(g):
                    x[:size].add_(1)
                graphs[size] = g
            for size in (1, 2):
                graphs[size].replay()
        """
    ):
        assert not [line for line in path if line.startswith("rebind")]
        assert path[-2:] == ["replay g on current", "replay g (2) on current"]


def test_an_input_is_stale_only_where_no_other_name_can_refresh_it(paths: Paths) -> None:
    source = """
        def f(x: torch.Tensor, y: torch.Tensor):
            {first}
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                out = x * 2
            x = y
            {then}
            g.replay()
            return out
        """
    (stale,) = paths(source.format(first="pass", then="pass"))
    (held,) = paths(source.format(first="static = x", then="static.copy_(y)"))
    assert "rebind x" in stale
    assert "rebind x" not in held


def test_memory_of_a_capture_lies_in_the_pool_of_its_graph(hosts: Hosts) -> None:
    host = hosts(
        """
        def f(x: torch.Tensor):
            first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(first):
                a = x + 1
            with torch.cuda.graph(second, pool=first.pool()):
                b = x + 2
            first.replay()
            second.replay()
            return a + b
        """
    )["f"]
    (program,) = host.programs
    assert {name: memory.pool for name, memory in program.by_name.items()} == {
        "x": None,
        "a": "first",
        "b": "first",
        "+": None,
    }


def test_captures_on_a_given_stream_with_begin_and_end(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            s = torch.cuda.Stream()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.stream(s):
                g.capture_begin()
                x.add_(1)
                g.capture_end()
                g.replay()
            g.reset()
        """
    )
    assert path == [
        "capture g on s",
        "launch add_ on s: reads x writes x; freezes x",
        "end capture g",
        "replay g on s",
        "destroy g",
    ]


def test_what_may_not_be_captured(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            host = torch.empty(4)
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                x.item()
                torch.cuda.synchronize()
                x.copy_(host)
            g.replay()
        """
    )
    assert [line for line in path if line.startswith("forbidden")] == [
        "forbidden item: the host reads memory of the device",
        "forbidden torch.cuda.synchronize: it waits for the device",
        "forbidden copy_: it copies between pageable memory and the device",
    ]


def test_a_result_is_kept_by_a_name_that_is_given_after_a_replay(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                out = x * 2
            before = out
            g.replay()
            first = out
            copied = out.clone()
            g.replay()
            return before, first, copied
        """
    )
    assert [line for line in path if "keep" in line or "kept" in line] == [
        "keep out as first",
        "use kept first",
    ]
    assert path.index("keep out as first") > path.index("replay g on current")


def test_results_in_a_list_are_kept_one_by_one(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                out = x * 2
            outs = []
            for _ in range(2):
                g.replay()
                outs.append(out)
            return torch.stack(outs)
        """
    )
    assert [line for line in path if "keep" in line or "kept" in line] == [
        "keep out as outs[0]",
        "keep out as outs[1]",
        "use kept outs[0]",
        "use kept outs[1]",
    ]


def test_an_unknown_graph_is_not_followed(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, runner):
            runner.graph.replay()
        """
    )
    assert path == ["unread what this graph holds is not in view: `runner.graph.replay()`"]


def test_an_input_in_the_tuple_of_a_launch_is_frozen(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x, later, out):
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                ct.launch(torch.cuda.current_stream(), (1,), copied, (x, out))
            x = later
            g.replay()
        """
    )
    assert path[-2:] == ["rebind x", "replay g on current"]


def test_an_input_is_stale_unless_it_is_written_before_the_replay(paths: Paths) -> None:
    ends = {
        "x = later; g.replay()": True,
        "x = later; first.copy_(later); g.replay()": False,
        "first.copy_(later); x = later; g.replay()": False,
        "x = later; x = first; g.replay()": False,
        "x = out; g.replay()": False,
    }
    for end, stale in ends.items():
        (path,) = paths(
            f"""
            def f(first: torch.Tensor, later: torch.Tensor):
                x = first
                g = torch.cuda.CUDAGraph()
                with torch.cuda.graph(g):
                    out = torch.relu(x)
                {end}
                return first.sum()
            """
        )
        assert ("rebind first" in path) == stale, end


def test_items_are_variables_of_a_graph(paths: Paths) -> None:
    for end in ("held[0] = later", "kinds['a'] = 0.5"):
        (path,) = paths(
            f"""
            def f(x: torch.Tensor, later: torch.Tensor):
                held, kinds = [x, torch.empty_like(x)], {{"a": 0.1}}
                g = torch.cuda.CUDAGraph()
                with torch.cuda.graph(g):
                    torch.mul(held[0], kinds["a"], out=held[1])
                {end}
                g.replay()
            """
        )
        assert path[path.index("end capture g") + 1].startswith("rebind"), end


def test_a_branch_in_a_capture_is_frozen(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            step, swap = 0, True
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                if swap:
                    x.neg_()
                if step == 0:
                    x.add_(1)
            step, swap = 1, False
            g.replay()
        """
    )
    assert {"rebind step", "rebind swap"} <= {*path}


def test_results_are_kept_in_any_container(paths: Paths) -> None:
    ways = (
        "kept += [out]",
        "kept.insert(0, out)",
        "kept.extend([out])",
        "kept.append((1, out))",
        "kept.append({'out': out})",
        "kept = [out for _ in range(1)]",
    )
    for way in ways:
        (path,) = paths(
            f"""
            def f(x: torch.Tensor):
                g, kept = torch.cuda.CUDAGraph(), []
                with torch.cuda.graph(g):
                    out = x * 2
                g.replay()
                {way}
                g.replay()
                return kept
            """
        )
        assert any(line.startswith("keep") for line in path), way
        assert any(line.startswith("use kept") for line in path), (way, path)


def test_the_caller_replays_a_graph_that_is_returned(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                x.add_(1)
            return g, x
        """
    )
    assert [line for line in path if "replay" in line] == ["replay g on current"]


def test_a_mask_cannot_be_counted_in_a_capture(paths: Paths) -> None:
    ends = {
        "x[x > 0]": True,
        "torch.where(x > 0)": True,
        "x[x.argmax()]": False,
        "torch.where(x > 0, x, 0)": False,
    }
    for value, waits in ends.items():
        (path,) = paths(
            f"""
            def f(x: torch.Tensor):
                g = torch.cuda.CUDAGraph()
                with torch.cuda.graph(g):
                    y = {value}
                g.replay()
            """
        )
        assert any(line.startswith("forbidden") for line in path) == waits, value


def test_a_capture_joins_the_streams_that_it_forks(paths: Paths) -> None:
    for end, joined in {"": False, "torch.cuda.current_stream().wait_stream(side)": True}.items():
        (path,) = paths(
            f"""
            def f(x: torch.Tensor):
                g, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
                with torch.cuda.graph(g):
                    side.wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(side):
                        x.add_(1)
                    {end}
                g.replay()
            """
        )
        assert any(line.startswith("forbidden side") for line in path) != joined
