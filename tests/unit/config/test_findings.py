"""What the configuration makes of findings; verdicts stay as they are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.config.files import Configs
from tilecheck.config.findings import configured
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.model import Diagnostic, Report, Severity, Site, Span, Suppression, Verdict
from tilecheck.options import ConfigChoice, Options
from tilecheck.verify.pipeline import verify_source

RACY = """
import cuda.tile as ct

@ct.kernel
def racy(out, T: ct.Constant[int]):
    b = ct.bid(0)
    ct.store(out, index=(b // 2,), tile=ct.zeros((T,), dtype=ct.float32))
"""
PRODUCT = """
import cuda.tile as ct

@ct.kernel
def hard(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    match T:
        case _:
            ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)))
"""


def report_of(folder: Path, text: str, table: str = "", **choice: object) -> Report:
    (folder / "k.py").write_text(text)
    (folder / "pyproject.toml").write_text(f"[tool.tilecheck]\n{table}\n")
    return verify_paths([str(folder / "k.py")], Options(config=ConfigChoice(**choice)))  # type: ignore[arg-type]


def finding(code: str, severity: Severity, file: str, **more: object) -> Diagnostic:
    return Diagnostic(code, "name", severity, "message", Site(file, Span(0, 1)), "k", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ('ignore = ["TC201"]', "`ignore` of {}/pyproject.toml"),
        ('select = ["TC3"]', "not in `select` of {}/pyproject.toml"),
        ('[tool.tilecheck.levels]\nTC201 = "ignore"', "`levels` of {}/pyproject.toml"),
        ('[tool.tilecheck.per-file-ignores]\n"k.py" = { rules = ["TC2"], reason = "one block" }', "one block"),
    ],
)
def test_an_ignored_race_leaves_the_exit_code_and_its_kernel_stays_violated(
    tmp_path: Path, table: str, reason: str
) -> None:
    report = report_of(tmp_path, RACY, table)
    (race,) = report.diagnostics
    assert race.suppression == Suppression("external", reason.format(tmp_path))
    assert race.severity is Severity.ERROR
    assert [kernel.verdict for kernel in report.kernels] == [Verdict.VIOLATED]
    assert exit_code_of(report, Options()) is ExitCode.OK
    assert exit_code_of(report_of(tmp_path, RACY), Options()) is ExitCode.FINDINGS


def test_a_comment_says_why_before_the_configuration_does(tmp_path: Path) -> None:
    text = RACY.replace("    ct.store", "    # tilecheck: ignore[TC201] -- one block\n    ct.store")
    report = report_of(tmp_path, text, 'ignore = ["TC201"]')
    assert [d.suppression for d in report.diagnostics] == [Suppression("inSource", "one block")]


def test_an_ignored_reason_of_unknown_leaves_the_kernel_undecided(tmp_path: Path) -> None:
    report = report_of(tmp_path, PRODUCT, 'ignore = ["TC9"]')
    assert [(d.code, d.suppressed) for d in report.diagnostics] == [("TC905", True)]
    assert exit_code_of(report, Options()) is ExitCode.UNDECIDED


def test_levels_raise_warnings(tmp_path: Path) -> None:
    lax = Options(undecided_fails=False)
    assert exit_code_of(report_of(tmp_path, PRODUCT), lax) is ExitCode.OK
    report = report_of(tmp_path, PRODUCT, '[tool.tilecheck.levels]\nTC905 = "error"')
    assert [d.severity for d in report.diagnostics] == [Severity.ERROR]
    assert exit_code_of(report, lax) is ExitCode.FINDINGS


def test_levels_never_lower_an_error(tmp_path: Path) -> None:
    """Not even one that no rule's level tells."""
    (tmp_path / "pyproject.toml").write_text('[tool.tilecheck.levels]\nTC501 = "info"\n')
    file = (tmp_path / "k.py").as_posix()
    found = configured(
        [finding("TC501", Severity.WARNING, file), finding("TC501", Severity.ERROR, file)], Configs()
    )
    assert [d.severity for d in found] == [Severity.INFO, Severity.ERROR]


@pytest.mark.parametrize("code", ["TC901", "TC902", "TC903", "TC904"])
def test_the_state_of_files_and_comments_is_never_ignored(tmp_path: Path, code: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tilecheck]\nselect = ["TC2"]\nignore = ["TC9", "TC"]\n')
    given = finding(code, Severity.ERROR, (tmp_path / "k.py").as_posix())
    assert configured([given], Configs()) == (given,)


def test_each_file_has_the_settings_of_its_own_table(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "k.py").write_text(RACY)
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.tilecheck]\nignore = ["TC2"]\n')
    (tmp_path / "k.py").write_text(RACY)
    (tmp_path / "pyproject.toml").write_text("[tool.tilecheck]\n")
    found = verify_paths([str(tmp_path)]).diagnostics
    assert sorted((Path(d.site.file).parent.name, d.suppressed) for d in found) == sorted(
        [("a", True), (tmp_path.name, False)]
    )


def test_a_budget_counts_for_the_files_below_its_table(tmp_path: Path) -> None:
    """Without enough steps nothing is proved; a caller who states a budget has decided."""
    hard = Path(__file__).parents[3] / "fixtures" / "cutile" / "races" / "halo.py"
    text = hard.read_text()
    (tmp_path / "k.py").write_text(text)
    (tmp_path / "pyproject.toml").write_text("[tool.tilecheck]\nbudget = 1\n")
    starved = verify_paths([f"{tmp_path}/k.py::stencil_in_place_by_lane"])
    assert [(k.verdict, k.reason) for k in starved.kernels] == [(Verdict.UNKNOWN, "budget")]
    fed = verify_paths([f"{tmp_path}/k.py::stencil_in_place_by_lane"], Options(budget=2_000_001))
    assert [k.reason for k in fed.kernels] != ["budget"]
    flag = ConfigChoice(values=(("budget", "2000k", "--budget"),))
    fed = verify_paths([f"{tmp_path}/k.py::stencil_in_place_by_lane"], Options(config=flag))
    assert [k.reason for k in fed.kernels] != ["budget"]


def test_a_source_without_a_file_has_the_settings_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tilecheck]\nignore = ["TC201"]\n')
    report = verify_source(RACY.encode(), str(tmp_path / "unsaved.py"), Options())
    assert [d.suppressed for d in report.diagnostics] == [True]
    isolated = dataclasses.replace(Options(), config=ConfigChoice(isolated=True))
    report = verify_source(RACY.encode(), str(tmp_path / "unsaved.py"), isolated)
    assert [d.suppressed for d in report.diagnostics] == [False]
