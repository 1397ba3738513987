"""The gate takes nothing that a source says in its own favour, unless it is told to trust sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilecheck.gate.analyse import answered
from tilecheck.gate.protocol import Item
from tilecheck.options import Options

HEAD = "import cuda.tile as ct\nimport tilecheck\nfrom tilecheck import unsafe, unsafe as mine\n"
KERNEL = """{above}
@ct.kernel
def scatter(x, table, out, T: ct.Constant[int]):
    b = ct.bid(0)
    row = ct.gather(table, b)
    v = ct.load(x, index=(b, 0), shape=(1, T))
    if b < table.shape[0]:
        {around}
            ct.scatter(out, (row, ct.arange(T, dtype=ct.int32)), ct.reshape(v, (T,)))
"""
PLAIN = "if True:"
RACY = """@ct.kernel
def halve(out, T: ct.Constant[int]):
    i = ct.bid(0) // 2
    ct.store(out, index=(i,), tile=ct.zeros((T,), dtype=ct.float32)){behind}
"""


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _answer(source: str, *, trust: bool = False, **more: Any) -> tuple[dict[str, Any], list[Any]]:
    kernels, diagnostics, error = answered(Item("a", HEAD + source, **more), Options(trust_source=trust))
    assert error is None
    (kernel,) = kernels
    return kernel, diagnostics


def _scatter(above: str = "", around: str = PLAIN) -> str:
    return KERNEL.format(above=above, around=around)


SOURCES = [
    (_scatter("# tilecheck: requires distinct(table) -- sorted"), "conditional", "distinct(table) -- sorted"),
    (_scatter(around='with unsafe("the table has each row once"):'), "trusted", 'unsafe("the table'),
    (_scatter(around='with tilecheck.unsafe("each row once"):'), "trusted", 'tilecheck.unsafe("each'),
    (_scatter(around='with mine("each row once"):'), "trusted", 'mine("each'),
    (
        _scatter(around="# tilecheck: unsafe -- each row once\n        if True:"),
        "trusted",
        "unsafe -- each row",
    ),
]


@pytest.mark.parametrize(("source", "trusted", "said"), SOURCES)
def test_a_source_does_not_talk_itself_to_a_pass(source: str, trusted: str, said: str) -> None:
    kernel, diagnostics = _answer(source)
    plain, _ = _answer(_scatter())
    assert (kernel["verdict"], kernel["reason"]) == (plain["verdict"], plain["reason"])
    assert (kernel["verdict"], kernel["premises"], kernel["trusted"]) == ("unknown", [], [])
    (note,) = [d for d in diagnostics if d["code"] == "TC910"]
    assert (note["severity"], note["kernel"], note["file"]) == ("info", "scatter", "source.py")
    assert said in note["message"]
    assert said.partition("(")[0].partition(" ")[0] in (HEAD + source).splitlines()[note["line"] - 1]
    kernel, diagnostics = _answer(source, trust=True)
    assert kernel["verdict"] == trusted
    assert "TC910" not in {d["code"] for d in diagnostics}


def test_a_finding_stays_although_the_source_ignores_it() -> None:
    source = RACY.format(behind="  # tilecheck: ignore[TC201] -- any value will do")
    kernel, diagnostics = _answer(source)
    assert kernel["verdict"] == "violated"
    assert [(d["code"], d["suppressed"]) for d in diagnostics] == [("TC201", False), ("TC910", False)]
    kernel, diagnostics = _answer(source, trust=True)
    assert kernel["verdict"] == "violated"
    assert [(d["code"], d["suppressed"]) for d in diagnostics] == [("TC201", True)]


def test_the_contracts_of_the_line_count_and_say_where_they_come_from() -> None:
    kernel, diagnostics = _answer(_scatter(), contracts=("distinct(table)",))
    assert kernel["verdict"] == "conditional"
    (premise,) = kernel["premises"]
    assert (premise["text"], premise["origin"], premise["status"]) == ("distinct(table)", "gate", "promised")
    assert diagnostics == []


def test_contracts_of_the_source_are_told_from_those_of_the_line() -> None:
    source = _scatter("# tilecheck: requires distinct(table) -- sorted")
    kernel, _ = _answer(source, trust=True, contracts=("T >= 16",))
    assert [(p["text"], p["origin"]) for p in kernel["premises"]] == [
        ("T >= 16", "gate"),
        ("distinct(table)", "source"),
    ]


def test_comments_in_the_launch_are_not_taken_either() -> None:
    launch = "def run(out):\n    # tilecheck: ignore[TC402] -- all right\n    pass\n"
    _, diagnostics = _answer(_scatter(), launch=launch)
    (note,) = [d for d in diagnostics if d["code"] == "TC910"]
    assert (note["line"], note["kernel"]) == ((HEAD + _scatter()).count("\n") + 2, None)


def test_checks_that_a_source_asks_for_are_made() -> None:
    kernel, diagnostics = _answer("# tilecheck: shared out\n" + RACY.format(behind=""))
    assert kernel["verdict"] == "violated"
    assert "TC101" in {d["code"] for d in diagnostics}
    assert "TC910" not in {d["code"] for d in diagnostics}
    _, diagnostics = _answer("# tilecheck: requiers T > 0\n" + RACY.format(behind=""))
    assert "TC904" in {d["code"] for d in diagnostics}
