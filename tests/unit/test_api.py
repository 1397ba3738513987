"""The public interface of the package."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

import tilecheck
from tilecheck.model import Verdict

KERNEL = """import cuda.tile as ct

@ct.kernel
def same(x, out, T: ct.Constant[int]):
    ct.store(out, index=(ct.bid(0) // 2,), tile=ct.load(x, index=(ct.bid(0),), shape=(T,)))
"""


def test_every_public_name_exists() -> None:
    for name in tilecheck.__all__:
        assert getattr(tilecheck, name) is not None
    assert tilecheck.Verdict is Verdict
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tilecheck.nothing


def test_check_source_and_verify_paths_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    of_text = tilecheck.check_source(KERNEL, "k.py")
    of_file = tilecheck.verify_paths(["k.py"])
    for report in (of_text, of_file):
        assert [(k.name, k.verdict) for k in report.kernels] == [("same", Verdict.VIOLATED)]
        assert report.sources["k.py"] == KERNEL.encode()
    assert [d.message for d in of_text.diagnostics] == [d.message for d in of_file.diagnostics]


@pytest.mark.parametrize("form", [str, Path, lambda p: [str(p)], lambda p: (p,)])
def test_one_path_is_verified_like_a_list_of_it(tmp_path: Path, form) -> None:
    (tmp_path / "k.py").write_text(KERNEL)
    report = tilecheck.verify_paths(form(tmp_path))
    assert [(k.name, k.verdict) for k in report.kernels] == [("same", Verdict.VIOLATED)]


def test_markers_are_plain_annotations() -> None:
    for marker in (tilecheck.Mut, tilecheck.Shared):
        assert typing.get_origin(marker) is typing.Annotated
        assert typing.get_args(marker)[0] is typing.Any


def test_a_bug_in_reading_host_code_costs_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilecheck.frontend.launches import discovery

    real = discovery.find_launches

    def broken(table: typing.Any, uses: typing.Any) -> typing.Any:
        if table.file.endswith("bad.py"):
            raise LookupError("a bug of ours")
        return real(table, uses)

    monkeypatch.setattr(discovery, "find_launches", broken)
    for name in ("bad.py", "good.py"):
        (tmp_path / name).write_text(KERNEL + "\n\ndef host(launch):\n    launch()\n")
    bad, good = tilecheck.verify_paths([str(tmp_path)]).kernels
    assert (bad.verdict, bad.reason) == (Verdict.UNKNOWN, "internal")
    assert bad.internal_error is not None
    assert "a bug of ours" in bad.internal_error
    assert good.verdict is Verdict.VIOLATED
