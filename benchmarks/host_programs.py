"""Draws host programs and compares the queries over their borrow graphs with their interleavings.

    nice python benchmarks/host_programs.py N SEED [-j N] [--symbolic] [--scrambled] [--show N]

The programs have the seeds SEED to SEED + N - 1. With `--symbolic`, sizes are symbols and the solver decides
which regions overlap; with `--scrambled`, some of the actions are changed at random. The exit code is 1 if a
finding is missed, or one that no interleaving shows is invented.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from typing import Any

from launch_suite import helper, load_helpers

from tilecheck.parallel import in_order

_BATCH = 100


def batch(start: int, stop: int, *, symbolic: bool, scrambled: bool) -> list[Any]:
    judged = helper("host_judged").judged
    return [
        judged(seed, symbolic=symbolic, scrambled=scrambled) for seed in range(start, min(start + _BATCH, stop))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="N")
    parser.add_argument("seed", type=int, metavar="SEED")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--symbolic", action="store_true")
    parser.add_argument("--scrambled", action="store_true")
    parser.add_argument("--show", type=int, default=10, help="how many of the programs that differ are named")
    arguments = parser.parse_args()
    load_helpers()
    began = time.perf_counter()
    stop = arguments.seed + arguments.count
    work = partial(batch, stop=stop, symbolic=arguments.symbolic, scrambled=arguments.scrambled)
    starts = list(range(arguments.seed, stop, _BATCH))
    found = [one for listed in in_order(work, starts, arguments.jobs) for one in listed]
    differing = [one for one in found if one.missed or one.invented]
    for one in differing[: arguments.show]:
        print(f"seed {one.seed}: missed {sorted(one.missed)}, invented {sorted(one.invented)}")
    parts = [
        Counter(key[0] for one in found for key in getattr(one, part))
        for part in ("shown", "missed", "invented")
    ]
    print("code    shown  missed  invented")
    for code in sorted(set().union(*parts)):
        print(f"{code}  {parts[0][code]:6}  {parts[1][code]:6}  {parts[2][code]:8}")
    clean = sum(not one.shown for one in found)
    print(f"{len(found)} programs, {clean} without a hazard, {len(differing)} differ", end=", ")
    print(f"{time.perf_counter() - began:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
