"""What the tests of `examples/qwen3` share: `qwen3_folders`, and the verdicts of the kernels it launches."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilecheck.jit import records
from tilecheck.jit.verdicts import use_verdicts
from tilecheck.model import Report

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

_spec = importlib.util.spec_from_file_location("qwen3_folders", HERE / "qwen3_folders.py")
assert _spec is not None
assert _spec.loader is not None
sys.modules["qwen3_folders"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["qwen3_folders"])


@pytest.fixture(scope="session")
def qwen3_verdicts(verified: Callable[[Path], Report], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the verdicts of the kernels of `examples/qwen3`; this process has them from here on."""
    imports = [
        node
        for path in sorted((ROOT / "examples" / "qwen3").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tilecheck.kernels.")
    ]
    files = {
        ROOT.joinpath(*(node.module or "").split(".")[1:]).with_suffix(".py")
        for node in imports
        if any(alias.name.endswith("_kernel") for alias in node.names)
    }
    found = [record for path in sorted(files) for record in records.records_of(verified(path))]
    path = tmp_path_factory.mktemp("qwen3") / "verdicts.json"
    path.write_text(records.dump(found))
    use_verdicts(path)
    return path


@pytest.fixture(scope="module")
def qwen3(without_triton: None, qwen3_verdicts: Path) -> Iterator[None]:
    """Makes the example importable, and its kernels verified."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "examples"))
        yield
        for name in [n for n in sys.modules if n.partition(".")[0] == "qwen3"]:
            del sys.modules[name]
