"""A kernel and its obligations with the values of one launch written into them.

A launch fixes what a kernel leaves open: strides become products of the host's sizes, compile-time constants
become literals. Every value of the kernel that the host's text gives is replaced in every expression, and what
the text establishes before the launch becomes a fact of the kernel. What is proved of the result holds for
every run of the host function that reaches the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilecheck.ir.expr import Expr, Kind, Symbol, bool_sym, eq, substitute, substitution, sym, symbols
from tilecheck.ir.kernel import Access, Kernel, RunningSum
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Disjoint, Goal, Holds, Obligation, Ordered

_Bounded = (Kind.LANE, Kind.LOOP, Kind.OPAQUE)


@dataclass(frozen=True, eq=False)
class LaunchedKernel:
    """`kernel` where its values are `known`, in terms of the host's, and `premises` hold.

    A block index keeps the grid extent of the kernel as its bound, and a fact says what that extent is: the
    rungs make block indices of their own.
    """

    kernel: Kernel
    known: Mapping[Expr, Expr]
    premises: Sequence[Expr]
    _symbols: dict[Symbol, Symbol] = field(default_factory=dict)
    _memo: dict[Expr, Expr] = field(default_factory=dict)

    def context(self, *conditions: Expr) -> Context:
        """The context of proofs about this launch, under conditions over the host's values."""
        return Context(self._mapped_kernel, conditions)

    def obligation(self, obligation: Obligation) -> Obligation:
        """An obligation of the kernel, as it is at this launch."""
        return replace(obligation, goal=self._goal(obligation.goal), assume=self.of(obligation.assume))

    def of(self, e: Expr) -> Expr:
        """An expression of the kernel in the host's values."""
        found = self._memo.get(e)
        if found is None:
            own: dict[Expr, Expr] = {}
            for symbol in symbols(e):
                changed = self._symbol(symbol)
                if changed is not symbol:
                    own[sym(symbol)] = sym(changed)
                    own[bool_sym(symbol)] = bool_sym(changed)
            found = substitute(e, {**self.known, **own}) if own else self._written(e)
            self._memo[e] = found
        return found

    @cached_property
    def _written(self) -> Callable[[Expr], Expr]:
        return substitution(self.known)

    def _symbol(self, symbol: Symbol) -> Symbol:
        """A lane with its bound in the host's values."""
        if symbol.bound is None or symbol.kind not in _Bounded:
            return symbol
        if symbol not in self._symbols:
            bound = self.of(symbol.bound)
            self._symbols[symbol] = symbol if bound is symbol.bound else replace(symbol, bound=bound)
        return self._symbols[symbol]

    def _goal(self, goal: Goal) -> Goal:
        match goal:
            case Holds(wanted, given, access):
                return Holds(self.of(wanted), self.of(given), None if access is None else self._access(access))
            case Disjoint(first, second, _):
                return replace(goal, first=self._access(first), second=self._access(second))
            case Ordered(first, second, _):
                return replace(goal, first=self._access(first), second=self._access(second))

    def _access(self, access: Access) -> Access:
        return access.mapped(self.of, self._symbol)

    @cached_property
    def _mapped_kernel(self) -> Kernel:
        kernel, of = self.kernel, self.of
        grid = [eq(value, host) for value, host in self.known.items() if _is_grid(value)]
        return replace(
            kernel,
            accesses=tuple(map(self._access, kernel.accesses)),
            waits=tuple(map(self._access, kernel.waits)),
            checks=tuple(replace(c, goal=of(c.goal), guard=of(c.guard)) for c in kernel.checks),
            facts=(*map(of, kernel.facts), *self.premises, *grid),
            requires=(),  # judged at the launch, never a premise there
            contracts=tuple(replace(c, bounds=tuple(map(of, c.bounds))) for c in kernel.contracts),
            powers_of_two=tuple(map(of, kernel.powers_of_two)),
            barriers=tuple(replace(b, guard=of(b.guard)) for b in kernel.barriers),
            launch_waits=tuple(replace(w, guard=of(w.guard)) for w in kernel.launch_waits),
            exchanges=tuple(
                replace(e, guard=of(e.guard), shape=tuple(map(of, e.shape))) for e in kernel.exchanges
            ),
            sums=tuple(_sum(s, of, self._symbol) for s in kernel.sums),
        )


def _sum(s: RunningSum, of: Callable[[Expr], Expr], symbol_of: Callable[[Symbol], Symbol]) -> RunningSum:
    moved = tuple(tuple((symbol_of(a), symbol_of(b)) for a, b in change) for change in s.moved)
    return replace(s, value=of(s.value), term=of(s.term), lane=symbol_of(s.lane), moved=moved)


def _is_grid(value: Expr) -> bool:
    return value.op == "sym" and value.args[0].kind is Kind.GRID
