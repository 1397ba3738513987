from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import Verdict
from tilecheck.options import Options
from tilecheck.overlay import is_file, overlaid, text_at
from tilecheck.verify.pipeline import verify_source

KERNEL = """import cuda.tile as ct
from sizes import SHIFT


@ct.kernel
def move(x, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(x, index=(i + SHIFT,), tile=ct.load(x, index=(i,), shape=(T,)))
"""


def test_texts_stand_for_files_inside_the_block_alone(tmp_path: Path) -> None:
    saved, new = tmp_path / "saved.py", tmp_path / "new.py"
    saved.write_bytes(b"on disk")
    with overlaid({str(saved): b"held", str(new): b"new"}):
        assert (text_at(saved), text_at(new)) == (b"held", b"new")
        assert is_file(new)
        with overlaid({str(new): b"newer"}):
            assert (text_at(saved), text_at(new)) == (b"held", b"newer")
        assert text_at(tmp_path / "sub" / ".." / "new.py") == b"new"
    assert text_at(saved) is None
    assert is_file(saved)
    assert not is_file(new)


def test_an_unsaved_text_sees_the_files_beside_its_path(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("SHIFT = 1\n")
    path = tmp_path / "move.py"
    path.write_text("this is not Python\n")
    report = verify_source(KERNEL.encode(), str(path), Options())
    assert [k.verdict for k in report.kernels] == [Verdict.VIOLATED]
    assert [d.code for d in report.diagnostics] == ["TC202"]
    assert report.diagnostics[0].witness is not None  # the replay read the same text
    assert report.diagnostics[0].site.file == str(path)


@pytest.mark.parametrize("is_saved", [True, False])
def test_an_unsaved_sibling_counts_and_not_what_lies_on_disk(tmp_path: Path, is_saved: bool) -> None:
    if is_saved:
        (tmp_path / "sizes.py").write_text("SHIFT = 1\n")
    texts = {str(tmp_path / "sizes.py"): b"SHIFT = 0\n"}
    report = verify_source(KERNEL.encode(), str(tmp_path / "move.py"), Options(), texts=texts)
    assert [k.verdict for k in report.kernels] == [Verdict.CONDITIONAL]


def test_a_counterexample_is_replayed_with_the_unsaved_sibling(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("SHIFT = 0\n")
    texts = {str(tmp_path / "sizes.py"): b"SHIFT = 1\n"}
    report = verify_source(KERNEL.encode(), str(tmp_path / "move.py"), Options(), texts=texts)
    assert [k.verdict for k in report.kernels] == [Verdict.VIOLATED]


def test_a_configuration_beside_an_unsaved_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.tilecheck.kernel]]\nmatch = "move.py::move"\nrequires = ["grid[0] <= 1"]\n'
    )
    (tmp_path / "sizes.py").write_text("SHIFT = 1\n")
    report = verify_source(KERNEL.encode(), str(tmp_path / "move.py"), Options())
    assert [k.verdict for k in report.kernels] == [Verdict.CONDITIONAL]
    assert report.kernels[0].requires == ("grid[0] <= 1",)
