"""Writes `docs/rule-pages.md` from the pages of the rules."""

from __future__ import annotations

from pathlib import Path

from tilecheck.registry import LoadedRule, load_rules

TARGET = Path(__file__).parent / "rule-pages.md"

_HEAD = """\
# The pages of the rules

Written by `python docs/build_rules.py` from the docstrings of `rules/`. `tilecheck explain CODE` prints one
page; [rules.md](rules.md) lists the rules, and [verdicts.md](verdicts.md) says what the verdicts mean.

Every example is a whole module and a test. `# verdict:` is what `tilecheck verify` says about the kernel,
`# expect:` a finding on that line (`line=-1`: on the line before it), `# site:` its other end, and
`# suppressed:` a finding that is silenced.
"""


def document() -> str:
    """The text of `docs/rule-pages.md`."""
    return _HEAD + "".join(map(_page, load_rules()))


def _page(loaded: LoadedRule) -> str:
    """A page with its headings one level down; code is left alone."""
    lines = [f"\n## {loaded.rule.code}: {loaded.rule.name}\n\n"]
    in_code = False
    for line in loaded.page.strip().splitlines():
        in_code = in_code != line.startswith("```")
        lines.append(f"#{line}\n" if line.startswith("## ") and not in_code else f"{line}\n")
    return "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")
