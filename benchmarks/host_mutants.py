"""Draws host functions with mutants and counts what the rules of streams, graphs and dependent launches find.

    nice python benchmarks/host_mutants.py N SEED [-j N] [--most N] [--show N] [--text]

The functions have the seeds SEED to SEED + N - 1, each with at most `--most` mutants. `--text` prints the
module of SEED with the codes that each of its functions deserves, and verifies nothing. The exit code is 1 if a
wrong function passes, or a function is refused for a rule that it does not break.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

from launch_suite import helper, load_helpers

from tilecheck.parallel import in_order


def of_seed(seed: int, *, most: int) -> list[Any]:
    found: list[Any] = helper("host_scored").scored(seed, most)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="N")
    parser.add_argument("seed", type=int, metavar="SEED")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, default=12, help="mutants of one function")
    parser.add_argument(
        "--show", type=int, default=20, help="how many of the functions that came out wrong are named"
    )
    parser.add_argument("--text", action="store_true", help="print the module of SEED")
    arguments = parser.parse_args()
    load_helpers()
    if arguments.text:
        module = helper("host_sources").drawn(arguments.seed, arguments.most)
        print(module.text)
        for function in module.functions:
            print(f"# {function.name}, {function.kind}: {', '.join(sorted(function.codes)) or 'right'}")
        return 0
    began = time.perf_counter()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    work = partial(of_seed, most=arguments.most)
    found = [one for listed in in_order(work, list(seeds), arguments.jobs) for one in listed]
    failed = [one for one in found if one.is_missed or one.is_false_alarm]
    print("\n".join(map(str, failed[: arguments.show])))
    print(helper("host_scored").table(found))
    wrong = [one for one in found if one.is_wrong]
    met = sum(one.came.value == "found" for one in wrong)
    print(
        f"{len(found)} functions, {len(wrong)} wrong, {met} of them found, {len(failed)} came out wrong",
        end=", ",
    )
    print(f"{time.perf_counter() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
