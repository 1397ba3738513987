"""`# tilecheck: fills out`: the author says that a launch writes every element of an array."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator

import libcst as cst

from tilecheck.frontend.kernels.definitions import Definition, kernel_pragmas
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.pragmas import PragmaKind
from tilecheck.frontend.text.syntax import has_kind, walk
from tilecheck.ir.kernel import Filled
from tilecheck.model import Site

_LOOPS = (cst.For, cst.While)
_LIBRARIES = ("cuda", "triton", "tilecheck")


def read_fills(definition: Definition, parameters: Collection[str]) -> Iterator[Filled]:
    """The parameters that comments say are filled; a name that is none is reported elsewhere."""
    stated = [p for p in kernel_pragmas(definition) if p.kind is PragmaKind.FILLS]
    exact = bool(stated) and is_straight(definition)
    for pragma in stated:
        site = Site(definition.table.file, pragma.argument)
        yield from (Filled(name, site, exact) for name in pragma.arguments if name in parameters)


def is_straight(definition: Definition) -> bool:
    """Whether no loop is left before its end, in the kernel or a function that it calls."""
    todo: list[tuple[cst.FunctionDef, ModuleTable]] = [(definition.node, definition.table)]
    seen = []
    while todo:
        function, table = todo.pop()
        if function in seen:
            continue
        seen.append(function)
        if _leaves_a_loop(function):
            return False
        for node in walk(function.body):
            if isinstance(node, cst.Call):
                head, _, rest = dotted(node.func).partition(".")
                bound = table.bindings.get(head)
                if isinstance(bound, cst.FunctionDef) and head not in table.ambiguous | table.rebound:
                    todo.append((bound, table))
                elif head in table.lost or not _is_known(head, bound, is_method=bool(rest)):
                    return False  # not looked into
    return not definition.enclosing


def _is_known(head: str, bound: object, *, is_method: bool) -> bool:
    """Whether a call is one of a language, of Python itself, or of a method of some value."""
    if isinstance(bound, Import):
        return not bound.level and bound.module.partition(".")[0] in _LIBRARIES
    return bound is None and (is_method or hasattr(builtins, head))


def _leaves_a_loop(function: cst.FunctionDef) -> bool:
    for loop in walk(function.body):
        if isinstance(loop, cst.While):
            return True
        if isinstance(loop, _LOOPS) and has_kind(loop.body, cst.Break, cst.Return):
            return True
    return False
