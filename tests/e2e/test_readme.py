"""README says what the program does: its report, its tables, its kernel and its links."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tilecheck.cli import main
from tilecheck.exit_codes import ExitCode
from tilecheck.frontend.text.pragmas import PragmaKind, read_pragmas
from tilecheck.model import Reason, Verdict
from tilecheck.text import decode

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def _mask(text: str) -> str:
    return re.sub(r"\d+\.\d+ s .*", "TIME", text)


@pytest.mark.parametrize("block", _blocks("console"), ids=lambda block: block.split()[2])
def test_printed_output_is_the_real_one(block: str, request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "PRE_COMMIT", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    command, _, expected = block.partition("\n")
    out = io.StringIO()
    main(command.removeprefix("$ tilecheck ").split(), stdout=out, stderr=io.StringIO())
    if request.config.getoption("--bless"):
        (ROOT / "README.md").write_text(README.replace(block, f"{command}\n{out.getvalue()}"), encoding="utf-8")
        return
    assert _mask(out.getvalue()) == _mask(expected)


def test_the_kernel_is_the_one_that_is_verified() -> None:
    kernel = next(block for block in _blocks("python") if "permute_heads_corrected" in block)
    fixture = (ROOT / "fixtures/cutile/races/permute_heads.py").read_text()
    assert kernel in re.sub(r"  # (verdict|expect): .*", "", fixture)


def test_two_commands_make_their_own_environment() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README, flags=re.MULTILINE)
    assert len(commands) == 2
    assert "tilecheck verify kernels/" in commands[0]
    assert "pytest" in commands[1]


def test_tables_are_complete() -> None:
    for word in (*(v.value for v in Verdict), *(r.value for r in Reason)):
        assert f"`{word}" in README
    for code in ExitCode:
        assert f"| {code.value} |" in README


def test_contracts_are_understood() -> None:
    text = "".join(_blocks("python"))
    pragmas = read_pragmas(decode("README.py", text.encode()))
    assert {pragma.kind for pragma in pragmas} == set(PragmaKind) - {PragmaKind.MALFORMED, PragmaKind.UNSAFE}


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_explained_topics_exist() -> None:
    for topic in re.findall(r"tilecheck explain ((?!TOPIC)\S+?)[`\n)]", README):
        assert main(["explain", topic], stdout=io.StringIO(), stderr=io.StringIO()) == ExitCode.OK
