"""Makes the modules of this folder that are not tests importable: `proof_patterns`, `proof_brute`,
`proof_kernels` and `proof_host_text`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _register(name: str, file: str) -> None:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(file))
    if spec is None or spec.loader is None:
        raise ImportError(file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_register("proof_patterns", "patterns.py")
_register("proof_brute", "brute.py")
_register("proof_kernels", "kernels.py")
_register("proof_host_text", "host_text.py")
