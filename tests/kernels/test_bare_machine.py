"""The script for bare machines knows every kernel; it imports PyTorch, so here it is only read."""

from __future__ import annotations

import ast
from pathlib import Path

from kernel_cases import MODULES, kernels


def test_every_kernel_has_a_case() -> None:
    tree = ast.parse(Path(__file__).with_name("bare_machine.py").read_text(encoding="utf-8"))
    cases = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CASES"
    ]
    assert {key.value for key in cases[0].keys} == {name for module in MODULES for name in kernels(module)}
