"""An overflow check that does not count is about a value that reaches nothing: with any number in its place,
the accesses, branches and checks of the kernel are the same (S-32bit-1 to S-32bit-4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.kernels.definitions import Definition, find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.frontend.values import arithmetic
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.kernel import CheckKind, Kernel

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = (
    "cutile/loops",
    "cutile/swizzle",
    "cutile/wrap",
    "triton/attention",
    "triton/gather",
    "triton/in_place",
    "triton/mutants",
    "triton/rows",
    "triton/wrap",
)
NAME = "any number"
ANY = f"memory:{NAME}"  # as a value that was read: what the kernel does not write is the same in all threads
Key = tuple[object, ...]


class Replacing:
    """Lowers kernels with unknowns in the place of some checked values. Mutable: `checked` are the values of
    the checks of a run, in the order of its checks, and `replaced` those to replace."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.checked: list[Key] = []
        self.replaced: frozenset[Key] = frozenset()
        add = Executor._fits  # noqa: SLF001 - each branch of a value has a check of its own
        fits, is_integer = Executor.fits, Executor.is_integer

        def noted(x: Executor, value: Expr, shape: tuple[Expr, ...], case: Expr) -> None:
            if value.op != "ite":
                self.checked.append(self._key(x, value, case))
            add(x, value, shape, case)

        def replaced(x: Executor, value: Expr, shape: tuple[Expr, ...] = ()) -> Expr:
            found = fits(x, value, shape)
            if not self.replaced or not x.has_machine_integers or x.contract or found is not value:
                return found
            return self._in_place_of(x, value, E.TRUE, per_lane=bool(shape))

        patch.setattr(Executor, "_fits", noted)
        patch.setattr(Executor, "fits", replaced)
        patch.setattr(Executor, "is_integer", lambda x, name: name == NAME or is_integer(x, name))

    def lower(self, definition: Definition, replaced: frozenset[Key] = frozenset()) -> Kernel:
        self.checked.clear()
        self.replaced = replaced
        return lower(definition)

    def keys(self, kernel: Kernel, *, counted: bool) -> frozenset[Key]:
        """The checks of the last run that count; otherwise those for which no equal check counts."""
        last = self.checked[len(self.checked) - len(kernel.arithmetic) :]
        own = list(zip(last, kernel.arithmetic, strict=True))
        used = frozenset(key for key, check in own if check.counts)
        return used if counted else frozenset(key for key, _ in own) - used

    def _in_place_of(self, x: Executor, value: Expr, case: Expr, *, per_lane: bool) -> Expr:
        if not arithmetic.may_have_wrapped(value):
            return value
        if value.op == "ite":
            test, first, second = value.args
            one = self._in_place_of(x, first, E.all_of(case, test), per_lane=per_lane)
            two = self._in_place_of(x, second, E.all_of(case, E.negate(test)), per_lane=per_lane)
            return value if one is first and two is second else E.ite(test, one, two)
        return x.fresh(ANY, per_lane=per_lane) if self._key(x, value, case) in self.replaced else value

    @staticmethod
    def _key(x: Executor, value: Expr, case: Expr) -> Key:
        return x.site.file, x.site.span.start, x.site.span.end, E.render(value), E.render(case)


def expressions(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from expressions(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from expressions(getattr(value, field.name))


def reached(kernel: Kernel) -> tuple[list[Expr], list[str]]:
    """The expressions in the accesses, branches and checks of a kernel, and the same as text. An unknown value
    may need fewer checks as a dividend than a value with known signs, and is exchanged more often."""
    counted = tuple((check.value, check.guard) for check in kernel.arithmetic if check.counts)
    checks = tuple(check for check in kernel.checks if check.kind is not CheckKind.DIVIDEND)
    other = dataclasses.replace(kernel, arithmetic=(), exchanges=(), names=(), checks=checks)
    found = [*expressions(other), *expressions(counted)]
    return found, list(map(E.render, found))


def is_any(e: Expr) -> bool:
    return any(symbol.origin == ANY for symbol in E.symbols(e))


def definitions(folder: str) -> Iterator[Definition]:
    for path in sorted((FIXTURES / folder).rglob("*.py")):
        yield from find_kernels(Project().add(load(str(path))))


def changed(replacing: Replacing, folder: str, *, counted: bool) -> Iterator[tuple[str, bool]]:
    """The kernels with checks that count, or that do not, and whether another value in their place is seen."""
    for definition in definitions(folder):
        try:
            kernel = replacing.lower(definition)
            keys = replacing.keys(kernel, counted=counted)
            if not keys:
                continue
            other, words = reached(replacing.lower(definition, keys))
        except UnsupportedConstruct:
            continue
        yield definition.name, any(map(is_any, other)) or words != reached(kernel)[1]


@pytest.fixture
def replacing(monkeypatch: pytest.MonkeyPatch) -> Replacing:
    return Replacing(monkeypatch)


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_rests_on_a_check_that_does_not_count(replacing: Replacing, folder: str) -> None:
    assert [name for name, seen in changed(replacing, folder, counted=False) if seen] == []


def test_what_rests_on_a_check_that_counts_is_seen(replacing: Replacing) -> None:
    seen = [seen for _, seen in changed(replacing, "triton/wrap", counted=True)]
    assert len(seen) > 60
    assert sum(seen) > 0.95 * len(seen)
