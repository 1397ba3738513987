"""Host inputs that lead to a launch, made without a solver.

Most questions about a launch are whether some input breaks a condition, and some does. Inputs of one size, with
contiguous tensors and with every value that the host's text defines computed from the others, meet most of what
the text says; a question is answered by one of them, or by one that differs in a value or two. As with every
model, only what evaluates to true counts, so nothing rests on how inputs are chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from random import Random

from tilecheck.ir.expr import ZERO, Expr, Kind, Symbol, conjuncts, substitute, symbols, walk
from tilecheck.ir.host import (
    ARGUMENT,
    DEFINED,
    DEVICE,
    EXTENT,
    NUMEL,
    RANK,
    STRIDE,
    TEST,
    TRUTHS,
    axis_of,
    owner,
)
from tilecheck.proof.solver.known_models import Assignment, Repair, Value
from tilecheck.proof.solver.work import Work

_EVEN = (64, 1, 2, 7, 1000, 70_001)  # sizes of inputs that are all alike
_MOST_ODD = 6  # values of which one is 1 and the others are not
_SQUARE = (8, 40_000)  # sizes of inputs with as many rows as columns
_LARGE = 64
_CHANGES = 12  # that are looked at for one question
_MOST_UNMET = 2  # assertions, where changes are tried
_SMALL = (1, 2, 3, 5, 6, 9)  # sizes of varied inputs
_TRIALS = 240  # varied inputs that are drawn
_LARGEST_LITERAL = 4096  # near which they are drawn
_SIZED = frozenset({EXTENT, NUMEL, ARGUMENT, DEVICE, DEFINED})
_TO_MEET = 60  # changes that may lead to inputs that meet all that the text says: once for a launch


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs for one launch: `premises` are what its text says, `usual` what strides and spans are where its
    tensors are contiguous."""

    premises: Sequence[Expr]
    usual: Mapping[Expr, Expr]
    work: Work
    _odd: dict[Symbol, Assignment] = field(default_factory=dict)

    def find(self, goal: Sequence[Expr]) -> Assignment | None:
        """Inputs, changed a little if need be, that meet all of `goal`."""
        near: list[Assignment] = []
        for start in self._starts(goal):
            unmet = sum(1 for _ in islice((a for a in reversed(goal) if not start.holds(a)), _MOST_UNMET + 1))
            if not unmet:
                return start
            if unmet <= _MOST_UNMET:
                near.append(start)
        loose = self._loose if self.usual else ()
        found = chain(
            self._repaired(goal, self._met, self._defined),
            self._repaired(goal, near, self._defined),
            self._repaired(goal, loose, self._stated),
        )
        return next((one for one in found if one.satisfies(goal)), None)

    def varied(self, goal: Sequence[Expr]) -> Iterator[Assignment]:
        """Inputs that meet `goal`, each of other sizes: small ones, one more or less than the literals of the
        text, and each choice that it lists. What they are is drawn at random, the same at every run."""
        spoken = symbols(*goal)
        lists = dict(_listed(goal))
        free = [s for s in spoken if s in lists or (s.origin in _SIZED and s not in self._defined)]
        literals = {n.value for n in walk(*goal) if n.value is not None and 1 < n.value <= _LARGEST_LITERAL}
        sizes = sorted({*_SMALL, *(size for n in literals for size in (n - 1, n, n + 1))})
        truths = (self._literals, {**self._said, **self._literals})
        seen: set[tuple[Value, ...]] = set()
        for trial in range(_TRIALS):
            draw = Random(trial)  # noqa: S311
            near = _SMALL if trial % 2 else sizes
            values = {s: draw.choice(lists.get(s) or near) for s in free}
            found = self._of({**values, **truths[trial // 2 % 2]}, draw.choice(near))
            key = tuple(found.value(s) for s in spoken)
            if key not in seen and found.satisfies(goal):
                seen.add(key)
                yield found

    def near(self, goal: Sequence[Expr], values: Mapping[Symbol, Value], size: int) -> Assignment | None:
        """Inputs that meet all of `goal`, changed a little from `values`, and from `size` for all others."""
        start = self._of({**values, **self._literals}, size)
        found = start if start.satisfies(goal) else next(self._repaired(goal, [start], self._defined), None)
        return found if found is not None and found.satisfies(goal) else None

    def _repaired(
        self, goal: Sequence[Expr], starts: Sequence[Assignment], defined: Mapping[Symbol, Expr]
    ) -> Iterator[Assignment]:
        repair = Repair(goal, _CHANGES, lambda a: _parts(a, defined))
        found = (repair.from_(start) for start in starts)
        return (one for one in found if one is not None)

    def _starts(self, goal: Sequence[Expr]) -> Iterator[Assignment]:
        yield from self._even
        sizes = [s for s in symbols(*goal) if s.origin in (EXTENT, NUMEL)]
        for symbol in sizes[:_MOST_ODD]:
            if symbol not in self._odd:
                self._odd[symbol] = self._of({**self._literals, symbol: 1}, _LARGE)
            yield self._odd[symbol]
        yield from self._spread(goal)

    def _spread(self, goal: Sequence[Expr]) -> Iterator[Assignment]:
        """Square tensors, of which some that the question is about are not contiguous."""
        strides: dict[str | None, list[Symbol]] = {}
        for s in symbols(*goal):
            if s.origin == STRIDE:
                strides.setdefault(owner(s), []).append(s)
        asked = dict.fromkeys(owner(s) for s in symbols(*goal[-1:]) if s.origin == STRIDE)
        counts = [s for s in symbols(*goal) if s.origin == NUMEL and s not in self._defined]
        for size in _SQUARE:
            layouts = [{}, *(layout for name in asked for layout in _layouts(strides[name], size))]
            layouts += [dict.fromkeys(chain(*strides.values()), 0)] if len(strides) > 1 else []
            for layout in layouts:
                square = {**dict.fromkeys(counts, size * size), **self._literals, **layout}
                yield self._of(square, size)

    @cached_property
    def _met(self) -> tuple[Assignment, ...]:
        """Inputs that meet all that the text says: what is asked beside that is mostly a change or two away."""
        starts = (self._of(values, _LARGE) for values in (self._literals, {**self._said, **self._literals}))
        return self._meeting(starts, self._defined)

    def _meeting(self, starts: Iterable[Assignment], defined: Mapping[Symbol, Expr]) -> tuple[Assignment, ...]:
        repair = Repair(self.premises, _TO_MEET, lambda a: _parts(a, defined))
        return tuple(found for found in map(repair.from_, starts) if found is not None)

    @cached_property
    def _said(self) -> dict[Symbol, Value]:
        """What the text says in some case, as where a tensor is passed: ranks and strides that are compared
        with literals, and that tensors agree in shape."""
        found: dict[Symbol, Value] = {}
        for node in walk(*self.premises):
            if node.op == "eq" and node.args[0].op == "sym" and node.args[1].value is not None:
                if node.args[0].args[0].origin in (RANK, STRIDE):
                    found.setdefault(node.args[0].args[0], node.args[1].value)
            elif node.op == "bsym" and node.args[0].origin in TRUTHS and node.args[0].origin != TEST:
                found[node.args[0]] = True
        return found

    @cached_property
    def _even(self) -> tuple[Assignment, ...]:
        return tuple(self._of(self._literals, size) for size in _EVEN)

    def _of(self, values: Mapping[Symbol, Value], size: int) -> Assignment:
        return Assignment(values, size=size, work=self.work, defined=self._defined)

    @cached_property
    def _loose(self) -> tuple[Assignment, ...]:
        """Tensors of which the text says all: they need not be contiguous."""
        truths = {n.args[0]: False for n in walk(*self.premises) if n.op == "bsym"}
        plain, told = (
            Assignment({**values, **self._literals}, size=_LARGE, work=self.work, defined=self._stated)
            for values in (truths, self._said)
        )
        return (plain, *self._meeting([told], self._stated))

    @cached_property
    def _literals(self) -> dict[Symbol, Value]:
        """Truths: those that the text decides, and else that no argument is None or of a special type."""
        found: dict[Symbol, Value] = {s: False for s in symbols(*self.premises) if s.origin == TEST}
        for premise in self.premises:
            inner = premise.args[0] if premise.op == "not" else premise
            if inner.op == "bsym":
                found[inner.args[0]] = premise is inner
        return found

    @cached_property
    def _stated(self) -> dict[Symbol, Expr]:
        """What values are equal to by the text."""
        return _definitions(p.args for p in self.premises if p.op == "eq")

    @cached_property
    def _defined(self) -> dict[Symbol, Expr]:
        """What values are equal to, by the text or where tensors are contiguous."""
        said = (p.args for p in self.premises if p.op == "eq")
        return _definitions((*said, *self.usual.items()))


def _listed(goal: Sequence[Expr]) -> Iterator[tuple[Symbol, list[Value]]]:
    """The values that facts list for a number: `n == 16 or n == 32`."""
    for fact in goal:
        found: dict[Symbol, list[Value]] = {}
        for part in (p for way in (fact.args if fact.op == "any" else ()) for p in conjuncts(way)):
            if part.op == "eq" and part.args[0].op == "sym" and part.args[1].value is not None:
                found.setdefault(part.args[0].args[0], []).append(part.args[1].value)
        yield from found.items()


def _layouts(strides: Sequence[Symbol], size: int) -> tuple[dict[Symbol, int], ...]:
    """Strides of a tensor with `size` elements along every axis: with all of them in one place; and with steps
    along its first axis alone that are so long that it spans as many elements as it has."""
    step = sum(size**k for k in range(max(map(axis_of, strides)) + 1))
    return dict.fromkeys(strides, 0), {s: step if axis_of(s) == 0 else 0 for s in strides}


def _definitions(equal: Iterable[tuple[Expr, Expr]]) -> dict[Symbol, Expr]:
    """One side of each pair as the meaning of the other, a value of the host: nothing is its own part."""
    found: dict[Symbol, Expr] = {}
    for one, two in equal:
        for name, other in ((one, two), (two, one)):
            if name.op == "sym" and name.args[0].kind is Kind.HOST and name.args[0] not in found:
                symbol: Symbol = name.args[0]
                # `1 if n < 2 else 2 if n < 3 else itself`: the last case defines nothing.
                meant = substitute(other, {name: ZERO}) if symbol.origin == DEFINED else other
                if symbol not in _parts(meant, found):
                    found[symbol] = meant
                    break
    return found


def _parts(meant: Expr, defined: Mapping[Symbol, Expr]) -> tuple[Symbol, ...]:
    """The symbols in an expression and in what these are defined as."""
    found: dict[Symbol, None] = {}
    todo = list(symbols(meant))
    while todo:
        symbol = todo.pop()
        if symbol not in found:
            found[symbol] = None
            todo += symbols(defined[symbol]) if symbol in defined else ()
    return tuple(found)
