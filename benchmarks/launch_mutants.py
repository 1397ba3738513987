"""Changes every visible launch in one place and counts which of the mutants that do harm are found.

    nice python benchmarks/launch_mutants.py [--most N] [--seed N] [-j N] [--show N] [PATTERN ...]

The launches are those of `kernels` and `fixtures` whose kernels pass. A mutant is wrong if an input at which
the original does no harm makes it do harm; the hosts run on tensors without contents. It is its caller's
if it passes and each harmful call breaks a condition that is left to the caller. `--most` limits the mutants of
a file. The exit code is 1 if a wrong mutant passes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from launch_suite import ROOT, helper, load_helpers

from tilecheck.parallel import in_order

CAME = ("passed", "unmet", "unknown", "violated")
TRUTHS = ("wrong", "caller's", "harmless", "never", "not run")
FOLDERS = ("kernels", "fixtures/cutile", "fixtures/triton", "fixtures/launches")


def files(patterns: Sequence[str]) -> list[Path]:
    found = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))]
    return [p for p in found if not patterns or any(pattern in str(p) for pattern in patterns)]


def of_file(path: Path, most: int | None, seed: int) -> list[Any]:
    found: list[Any] = helper("launch_mutated").of_file(path, path.relative_to(ROOT).as_posix(), most, seed)
    return found


def table(found: Sequence[Any]) -> str:
    """Truths by kind of mutant, and what became of the wrong ones."""
    kinds = sorted({m.change.what for m in found})
    width = max(map(len, [*kinds, "all"]))
    rows = [f"{'':{width}}  {'  '.join(TRUTHS)}   wrong ones: {'  '.join(CAME)}"]
    for kind in [*kinds, "all"]:
        mine = [m for m in found if kind in ("all", m.change.what)]
        truths, came = Counter(m.truth for m in mine), Counter(m.came for m in mine if m.truth == "wrong")
        left = "  ".join(f"{truths[t]:{len(t)}}" for t in TRUTHS)
        rows.append(f"{kind:{width}}  {left}               {'  '.join(f'{came[c]:{len(c)}}' for c in CAME)}")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--most", type=int, help="mutants of one file; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="how many of the wrong ones that pass are named")
    arguments = parser.parse_args()
    load_helpers()
    began = time.perf_counter()
    work = partial(of_file, most=arguments.most, seed=arguments.seed)
    found = [m for listed in in_order(work, files(arguments.patterns), arguments.jobs) for m in listed]
    passing = [m for m in found if m.truth == "caller's" or m.came in ("passed", "unmet")]
    for m in passing[: arguments.show]:
        print(
            f"{m.file}:{m.change.line}: {m.change.kernel}, {m.change.what}: {m.change.by}  {m.truth}, {m.came}"
        )
    print(table(found))
    print(f"{len(found)} mutants, {time.perf_counter() - began:.0f} s")
    return 1 if any(m.truth == "wrong" for m in passing) else 0


if __name__ == "__main__":
    sys.exit(main())
