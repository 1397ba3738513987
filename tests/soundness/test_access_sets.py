"""What the IR says that a kernel touches, compared with what the reference backend sees it touch.

The front end reads libcst trees and runs a kernel once for all blocks; the reference backend reads `ast`
trees and runs block by block. They share no code, so an access that only one of them sees is a bug.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from soundness_coverage import Tally, unadmitted, unlogged
from soundness_launches import trials
from soundness_undefined import unstated

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir import expr as E
from tilecheck.ir.kernel import Access, Effect, block_symbol
from tilecheck.registry import load_rules
from tilecheck.verify.stages import state_obligations

ROOT = Path(__file__).resolve().parents[2]
FILES = [*sorted((ROOT / "fixtures" / "cutile").rglob("*.py")), *sorted((ROOT / "kernels").glob("*.py"))]
LAUNCHES = 5  # of each kernel


@dataclass
class Outcome:
    """The comparison of one file."""

    kernels: int = 0
    silent: list[str] = field(default_factory=list)  # kernels of which no launch ran
    problems: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)


@pytest.fixture
def compared(once) -> Callable[[Path], Outcome]:
    """The comparison of one file, which two tests look at."""
    return lambda path: once(f"access sets {path}", lambda: _compared(path))


def _compared(path: Path) -> Outcome:
    outcome = Outcome()
    rules = [entry.rule for entry in load_rules()]
    exact = not _ends_loops_early(path)
    for definition in find_kernels(Project().add(load(str(path)))):
        try:
            kernel = lower(definition)
        except UnsupportedConstruct:
            continue
        outcome.kernels += 1
        obligations, _ = state_obligations(Facts(kernel, build(kernel, ())), rules)
        ran = 0
        for trial in trials(kernel, str(path), LAUNCHES, f"{path.stem}::{kernel.name}"):
            ran += 1
            outcome.problems += unadmitted(trial, outcome.tally)
            outcome.problems += unlogged(trial, outcome.tally, exact=exact)
            outcome.problems += unstated(trial, obligations, outcome.tally)
        if not ran:
            outcome.silent.append(kernel.name)
    return outcome


def _ends_loops_early(path: Path) -> bool:
    """Whether a loop of the file may end before its range does: its later accesses are over-approximated."""
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    inside = [n for loop in nodes if isinstance(loop, ast.For) for n in ast.walk(loop)]
    return any(isinstance(n, ast.While) for n in nodes) or any(
        isinstance(n, ast.Break | ast.Return) for n in inside
    )


def identity(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", [pytest.param(p, id=identity(p)) for p in FILES])
def test_ir_and_log_agree(path: Path, compared) -> None:
    problems = compared(path).problems
    assert not problems, f"{len(problems)} differences, the first:\n" + "\n".join(problems[:3])


def test_the_comparison_means_something(compared) -> None:
    """Most kernels run, most accesses are compared both ways, and undefined behaviour occurs."""
    total, kernels, silent = Tally(), 0, 0
    for path in FILES:
        outcome = compared(path)
        total.add(outcome.tally)
        kernels += outcome.kernels
        silent += len(outcome.silent)
    assert silent <= kernels // 20
    assert total.records > 10 * kernels
    assert total.undefined > kernels
    # The fixtures of protocols do little else than branch on atomics.
    expected = ("undefined behaviour", "undefined before", "a branch on an atomic")
    skipped = sum(n for reason, n in total.one_way.items() if reason not in expected)
    # Many of the fixtures spin or end early.
    assert total.both_ways > 3 * skipped, total.one_way


# ---- and it notices ----------------------------------------------------------------------------------------

SAMPLES = [
    ("kernels/matmul.py", "matmul_kernel"),
    ("kernels/embedding.py", "embedding_kernel"),
    ("fixtures/cutile/gather/masks.py", None),
    ("fixtures/cutile/views/slices.py", None),
    ("fixtures/cutile/views/lists.py", None),
]


def _moved(access: Access) -> Access:
    first = access.axes[0]
    return replace(access, axes=(replace(first, base=E.add(first.base, 1)), *access.axes[1:]))


BROKEN: dict[str, Callable[[Access], Access]] = {
    "one further": _moved,
    "only in block 0": lambda a: replace(a, guard=E.all_of(a.guard, E.eq(E.sym(block_symbol(0)), 0))),
    "never": lambda a: replace(a, guard=E.FALSE),
    "not in lane 0": lambda a: replace(a, mask=E.all_of(a.mask, *(E.lt(0, E.sym(s)) for s in a.lanes[:1]))),
    "of another array": lambda a: replace(a, array="other"),
    "of another kind": lambda a: replace(a, effect=Effect.ATOMIC),
    "elsewhere": lambda a: replace(a, site=replace(a.site, span=replace(a.site.span, start=0, end=1))),
}


@pytest.mark.parametrize(("file", "name"), SAMPLES, ids=str)
@pytest.mark.parametrize("how", BROKEN)
def test_an_access_that_the_ir_has_wrong_is_noticed(file: str, name: str | None, how: str) -> None:
    """Each access of a kernel in turn is broken; the log of launches that reach it does not fit any more."""
    path = ROOT / file
    definitions = find_kernels(Project().add(load(str(path))))
    noticed = 0
    for definition in definitions:
        if name not in (None, definition.name):
            continue
        kernel = lower(definition)
        for number, access in enumerate(kernel.accesses):
            if how == "not in lane 0" and not access.lanes:
                continue
            changed = list(kernel.accesses)
            changed[number] = BROKEN[how](access)
            wrong = replace(kernel, accesses=tuple(changed))
            launches = trials(kernel, str(path), LAUNCHES, "noticed")
            noticed += any(True for t in launches for _ in unadmitted(replace(t, kernel=wrong), Tally()))
    assert noticed


def test_an_access_that_the_text_lacks_is_noticed() -> None:
    path = ROOT / "kernels" / "vector_add.py"
    [definition] = find_kernels(Project().add(load(str(path))))
    kernel = lower(definition)
    wide = [replace(a, axes=tuple(replace(x, index=E.ZERO) for x in a.axes)) for a in kernel.accesses]
    more = replace(kernel, accesses=(*kernel.accesses, *wide))
    launches = [replace(t, kernel=more) for t in trials(kernel, str(path), LAUNCHES, "more")]
    assert any(list(unlogged(t, Tally(), exact=True)) for t in launches)
    assert not any(list(unlogged(t, Tally(), exact=False)) for t in launches)


def test_an_obligation_that_is_missing_is_noticed() -> None:
    path = ROOT / "kernels" / "vector_add.py"
    [definition] = find_kernels(Project().add(load(str(path))))
    kernel = lower(definition)
    obligations, _ = state_obligations(Facts(kernel, build(kernel, ())), [e.rule for e in load_rules()])
    fewer = [o for o in obligations if o.rule != "TC302"]
    launches = list(trials(kernel, str(path), 2 * LAUNCHES, "fewer"))
    assert any(list(unstated(t, fewer, Tally())) for t in launches)
    assert not any(list(unstated(t, obligations, Tally())) for t in launches)
