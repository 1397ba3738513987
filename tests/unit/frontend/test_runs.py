"""A run of a kernel is the last one if what it has learned answers its own questions as they were answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.state import Executor, Knowledge
from tilecheck.frontend.kernels.definitions import Definition, find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.kernel import Kernel

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = sorted(folder for folder in (ROOT / "fixtures").glob("*/*") if folder.is_dir())


def _lowered(definition: Definition) -> Kernel | str:
    try:
        return lower(definition)
    except UnsupportedConstruct as problem:
        return str(problem)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_one_more_run_gives_the_same_kernel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [Project().add(load(str(path))) for path in sorted(folder.glob("*.py"))[::3]]
    definitions = [definition for table in tables for definition in find_kernels(table)]
    few = [_lowered(definition) for definition in definitions]

    def knows_all(x: Executor, learned: Knowledge) -> bool:
        return learned == x.knowledge

    monkeypatch.setattr(Executor, "would_be", knows_all)
    assert [_lowered(definition) for definition in definitions] == few
