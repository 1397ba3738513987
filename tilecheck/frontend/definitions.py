"""Kernels as they stand in a file: their `def`, their parameters, and the comments attached to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.annotations import Annotation, read_annotation
from tilecheck.frontend.executor import Executor
from tilecheck.frontend.modules import Import, ModuleTable, dotted
from tilecheck.frontend.pragmas import Pragma
from tilecheck.frontend.syntax import children
from tilecheck.frontend.values import Array, ArrayList, Num, Param, Token
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol


@dataclass(frozen=True, slots=True)
class Definition:
    """A kernel as it stands in a file: its `def`, and the functions that enclose it, outermost first."""

    name: str
    node: cst.FunctionDef
    table: ModuleTable
    enclosing: tuple[cst.FunctionDef, ...]


# ---- finding them ---------------------------------------------------------------------------------------


def find_kernels(table: ModuleTable) -> tuple[Definition, ...]:
    """The cuTile kernels of a module, in order: decorated functions, and functions given to `ct.kernel`."""
    found: dict[cst.FunctionDef, Definition] = {}
    wrapped: list[tuple[str, tuple[cst.FunctionDef, ...]]] = []
    functions: list[tuple[cst.FunctionDef, tuple[cst.FunctionDef, ...]]] = []
    for node, enclosing in _walk(table.parsed.module, ()):
        if isinstance(node, cst.FunctionDef):
            functions.append((node, enclosing))
            if any(is_kernel_decorator(table, d.decorator) for d in node.decorators):
                found[node] = Definition(node.name.value, node, table, enclosing)
        elif isinstance(node, cst.Call) and is_kernel_decorator(table, node.func) and node.args:
            wrapped.append((dotted(node.args[0].value), enclosing))
    for name, enclosing in wrapped:
        for node, around in functions:
            if node.name.value == name and around == enclosing[: len(around)] and node not in found:
                found[node] = Definition(name, node, table, around)
    order = {node: i for i, (node, _) in enumerate(functions)}
    return tuple(sorted(found.values(), key=lambda d: order[d.node]))


def _walk(
    node: cst.CSTNode, enclosing: tuple[cst.FunctionDef, ...]
) -> Iterator[tuple[cst.CSTNode, tuple[cst.FunctionDef, ...]]]:
    stack = [(node, enclosing)]
    while stack:
        node, enclosing = stack.pop()
        yield node, enclosing
        inner = (*enclosing, node) if isinstance(node, cst.FunctionDef) else enclosing
        stack.extend((child, inner) for child in reversed(children(node)))


_MOST_ALIASES = 8  # of one decorator: `jit = ct.kernel`


def is_kernel_decorator(table: ModuleTable, node: cst.BaseExpression) -> bool:
    """Whether a decorator is `cuda.tile.kernel`, called or not, under whatever name it was imported."""
    return _is_kernel_decorator(table, node, 0)


def _is_kernel_decorator(table: ModuleTable, node: cst.BaseExpression, depth: int) -> bool:
    if isinstance(node, cst.Call):
        first = (
            node.args[0].value if node.args and dotted(node.func).rpartition(".")[2] == "partial" else node.func
        )
        return _is_kernel_decorator(table, first, depth)
    head, _, rest = dotted(node).partition(".")
    binding = table.bindings.get(head) or table.local_imports.get(head)
    if isinstance(binding, cst.BaseExpression) and not rest and depth < _MOST_ALIASES:
        return _is_kernel_decorator(table, binding, depth + 1)
    if not isinstance(binding, Import):
        return False
    module = f"{binding.module}.{binding.member}" if binding.member else binding.module
    return f"{module}.{rest}".rstrip(".") in ("cuda.tile.kernel", "cuda.tile._execution.kernel")


# ---- what stands in them --------------------------------------------------------------------------------


def read_parameters(definition: Definition) -> dict[str, Annotation]:
    """The kernel's parameters in order, with what their annotations say."""
    params = definition.node.params
    if not isinstance(params.star_arg, cst.MaybeSentinel | cst.ParamStar) or params.star_kwarg is not None:
        raise UnsupportedConstruct("`*` parameters of a kernel")
    found = {}
    for p in (*params.posonly_params, *params.params, *params.kwonly_params):
        node = None if p.annotation is None else p.annotation.annotation
        found[p.name.value] = read_annotation(definition.table, node)
    return found


def initial(x: Executor, name: str, annotation: Annotation) -> Any:
    """What a parameter is before the kernel runs."""
    kind = Kind.CONSTANT if annotation.constant else Kind.SCALAR
    if name in x.knowledge.lists or (annotation.array_list and not annotation.constant):
        return ArrayList(name)
    if annotation.array and not annotation.constant:
        x.arrays.add(name)
        return Array(name)
    match annotation.scalar:
        case "int":
            bits = None if annotation.constant else 64 if annotation.wide else 32
            return Num((), E.sym(Symbol(name, kind)), "int", bits)
        case "bool":
            return Num((), E.bool_sym(Symbol(name, kind)), "bool", None)
        case "float" | "str":
            return Token(name)
        case _:
            return Param(name)


def kernel_pragmas(definition: Definition) -> tuple[Pragma, ...]:
    """The pragmas attached to the kernel itself or to a statement inside it."""
    span = definition.table.span(definition.node)
    # Where decorators are, the comment's target starts at the first of them; both lie in the node.
    return tuple(
        p
        for p in definition.table.pragmas
        if p.target.start < span.end and span.start < p.target.end and p.target.end <= span.end + 1
    )
