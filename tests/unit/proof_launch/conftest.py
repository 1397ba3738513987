"""Kernels as the front end would hand them over, and the obligations that the rules would state."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tilecheck import rules as rules_package
from tilecheck.analysis.borrow import build as build_graph
from tilecheck.analysis.facts import Facts
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.expr import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    floordiv,
    le,
    lt,
    minimum,
    mod,
    mul,
    sub,
    sym,
)
from tilecheck.ir.kernel import (
    Access,
    Axis,
    Effect,
    Kernel,
    Ownership,
    Param,
    Space,
    block_symbol,
    extent_symbol,
)
from tilecheck.model import Site, Span
from tilecheck.proof.conditions.abduction import Derivation, condition_text, derive
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable


@dataclass
class Builder:
    """A kernel under construction. Mutable: accesses are added one by one."""

    file: str = "k.py"

    def __post_init__(self) -> None:
        self.accesses: list[Access] = []
        self.obligations: list[Obligation] = []
        self.facts: dict[Expr, None] = {}
        self.tiles: dict[Expr, None] = {}
        self.params: dict[str, Param] = {}
        self.constants: dict[str, Symbol] = {}
        self.axes: dict[int, None] = {}
        self.position = 0

    def bid(self, axis: int) -> Expr:
        self.axes[axis] = None
        return sym(block_symbol(axis))

    def extent(self, array: str, axis: int) -> Expr:
        found = sym(extent_symbol(array, axis))
        if array not in self.params:
            self._param(array, Ownership.SHARED, axis + 1)
        self.facts[le(0, found)] = None
        return found

    def constant(self, name: str) -> Expr:
        symbol = self.constants.setdefault(name, Symbol(name, Kind.CONSTANT))
        self._param(name, Ownership.CONSTANT, None)
        return sym(symbol)

    def tile(self, name: str) -> Expr:
        size = self.constant(name)
        self.facts[le(1, size)] = None
        self.tiles[size] = None
        return size

    def scalar(self, name: str) -> Expr:
        self._param(name, Ownership.VALUE, None)
        return sym(Symbol(name, Kind.SCALAR))

    def site(self, start: int | None = None, end: int | None = None) -> Site:
        self.position += 1
        own = self.position * 10
        return Site(self.file, Span(own if start is None else start, end or own + 5))

    def _param(self, name: str, ownership: Ownership, rank: int | None) -> None:
        self.params[name] = Param(name, rank is not None, rank, False, ownership, None, self.site())

    def tiles_access(
        self,
        array: str,
        effect: Effect,
        index: Sequence[Expr | int],
        sizes: Sequence[Expr | int],
        guard: Expr = TRUE,
        checked: bool = True,
        site: Site | None = None,
    ) -> Access:
        """`ct.load` or `ct.store` of one tile."""
        self._param(array, Ownership.MUT if effect > Effect.READ else Ownership.SHARED, len(index))
        axes, lanes = [], []
        for k, (i, size) in enumerate(zip(index, sizes, strict=True)):
            width = add(size)
            lane = None if width is ONE else Symbol(f"lane{k}", Kind.LANE, self.position * 10 + k, bound=width)
            lanes += [lane] if lane else []
            axes.append(Axis(add(i), width, width, self.extent(array, k), ZERO, lane))
        return self._record(array, effect, Space.TILE, axes, lanes, guard, TRUE, checked, site)

    def elements_access(
        self,
        array: str,
        effect: Effect,
        index: Sequence[Expr | int],
        lanes: Sequence[Expr] = (),
        guard: Expr = TRUE,
        mask: Expr = TRUE,
        checked: bool = True,
        site: Site | None = None,
    ) -> Access:
        """`ct.gather` or `ct.scatter`."""
        self._param(array, Ownership.MUT if effect > Effect.READ else Ownership.SHARED, len(index))
        axes = [Axis(add(i), ONE, ONE, self.extent(array, k), ZERO) for k, i in enumerate(index)]
        symbols = [lane.args[0] for lane in lanes]
        return self._record(array, effect, Space.ELEMENT, axes, symbols, guard, mask, checked, site)

    def _record(
        self,
        array: str,
        effect: Effect,
        space: Space,
        axes: Any,
        lanes: Any,
        guard: Expr,
        mask: Expr,
        checked: bool,
        site: Site | None,
    ) -> Access:
        access = Access(
            array, effect, space, tuple(axes), guard, mask, tuple(lanes), site or self.site(), self.position,
            unchecked=FALSE if checked else TRUE,
        )  # fmt: skip
        self.accesses.append(access)
        return access

    def lane(self, size: Expr, name: str = "lane") -> Expr:
        self.position += 1
        return sym(Symbol(name, Kind.LANE, self.position, bound=size))

    def loop(self, name: str = "i") -> Expr:
        self.position += 1
        return sym(Symbol(name, Kind.LOOP, self.position))

    def defined(self, divisor: Expr, guard: Expr = TRUE) -> Obligation:
        return self._oblige("TC301", Holds(le(1, divisor), guard), (self.site(),), 0, "undefined", "")

    def bounds(self, access: Access) -> Obligation:
        """A checked tile is not wholly outside; unchecked elements are inside."""
        parts: list[Expr] = []
        for axis in access.axes:
            if access.checked:
                parts += [le(0, axis.index), lt(mul(axis.index, axis.step), axis.extent)]
            else:
                parts += [le(0, axis.local), lt(axis.local, axis.extent)]
        given = all_of(access.guard, access.mask, TRUE if access.checked else access.lane_facts)
        goal = Holds(all_of(*parts), given, access)
        return self._oblige("TC302", goal, (access.site,), 1, "bounds", access.array)

    def race(
        self, first: Access, second: Access | None = None, between: Between = Between.BLOCKS
    ) -> Obligation:
        other = second or first
        sites = (first.site,) if other is first else (first.site, other.site)
        return self._oblige("TC201", Disjoint(first, other, between), sites, 2, "overlap", first.array)

    def _oblige(self, rule: str, goal: Any, sites: Any, stage: int, kind: str, array: str) -> Obligation:
        obligation = Obligation(rule, goal, sites, "it fails", stage, kind, array=array)
        self.obligations.append(obligation)
        return obligation

    def standard(self) -> Builder:
        """Bounds of the accesses that need them, and races of every pair with a write."""
        for access in self.accesses:
            if access.space is Space.TILE or not access.checked:
                self.bounds(access)
        for i, first in enumerate(self.accesses):
            for second in self.accesses[i:]:
                if first.array == second.array and Effect.WRITE in (first.effect, second.effect):
                    self.race(first, second)
        return self

    def kernel(self, name: str = "k", **changes: Any) -> Kernel:
        return Kernel(
            name,
            "cutile",
            Site(self.file, Span(0, 1)),
            tuple(self.params.values()),
            tuple(sorted(self.axes)),
            tuple(self.accesses),
            (),
            (),
            tuple(self.facts),
            constants=tuple(self.constants.items()),
            powers_of_two=tuple(self.tiles),
            **changes,
        )

    def grouped(
        self, tile: Expr, rows: Expr, columns: Expr, group: Expr, guard: Expr = TRUE
    ) -> tuple[Expr, Expr]:
        """The grouped order of tiles, with the divisions it makes."""
        per_group = mul(group, columns)
        self.defined(per_group, guard)
        first = mul(floordiv(tile, per_group), group)
        height = minimum(sub(rows, first), group)
        inside = mod(tile, per_group)
        self.defined(height, guard)
        return add(first, mod(inside, height)), floordiv(inside, height)


@pytest.fixture
def build() -> Callable[..., Builder]:
    return Builder


@dataclass(frozen=True)
class Found:
    open_: tuple[Obligation, ...]
    derivation: Derivation
    texts: list[str]
    missed: list[str]


def solve(builder: Builder, **changes: Any) -> Found:
    """What the pipeline does: prove what follows from the text, derive conditions for the rest."""
    context, session = Context(builder.kernel(**changes)), Session()
    stages = sorted(builder.obligations, key=lambda o: o.stage)
    open_ = tuple(o for o in stages if not prove(o, context, session).proved)
    derivation = derive(
        open_,
        context,
        lambda o, extra: prove(o, context.under(*extra), session).proved,
        lambda assertions, refutes=None, *, solver=True, quick=False: satisfiable(
            assertions, session=session, refutes=refutes, solver=solver
        ),
    )
    missed = [o.rule for o, used in zip(open_, derivation.used, strict=True) if used is None]
    texts = [re.sub(r"\((cdiv\([^()]*\))\)", r"\1", condition_text(c)) for c in derivation.conditions]
    return Found(open_, derivation, texts, missed)


@pytest.fixture
def solved() -> Callable[..., Found]:
    return solve


HEADER = "import cuda.tile as ct\n\n\n@ct.kernel\n"


@dataclass(frozen=True)
class Read:
    """A kernel read from text, with the obligations that the rules state for it."""

    path: str
    kernel: Kernel
    obligations: tuple[Obligation, ...]

    def all_of(self, rule: str) -> tuple[Obligation, ...]:
        return tuple(o for o in self.obligations if o.rule == rule)


@pytest.fixture
def read(tmp_path) -> Callable[[str], Read]:
    """Read the one kernel of a text."""
    names = [m.name for m in pkgutil.iter_modules(rules_package.__path__) if m.name.startswith("tc")]
    rules = [importlib.import_module(f"tilecheck.rules.{name}") for name in names]

    def of(text: str) -> Read:
        path = tmp_path / "kernel.py"
        path.write_text(HEADER + text, encoding="utf-8")
        (definition,) = find_kernels(Project().add(load(path.as_posix())))
        kernel = lower(definition)
        facts = Facts(kernel, build_graph(kernel))
        stated = [o for r in rules if r.RULE.check for o in r.RULE.check(facts) if isinstance(o, Obligation)]
        return Read(path.as_posix(), kernel, tuple(sorted(stated, key=lambda o: o.stage)))

    return of
