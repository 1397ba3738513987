"""`--require` on the command line and in the configuration: who falls short is named in every format."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tilecheck.cli import main
from tilecheck.exit_codes import ExitCode
from tilecheck.options import FORMATS

KERNEL = """import cuda.tile as ct
import torch


@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
HOST = """

def run(x):
    out = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.shape[0], 64),), double, (x, out, 64))
"""
PROMISE = KERNEL.replace("@ct.kernel", "# tilecheck: requires T <= 4096 -- tiles are small\n@ct.kernel")
OPEN_TILE = HOST.replace("def run(x)", "def run(x, tile)").replace("64", "tile")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _run(text: str, *arguments: str, verb: str = "verify") -> tuple[int, str, str]:
    Path("k.py").write_text(text)
    out, err = io.StringIO(), io.StringIO()
    code = main([verb, "k.py", *arguments, "-j1", "--no-cache"], stdout=out, stderr=err)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("verb", ["verify", "check"])
@pytest.mark.parametrize(
    ("text", "level", "why"),
    [
        (KERNEL, "conditional", None),
        (KERNEL, "launches", "no launch of it is in view"),
        (KERNEL, "proved", "it is conditional"),
        (KERNEL + HOST, "launches", None),
        (KERNEL + HOST, "proved", "it is conditional"),
        (PROMISE + OPEN_TILE, "launches", "it is unknown (launch)"),
        (PROMISE + HOST, "launches", None),
    ],
)
def test_a_level_that_is_not_met_ends_with_3(verb: str, text: str, level: str, why: str | None) -> None:
    code, out, _ = _run(text, "--require", level, verb=verb)
    assert code == (ExitCode.OK if why is None else ExitCode.UNDECIDED)
    assert (f"`double` does not meet `--require {level}`: {why}" in out) == (why is not None)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_the_kernel_and_the_reason(name: str) -> None:
    code, out, _ = _run(KERNEL, "--require", "launches", "--format", name)
    assert code == ExitCode.UNDECIDED
    assert "double" in out
    assert "no launch of it is in view" in out


def test_the_configuration_says_it_and_a_flag_says_otherwise() -> None:
    Path("pyproject.toml").write_text('[tool.tilecheck]\nrequire = "launches"\n')
    assert _run(KERNEL)[0] == ExitCode.UNDECIDED
    assert _run(KERNEL, "--require", "conditional")[0] == ExitCode.OK
    assert _run(KERNEL, "--config", "require=proved")[0] == ExitCode.UNDECIDED
    assert _run(KERNEL, "--exit-zero")[0] == ExitCode.OK


@pytest.mark.parametrize("value", ['"proof"', "true", '["launches"]', '""'])
def test_a_level_that_does_not_exist_is_refused(value: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.tilecheck]\nrequire = {value}\n")
    code, _, err = _run(KERNEL)
    assert code == ExitCode.USAGE
    assert "`require` must be one of proved, launches, conditional" in err
    Path("pyproject.toml").unlink()
    code, _, err = _run(KERNEL, "--require", "proof")
    assert code == ExitCode.USAGE
    assert "proof" in err
    assert "conditional" in err


def test_no_comment_in_the_source_lifts_a_kernel_over_the_level() -> None:
    text = KERNEL.replace("@ct.kernel", "# tilecheck: ignore[TC909] -- not here\n@ct.kernel")
    code, out, _ = _run(text, "--require", "launches")
    assert code == ExitCode.UNDECIDED
    assert "TC909" in out
