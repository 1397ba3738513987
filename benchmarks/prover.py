"""Decides every index pattern of the catalogue, beside plain Z3 and cvc5 on the same questions unreduced.

    nice python benchmarks/prover.py [--runs N] [--limit MS] [--without-others]

The patterns are those of `tests/unit/proof/patterns.py`: two blocks that may meet, or a bound in one block. A
safe pattern goes to the ladder and must be proved; for a broken one a model must be found. Times are
milliseconds of processor time, from expressions to the answer, in a solver context of its own that was used
once: what other processes do moves them little. The other solvers get each question once, as it stands, in
non-linear integer arithmetic, and stop at the limit. Then whole models are verified from their source: a
batched GEMM in grouped order by a persistent loop, attention, layer norm backward. The exit code is 1 when a
bar is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.expr import TRUE, Expr, Symbol, children, symbols, walk
from tilecheck.options import Options
from tilecheck.proof.algebra.linear import numeral, postorder
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable
from tilecheck.verify.stages import verify_kernel

ROOT = Path(__file__).resolve().parents[1]
MEDIAN_BAR, WORST_BAR = 5.0, 50.0  # milliseconds
MODELS, MODEL_BAR = ROOT / "fixtures/cutile/models/guarded.py", 200.0
_MODEL = "model"


@dataclass(frozen=True)
class Result:
    """One answer: what was decided, by which rung, and in how many milliseconds."""

    status: str
    rung: str
    ms: float


def _patterns() -> Any:
    """The catalogue, a module of the tests."""
    spec = importlib.util.spec_from_file_location("proof_patterns", ROOT / "tests/unit/proof/patterns.py")
    if spec is None or spec.loader is None:
        raise SystemExit("tests/unit/proof is missing")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return [*module.CATALOGUE, *module.SINGLE]


# ---- tilecheck ------------------------------------------------------------------------------------------


def decided(pattern: Any, runs: int) -> Result:
    """The answer of tilecheck, with the median time of `runs` runs."""
    results = [_decided_once(pattern) for _ in range(runs)]
    return Result(results[0].status, results[0].rung, statistics.median(r.ms for r in results))


def _decided_once(pattern: Any) -> Result:
    question, assertions = pattern.question(), pattern.assertions()
    with closing(Session()) as session:
        session.query("(assert true)").check(1000)  # the first query of a context pays for its setup
        start = time.process_time()
        if pattern.expect == "unsat" and question is not None:
            outcome = prove(*question, session)
            ms = (time.process_time() - start) * 1000
            status, rung = "unsat" if outcome.proved else "open", outcome.rung
            if rung == "smt":
                rung += f" {list(session.answers.values())[-1].tier}"
        else:
            answer = satisfiable(assertions, session=session, prove_only=pattern.expect == "unsat")
            ms = (time.process_time() - start) * 1000
            status, rung = answer.status, _MODEL
            if status == "unsat":
                rung = "entail" if answer.tier == "sums" else f"smt {answer.tier}"
    return Result(status, rung, ms)


# ---- the others -----------------------------------------------------------------------------------------


def plain_z3(text: str, limit: int) -> str:
    """The answer of Z3's general solver."""
    import z3

    solver = z3.Solver(ctx=z3.Context())
    solver.set("timeout", limit)
    solver.from_string(text)
    return str(solver.check())


def plain_cvc5(text: str, limit: int) -> str:
    """The answer of cvc5."""
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(limit))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, f"(set-logic ALL)\n{text}", "pattern")
    while not (command := parser.nextCommand()).isNull():
        command.invoke(solver, parser.getSymbolManager())
    answer = solver.checkSat()
    return "unsat" if answer.isUnsat() else "sat" if answer.isSat() else "unknown"


def timed(solve: Callable[[str, int], str], assertions: Sequence[Expr], limit: int) -> Result:
    start = time.process_time()
    status = solve(smt_text(assertions), limit)
    return Result(status, "", (time.process_time() - start) * 1000)


def smt_text(assertions: Sequence[Expr]) -> str:
    """The assertions as they stand, with real products, divisions and remainders.

    SMT-LIB's division is floor division for positive divisors; a pattern has no others where it matters.
    """
    names: dict[Symbol, str] = {}
    for symbol in symbols(*assertions):
        names[symbol] = f"x{len(names)}"
    tables = {(n.args[0], len(children(n))) for n in walk(*assertions) if n.op == "read"}
    text: dict[Expr, str] = {}
    for node in postorder(assertions):
        text[node] = _smt(node, [text[c] for c in children(node)], names)
    lines = [f"(declare-const {name} Int)" for name in names.values()]
    lines += [f"(declare-fun {name} ({' '.join(['Int'] * rank)}) Int)" for name, rank in sorted(tables)]
    return "\n".join([*lines, *(f"(assert {text[a]})" for a in assertions if a is not TRUE)])


_OPERATORS = {"add": "+", "mul": "*", "floordiv": "div", "mod": "mod", "ite": "ite", "lt": "<", "le": "<="}
_OPERATORS |= {"eq": "=", "not": "not", "all": "and", "any": "or"}


def _smt(node: Expr, args: list[str], names: dict[Symbol, str]) -> str:
    match node.op:
        case "const":
            return numeral(node.args[0])
        case "sym":
            return names[node.args[0]]
        case "true" | "false":
            return node.op
        case "min" | "max":
            relation = "<=" if node.op == "min" else ">="
            return f"(ite ({relation} {args[0]} {args[1]}) {args[0]} {args[1]})"
        case "read":
            return f"({node.args[0]} {' '.join(args)})"
        case _:
            return f"({_OPERATORS[node.op]} {' '.join(args)})"


# ---- the table ------------------------------------------------------------------------------------------


def _others(enabled: bool) -> dict[str, Callable[[str, int], str] | None]:
    if not enabled:
        return {}
    found = importlib.util.find_spec("cvc5") is not None
    return {"z3": plain_z3, "cvc5": plain_cvc5 if found else None}


def _cell(result: Result | None, expect: str) -> str:
    if result is None:
        return "absent"
    return f"{result.ms:.1f}" if result.status == expect else f"{result.status} ({result.ms:.0f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=7, help="runs of each pattern (default: 7)")
    parser.add_argument("--limit", type=int, default=1000, help="ms for the other solvers (default: 1000)")
    parser.add_argument("--without-others", action="store_true", help="measure tilecheck alone")
    options = parser.parse_args()
    others = _others(not options.without_others)
    patterns = _patterns()
    _decided_once(patterns[0])  # imports
    print(f"| pattern | result | rung | ms | {''.join(f'{name} ms | ' for name in others)}".rstrip())
    print(f"|---|---|---|{'---:|' * (1 + len(others))}")
    times, right, rivals = [], 0, Counter[str]()
    for pattern in patterns:
        result = decided(pattern, options.runs)
        rows = {
            name: None if solve is None else timed(solve, pattern.assertions(), options.limit)
            for name, solve in others.items()
        }
        times.append(result.ms)
        right += result.status == pattern.expect
        rivals.update(name for name, row in rows.items() if row and row.status == pattern.expect)
        wrong = "" if result.status == pattern.expect else f" (expected {pattern.expect})"
        cells = [pattern.name, result.status + wrong, result.rung, f"{result.ms:.1f}"]
        cells += [_cell(row, pattern.expect) for row in rows.values()]
        print(f"| {' | '.join(cells)} |", flush=True)
    median, worst = statistics.median(times), max(times)
    beside = "".join(f", {name} {rivals[name]}" for name, solve in others.items() if solve)
    print(f"\n{right} of {len(patterns)} decided right{beside}; median {median:.1f} ms, worst {worst:.1f} ms")
    from_source = _models(options.runs)
    met = median <= MEDIAN_BAR and worst <= WORST_BAR and from_source
    return 0 if right == len(patterns) and met else 1


def _models(runs: int) -> bool:
    """Verify the models from source, and say whether each is proved within the bar."""
    table = Project().add(load(str(MODELS)))
    print("\n| model from source | verdict | obligations | ms |\n|---|---|---:|---:|")
    met = True
    for definition in find_kernels(table):
        verify_kernel(definition, (), Options())  # imports
        times = []
        for _ in range(runs):
            start = time.process_time()
            report, _ = verify_kernel(definition, (), Options())
            times.append((time.process_time() - start) * 1000)
        ms, verdict = statistics.median(times), report.verdict.value
        met &= verdict == "proved" and ms <= MODEL_BAR
        print(f"| {definition.name} | {verdict} | {len(report.obligations)} | {ms:.1f} |", flush=True)
    return met


if __name__ == "__main__":
    sys.exit(main())
