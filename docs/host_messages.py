"""Writes below each `<!-- message: FILE::FUNCTION -->` of `host.md` what `verify FILE` finds in FUNCTION.

    python docs/host_messages.py [--check]

`--check` writes nothing, and exits with 1 if a message is not what the page says. A function in which nothing
is found keeps an empty place, and the script says so.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from pathlib import Path

from tilecheck.cli import main as run

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "host.md"
_PLACE = re.compile(
    r"(?P<indent> *)<!-- message: (?P<file>\S+)::(?P<function>\w+) -->\n"
    r"(?:\n(?P=indent)```text\n.*?(?P=indent)```\n)?",
    re.DOTALL,
)


def message(file: str, function: str) -> str:
    """The first finding in a function as the command line prints it; empty if there is none."""
    out = io.StringIO()
    run(["verify", "--no-cache", file], stdout=out, stderr=io.StringIO())
    blocks = out.getvalue().split("\n\n")
    return next(
        (b for b in blocks if b.startswith("error[") and f"in `{function}`" in b.partition("\n")[0]), ""
    )


def filled(page: str) -> tuple[str, list[str]]:
    """The page with its messages, and the functions in which nothing is found."""
    missing: list[str] = []

    def fill(place: re.Match[str]) -> str:
        found = message(place["file"], place["function"])
        head = f"{place['indent']}<!-- message: {place['file']}::{place['function']} -->\n"
        if not found:
            missing.append(f"{place['file']}::{place['function']}")
            return head
        # The comments of a fixture are for its test.
        lines = re.sub(r"  # (?:expect|site): .*", "", found).split("\n")
        body = "\n".join((place["indent"] + line).rstrip() for line in ("```text", *lines, "```"))
        return f"{head}\n{body}\n"

    return _PLACE.sub(fill, page), missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    page = PAGE.read_text(encoding="utf-8")
    new, missing = filled(page)
    for name in missing:
        sys.stderr.write(f"nothing is found in {name}\n")
    if arguments.check:
        return int(new != page or bool(missing))
    PAGE.write_text(new, encoding="utf-8")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
