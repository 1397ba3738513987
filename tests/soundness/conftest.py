"""Makes the modules of this folder that are not tests importable, under names that begin with `soundness_`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _register(name: str, path: Path) -> None:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_HERE = Path(__file__).parent
# The notation of the index patterns.
_register("proof_patterns", _HERE.parent / "unit" / "proof" / "patterns.py")
# The fake GPU, and what tests need of one.
for _name in ("fake_driver", "kits"):
    _register(f"host_{_name}", _HERE.parent / "unit" / "host" / f"{_name}.py")
# In the order of their imports.
_FILES = (
    "launches points coverage undefined texts oracle mutate judge generate cases truth alter edges decided"
    " plain triton_plain triton_real shares sources triton_sources held planted ablation protocols"
    " virtual_machine virtual_tensors virtual_torch virtual_values virtual_triton virtual_cutile launch_truth"
    " launch_suite launch_ways launch_random launch_judged launch_guess launch_mutate launch_mutated"
    " host_programs host_judged host_kernels host_plans host_truth host_texts host_families host_sources"
    " host_recorded host_scored host_runtime"
).split()
for _file in _FILES:
    _register(f"soundness_{_file}", _HERE / f"{_file}.py")
