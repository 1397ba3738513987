"""Triton kernels as the front end reads them: which parameters are pointers, and what each access touches."""

from __future__ import annotations

import textwrap

import pytest

from tilecheck import check_source
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.expr import Kind, Symbol, add, bool_sym, ite, mul, render, sym
from tilecheck.ir.kernel import CheckKind, Effect, Kernel, Ownership
from tilecheck.text import decode

HEAD = "import triton\nimport triton.language as tl\n\n"


def kernels(text: str) -> list[str]:
    table = Project().add(parse(decode("kernel.py", (HEAD + textwrap.dedent(text)).encode())))
    return [d.name for d in find_kernels(table)]


def read(body: str, params: str, before: str = "") -> Kernel:
    text = f"{HEAD}{textwrap.dedent(before)}\n\n@triton.jit\ndef kernel({params}):\n"
    text += textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    table = Project().add(parse(decode("kernel.py", text.encode())))
    [definition] = [d for d in find_kernels(table) if d.name == "kernel"]
    return lower(definition)


def places(kernel: Kernel, effect: Effect = Effect.WRITE) -> list[str]:
    """`array[offset] if mask` of each access, lanes without their numbers."""
    found = []
    for access in kernel.accesses:
        if access.effect is effect:
            (axis,) = access.axes
            mask = render(access.mask)
            found.append(
                f"{access.array}[{render(axis.coordinate)}]" + ("" if mask == "True" else f" if {mask}")
            )
    return found


ADD = """
offs = tl.program_id(0) * B + tl.arange(0, B)
tl.store(y + offs, tl.load(x + offs, mask=offs < n), mask=offs < n)
"""


def test_the_one_term_that_can_be_a_pointer_is_one() -> None:
    kernel = read(ADD, "x, y, n, B: tl.constexpr")
    owned = {p.name: p.ownership for p in kernel.params}
    assert owned == {
        "x": Ownership.SHARED,
        "y": Ownership.MUT,
        "n": Ownership.VALUE,
        "B": Ownership.CONSTANT,
    }
    assert places(kernel) == ["y[ct.bid(0) * B + lane 0] if ct.bid(0) * B + lane 0 < n"]


def test_a_scalar_beside_the_pointer_is_known_by_its_other_use() -> None:
    kernel = read("tl.store(x + n, 0.0)\nfor i in range(n):\n    tl.store(x + i, 1.0)", "x, n")
    assert {a.array for a in kernel.accesses} == {"x"}


def test_a_pointer_that_nothing_tells_apart_is_not_guessed() -> None:
    with pytest.raises(UnsupportedConstruct, match="no parameter is clearly the base"):
        read("tl.store(x + y, 0.0)", "x, y")


def test_pointers_move_with_a_loop() -> None:
    kernel = read("p = x\nfor k in range(n):\n    tl.store(p, 0.0)\n    p += s", "x, n, s")
    assert places(kernel) == ["x[k * s]"]


def test_parameters_can_be_rebound() -> None:
    kernel = read("x += tl.program_id(0) * s\ntl.store(x + tl.arange(0, 8), 0.0)", "x, s")
    assert places(kernel) == ["x[ct.bid(0) * s + lane 0]"]


def test_tiles_of_pointers_broadcast() -> None:
    kernel = read(
        "r = tl.arange(0, 4)\nc = tl.arange(0, 8)\ntl.store(x + r[:, None] * s + c[None, :], 0.0)", "x, s"
    )
    assert places(kernel) == ["x[lane 0 * s + lane 1]"]


@pytest.mark.parametrize(
    ("check", "mask"),
    [
        ("()", "True"),
        ("(1,)", "0 <= 8 * j + lane 1 and 8 * j + lane 1 < n"),
        ("(0,)", "0 <= 4 * i + lane 0 and 4 * i + lane 0 < m"),
    ],
)
def test_block_pointers_are_checked_along_the_axes_that_they_name(check: str, mask: str) -> None:
    kernel = read(
        f"""
        i, j = tl.program_id(0), tl.program_id(1)
        p = tl.make_block_ptr(x, (m, n), (s, 1), (i * 4, j * 8), (4, 8), (1, 0))
        tl.store(p, tl.zeros((4, 8), tl.float32), boundary_check={check})
        """,
        "x, m, n, s",
    )
    (access,) = kernel.accesses
    text = render(access.mask).replace("ct.bid(0)", "i").replace("ct.bid(1)", "j")
    assert text == mask


def test_block_pointers_advance() -> None:
    kernel = read(
        """
        p = tl.make_block_ptr(x, (m, n), (n, 1), (0, 0), (4, 8), (1, 0))
        for k in range(0, n, 8):
            tl.store(p, tl.zeros((4, 8), tl.float32))
            p = tl.advance(p, (0, 8))
        """,
        "x, m, n",
    )
    assert places(kernel) == ["x[lane 0 * n + 8 * iteration(k) + lane 1]"]


def test_descriptors_are_checked_along_every_axis() -> None:
    kernel = read(
        """
        d = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[4, 8])
        d.store([tl.program_id(0) * 4, 0], tl.zeros((4, 8), tl.float32))
        """,
        "x, m, n",
    )
    (access,) = kernel.accesses
    assert render(access.mask).count("<=") == 2
    assert render(access.mask).endswith("lane 1 < n")


def test_a_descriptor_of_the_host_is_an_array_that_is_checked() -> None:
    kernel = read("y.store([tl.program_id(0) * 4, 0], x.load([0, tl.program_id(0) * 8]))", "x, y")
    load, store = kernel.accesses
    assert load.checked
    assert store.checked
    assert [render(axis.coordinate) for axis in store.axes] == ["4 * ct.bid(0) + lane 0", "lane 1"]
    assert render(store.axes[1].extent) == "y.shape[1]"
    assert [render(s.bound) for s in load.lanes] == ["x.block_shape[0]", "x.block_shape[1]"]


def test_a_division_that_truncates_is_taken_apart_or_asked_to_have_no_negative_dividend() -> None:
    natural = read("tl.store(x + tl.program_id(0) // 3, 0.0)", "x")
    assert places(natural) == ["x[ct.bid(0) // 3]"]
    assert not [c for c in natural.checks if c.kind is CheckKind.DIVIDEND]
    scalar = read("tl.store(x + n // 3, 0.0)", "x, n")
    assert [render(c.goal) for c in scalar.checks if c.kind is CheckKind.DIVIDEND] == ["0 <= n"]
    varying = read("tl.store(x + (tl.program_id(0) - 5) // 3 + 9, 0.0)", "x")
    (place,) = places(varying)
    assert "if 0 <= ct.bid(0) - 5 else" in place


def test_a_parameter_beside_an_integer_is_an_integer() -> None:
    kernel = read("if tl.program_id(0) < n:\n    tl.store(x, 0.0)", "x, n")
    assert render(kernel.accesses[0].guard) == "ct.bid(0) < n"


def test_atomics_keep_their_order_and_scope() -> None:
    kernel = read("tl.atomic_add(x, 1, sem='relaxed', scope='cta')\ntl.atomic_max(x, 1)", "x")
    assert [(a.atomic_kind, a.order, a.scope) for a in kernel.accesses] == [
        ("add", "RELAXED", "BLOCK"),
        ("max", "ACQ_REL", "DEVICE"),
    ]


def test_helpers_are_inlined_and_are_no_kernels() -> None:
    helper = "@triton.jit\ndef put(p, i):\n    tl.store(p + i, 0.0)"
    kernel = read("put(x, tl.program_id(0))", "x", helper)
    assert places(kernel) == ["x[ct.bid(0)]"]
    text = f"{helper}\n\n@triton.jit\ndef kernel(x):\n    put(x, 1)\n"
    assert kernels(text) == ["kernel"]


def test_a_function_that_returns_a_value_is_no_kernel_unless_it_is_launched_or_tuned() -> None:
    assert kernels("@triton.jit\ndef twice(x):\n    return 2 * x\n") == []
    assert kernels("@triton.jit\ndef k(x):\n    tl.store(x, 0)\n") == ["k"]
    assert kernels("def f(x):\n    tl.store(x, 0)\n\nk = triton.jit(f)\n") == ["f"]
    tuned = "@triton.autotune(configs=[], key=[])\n@triton.jit\ndef k(x):\n    tl.store(x, 0)\n"
    assert kernels(tuned) == ["k"]


def test_a_static_assertion_holds_wherever_the_kernel_compiles() -> None:
    kernel = read("tl.static_assert(B <= 64)\ntl.store(x + tl.arange(0, B), 0.0)", "x, B: tl.constexpr")
    assert "B <= 64" in [render(f) for f in kernel.facts]


def test_the_next_power_of_two_is_a_constant_of_compile_time() -> None:
    kernel = read("tl.store(x + tl.arange(0, triton.next_power_of_2(n)), 0.0)", "x, n: tl.constexpr")
    power = "next_power_of_2(n)"
    facts = [render(f) for f in kernel.facts]
    assert f"n < 1 or n <= {power} and {power} < 2 * n" in facts
    assert f"1 <= n or {power} == 0" in facts
    assert [render(size) for size in kernel.powers_of_two] == [power]


def test_the_next_power_of_two_of_a_literal_is_a_number() -> None:
    kernel = read("tl.store(x + tl.arange(0, triton.next_power_of_2(48)), 0.0)", "x")
    (access,) = kernel.accesses
    (lane,) = access.lanes
    assert lane.bound is not None
    assert render(lane.bound) == "64"


def test_a_pointer_under_a_flag_may_be_a_number_without_it() -> None:
    body = """
i = tl.arange(0, B)
if FLAG:
    limit = tl.load(n + tl.program_id(0))
else:
    limit = n
tl.store(x + i, 0.0, mask=i < limit)
"""
    kernel = read(body, "x, n, FLAG: tl.constexpr, B: tl.constexpr")
    load, store = kernel.accesses
    assert (load.array, render(load.guard)) == ("n", "FLAG")
    assert "n as a number" in render(store.mask)
    assert kernel.params[1].is_array


def test_a_pointer_that_is_a_number_under_the_same_flags_is_not_read() -> None:
    body = "if FLAG:\n    tl.store(x + tl.load(n), 0.0, mask=n < 4)"
    with pytest.raises(UnsupportedConstruct, match="number"):
        read(body, "x, n, FLAG: tl.constexpr")


def test_a_shifted_one_is_a_constant_of_compile_time() -> None:
    kernel = read("tl.store(x + tl.program_id(0) * (1 << n), 0.0)", "x, n: tl.constexpr")
    facts = [render(f) for f in kernel.facts]
    assert "0 <= n" in facts  # a negative one does not compile
    assert "n < 0 or n + 1 <= 2 ** n" in facts
    assert not kernel.checks


def test_a_power_that_is_used_as_an_integer_has_no_negative_exponent() -> None:
    kernel = read("tl.store(x + tl.program_id(0) * 2 ** n, 0.0)", "x, n: tl.constexpr")
    assert [(check.kind, render(check.goal)) for check in kernel.checks] == [(CheckKind.EXPONENT, "0 <= n")]
    assert "0 <= n" not in [render(f) for f in kernel.facts]


def test_a_power_that_may_be_a_fraction_is_asked_nothing() -> None:
    kernel = read("tl.store(x, tl.load(x) * 2 ** n)", "x, n: tl.constexpr")
    assert not kernel.checks
    assert not [f for f in kernel.facts if "2 ** n" in render(f)]


def test_powers_of_one_number_go_into_each_other() -> None:
    text = "tl.store(x + tl.program_id(0) * (1 << n) + (1 << (n - 1)), 0.0)"
    facts = [render(f) for f in read(text, "x, n: tl.constexpr").facts]
    assert "n - 1 < 0 or 2 ** n == 2 * 2 ** (n - 1)" in facts


def test_a_shift_that_may_not_be_compiled_says_nothing_of_its_amount() -> None:
    kernel = read("if f > 0.5:\n    v = 1 << n\ntl.store(x + n, 0.0)", "x, f: tl.constexpr, n: tl.constexpr")
    assert "0 <= n" not in [render(f) for f in kernel.facts]
    kernel = read("if F:\n    v = 1 << n\ntl.store(x + n, 0.0)", "x, F: tl.constexpr, n: tl.constexpr")
    assert "not F or 0 <= n" in [render(f) for f in kernel.facts]


def test_barriers_are_remembered() -> None:
    kernel = read("tl.store(x, 0)\ntl.debug_barrier()\ntl.store(x, 1)", "x")
    (barrier,) = kernel.barriers
    first, second = kernel.accesses
    assert first.position < barrier.position < second.position


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("tl.inline_asm_elementwise('nop', '=r', [], tl.int32, False, 1)", "assembly that may touch memory"),
        ("tl.inline_asm_elementwise('ld.global.u32 $0, [$1];', '=r,l', [x], tl.int32, True, 1)", "may touch"),
        ("tl.inline_asm_elementwise('discard.L2 [$1], 128;', '=r,l', [x], tl.int32, True, 1)", "may touch"),
        ("tl.inline_asm_elementwise('global_store_b32 $1, $1', '=v,v', [x], tl.int32, True, 1)", "may touch"),
        ("tl.inline_asm_elementwise(x, '=r,l', [x], tl.int32, True, 1)", "may touch"),
        ("tl.store((x + y).to(tl.pointer_type(tl.int8)), 0)", "tl.pointer_type"),
        (
            "i = y\nfor _ in tl.static_range(60):\n    i = i % (d + i)\ntl.store(x + i, 0.0)",
            "expression of this size",
        ),
    ],
)
def test_what_is_not_read_is_said_by_name(body: str, words: str) -> None:
    with pytest.raises(UnsupportedConstruct, match=words):
        read(body, "x, y, d")


def test_contracts_speak_of_the_length_of_memory_and_divide_as_python_does() -> None:
    text = f"""{HEAD}
# tilecheck: requires numel(x) >= cdiv(n, 4) -- the host allocates it
# tilecheck: requires (n - 1) % 4 == 0 -- the host pads
@triton.jit
def kernel(x, n):
    tl.store(x + tl.program_id(0), 0.0, mask=tl.program_id(0) < n)
"""
    table = Project().add(parse(decode("kernel.py", text.encode())))
    first, second = (r.condition for r in lower(find_kernels(table)[0]).requires)
    assert render(first) == "cdiv(n, 4) <= x.shape[0]"
    assert render(second) == "(n - 1) % 4 == 0"


def indices(kernel: Kernel) -> list[str]:
    return [render(access.axes[0].index) for access in kernel.accesses]


def test_the_place_of_the_largest_is_one_of_the_tile() -> None:
    body = """
        values = tl.load(x_ptr + tl.arange(0, BLOCK))
        tl.store(out_ptr + tl.argmax(values, axis=0), 1.0)
        _, place = tl.min(values, axis=0, return_indices=True)
        tl.store(out_ptr + place, 1.0)
        """
    kernel = read(body, "x_ptr, out_ptr, BLOCK: tl.constexpr")
    assert indices(kernel)[1:] == ["max(0, min(value, BLOCK - 1))"] * 2


def test_a_remainder_may_be_written_out() -> None:
    body = """
        pid = tl.program_id(0)
        n = pid // (C * H)
        tl.store(out_ptr + pid - n * C * H, 1.0)
        tl.store(out_ptr + pid - n * C, 1.0)
        """
    first, second = indices(read(body, "out_ptr, C, H"))
    assert "%" in first
    assert "//" not in first
    assert "%" not in second


def test_a_choice_of_the_larger_is_a_maximum() -> None:
    body = """
        at = tl.program_id(0) - shift
        at = tl.where(at < 0, 0, at)
        tl.store(out_ptr + tl.where(at > n - 1, n - 1, at), 1.0)
        tl.store(out_ptr + tl.where(at < n, n, 0), 1.0)
        """
    first, second = indices(read(body, "out_ptr, shift: tl.constexpr, n: tl.constexpr"))
    assert first.startswith("min(")
    assert "max(" in first
    assert " if " in second


def test_what_is_divided_is_an_integer() -> None:
    body = """
        n = tl.program_id(0) // C
        tl.store(out_ptr + n.to(tl.int64) * stride, 1.0)
        """
    kernel = read(body, "out_ptr, stride, C: tl.constexpr")
    assert indices(kernel) == ["ct.bid(0) // C * stride"]
    assert {p.name for p in kernel.params if p.integer} >= {"C"}


def test_what_is_subtracted_from_integers_and_converted_is_an_integer() -> None:
    body = """
        at = tl.maximum(tl.program_id(0) - shift, 0)
        tl.store(out_ptr + at.to(tl.int64), 1.0)
        """
    kernel = read(body, "out_ptr, shift")
    assert indices(kernel) == ["max(ct.bid(0) - shift, 0)"]
    assert {p.name for p in kernel.params if p.integer} == {"shift"}
    scaled = read(body.replace("- shift", "* shift"), "out_ptr, shift")  # may be a float
    assert "shift" not in indices(scaled)[0]


def test_a_sum_with_what_a_float_was_rounded_to_may_wrap() -> None:
    """It is the sum where that fits, and any number elsewhere: nothing asks for a proof."""
    body = """
        first = tl.floor(tl.program_id(0) * scale - 1.0).to(tl.int32)
        right = first + 1
        tl.store(out_ptr + tl.minimum(right, 7), 1.0, mask=right > 0)
        """
    kernel = read(body, "out_ptr, scale")
    assert not kernel.arithmetic
    (access,) = kernel.accesses
    wrapped = "(value + 1 if -2147483648 <= value + 1 and value + 1 < 2147483648 else value)"
    assert render(access.axes[0].index) == f"min({wrapped}, 7)"
    assert render(access.mask) == f"0 < {wrapped}"
    in_branch = body.replace(
        "first + 1", "tl.program_id(0)\n        if first < 9:\n            right = first + 1"
    )
    assert read(in_branch, "out_ptr, scale").arithmetic


def test_a_count_of_chunks_is_one_quotient() -> None:
    """`n + d - 1` is not negative where n is not: that d is positive is asked for apart."""
    kernel = read(
        "i = tl.program_id(0) * T\ntl.store(y + tl.cdiv(i + T - i, S) + tl.program_id(0) // tl.cdiv(T, S), 0)",
        "y, T, S: tl.constexpr",
    )
    assert places(kernel) == ["y[cdiv(T, S) + ct.bid(0) // cdiv(T, S)]"]
    goals = [render(c.goal) for c in kernel.checks if c.kind in (CheckKind.DIVISOR, CheckKind.DIVIDEND)]
    assert "1 <= S" in goals
    assert "0 <= T" in goals


def test_a_name_that_a_loop_sets_to_what_it_was() -> None:
    body = """
    o = tl.arange(0, 16)
    for i in range(n):
        if F:
            o = tl.arange(0, 16)
        tl.store(y + o, 0)
    """
    assert places(read(body, "y, n, F: tl.constexpr")) == ["y[lane 0]"]
    changed = read(body.replace("tl.store", "o = 2 * o\n        tl.store"), "y, n, F: tl.constexpr")
    assert places(changed) != ["y[lane 0]"]


def test_masks_that_are_multiplied_are_both_asked() -> None:
    both = "(o < n)[:, None] * (o < m)[None, :]"
    kernel = read(f"o = tl.arange(0, 16)\ntl.store(y + o[:, None] + o[None, :], 0, mask={both})", "y, n, m")
    [place] = places(kernel)
    assert place.endswith("if lane 0 < n and lane 1 < m")


def test_what_is_asked_again_is_answered() -> None:
    flag = bool_sym(Symbol("F", Kind.CONSTANT))
    x, y, z = (sym(Symbol(name, Kind.SCALAR)) for name in "xyz")
    assert ite(flag, ite(flag, x, y), ite(flag, y, z)) is ite(flag, x, z)
    assert add(mul(x, y), z, mul(-1, mul(x, y))) is z
    assert add(mul(-1, x), y, x) is y
    assert add(mul(-1, x), mul(-1, x), x) is mul(-1, x)


def test_a_loop_keeps_the_shape_of_what_it_adds_up() -> None:
    """Triton refuses another one, so the tiles of a descriptor of unknown sizes are as large as the sum."""
    body = """
        total = tl.zeros((64,), dtype=tl.float32)
        for k in range(n):
            total += x_desc.load([k * 64])
        tl.store(out_ptr + tl.program_id(0) * 64 + tl.arange(0, 64), total)
        """
    access = read(body, "x_desc, out_ptr, n").accesses[-1]
    (lane,) = access.lanes
    assert lane.bound is not None
    assert render(lane.bound) == "64"


def test_a_float_that_is_not_negative_rests_on_integers_that_fit() -> None:
    """What is scaled, as an integer, is among what must not wrap."""
    body = """
        place = tl.program_id(0) * 64 + tl.arange(0, 64)
        source = tl.floor((place.to(tl.float32) + 0.5) * scale).to(tl.int32)
        tl.store(out_ptr + tl.minimum(source, 7), 1.0)
        """
    kernel = read(body, "out_ptr, scale")
    assert "64 * ct.bid(0) + lane 0" in [render(a.value) for a in kernel.arithmetic]
    assert "0 <= scale" in render(kernel.accesses[0].axes[0].index)


def test_a_parameter_with_a_kernel_s_name_does_not_hide_the_kernel() -> None:
    text = """
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, BT: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BT), 1.0 + tl.program_id(0))

@triton.jit
def other(x_ptr, rows, BT: tl.constexpr):
    tl.store(x_ptr + tl.program_id(0), rows)
"""
    found = {k.name: k.verdict.value for k in check_source(text, "kernels.py").kernels}
    assert found == {"rows": "violated", "other": "conditional"}


@pytest.mark.parametrize(
    ("ends", "guard"),
    [
        ("(tl.program_id(0) - 5) // n", "0 <= i and i < (ct.bid(0) - 5) // n"),
        ("2, (tl.program_id(0) - 5) // n + 2", "iteration(i) + 2 < (ct.bid(0) - 5) // n + 2"),
        ("(tl.program_id(0) - 5) // n - 1, -1, -1", "-1 < (ct.bid(0) - 5) // n - iteration(i) - 1"),
    ],
)
def test_a_loop_up_to_a_quotient_ends_where_floor_division_does(ends: str, guard: str) -> None:
    """Where the dividend is negative it runs with neither."""
    kernel = read(f"for i in range({ends}):\n    tl.store(x + i, 0.0)", "x, n: tl.constexpr")
    assert guard in render(kernel.accesses[0].guard)


@pytest.mark.parametrize(
    "ends",
    [
        "(tl.program_id(0) - 5) // n + 1",
        "1, (tl.program_id(0) - 5) // n + 2",
        "-1, (tl.program_id(0) - 5) // n",
        "(tl.program_id(0) - 5) // n, -1, -1",
        "3, (tl.program_id(0) - 5) // n, -1",
        "2 * ((tl.program_id(0) - 5) // n)",
    ],
)
def test_other_ends_keep_the_division_that_truncates(ends: str) -> None:
    """Of -1 // 4 that is 0, and the floor -1: one round more or less."""
    kernel = read(f"for i in range({ends}):\n    tl.store(x + i, 0.0)", "x, n: tl.constexpr")
    assert "if 0 <= ct.bid(0) - 5 else" in render(kernel.accesses[0].guard)


@pytest.mark.parametrize(
    ("bounds", "runs"),
    [("n", "n"), ("2, n", "n - 2"), ("0", None), ("n, 8", "8 - n")],
)
def test_a_tile_in_an_unrolled_loop_has_a_size_where_that_has_a_round(bounds: str, runs: str | None) -> None:
    """The compiler copies the body so often: where there is none, it never sees the size."""
    text = f"""{HEAD}
@triton.jit
def kernel(x, n: tl.constexpr, BLOCK: tl.constexpr):
    for i in tl.static_range({bounds}):
        tl.store(x + i * BLOCK + tl.arange(0, BLOCK), 0.0)
"""
    table = Project().add(parse(decode("kernel.py", text.encode())))
    facts = [render(fact) for fact in lower(find_kernels(table)[0]).facts]
    known = [] if runs is None else [f"{runs} < 1 or 1 <= BLOCK"]
    assert [fact for fact in facts if "BLOCK" in fact] == known
