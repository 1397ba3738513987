"""What a client is shown of a report: diagnostics, actions, hover, lenses, hints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilecheck.lsp.actions import actions
from tilecheck.lsp.analysed import Analysed
from tilecheck.lsp.borrows import borrows_of
from tilecheck.lsp.diagnostics import shown
from tilecheck.lsp.hover import hover_text, target
from tilecheck.lsp.lenses import hints, lenses
from tilecheck.model import (
    Diagnostic,
    KernelReport,
    Related,
    Report,
    Severity,
    Site,
    Span,
    Suppression,
    Verdict,
)
from tilecheck.options import Options
from tilecheck.verify.pipeline import verify_source

WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 1000, "character": 0}}
TEXT = """import cuda.tile as ct


@ct.kernel
def add(x, y, out: ct.Array, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, index=(i,), shape=(T,)) + ct.load(y, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=t)


def host(stream, x, y, out):
    ct.launch(stream, (ct.cdiv(out.shape[0], 128), 1, 1), add, (x, y, out, 128))
"""


def analysed(text: str, path: str = "/k.py", version: int = 1, encoding: str = "utf-16") -> Analysed:
    report = verify_source(text.encode(), path, Options())
    return Analysed(f"file://{path}", path, version, text.encode(), report, encoding=encoding)


@pytest.fixture(scope="module")
def add() -> Analysed:
    return analysed(TEXT)


def at(text: str, word: str, further: int = 0) -> dict[str, int]:
    before = text[: text.index(word) + further]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def made(
    *found: Diagnostic, kernels: tuple[KernelReport, ...] = (), text: str = "def k(x):\n    y\n"
) -> Analysed:
    report = Report(kernels, found, 1, sources={"/helper.py": b"\n\n  z\n"})
    return Analysed("file:///k.py", "/k.py", 1, text.encode(), report)


FINDING = Diagnostic(
    "TC201", "write-write-overlap", Severity.ERROR, "both write", Site("/k.py", Span(14, 15)), "k"
)
KERNEL = KernelReport("k", "cutile", Site("/k.py", Span(4, 5)), Verdict.UNKNOWN, "budget")


def test_a_kernel_that_is_fine_has_no_diagnostic(add: Analysed) -> None:
    assert shown(add) == []


def test_severities_and_tags() -> None:
    levels = [replace(FINDING, severity=s) for s in (Severity.ERROR, Severity.WARNING, Severity.INFO)]
    assert [s.diagnostic["severity"] for s in shown(made(*levels))] == [1, 2, 3]
    [unused] = shown(made(replace(FINDING, code="TC902")))
    assert unused.diagnostic["tags"] == [1]


def test_what_is_suppressed_is_not_shown() -> None:
    assert shown(made(replace(FINDING, suppression=Suppression("inSource", "why")))) == []


def test_a_finding_in_a_helper_is_shown_at_the_kernel() -> None:
    far = replace(FINDING, site=Site("/helper.py", Span(4, 5)), label="written here")
    [item] = shown(made(far, kernels=(replace(KERNEL, verdict=Verdict.VIOLATED, reason=None),)))
    assert item.diagnostic["range"]["start"] == {"line": 0, "character": 4}
    [place] = item.diagnostic["relatedInformation"]
    assert place["location"]["uri"] == "file:///helper.py"
    assert place["location"]["range"]["start"] == {"line": 2, "character": 2}
    [other] = shown(made(far, kernels=(replace(KERNEL, verdict=Verdict.VIOLATED, reason=None),)), related=False)
    assert "/helper.py, line 3: written here" in other.diagnostic["message"]
    offered = actions(made(far, kernels=(KERNEL,)), item.diagnostic["range"])
    assert not [a for a in offered if a["title"].startswith("Suppress")]  # a comment here would not reach it


def test_an_unknown_kernel_is_never_silent() -> None:
    [item] = shown(made(kernels=(KERNEL,)))
    assert (item.diagnostic["severity"], item.diagnostic["code"]) == (2, "unknown/budget")
    assert item.diagnostic["message"] == "`k` is not decided (budget)"


def test_related_places_without_words_are_left_out() -> None:
    [item] = shown(made(replace(FINDING, related=(Related(FINDING.site, ""),))))
    assert "relatedInformation" not in item.diagnostic


def test_a_problem_is_shown_at_the_top() -> None:
    [item] = shown(replace_problem(made(), "tilecheck cannot run: because"))
    assert item.diagnostic["message"] == "tilecheck cannot run: because"
    assert actions(replace_problem(made(), "x"), WHOLE) == []


def replace_problem(a: Analysed, problem: str) -> Analysed:
    return Analysed(a.uri, a.path, a.version, a.data, a.report, problem)


def test_conditions_can_be_stated_and_are_then_the_authors(add: Analysed) -> None:
    line = {"start": at(TEXT, "def add"), "end": at(TEXT, "def add")}
    [state] = actions(add, line, versioned=False)
    assert (state["kind"], "diagnostics" in state) == ("refactor", False)
    assert actions(add, line, only=["quickfix"]) == []
    [change] = state["edit"]["changes"]["file:///k.py"]
    lines = TEXT.splitlines(keepends=True)
    at_line = change["range"]["start"]["line"]
    after = analysed("".join([*lines[:at_line], change["newText"], *lines[at_line:]]))
    [before], [kernel] = add.kernels, after.kernels
    assert set(before.conditions) == set(kernel.requires)
    assert kernel.conditions == ()
    assert actions(after, line) == []


def test_the_contracts_that_a_finding_asks_for_are_added_together() -> None:
    asked = " and ".join(f"`# tilecheck: requires within({t}, 0, n) -- why`" for t in "ab")
    found = actions(made(replace(FINDING, help=asked), kernels=(KERNEL,)), WHOLE, versioned=False)
    require = next(a for a in found if a["title"].startswith("Require"))
    assert require["title"] == "Require `within(a, 0, n)` and `within(b, 0, n)` of launches"
    [edit] = require["edit"]["changes"]["file:///k.py"]
    assert edit["newText"].count("# tilecheck: requires within(") == 2
    gap = replace(FINDING, help="add a contract: `# tilecheck: requires ... -- why`")
    assert not [a for a in actions(made(gap, kernels=(KERNEL,)), WHOLE) if a["title"].startswith("Require")]


def test_hover_on_a_kernel_and_where_it_is_launched(add: Analysed) -> None:
    for place in (at(TEXT, "def add", 5), at(TEXT, "add, (x")):
        said = hover_text(add, target(add, place))
        assert said.startswith("**`add`**: conditional")
        assert "- `grid[0] <= cdiv(out.shape[0], T)`" in said
        assert "line 12: " in said


def test_hover_on_a_parameter_and_its_uses(add: Analysed) -> None:
    borrows = borrows_of(TEXT.encode(), "/k.py", "add")
    for place in (at(TEXT, "out: ct"), at(TEXT, "out, index", 3)):
        said = hover_text(add, target(add, place), borrows)
        assert "`mut`: written by the kernel (inferred)" in said
        assert "written by block (ct.bid(0),): out[ct.bid(0) * T : ct.bid(0) * T + T]" in said
    assert "only read" in hover_text(add, target(add, at(TEXT, "y, out: ct")), borrows)
    assert "constant of compile time" in hover_text(add, target(add, at(TEXT, "T: ct")), borrows)
    assert (
        target(add, at(TEXT, "x, y, out):")) is None
    )  # a parameter of the host function is none of the kernel
    assert target(add, {"line": 0, "character": 0}) is None


def test_hover_on_a_rule(add: Analysed) -> None:
    text = "# tilecheck: ignore[TC201, write-read-overlap] -- why\nx = 1\n"
    here = made(text=text)
    assert hover_text(here, target(here, {"line": 0, "character": 22})).startswith("# TC201: ")
    name = hover_text(here, target(here, {"line": 0, "character": 40}))
    assert name.startswith("# TC202: ")
    assert target(here, {"line": 0, "character": 3}) is None


def test_a_partition_is_told_with_the_authors_names_and_what_ranges_over_it() -> None:
    text = """import cuda.tile as ct


@ct.kernel
def swizzle(x, slots, out, W: ct.Constant[int], T: ct.Constant[int]):
    i = ct.bid(0)
    row, col = i // W, i % W
    for k in range(4):
        t = ct.load(x, index=(row, k), shape=(T, T))
        ct.store(out, index=(row, col), tile=t)
    ct.scatter(slots, ct.arange(T, dtype=ct.int32), 0)
"""
    borrows = borrows_of(text.encode(), "/k.py", "swizzle")
    block = "by block (ct.bid(0),)"
    assert borrows["out"] == (
        f"written {block}: out[row * T : row * T + T, col * T : col * T + T]",
        "  row = ct.bid(0) // W",
        "  col = ct.bid(0) % W",
    )
    assert (
        borrows["x"][0] == f"read {block}: x[row * T : row * T + T, k0 * T : k0 * T + T] with k0 an iteration"
    )
    assert borrows["slots"] == (f"written {block}: slots[l0] with l0 < T",)


def test_partitions_of_what_is_not_read_are_not_told() -> None:
    assert borrows_of(b"def k(:", "/k.py", "k") == {}
    assert borrows_of(TEXT.encode(), "/k.py", "other") == {}


def test_lenses_and_hints(add: Analysed) -> None:
    [lens] = lenses(add)
    assert lens["range"]["start"] == at(TEXT, "add(x")
    words = lens["command"]["title"].split(" \N{MIDDLE DOT} ")
    assert words[0] == "conditional"
    assert words[-1].endswith(" ms")
    assert lens["command"]["arguments"] == ["conditional"]
    assert [h["label"] for h in hints(add, WHOLE)] == [": Shared", ": Shared", " Mut"]
    assert hints(add, {"start": {"line": 6, "character": 0}, "end": {"line": 7, "character": 0}}) == []


def test_what_is_declared_has_no_hint() -> None:
    text = TEXT.replace("@ct.kernel", "# tilecheck: mut out\n# tilecheck: shared x\n@ct.kernel")
    assert [h["position"] for h in hints(analysed(text), WHOLE)] == [at(text, "y, out", 1)]


def test_lenses_of_undecided_and_cached_kernels() -> None:
    cached = replace(KERNEL, verdict=Verdict.PROVED, cached=True, reason=None)
    titles = [lens["command"] for lens in lenses(made(kernels=(KERNEL, cached)))]
    dot = " \N{MIDDLE DOT} "
    assert titles[0]["title"] == dot.join(["unknown (budget)", "0 obligations", "0 ms"])
    assert titles[0]["arguments"] == ["unknown/budget"]
    assert titles[1]["title"] == dot.join(["proved", "0 obligations", "cached"])


def test_places_of_a_text_with_wide_characters() -> None:
    text = TEXT.partition("\n\n\ndef host")[0].replace(
        "    ct.store", "    '\N{MUSICAL SYMBOL G CLEF}'; ct.store"
    )
    text = text.replace("index=(i,), tile", "index=(i // 2,), tile")
    items = [shown(analysed(text, encoding=encoding))[0] for encoding in ("utf-8", "utf-16", "utf-32")]
    columns = [item.diagnostic["range"]["start"]["character"] for item in items]
    assert columns == [4 + 6 + 2, 4 + 4 + 2, 4 + 3 + 2]
