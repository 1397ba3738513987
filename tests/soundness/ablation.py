"""The prover without some of its parts, and other solvers in its place.

Whatever is left out, what is proved must be true: parts only decide how much can be proved. The other solvers
get the assertions of `predicate.py` as they stand, with a translation of their own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from soundness_cases import Case, drawn, question
from soundness_decided import BUDGET, LAUNCHES, first_wrong
from soundness_truth import Runner

from tilecheck.ir.expr import Expr, children, symbols, walk
from tilecheck.proof.goals.question import Question
from tilecheck.proof.rungs.ladder import NAMES, prove
from tilecheck.proof.solver import lemmas
from tilecheck.proof.solver.session import Session

FAMILIES = ("signs", "common_factors", "twins", "cofactors", "branches", "directed", "expansions")
_STEPS = 300_000  # of another solver on one question
_WALL = 2_000  # milliseconds, for what its steps do not count


@dataclass(frozen=True)
class Setup:
    """Which rungs and lemma families are left out."""

    name: str
    without: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()

    @contextmanager
    def lemmas(self) -> Iterator[None]:
        right = {name: getattr(lemmas, name) for name in self.families}
        for name in right:
            setattr(lemmas, name, lambda *_, **__: iter(()))
        try:
            yield
        finally:
            for name, function in right.items():
                setattr(lemmas, name, function)


def _only(rung: str) -> frozenset[str]:
    return frozenset(NAMES) - {rung}


SETUPS = (
    Setup("all"),
    *(Setup(f"{rung} alone", _only(rung)) for rung in NAMES),
    *(Setup(f"without {rung}", frozenset({rung})) for rung in NAMES),
    *(Setup(f"smt alone without {name}", _only("smt"), frozenset({name})) for name in FAMILIES),
    *(
        Setup(f"smt alone, of lemmas {name} only", _only("smt"), frozenset(FAMILIES) - {name})
        for name in FAMILIES
    ),
    Setup("smt alone without lemmas", _only("smt"), frozenset(FAMILIES)),
)


def proved(case: Case, setup: Setup) -> bool:
    obligation, context = question(case)
    with closing(Session(budget=BUDGET)) as session, setup.lemmas():
        return prove(obligation, context, session, setup.without).proved


def ablated(
    numbers: Iterable[int], setups: Sequence[Setup] = SETUPS
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Per setup how many cases are proved, and how many more or fewer than with all; and what is refuted."""
    counts: dict[str, Counter[str]] = {setup.name: Counter() for setup in setups}
    refuted = []
    for number in numbers:
        case = drawn(number)
        wrong = first_wrong(case, Runner.of(case), random.Random(number), LAUNCHES)[0]
        whole = proved(case, Setup("all"))
        for setup in setups:
            row, found = counts[setup.name], proved(case, setup)
            row.update({"proved": found, "more": found > whole, "fewer": whole > found})
            if found and wrong is not None:
                refuted.append(f"{number}: {setup.name}: wrong at {wrong}\n{case.text()}")
    return counts, refuted


# ---- other solvers -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opinion:
    """What three provers say of one case: `unsat` is a proof. `wrong` says that a launch goes wrong."""

    number: int
    ours: str
    z3: str
    cvc5: str
    wrong: bool
    exact: bool  # whether the translation for the others says all that the assertions say

    @property
    def clash(self) -> bool:
        """A proof of something false, or two answers that exclude each other."""
        answers = {self.ours, self.z3, self.cvc5}
        return "unsat" in answers and (self.wrong or (self.exact and "sat" in answers))


def opinions(numbers: Iterable[int]) -> Iterator[Opinion]:
    for number in numbers:
        case = drawn(number)
        obligation, context = question(case)
        negated = Question(obligation, context).negated
        text = smt_text(negated)
        wrong = first_wrong(case, Runner.of(case), random.Random(number), LAUNCHES)[0] is not None
        exact = not any(node.op == "bit" for node in walk(*negated))
        ours = "unsat" if proved(case, Setup("all")) else "unknown"
        yield Opinion(number, ours, _z3(text), _cvc5(text), wrong, exact)


def smt_text(assertions: Sequence[Expr]) -> str:
    """The assertions in SMT-LIB. Division by what is not positive may give anything, and so may bits."""
    lines = ["(declare-fun any_div (Int Int) Int)", "(declare-fun any_mod (Int Int) Int)"]
    lines += [f"(declare-fun any_{kind} (Int Int) Int)" for kind in ("and", "or", "xor")]
    names = {s: f"s{k}" for k, s in enumerate(symbols(*assertions))}
    booleans = {node.args[0] for node in walk(*assertions) if node.op == "bsym"}
    lines += [f"(declare-const {name} {'Bool' if s in booleans else 'Int'})" for s, name in names.items()]
    tables = {(n.args[0], len(n.args) - 1): None for n in walk(*assertions) if n.op == "read"}
    table_names = {table: f"t{k}" for k, table in enumerate(tables)}
    lines += [f"(declare-fun {t} ({' '.join(['Int'] * rank)}) Int)" for (_, rank), t in table_names.items()]
    memo: dict[Expr, str] = {}
    for root in assertions:
        stack = [root]
        while stack:
            node = stack[-1]
            todo = [c for c in children(node) if c not in memo]
            if todo:
                stack += todo
                continue
            stack.pop()
            if node in memo:
                continue
            parts = [memo[c] for c in children(node)]
            name = f"e{len(memo)}"
            sort = "Bool" if node.is_bool else "Int"
            if node.op in ("sym", "bsym"):
                text = names[node.args[0]]
            elif node.op == "read":
                text = f"({table_names[node.args[0], len(parts)]} {' '.join(parts)})"
            else:
                text = _applied(node, parts)
            lines.append(f"(define-fun {name} () {sort} {text})")
            memo[node] = name
        lines.append(f"(assert {memo[root]})")
    return "\n".join(lines)


def _applied(node: Expr, parts: Sequence[str]) -> str:
    match node.op:
        case "true" | "false":
            return node.op
        case "const":
            value = node.args[0]
            return str(value) if value >= 0 else f"(- {-value})"
        case "floordiv" | "mod":
            x, d = parts
            name = "div" if node.op == "floordiv" else "mod"  # for d > 0 those of SMT-LIB round down
            return f"(ite (< 0 {d}) ({name} {x} {d}) (any_{name} {x} {d}))"
        case "min" | "max":
            x, y = parts
            return f"(ite ({'<=' if node.op == 'min' else '>='} {x} {y}) {x} {y})"
        case "bit":
            return f"(any_{node.args[0]} {' '.join(parts)})"
        case _:
            names = {"add": "+", "mul": "*", "lt": "<", "le": "<=", "eq": "=", "all": "and", "any": "or"}
            return f"({names.get(node.op, node.op)} {' '.join(parts)})"


def _z3(text: str) -> str:
    import z3

    solver = z3.Solver(ctx=z3.Context())
    solver.set("rlimit", _STEPS)
    solver.set("timeout", _WALL)
    solver.from_string(text)
    return str(solver.check())


def _cvc5(text: str) -> str:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("rlimit-per", str(_STEPS // 3))
    solver.setOption("tlimit-per", str(_WALL))
    solver.setLogic("ALL")
    manager = cvc5.SymbolManager(solver)
    parser = cvc5.InputParser(solver, manager)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, f"{text}\n(check-sat)", "case")
    answer = ""
    while not (command := parser.nextCommand()).isNull():
        answer = command.invoke(solver, manager) or answer
    return answer.strip()
