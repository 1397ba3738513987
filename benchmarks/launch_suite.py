"""Runs the labelled launches of `fixtures/launches` and counts what became of wrong and right ones, by kind.

    nice python benchmarks/launch_suite.py [--names]
    nice python benchmarks/launch_suite.py --truth [PATTERN ...]

`--names` adds each bar that is missed, with the kernels that did not come out as labelled. `--truth` verifies
nothing: it runs the hosts on tensors without contents and reports labels that the runs do not bear out.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from tilecheck.options import Options
from tilecheck.report.emitters.json import to_object
from tilecheck.verify.pipeline import verify_paths

ROOT = Path(__file__).resolve().parents[1]


def load_helpers() -> None:
    """Loading the conftest of the soundness tests registers their helpers."""
    spec = importlib.util.spec_from_file_location("soundness_conftest", ROOT / "tests/soundness/conftest.py")
    if spec is None or spec.loader is None:
        raise SystemExit("tests/soundness is missing")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def helper(name: str) -> Any:
    return sys.modules[f"soundness_{name}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", help="parts of the paths of the files to run; all by default")
    parser.add_argument("--names", action="store_true", help="name what did not come out as labelled")
    parser.add_argument("--truth", action="store_true", help="check the labels, not the tool")
    arguments = parser.parse_args()
    load_helpers()
    suite = helper("launch_suite")
    chosen = [
        p for p in suite.files() if not arguments.patterns or any(t in str(p) for t in arguments.patterns)
    ]
    if arguments.truth:
        return int(helper("launch_truth").main([str(p) for p in chosen]))
    results = [
        one for path in chosen for one in suite.scored(path, to_object(verify_paths([str(path)], Options())))
    ]
    print(suite.table(results))
    problems = suite.missed(results, suite.Bars())
    if arguments.names:
        print("\n".join(("bars that are missed:", *problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
