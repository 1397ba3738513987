"""Looks for verdicts that launches refute: random mutants of the fixtures and the library, judged one by one.

    nice python benchmarks/soundness.py [--seed N] [--count N] [PATTERN ...]
    nice python benchmarks/soundness.py --level ir --count 100000
    nice python benchmarks/soundness.py --level whole --count 1000
    nice python benchmarks/soundness.py --level operators --count 2500
    nice python benchmarks/soundness.py --level source --count 5000
    nice python benchmarks/soundness.py --level triton --count 5000
    nice python benchmarks/soundness.py --level interpreter --count 400

A `proved` or `conditional` mutant is launched with random small values that meet its conditions; a race or
anything undefined in the log refutes the verdict. The witness of a `violated` mutant is run again. Every
refutation is printed with the mutant and the launch; the exit code is 1 if there was one.

`--level ir` draws index expressions, loops, masks, views and tables instead, asks the prover alone, and runs
each as Python in small launches. `--level whole` adds the bounds, the divisors and the launch conditions that
make such a kernel safe, and runs launches that meet them. `--level operators` changes those that are proved in
one place and counts, for each kind of change, how many of the mutants that go wrong are found to.

`--level source` writes kernels that are safe in all launches, counts how many are proved, changes every second
one as above, and runs their text as plain Python; `--level triton` does so with Triton kernels. `--level
interpreter` runs these in Triton's own interpreter too, each launch in two orders of the programs, and compares
what both touch and compute (needs the extra `oracle`). `--level planted` plants bugs in the prover and counts
the cases until one finds it. `--level ablation` leaves out rungs and lemmas, and asks z3 and cvc5 alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ["fixtures/cutile", "kernels"]


def _load() -> None:
    """Loading the conftest of the soundness tests registers their helpers."""
    spec = importlib.util.spec_from_file_location("soundness_conftest", ROOT / "tests/soundness/conftest.py")
    if spec is None or spec.loader is None:
        raise SystemExit("tests/soundness is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _helper(name: str) -> Any:
    return sys.modules[f"soundness_{name}"]


# ---- the prover alone ------------------------------------------------------------------------------------


def _cases(seed: int, count: int) -> int:
    """Random cases; prints what was decided by which rung, and returns how many proofs are refuted."""
    cases, decided = _helper("cases"), _helper("decided")
    verdicts: Counter[str] = Counter()
    wrong, refuted, launches, start = 0, 0, 0, time.perf_counter()
    for number in range(seed, seed + count):
        case = cases.drawn(number)
        result = decided.decide(case, number)
        verdicts[f"{case.goal} {'proved by ' if result.verdict == 'proved' else ''}{result.rung}"] += 1
        wrong += result.wrong is not None
        launches += result.ran
        if result.refuted:
            refuted += 1
            print(f"--- {number}: proved by {result.rung}, wrong at {result.wrong}\n{case.text()}", flush=True)
        if (number + 1 - seed) % 5000 == 0:
            print(f"... {number + 1 - seed} cases, {refuted} refuted", file=sys.stderr, flush=True)
    for word, n in sorted(verdicts.items()):
        print(f"{n:8} {word.replace(' none', ' open')}")
    took = time.perf_counter() - start
    print(
        f"{count} cases from seed {seed}, {wrong} go wrong in a small launch; {launches} launches, {took:.0f} s"
    )
    print(f"{refuted} refuted")
    return refuted


def _whole(seed: int, count: int) -> int:
    """Kernels of one or two random accesses, with launch conditions; returns how many are refuted."""
    cases, decided = _helper("cases"), _helper("decided")
    verdicts: Counter[str] = Counter()
    refuted, launches, start = 0, 0, time.perf_counter()
    for number in range(seed, seed + count):
        case = cases.drawn(number)
        result = decided.whole(case, number)
        verdicts[result.verdict] += 1
        launches += result.ran
        if result.refuted:
            refuted += 1
            print(
                f"--- {number}: {result.verdict}, wrong in {result.rung} at {result.wrong}\n{case.text()}",
                flush=True,
            )
    counts = ", ".join(f"{n} {word}" for word, n in sorted(verdicts.items()))
    took = time.perf_counter() - start
    print(f"{count} kernels from seed {seed}: {counts}; {launches} launches, {took:.0f} s\n{refuted} refuted")
    return refuted


def _operators(seed: int, count: int) -> int:
    """Mutants of proved cases; prints a row for each kind of change, and returns how many are refuted."""
    seen: dict[str, Counter[str]] = {}
    refuted, start = 0, time.perf_counter()
    for number, name, case, result in _helper("decided").mutants(range(seed, seed + count), 2):
        row = seen.setdefault(name, Counter())
        row["wrong" if result.wrong is not None else "right"] += 1
        if result.wrong is not None:
            row[f"wrong {result.verdict}"] += 1
        elif result.verdict == "proved":
            row["right proved"] += 1
        if result.refuted:
            refuted += 1
            print(f"--- {number}: {name}: proved by {result.rung}, wrong at {result.wrong}\n{case.text()}")
    print("| operator | mutants | go wrong | of these violated | not decided | proved | of the others proved |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    total: Counter[str] = Counter()
    for name, row in seen.items():
        total.update(row)
        print(_row(name.replace("_", " "), row))
    print(_row("all", total))
    print(f"\ncases {seed} to {seed + count - 1}, {time.perf_counter() - start:.0f} s\n{refuted} refuted")
    return refuted


def _triton(seed: int, count: int) -> int:
    return _source(seed, count, _helper("triton_sources").triton_source)


def _interpreter(seed: int, count: int) -> int:
    """As `_triton`, in Triton's own interpreter as well."""
    real = _helper("triton_real")
    if (missing := real.missing()) is not None:
        raise SystemExit(missing)
    with closing(real.Interpreter()) as process:
        refuted = _source(seed, count, _helper("triton_sources").triton_source, process.oracle)
        print(f"Triton {process.versions['triton']}, torch {process.versions['torch']}")
        for what, n in sorted({**process.counts, **process.refusals}.items()):
            print(f"{n:8} {what}")
    return refuted


def _source(
    seed: int,
    count: int,
    draw: Callable[[int], Any] | None = None,
    oracle: Callable[[str], Any] | None = None,
) -> int:
    """Random kernels from their text, every second one with small changes; returns how many are refuted."""
    held, unlike = _helper("held"), _helper("triton_real").Unlike
    draw = draw or _helper("sources").source
    drawn: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    refuted, launches, start = 0, 0, time.process_time()
    for number in range(seed, seed + count):
        try:
            kernel = held.attacked(number, held.LAUNCHES, draw, oracle)
        except unlike as difference:
            refuted += 1
            print(f"--- {number}: {difference}", flush=True)
            continue
        if kernel is None:
            continue
        source, what, result = kernel.source, kernel.what, kernel.result
        launches += result.launches
        problem = result.problem
        if not what:
            drawn[result.verdict] += 1
            if not (result.safe and result.usual):
                said = (
                    f"{result.reason}, of {source.way}"
                    if not result.safe
                    else f"more than usual, of {source.way}"
                )
                missed[f"{result.verdict}, {said}"] += 1
                print(
                    f"... {number}: {source.way}: {result.verdict} {result.reason} {result.conditions}",
                    flush=True,
                )
            if result.wrong is not None:
                problem = problem or f"meant to be safe, but {result.wrong}"
        else:
            changed[result.verdict] += 1
            if result.wrong is not None:
                wrong[result.verdict] += 1
        if problem is not None:
            refuted += 1
            print(f"--- {number}: {source.way}: {what}\n{problem}\n{kernel.text}", flush=True)
    total = drawn.total()
    share = f" ({100 - 100 * missed.total() / total:.1f} % not)" if total else ""
    print(f"safe kernels: {total}, {_counted(drawn)}; {missed.total()} missed{share}")
    for word, n in missed.most_common():
        print(f"{n:8} {word}")
    print(
        f"changed ones: {changed.total()}, {_counted(changed)}; a host's launch goes wrong: {_counted(wrong)}"
    )
    print(
        f"kernels {seed} to {seed + count - 1}; {launches} launches, {time.process_time() - start:.0f} s of CPU"
    )
    print(f"{refuted} refuted")
    return refuted


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {word}" for word, n in sorted(counts.items())) or "none"


def _planted(seed: int, count: int, patterns: list[str]) -> int:
    """Bugs in the prover, and the first case that finds each; returns how many are not found."""
    planted = _helper("planted")
    lost, start = 0, time.process_time()
    print("| bug | level | an edge case that finds it | random cases until one does |\n|---|---|---|---:|")
    for bug in planted.BUGS:
        if not any(part in bug.what for part in patterns):
            continue
        edge = planted.edge_that_finds(bug)
        found = planted.first_found(bug, seed, count)
        lost += found is None and not edge
        cases = f"more than {count}" if found is None else found - seed + 1
        print(f"| {bug.what} | {bug.level} | {edge or ''} | {cases} |", flush=True)
    print(f"\ncases from {seed}: {lost} not found; {time.process_time() - start:.0f} s of CPU")
    return lost


def _ablation(seed: int, count: int) -> int:
    """The prover without some of its parts, and other solvers; returns how many answers cannot be."""
    ablation, start = _helper("ablation"), time.process_time()
    rows, refuted = ablation.ablated(range(seed, seed + count))
    print(
        "| prover | proved | that all do not | of those that all do, not | refuted |\n|---|---:|---:|---:|---:|"
    )
    for name, row in rows.items():
        own = sum(f": {name}: " in problem for problem in refuted)
        print(f"| {name} | {row['proved']} | {row['more']} | {row['fewer']} | {own} |", flush=True)
    print("\n".join(refuted))
    answers: Counter[tuple[str, str, str]] = Counter()
    wrong: Counter[tuple[str, str, str]] = Counter()
    clashes = 0
    for opinion in ablation.opinions(range(seed, seed + count)):
        said = (opinion.ours, opinion.z3, opinion.cvc5)
        answers[said] += 1
        wrong[said] += opinion.wrong
        if opinion.clash:
            clashes += 1
            print(f"--- {opinion}")
    print("| ladder | z3 alone | cvc5 alone | cases | go wrong |\n|---|---|---|---:|---:|")
    for said, n in sorted(answers.items()):
        print(f"| {' | '.join(said)} | {n} | {wrong[said]} |")
    took = time.process_time() - start
    print(f"\ncases {seed} to {seed + count - 1}, {took:.0f} s of CPU; {len(refuted)} refuted, {clashes} clash")
    return len(refuted) + clashes


def _row(name: str, row: Counter[str]) -> str:
    wrong, violated = row["wrong"], row["wrong violated"]
    share = f"{violated} ({100 * violated / wrong:.1f} %)" if wrong else "0"
    undecided = row["wrong open"] + row["wrong model"]
    cells = [name, wrong + row["right"], wrong, share, undecided, row["wrong proved"], row["right proved"]]
    return f"| {' | '.join(map(str, cells))} |"


_LEVELS: dict[str, Callable[..., int]] = {
    "ir": _cases,
    "whole": _whole,
    "operators": _operators,
    "source": _source,
    "triton": _triton,
    "interpreter": _interpreter,
    "planted": _planted,
    "ablation": _ablation,
}


# ---- whole kernels ---------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200, help="mutants or cases (default: 200)")
    parser.add_argument("--level", choices=("kernels", *_LEVELS), default="kernels")
    parser.add_argument("--launches", type=int, default=15, help="launches of each safe mutant (default: 15)")
    parser.add_argument("--keep", type=Path, help="a folder for refuted mutants")
    parser.add_argument("patterns", nargs="*", default=[""], help="parts of paths or bugs (default: all)")
    options = parser.parse_args()
    _load()
    if options.level in _LEVELS:
        more = (options.patterns,) if options.level == "planted" else ()
        return 1 if _LEVELS[options.level](options.seed, options.count, *more) else 0
    judge, mutate = _helper("judge"), _helper("mutate")
    files = sorted(p for folder in SEEDS for p in (ROOT / folder).rglob("*.py"))
    files = [p for p in files if any(part in p.as_posix() for part in options.patterns)]
    verdicts: Counter[str] = Counter()
    refuted, launches, start = 0, 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.seed, options.seed + options.count):
            rng = random.Random(number)  # noqa: S311 - reproducible choices, no secrets
            original = rng.choice(files)
            changed = mutate.mutant(original.read_bytes(), rng)
            if changed is None:
                continue
            place = Path(folder) / original.parent.name
            if not place.exists():
                shutil.copytree(original.parent, place)
            path = place / original.name
            path.write_bytes(changed.source)
            judgement = judge.judge(path, changed.kernel, options.launches, f"{number}")
            verdicts[judgement.verdict] += 1
            launches += judgement.launches
            if judgement.problems:
                refuted += 1
                shown = original.relative_to(ROOT).as_posix()
                said = f"{changed.kernel} {judgement.verdict}: {changed.what}"
                print(f"--- {number}: {shown}::{said}", flush=True)
                print("\n".join(judgement.problems[:2]), flush=True)
                if options.keep is not None:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{number}_{original.name}").write_bytes(changed.source)
            shutil.copyfile(original, path)
    took = time.perf_counter() - start
    counts = ", ".join(f"{n} {word}" for word, n in sorted(verdicts.items()))
    print(f"{sum(verdicts.values())} mutants: {counts}; {launches} launches, {took:.0f} s")
    print(f"{refuted} refuted")
    return 1 if refuted else 0


if __name__ == "__main__":
    sys.exit(main())
