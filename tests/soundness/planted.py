"""Bugs that are planted in the prover, in memory, to see whether the random cases find them.

A planted bug is a text that is replaced in the source of one function. Each makes something provable that is
false: a guard that is dropped, a bound that is off by one, a branch that is forgotten.

A bug in a lemma makes the solver say "unsat" of a question that has a model. Where a model is found without the
solver, it is not asked. That would hide most bugs, so that no model is looked for without the solver here.
"""

from __future__ import annotations
import __future__

import importlib
import inspect
import random
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from unittest.mock import patch

from soundness_cases import Case, drawn
from soundness_decided import LAUNCHES, decide, first_wrong, whole
from soundness_edges import EDGES, WHOLE_EDGES, near_misses
from soundness_held import Held, attacked, hold
from soundness_sources import Source
from soundness_truth import Runner

from tilecheck.proof.solver import solver

MANY = 200  # launches of an edge case


@dataclass(frozen=True)
class Bug:
    """`old` becomes `new` in the function `place`, `module:name`; `level` says what finds it."""

    what: str
    place: str
    old: str
    new: str
    level: str = "ir"

    @contextmanager
    def planted(self) -> Iterator[None]:
        module_name, _, path = self.place.partition(":")
        owner: Any = importlib.import_module(f"tilecheck.{module_name}")
        *outer, name = path.split(".")
        module = owner
        for part in outer:
            owner = getattr(owner, part)
        right = owner[name] if isinstance(owner, dict) else getattr(owner, name)
        put = owner.__setitem__ if isinstance(owner, dict) else partial(setattr, owner)
        put(name, self._changed(right, getattr(right, "__globals__", vars(module))))
        try:
            with patch.object(solver, "_decided_cheaply", lambda *_, **__: None):
                yield
        finally:
            put(name, right)

    def _changed(self, function: Callable[..., Any], names: dict[str, Any]) -> Any:
        text = textwrap.dedent(inspect.getsource(function))
        if self.old not in text:
            raise LookupError(f"{self.place} no longer says {self.old!r}")
        text = text.replace(self.old, self.new)
        flag = __future__.annotations.compiler_flag
        scope: dict[str, Any] = {}
        exec(compile(text, f"<{self.what}>", "exec", flags=flag, dont_inherit=True), names, scope)
        return scope[function.__name__]


def edge_that_finds(bug: Bug) -> str | None:
    """The first case of `soundness_edges` of which the prover says with the bug in it what is not true."""
    with bug.planted():
        if bug.level == "ir":
            return next((name for name, case in EDGES.items() if _is_proved(case)), None)
        if bug.level == "whole":
            return next((name for name, case in WHOLE_EDGES.items() if whole(case, 0, MANY).refuted), None)
        return next((name for name in SOURCE_EDGES if held_edge(name).problem is not None), None)


SOURCE_EDGES = {
    "one iteration too many": """
    for i in range(ct.bid(0), ct.cdiv(out.shape[0], T) + 1, ct.num_blocks(0)):
        ct.store(out, index=(i,), tile=ct.zeros((T,), dtype=ct.float32))
""",
    "a divisor in a branch": """
    b = ct.bid(0)
    if b < ct.cdiv(out.shape[0], T):
        ct.store(out, index=(b,), tile=ct.full((T,), 8 // n, dtype=ct.float32))
""",
    "a race in an else": """
    b = ct.bid(0)
    if b < ct.cdiv(out.shape[0], T):
        if b == 0:
            ct.store(out, index=(b,), tile=ct.zeros((T,), dtype=ct.float32))
        else:
            ct.store(out, index=(b // 2,), tile=ct.zeros((T,), dtype=ct.float32))
""",
    "a counter": """
    i = ct.bid(0)
    for k in range(2):
        if i < ct.cdiv(out.shape[0], T):
            ct.store(out, index=(i,), tile=ct.zeros((T,), dtype=ct.float32))
        i = i + 1
""",
    "a number that a loop sets": """
    i = ct.bid(0)
    for k in range(2):
        if i < ct.cdiv(out.shape[0], T):
            ct.store(out, index=(i,), tile=ct.zeros((T,), dtype=ct.float32))
        i = ct.bid(0) // 2
""",
}


def held_edge(name: str) -> Held:
    """What became of a kernel of `SOURCE_EDGES`."""
    text = (
        f"import cuda.tile as ct\n\n\n@ct.kernel\ndef kernel(out, n, T: ct.Constant[int]):{SOURCE_EDGES[name]}"
    )
    scalars = (("n", False), ("T", True))
    grid = ("cdiv(out.shape[0], T)",)
    return hold(Source(text, (("out", 1),), scalars, ("T",), (), (), grid, name), text, name, MANY)


def first_found(bug: Bug, seed: int, count: int) -> int | None:
    """The first of `count` random cases from `seed` that refutes a verdict given with the bug."""
    with bug.planted():
        return next((n for n in range(seed, seed + count) if is_refuted(bug.level, n)), None)


def is_refuted(level: str, number: int) -> bool:
    """Whether launches refute what the prover says of a case as it is now."""
    match level:
        case "ir":
            return any(map(_is_proved, _wrong_cases(number)))
        case "whole":
            return whole(drawn(number), number).refuted
        case _:
            held = attacked(number)
            return held is not None and held.result.problem is not None


def _is_proved(case: Case) -> bool:
    return decide(case, 0, count=0).verdict == "proved"


@cache
def _wrong_cases(number: int) -> tuple[Case, ...]:
    """A random case if it goes wrong in a small launch, else those that one change makes go wrong."""
    cases = (drawn(number),)
    if not _goes_wrong(cases[0], number):
        cases = tuple(case for _, _, case in near_misses(range(number, number + 1)))
    return tuple(case for case in cases if _goes_wrong(case, number))


def _goes_wrong(case: Case, seed: int) -> bool:
    return first_wrong(case, Runner.of(case), random.Random(seed), LAUNCHES)[0] is not None


_QUOTIENT = "(<= 0 v{r}) (< v{r} {divisor})"
_TRUNCATED = (
    "(ite (<= 0 {dividend}) (and (<= 0 v{r}) (< v{r} {divisor})) (and (< (- {divisor}) v{r}) (<= v{r} 0)))"
)

BUGS = (
    Bug(
        "L1 without signs: no product is negative",
        "proof.solver.lemmas:signs",
        "(=> (and (<= 0 {d}) (<= 0 {x})) (<= 0 {t}))",
        "(<= 0 {t})",
    ),
    Bug("L1 off by one: d*x < -d", "proof.solver.lemmas:signs", "(- 1))) (<= {t}", "(- 1))) (< {t}"),
    Bug("L2 without d >= 0", "proof.solver.lemmas:_order_text", "(=> (<= 0 {d}) (and", "(=> true (and"),
    Bug(
        "L2 off by one: d*x + d < d*y",
        "proof.solver.lemmas:_order_text",
        "(<= (+ ",
        "(< (+ ",
    ),
    Bug(
        "L3m of either branch", "proof.solver.lemmas:branches", "(=> (= v{v} {linear.term(branch)})", "(=> true"
    ),
    Bug("L4 without d >= 0", "proof.solver.lemmas:_multiplied", "(=> (<= 0 {name}) (and", "(=> true (and"),
    Bug("L5 without d = e", "proof.solver.lemmas:twins", 'f"(=> {same} {_orders', 'f"(=> true {_orders'),
    Bug(
        "a remainder is less than d - 1",
        "proof.algebra.linear:Linear._divide",
        "(< v{r} {divisor})",
        "(< v{r} (- {divisor} 1))",
    ),
    Bug(
        "divisors are taken to be positive", "proof.algebra.linear:Linear._divide", 'f"(< 0 {divisor})"', "None"
    ),
    Bug("division truncates", "proof.algebra.linear:Linear._divide", _QUOTIENT, _TRUNCATED),
    Bug(
        "a maximum is a minimum",
        "proof.algebra.linear:Linear._extremum",
        '"<=" if op == "min" else ">="',
        '"<="',
    ),
    Bug(
        "all cells of a table are equal",
        "proof.algebra.linear:Linear._read",
        "(=> {_conjunction(same)} (=",
        "(=> true (=",
    ),
    Bug(
        "`a & b <= a` for negative a", "proof.algebra.linear:_bit_facts", "(=> (<= 0 {x}) (and", "(=> true (and"
    ),
    Bug(
        "xor determines nothing right",
        "proof.algebra.linear:Linear._bitwise",
        "(=> (and {left} (= v{v} v{w})) {right})",
        "(=> (= v{v} v{w}) {right})",
    ),
    Bug(
        "a minimum exceeds its branches",
        "proof.premises.premises:Premises._own",
        "Interval(min(v.low for v in values), min(v.high for v in values))",
        "Interval(max(v.low for v in values), max(v.high for v in values))",
    ),
    Bug(
        "an interval ends one early",
        "proof.premises.premises:Premises._limit",
        "-(rest // c)",
        "1 - (rest // c)",
    ),
    Bug(
        "one branch is enough",
        "proof.premises.linear_combinations:_Descent._by_branches",
        "(any if helps else all)(",
        "any(",
    ),
    Bug(
        "an inequality times any factor",
        "proof.premises.premises:Premises.candidates",
        "(rest and self.term(rest).low < 0)",
        "False",
    ),
    Bug(
        "a remainder interval is one too short", "proof.algebra.interval:remainder", "d.high - 1", "d.high - 2"
    ),
    Bug("blocks differ along all axes", "proof.goals.predicate:_different_blocks", "any_of(", "all_of("),
    Bug(
        "lanes differ along all axes",
        "proof.goals.predicate:_lanes_meet",
        "different = any_of(",
        "different = all_of(",
    ),
    Bug(
        "the last block and lane are forgotten",
        "proof.goals.predicate:_range",
        "lt(sym(symbol), symbol.bound)",
        "lt(add(sym(symbol), 1), symbol.bound)",
    ),
    Bug(
        "whole tiles of different views",
        "proof.goals.predicate:_is_whole_tile",
        "(one.step, one.size, one.base, one.extent) != (two.step, two.size, two.base, two.extent)",
        "(one.step, one.size) != (two.step, two.size)",
    ),
    Bug(
        "an iteration sees what another does",
        "proof.goals.predicate:differs_between_iterations",
        "inside = symbol.kind in (Kind.LOOP, Kind.OPAQUE)",
        "inside = symbol.kind is Kind.OPAQUE",
    ),
    Bug(
        "distinct: also from itself",
        "proof.goals.contracts:INSTANCES.distinct",
        "any_of(ne(a, b), same, *skipped)",
        "ne(a, b)",
    ),
    Bug("increasing: strictly", "proof.goals.contracts:INSTANCES.increasing", "le(a, b)", "lt(a, b)"),
    Bug("tiles of any step are a tiling", "proof.rungs.provenance:_is_one_tiling", "a.step is a.size", "True"),
    Bug(
        "a factor that may be 0 is dropped",
        "proof.rungs.provenance:Agreed._descaled",
        ".low >= 1",
        ".low >= 0",
    ),
    Bug("a quotient gives its dividend", "proof.rungs.provenance:Agreed._join_divisions", "== 2", ">= 1"),
    Bug(
        "a quotient by anything",
        "proof.rungs.provenance:Agreed._has_quotient",
        "and key(self._without_ones(atom.args[1])) == key(self._without_ones(times(a, d)))",
        "",
    ),
    Bug(
        "guards fix one value, whichever",
        "proof.rungs.provenance:meeting_of",
        "if (e, to) in fixed[1]",
        "if e in dict(fixed[1])",
    ),
    Bug(
        "a quotient of anything is at least 1",
        "proof.premises.premises:Premises._define_division",
        "self._follows(combine(x, d, -1))",
        "self._follows(x)",
    ),
    Bug(
        "a digit beside anything",
        "proof.rungs.provenance:Agreed._split_digit",
        "    return\n        digits",
        "    continue\n        digits",
    ),
    Bug(
        "a digit of any sign",
        "proof.rungs.digits:_Equal._is_digit",
        "self._holds(le(ZERO, value), known) and ",
        "",
    ),
    Bug(
        "a digit up to its base", "proof.rungs.digits:_Equal._is_digit", "lt(value, limit)", "le(value, limit)"
    ),
    Bug(
        "a digit of the first access",
        "proof.rungs.digits:_Equal.split",
        "self._is_digit(other, f, self.goal.second)",
        "self._is_digit(other, f, self.goal.first)",
    ),
    Bug(
        "one digit is moved, the other is not",
        "proof.rungs.digits:_Equal._ways",
        "combine(other_low, more)",
        "other_low",
    ),
    Bug(
        "what is added to a digit stays where it was",
        "proof.rungs.digits:_Equal._apart",
        "combine(high, shared, -1)",
        "high",
    ),
    Bug(
        "a quotient by any number gives its dividend",
        "proof.rungs.provenance:Agreed._join_divisions",
        "self.premises.interval(d).high <= 1",
        "self.premises.interval(d).high >= 1",
    ),
    Bug(
        "a number is a divisor more than its multiple",
        "proof.premises.premises:Premises._compare_dividends",
        "self._add(combine(x, d, -least))",
        "self._add(combine(x, d, -least - 1))",
    ),
    Bug(
        "a value below anything",
        "proof.rungs.digits:_Equal.is_impossible",
        "follows(lt(value, end), self._known_of(its), _DEPTH) and ",
        "",
    ),
    Bug(
        "multiples that differ are never equal",
        "proof.rungs.digits:_are_apart",
        "(p.get(UNIT, 0) - q.get(UNIT, 0)) % divisor != 0",
        "p.get(UNIT, 0) != q.get(UNIT, 0)",
    ),
    Bug("shared if one symbol is", "proof.rungs.provenance:Agreed.is_shared", "all(s in", "any(s in"),
    Bug(
        "digits for any divisors",
        "proof.solver.solver:_Search._normalised",
        '_A) == "unsat"',
        '_A) != "unknown"',
    ),
    Bug("any segments are whole", "proof.premises.nested_quotients:_share", "is_whole and ", ""),
    Bug(
        "one part behind the last segment",
        "proof.premises.linear_combinations:below_quotients",
        "constant(1)",
        "constant(2)",
    ),
    Bug(
        "a tile that begins is whole",
        "proof.premises.tile_counts:_index",
        "combine(combine(y, f, -1), p, -1)",
        "combine(y, p, -1)",
    ),
    Bug(
        "whatever is left is not negative",
        "proof.premises.tile_counts:_index",
        "premises.term(m, c).low < 0",
        "False",
    ),
    Bug("the first of those that are left", "proof.premises.premises:resolved", "len(left) == 1", "left"),
    Bug(
        "one part of what does not hold together",
        "proof.premises.disjunctions:_is_refuted",
        "some.issubset(parts)",
        "not some.isdisjoint(parts)",
    ),
    Bug("any remainder is 0", "proof.premises.premises:as_multiples", " or ZERO not in fact.args", ""),
    Bug("a cover of any range", "proof.rungs.covers:_is_inside", "all_of(ranges, ", "all_of("),
    Bug(
        "divisors prove themselves",
        "proof.decide:_with_divisors",
        "    if obligation.stage == 0:\n        return obligation\n    divisors = {",
        "    divisors = {check.goal.args[1] for check in kernel.checks} | {",
        "whole",
    ),
    Bug(
        "conditions that are not implied are dropped",
        "proof.conditions.abduction:_Search._implied",
        '.status == "unsat"',
        '.status != "none"',
        "whole",
    ),
    Bug(
        "an `else` runs where its `if` does",
        "frontend.execute.statements:branch",
        "E.all_of(before, E.negate(cond))",
        "E.all_of(before, cond)",
        "source",
    ),
    Bug(
        "the last iteration is forgotten",
        "frontend.execute.statements:range_loop",
        "else E.lt(value, stop)",
        "else E.lt(E.add(value, step), stop)",
        "source",
    ),
    Bug(
        "no check under a condition",
        "frontend.execute.state:Executor.check",
        "if not self.dry and",
        "if not self.dry and self.guard is E.TRUE and",
        "source",
    ),
    Bug(
        "a loop changes nothing",
        "frontend.execute.statements:_advance",
        "elem = arithmetic.wrapped(E.add(entry.elem, E.mul(k, step)), bits)",
        "elem = entry.elem",
        "source",
    ),
    Bug(
        "whatever a loop sets is what it was",
        "frontend.execute.statements:_is_kept",
        "return e is before.elem or e is entry.elem",
        "return True",
        "source",
    ),
)
