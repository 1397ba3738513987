"""Runs random programs of `tilecheck.host` on the fake GPU, and judges each by an oracle.

    nice python benchmarks/host_stress.py N SEED [-j J] [--steps S] [--show K]

The programs have the seeds SEED to SEED + N - 1. What is accepted must show no hazard in any interleaving, give
what it gives one step after the other, and touch no freed memory; what is refused must be a hazard. The exit
code is 1 if that is not so.
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

_BATCH = 50


def batch(start: int, stop: int, steps: int) -> list[Any]:
    return [one(seed, steps) for seed in range(start, min(start + _BATCH, stop))]


def one(seed: int, steps: int) -> Any:
    runtime = helper("host_runtime")
    try:
        return runtime.check(seed, steps)
    except Exception as error:  # noqa: BLE001 - a crash is a result too, and has a seed
        return runtime.Outcome(seed, wrong=[f"crashed: {type(error).__name__}: {error}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="N")
    parser.add_argument("seed", type=int, metavar="SEED")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--show", type=int, default=10, help="how many of the wrong programs are named")
    arguments = parser.parse_args()
    load_helpers()
    began = time.perf_counter()
    stop = arguments.seed + arguments.count
    work = partial(batch, stop=stop, steps=arguments.steps)
    starts = list(range(arguments.seed, stop, _BATCH))
    found = [one for listed in in_order(work, starts, arguments.jobs) for one in listed]
    wrong = [one for one in found if one.wrong]
    for one in wrong[: arguments.show]:
        print(f"seed {one.seed}: {one.wrong[0]}")
    refused = sum((one.refused for one in found), Counter())
    disciplined = sum((one.disciplined for one in found), Counter())
    updates = sum(one.updates for one in found)
    accepted = sum(one.accepted for one in found)
    print(f"{len(found)} programs, {accepted} steps accepted, of which {updates} update graphs")
    print(f"refused, and shown by the oracle: {_listed(refused)}")
    print(f"refused by approximate footprints: {sum(one.approximate for one in found)}")
    print(f"refused by the discipline of handles and graphs: {_listed(disciplined)}")
    unsafe = sum(text.startswith("accepted") for one in wrong for text in one.wrong)
    print(
        f"wrong acceptances {unsafe}, other faults {sum(len(one.wrong) for one in wrong) - unsafe}",
        end=", ",
    )
    print(f"{time.perf_counter() - began:.0f} s")
    return 1 if wrong else 0


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{code or 'other'} {count}" for code, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    sys.exit(main())
