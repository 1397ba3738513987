"""Decides conjunctions of assertions over the mathematical integers with floor division.

"unsat" is a proof: the query is a linear abstraction of the assertions with valid lemmas only. "sat" comes
with a model on which the assertions themselves evaluate to true. Anything else is "unknown". The tiers, each
tried when the one before found neither a proof nor a genuine model:

    A      linear abstraction with lemmas about the products that occur
    A+     also products that comparisons suggest, and the branches of minima
    ground the abstraction of the assertions with launch values fixed (models only)
    B      definitions multiplied out
    exact  the products are real products, z3's non-linear arithmetic under a resource limit
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    Expr,
    Symbol,
    any_of,
    children,
    conjuncts,
    const,
    evaluate,
    le,
    substitute,
    sym,
    symbols,
)
from tilecheck.proof import chain, lemmas
from tilecheck.proof.linear import Linear, numeral, postorder
from tilecheck.proof.premises import Premises
from tilecheck.proof.session import Query, Session, Status

DEFAULT_BUDGET = 3_000_000
LADDER = (3, 8, 40, 300, 5000)  # how large the values of a model may be, tried in turn


@dataclass(frozen=True, slots=True)
class Model:
    """Values of the symbols, and of the memory cells that the assertions read."""

    symbols: dict[Symbol, int | bool]
    reads: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)

    def evaluate(self, e: Expr) -> int | bool:
        """The value of `e`; a symbol or cell that the assertions never mention is 0.

        Raises:
            ZeroDivisionError: `e` divides by zero here.
        """
        return evaluate(
            e,
            lambda s: self.symbols.get(s, 0),
            lambda array, indices: self.reads.get((array, indices), 0),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """`reason` is "" unless the status is "unknown": then "nonlinear" (no tier decides the arithmetic) or
    "budget" (a limit was reached before one did)."""

    status: Literal["unsat", "sat", "unknown"]
    model: Model | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """`prove_only`: do not search for a model beyond the solver's own. `smallest`: try small values first.
    `bounds`: the limits on absolute values to try."""

    budget: int = DEFAULT_BUDGET
    prove_only: bool = False
    smallest: bool = False
    bounds: tuple[int, ...] = LADDER


def satisfiable(
    assertions: Sequence[Expr],
    *,
    session: Session | None = None,
    budget: int = DEFAULT_BUDGET,
    prove_only: bool = False,
    smallest: bool = False,
    bounds: Sequence[int] = LADDER,
) -> Answer:
    """Whether some assignment makes all of `assertions` true. See `Options` for the switches."""
    session = Session() if session is None else session
    options = Options(budget, prove_only, smallest, tuple(bounds))
    flat = tuple(dict.fromkeys(c for a in assertions for c in conjuncts(a)))
    known = session.answers.get((flat, options))
    if known is None:
        known = session.answers[flat, options] = _Search(flat, session, options).answer()
    if not isinstance(known, Answer):
        raise TypeError("the session remembers something that is not an answer")
    return known


@dataclass(frozen=True, slots=True)
class Tier:
    """Which lemmas a query gets, whether its products are real products, and whether bounded models are
    tried when its first model is not genuine."""

    products: bool = False
    definitions: bool = False
    exact: bool = False
    bounded: bool = False


@dataclass
class _Search:
    """One query on its way through the tiers. Mutable: it notes whether a limit was reached."""

    assertions: tuple[Expr, ...]
    session: Session
    options: Options
    exhausted: bool = False

    def answer(self) -> Answer:
        if FALSE in self.assertions:
            return Answer("unsat")
        normal = self._normalised()
        answer = self._abstract(normal, Tier())
        answer = answer or self._abstract(normal, Tier(products=True, bounded=True))
        answer = answer or self._grounded()
        answer = answer or self._abstract(normal, Tier(products=True, definitions=True))
        answer = answer or self._abstract(normal, Tier(products=True, exact=True, bounded=True))
        return answer or Answer("unknown", reason="budget" if self.exhausted else "nonlinear")

    def _normalised(self) -> tuple[Expr, ...]:
        """The assertions in digit form, if the divisors that this relies on are positive under them."""
        chained = chain.normalise(self.assertions)
        if chained is None:
            return self.assertions
        premises = Premises.of(self.assertions)
        unsure = [d for d in chained.positive if not premises.is_positive(d)]
        not_positive = any_of(*(le(d, 0) for d in unsure))
        if not_positive is FALSE:
            return chained.assertions
        linear = _encoded((*self.assertions, not_positive), Tier())
        if self.session.query(linear.text(), self.options.budget).check() == "unsat":
            return chained.assertions
        return self.assertions

    def _abstract(self, assertions: tuple[Expr, ...], tier: Tier) -> Answer | None:
        """A proof, a genuine model, or None."""
        linear = _encoded(assertions, tier)
        query = self.session.query(linear.text(exact=tier.exact), self.options.budget)
        status = query.check()
        if status == "unsat":
            return Answer("unsat")
        self.exhausted |= status == "unknown"
        for model in self._models(query, linear, status, tier):
            if self._is_genuine(model):
                return Answer("sat", model)
        return None

    def _models(self, query: Query, linear: Linear, status: Status, tier: Tier) -> Iterator[Model]:
        """The solver's model of `query`, which has just been checked with `status`, and models with bounded
        values: before it if the smallest is wanted, after it if the tier says so."""
        first = _model(query, linear) if status == "sat" else None
        if first is not None and not self.options.smallest:
            yield first
        if self.options.smallest or (tier.bounded and not self.options.prove_only):
            for limit in self.options.bounds:
                if query.check(_bounded(linear, limit)) == "sat":
                    yield _model(query, linear)
        if first is not None and self.options.smallest:
            yield first

    def _grounded(self) -> Answer | None:
        """A model found by fixing launch values so that most products become linear. Finding none says
        nothing."""
        if self.options.prove_only:
            return None
        tier = Tier()
        for fixed in _groundings(self.assertions):
            literals = {sym(s): const(v) for s, v in fixed.items()}
            ground = tuple(substitute(a, literals) for a in self.assertions)
            if FALSE in ground:
                continue
            linear = _encoded(ground, tier)
            query = self.session.query(linear.text(), self.options.budget // 4)
            for model in self._models(query, linear, query.check(), tier):
                whole = Model({**model.symbols, **fixed}, model.reads)
                if self._is_genuine(whole):
                    return Answer("sat", whole)
        return None

    def _is_genuine(self, model: Model) -> bool:
        """Whether the assertions themselves hold: division by zero anywhere in them means no."""
        try:
            return all(model.evaluate(a) for a in self.assertions)
        except ZeroDivisionError:
            return False


def _encoded(assertions: Sequence[Expr], tier: Tier) -> Linear:
    linear = Linear()
    linear.assert_all([a for a in assertions if a is not TRUE])
    lemmas.instantiate(linear, products=tier.products, definitions=tier.definitions)
    return linear


def _bounded(linear: Linear, limit: int) -> str:
    names = [name for name in linear.symbols.values() if name.startswith("v")]
    names += dict.fromkeys(f"v{index}" for index in linear.reads.values())
    return "\n".join(f"(assert (<= {numeral(-limit)} {name} {limit}))" for name in names) or "(assert true)"


def _model(query: Query, linear: Linear) -> Model:
    """The values of the symbols, then of the cells read, innermost reads first."""
    values = dict(query.values())
    found: dict[Symbol, int | bool] = {}
    for symbol, name in linear.symbols.items():
        found[symbol] = values.get(name, 0 if name.startswith("v") else False)
    model = Model(found)
    for read, index in linear.reads.items():
        try:
            cell = tuple(int(model.evaluate(i)) for i in children(read))
        except ZeroDivisionError:
            continue
        model.reads.setdefault((read.args[0], cell), int(values.get(f"v{index}", 0)))
    return model


def _groundings(assertions: Sequence[Expr]) -> Iterator[dict[Symbol, int]]:
    """Small values for launch values whose fixing makes products and divisions linear."""
    chosen = _nonlinear_symbols(assertions)
    if not chosen:
        return
    for value in (1, 2, 3, 4, 8):
        yield dict.fromkeys(chosen, value)
    for start in range(3):
        yield {s: 1 + (start + i) % 3 for i, s in enumerate(chosen)}


def _nonlinear_symbols(assertions: Sequence[Expr]) -> list[Symbol]:
    """The launch values in divisors, in products with what varies, and in all but one factor of the rest."""
    chosen: dict[Symbol, None] = {}
    uniform: list[list[tuple[Symbol, ...]]] = []
    for node in postorder(assertions):
        if node.op in ("floordiv", "mod"):
            chosen.update(dict.fromkeys(s for s in symbols(node.args[1]) if not s.varies))
        elif node.op == "mul":
            factors = [found for found in map(symbols, node.args) if found]
            fixed = [f for f in factors if not any(s.varies for s in f)]
            if len(fixed) == len(factors):
                uniform.append(fixed)
            else:
                chosen.update(dict.fromkeys(s for f in fixed for s in f))
    for factors in uniform:
        open_factors = [f for f in factors if any(s not in chosen for s in f)]
        chosen.update(dict.fromkeys(s for f in open_factors[1:] for s in f))
    return list(chosen)
