"""Makes the modules of this folder that are not tests importable: `kernel_cases` and the `kernel_cases_*`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel_cases import Case

pytest.importorskip("cuda.tile", reason="cuda-tile is not installed")

HERE = Path(__file__).parent


def _register(path: Path) -> Any:
    name = f"kernel_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


CASES: dict[str, Callable[[], Case]] = dict(_register(HERE / "cases.py").example_cases())
for _path in sorted(HERE.glob("cases_*.py")):
    CASES |= _register(_path).CASES


@pytest.fixture(params=CASES, ids=str, scope="module")
def make(request: pytest.FixtureRequest) -> Callable[[], Case]:
    """Makes one case, with fresh arrays at each call."""
    return CASES[request.param]
