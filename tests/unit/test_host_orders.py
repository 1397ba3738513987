"""Host functions from the text to the report: records, findings, exit codes, suppressions and the cache."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tilecheck.cli import main
from tilecheck.exit_codes import ExitCode
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.model import Diagnostic, HostReport, Report
from tilecheck.options import Options
from tilecheck.verify import host_functions
from tilecheck.verify.pipeline import verify_paths, verify_source

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
HOST = """

def quadrupled(x):
    assert x.is_contiguous()
    double, out = torch.empty_like(x), torch.empty_like(x)
    side, grid = torch.cuda.Stream(), (triton.cdiv(x.numel(), 256),)
    scale[grid](x, double, x.numel(), BLOCK=256)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scale[grid](double, out, x.numel(), BLOCK=256)
    torch.cuda.current_stream().wait_stream(side)
    return out
"""
WAIT = "    side.wait_stream(torch.cuda.current_stream())\n"
WRONG = HOST.replace(WAIT, "")
UNREAD = HOST.replace("torch.cuda.Stream()", "torch.cuda.ExternalStream(0)")
PLAIN = """import torch


def staged(x):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = x.clone()
    return y
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def verified(text: str, **options: object) -> Report:
    return verify_source(text.encode(), "k.py", Options(**options))  # type: ignore[arg-type]


def run(text: str, *arguments: str, verb: str = "verify") -> tuple[int, str]:
    Path("k.py").write_text(text)
    out = io.StringIO()
    target = () if verb == "show" else ("k.py", "-j1", "--no-cache")
    code = main([verb, *target, *arguments], stdout=out, stderr=io.StringIO())
    return code, out.getvalue()


def statuses(report: Report) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(host.name, host.status, host.findings) for host in report.hosts]


def found(report: Report) -> Diagnostic:
    (one,) = (d for d in report.diagnostics if d.code.startswith(("TC41", "TC42", "TC43")))
    return one


def line(site_start: int, text: str) -> int:
    return text.encode()[:site_start].count(b"\n") + 1


def test_a_function_in_order_has_a_record_and_no_finding() -> None:
    report = verified(KERNEL + HOST)
    assert statuses(report) == [("quadrupled", "ordered", ())]
    assert not report.diagnostics


def test_a_missing_wait_is_a_finding_that_stands_alone() -> None:
    text = KERNEL + WRONG
    report = verified(text)
    assert statuses(report) == [("quadrupled", "violated", ("TC411",))]
    finding = found(report)
    assert finding.message == (
        "in `quadrupled`, `scale` on stream `side` reads `double`, and nothing orders that after this: "
        "`scale` on the current stream writes `double`"
    )
    assert finding.help == "call `side.wait_stream(torch.cuda.current_stream())` before"
    places = [finding.site, *(related.site for related in finding.related)]
    assert [line(site.span.start, text) for site in places] == [18, 16]


def test_what_is_not_read_is_listed_with_the_reason() -> None:
    report = verified(KERNEL + UNREAD)
    (host,) = report.hosts
    assert host.status == "unread"
    assert "ExternalStream" in host.reason
    assert host.reason_site is not None
    assert line(host.reason_site.span.start, KERNEL + UNREAD) == 15
    assert "because line 15: " in run(KERNEL + UNREAD)[1]
    assert not [d for d in report.diagnostics if d.code.startswith("TC4")]


def test_files_without_kernels_are_judged_too() -> None:
    report = verified(PLAIN)
    assert not report.kernels
    assert statuses(report) == [("staged", "violated", report.hosts[0].findings)]
    assert {"TC411", "TC414"} <= set(report.hosts[0].findings)
    Path("host.py").write_text(PLAIN)
    Path("other.py").write_text("def nothing():\n    return 1\n")
    whole = verify_paths(["."])
    assert [host.name for host in whole.hosts] == ["staged"]
    assert [path for path, _ in whole.skipped] == ["other.py"]


def test_files_without_streams_are_not_read_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(table: ModuleTable, budget: int) -> None:
        raise AssertionError(table.file)

    monkeypatch.setattr("tilecheck.verify.files.judge_hosts", refuse)
    plain = KERNEL + "\n\ndef run(x, out):\n    scale[(1,)](x, out, 256, BLOCK=256)\n"
    assert len(verified(plain).kernels) == 1


def test_a_kernel_that_is_asked_for_alone_leaves_host_functions_out() -> None:
    Path("k.py").write_text(KERNEL + WRONG)
    report = verify_paths(["k.py::scale"])
    assert len(report.kernels) == 1
    assert not report.hosts


@pytest.mark.parametrize(
    ("text", "demand", "code"),
    [
        (HOST, "conditional", ExitCode.OK),
        (HOST, "launches", ExitCode.OK),
        (WRONG, "conditional", ExitCode.FINDINGS),
        (UNREAD, "conditional", ExitCode.OK),
        (UNREAD, "launches", ExitCode.UNDECIDED),
        (UNREAD, "proved", ExitCode.UNDECIDED),
    ],
)
def test_exit_codes(text: str, demand: str, code: ExitCode) -> None:
    assert run(KERNEL + text, "--require", demand)[0] == code


def test_host_functions_alone_are_something_to_judge() -> None:
    assert run(PLAIN)[0] == ExitCode.FINDINGS
    assert run("x = 1\n")[0] == ExitCode.USAGE


def test_below_the_demand_is_told() -> None:
    text = run(KERNEL + UNREAD, "--require", "launches", "--format", "concise")
    assert "`quadrupled` does not meet `--require launches`: it is unread" in text[1]


def test_reports_count_host_functions() -> None:
    _, text = run(KERNEL + HOST + WRONG.replace("quadrupled", "wrong") + UNREAD.replace("quadrupled", "odd"))
    assert "3 host functions: 1 ordered, 1 violated, 1 unread" in text
    assert "it breaks TC411" in text
    _, text = run(KERNEL + WRONG, "--format", "json")
    assert json.loads(text)["hosts"] == [
        {
            "file": "k.py",
            "line": 12,
            "name": "quadrupled",
            "status": "violated",
            "reason": None,
            "findings": ["TC411"],
        }
    ]


@pytest.mark.parametrize("form", ["sarif", "json-lines", "github", "gitlab", "junit", "grouped"])
def test_every_format_has_the_finding(form: str) -> None:
    code, text = run(KERNEL + WRONG, "--format", form)
    assert code == ExitCode.FINDINGS
    assert "TC411" in text


def test_a_comment_suppresses_a_finding() -> None:
    second = "scale[grid](double, out, x.numel(), BLOCK=256)"
    text = KERNEL + WRONG.replace(second, f"{second}  # tilecheck: ignore[TC411] -- the host waits elsewhere")
    code, _ = run(text)
    assert code == ExitCode.OK
    report = verified(text)
    assert found(report).suppressed
    assert report.hosts[0].status == "violated"
    assert not [d for d in report.diagnostics if d.code == "TC902"]


def test_a_suppression_waits_where_the_function_is_unread() -> None:
    text = UNREAD.replace("return out", "return out  # tilecheck: ignore[TC414] -- known")
    assert not [d for d in verified(KERNEL + text).diagnostics if d.code == "TC902"]


def test_a_baseline_accepts_a_finding() -> None:
    Path("k.py").write_text(KERNEL + WRONG)
    arguments = ["baseline", "write", "--reason", "known", "k.py", "--no-cache"]
    assert main(arguments, stdout=io.StringIO(), stderr=io.StringIO()) == ExitCode.OK
    assert run("# a line more\n" + KERNEL + WRONG)[0] == ExitCode.OK
    assert run(KERNEL + WRONG.replace("double, out, x", "double, out.view(-1), x"))[0] == ExitCode.FINDINGS


# ---- the cache -------------------------------------------------------------------------------------------


def plain(report: Report) -> str:
    kernels = tuple(
        replace(k, time_ms=0.0, cached=False, obligations=tuple(replace(o, time_ms=0.0) for o in k.obligations))
        for k in report.kernels
    )
    return repr(replace(report, kernels=kernels, time_s=0.0, parse_time_s=0.0))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose host functions are judged."""
    seen: list[str] = []
    judge = host_functions.judge_hosts

    def counted(table: ModuleTable, budget: int) -> host_functions.Result:
        seen.append(table.file)
        return judge(table, budget)

    monkeypatch.setattr("tilecheck.verify.files.judge_hosts", counted)
    return seen


def check(calls: list[str]) -> tuple[Report, bool]:
    """Verify with the cache and without; whether the host functions were judged again."""
    calls.clear()
    report = verify_paths(["."], Options(cache=".cache"))
    judged = bool(calls)
    assert plain(report) == plain(verify_paths(["."]))
    return report, judged


def test_results_are_kept_and_follow_the_text(calls: list[str]) -> None:
    Path("k.py").write_text(KERNEL + WRONG)
    assert check(calls)[1]
    report, judged = check(calls)
    assert not judged
    assert report.hosts[0].status == "violated"
    Path("k.py").write_text("# moved down\n\n" + KERNEL + WRONG)
    report, judged = check(calls)
    assert not judged
    assert found(report).site.span.start == (KERNEL + WRONG).index("scale[grid](double") + len(
        "# moved down\n\n"
    )
    Path("k.py").write_text(KERNEL + HOST)
    report, judged = check(calls)
    assert judged
    assert report.hosts[0].status == "ordered"


def test_results_follow_kernels_of_other_files(calls: list[str]) -> None:
    Path("kernels.py").write_text(KERNEL)
    imports = "import torch\nimport triton\n\nfrom kernels import scale\n"
    Path("host.py").write_text(imports + WRONG)
    assert check(calls)[0].hosts[0].status == "violated"
    assert not check(calls)[1]
    store = "tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)"
    Path("kernels.py").write_text(KERNEL.replace(store, "tl.store(out_ptr + i, 1.0, mask=i < n)"))
    report, judged = check(calls)
    assert judged
    assert "TC411" not in report.hosts[0].findings


def test_what_has_not_changed_since_a_revision_is_left_out() -> None:
    Path("kernels.py").write_text(KERNEL)
    Path("host.py").write_text("import torch\nimport triton\n\nfrom kernels import scale\n" + WRONG)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -q -m first"):
        subprocess.run(["git", *command.split()], check=True)
    assert not verify_paths(["."], Options(since="HEAD")).hosts
    Path("kernels.py").write_text(KERNEL.replace("2.0 *", "3.0 *"))
    assert statuses(verify_paths(["."], Options(since="HEAD"))) == [("quadrupled", "violated", ("TC411",))]


# ---- bugs of ours ----------------------------------------------------------------------------------------


def test_a_bug_of_ours_is_told_and_stops_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("tilecheck.proof.interleavings.judge.judge", fail)
    report = verified(KERNEL + HOST)
    assert len(report.kernels) == 1
    (host,) = report.hosts
    assert (host.status, host.reason) == ("unread", "internal")
    assert "a bug" in (host.internal_error or "")
    assert run(KERNEL + HOST)[0] == ExitCode.INTERNAL


def test_a_bug_in_the_reader_is_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("tilecheck.frontend.host_programs.read_host_programs", fail)
    hosts: tuple[HostReport, ...] = verified(KERNEL + HOST).hosts
    assert [host.name for host in hosts] == ["<module>"]


# ---- showing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "has"),
    [
        ("text", "after `scale` on stream `current` at 16:5: event"),
        ("dot", "digraph host {"),
        ("svg", "<svg xmlns="),
    ],
)
def test_the_order_is_shown(form: str, has: str) -> None:
    code, text = run(KERNEL + HOST, "host", "k.py::quadrupled", "--format", form, verb="show")
    assert code == ExitCode.OK
    assert has in text


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (HOST, ("host", "k.py::absent")),
        (UNREAD, ("host", "k.py::quadrupled")),
        (HOST, ("host", "k.py")),
        (HOST, ("ir", "k.py::scale", "--format", "svg")),
    ],
)
def test_what_cannot_be_shown(text: str, arguments: tuple[str, ...]) -> None:
    assert run(KERNEL + text, *arguments, verb="show")[0] == ExitCode.USAGE
