"""Looks for verdicts that launches refute: random mutants of the fixtures and the library, judged one by one.

    nice python benchmarks/soundness.py [--seed N] [--count N] [PATTERN ...]

A `proved` or `conditional` mutant is launched with random small values that meet its conditions; a race or
anything undefined in the log refutes the verdict. The witness of a `violated` mutant is run again. Every
refutation is printed with the mutant and the launch; the exit code is 1 if there was one.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ["fixtures/cutile", "kernels"]


def _modules() -> Any:
    """The helpers of the soundness tests: loading their conftest registers them."""
    spec = importlib.util.spec_from_file_location("soundness_conftest", ROOT / "tests/soundness/conftest.py")
    if spec is None or spec.loader is None:
        raise SystemExit("tests/soundness is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return sys.modules["soundness_judge"], sys.modules["soundness_mutate"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200, help="mutants (default: 200)")
    parser.add_argument("--launches", type=int, default=15, help="launches of each safe mutant (default: 15)")
    parser.add_argument("--keep", type=Path, help="a folder for refuted mutants")
    parser.add_argument("patterns", nargs="*", default=[""], help="parts of paths (default: every file)")
    options = parser.parse_args()
    judge, mutate = _modules()
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
