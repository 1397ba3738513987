"""Inputs of any size get a verdict or a reason, and never a crash."""

from __future__ import annotations

import pytest

from tilecheck import check_source
from tilecheck.errors import UnsupportedConstruct
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.model import KernelReport, Verdict

N = E.sym(Symbol("n", Kind.SCALAR))
HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x, out, n):\n"


def verified(body: str) -> KernelReport:
    (kernel,) = check_source(f"{HEAD}{body}").kernels
    return kernel


def test_an_expression_is_no_deeper_than_recursion_reaches() -> None:
    deep = N
    for k in range(E.MAX_DEPTH // 2 - 1):
        deep = E.floordiv(E.add(deep, k + 1), 3)
    last = E.floordiv(deep, N)
    with pytest.raises(UnsupportedConstruct, match="levels"):
        E.floordiv(last, N)
    assert E.render(deep)
    assert isinstance(E.evaluate(deep, lambda _: 7), int)


def test_an_expression_has_no_more_terms_than_can_be_handled() -> None:
    most = E.add(*[N] * E.MAX_TERMS)
    assert len(most.args) == E.MAX_TERMS
    with pytest.raises(UnsupportedConstruct, match="terms"):
        E.add(most, most)


def test_an_integer_has_no_more_bits_than_can_be_printed() -> None:
    with pytest.raises(UnsupportedConstruct, match="bits"):
        E.const(1 << (E.MAX_BITS + 1))
    assert E.render(E.const((1 << E.MAX_BITS) - 1))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "    tl.store(out + tl.program_id(0) * 0x" + "f" * 100_000 + ", 1.0)\n",
            "unsupported:integer of more than",
        ),
        ("    v = n\n" + "    v = v + v\n" * 200 + "    tl.store(out + v, 1.0)\n", "unsupported:"),
        ("".join(f"    tl.store(out + tl.program_id(0) * 300 + {k}, 1.0)\n" for k in range(160)), "budget"),
    ],
)
def test_what_exceeds_a_limit_is_unknown(body: str, reason: str) -> None:
    kernel = verified(body)
    assert kernel.verdict is Verdict.UNKNOWN
    assert kernel.reason is not None
    assert kernel.reason.startswith(reason)


@pytest.mark.parametrize(
    "body",
    [
        "    o = tl.arange(0, 65536)\n    tl.store(out + o[:, None] * 65536 + o[None, :] // 2, 1.0)\n",
        "    o = tl.arange(0, 65536)\n    tl.store(out, tl.max(tl.load(x + o[:, None] + o[None, :]), 1))\n",
        "    o = tl.arange(0, 65536)\n    tl.store(out + tl.where(o[:, None] < n, o[None, :], 0), 1.0)\n",
    ],
)
def test_a_tile_too_large_to_hold_is_no_crash_and_no_pass(body: str) -> None:
    kernel = verified(body)
    assert kernel.internal_error is None
    assert kernel.verdict in (Verdict.UNKNOWN, Verdict.VIOLATED)


def test_a_chain_of_classes_is_read_in_linear_time() -> None:
    """Each name was once followed through all that come after it: 34 s for this text."""
    classes = "".join(f"class C{k}(C{k - 1}):\n    pass\n" for k in range(1, 2000))
    body = "import triton\nimport triton.language as tl\nclass C0:\n    pass\n" + classes
    body += "@triton.jit\ndef k(out):\n    tl.store(out + tl.program_id(0), 1.0)\n"
    (kernel,) = check_source(body).kernels
    assert kernel.verdict is Verdict.CONDITIONAL


def test_host_code_nested_too_deeply_is_a_reason_and_no_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflows(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("tilecheck.verify.files.launches_around", overflows)
    kernel = verified("    tl.store(out + tl.program_id(0), 1.0)\n")
    assert kernel.internal_error is None
    assert kernel.reason == "unsupported:host code nested this deeply"
