"""Conditions at visible launches: they hold, are left to the caller, are not read, or are broken."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.model import Report

KERNELS = """
import math
import cuda.tile as ct
import torch
from elsewhere import unread

T = 64

@ct.kernel
def fill(out):
    ct.store(out, index=(ct.bid(0),), tile=ct.zeros((T,), dtype=ct.float32))

@ct.kernel
def fill_rows(out):
    ct.store(out, index=(ct.bid(0), ct.bid(1)), tile=ct.zeros((1, T), dtype=ct.float32))

@ct.kernel
def copy(x, out):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)))

@ct.kernel
def sized(out, TILE: ct.Constant[int]):
    ct.store(out, index=(ct.bid(0),), tile=ct.zeros((TILE,), dtype=ct.float32))
"""


@pytest.fixture
def verified(tmp_path: Path):
    def run(body: str) -> Report:
        path = tmp_path / "host.py"
        path.write_text(KERNELS + textwrap.dedent(body), encoding="utf-8")
        return verify_paths([path.as_posix()])

    return run


def statuses(report: Report, kernel: str) -> dict[str, str]:
    """The worst status of each condition over all launches."""
    order = ("holds", "caller", "unread", "unmet", "broken")
    found: dict[str, str] = {}
    for at in next(k for k in report.kernels if k.name == kernel).launches:
        for condition in at.conditions:
            worst = max(order.index(condition.status), order.index(found.get(condition.text, "holds")))
            found[condition.text] = order[worst]
    return found


def one(body: str, kernel: str, verified) -> str:
    found = statuses(verified(body), kernel)
    assert len(found) == 1, found
    return next(iter(found.values()))


# ---- what a name holds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "between",
    [
        "outs = [out := torch.empty(1) for _ in range(2)]",
        "outs = [[out := torch.empty(1) for _ in m] for _ in m]",
        "outs = {k: (out := torch.empty(1)) for k in range(2)}",
        "print(f'{(out := torch.empty(1))}')",
    ],
)
def test_a_name_bound_inside_an_expression(between: str, verified) -> None:
    body = f"""
    def host(n: int, m, stream):
        out = torch.empty(n)
        {between}
        ct.launch(stream, (ct.cdiv(n, T),), fill, (out,))
    """
    assert one(body, "fill", verified) != "holds"


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("", "holds"),
        ("t.other = torch.empty(1)", "holds"),
        ("m.zero_()", "holds"),
        ("unread(m)", "unread"),
        ("t.save_for_backward(m)", "holds"),
        ("t.reset()", "unread"),
        ("unread(t)", "unread"),
        ("shrink(t)", "unread"),
        ("setattr(t, 'out', m)", "unread"),
        ("u = t\n        u.out = torch.empty(1)", "unread"),
        ("u = t\n        u.reset()", "unread"),
        ("t = unread(m)", "unread"),
        ("for t in m:\n            pass", "unread"),
    ],
)
def test_an_attribute(between: str, expected: str, verified) -> None:
    body = f"""
    def shrink(held):
        held.out = torch.empty(1)

    def host(n: int, m, t, stream):
        t.out = torch.empty(n)
        {between}
        ct.launch(stream, (ct.cdiv(n, T),), fill, (t.out,))
    """
    assert one(body, "fill", verified) == expected


def test_an_attribute_in_a_function_with_a_parameter_of_that_name(verified) -> None:
    body = """
    def host(n: int, t, u, stream):
        t.out = torch.empty(n)
        def run(t):
            ct.launch(stream, (ct.cdiv(n, T),), fill, (t.out,))
        run(u)
    """
    assert one(body, "fill", verified) == "unread"


def test_a_name_that_a_function_given_away_assigns(verified) -> None:
    body = """
    def host(n: int, stream):
        out = torch.empty(n)
        def shrink():
            nonlocal out
            out = torch.empty(1)
        unread(shrink)
        ct.launch(stream, (ct.cdiv(n, T),), fill, (out,))
    """
    assert one(body, "fill", verified) == "unread"


# ---- a grid over one array -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "out", "expected"),
    [
        ("ct.cdiv(n, T)", "torch.empty(n)", "holds"),
        ("math.ceil(n / T)", "torch.empty(n)", "holds"),
        ("(n - 1) // T + 1", "torch.empty(n)", "holds"),
        ("n // T", "torch.empty(n)", "holds"),
        ("min(8, ct.cdiv(n, T))", "torch.empty(n)", "holds"),
        ("ct.cdiv(n, 2 * T)", "torch.empty(n)", "holds"),
        ("ct.cdiv(n, T)", "torch.empty(n + 1)", "holds"),
        ("ct.cdiv(n, T)", "torch.empty(ct.cdiv(n, T) * T)", "holds"),
        ("ct.cdiv(n, T)", "torch.empty((n, 4)).view(-1)[:n]", "holds"),
        ("ct.cdiv(n, T) + 1", "torch.empty(n)", "broken"),
        ("n // T + 1", "torch.empty(n)", "broken"),
        ("ct.cdiv(n, T // 2)", "torch.empty(n)", "broken"),
        ("ct.cdiv(n, T)", "torch.empty(n // 2)", "broken"),
        ("ct.cdiv(n, T)", "torch.empty(n - 1)", "broken"),
        ("n", "torch.empty(n)", "broken"),
        ("4", "torch.empty(4 * T)", "holds"),
        ("5", "torch.empty(4 * T)", "broken"),
    ],
)
def test_grid_over_a_fresh_array(grid: str, out: str, expected: str, verified) -> None:
    body = f"""
    def host(n: int, stream):
        assert n > 1
        out = {out}
        ct.launch(stream, ({grid},), fill, (out,))
    """
    assert one(body, "fill", verified) == expected


@pytest.mark.parametrize(
    ("before", "grid", "expected"),
    [
        ("pass", "ct.cdiv(out.shape[0], T)", "holds"),
        ("n = out.numel()", "ct.cdiv(n, T)", "holds"),
        ("pass", "ct.cdiv(out.shape[0], T // 2)", "broken"),
        ("pass", "16", "broken"),
        ("assert out.shape[0] >= 16 * T", "16", "holds"),
        ("if out.shape[0] < 16 * T:\n            raise ValueError", "16", "holds"),
        ("n = torch.cuda.get_device_properties(out.device).multi_processor_count", "n", "broken"),
        (
            "n = torch.cuda.get_device_properties(out.device).multi_processor_count",
            "min(n, out.shape[0] // T)",
            "holds",
        ),
        ("pass", "ct.cdiv(k, T)", "caller"),
        ("assert k == out.shape[0]", "ct.cdiv(k, T)", "holds"),
        ("assert k <= out.shape[0]", "ct.cdiv(k, T)", "holds"),
        ("pass", "unread(out)", "unread"),
        ("n = unread(out)", "ct.cdiv(n, T)", "unread"),
        ("if not unread(out):\n            raise ValueError", "16", "unread"),
        ("if out.is_complex() or out.shape[0] <= 15 * T:\n            raise ValueError", "16", "holds"),
        ("if out.shape[0] <= 15 * T or out.is_complex():\n            raise ValueError", "16", "holds"),
        ("assert out.is_contiguous() and unread(1) and out.shape[0] > 15 * T", "16", "holds"),
        ("unread(out)", "16", "unread"),
        ("unread(k)", "16", "broken"),
        ("check_sizes(out)", "16", "unread"),
        ("unread.validate(k)", "16", "broken"),
    ],
)
def test_grid_over_the_callers_array(before: str, grid: str, expected: str, verified) -> None:
    body = f"""
    def host(out, k, stream):
        {before}
        ct.launch(stream, ({grid},), fill, (out,))
    """
    assert one(body, "fill", verified) == expected


def test_swapped_axes(verified) -> None:
    body = """
    def right(m, n, stream):
        out = torch.empty(m, n)
        ct.launch(stream, (m, ct.cdiv(n, T)), fill_rows, (out,))
    """
    assert set(statuses(verified(body), "fill_rows").values()) == {"holds"}
    swapped = body.replace("(m, ct.cdiv(n, T))", "(ct.cdiv(n, T), m)")
    assert "broken" in statuses(verified(swapped), "fill_rows").values()


# ---- several arrays ------------------------------------------------------------------------------------------

IN, OUT = "grid[0] <= cdiv(x.shape[0], 64)", "grid[0] <= cdiv(out.shape[0], 64)"


@pytest.mark.parametrize(
    ("before", "count", "expected"),
    [
        ("out = torch.empty_like(x)", "x.shape[0]", {IN: "holds", OUT: "holds"}),
        ("out = torch.empty_like(x)", "x.numel()", {IN: "holds", OUT: "holds"}),
        ("pass", "x.shape[0]", {IN: "holds", OUT: "caller"}),
        ("pass", "out.shape[0]", {IN: "caller", OUT: "holds"}),
        ("assert x.shape == out.shape", "out.numel()", {IN: "holds", OUT: "holds"}),
        ("assert x.shape[0] <= out.shape[0]", "x.shape[0]", {IN: "holds", OUT: "holds"}),
        ("pass", "min(x.shape[0], out.shape[0])", {IN: "holds", OUT: "holds"}),
        ("x, out = x.view(-1), out.view(-1)", "x.shape[0]", {IN: "holds", OUT: "caller"}),
        ("out = torch.empty(x.shape[0] // 2)", "x.shape[0]", {IN: "holds", OUT: "broken"}),
        ("x = x[:10]", "x.shape[0]", {IN: "holds", OUT: "caller"}),
    ],
)
def test_two_arrays(before: str, count: str, expected: dict[str, str], verified) -> None:
    body = f"""
    def host(x, out, stream):
        assert x.ndim == 1
        {before}
        ct.launch(stream, (ct.cdiv({count}, T),), copy, (x, out))
    """
    assert statuses(verified(body), "copy") == expected


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("torch.empty_like(x[: x.shape[0] // 2])", "broken"),
        ("torch.empty_like(x[: x.shape[0] + 1])", "holds"),
        ("torch.empty((x.shape[0] // 2, *x.shape[1:]))", "broken"),
        ("torch.empty((x.shape[0], *x.shape[1:]))", "holds"),
        ("torch.empty(unread(x))", "unread"),
    ],
)
def test_shapes_made_of_one_of_any_rank_are_the_hosts_own(out: str, expected: str, verified) -> None:
    body = f"""
    def host(x, stream):
        out = {out}
        ct.launch(stream, (ct.cdiv(x.shape[0], T),), copy, (x, out))
    """
    assert statuses(verified(body), "copy")[OUT] == expected


def test_a_tensor_made_like_another_argument_is_an_agreement_of_both(verified) -> None:
    """As in a backward pass: the gradient has the shape of what was saved, or the caller is wrong."""
    body = """
    def host(x, saved, stream):
        out = torch.empty_like(saved)
        ct.launch(stream, (ct.cdiv(x.shape[0], T),), copy, (x, out))
    """
    assert statuses(verified(body), "copy")[IN] == "holds"


# ---- tile sizes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tile", "divisor", "expected"),
    [("128", "128", "holds"), ("t", "t", "holds"), ("64", "128", "holds"), ("128", "64", "broken")],
)
def test_tile_sizes(tile: str, divisor: str, expected: str, verified) -> None:
    body = f"""
    def host(n: int, t: int, stream):
        assert n > 0
        out = torch.empty(n)
        ct.launch(stream, (ct.cdiv(n, {divisor}),), sized, (out, {tile}))
    """
    assert one(body, "sized", verified) == expected


# ---- standing obligations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "codes"),
    [
        ("(ct.cdiv(n, T),)", []),
        ("(ct.cdiv(n, T), 1, 1)", []),
        ("(ct.cdiv(n, T), 2)", ["TC403"]),
        ("(ct.cdiv(n, T), n)", ["TC403"]),
        ("(ct.cdiv(n, T), unread(n))", []),
    ],
)
def test_axes_that_the_kernel_never_reads(grid: str, codes: list[str], verified) -> None:
    body = f"""
    def host(n: int, stream):
        assert n > 0
        out = torch.empty(n)
        ct.launch(stream, {grid}, fill, (out,))
    """
    assert [d.code for d in verified(body).diagnostics if d.kernel == "fill"] == codes


@pytest.mark.parametrize(
    ("second", "codes"),
    [
        ("x", ["TC401"]),
        ("x.view(-1)", ["TC401"]),
        ("x.contiguous()", ["TC401"]),
        ("x.clone()", []),
        ("torch.empty_like(x)", []),
        ("x * 1", []),
    ],
)
def test_one_buffer_twice(second: str, codes: list[str], verified) -> None:
    body = f"""
    def host(x: torch.Tensor, stream):
        assert x.ndim == 1
        ct.launch(stream, (ct.cdiv(x.shape[0], T),), copy, (x, {second}))
    """
    assert [d.code for d in verified(body).diagnostics if d.kernel == "copy"] == codes


def test_a_launch_that_is_not_understood_is_unread(verified) -> None:
    body = """
    def host(out, n, stream):
        ct.launch(stream, (n,), fill, unread(out))
    """
    [at] = next(k for k in verified(body).kernels if k.name == "fill").launches
    assert (at.status, at.conditions) == ("unread", ())
