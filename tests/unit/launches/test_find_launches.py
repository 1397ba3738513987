"""What is read from host functions: grids, facts, tensors and kernels, as a user would write them."""

from __future__ import annotations

from typing import Any

import pytest

from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, render
from tilecheck.ir.host import is_whole
from tilecheck.ir.launch import FLOAT, HostList, HostTensor, Launch


def grid(launch: Launch) -> list[str | None] | None:
    return None if launch.grid is None else [None if g is None else render(g) for g in launch.grid]


def facts(launch: Launch) -> list[str]:
    """The facts that are not just ranges of symbols."""
    return [text for text in map(render, launch.facts) if not text.startswith("0 <= ")]


def argument(launch: Launch, name: str) -> Any:
    return dict(launch.arguments)[name]


def tensor(launch: Launch, name: str) -> HostTensor:
    found = argument(launch, name)
    assert isinstance(found, HostTensor)
    return found


def texts(exprs: tuple[Expr, ...] | None) -> list[str] | None:
    return None if exprs is None else list(map(render, exprs))


# ---- grids ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(ct.cdiv(n, T),)", ["cdiv(n, 64)"]),
        ("(triton.cdiv(n, T), 1)", ["cdiv(n, 64)", "1"]),
        ("((n + T - 1) // T,)", ["cdiv(n, 64)"]),
        ("(math.ceil(n / T),)", ["cdiv(n, 64)"]),
        ("(cdiv(n, T) + 1,)", ["cdiv(n, 64) + 1"]),
        ("(min(n, 8), max(1, n))", ["min(n, 8)", "max(1, n)"]),
        ("(n * x.shape[1],)", ["n * x.shape[1]"]),
        ("(x.numel() // 4,)", ["x.numel() // 4"]),
        ("(n,) + (1, 1)", ["n", "1", "1"]),
        ("(lambda t: (n // t,))(4)", ["n // 4"]),
        ("(unread(n), 1)", ["unread(n)", "1"]),
        ("unread(n)", None),
        ("tuple(n + k for k in range(2))", ["n", "n + 1"]),
    ],
)
def test_grid(text: str, expected: list[str] | None, launch: Any) -> None:
    found = launch(f"def host(x, out, n):\n    ct.launch(None, {text}, pair, (x, out))")
    assert found.problem is None
    assert grid(found) == expected


def test_the_grid_of_each_launch_is_the_one_at_that_point(launches: Any) -> None:
    first, second = launches(
        """
        def host(x, n):
            grid = (n,)
            ct.launch(None, grid, fill, (x,))
            grid = (n + 1,)
            ct.launch(None, grid, fill, (x,))
        """
    )
    assert (grid(first), grid(second)) == (["n"], ["n + 1"])


# ---- facts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("assert n > 0", ["0 < n"]),
        ("assert n > 0 and x.shape[0] == n", ["0 < n", "x.shape[0] == n"]),
        ("if n % 4:\n    raise ValueError", ["n % 4 == 0"]),
        ("if n < 1 or n > 9:\n    return", ["1 <= n", "n <= 9"]),
        ("if not (n == 3):\n    return", ["n == 3"]),
        ("while True:\n    break", []),
        ("torch._check(n > 2)", ["2 < n"]),
        ("if x.dtype != torch.float32:\n    raise TypeError", ["x.dtype == torch.float32"]),
        ("if x is None:\n    raise TypeError", ["not x is None"]),
        ("m, k = x.shape", ["x.ndim == 2"]),
        ("assert x.dim() == 2", ["x.ndim == 2"]),
        ("check(n)", ["3 <= n"]),
        ("try:\n    assert n > 1\nexcept AssertionError:\n    pass", []),
        ("for i in range(n):\n    assert n > 5", []),
    ],
)
def test_facts(before: str, expected: list[str], launch: Any) -> None:
    lines = "\n".join(f"    {line}" for line in before.splitlines())
    body = f"def host(x, n: int):\n{lines}\n    ct.launch(None, (n,), fill, (x,))\n"
    found = launch(body + "def check(n):\n    if n < 3:\n        raise ValueError(n)\n")
    told = [f for f in facts(found) if " or " not in f]
    assert told == expected


def test_a_fact_of_one_branch_does_not_leave_it(launch: Any) -> None:
    found = launch(
        """
        def host(x, n: int):
            if x.shape[0] > 4:
                assert n > 7
            ct.launch(None, (n,), fill, (x,))
        """
    )
    assert facts(found) == ["x.shape[0] <= 4 or 7 < n"]


def test_a_branch_is_a_fact_inside_it(launches: Any) -> None:
    small, large = launches(
        """
        def host(x, n: int):
            if n < 100:
                ct.launch(None, (n,), fill, (x,))
            else:
                ct.launch(None, (100,), fill, (x,))
        """
    )
    assert facts(small) == ["n < 100"]
    assert facts(large) == ["100 <= n"]


def test_comparisons_of_numbers_that_are_not_whole_say_nothing(launch: Any) -> None:
    """Between 0 and 1 there is no integer, but there are floats."""
    found = launch(
        """
        def host(x, scale):
            assert 0 < scale
            assert scale < 1
            ct.launch(None, (1,), fill, (x,))
        """
    )
    told = [E.substitute(fact, {is_whole("scale"): E.FALSE}) for fact in found.facts]
    assert all(fact.op == "bsym" for fact in told)  # truths of which no more is known


def test_a_launch_in_a_loop_has_the_facts_of_its_iteration(launch: Any) -> None:
    found = launch(
        """
        def host(x, n: int):
            for i in range(0, n, 16):
                ct.launch(None, (min(16, n - i),), fill, (x,))
        """
    )
    assert grid(found) == ["min(16, n - 16 * iteration(i))"]
    assert facts(found) == ["16 * iteration(i) < n"]


# ---- tensors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shape", "strides"),
    [
        ("torch.empty(m, n)", ["x.shape[0]", "x.shape[1]"], ["x.shape[1]", "1"]),
        ("torch.zeros((m,), dtype=torch.float32)", ["x.shape[0]"], ["1"]),
        ("torch.full([n, 2], 0)", ["x.shape[1]", "2"], ["2", "1"]),
        ("torch.empty_like(x)", ["x.shape[0]", "x.shape[1]"], ["empty.stride(0)", "empty.stride(1)"]),
        ("torch.empty_like(x.contiguous())", ["x.shape[0]", "x.shape[1]"], ["x.shape[1]", "1"]),
        ("x.new_empty(n)", ["x.shape[1]"], ["1"]),
        ("x", ["x.shape[0]", "x.shape[1]"], ["x.stride(0)", "x.stride(1)"]),
        ("x.t()", ["x.shape[1]", "x.shape[0]"], ["x.stride(1)", "x.stride(0)"]),
        ("x.T.contiguous()", ["x.shape[1]", "x.shape[0]"], ["x.shape[0]", "1"]),
        ("x.view(-1)", ["x.shape[0] * x.shape[1]"], ["x.view().stride(0)"]),
        ("x.contiguous().view(-1, n)", ["x.shape[0]", "x.shape[1]"], ["x.shape[1]", "1"]),
        ("x[:, :4]", ["x.shape[0]", "min(4, x.shape[1])"], ["x.stride(0)", "x.stride(1)"]),
        ("x[0]", ["x.shape[1]"], ["x.stride(1)"]),
        (
            "x.unsqueeze(0)",
            ["1", "x.shape[0]", "x.shape[1]"],
            ["x.stride(0) * x.shape[0]", "x.stride(0)", "x.stride(1)"],
        ),
        ("x.flatten()", ["x.shape[0] * x.shape[1]"], ["x.flatten().stride(0)"]),
        ("x * 2", ["x.shape[0]", "x.shape[1]"], ["result.stride(0)", "result.stride(1)"]),
    ],
)
def test_tensor(text: str, shape: list[str], strides: list[str], launch: Any) -> None:
    found = launch(
        f"def host(x: torch.Tensor):\n    m, n = x.shape\n    ct.launch(None, (1,), fill, ({text},))"
    )
    out = tensor(found, "out")
    assert texts(out.shape) == shape
    assert texts(out.strides) == strides


@pytest.mark.parametrize(
    ("text", "fresh", "storage", "whole"),
    [
        ("x", False, "x", True),
        ("x.view(-1)", False, "x", True),
        ("x.contiguous()", False, "x", True),
        ("x.float()", False, "x", True),
        ("x.detach()", False, "x", True),
        ("x[2:]", False, "x", False),
        ("x.unfold(0, 2, 1)", False, "x", False),
        ("x.clone()", True, "out", True),
        ("torch.empty_like(x)", True, "out", True),
        ("x * 2", True, "out", True),
    ],
)
def test_storage(text: str, fresh: bool, storage: str, whole: bool, launch: Any) -> None:
    found = launch(f"def host(x: torch.Tensor):\n    out = {text}\n    ct.launch(None, (1,), fill, (out,))")
    out = tensor(found, "out")
    assert (out.fresh, out.storage, out.part == ()) == (fresh, storage, whole)


def test_a_tensor_that_is_added_to_in_place_stays_where_it_is(launch: Any) -> None:
    found = launch("def host(x: torch.Tensor, y):\n    x += y\n    ct.launch(None, (1,), pair, (x, y))")
    assert tensor(found, "x").storage == "x"


def test_two_allocations_are_two_storages(launch: Any) -> None:
    found = launch(
        """
        def host(n):
            x, out = torch.empty(n), torch.empty(n)
            ct.launch(None, (1,), pair, (x, out))
        """
    )
    assert tensor(found, "x").storage != tensor(found, "out").storage


def test_an_allocation_is_not_the_parameter_of_its_name(launches: Any) -> None:
    found = launches(
        """
        def host(x, out=None):
            if out is None:
                out = torch.empty_like(x)
            ct.launch(None, (1,), pair, (x, out))
        """
    )
    given = {tensor(la, "out").storage: (tensor(la, "out").fresh, facts(la)) for la in found}
    assert given == {"out (2)": (True, ["out is None"]), "out": (False, ["not out is None"])}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("x[0].expand(8, -1)", True),
        ("torch.empty(1, 4).expand(n, 4)", True),
        ("torch.empty(n, 4).expand(n, 4)", False),
        ("x.expand(-1, -1)", False),
        ("torch.empty(1).expand(n).clone()", False),
    ],
)
def test_expanded(text: str, expanded: bool, launch: Any) -> None:
    found = launch(f"def host(x, n):\n    a, b = x.shape\n    ct.launch(None, (1,), fill, ({text},))")
    assert tensor(found, "out").expanded is expanded


def test_equal_shapes_are_spelt_out_once_the_rank_is_known(launch: Any) -> None:
    found = launch(
        """
        def host(x, out):
            assert x.shape == out.shape
            m, n = x.shape
            ct.launch(None, (m, n), pair, (x, out))
        """
    )
    assert texts(tensor(found, "out").shape) == ["out.shape[0]", "out.shape[1]"]
    told = next(text for text in facts(found) if " or " in text)
    assert "out.shape[1] == x.shape[1]" in told


def test_a_number_of_elements_is_spelt_out_once_the_rank_is_known(launch: Any) -> None:
    found = launch(
        """
        def host(x):
            flat = x.view(-1, x.shape[-1])
            b, s, d = x.shape
            ct.launch(None, (flat.shape[0],), fill, (flat,))
        """
    )
    assert grid(found) == ["x.shape[0] * x.shape[1]"]


# ---- values that are not tensors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [("64", "64"), ("n // 2", "n // 2"), ("T", "64"), ("int(n)", "n"), ("True", "True"), ("n == 3", "n == 3")],
)
def test_numbers(text: str, expected: str, launch: Any) -> None:
    found = launch(f"def host(x, n: int):\n    ct.launch(None, (1,), copy, (x, x, {text}))")
    value = argument(found, "n")
    assert isinstance(value, Expr)
    assert render(value) == expected


@pytest.mark.parametrize(("text", "expected"), [("1e-6", FLOAT), ("'tanh'", "'tanh'"), ("None", "None")])
def test_literals(text: str, expected: str, launch: Any) -> None:
    found = launch(f"def host(x):\n    ct.launch(None, (1,), copy, (x, x, {text}))")
    assert argument(found, "n") == expected


def test_lists_of_tensors(launch: Any) -> None:
    found = launch("def host(x, n):\n    ct.launch(None, (1,), fill, ([x, torch.empty(n)],))")
    value = argument(found, "out")
    assert isinstance(value, HostList)
    assert [v.fresh for v in value.items if isinstance(v, HostTensor)] == [False, True]


def test_a_parameter_that_is_used_as_a_number_is_one(launch: Any) -> None:
    found = launch("def host(x, n):\n    ct.launch(None, (n,), pair, (x, n))")
    assert isinstance(argument(found, "out"), Expr)
    assert isinstance(argument(found, "x"), HostTensor)


def test_what_unread_code_computes_is_named(launch: Any) -> None:
    found = launch("def host(x, n):\n    m = unread(n)\n    ct.launch(None, (m,), fill, (unread(x),))")
    assert found.unread == ("unread(n)",)
    assert tensor(found, "out").shape_of == "unread(x)"


@pytest.mark.parametrize(
    ("imported", "called"),
    [
        ("import tilecheck", "tilecheck.launch"),
        ("import tilecheck as tc", "tc.launch"),
        ("from tilecheck import launch as go", "go"),
    ],
)
def test_tilecheck_launch_is_a_launch(imported: str, called: str, launch: Any) -> None:
    found = launch(f"{imported}\n\ndef host(x, out, n):\n    {called}(None, (n,), pair, (x, out))")
    assert found.problem is None
    assert grid(found) == ["n"]
