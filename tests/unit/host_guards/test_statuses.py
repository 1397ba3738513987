"""The status `guarded` in reports, and what it does not take the place of."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tilecheck.cli import main
from tilecheck.options import Options
from tilecheck.verify.pipeline import verify_paths, verify_source

GUARDED = """
from tilecheck import host


def filled(n: int) -> host.Array:
    x = host.zeros(n).submit(host.stream())
    return host.fill(x, 1.0).submit(host.stream())
"""
VIOLATED = """
import torch
from tilecheck import host


def early(n: int):
    x = torch.zeros(n, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.add_(1)
    return x


def moved(array):
    x = host.own(array)
    first = host.fill(x, 1.0)
    second = host.fill(x, 2.0)
    return first.submit(), second.submit()
"""
ORDERED = """
import torch
from tilecheck import host


def filled(array: torch.Tensor):
    return host.fill(host.own(array), 1.0).sync()
"""
HELPER = """
def work(x):
    x.record_stream(None)
"""
UNREAD = """
from helper import work
from tilecheck import host


def helped(n: int):
    x = host.zeros(n).submit(host.stream())
    work(x)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def statuses(text: str) -> dict[str, str]:
    hosts = verify_source(text.encode(), "k.py", Options()).hosts
    return {host.name: host.status for host in hosts if host.name != "<module>"}


def run(text: str, *arguments: str) -> tuple[int, str]:
    Path("k.py").write_text(text)
    out = io.StringIO()
    code = main(["verify", "k.py", "-j1", *arguments], stdout=out, stderr=io.StringIO())
    return code, out.getvalue()


def test_what_the_library_checks_is_guarded() -> None:
    assert statuses(GUARDED) == {"filled": "guarded"}


def test_what_is_wrong_or_shown_in_order_stays_so() -> None:
    """The library refuses the second function as it runs, which does not make it right."""
    assert statuses(VIOLATED) == {"early": "violated", "moved": "violated"}
    assert statuses(ORDERED) == {"filled": "ordered"}


def test_a_file_without_the_library_has_none() -> None:
    text = "import torch\n\n\ndef f():\n    s = torch.cuda.ExternalStream(0)\n    s.synchronize()\n"
    assert statuses(text) == {"f": "unread"}


def test_reports_name_and_count_them() -> None:
    _, out = run(GUARDED, "--no-cache")
    assert ["guarded", "k.py:5", "filled"] in [line.split() for line in out.splitlines()]
    assert "2 host functions: 1 ordered, 1 guarded" in out
    _, text = run(GUARDED, "--no-cache", "--format", "json")
    (host,) = (h for h in json.loads(text)["hosts"] if h["name"] == "filled")
    assert (host["status"], host["reason"], host["findings"]) == ("guarded", None, [])


def test_they_meet_what_is_required_and_unread_ones_do_not() -> None:
    assert run(GUARDED, "--no-cache", "--require", "launches")[0] == 0
    Path("helper.py").write_text(HELPER)
    code, out = run(UNREAD, "--no-cache", "--require", "launches")
    assert code == 3
    assert "`helped` does not meet `--require launches`" in out


def test_the_reason_may_lie_in_another_file() -> None:
    Path("helper.py").write_text(HELPER)
    Path("k.py").write_text(UNREAD)
    (host,) = (h for h in verify_paths(["k.py"]).hosts if h.name == "helped")
    assert host.status == "unread"
    assert host.reason_site is not None
    assert host.reason_site.file == "helper.py"
    assert "because helper.py:3:" in run(UNREAD, "--no-cache")[1]


def test_a_change_in_a_file_that_was_read_changes_the_status() -> None:
    """Results are kept with all files that they rest on."""
    Path("helper.py").write_text(HELPER)
    arguments = ("--cache-dir", "kept", "--require", "launches")
    assert [run(UNREAD, *arguments)[0] for _ in range(2)] == [3, 3]
    Path("helper.py").write_text("def work(x):\n    x.tolist()\n")
    assert [run(UNREAD, *arguments)[0] for _ in range(2)] == [0, 0]
    Path("helper.py").unlink()
    assert run(UNREAD, *arguments)[0] == 3
