"""Functions that stand in for kernels' functions where Triton is missing: they only raise.

    if has_triton():
        @triton.jit
        def f(x): ...
    else:
        def f(*args): raise RuntimeError("f needs Triton")

Where the name holds the second, no kernel that calls it is compiled, and no launch of it happens: calling it
raises. So the compiled function counts wherever something is to be shown of a kernel or of a launch.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tilecheck.frontend.modules.bindings import Binding, dotted


def compiled_way(ways: Sequence[Binding]) -> cst.FunctionDef | None:
    """The only one of several bindings of a name that is compiled for a kernel, where all others only raise."""
    found = [way for way in ways if not only_raises(way)]
    own = found[0] if len(found) == 1 else None
    return own if isinstance(own, cst.FunctionDef) and _is_compiled(own) else None


def _is_compiled(node: cst.FunctionDef) -> bool:
    """Whether its decorator is `triton.jit`, and nothing is around that."""
    return len(node.decorators) == 1 and dotted(node.decorators[0].decorator) == "triton.jit"


def only_raises(node: Binding) -> bool:
    """Whether it is a function without decorators of a text and a `raise`, whatever it is given."""
    if not isinstance(node, cst.FunctionDef) or node.decorators or not isinstance(node.body, cst.IndentedBlock):
        return False
    lines: list[cst.BaseSmallStatement | None] = []
    for line in node.body.body:
        lines += line.body if isinstance(line, cst.SimpleStatementLine) else [None]
    if lines and isinstance(lines[0], cst.Expr) and isinstance(lines[0].value, cst.SimpleString):
        del lines[0]
    return len(lines) == 1 and isinstance(lines[0], cst.Raise) and node.asynchronous is None
