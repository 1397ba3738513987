"""Every annotated kernel gets the verdict and the findings that its comments expect, and no others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from tilecheck.model import Verdict
from tilecheck.registry import rule_files
from tilecheck.testing import Expectations, Problem, compare, fixture_kernels, read_expectations
from tilecheck.text import decode
from tilecheck.verify.discover import display_path
from tilecheck.verify.pipeline import verify_paths

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
FOLDERS = ("cutile", "triton", "probes")  # probes: kernels that were once judged wrongly
FILES = sorted(path for folder in FOLDERS for path in (FIXTURES / folder).rglob("*.py"))
KERNELS = [(path, name) for path in FILES for name in fixture_kernels(path)]
ENOUGH = {"cutile": (150, 150), "triton": (130, 125)}  # kernels that are safe, and kernels that are not


def identity(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix().removeprefix("cutile/")


@cache
def expected_of(path: Path) -> Expectations:
    return read_expectations(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def problems(verified) -> Callable[[Path], tuple[Problem, ...]]:
    """What is not as a file expects. One run and one comparison for each file; its kernels share them."""
    return cache(lambda path: compare(decode(display_path(str(path)), path.read_bytes()), verified(path)))


@pytest.mark.parametrize(("path", "kernel"), [pytest.param(p, k, id=f"{identity(p)}::{k}") for p, k in KERNELS])
def test_kernel_is_as_expected(path: Path, kernel: str, problems) -> None:
    """The verdict of one kernel and the findings inside it."""
    found = [p for p in problems(path) if p.kernel == kernel]
    assert not found, "\n".join(f"{identity(path)}:{p.line}: {p.message}" for p in found)


@pytest.mark.parametrize("path", [pytest.param(p, id=identity(p)) for p in FILES])
def test_nothing_else_is_found(path: Path, problems) -> None:
    """Findings outside kernels: in host functions and helpers."""
    found = [p for p in problems(path) if p.kernel is None]
    assert not found, "\n".join(f"{identity(path)}:{p.line}: {p.message}" for p in found)


def verdicts(paths: Iterable[Path]) -> Counter[str]:
    """How many kernels of these files expect each verdict."""
    return Counter(verdict.word.partition("(")[0] for path in paths for verdict in expected_of(path).verdicts)


@pytest.mark.parametrize("language", sorted(ENOUGH))
def test_enough_kernels_of_each_kind(language: str) -> None:
    """Both sides are covered broadly in either language."""
    words = verdicts(path for path in FILES if FIXTURES / language in path.parents)
    safe, buggy = ENOUGH[language]
    assert words["proved"] + words["conditional"] >= safe
    assert words["violated"] >= buggy


def test_every_kernel_expects_a_verdict() -> None:
    """No kernel is without one, and no kernel name stands twice in one file."""
    assert verdicts(FILES).total() == len(KERNELS)
    assert len(set(KERNELS)) == len(KERNELS)


def test_both_languages_have_the_patterns_of_races() -> None:
    """Each pattern stands in both, in a file of the same name, with expectations that differ in words alone."""
    folders = [FIXTURES / language / "patterns" for language in ("cutile", "triton")]
    cutile, triton = ({path.name: path for path in folder.glob("*.py")} for folder in folders)
    assert len(cutile) >= 26
    assert cutile.keys() == triton.keys()
    for name in cutile.keys() - {"rereads.py"}:  # cuTile orders what the threads of a block do
        words = [verdicts([found[name]]) for found in (cutile, triton)]
        for counted in words:
            counted["conditional"] += counted.pop("proved", 0)
        assert words[0] == words[1], name


def test_every_rule_of_kernels_and_launches_is_expected_somewhere() -> None:
    """A rule that no fixture expects is a rule that no fixture tests."""
    expected = {
        finding.code for path in FILES for finding in expected_of(path).findings if finding.key == "expect"
    }
    # Hostile files; undecided kernels, by their verdicts; what needs a baseline.
    tested_elsewhere = {"TC901", "TC905", "TC906", "TC907", "TC908", "TC909", "TC910"}
    assert {file.code for file in rule_files()} <= expected | tested_elsewhere


# ---- host functions: pairs before and after -----------------------------------------------------------------

UNFOLLOWED = {"by_view"}  # rows of a view under another shape
HOSTS = [path for path in FILES if path.parent.name == "hosts"]


@pytest.mark.parametrize("path", [pytest.param(p, id=identity(p)) for p in HOSTS])
def test_host_functions_are_ordered_except_those_before(path: Path, verified) -> None:
    """What is named `_before` is violated, all else ordered; more may be unread in a file with work to do."""
    findings = expected_of(path).findings
    due = any(finding.key.startswith("todo-") and finding.code.startswith("TC4") for finding in findings)
    records = {host.name.lower(): host.status for host in verified(path).hosts}
    assert records
    for name, status in records.items():
        function = name.removesuffix(".__init__")
        if re.search(r"_before$|before\.", function) and not name.startswith("capture_"):
            assert status == "violated" or (due and status == "unread"), name
        elif not function.endswith("before"):
            assert status == "ordered" or due or name in UNFOLLOWED, name


def test_host_fixtures_are_pairs_for_each_code_of_host_functions() -> None:
    """At least three wrong functions of each code, found or due."""
    counted = Counter(
        finding.code
        for path in HOSTS
        for finding in expected_of(path).findings
        if finding.key in ("expect", "todo-expect")
    )
    codes = [*(f"TC41{k}" for k in range(1, 6)), *(f"TC42{k}" for k in range(1, 7)), "TC431", "TC432"]
    assert {code: counted[code] for code in codes if counted[code] < 3} == {}
    assert counted["TC433"] >= 2
    assert counted["TC431"] + counted["TC432"] + counted["TC433"] >= 8


# Wrong functions of the probes that pass as yet.
PASSING = {
    "output_in_a_shared_pool",
    "each_result",
    "launched_on_a_stream_of_the_caller",
}


def test_wrong_host_functions_of_the_probes_do_not_pass(verified) -> None:
    """A function without a record passes too."""
    path = FIXTURES / "probes" / "hosts.py"
    records = {host.name: host.status for host in verified(path).hosts}
    functions = set(re.findall(r"^def (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)) - {
        "copied",
        "halve",
        "run_halve",
    }
    assert {name for name in functions if records.get(name, "ordered") == "ordered"} == PASSING


_QUOTED = re.compile(r"<!-- message: (\S+)::\w+ -->\n\s*```text\n\s*error\[(\w+)\]: (.*)\n")


def test_the_page_of_hosts_quotes_what_is_found(verified) -> None:
    """`docs/host_messages.py` writes the messages."""
    page = (FIXTURES.parent / "docs" / "host.md").read_text(encoding="utf-8")
    quoted = _QUOTED.findall(page)
    assert len(quoted) == page.count("<!-- message: ")
    for file, code, message in quoted:
        found = verified(FIXTURES.parent / file).diagnostics
        assert (code, message) in {(diagnostic.code, diagnostic.message) for diagnostic in found}


def test_the_page_of_rejects_names_fixtures_that_exist() -> None:
    """`docs/rejects.md` says where each case of cutile-rs is; kernels after the first are of the same file."""
    page = (FIXTURES.parent / "docs" / "rejects.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[a-z_0-9]+\.py)(?:::([a-z_0-9]+))?`((?:,(?: twins?)? `[a-z_0-9]+`)*)", page)
    assert len(named) > 40
    for file, first, rest in named:
        kernels = fixture_kernels(FIXTURES / "cutile" / file)
        wanted = {first, *re.findall(r"`([a-z_0-9]+)`", rest)} - {""}
        assert wanted <= set(kernels), file
    cases = re.findall(r"^\| ([CKL][0-9]+) \|", page, re.MULTILINE)
    assert cases == [f"{k}{n}" for k, count in (("C", 28), ("K", 12), ("L", 14)) for n in range(1, count + 1)]


# ---- hostile files: they may hold anything, and a run over them ends with a result ------------------------

HOSTILE = FIXTURES / "hostile"
UNREADABLE = {
    "deep_nesting.py",
    "emoji_name.py",
    "invalid_utf_8.py",
    "mixed_indentation.py",
    "null_byte.py",
    "python_2.py",
    "syntax_error.py",
    "unknown_encoding.py",
}
WITHOUT_KERNELS = {"blank_lines.py", "empty.py", "no_kernels.py", "only_imports_cutile.py"}


@pytest.mark.parametrize("name", sorted(path.name for path in HOSTILE.iterdir() if path.suffix == ".py"))
def test_hostile_file_has_a_result(name: str) -> None:
    """One kernel, none, or one TC901 that names a place in the file; never a crash."""
    report = verify_paths([str(HOSTILE / name)])
    codes = [d.code for d in report.diagnostics]
    if name in UNREADABLE:
        assert codes == ["TC901"]
        assert len(report.unreadable) == 1
        assert not report.kernels
        assert 0 <= report.diagnostics[0].site.span.start <= (HOSTILE / name).stat().st_size
    elif name in WITHOUT_KERNELS:
        assert not report.kernels
        assert not codes
    elif name == "deep_kernel.py":  # legal Python, deeper than the parser goes: said, never skipped
        undecided = [k.verdict is Verdict.UNKNOWN and k.internal_error is None for k in report.kernels]
        assert undecided == [True] or codes == ["TC901"]
    else:
        assert not report.unreadable
        assert len(report.kernels) == 1
        assert report.kernels[0].internal_error is None
        assert report.kernels[0].verdict in (Verdict.CONDITIONAL, Verdict.VIOLATED)


def test_columns_are_code_points() -> None:
    """Emoji and Cyrillic before a finding count as one column each."""
    path = HOSTILE / "unicode_names.py"
    report = verify_paths([str(path)])
    [finding] = report.diagnostics
    source = decode(finding.site.file, path.read_bytes())
    assert finding.code == "TC201"
    assert source.position(finding.site.span.start) == (9, 11)


@pytest.mark.parametrize(
    "name", ["byte_order_mark.py", "crlf.py", "carriage_returns.py", "form_feed.py", "latin_1.py"]
)
def test_encodings_and_newlines_do_not_move_the_kernel(name: str) -> None:
    """The kernel's name is where it is in the bytes of the file, or of its text in UTF-8."""
    path = HOSTILE / name
    [kernel] = verify_paths([str(path)]).kernels
    data = decode(str(path), path.read_bytes()).data
    assert data[kernel.site.span.start : kernel.site.span.end] == b"fill"


def test_ten_thousand_lines(tmp_path: Path) -> None:
    """A long file of host code with a kernel at either end."""
    kernel = (
        "@ct.kernel\ndef {}(out):\n"
        "    ct.store(out, index=(ct.bid(0),), tile=ct.zeros((64,), dtype=ct.float32))\n\n\n"
    )
    host = "def host_{0}(x):\n    y = [i * {0} for i in range(x)]\n    return sum(y)\n\n\n"
    body = "".join(host.format(n) for n in range(2000))
    path = tmp_path / "long.py"
    path.write_text(f"import cuda.tile as ct\n\n\n{kernel.format('first')}{body}{kernel.format('last')}")
    report = verify_paths([str(path)])
    assert [k.name for k in report.kernels] == ["first", "last"]
    assert all(k.verdict is Verdict.CONDITIONAL for k in report.kernels)
    assert path.read_text().count("\n") > 10_000
