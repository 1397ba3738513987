"""The solver against enumeration: "unsat" is never contradicted, and every model is genuine."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import replace

from proof_brute import integers, random_boolean, random_integer, solutions
from proof_patterns import CATALOGUE

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.proof.goals.instances import in_instance
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable


def decide(assertions: list[Expr], rng: random.Random, values: range, limit: int, session: Session) -> str:
    """The solver's answer, compared with enumeration."""
    answer = satisfiable(assertions, session=session, budget=300_000)
    if answer.status == "sat":
        assert answer.model is not None
        assert all(answer.model.evaluate(a) is True for a in assertions)
    elif answer.status == "unsat":
        found = next(solutions(assertions, rng, values, limit), None)
        assert found is None, (assertions, found)
    return answer.status


def test_random_conditions() -> None:
    rng = random.Random(1)
    session = Session()
    leaves = integers("x", "y", "z", "n")
    seen: Counter[str] = Counter()
    for _ in range(90):
        assertions = [random_boolean(rng, leaves, 2) for _ in range(rng.randint(2, 4))]
        assertions += [ex.lt(0, x) for x in leaves if rng.random() < 0.4]
        seen[decide(assertions, rng, range(-3, 5), 4096, session)] += 1
    assert min(seen["unsat"], seen["sat"]) > 10, seen


def test_random_index_expressions() -> None:
    """Two blocks with lanes, random index tuples and guards."""
    rng = random.Random(2)
    session = Session()
    b = ex.sym(Symbol("b", Kind.BLOCK))
    lane = ex.sym(Symbol("l", Kind.LANE))
    size, count = integers("T", "n")
    seen: Counter[str] = Counter()
    for _ in range(150):
        inside = [ex.le(0, b), ex.le(0, lane), ex.lt(lane, size)]
        inside += [random_boolean(rng, [b, lane, size, count], 1) for _ in range(rng.randint(0, 1))]
        index = [random_integer(rng, [b, lane, size, count], 2) for _ in range(rng.randint(1, 2))]
        index.append(rng.choice((ex.add(ex.mul(b, size), lane), ex.floordiv(b, count), ex.mod(b, count))))
        assertions = [ex.le(1, size), ex.le(1, count)]
        for k in (1, 2):
            assertions += [in_instance(e, k) for e in inside]
        assertions += [ex.eq(in_instance(e, 1), in_instance(e, 2)) for e in index]
        assertions.append(ex.ne(in_instance(b, 1), in_instance(b, 2)))
        seen[decide(assertions, rng, range(4), 4096, session)] += 1
    assert min(seen["unsat"], seen["sat"]) > 30, seen


class Mutation(ast.NodeTransformer):
    """Changes one place of a pattern: a literal, an operator, or a name."""

    def __init__(self, rng: random.Random, target: int) -> None:
        self.rng, self.target, self.place = rng, target, -1

    def _is_here(self) -> bool:
        self.place += 1
        return self.place == self.target

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if self._is_here():
            return ast.Constant(max(0, node.value + self.rng.choice((-1, 1))))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if self._is_here():
            operators = (ast.Add(), ast.Sub(), ast.Mult(), ast.FloorDiv(), ast.Mod())
            return ast.BinOp(node.left, self.rng.choice(operators), node.right)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if self._is_here():
            flipped = ast.LtE() if isinstance(node.ops[0], ast.Lt) else ast.Lt()
            return ast.Compare(node.left, [flipped, *node.ops[1:]], node.comparators)
        return node


def mutate(text: str, rng: random.Random) -> str:
    tree = ast.parse(text)
    places = Mutation(rng, -2)
    places.visit(ast.parse(text))
    changed = Mutation(rng, rng.randint(0, max(0, places.place))).visit(tree)
    body = changed.body[0].value if isinstance(changed.body[0], ast.Expr) else None
    return ", ".join(map(ast.unparse, body.elts)) if isinstance(body, ast.Tuple) else ast.unparse(changed)


def test_mutated_patterns() -> None:
    rng = random.Random(3)
    session = Session()
    seen: Counter[str] = Counter()
    safe = [p for p in CATALOGUE if p.expect == "unsat" and not p.increasing and not p.distinct]
    for pattern in safe:
        for field in rng.sample(("index", "inside", "lets"), 2):
            text = getattr(pattern, field)
            if not text.strip():
                continue
            changed = replace(pattern, **{field: mutate(text, rng)})
            seen[decide(changed.assertions(), rng, range(4), 2500, session)] += 1
    assert min(seen["unsat"], seen["sat"]) > 15, seen
