"""TC1: what a rule states about declared ownership, contracts and unsafe blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilecheck.ir.expr import FALSE
from tilecheck.model import Diagnostic
from tilecheck.proof.obligation import Holds, Obligation

State = Callable[[str, str], list[Obligation]]
Find = Callable[[str, str], list[Diagnostic]]
Snippet = Callable[[object], str]

WRITES = {
    "store": "ct.store(x, index=(i,), tile=tile)",
    "scatter": "ct.scatter(x, i, 1.0)",
    "atomic": "ct.atomic_add(x, i, 1.0)",
    "slice": "ct.store(x.slice(axis=0, start=0, stop=T), index=(0,), tile=tile)",
    "view": "x.tiled_view((T,)).store((i,), tile)",
    "raw": "x.get_raw_memory().store_offset(i, 1.0)",
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("declared", ["x: Shared", "x"])
def test_every_kind_of_write_of_a_shared_array_must_not_happen(
    stated: State, snippet: Snippet, write: str, declared: str
) -> None:
    comment = "" if ":" in declared else "# tilecheck: shared x\n"
    text = f"""\
{comment}@ct.kernel
def k({declared}, T: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    {write}
"""
    (obligation,) = stated("TC101", text)
    assert isinstance(obligation.goal, Holds)
    assert obligation.goal.goal is FALSE
    assert obligation.unsafe == ()  # a declaration is the author's own word: no unsafe block excuses it
    assert [snippet(site) for site in obligation.sites] == [write, "x"]


@pytest.mark.parametrize("declared", ["x", "x: Mut"])
def test_only_a_shared_array_must_not_be_written(stated: State, declared: str) -> None:
    text = f"""
        @ct.kernel
        def k({declared}, T: ct.Constant[int]):
            ct.store(x, index=(ct.bid(0),), tile=ct.zeros((T,), dtype=ct.float32))
        """
    assert stated("TC101", text) == []


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_any_write_makes_an_array_mut(found: Find, write: str) -> None:
    text = f"""
        @ct.kernel
        def k(x: Mut, T: ct.Constant[int]):
            i = ct.bid(0)
            tile = ct.load(x, index=(i,), shape=(T,))
            {write}
        """
    assert found("TC102", text) == []


def test_a_read_does_not_make_an_array_mut(found: Find, snippet: Snippet) -> None:
    text = """
        # tilecheck: mut x, y
        @ct.kernel
        def k(x, y, out, T: ct.Constant[int]):
            ct.store(out, index=(ct.bid(0),), tile=ct.load(x, index=(ct.bid(0),), shape=(T,)))
        """
    findings = found("TC102", text)
    assert [snippet(f.site) for f in findings] == ["x", "y"]


@pytest.mark.parametrize(
    ("contract", "names"),
    [
        ("mut y", ["y"]),
        ("shared x, y, z", ["y", "z"]),
        ("requires n % 2 == 0 -- why", ["n"]),
        ("requires grid[0] <= cdiv(x.shape[0], min(T, max(T, 2))) -- why", []),
        ("requires cdiv(rows, T) <= columns -- why", ["columns", "rows"]),
        ("mut x", []),
    ],
)
def test_contracts_speak_of_parameters(found: Find, snippet: Snippet, contract: str, names: list[str]) -> None:
    text = f"""
        # tilecheck: {contract}
        @ct.kernel
        def k(x, T: ct.Constant[int]):
            ct.store(x, index=(ct.bid(0),), tile=ct.zeros((T,), dtype=ct.float32))
        """
    findings = found("TC103", text)
    for finding, name in zip(findings, names, strict=True):
        assert f"`{name}`" in finding.message
        assert snippet(finding.site) in contract


@pytest.mark.parametrize(
    ("block", "findings"),
    [('with unsafe(""):', 1), ('with unsafe("why"):', 0), ("# tilecheck: unsafe -- why\n    if True:", 0)],
)
def test_unsafe_blocks_have_reasons(found: Find, block: str, findings: int) -> None:
    text = f"""\
@ct.kernel
def k(x, T: ct.Constant[int]):
    {block}
        ct.store(x, index=(ct.bid(0),), tile=ct.zeros((T,), dtype=ct.float32))
"""
    assert len(found("TC104", text)) == findings


def test_an_unsafe_comment_has_a_reason(found: Find) -> None:
    text = """
        @ct.kernel
        def k(x, T: ct.Constant[int]):
            # tilecheck: unsafe
            ct.store(x, index=(ct.bid(0),), tile=ct.zeros((T,), dtype=ct.float32))
        """
    assert len(found("TC104", text)) == 1
