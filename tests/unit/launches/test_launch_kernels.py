"""Which kernel a launch launches, and launches that are not understood."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    "text",
    [
        "fill",
        "fill.replace_hints(occupancy=2)",
        "ct.kernel(fill._pyfunc, num_ctas=2)",
        "kernels()",
        "(other, fill)[1]",
        "{'a': fill}['a']",
    ],
)
def test_the_kernel_is_found(text: str, launch: Any) -> None:
    found = launch(f"def host(x):\n    ct.launch(None, (1,), {text}, (x,))\ndef kernels():\n    return fill")
    assert (found.kernel, found.problem) == ("fill", None)


@pytest.mark.parametrize(
    "call",
    [
        "ct.launch(None, (1,), fill, (x,))",
        "ct.launch(stream=None, grid=(1,), kernel=fill, kernel_args=(x,))",
        "ct.launch(None, (1,), kernel=fill, args=(x,))",
        "cuda.tile.launch(None, (1,), fill, (x,))",
        "go(None, (1,), fill, (x,))",
        "ct.launch(*(None, (1,)), *(fill, (x,)))",
    ],
)
def test_the_call_is_found(call: str, launch: Any) -> None:
    found = launch(f"import cuda.tile\nfrom cuda.tile import launch as go\ndef host(x):\n    {call}")
    assert (found.kernel, found.problem, found.function) == ("fill", None, "host")


def test_a_kernel_of_a_sibling_module(launch: Any) -> None:
    sibling = """
    import cuda.tile as ct

    @ct.kernel
    def theirs(x, TILE: ct.Constant[int]):
        pass
    """
    found = launch(
        "from siblings import theirs\ndef host(x):\n    ct.launch(None, (1,), theirs, (x, 8))", siblings=sibling
    )
    assert found.kernel == "theirs"
    assert found.kernel_file.endswith("siblings.py")
    assert [name for name, _ in found.arguments] == ["x", "TILE"]


def test_a_kernel_inside_a_function_keeps_what_it_closes_over(launch: Any) -> None:
    found = launch(
        """
        def host(x, n: int):
            tile = 2 * n

            @ct.kernel
            def inner(x):
                ct.store(x, (0,), ct.zeros((tile,), ct.float32))

            ct.launch(None, (1,), inner, (x,))
        """
    )
    assert found.kernel == "inner"
    assert "tile" in dict(found.captured)


@pytest.mark.parametrize(
    "other", ["print(len(_cache))", "_cache.get(1)", "1 in _cache", "a, b = _cache[1]", "self._cache[1] = 3"]
)
def test_a_cache_that_other_code_only_asks_keeps_its_form(other: str, launches: Any) -> None:
    found = launches(
        f"""
        _cache = {{}}

        def elsewhere(self):
            {other}

        def host(x, n):
            _cache[n] = (1, fill)
            config, tuned = _cache[n]
            ct.launch(None, (1,), tuned, (x,))
        """
    )
    assert [launch.kernel for launch in found] == ["fill"]


def test_a_kernel_by_condition_is_two_launches(launches: Any) -> None:
    found = launches("def host(x, n: int):\n    ct.launch(None, (1,), pair if n > 3 else other, (x, x))")
    assert {launch.kernel for launch in found} == {"pair", "other"}


def test_a_kernel_kept_in_a_module_level_cache(launches: Any) -> None:
    found = launches(
        """
        _cache = {}

        def host(x, n):
            if n not in _cache:
                best = unread(n)
                _cache[n] = (best, fill.replace_hints(occupancy=best.occupancy))
            config, tuned = _cache[n]
            ct.launch(None, (config.blocks,), tuned, (x,))
        """
    )
    assert [launch.kernel for launch in found] == ["fill"]


@pytest.mark.parametrize(
    "other",
    [
        "_cache[1] = (0, other)",
        "_cache.update(unread(1))",
        "_cache.setdefault(1, 2)",
        "unread(_cache)",
        "alias = _cache; alias[1] = unread()",
        "_cache[1], rest = unread()",
        "_cache[1] += unread()",
        "for _cache[1] in unread(): pass",
        "globals()['_cache'][1] = unread()",
        "add = _cache.__setitem__; add(1, unread())",
        "return _cache",
    ],
)
def test_a_cache_that_other_code_fills_says_nothing(other: str, launches: Any) -> None:
    found = launches(
        f"""
        _cache = {{}}

        def elsewhere():
            {other}

        def host(x, n):
            _cache[n] = (1, fill)
            config, tuned = _cache[n]
            ct.launch(None, (1,), tuned, (x,))
        """
    )
    assert [launch.problem for launch in found] == ["the kernel is not known: `_cache[n][1]`"]


def test_a_wrapper_is_seen_with_its_callers_values(launches: Any) -> None:
    found = launches(
        """
        def _run(kernel, blocks, *args):
            ct.launch(None, (blocks,), kernel, args)

        def host(x, n):
            _run(fill, n + 1, x)
        """
    )
    assert [(launch.kernel, launch.function) for launch in found] == [("fill", "host")]


def test_methods_nested_functions_and_the_module_itself(launches: Any) -> None:
    found = launches(
        """
        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                def go():
                    ct.launch(None, (1,), fill, (x,))
                go()

            def backward(self, dy):
                (x,) = self.saved_tensors
                ct.launch(None, (1,), fill, (x,))

        if __name__ == "__main__":
            ct.launch(None, (2,), fill, (torch.empty(8),))
        """
    )
    assert [launch.function for launch in found] == ["forward", "backward", "<module>"]
    assert all(launch.problem is None for launch in found)


def test_a_launch_inside_a_callback(launches: Any) -> None:
    found = launches("def host(x, n):\n    unread(lambda: ct.launch(None, (n,), fill, (x,)))")
    assert [(launch.kernel, launch.problem) for launch in found] == [("fill", None)]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("ct.launch(None, (1,), unread(1), (x,))", "the kernel is not known: `unread(1)`"),
        ("ct.launch(None, (1,), x, (x,))", "the kernel is not known: `x`"),
        ("ct.launch(None, (1,), cdiv, (x,))", "the kernel is not known"),
        ("ct.launch(None, (1,), fill, (x, x))", "2 arguments for the 1 parameters of `fill`"),
        ("ct.launch(None, (1,), fill, unread(x))", "the arguments are not known: `unread(x)`"),
        ("setattr(x, 'data', x)\n    ct.launch(None, (1,), fill, (x,))", "`.data` of a tensor is changed"),
        ("getattr(x, 'resize_')(3)\n    ct.launch(None, (), fill, (x,))", "`.resize_` of a tensor is changed"),
    ],
)
def test_problems(call: str, problem: str, launch: Any) -> None:
    assert launch(f"def host(x: torch.Tensor):\n    {call}").problem == problem


def test_code_that_is_never_reached(launch: Any) -> None:
    found = launch("def host(x):\n    return\n    ct.launch(None, (1,), fill, (x,))")
    assert found.problem == "the code around this launch is not read"


def test_a_module_without_launches(launches: Any) -> None:
    assert launches("def host(x):\n    return x") == ()


def test_the_launch_of_something_else_is_none_of_ours(launches: Any) -> None:
    assert launches("def host(x):\n    x.launch(1)\n    launch(2)") == ()
