"""When Triton makes machine numbers of compile-time ones, and what `and`, `or`, `&` and `~` make of truths."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import verify_paths

HEAD = {
    "triton": "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k({}):\n",
    "cutile": "import cuda.tile as ct\n\n@ct.kernel\ndef k({}):\n",
}


@pytest.fixture
def kernel(tmp_path: Path):
    def kernel(params: str, body: str, language: str = "triton"):
        path = tmp_path / "k.py"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        path.write_text(HEAD[language].format(params) + lines, encoding="utf-8")
        (found,) = verify_paths([path.as_posix()]).kernels
        assert found.internal_error is None
        return found

    return kernel


ADD = "\ntl.atomic_add(p + at, 1.0)"


@pytest.mark.parametrize(
    ("params", "body"),
    [
        # -1 % 4 is -1 with machine numbers, of which `stage` is one; so is what a static loop's number gives.
        ("p, S: tl.constexpr", "stage = S - 3\nat = (stage - 1) % 4" + ADD),
        (
            "p, N: tl.constexpr",
            "for i in tl.static_range(N):\n    t = i - 1\n    tl.atomic_add(p + t % 4, 1.0)",
        ),
        ("p", "x = -7\ny = x // 2\nat = -4 - y" + ADD),
        ("p, n", "y = (-7 if n > 0 else -7) // 2\nat = -4 - y" + ADD),
        ("p", "y = tl.minimum(-7, -5) // 2\nat = -4 - y" + ADD),
        # 65536 * 65536 wraps to 0, and so does an unsigned literal.
        ("p", "x = 65536\nat = -5 if x * x == 0 else 0" + ADD),
        ("p", "x = 4294967295\nat = -5 if x + 1 == 0 else 0" + ADD),
        ("p", "a = True\nb = True\nat = -5 if a + b == 0 else 0" + ADD),
        # A number that is 1 is compiled as a constant, and -1 // 64 is -1 then.
        ("p, n, B: tl.constexpr", "at = -(-n // B)" + ADD),
        # 1 & 2 is 0, 1 | 2 is 3.
        ("p, n", "i = tl.arange(0, 8)\nat = ((i < n) | 2) - 3" + ADD),
        # The order of `view` is the compiler's choice.
        (
            "p",
            "a = tl.trans(tl.reshape(tl.arange(0, 64), (8, 8)))\n"
            "at = tl.view(a, (64,)) - tl.reshape(a, (64,))" + ADD,
        ),
        ("p", "at = -5 if tl.float32 == tl.core.float32 else 0" + ADD),
        ("p, F: tl.constexpr", "at = ~(F == 1)" + ADD),
        ("p, n: tl.uint32", "at = tl.maximum(n - 9, 0)" + ADD),
        # What `:=` binds is a machine number; whether it binds depends on what comes before.
        ("p", "y = (x := -7) // 2\nat = -4 - y" + ADD),
        ("p, F: tl.constexpr", "k = -1\ny = F == 1 and (k := 0) == 0\nat = k" + ADD),
        # Constants invert as Python's, and so does a number of the launch that is 1.
        ("p, n", "at = ~((tl.arange(0, 8) < n) & 1)" + ADD),
        ("p, F: tl.constexpr, G: tl.constexpr", "at = ~((F == 1) & (G == 1))" + ADD),
        ("p, F: tl.constexpr, n", "at = ~(n > 0 and F == 1)" + ADD),
        ("p, n", "at = ~(n == 1)" + ADD),
        ("p, n", "at = ~(not n)" + ADD),
        ("p, n, m", "at = n and m" + ADD),
        ("p, n", "at = (-7 if n == 1 else tl.program_id(0)) // 2 + 3" + ADD),
        # Not compiled where n is 1, and in no copy of a loop's body.
        ("p, n, B: tl.constexpr", "if n != 1:\n    tl.static_assert(B % 4 == 0)\nat = 0 - B % 4" + ADD),
        # Literals wrap, also in a loop; of 32-bit floats 16777217 is none.
        ("p", "x = -2147483648\nat = -x" + ADD),
        ("p", "x = -2147483648\nat = tl.abs(x)" + ADD),
        ("p", "x = 1 << 30\nfor i in range(1):\n    x += 1 << 30\nat = x" + ADD),
        ("p", "a = 16777217.0\nb = a - 16777216.0\nat = 0 if b > 0.5 else -5" + ADD),
        (
            "p",
            "a = tl.trans(tl.reshape(tl.arange(0, 64), (8, 8)))\n"
            "at = tl.ravel(a, can_reorder=True) - tl.ravel(a)" + ADD,
        ),
        ("p", 'x: "tl.constexpr" = -7\ny = x // 2\nat = -4 - y' + ADD),
        ("p, n", "x = (tl.arange(0, 8) < n).to(tl.int8)\nat = x * 100 + x * 100" + ADD),
        (
            "p",
            "i = tl.arange(0, 4)\nx = tl.expand_dims(i, (0, -1))\n"
            "at = x - tl.arange(0, 4)[None, None, :]" + ADD,
        ),
    ],
)
def test_nothing_is_proved_by_exact_integers(kernel, params: str, body: str) -> None:
    assert kernel(params, body).verdict.value in ("unknown", "violated")


def conditions(found) -> set[str]:
    assert found.verdict.value == "conditional", found.verdict
    return {c.text if hasattr(c, "text") else str(c) for c in found.conditions}


def test_a_truth_beside_a_number_is_its_lowest_bit(kernel) -> None:
    body = """
i = tl.arange(0, 8)
ok = (i < n) & flag
tl.store(p + i, 1.0, mask=(i < n) & (ok == 0) & (flag != 0))
"""
    assert conditions(kernel("p, n, flag", body)) == {"numel(p) >= n"}  # as with flag = 2


def test_or_gives_one_of_its_operands(kernel) -> None:
    body = "i = tl.arange(0, 8)\ns = STRIDE or 1\ntl.store(p + i * s, 1.0)"
    found = kernel("p, STRIDE: tl.constexpr", body)
    assert "numel(p) >= max(7 * STRIDE, 7) + 1" in conditions(found)


def test_and_drops_a_constant_beside_a_machine_number(kernel) -> None:
    found = kernel("p", "off = tl.program_id(0) and 1\ntl.atomic_add(p + off, 1.0)")
    assert conditions(found) == {"grid[0] <= numel(p)"}


def test_flags_that_are_joined_stay_flags(kernel) -> None:
    """What stands under `A and B` needs its conditions only where both are set."""
    body = "if A and B:\n    tl.store(p + 4, 1.0)\nif A or B:\n    tl.store(p + 2, 1.0)"
    found = kernel("p, A: tl.constexpr, B: tl.constexpr", body)
    assert conditions(found) == {"not (A and B) or 5 <= numel(p)", "not (A or B) or 3 <= numel(p)"}


def test_both_sides_of_machine_numbers_run(kernel) -> None:
    """`n > 0 and tl.load(...)`: the load happens whatever n is."""
    body = "if n > 0 and tl.load(p + n) > 0:\n    tl.store(q, 1.0)"
    wanted = conditions(kernel("p, q, n", body))
    assert any("n >= 0" in c or "0 <= n" in c for c in wanted), wanted


def test_cutile_makes_a_truth_of_both(kernel) -> None:
    body = """
d = (True and D) - 3
ct.atomic_add(x, ct.arange(1, dtype=ct.int32) + d, ct.full((1,), 1.0, ct.float32), check_bounds=False)
"""
    found = kernel("x, D: ct.Constant[int]", body, "cutile")
    assert found.verdict.value in ("unknown", "violated")


def test_an_assertion_in_an_empty_static_loop_is_not_compiled(kernel) -> None:
    body = "for i in tl.static_range(N):\n    tl.static_assert(N >= 5)\ntl.atomic_add(p + N - 5, 1.0)"
    assert "N >= 5" in conditions(kernel("p, N: tl.constexpr", body))


def test_an_assertion_under_the_number_of_a_static_loop_is_no_fact(kernel) -> None:
    body = """
for i in tl.static_range(N):
    if i > 3:
        tl.static_assert(N > 100)
tl.atomic_add(p + N - 4, 1.0)
"""
    found = kernel("p, N: tl.constexpr", body)
    assert found.verdict.value != "conditional" or any(
        "N >= 4" in c or "4 <= N" in c for c in conditions(found)
    )


def test_what_a_helper_returns_from_several_places_is_a_machine_number(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef pick(n):\n    if n > 0:\n"
        "        return -7\n    return -9\n\n@triton.jit\ndef k(p, n):\n"
        "    y = pick(n) // 2\n    tl.atomic_add(p + (-4 - y), 1.0)\n",
        encoding="utf-8",
    )
    (found,) = [k for k in verify_paths([path.as_posix()]).kernels if k.name == "k"]
    assert found.verdict.value in ("unknown", "violated")
