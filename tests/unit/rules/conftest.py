"""Rules asked about kernels that are written out in the test."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.model import Diagnostic
from tilecheck.proof.obligation import Obligation
from tilecheck.registry import load_rules

State = Callable[[str, str], list[Obligation]]
Find = Callable[[str, str], list[Diagnostic]]

_HEADER = "import cuda.tile as ct\nfrom tilecheck import Mut, Shared, unsafe\n\n"


@pytest.fixture
def facts(tmp_path: Path) -> Callable[[str], Facts]:
    """The facts of the one kernel in a text; the imports are put before it."""

    def of(text: str) -> Facts:
        path = tmp_path / "kernel.py"
        path.write_text(_HEADER + textwrap.dedent(text))
        (definition,) = find_kernels(Project().add(load(str(path))))
        kernel = lower(definition)
        return Facts(kernel, build(kernel))

    return of


def _ask(facts: Facts, code: str) -> list[object]:
    (rule,) = (loaded.rule for loaded in load_rules() if loaded.rule.code == code)
    assert rule.check is not None
    return list(rule.check(facts))


@pytest.fixture
def stated(facts: Callable[[str], Facts]) -> State:
    """What a rule states about a kernel; it must yield obligations only."""

    def of(code: str, text: str) -> list[Obligation]:
        answers = _ask(facts(text), code)
        assert all(isinstance(a, Obligation) and a.rule == code for a in answers)
        return [a for a in answers if isinstance(a, Obligation)]

    return of


@pytest.fixture
def found(facts: Callable[[str], Facts]) -> Find:
    """What a rule finds without a proof; it must yield findings only."""

    def of(code: str, text: str) -> list[Diagnostic]:
        answers = _ask(facts(text), code)
        assert all(isinstance(a, Diagnostic) and a.code == code for a in answers)
        return [a for a in answers if isinstance(a, Diagnostic)]

    return of


@pytest.fixture
def snippet(tmp_path: Path) -> Callable[[object], str]:
    """The text of a site in the kernel that was asked about last."""

    def of(site: object) -> str:
        span = site.span  # type: ignore[attr-defined]  # a Site
        return (tmp_path / "kernel.py").read_bytes()[span.start : span.end].decode()

    return of
