"""Truth by enumeration, written with Python's own evaluator and not with tilecheck's.

Not a test module: `conftest` registers it as `proof_brute`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Kind, Symbol, render, symbols, walk


class Cells(dict[Any, int]):
    """Memory contents, drawn on first use."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng

    def __missing__(self, key: object) -> int:
        self[key] = self.rng.randint(-1, 5)
        return self[key]


def compiled(assertions: Sequence[Expr], rng: random.Random) -> tuple[list[Symbol], Callable[..., bool]]:
    """The symbols of `assertions`, and a function of their values: whether all are true."""
    free = list(symbols(*assertions))
    names = {s: f"x{i}" for i, s in enumerate(free)}
    scope: dict[str, Any] = {"cdiv": lambda a, b: (a + b - 1) // b}
    scope |= {node.args[0]: Cells(rng) for node in walk(*assertions) if node.op == "read"}
    text = " and ".join(f"({render(a, lambda s: names[s])})" for a in assertions) or "True"
    return free, eval(f"lambda {', '.join(names.values())}: {text}", scope)


def solutions(
    assertions: Sequence[Expr], rng: random.Random, values: Sequence[int], limit: int
) -> Iterator[dict[Symbol, int]]:
    """Assignments that make all of `assertions` true: all over `values` if there are at most `limit`, else
    that many random ones. An assignment that divides by zero counts as none."""
    free, test = compiled(assertions, rng)
    trials: Iterator[Sequence[int]]
    if len(values) ** len(free) <= limit:
        trials = itertools.product(values, repeat=len(free))
    else:
        trials = (rng.choices(values, k=len(free)) for _ in range(limit))
    for trial in trials:
        if _holds(test, trial):
            yield dict(zip(free, trial, strict=True))


def _holds(test: Callable[..., bool], trial: Sequence[int]) -> bool:
    try:
        return bool(test(*trial))
    except ZeroDivisionError:
        return False


def random_integer(rng: random.Random, leaves: Sequence[Expr], depth: int) -> Expr:
    """A random integer expression over `leaves`."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(leaves) if rng.random() < 0.8 else ex.const(rng.randint(-2, 4))
    a, b = (random_integer(rng, leaves, depth - 1) for _ in range(2))
    match rng.randrange(12):
        case 0 | 1 | 2:
            return ex.add(a, b)
        case 3:
            return ex.sub(a, b)
        case 4 | 5:
            return ex.mul(a, b)
        case 6:
            return ex.floordiv(a, b)
        case 7:
            return ex.mod(a, b)
        case 8:
            return ex.minimum(a, b)
        case 9:
            return ex.maximum(a, b)
        case 10:
            return ex.ite(random_boolean(rng, leaves, depth - 1), a, b)
        case _:
            kind = rng.choice(("and", "or", "xor", "read"))
            return ex.read("tbl", a) if kind == "read" else ex.bit(kind, a, b)


def random_boolean(rng: random.Random, leaves: Sequence[Expr], depth: int) -> Expr:
    """A random condition over `leaves`."""
    if depth > 0 and rng.random() < 0.3:
        a, b = (random_boolean(rng, leaves, depth - 1) for _ in range(2))
        return rng.choice((ex.all_of(a, b), ex.any_of(a, b), ex.negate(a)))
    a, b = (random_integer(rng, leaves, depth) for _ in range(2))
    return rng.choice((ex.lt, ex.le, ex.eq, ex.ne))(a, b)


def integers(*names: str, kind: Kind = Kind.SCALAR) -> list[Expr]:
    return [ex.sym(Symbol(name, kind)) for name in names]
