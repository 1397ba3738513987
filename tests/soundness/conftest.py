"""Makes the modules of this folder that are not tests importable, under names that begin with `soundness_`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _register(file: str) -> None:
    name = f"soundness_{file}"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{file}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


# In the order of their imports.
for _file in ("launches", "points", "coverage", "undefined", "texts", "oracle", "mutate", "judge", "generate"):
    _register(_file)
