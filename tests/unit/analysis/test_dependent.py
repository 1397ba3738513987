"""What a kernel touches before and after it waits for earlier launches."""

from __future__ import annotations

import textwrap

import pytest

from tilecheck import check_source
from tilecheck.model import KernelReport
from tilecheck.report.emitters.json import to_object
from tilecheck.report.verdicts import ordered

TRITON = """
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

@triton.jit
def k(x, w, out, n, FLAG: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
"""
CUTILE = """
import cuda.tile as ct

@ct.kernel
def k(x, w, out, T: ct.Constant[int]):
    i = ct.bid(0)
    b = ct.load(w, index=(i,), shape=(T,))
    ct.grid_dependency_control_wait()
    ct.store(out, index=(i,), tile=b * ct.load(x, index=(i,), shape=(T,)))
"""
LOAD = "v = tl.load({} + i, mask=i < n)"
STORE = "tl.store(out + i, v, mask=i < n)"


def report(text: str) -> KernelReport:
    [kernel] = check_source(text, "k.py").kernels
    return kernel


def order(*lines: str) -> tuple[bool, set[str], set[str]]:
    """Whether a kernel always waits, and what it touches before and after."""
    found = report(TRITON + textwrap.indent("\n".join(lines), "    ") + "\n").launch_order
    assert found is not None
    before, after = ({*part.reads, *part.writes} for part in (found.before, found.after))
    return found.always, before, after


def test_a_kernel_that_never_waits_has_no_order() -> None:
    assert (
        report(TRITON + f"    {LOAD.format('x')}\n    gdc_launch_dependents()\n    {STORE}\n").launch_order
        is None
    )


ASSEMBLY = 'tl.inline_asm_elementwise("{}", "=r", [], dtype=tl.int32, is_pure={}, pack=1)'
WAITS = [
    "gdc_wait()",
    "tl.extra.cuda.gdc_wait()",
    ASSEMBLY.format("griddepcontrol.wait; // $0", False),
    ASSEMBLY.format("griddepcontrol.launch_dependents; griddepcontrol.wait;", False),
]


@pytest.mark.parametrize("call", WAITS)
def test_what_stands_before_the_wait_is_touched_before_it(call: str) -> None:
    assert order(LOAD.format("w"), call, LOAD.format("x"), STORE) == (True, {"w"}, {"x", "out"})


@pytest.mark.parametrize(
    "call",
    [
        ASSEMBLY.format("griddepcontrol.wait;", True),
        ASSEMBLY.format("griddepcontrol.wait; ld.global $0;", False),
    ],
)
def test_other_assembly_is_no_wait(call: str) -> None:
    """A compiler may move or remove assembly that the author calls pure."""
    found = report(TRITON + f"    {call}\n    {LOAD.format('x')}\n    {STORE}\n")
    assert (found.verdict.value, found.launch_order) == ("unknown", None)


def test_a_wait_under_a_condition_orders_what_is_under_it() -> None:
    branch = ["if n > 4:", "    gdc_wait()", f"    {LOAD.format('x')}", f"    {STORE}"]
    assert order(*branch, LOAD.format("w"), STORE) == (False, {"w", "out"}, {"x", "out"})


def test_either_branch_may_wait() -> None:
    branches = [
        "if n > 4:",
        "    gdc_wait()",
        "else:",
        f"    {LOAD.format('w')}",
        f"    {STORE}",
        "    gdc_wait()",
    ]
    assert order(*branches)[1:] == ({"w", "out"}, set())


def test_a_flag_that_is_known_at_compile_time_is_needed() -> None:
    """One kernel serves both kinds of launches."""
    lines = [LOAD.format("w"), "if FLAG:", "    gdc_wait()", LOAD.format("x"), STORE]
    assert order(*lines) == (True, {"w"}, {"x", "out"})
    found = report(TRITON + textwrap.indent("\n".join(lines), "    ") + "\n").launch_order
    assert found is not None
    assert found.needs == ("FLAG",)
    assert ordered(found).startswith("with `FLAG`, before its wait for earlier launches: loads `w`; ")


def test_a_wait_where_a_flag_is_false_needs_nothing() -> None:
    lines = ["if not FLAG:", "    gdc_wait()", LOAD.format("x"), STORE]
    assert order(*lines) == (False, {"x", "out"}, set())


def test_a_wait_in_a_loop_orders_the_rest_of_its_round_alone() -> None:
    """There may be no round at all."""
    loop = [
        "for _ in range(n):",
        f"    {LOAD.format('w')}",
        "    gdc_wait()",
        f"    {LOAD.format('x')}",
        f"    {STORE}",
    ]
    assert order(*loop, LOAD.format("w"), STORE) == (False, {"w", "out"}, {"x", "out"})


def test_an_atomic_is_a_load_and_a_store() -> None:
    found = report(TRITON + "    tl.atomic_add(out + i, 1, mask=i < n)\n    gdc_wait()\n").launch_order
    assert found is not None
    assert (found.before.reads, found.before.writes) == (("out",), ("out",))


def test_cutile_waits_too() -> None:
    found = report(CUTILE).launch_order
    assert found is not None
    assert found.always
    assert (found.before.reads, found.after.reads, found.after.writes) == (("w",), ("x",), ("out",))


def test_the_reports_say_it() -> None:
    run = check_source(CUTILE, "k.py")
    [kernel] = to_object(run)["kernels"]
    assert kernel["launch_order"] == {
        "waits": "always",
        "needs": [],
        "before": {"reads": ["w"], "writes": []},
        "after": {"reads": ["x"], "writes": ["out"]},
    }
    found = run.kernels[0].launch_order
    assert found is not None
    assert (
        ordered(found) == "before its wait for earlier launches: loads `w`; after it: loads `x`, stores `out`"
    )


@pytest.mark.parametrize("call", ["tl.reduce(v, 0, add)", "tl.associative_scan(v, 0, add)"])
def test_the_function_of_a_reduction_may_not_run(call: str) -> None:
    helper = "@triton.jit\ndef add(a, b):\n    gdc_wait()\n    return a + b\n\n@triton.jit\ndef k("
    body = f"    {LOAD.format('x')}\n    s = {call}\n    {STORE}\n"
    found = report(TRITON.replace("@triton.jit\ndef k(", helper) + body)
    assert found.reason == "unsupported:wait for launches in the function of a reduction or scan"
