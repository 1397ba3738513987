"""Compares verdicts on random hosts with what their launches do: wrong passes and alarms, by brute force.

    nice python benchmarks/launch_harness.py [COUNT [SEED]] [-j N] [--show N]

COUNT launches are drawn (20,000 by default), five to a file; each is run over the small inputs that its host
admits. The exit code is 1 if there was a wrong pass or a wrong `violated`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from launch_suite import helper, load_helpers

from tilecheck.parallel import in_order

CAME = ("passed", "caller", "unmet", "violated", "unknown")
WRONG = ("wrong pass", "wrong violated", "false holds", "layout alone")


def table(judged: Sequence[Any]) -> str:
    """Verdicts against truth by family, and the problems."""
    families = sorted({j.pair.family for j in judged})
    width = max(map(len, families))
    rows = [f"{'':{width}}  truth  {'  '.join(CAME)}   {'  '.join(WRONG)}"]
    for family in [*families, ""]:
        for truth in ("harm", "none", "never"):
            mine = [j for j in judged if j.truth == truth and family in ("", j.pair.family)]
            came, problems = Counter(j.came for j in mine), Counter(j.problem for j in mine)
            left = "  ".join(f"{came[c]:{len(c)}}" for c in CAME)
            right = "  ".join(f"{problems[w]:{len(w)}}" for w in WRONG)
            if mine:
                rows.append(f"{family or 'all':{width}}  {truth:5}  {left}   {right}")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=20_000)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="how many of each kind of problem are printed")
    arguments = parser.parse_args()
    load_helpers()
    harness = helper("launch_judged")
    began = time.perf_counter()
    seeds = [1_000_003 * arguments.seed + n for n in range(-(-arguments.count // harness.PAIRS_OF_FILE))]
    judged = [one for found in in_order(harness.judged_file, seeds, arguments.jobs) for one in found]
    shown: Counter[str] = Counter()
    for one in judged:
        if one.problem and shown[one.problem] < arguments.show:
            shown[one.problem] += 1
            print(harness.described(one))
    print(table(judged))
    print(f"{len(judged)} launches, {time.perf_counter() - began:.0f} s")
    return 1 if any(j.problem in ("wrong pass", "wrong violated") for j in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
