"""The prover's answer to a case, held against what small launches of it do."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from soundness_alter import OPERATORS
from soundness_cases import LAUNCH, Case, drawn, launch_text, question, whole_kernel
from soundness_truth import Launch, Runner, Table, launches

from tilecheck.ir.expr import all_of, le, lt, sym, walk
from tilecheck.ir.kernel import Space, extent_symbol
from tilecheck.proof.decide import decide as decide_kernel
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Obligation
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import DEFAULT_BUDGET, Session
from tilecheck.proof.solver.solver import Model, satisfiable

BUDGET = 150_000  # of one proof, a small part of what a kernel gets: the random cases are many
LAUNCHES = 40  # tried on each case
_LARGEST = 60  # extent, tile or grid of a launch that is still run


@dataclass(frozen=True)
class Decided:
    """`proved`; `violated` by a model that a run confirmed; `model` for one that no run could confirm; `open`.

    `wrong` is the launch that does what the goal rules out, None when none was found among `ran`. Of a
    `proved` case it is a refutation.
    """

    verdict: str
    rung: str
    wrong: Launch | None
    ran: int

    @property
    def refuted(self) -> bool:
        return self.verdict in ("proved", "conditional") and self.wrong is not None


def decide(case: Case, seed: int, *, search: bool = False, count: int = LAUNCHES) -> Decided:
    """Prove the case if the ladder can; with `search`, look for a model of it otherwise. Run it in any case."""
    obligation, context = question(case)
    runner = Runner.of(case)
    with closing(Session(budget=DEFAULT_BUDGET if search else BUDGET)) as session:
        outcome = prove(obligation, context, session)
        verdict = "proved" if outcome.proved else "open"
        if search and not outcome.proved:
            verdict = _searched(case, runner, obligation, context, session)
    wrong, ran = first_wrong(case, runner, random.Random(seed), count)
    return Decided(verdict, outcome.rung, wrong, ran)


def whole(case: Case, seed: int, count: int = LAUNCHES) -> Decided:
    """Decide a kernel of the accesses of a case with everything that must hold for it to be safe, launch
    conditions included, and run launches that meet them: blocks apart, tiles inside, no division by zero.

    Conditions that keep blocks apart take long to look for: only where the seed is a multiple of 5.
    """
    if seed % 5 and decide(replace(case, goal="blocks"), seed, count=0).verdict != "proved":
        return Decided("open", "none", None, 0)
    obligations, kernel = whole_kernel(case)
    decision = decide_kernel(kernel, obligations, "case.py", without=frozenset(), budget=BUDGET)
    statuses = {settled.status for settled in decision.settled}
    if decision.vacuous or not statuses <= {"proved", "conditional"}:
        return Decided("open", "none", None, 0)
    verdict = "conditional" if "conditional" in statuses else "proved"
    case = replace(case, facts=(*case.facts, *map(launch_text, decision.conditions)))
    goals = ("blocks",) if case.first.space is Space.RAW else ("blocks", "bounds")
    ran = 0
    for goal in goals:
        # The bounds of both accesses: each is the first once.
        for first, second in {(case.first, case.second), (case.second, case.first)}:
            own = replace(case, goal=goal, first=first, second=second)
            runner = Runner.of(own, strict=True)
            for launch in launches(own, runner, random.Random(seed), count):
                ran += 1
                if _goes_wrong(runner, launch):
                    return Decided(verdict, goal, launch, ran)
    return Decided(verdict, "launch", None, ran)


def _goes_wrong(runner: Runner, launch: Launch) -> bool:
    try:
        return runner.refuted(launch) is not None
    except ZeroDivisionError:
        return True


def mutants(numbers: Iterable[int], per_operator: int = 1) -> Iterator[tuple[int, str, Case, Decided]]:
    """Proved cases with one change each: `per_operator` mutants of each kind of every proved case."""
    for number in numbers:
        case = drawn(number)
        if decide(case, number, count=0).verdict != "proved":
            continue
        for operator in OPERATORS:
            seen = {case}
            for attempt in range(per_operator):
                changed = operator(case, random.Random(f"{number} {attempt}"))
                if changed not in seen:
                    seen.add(changed)
                    yield number, operator.__name__, changed, decide(changed, number, search=True)


def first_wrong(case: Case, runner: Runner, rng: random.Random, count: int) -> tuple[Launch | None, int]:
    """The first of up to `count` launches that does what the goal rules out, and how many ran."""
    ran = 0
    for launch in launches(case, runner, rng, count):
        ran += 1
        if runner.refuted(launch) is not None:
            return launch, ran
    return None, ran


# ---- models --------------------------------------------------------------------------------------------------


def _searched(case: Case, runner: Runner, obligation: Obligation, context: Context, session: Session) -> str:
    negated = Question(obligation, context).negated
    length = sym(extent_symbol("t", 0))
    reads = [node.args[1] for node in walk(*negated) if node.op == "read"]
    inside = [all_of(le(0, index), lt(index, length)) for index in reads]  # a run reads nothing else
    answer = satisfiable((*negated, *inside), session=session, smallest=True)
    if answer.model is None:
        return "open"
    launch = _launch(case, answer.model)
    return "violated" if launch is not None and runner.refuted(launch) is not None else "model"


def _launch(case: Case, model: Model) -> Launch | None:
    """The launch of a model; None when it is too large to run."""
    launch: dict[str, Any] = dict.fromkeys(LAUNCH, 1)  # what the question does not mention may be anything
    names = {"grid[0]": "G0", "grid[1]": "G1", "out.shape[0]": "E0", "out.shape[1]": "E1", "t.shape[0]": "L"}
    for symbol, value in model.symbols.items():
        name = names.get(symbol.name, symbol.name)
        if name in launch:
            launch[name] = int(value)
    if max(launch.values()) > _LARGEST:
        return None
    launch["t"] = _table(case.contract, launch["L"], model.reads)
    return launch


def _table(contract: str, length: int, reads: Mapping[tuple[str, tuple[int, ...]], int]) -> Table:
    """The cells that the model fixes, between them values that keep the contract."""
    known = {cell[0]: value for (_, cell), value in reads.items()}
    free = (v for v in range(1000, 2000) if v not in known.values())
    values, last = Table(), min(known.values(), default=0)
    for index in range(length):
        last = known.get(index, last)
        values.append(
            known.get(index, next(free) if contract == "distinct" else 0 if contract == "within" else last)
        )
    return values
