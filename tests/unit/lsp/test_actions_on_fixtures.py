"""Every edit that is offered for a finding, on kernels of the fixtures: with it the finding is gone, and no
other has come."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.cache.results import Cache
from tilecheck.lsp.actions import actions
from tilecheck.lsp.analysed import Analysed
from tilecheck.lsp.diagnostics import shown
from tilecheck.options import Options
from tilecheck.verify.pipeline import verify_source

FIXTURES = Path(__file__).parents[3] / "fixtures"
FILES = (
    "cutile/races/dropped_axis.py",
    "cutile/races/early_return.py",
    "cutile/races/permute_heads.py",
    "cutile/races/two_halves.py",
    "cutile/wrap/values_in_memory.py",
)


@pytest.mark.parametrize("name", FILES)
def test_the_finding_goes(name: str) -> None:
    cache, path = Cache.in_memory(), (FIXTURES / name).as_posix()
    data = (FIXTURES / name).read_bytes()

    def analysed(text: bytes) -> Analysed:
        report = verify_source(text, path, Options(), cache=cache)
        return Analysed("file:///k.py", path, 1, text, report)

    before = analysed(data)
    found = [item.diagnostic for item in shown(before)]
    assert found
    applied = 0
    for diagnostic in found:
        for action in actions(before, diagnostic["range"], versioned=False):
            if action.get("diagnostics") != [diagnostic] or "edit" not in action:
                continue
            [edit] = action["edit"]["changes"]["file:///k.py"]
            span = before.positions().span(edit["range"])
            after = analysed(data[: span.start] + edit["newText"].encode() + data[span.end :])
            left = [item.diagnostic["message"] for item in shown(after)]
            same = [d for d in found if d["message"] == diagnostic["message"]]
            assert left.count(diagnostic["message"]) < len(same), action["title"]
            assert set(left) <= {d["message"] for d in found}, action["title"]
            applied += 1
    assert applied >= len(found)
