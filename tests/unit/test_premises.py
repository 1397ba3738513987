"""Premises: where each contract comes from, and whether launches in view show it, check it, or do neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.model import KernelReport
from tilecheck.options import Options
from tilecheck.verify.pipeline import verify_paths, verify_source

KERNEL = """import cuda.tile as ct
import tilecheck
import torch


# tilecheck: requires T >= 64 -- large tiles
# tilecheck: requires distinct(table)
@ct.kernel
def scatter(x, table, out, T: ct.Constant[int]):
    b = ct.bid(0)
    row = ct.gather(table, b)
    if b < table.shape[0]:
        v = ct.load(x, index=(b, 0), shape=(1, T))
        ct.scatter(out, (row, ct.arange(T, dtype=ct.int32)), ct.reshape(v, (T,)))


def run(x, table, out, tile, checks):
    stream, grid = torch.cuda.current_stream(), (table.shape[0],)
"""
ADD = """import tilecheck
import triton
import triton.language as tl


# tilecheck: requires n <= 4096
@triton.jit
def add(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(x, out, n):
    grid = (triton.cdiv(n, 64),)
"""
LAUNCH = "ct.launch(stream, grid, scatter, (x, table, out, {tile}))"
GUARDED = "tilecheck.launch(stream, grid, scatter, (x, table, out, {tile}){more})"


def _kernel(source: str, *launches: str) -> KernelReport:
    text = source + "".join(f"    {launch}\n" for launch in launches or ("pass",))
    (kernel,) = verify_source(text.encode(), "k.py", Options()).kernels
    return kernel


def _statuses(source: str, *launches: str) -> list[str]:
    return [premise.status for premise in _kernel(source, *launches).premises]


@pytest.mark.parametrize(
    ("launches", "statuses"),
    [
        ((), ["promised", "promised"]),
        ((LAUNCH.format(tile=64),), ["holds", "promised"]),
        ((LAUNCH.format(tile="tile"),), ["promised", "promised"]),
        ((LAUNCH.format(tile=64), LAUNCH.format(tile="tile")), ["promised", "promised"]),
        ((GUARDED.format(tile="tile", more=""),), ["guarded", "promised"]),
        ((GUARDED.format(tile=64, more=""),), ["holds", "promised"]),
        ((GUARDED.format(tile="tile", more=", check_contracts=True"),), ["guarded", "guarded"]),
        ((GUARDED.format(tile="tile", more=", check_contracts=4096"),), ["guarded", "guarded"]),
        ((GUARDED.format(tile="tile", more=", check_contracts=False"),), ["guarded", "promised"]),
        ((GUARDED.format(tile="tile", more=", check_contracts=checks"),), ["guarded", "promised"]),
        ((GUARDED.format(tile="tile", more=""), LAUNCH.format(tile=64)), ["guarded", "promised"]),
        ((GUARDED.format(tile="tile", more=""), LAUNCH.format(tile="tile")), ["promised", "promised"]),
    ],
)
def test_a_launch_shows_a_premise_or_checks_it(launches: tuple[str, ...], statuses: list[str]) -> None:
    assert _statuses(KERNEL, *launches) == statuses


@pytest.mark.parametrize(
    ("launches", "status"),
    [
        (("add[grid](x, out, n, B=64)",), "promised"),
        (("tilecheck.verified(add)[grid](x, out, n, B=64)",), "guarded"),
        (("fast = tilecheck.verified(add)", "fast[grid](x, out, n, B=64)"), "guarded"),
        (("tilecheck.verified(add)[grid](x, out, n, B=64)", "add[grid](x, out, n, B=64)"), "promised"),
        (("add[grid](x, out, 64, B=64)",), "holds"),
        (("tilecheck.verified(add)[grid](x, out, n, *unread)",), "promised"),
    ],
)
def test_a_verified_kernel_checks_what_it_is_launched_with(launches: tuple[str, ...], status: str) -> None:
    assert _statuses(ADD, *launches) == [status]


@pytest.mark.parametrize("call", [LAUNCH, GUARDED])
def test_a_launch_that_is_not_understood_is_unread_and_shows_nothing(call: str) -> None:
    whole = call.format(tile=64, more="").replace("(x, table, out, 64)", "checks")
    kernel = _kernel(KERNEL, whole, call.format(tile=64, more=""))
    unread, read = kernel.launches
    assert (unread.status, unread.function) == ("unread", "run")
    assert "holds" not in {c.status for c in unread.conditions}
    assert "`checks`" in unread.problem
    assert (read.status, read.problem) == ("read", "")
    assert read.conditions
    assert kernel.premises[0].status == ("guarded" if unread.guarded else "promised")


def test_a_premise_has_its_text_and_its_reason() -> None:
    found = _kernel(KERNEL).premises
    assert [(p.text, p.reason, p.origin) for p in found] == [
        ("T >= 64", "large tiles", "source"),
        ("distinct(table)", None, "source"),
    ]


def test_a_contract_of_several_parts_is_one_premise() -> None:
    found = _kernel(KERNEL.replace("distinct(table)", "permutation(table) -- sorted")).premises
    assert [(p.text, p.reason) for p in found] == [("T >= 64", "large tiles"), ("permutation(table)", "sorted")]


def test_contracts_of_the_configuration_are_told_from_those_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(ADD + "    pass\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tilecheck]\n[[tool.tilecheck.kernel]]\nmatch = "*::add"\nrequires = ["n >= 7", "n <= 4096"]\n'
        'constants = { B = 64 }\nreason = "the launcher pads"\n'
    )
    (kernel,) = verify_paths([str(tmp_path / "k.py")]).kernels
    assert [(p.text, p.reason, p.origin) for p in kernel.premises] == [
        ("n <= 4096", None, "source"),
        ("n >= 7", "the launcher pads", "config"),
        ("n <= 4096", "the launcher pads", "config"),
        ("B == 64", "the launcher pads", "config"),
    ]
    assert kernel.requires == ("n <= 4096", "n >= 7", "B == 64")
