"""Which overflow checks count: those that an access, a branch or another check rests on.

`t + 1` of a loaded `t` is checked where it leaves 32 bits. The check counts if something that the launch can do
wrong rests on the sum, whatever became of its terms.
"""

from __future__ import annotations

import textwrap

import pytest

from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir import expr as E
from tilecheck.ir.kernel import Arithmetic
from tilecheck.text import decode

TRITON = """\
import triton
import triton.language as tl


@triton.jit
def moved(x):
    return x, tl.cdiv(x, 2)


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def kernel(x_ptr, t_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    t = tl.load(t_ptr + tl.program_id(0)).to(tl.int32)
    tile = tl.load(t_ptr + lane, mask=lane < n, other=0).to(tl.int32)
    wide = t.to(tl.int64)
"""
CUTILE = """\
import cuda.tile as ct


@ct.kernel
def kernel(x, out, table, n):
    t = ct.astype(ct.load(table, index=(ct.bid(0),), shape=(1,)), ct.int32).item()
"""


def checks(body: str, head: str = TRITON, value: str = "+ 1") -> list[Arithmetic]:
    """The checks of sums that a loaded value and a literal are, in a kernel with this body."""
    text = head + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    table = Project().add(parse(decode("kernel.py", text.encode())))
    [definition] = [d for d in find_kernels(table) if d.name == "kernel"]
    kernel = lower(definition)
    assert kernel.accesses
    return [check for check in kernel.arithmetic if value in E.render(check.value)]


def counted(body: str, head: str = TRITON) -> bool:
    found = checks(body, head)
    assert found, "no sum was checked"
    return any(check.counts for check in found)


# ---- S-32bit-1: what an operation makes rests on what its operands rest on -----------------------------------

SUM = "(t + 1).to(tl.int64)"


@pytest.mark.parametrize(
    "value",
    [
        f"{SUM} - wide",  # 1
        f"{SUM} * 0",
        f"{SUM} * 3 // 3",
        f"{SUM} * 3 % 3",
        f"({SUM} & 0)",
        f"-{SUM} + wide",
        f"~{SUM}",
        f"tl.abs({SUM})",
        f"tl.minimum({SUM}, 7)",
        f"tl.maximum(tl.minimum({SUM}, 0), 0)",
        f"tl.clamp({SUM}, 0, 7)",
        f"tl.where({SUM} == wide + 1, 3, 4)",
        f"tl.where(n > 3, {SUM}, 0)",
        f"(3 if {SUM} == wide + 1 else 4)",
        f"(({SUM} == wide + 1) & (n > 3)).to(tl.int32)",
        f"(({SUM} == wide + 1) and n > 3).to(tl.int32)",
        f"(not ({SUM} == wide + 1)).to(tl.int32)",
        f"tl.cumsum(({SUM} + lane > 4).to(tl.int32), axis=0)",
        f"tl.max(tl.where({SUM} > wide, lane, 3), axis=0)",
        f"tl.argmax({SUM} + lane, axis=0)",
        f"tl.reshape({SUM} + lane, (1, BLOCK))",
        f"tl.broadcast_to({SUM}, (BLOCK,))",
        f"tl.full((BLOCK,), {SUM}, tl.int64)",
        f"({SUM} * 0.5).to(tl.int32)",
        f"tl.floor({SUM} * 0.5).to(tl.int32)",
        f"tl.cdiv({SUM}, 4)",
        f"moved({SUM})[1]",
        f"max({SUM}, wide)",
    ],
)
def test_an_operation_unites_the_checks_of_its_operands(value: str) -> None:
    """In an index and in a mask."""
    assert counted(f"tl.store(out_ptr + ({value}), 1.0)")
    assert counted(f"tl.store(out_ptr + lane, 1.0, mask=lane < ({value}))")


def test_a_branch_is_a_sink() -> None:
    assert counted(f"if {SUM} - wide > n:\n    tl.store(out_ptr, 1.0)")


@pytest.mark.parametrize(
    "value",
    [
        f"tl.sum({SUM} + lane, axis=0)",
        f"tl.max({SUM} + lane, axis=0)",
        f"tl.reduce({SUM} + lane, 0, larger)",
        f"tl.associative_scan({SUM} + lane, 0, larger)",
        f"tl.histogram({SUM} + lane, 8)",
        f"tl.inline_asm_elementwise('add $0, $1, 1;', '=r,r', [{SUM}], tl.int32, True, 1)",
    ],
)
def test_an_unknown_rests_on_nothing(value: str) -> None:
    assert not counted(f"tl.store(out_ptr + ({value}), 1.0)")
    assert not counted(f"tl.store(out_ptr + lane[:8], 1.0, mask={value} > 3)".replace("[:8]", ""))


@pytest.mark.parametrize(
    "value", [f"{SUM} - 1", f"tl.full((BLOCK,), {SUM} - 1, tl.int64)", f"({SUM} - 1 + lane)"]
)
def test_a_sum_that_folds_to_an_unknown_rests_on_its_terms(value: str) -> None:
    assert counted(f"t = tl.sum(tile, axis=0)\ntl.store(out_ptr + {value}, 1.0)")


@pytest.mark.parametrize(
    "value",
    [
        "(tile + 1)[:, None]",
        "(tile + 1)[None, :]",
        "tl.expand_dims(tile + 1, 0)",
        "tl.trans((tile + 1)[:, None])",
    ],
)
def test_lanes_that_are_put_elsewhere_take_their_checks_along(value: str) -> None:
    assert counted(f"tl.store(out_ptr + {value}, 1.0)")
    assert counted(f"tl.store(out_ptr, 1.0, mask={value} < 3)")


@pytest.mark.parametrize(
    "body",
    [
        "p = out_ptr + (t + 1)\ntl.store(p - (t + 1), 1.0)",
        "p = out_ptr + (t + 1)\ntl.store(out_ptr + (p - out_ptr), 1.0)",
        "p = x_ptr + (t + 1)\ntl.store(out_ptr + (p - x_ptr) % 4, 1.0)",
        "p = tl.make_block_ptr(out_ptr, (n,), (1,), (t + 1,), (BLOCK,), (0,))\ntl.store(p, 1.0 + lane)",
        "p = tl.make_block_ptr(out_ptr + (t + 1), (n,), (1,), (0,), (BLOCK,), (0,))\ntl.store(p, 1.0 + lane)",
        "d = tl.make_tensor_descriptor(out_ptr, (n,), (1,), (BLOCK,))\nd.store([t + 1], 1.0 + lane)",
        "tl.atomic_cas(out_ptr, 0, (t + 1).to(tl.int64) - wide)",
        "pair = (lane, (t + 1).to(tl.int64) - wide)\ntl.store(out_ptr + pair[1], 1.0)",
    ],
)
def test_pointers_and_sequences_carry_checks(body: str) -> None:
    assert counted(body)


ONE_OF_BLOCKS = "((tl.program_id(0) + 1).to(tl.int64) - tl.program_id(0).to(tl.int64))"  # the literal 1


@pytest.mark.parametrize(
    "body",
    [
        "tl.store(out_ptr + tl.load(x_ptr + lane, mask=lane < n, other=ONE), 1.0)",
        "tl.store(out_ptr, 1.0, mask=(1.5 * ONE * scale).to(tl.int32) > 0)",
        "for i in tl.static_range(0, ONE):\n    tl.store(out_ptr + i, 1.0)",
        "for i in tl.static_range(ONE, 3):\n    tl.store(out_ptr + i, 1.0)",
        "tl.store(out_ptr + tl.arange(0, ONE), 1.0)",
        "tl.store(out_ptr + (lane, lane + 1)[ONE], 1.0)",
    ],
)
def test_a_literal_carries_checks_or_is_a_sink(body: str) -> None:
    body = body.replace("ONE", ONE_OF_BLOCKS).replace("scale", "x_ptr")
    assert any(check.counts for check in checks(body, value="ct.bid(0) + 1"))


@pytest.mark.parametrize(("first", "second"), [("one", "two - 1"), ("two - 1", "one")])
@pytest.mark.parametrize(("value", "at"), [("{}", "at"), ("({}, 2)", "at[0]")])
def test_equal_values_of_two_branches_rest_on_both(first: str, second: str, value: str, at: str) -> None:
    body = f"""
        one = ct.astype(ct.bid(0) + 1, ct.int64) - ct.astype(ct.bid(0), ct.int64)
        two = ct.astype(2, ct.int64)
        if n > 3:
            at = {value.format(first)}
        else:
            at = {value.format(second)}
        ct.scatter(out, ({at},), 1.0)
        """
    assert any(check.counts for check in checks(body, CUTILE, "ct.bid(0) + 1"))


# ---- S-32bit-2: sinks ----------------------------------------------------------------------------------------


BLOCK_POINTER = "tl.make_block_ptr(out_ptr, (n,), (1,), (t + 1,), (BLOCK,), (0,))"


def test_what_is_stored_alone_needs_no_check() -> None:
    assert not counted("tl.store(out_ptr + lane, (t + 1).to(tl.int64) + lane)")
    assert not counted("tl.store(out_ptr + lane, tl.where(t + 1 < n, 1.0, 2.0))")


def test_what_memory_holds_is_a_new_value() -> None:
    """The address counts under the mask of its own load, and not where the loaded value is tested."""
    body = """
        found = tl.load(x_ptr + (tile + 1), mask=tile < 8)
        tl.store(out_ptr + lane, 1.0, mask=found > 3.5)
        """
    [check] = [check for check in checks(body) if check.counts]
    assert not check.tested
    assert len(check.places) == 1


def test_a_check_of_an_index_alone_counts_where_the_access_is() -> None:
    [check] = checks("tl.store(out_ptr + (tile + 1), 1.0, mask=tile < 8)")
    assert not check.tested
    [place] = check.places
    assert "< 8" in E.render(place.given)
    assert "< 8" not in E.render(check.guard)
    assert place.length == "out_ptr.shape[0]"


@pytest.mark.parametrize(
    "value",
    [
        "(tile + 1).to(tl.int64)[:, None]",
        "-(tile + 1).to(tl.int64)",
        "tl.expand_dims((tile + 1).to(tl.int64), 0)",
        "tl.trans((tile + 1).to(tl.int64)[:, None])",
        "tl.broadcast_to((tile + 1).to(tl.int64), (4, BLOCK))",
        "tl.full((BLOCK,), t + 1, tl.int64)",
        "tl.where(n > 3, tile + 1, tile)",
        "tl.minimum((tile + 1).to(tl.int64), 9)",
        "(tile + 1) // 2 * 2",
    ],
)
def test_an_index_that_is_put_elsewhere_still_counts_where_the_access_is(value: str) -> None:
    found = checks(f"tl.store(out_ptr + {value}, 1.0, mask=n < 8)")
    assert found
    assert not any(check.tested for check in found)
    assert all("n < 8" in E.render(place.given) for check in found for place in check.places)


def test_an_element_of_a_tile_still_counts_where_the_access_is() -> None:
    [check] = checks(
        "ct.scatter(out, (ct.full((1,), ct.astype(t + 1, ct.int64), ct.int64).item(),), 1.0)", CUTILE
    )
    assert check.places
    assert not check.tested


def test_a_check_of_a_mask_counts_in_every_lane() -> None:
    found = checks("at = tile + 1\ntl.store(out_ptr + at, 1.0, mask=at < 8)")
    assert any(check.tested for check in found)


def test_a_check_of_a_branch_that_is_not_taken_has_its_case() -> None:
    [check] = checks("tl.store(out_ptr + tl.where(tile < 9, tile + 1, 0), 1.0)")
    [place] = check.places
    assert "< 9" in E.render(place.given)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(0, t + 1):\n    tl.store(out_ptr + i, 1.0)",
        "tl.store(out_ptr + n // (t + 1), 1.0)",
        "tl.store(out_ptr + n % (t + 1).to(tl.int64), 1.0)",
        "while (t + 1) < n:\n    tl.store(out_ptr, 1.0)",
        "if t + 1 < n:\n    return\ntl.store(out_ptr, 1.0)",
        "if 0 < (t + 1).to(tl.int64) - wide < n:\n    tl.store(out_ptr, 1.0)",
        "tl.store(out_ptr, 1.0, mask=0 < (t + 1) < n)",
        f"tl.store({BLOCK_POINTER}, 1.0 + lane, boundary_check=(0,))",
    ],
)
def test_bounds_of_loops_divisors_and_tests_are_sinks(body: str) -> None:
    assert any(check.tested for check in checks(body))


def test_the_ends_of_a_search_are_sinks() -> None:
    """What is known of the ends in a round is made of those before the loop."""
    body = """
        low = 0
        high = (t + 1).to(tl.int64)
        while low < high:
            middle = (low + high) // 2
            if tl.load(x_ptr + middle) < n:
                low = middle + 1
            else:
                high = middle
        tl.store(out_ptr + low, 1.0)
        """
    assert any(check.tested for check in checks(body))


def test_offsets_of_a_descriptor_that_the_host_made_are_indices() -> None:
    assert counted("x_ptr.store([t + 1], 1.0 + lane)")


def test_what_chooses_the_lanes_of_a_store_is_a_mask() -> None:
    """`min(i, n)` as an index is a store of the lanes with i < n."""
    found = checks("ct.scatter(out, ct.minimum(ct.arange(4, dtype=ct.int32) + (t + 1), n), 1.0)", CUTILE)
    assert any(check.tested for check in found)


@pytest.mark.parametrize(
    "body",
    [
        "ct.scatter(out, (t + 1,), 1.0)",
        "ct.store(out, index=(t + 1,), tile=ct.zeros((1,), dtype=ct.float32))",
        "ct.store(out.slice(0, t + 1, n), index=(0,), tile=ct.zeros((1,), dtype=ct.float32))",
        "out.get_raw_memory().store_offset(t + 1, 1.0)",
        "out.get_raw_memory().store_offset(0, 1.0, mask=t + 1 < out.shape[0])",
        "out.tiled_view((4,)).store((t + 1,), ct.zeros((4,), dtype=ct.float32))",
        "ct.store_advanced_indexing(out, (ct.arange(4, dtype=ct.int32) + (t + 1),), ct.zeros((4,)))",
        "ct.atomic_add(out, (t + 1,), 1.0)",
        "two = ct.cat((ct.full((1,), t + 1, ct.int32),) * 2, 0)\nct.scatter(out, two.extract(0, (1,)), 1.0)",
    ],
)
def test_accesses_of_cutile_are_sinks(body: str) -> None:
    assert counted(body, CUTILE)


# ---- S-32bit-3: loops ----------------------------------------------------------------------------------------

ONE_MORE = "((t + 1).to(tl.int64) - wide).to(tl.int32)"
AFTER = "tl.store(out_ptr + at, 1.0)"


@pytest.mark.parametrize(
    "body",
    [
        f"at = 0\nfor i in range(n):\n    at = {ONE_MORE}\n{AFTER}",
        f"at = 0\nfor i in range(n):\n    at += {ONE_MORE}\n{AFTER}",
        f"at = 0\nfor i in range(n):\n    {AFTER}\n    at = {ONE_MORE}",
        f"at = 0\nfor i in range(n):\n    if n > 3:\n        at = {ONE_MORE}\n{AFTER}",
        f"at = 0\nfor i in range(n):\n    at = {ONE_MORE}\n    continue\n{AFTER}",
        f"at = 0\nwhile at < n:\n    at += {ONE_MORE}\n{AFTER}",
        "p = out_ptr\nfor i in range(n):\n    tl.store(p, 1.0)\n    p += (t + 1).to(tl.int64) - wide",
    ],
)
def test_a_variable_rests_on_what_the_rounds_leave_in_it(body: str) -> None:
    assert counted(body)


@pytest.mark.parametrize(
    "body", [f"if i > 3:\n        at = {ONE_MORE}", f"if i > 3:\n        at = {ONE_MORE}\n        break"]
)
def test_a_variable_of_which_nothing_is_known_rests_on_nothing(body: str) -> None:
    head = CUTILE.replace(
        "n):", "n):\n    wide = ct.astype(ct.load(table, index=(ct.bid(0),), shape=(1,)), ct.int64)"
    )
    text = f"at = 0\nfor i in range(n):\n    {body}\nct.scatter(out, (at,), 1.0)"
    text = text.replace(ONE_MORE, "(ct.astype(t + 1, ct.int64) - ct.astype(t, ct.int64))")
    assert not counted(text, head)
