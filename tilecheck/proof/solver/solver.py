"""Decides conjunctions of assertions over the mathematical integers with floor division.

"unsat" is a proof: the query is a linear abstraction of the assertions with valid lemmas only. "sat" comes
with a model on which the assertions themselves evaluate to true. Anything else is "unknown". The tiers, each
tried when those before found neither a proof nor a genuine model:

    quick  the assertions as they stand, a few thousand steps (models only, and only where one is wanted)
    A      linear abstraction with lemmas about the products that occur
    A+     also products that comparisons suggest, and the branches of minima
    exact  the products are real products: z3's non-linear arithmetic, on a short leash
    ground the abstraction of the assertions with launch values fixed (models only)
    B      as A+, with definitions multiplied out
    last   as A+, with real products
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import field, replace
from typing import Literal

from tilecheck.cancellation import checkpoint
from tilecheck.dataclass import dataclass
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
    negate,
    substitute,
    sym,
    symbols,
)
from tilecheck.proof.algebra import mixed_radix
from tilecheck.proof.algebra.linear import Linear, numeral, postorder
from tilecheck.proof.rungs.entail import DEPTH, entailed, follows
from tilecheck.proof.solver import lemmas
from tilecheck.proof.solver.interrupts import deferred_interrupts
from tilecheck.proof.solver.known_models import Assignment
from tilecheck.proof.solver.session import DEFAULT_BUDGET, Query, Session, Status

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
    "budget" (a limit was reached before one did). `tier` names the tier that found the answer.
    `queries` are those that the solver refuted for it, where the session keeps them: the last is the proof, one
    before it allows to write it that way."""

    status: Literal["unsat", "sat", "unknown"]
    model: Model | None = None
    reason: str = ""
    tier: str = ""
    queries: tuple[str, ...] = ()


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
    budget: int | None = None,
    prove_only: bool = False,
    smallest: bool = False,
    bounds: Sequence[int] = LADDER,
    sums: bool = True,
    refutes: Callable[[], bool] | None = None,
    finds: Callable[[], Assignment | None] | None = None,
    solver: bool = True,
) -> Answer:
    """Whether some assignment makes all of `assertions` true. See `Options` for the switches; the budget is
    that of the session unless one is given. Without `sums`, what rung "entail" proves is not tried again.
    `refutes` may show the assertions unsatisfiable in another way: it is asked where no known model fits.
    `finds` may know values that make them all true: it is asked before the solver.
    Without `solver`, what is not decided then stays unknown."""
    if session is None:
        with closing(Session()) as own:
            return satisfiable(
                assertions, session=own, budget=budget, prove_only=prove_only, smallest=smallest, bounds=bounds
            )
    checkpoint()
    options = Options(session.budget if budget is None else budget, prove_only, smallest, tuple(bounds))
    flat = tuple(dict.fromkeys(c for a in assertions for c in conjuncts(a)))
    if FALSE in flat or (flat and negate(flat[-1]) in flat):  # the goal is a premise
        return Answer("unsat")
    known = session.answers.get((flat, options))
    if known is None and prove_only:  # a search for a model has tried whatever proves
        known = session.answers.get((flat, replace(options, prove_only=False)))
    if known is None and session.work.is_spent:
        return Answer("unknown", reason="budget")
    if known is None and not smallest:
        known = _decided_cheaply(flat, session, sums=sums, wanted=not prove_only, refutes=refutes)
    found = finds() if known is None and finds is not None else None
    if found is not None:
        model = _model_of(found, flat)
        session.models.learn(model.symbols, model.reads)
        return Answer("sat", model, tier="inputs")
    if known is None and not solver:
        return Answer("unknown", reason="budget")
    if known is None:
        with deferred_interrupts():
            known = session.answers[flat, options] = _Search(flat, session, options).answer()
        if known.model is not None:
            session.models.learn(known.model.symbols, known.model.reads)
    if not isinstance(known, Answer):
        raise TypeError("the session remembers something that is not an answer")
    return known


def _decided_cheaply(
    assertions: tuple[Expr, ...],
    session: Session,
    *,
    sums: bool,
    wanted: bool,
    refutes: Callable[[], bool] | None,
) -> Answer | None:
    """An earlier model, changed a little if need be, on which all of these assertions evaluate to true; or
    the last one, mostly a negated goal, contradicts the others by adding some of them up (rung "entail")."""
    models = session.models
    found = models.find(assertions)
    if found is None and wanted:
        found = models.repaired(assertions, wanted=False)
    *premises, last = assertions or (TRUE,)
    stated = session.premises.of(premises) if found is None and sums else None
    if stated is not None and follows(negate(last), stated, DEPTH):
        return Answer("unsat", tier="sums")
    if found is None and refutes is not None and refutes():
        return Answer("unsat", tier="rungs")
    if found is None:
        found = models.repaired(assertions, wanted=wanted)
    if found is None:
        proved = stated is not None and entailed(negate(last), stated)
        return Answer("unsat", tier="sums") if proved else None
    return Answer("sat", _model_of(found, assertions), tier="recall")


def _model_of(found: Assignment, assertions: Sequence[Expr]) -> Model:
    return Model({s: found.value(s) for s in symbols(*assertions)}, found.cells)


@dataclass(frozen=True, slots=True)
class Tier:
    """Which lemmas a query gets, whether its products are real products, whether bounded models are tried
    when its first model is not genuine, and the share of the budget that one check may use."""

    name: str
    lemmas: bool = True
    products: bool = False
    definitions: bool = False
    exact: bool = False
    bounded: bool = False
    share: int = 1


_QUICK = Tier("quick", lemmas=False, exact=True, share=60)
_A = Tier("A")
_A_PLUS = Tier("A+", products=True, bounded=True)
_EXACT = Tier("exact", lemmas=False, exact=True, bounded=True, share=10)
_GROUND = Tier("ground", share=10)
_B = Tier("B", products=True, definitions=True, bounded=True)
_LAST = Tier("last", products=True, exact=True, share=3)


@dataclass
class _Search:
    """One query on its way through the tiers. Mutable: it notes what it spent, and whether a limit ended a
    check before it had an answer."""

    assertions: tuple[Expr, ...]
    session: Session
    options: Options
    left: int = field(init=False)
    exhausted: bool = False
    refuted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = self.options.budget

    def answer(self) -> Answer:
        early = self.options.smallest or self.session.guesses_pay
        answer = self._guessed() if early else None
        if answer is not None:
            return answer
        normal = self._normalised()
        answer = self._abstract(normal, _A)
        if not early:
            answer = answer or self._guessed()
        answer = answer or self._grounded()
        answer = answer or self._abstract(normal, _A_PLUS)
        answer = answer or self._abstract(self.assertions, _EXACT)
        answer = answer or self._abstract(normal, _B) or self._abstract(normal, _LAST)
        return answer or Answer("unknown", reason="budget" if self.exhausted else "nonlinear")

    def _guessed(self) -> Answer | None:
        """A model of the assertions as they stand, when one is easy to find. Not a proof when there is none:
        proofs are left to linear arithmetic, which is simpler and which z3 decides."""
        if self.options.prove_only:
            return None
        answer = self._abstract(self.assertions, _QUICK)
        found = answer is not None and answer.status == "sat"
        self.session.guesses += 1
        self.session.guessed += found
        return answer if found else None

    def _check(self, query: Query, tier: Tier, also: str = "") -> Status:
        """One check, if there is budget left for it."""
        if self.left <= 0:
            self.exhausted = True
            return "unknown"
        before = self.session.spent
        status = query.check(min(self.left, self.options.budget // tier.share), also)
        self.left -= self.session.spent - before
        return status

    def _normalised(self) -> tuple[Expr, ...]:
        """The assertions in digit form, if the divisors that this relies on are positive under them."""
        chained = mixed_radix.normalise(self.assertions)
        if chained is None:
            return self.assertions
        premises = self.session.premises.of(self.assertions)
        unsure = [d for d in chained.positive if not premises.is_positive(d)]
        not_positive = any_of(*(le(d, 0) for d in unsure))
        if not_positive is FALSE:
            return chained.assertions
        linear = _encoded((*self.assertions, not_positive), _A)
        if self._check(self.session.query(linear.text()), _A) == "unsat":
            self._keep(linear)
            return chained.assertions
        return self.assertions

    def _abstract(self, assertions: tuple[Expr, ...], tier: Tier) -> Answer | None:
        """A proof, a genuine model, or None."""
        if self.left <= 0:  # nothing could be checked, and writing the question takes as long as a short check
            self.exhausted = True
            return None
        linear = _encoded(assertions, tier)
        query = self.session.query(linear.text(exact=tier.exact))
        status = self._check(query, tier)
        if status == "unsat":
            self._keep(linear, exact=tier.exact)
            return Answer("unsat", tier=tier.name, queries=tuple(self.refuted))
        self.exhausted |= status == "unknown" and not tier.exact
        for model in self._models(query, linear, status, tier):
            if self._is_genuine(model):
                return Answer("sat", model, tier=tier.name)
        return None

    def _keep(self, linear: Linear, *, exact: bool = False) -> None:
        if self.session.keep:
            self.refuted.append(linear.described(exact=exact))

    def _models(self, query: Query, linear: Linear, status: Status, tier: Tier) -> Iterator[Model]:
        """The solver's model of `query`, which has just been checked with `status`, and models with bounded
        values: before it if the smallest is wanted, after it if the tier says so."""
        first = _model(query, linear) if status == "sat" else None
        if first is not None and not self.options.smallest:
            yield first
        if self.options.smallest or (tier.bounded and not self.options.prove_only):
            for limit in self.options.bounds:
                if self._check(query, tier, _bounded(linear, limit)) == "sat":
                    yield _model(query, linear)
        if first is not None and self.options.smallest:
            yield first

    def _grounded(self) -> Answer | None:
        """A model found by fixing launch values so that most products become linear. Finding none says
        nothing."""
        if self.options.prove_only:
            return None
        for fixed in _groundings(self.assertions):
            literals = {sym(s): const(v) for s, v in fixed.items()}
            ground = tuple(substitute(a, literals) for a in self.assertions)
            if FALSE in ground:
                continue
            linear = _encoded(ground, _GROUND)
            query = self.session.query(linear.text())
            for model in self._models(query, linear, self._check(query, _GROUND), _GROUND):
                whole = Model({**model.symbols, **fixed}, model.reads)
                if self._is_genuine(whole):
                    return Answer("sat", whole, tier=_GROUND.name)
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
    if tier.lemmas:
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
            chosen.update(dict.fromkeys(symbols(node.args[1])))
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
