"""Kernels as they stand in a file: their `def`, their parameters, and the comments attached to them.

A cuTile kernel is decorated as one. In Triton the functions that kernels call carry the same decorator: a
kernel is one that is tuned or launched in its file, or that returns nothing and is called by no other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.kernels.annotations import Annotation, read_annotation
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.pragmas import Pragma
from tilecheck.frontend.text.syntax import walk, walk_kind
from tilecheck.frontend.values.values import START, Array, ArrayList, Choice, Num, Param, Pointer, Token
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.model import Site


@dataclass(frozen=True, slots=True)
class Given:
    """What is said of a kernel outside its source: contracts, and the values of compile-time parameters.

    `named` entries are for one kernel and must fit it; others say nothing of kernels that lack their names.
    `origin` is who says it: config, pack or gate.
    """

    requires: tuple[str, ...]
    constants: tuple[tuple[str, int | bool], ...]
    reason: str | None
    site: Site
    named: bool
    origin: str = "config"


@dataclass(frozen=True, slots=True)
class Definition:
    """A kernel as it stands in a file: its `def`, and the functions that enclose it, outermost first. `same`
    are parameters, each with the one for which launches pass the same tensor, and `floats` those to which every
    launch in view passes one."""

    name: str
    node: cst.FunctionDef
    table: ModuleTable
    enclosing: tuple[cst.FunctionDef, ...]
    language: str = "cutile"
    given: tuple[Given, ...] = ()
    same: tuple[tuple[str, str], ...] = ()
    floats: frozenset[str] = frozenset()


# ---- finding them ---------------------------------------------------------------------------------------


def find_kernels(table: ModuleTable) -> tuple[Definition, ...]:
    """The kernels of a module, in order: decorated, or given to `ct.kernel` or `triton.jit`."""
    found: dict[cst.FunctionDef, Definition] = {}
    wrapped: list[tuple[str, tuple[cst.FunctionDef, ...], str]] = []
    functions: list[tuple[cst.FunctionDef, tuple[cst.FunctionDef, ...]]] = []
    for node, enclosing in table.parsed.index.functions(cst.Call):
        if isinstance(node, cst.FunctionDef):
            functions.append((node, enclosing))
            language = next(filter(None, (_language(table, d.decorator) for d in node.decorators)), "")
            if language:
                found[node] = Definition(node.name.value, node, table, enclosing, language)
        elif node.args and (language := _language(table, node.func)):
            wrapped.append((dotted(node.args[0].value), enclosing, language))
    for name, enclosing, language in wrapped:
        for node, around in functions:
            if node.name.value == name and around == enclosing[: len(around)] and node not in found:
                found[node] = Definition(name, node, table, around, language)
    order = {node: i for i, (node, _) in enumerate(functions)}
    kernels = _without_device_functions(table, list(found.values()))
    return tuple(sorted(kernels, key=lambda d: order[d.node]))


def _without_device_functions(table: ModuleTable, found: list[Definition]) -> list[Definition]:
    """Leave out the Triton functions that only kernels call."""
    jitted = [d for d in found if d.language == "triton"]
    if not jitted:
        return found
    called: set[str] = set()
    for definition in jitted:
        own = _own_names(definition.node)
        for node in walk_kind(definition.node.body, cst.Call, cst.Arg):
            if isinstance(node, cst.Call):
                called.add(dotted(node.func))
            elif isinstance(node.value, cst.Name) and node.value.value not in own:
                called.add(node.value.value)  # the function of a reduction
    launched = {
        dotted(node.func.value) for node in table.nodes(cst.Call) if isinstance(node.func, cst.Subscript)
    }

    def is_kernel(definition: Definition) -> bool:
        if definition.language != "triton" or definition.name in launched:
            return True
        if _returns_a_value(definition.node):
            return False
        return definition.name not in called or len(definition.node.decorators) > 1

    return [definition for definition in found if is_kernel(definition)]


def _own_names(function: cst.FunctionDef) -> set[str]:
    """The names of parameters and local variables."""
    params = function.params
    names = {p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params)}
    targets = walk_kind(function.body, cst.AssignTarget, cst.For, cst.AnnAssign)
    return names | {n.value for t in targets for n in walk_kind(t.target, cst.Name)}


def _returns_a_value(function: cst.FunctionDef) -> bool:
    nested = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
    inner = walk(function.body, lambda n: type(n) not in nested)
    return any(isinstance(node, cst.Return) and node.value is not None for node in inner)


_MOST_ALIASES = 8  # of one decorator: `jit = ct.kernel`


def is_kernel_decorator(table: ModuleTable, node: cst.BaseExpression) -> bool:
    """Whether a decorator makes a kernel, called or not, under whatever name it was imported."""
    return bool(_language(table, node))


_MAKERS = {
    "cuda.tile.kernel": "cutile",
    "cuda.tile._execution.kernel": "cutile",
    "triton.jit": "triton",
    "triton.runtime.jit.jit": "triton",
    "triton.runtime.jit": "triton",
}


# The names of Triton's decorator.
TRITON_MAKERS = frozenset(name for name, language in _MAKERS.items() if language == "triton")


def _language(table: ModuleTable, node: cst.BaseExpression, depth: int = 0) -> str:
    """The language that a decorator makes a kernel of; empty for any other decorator."""
    if isinstance(node, cst.Call):
        first = (
            node.args[0].value if node.args and dotted(node.func).rpartition(".")[2] == "partial" else node.func
        )
        return _language(table, first, depth)
    head, _, rest = dotted(node).partition(".")
    binding = table.bindings.get(head) or table.local_imports.get(head)
    for way in (binding, *table.ways.get(head, ())):  # a kernel wherever the name is the language's
        found = ""
        if isinstance(way, Import):
            found = _MAKERS.get(f"{way.name}.{rest}".rstrip("."), "")
        elif isinstance(way, cst.BaseExpression) and not rest and depth < _MOST_ALIASES:
            found = _language(table, way, depth + 1)
        if found:
            return found
    return ""


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
    for name in definition.floats & found.keys():
        if found[name] == Annotation():  # Triton types what is not annotated by what is passed
            found[name] = Annotation(scalar="float")
    for given in definition.given:
        for name, value in given.constants:
            if name in found and found[name].constant:
                found[name] = replace(found[name], value=value)
            elif name in found and given.named:
                what = f"constant `{name}`, which is no compile-time parameter"
                raise UnsupportedConstruct(what, given.site.span, given.site.file)
    return found


def initial(x: Executor, name: str, annotation: Annotation) -> Any:
    """What a parameter is before the kernel runs.

    That launches pass a constant's value is a premise of its own (`contracts.read_contracts`).
    """
    if annotation.value is not None:
        if isinstance(annotation.value, bool):
            return Num((), E.TRUE if annotation.value else E.FALSE, "bool", None)
        return Num((), E.const(annotation.value), "int", None)
    kind = Kind.CONSTANT if annotation.constant else Kind.SCALAR
    is_tensor = annotation.array and not annotation.constant and x.dialect.has_pointers
    if x.knows("pointers", name) or is_tensor:
        x.pointers.add(name)
        flags = x.knows("flagged", name)
        if flags is not None:  # some flags make it a pointer, and without them it is compared or multiplied
            # The number has a name of its own: what is found of it says nothing of the array's elements.
            return Choice(flags, Pointer(name, START), Param(f"{name} as a number"))
        return Pointer(name, START)
    if x.knows("lists", name) or (annotation.array_list and not annotation.constant):
        return ArrayList(name)
    if annotation.array and not annotation.constant:
        x.arrays.add(name)
        return Array(name)
    if annotation.unmodelled and not annotation.constant:
        return Token(name)
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
