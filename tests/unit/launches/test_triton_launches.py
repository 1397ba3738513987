"""What is read of `kernel[grid](...)`: grids, arguments, tuners, and where the call may stand."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.expr import const, render, substitution, sym
from tilecheck.ir.host import host_rank
from tilecheck.ir.launch import HostTensor, Launch

HEADER = """
import elsewhere
import torch
import triton
import triton.language as tl
from elsewhere import decorate, pick_configs, unread

@triton.jit
def copy(x_ptr, o_ptr, n, BLOCK: tl.constexpr = 64, FLAG: tl.constexpr = False):
    pass
"""


@pytest.fixture
def launches(tmp_path: Path) -> Callable[[str], list[Launch]]:
    def find(body: str) -> list[Launch]:
        path = tmp_path / "host.py"
        path.write_text(HEADER + textwrap.dedent(body), encoding="utf-8")
        return list(find_launches(Project().add(load(path.as_posix()))))

    return find


def shown(value: Any) -> str | None:
    if isinstance(value, HostTensor):
        return value.name
    return value if isinstance(value, str) else None if value is None else render(value)


def told(launch: Launch) -> dict[str, str | None]:
    assert launch.problem is None
    grid = ", ".join("?" if g is None else render(g) for g in launch.grid or ())
    return {"grid": grid, **{name: shown(value) for name, value in launch.arguments}}


USUAL = {"grid": "n", "x_ptr": "x", "o_ptr": "o", "n": "n", "BLOCK": "64", "FLAG": "False"}


@pytest.mark.parametrize(
    ("call", "differs"),
    [
        ("copy[(n,)](x, o, n)", {}),
        ("copy[n](x, o, n)", {}),
        ("copy[n,](x, o, n)", {}),
        ("copy[[n]](x, o, n)", {}),
        ("copy[n, 2](x, o, n)", {"grid": "n, 2"}),
        ("copy[(n,)](x, o, n, 8, True, num_warps=4, num_stages=2, num_ctas=1)", {"BLOCK": "8", "FLAG": "True"}),
        ("copy[(n,)](n=n, o_ptr=o, x_ptr=x, launch_cooperative_grid=True)", {}),
        ("copy[(n,)](x, None, n)", {"o_ptr": "None"}),
        ("copy[(n,)](*(x, o), **{'n': n, 'BLOCK': 16})", {"BLOCK": "16"}),
        ("copy[lambda meta: (meta['n'] * meta['BLOCK'],)](x, o, n)", {"grid": "64 * n"}),
        ("copy[lambda meta: (meta['num_warps'],)](x, o, n, num_warps=4)", {"grid": "4"}),
        ("copy[(unread(n),)](x, o, n)", {"grid": "unread(n)"}),
        ("copy[unread(n)](x, o, n)", {"grid": ""}),
        ("with torch.cuda.device(x.device):\n        copy[(n,)](x, o, n)", {}),
        ("kernel = copy\n    kernel[(n,)](x, o, n)", {}),
        ("return copy[(n,)](x, o, n)", {}),
    ],
)
def test_call(call: str, differs: dict[str, str], launches: Any) -> None:
    [found] = launches(f"def host(x, o, n: int):\n    {call}\n")
    assert told(found) == USUAL | differs


def test_unknown_keywords_leave_no_default(launches: Any) -> None:
    """Keywords that are not known may set what the text leaves out."""
    [found] = launches("def host(x, o, n: int, **options):\n    copy[(n,)](x, o, n, **options)\n")
    assert told(found) == USUAL | {"BLOCK": "copy.BLOCK", "FLAG": "copy.FLAG"}
    assert set(found.unread) == {"copy.BLOCK", "copy.FLAG"}


@pytest.mark.parametrize(
    "call",
    ["copy.warmup(x, o, n, grid=(n,))", "copy.run(x, o, n, grid=(n,))", "functions[0](x)", "copy[(n,)]"],
)
def test_what_is_no_launch(call: str, launches: Any) -> None:
    assert launches(f"def host(x, o, n, functions):\n    {call}\n") == []


@pytest.mark.parametrize(
    "call",
    [
        "copy[(1,)](x, o, n, 1, False, 2)",
        "copy[(1,)](*x.stride(), n, *o.stride())",
    ],
)
def test_arguments_that_do_not_match(call: str, launches: Any) -> None:
    """Nothing is claimed of such a call but which kernel it launches."""
    found = launches(f"def host(x, o, n):\n    {call}\n")
    assert [la.kernel for la in found] == ["copy"]
    assert found[0].problem is not None


STRIDED = """
@triton.jit
def strided(a, b, c, d, n):
    pass
"""


def strides(launch: Launch, ranks: dict[str, int]) -> list[str]:
    """What is passed for `a` to `d` where the tensors have some ranks."""
    assert launch.problem is None
    fixed = substitution({sym(host_rank(name)): const(rank) for name, rank in ranks.items()})
    return [str(shown(fixed(value))) for name, value in launch.arguments if name in "abcd"]


@pytest.mark.parametrize(
    "known",
    ["assert x.shape == o.shape", "assert o.ndim == x.ndim == 2", "n, _ = o.shape; assert x.dim() == 2"],
)
def test_lists_of_tensors_of_one_rank(known: str, launches: Any) -> None:
    host = f"def host(x, o, n: int):\n    {known}\n    strided[(n,)](*x.stride(), *o.stride(), n)\n"
    [found] = launches(STRIDED + host)
    assert strides(found, {}) == ["x.stride(0)", "x.stride(1)", "o.stride(0)", "o.stride(1)"]


@pytest.mark.parametrize("rank", range(5))
def test_lists_one_after_another(rank: int, launches: Any) -> None:
    """Nothing says how long each of them is; what is passed depends on it, as in Python."""
    [found] = launches(STRIDED + "def host(x, o, n: int):\n    strided[(n,)](*x.stride(), *o.shape, n)\n")
    expected = [*(f"x.stride({k})" for k in range(rank)), *(f"o.shape[{k}]" for k in range(4 - rank))]
    assert strides(found, {"x": rank, "o": 4 - rank}) == expected
    assert "x.ndim + o.ndim == 4" in map(render, found.facts)


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_static_methods_are_hosts(where: str, launches: Any) -> None:
    [found] = launches(f"""
    class F(torch.autograd.Function):
        @staticmethod
        def {where}(ctx, x, n: int):
            o = torch.empty_like(x)
            copy[(n,)](x, o, n)
            return o
    """)
    assert found.function == where
    assert told(found) == USUAL


def test_private_helper_is_judged_where_it_is_called(launches: Any) -> None:
    [found] = launches("""
    def _run(kernel, grid, *args, **options):
        kernel[grid](*args, **options)

    def host(x, o, n: int):
        _run(copy, (n,), x, o, n, BLOCK=32)
    """)
    assert found.function == "host"
    assert told(found) == USUAL | {"BLOCK": "32"}


def test_kernel_chosen_by_a_condition(launches: Any) -> None:
    found = launches("""
    @triton.jit
    def other(x_ptr, n):
        pass

    def host(x, n: int):
        kernel = other if n > 4 else copy
        if n > 4:
            kernel[(n,)](x, n)
        else:
            kernel[(n,)](x, x, n)
    """)
    assert [la.kernel for la in found] == ["other", "copy"]


# ---- tuners ------------------------------------------------------------------------------------------------


def tuned(decorators: str, launches: Any) -> Launch:
    lines = "\n".join(textwrap.dedent(decorators).strip().splitlines())
    [found] = launches(f"""
@triton.jit
def plain(): pass

CHOSEN = [triton.Config({{"B": 4}}, num_warps=w) for w in (unread() or [1, 2])]
MORE = CHOSEN + [triton.Config({{"B": 8}})]

def made():
    found = []
    for size in range(1, 3):
        for stages in [1, 2]:
            found.append(triton.Config({{"B": size}}, num_stages=stages))
    return found

{lines}
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr, E: tl.constexpr = 3):
    pass

def host(x, n: int):
    kernel[lambda meta: (triton.cdiv(n, meta["B"]),)](x, n)
""")
    return found


@pytest.mark.parametrize(
    ("configs", "fact"),
    [
        ('[triton.Config({"B": 2}), triton.Config({"B": 4})]', "kernel.B == 2 or kernel.B == 4"),
        ('[triton.Config({"B": b}) for b in (2, 4) if b > 2]', "kernel.B == 4"),
        ('[triton.Config({"B": b * c}) for b in (1, 2) for c in [3]]', "kernel.B == 3 or kernel.B == 6"),
        ("CHOSEN", "kernel.B == 4"),
        ("MORE", "kernel.B == 4 or kernel.B == 8"),
        ("configs=made()", "kernel.B == 1 or kernel.B == 2"),
    ],
)
def test_configurations(configs: str, fact: str, launches: Any) -> None:
    found = tuned(f"@triton.autotune({configs}, key=['n'])", launches)
    assert told(found)["B"] == "kernel.B"
    assert told(found)["grid"] == "cdiv(n, kernel.B)"
    assert fact in [render(f) for f in found.facts]
    assert found.unread == ()


def test_configurations_set_several_parameters_together(launches: Any) -> None:
    configs = '[triton.Config({"B": 2, "E": 1}), triton.Config({"B": 4, "E": 5})]'
    found = tuned(f"@triton.autotune({configs}, key=['n'])", launches)
    expected = "kernel.B == 2 and kernel.E == 1 or kernel.B == 4 and kernel.E == 5"
    assert expected in [render(f) for f in found.facts]


@pytest.mark.parametrize(
    "decorator",
    [
        "@triton.autotune(configs=pick_configs(), key=['n'])",
        "@triton.autotune(configs=[pick_configs()], key=['n'])",
        '@triton.autotune(configs=[triton.Config({"B": b}) for b in pick_configs()], key=[])',
        "@decorate",
        "@elsewhere.tune(configs=[])",
    ],
)
def test_configurations_that_are_not_read(decorator: str, launches: Any) -> None:
    """Nothing is known of what they set, defaults included, and no launch is to blame for it."""
    found = tuned(decorator, launches)
    assert told(found)["B"] == "kernel.B"
    assert "kernel.B" in found.unread
    assert not any("kernel.B ==" in render(f) for f in found.facts)


@pytest.mark.parametrize(
    "decorator",
    [
        '@triton.autotune([triton.Config({"B": 2}), triton.Config({"B": 4})], [], prune_configs_by={})',
        '@triton.autotune([triton.Config({"B": b}) for b in (2, 4) if unread(b) > 3], [])',
        '@triton.autotune(CHOSEN + [triton.Config({"B": 2})] if unread() else [triton.Config({"B": 2})], [])',
    ],
)
def test_configurations_that_may_not_run(decorator: str, launches: Any) -> None:
    """One of these it is, but no particular one is sure to be."""
    found = tuned(decorator, launches)
    either = {"kernel.B == 2 or kernel.B == 4", "kernel.B == 4 or kernel.B == 2"}
    assert either & {render(f) for f in found.facts}
    assert "kernel.B" in found.unread


def test_heuristics_see_the_arguments_and_the_configuration(launches: Any) -> None:
    found = tuned(
        """
        @triton.autotune(configs=[triton.Config({"B": 2}), triton.Config({"B": 4})], key=["n"])
        @triton.heuristics({"E": lambda args: args["n"] + args["B"]})
        """,
        launches,
    )
    assert told(found)["E"] == "n + kernel.B"


def test_heuristics_that_are_not_read(launches: Any) -> None:
    found = tuned('@triton.heuristics({"B": pick_configs, "E": lambda args: unread(args)})', launches)
    assert set(found.unread) == {"kernel.B", "unread(args)"}


def test_undecided_arguments_of_an_unread_call(launches: Any) -> None:
    """A library's function is not called once for each way in which two dozen arguments may come out."""
    names = [f"v{k}" for k in range(24)]
    choices = "".join(f"\n        {name} = 'low' if x.shape[{k}] > 1 else 0.5" for k, name in enumerate(names))
    options = ", ".join(f"{name}={name}" for name in names)
    [found] = launches(f"""
    def host(x, o, n: int):{choices}
        torch.tune({options})
        copy[(n,)](x, o, n, **dict({options.partition(", ")[0]}))
    """)
    assert told(found) == USUAL
