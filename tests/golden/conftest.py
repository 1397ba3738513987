"""Reports built by hand, one for each thing that an emitter must show."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tilecheck.errors import SourceError
from tilecheck.hygiene import unreadable_source
from tilecheck.model import (
    ConditionAt,
    Diagnostic,
    KernelReport,
    LaunchReport,
    ObligationReport,
    ParamReport,
    Premise,
    Related,
    Report,
    Severity,
    Site,
    Span,
    Suppression,
    TrustedBlock,
    Verdict,
    Witness,
)

BUMP = """import cuda.tile as ct


@ct.kernel
def bump(x, out, T: ct.Constant[int]):
    i = ct.bid(0) // 2
    t = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=t)


def launch(stream, x, out):
    ct.launch(stream, (ct.cdiv(out.shape[0], 128),), bump, (x, out, 128))
"""
# Markup, a tab, wide, combining and invisible characters: all must come out as they went in, or be defused.
HARD = """def hard(x, out):
\tacc[i] = load(p, o[bold red])  # 日本 e\u0301 \u202e \x1b[31m
\tstore(
\t    out,  # [/] :smile: ünïcödé
\t    acc)
"""
MATCH = """@ct.kernel
def pick(out, mode):
    match mode:
        case 0:
            ct.store(out, index=(0,), tile=0)
"""


_WITNESS = Witness(
    kind="overlap",
    grid=(2, 1, 1),
    blocks=((0, 0, 0), (1, 0, 0)),
    values={"grid[0]": 2, "T": 1, "x.shape[0]": 1, "out.shape[0]": 1},
    array="out",
    element=(0,),
)


@dataclass(frozen=True, slots=True)
class Files:
    """Sources by name, and sites in them by text."""

    sources: dict[str, bytes] = field(default_factory=dict)

    def at(self, file: str, text: str) -> Site:
        start = self.sources[file].index(text.encode())
        return Site(file, Span(start, start + len(text.encode())))


def _race(files: Files) -> Report:
    store = files.at("bump.py", "ct.store(out, index=(i,), tile=t)")
    finding = Diagnostic(
        code="TC201",
        name="write-write-overlap",
        severity=Severity.ERROR,
        message="two blocks write the same elements of `out`",
        site=store,
        kernel="bump",
        label="written by block (0, 0, 0) and by block (1, 0, 0): out[0:1]",
        related=(Related(files.at("bump.py", "ct.bid(0) // 2"), "both blocks get i = 0"),),
        witness=_WITNESS,
        notes=("3 of 4 obligations of `bump` are proved",),
        help="index the tile with `ct.bid(0)`, which differs between any two blocks",
    )
    kernel = KernelReport(
        name="bump",
        language="cutile",
        site=files.at("bump.py", "bump"),
        verdict=Verdict.VIOLATED,
        standing=("S1", "S3"),
        params=(
            ParamReport("x", "shared", declared=False),
            ParamReport("out", "mut", declared=True),
            ParamReport("T", "constant", declared=True),
        ),
        obligations=(
            ObligationReport("TC201", "violated", "none", (store, store), 1.25),
            ObligationReport("TC302", "proved", "entail", (store,), 0.5),
        ),
        time_ms=2.125,
    )
    return Report((kernel,), (finding,), files=1, time_s=0.25, parse_time_s=0.125, sources=files.sources)


def _clean(files: Files) -> Report:
    condition = "grid[0] <= cdiv(out.shape[0], T)"
    name = files.at("bump.py", "bump")
    conditional = KernelReport(
        "bump",
        "cutile",
        name,
        Verdict.CONDITIONAL,
        conditions=(condition, "x.shape[0] >= out.shape[0]"),
        standing=("S1",),
        launches=(
            LaunchReport(
                files.at("bump.py", "ct.launch"),
                (
                    ConditionAt(condition, "holds"),
                    ConditionAt("x.shape[0] >= out.shape[0]", "caller"),
                    ConditionAt("T % 16 == 0", "holds"),
                ),
                function="launch",
                guarded=True,
            ),
        ),
        premises=(
            Premise("T % 16 == 0", "the launcher pads", "source", "holds"),
            Premise("x.shape[0] <= 4096", None, "config", "guarded"),
            Premise("distinct(x)", "made by torch.randperm", "gate", "promised"),
        ),
    )
    proved = KernelReport("pick", "cutile", files.at("pick.py", "pick"), Verdict.PROVED)
    trusted = KernelReport(
        "hard",
        "cutile",
        files.at("hard.py", "hard"),
        Verdict.TRUSTED,
        trusted=(TrustedBlock(files.at("hard.py", "store("), "slots come from the allocator"),),
        launches=(
            LaunchReport(
                files.at("bump.py", "ct.launch"), (), "unread", "the arguments are not known", "launch"
            ),
        ),
    )
    silenced = Diagnostic(
        code="TC501",
        name="output-not-covered",
        severity=Severity.WARNING,
        message="`out` is not written everywhere",
        site=files.at("hard.py", "out,"),
        kernel="hard",
        suppression=Suppression("inSource", "only the first rows are read"),
    )
    return Report((proved, conditional, trusted), (silenced,), files=3, time_s=0.5, sources=files.sources)


def _parse_error(files: Files) -> Report:
    data = b"import cuda.tile as ct\ndef f(:\n"
    finding = unreadable_source("broken.py", data, SourceError("invalid syntax", 2, 7))
    gone = unreadable_source("gone.py", None, SourceError("permission denied"))
    return Report(
        (), (finding, gone), files=2, unreadable=("broken.py", "gone.py"), sources={"broken.py": data}
    )


def _unknown(files: Files) -> Report:
    unsupported = KernelReport(
        "pick",
        "cutile",
        files.at("pick.py", "pick"),
        Verdict.UNKNOWN,
        reason="unsupported:match statement",
        reason_site=files.at(
            "pick.py", "match mode:\n        case 0:\n            ct.store(out, index=(0,), tile=0)"
        ),
    )
    unmet = ConditionAt("grid[0] <= cdiv(out.shape[0], T)", "unmet")
    broken = ConditionAt("S3: grid[1] is 1", "broken", _WITNESS)
    budget = KernelReport(
        "bump",
        "cutile",
        files.at("bump.py", "bump"),
        Verdict.UNKNOWN,
        reason="budget",
        launches=(LaunchReport(files.at("bump.py", "ct.launch"), (unmet, broken), function="<module>"),),
        premises=(Premise("T >= 1", None, "source"),),
    )
    return Report((unsupported, budget), (), files=2, sources=files.sources)


def _hard(files: Files) -> Report:
    finding = Diagnostic(
        code="TC202",
        name="write-read-overlap",
        severity=Severity.ERROR,
        message="one block writes what another reads: `acc[i]` [bold]",
        site=files.at("hard.py", "store(\n\t    out,  # [/] :smile: ünïcödé\n\t    acc)"),
        label="written here",
        related=(
            Related(files.at("hard.py", "load(p, o[bold red])"), "read here [/]"),
            Related(files.at("hard.py", "# 日本"), "wide"),
            Related(files.at("bump.py", "ct.load"), "and in another file"),
        ),
        notes=("a note\nof two lines",),
    )
    return Report((), (finding,), files=1, sources=files.sources)


@pytest.fixture(params=("race", "clean", "parse_error", "unknown", "hard"))
def case(request: pytest.FixtureRequest) -> tuple[str, Report]:
    """A report and its name."""
    sources = {"bump.py": BUMP, "hard.py": HARD, "pick.py": MATCH}
    files = Files({name: text.encode() for name, text in sources.items()})
    build = {"race": _race, "clean": _clean, "parse_error": _parse_error, "unknown": _unknown, "hard": _hard}
    return request.param, build[request.param](files)
