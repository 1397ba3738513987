"""The answer to one item, in this process: verdicts, contracts, launches, and where findings are said to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilecheck.gate.analyse import answered
from tilecheck.gate.protocol import BadLine, Item
from tilecheck.options import Options

HEAD = "import cuda.tile as ct\nimport torch\n"
COPY = f"""{HEAD}
@ct.kernel
def copy(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)))
"""
RACY = COPY.replace("out, index=(i,)", "out, index=(i // 2,)")
SCATTER = f"""{HEAD}
@ct.kernel
def scatter(x, table, out, T: ct.Constant[int]):
    b = ct.bid(0)
    row = ct.gather(table, b)
    v = ct.load(x, index=(b, 0), shape=(1, T))
    if b < table.shape[0]:
        ct.scatter(out, (row, ct.arange(T, dtype=ct.int32)), ct.reshape(v, (T,)))
"""
HOST = """def run(x):
    out = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), ({grid}, 1, 1), copy, (x, out, 64))
"""
FITS = HOST.format(grid="ct.cdiv(x.shape[0], 64)")
TOO_MANY = HOST.format(grid="ct.cdiv(x.shape[0], 64) + 1")


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _answer(source: str, **more: Any) -> tuple[list[Any], list[Any]]:
    kernels, diagnostics, error = answered(Item("a", source, **more), Options())
    assert error is None
    return kernels, diagnostics


def _error(source: str, **more: Any) -> tuple[list[Any], str]:
    kernels, diagnostics, error = answered(Item("a", source, **more), Options())
    assert kernels == []
    assert error is not None
    return diagnostics, error


def test_a_race_is_violated_with_its_witness() -> None:
    (kernel,), diagnostics = _answer(RACY)
    assert (kernel["name"], kernel["verdict"], kernel["file"]) == ("copy", "violated", "source.py")
    found = next(d for d in diagnostics if d["code"] == "TC201")
    assert (found["file"], found["line"], found["witness"]["replayed"]) == ("source.py", 7, True)


def test_a_kernel_without_launches_holds_under_conditions() -> None:
    (kernel,), diagnostics = _answer(COPY)
    assert kernel["verdict"] == "conditional"
    assert "grid[0] <= cdiv(out.shape[0], T)" in kernel["conditions"]
    assert diagnostics == []


# ---- launches ------------------------------------------------------------------------------------------------


def test_a_launch_that_fits_meets_the_conditions() -> None:
    (kernel,), diagnostics = _answer(COPY, launch=FITS)
    assert [c["status"] for c in kernel["launches"][0]["conditions"]] == ["holds", "holds"]
    assert diagnostics == []


def test_findings_in_a_launch_lie_below_the_source() -> None:
    (kernel,), diagnostics = _answer(COPY, launch=TOO_MANY)
    assert kernel["verdict"] == "violated"
    line = COPY.count("\n") + 3  # the third line of the launch
    assert kernel["launches"][0]["line"] == line
    assert {(d["file"], d["line"]) for d in diagnostics} == {("source.py", line)}


def test_a_source_without_a_last_newline_ends_before_its_launch() -> None:
    (kernel,), _ = _answer(COPY.rstrip("\n") + "  # the end", launch=FITS)
    assert kernel["launches"][0]["line"] == COPY.count("\n") + 3


@pytest.mark.parametrize(
    ("source", "launch", "line"),
    [
        (COPY + "@ct.kernel\n", "def run(x, out):\n    pass\n", 8),
        (COPY + "x = '''\n", "'''\n", 8),
        (COPY + "if torch:\n", "    x = 1\n", 8),
        (COPY, "    x = 1\n", 8),
        (COPY, "else:\n    x = 1\n", 8),
        (COPY + "x = 1 \\", "\n", 8),
        (COPY, "x = 1\ny = (\n", 9),
    ],
)
def test_neither_part_changes_how_the_other_is_read(source: str, launch: str, line: int) -> None:
    diagnostics, error = _error(source, launch=launch)
    assert error.startswith(f"source.py:{line}:")
    assert [d["code"] for d in diagnostics] == ["TC901"]
    assert diagnostics[0]["line"] == line


# ---- contracts -----------------------------------------------------------------------------------------------


def test_contracts_decide_a_kernel() -> None:
    (kernel,), _ = _answer(SCATTER)
    assert (kernel["verdict"], kernel["reason"]) == ("unknown", "needs-contract")
    (kernel,), diagnostics = _answer(SCATTER, contracts=("distinct(table)",))
    assert kernel["verdict"] == "conditional"
    assert diagnostics == []
    (kernel,), _ = _answer(SCATTER, contracts_of={"scatter": ("distinct(table)",)})
    assert kernel["verdict"] == "conditional"


def test_contracts_that_contradict_each_other_prove_nothing() -> None:
    (kernel,), _ = _answer(RACY, contracts=("T == 1", "T == 2"))
    assert (kernel["verdict"], kernel["reason"]) == ("unknown", "vacuous")


def test_a_contract_for_one_kernel_says_nothing_of_another() -> None:
    two = SCATTER + SCATTER.removeprefix(HEAD).replace("def scatter", "def other")
    kernels, _ = _answer(two, contracts_of={"other": ("distinct(table)",)})
    assert {k["name"]: k["verdict"] for k in kernels} == {"scatter": "unknown", "other": "conditional"}


def test_a_finding_about_a_contract_says_which() -> None:
    _, diagnostics = _answer(COPY, contracts=("T > 0", "q > 0"))
    (found,) = diagnostics
    assert (found["code"], found["file"], found["line"], found["column"]) == ("TC103", "contracts", 2, 1)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"contracts": ("T >",)}, "contract `T >` is not understood"),
        ({"contracts": ("import os",)}, "contract `import os` is not understood"),
        ({"contracts": ("open('x')",)}, "contract `open` is not understood"),
        ({"contracts_of": {"copz": ("T > 0",)}}, "`copz`, which is no kernel of the source: it has `copy`"),
    ],
)
def test_contracts_that_are_refused(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadLine) as bad:
        answered(Item("a", COPY, **more), Options())
    assert problem in bad.value.problem


# ---- what is no source ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("", "the source has no kernel"),
        ("x = 1", "the source has no kernel"),
        ("x = (", "source.py:1:5: '(' was never closed"),
        ("x = 1\0", "source.py:1:6: the file holds a null byte"),
        ("# coding: latin-1\nx = 'é'\n", "source.py:1:1: the source declares another encoding than UTF-8"),
        ("# coding: nothing\n", "unknown encoding `nothing`"),
        ("(" * 1000 + ")" * 1000, "too many nested parentheses"),
        ("x = " + "-" * 2000 + "1", "nested"),
    ],
)
def test_sources_without_kernels(source: str, error: str) -> None:
    assert error in _error(source)[1]


def test_no_file_and_no_config_beside_the_source_counts(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("TILE = 64\n")
    (tmp_path / "source.py").write_text("TILE = 64\n")
    (tmp_path / "pyproject.toml").write_text("[[tool.tilecheck.kernel]]\nmatch = '*'\nrequires = ['T == 64']\n")
    for module in ("sizes", "source", ".sizes", "."):
        source = f"from {module} import TILE\n" + COPY.replace("shape=(T,)", "shape=(TILE,)")
        (kernel,), _ = _answer(source)
        assert kernel["verdict"] == "unknown"


def test_nothing_of_the_source_is_run(tmp_path: Path) -> None:
    harm = f"open({str(tmp_path / 'made')!r}, 'w')\nraise SystemExit\n"
    (kernel,), _ = _answer(harm + COPY, launch=harm)
    assert kernel["verdict"] == "conditional"
    assert list(tmp_path.iterdir()) == []
