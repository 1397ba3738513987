"""Texts that are flat in Python's tree and nested in libcst's are refused before libcst recurses over them."""

from __future__ import annotations

import pytest

from tilecheck import check_source
from tilecheck.errors import SourceError, UnsupportedConstruct
from tilecheck.frontend.kernels.contracts import check_text
from tilecheck.frontend.text.source import parse, parse_expression
from tilecheck.model import Verdict
from tilecheck.text import decode

CHAINS = {
    "conjunction": lambda count: "x = " + " and ".join(["a"] * count),
    "strings": lambda count: "x = " + " ".join(['"a"'] * count),
    "strings over lines": lambda count: "x = (" + "\n  # why\n".join(["b'a'"] * count) + "\n)",
    "comprehension": lambda count: "x = [1" + " for a in b" * count + "]",
    "dotted import": lambda count: "import a" + ".a" * count,
    "dotted origin": lambda count: "from a" + ".a" * count + " import b",
    "nested conjunctions": lambda count: "x = a" + " and (b or a" * (count // 20) + ")" * (count // 20),
}


@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_of_any_length_is_refused(kind: str) -> None:
    for count in (1500, 30_000) if kind != "nested conjunctions" else (4000,):
        with pytest.raises(SourceError, match="nested"):
            parse(decode("k.py", (CHAINS[kind](count) + "\n").encode()))


@pytest.mark.parametrize("kind", CHAINS)
def test_a_short_chain_is_read(kind: str) -> None:
    text = CHAINS[kind](60) + "\n"
    assert parse(decode("k.py", text.encode())).module.code == text


def test_many_strings_beside_each_other_are_no_chain() -> None:
    text = "x = [" + ", ".join(['"a" "b"'] * 2000) + "]\n"
    assert parse(decode("k.py", text.encode())).module.code == text


@pytest.mark.parametrize("joined", [" and ", " or ", " + ", " * ", " - "])
def test_a_contract_of_any_size_is_read_or_refused(joined: str) -> None:
    assert parse_expression(joined.join(["n"] * 50)) is not None
    with pytest.raises(UnsupportedConstruct) as refused:
        check_text(joined.join(["n"] * 20_000))
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "contract",
    [
        " and ".join(["n >= 1"] * 10_000),
        " or ".join(["n >= 1"] * 10_000),
        "n >= 0x" + "f" * 50_000,
        "-" * 20_000 + "n >= 1",
    ],
)
def test_the_kernel_of_a_huge_contract_does_not_pass_and_its_neighbour_does(contract: str) -> None:
    text = "import triton\nimport triton.language as tl\n\n"
    kernel = "@triton.jit\ndef {}(out, n):\n    tl.store(out + tl.program_id(0), 1.0)\n\n\n"
    report = check_source(
        f"{text}# tilecheck: requires {contract}\n{kernel.format('one')}{kernel.format('two')}"
    )
    one, two = report.kernels
    malformed = [d for d in report.diagnostics if d.code == "TC904"]
    assert one.verdict is Verdict.UNKNOWN or malformed
    assert two.verdict is Verdict.CONDITIONAL
