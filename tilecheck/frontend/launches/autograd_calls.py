"""What a module makes of the arguments of an autograd function before it applies it.

`forward` is a function like any other to look at, but where its module pads or reshapes what it hands to
`Function.apply`, its parameters are not whatever a caller likes: code around it decides what they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk_kind

_BINDING = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)


def prepared_inputs(table: ModuleTable, host: cst.FunctionDef) -> tuple[str, ...]:
    """The parameters of a method of an autograd function that the module computes where it applies it.

    Of `forward` these are the ones for which some `Class.apply(...)` passes anything but a literal, or a
    parameter of the function around it as that function got it. Of the other methods, all that was saved.
    """
    for node in table.nodes(cst.ClassDef):
        if any(part is host for part in node.body.body):
            found = tuple(sorted(_computed(table, node)))
            first = next((p.name.value for p in host.params.params), "")
            return found if host.name.value == "forward" or not found else (first,)
    return ()


def _computed(table: ModuleTable, owner: cst.ClassDef) -> set[str]:
    methods = {part.name.value: part for part in owner.body.body if isinstance(part, cst.FunctionDef)}
    if "forward" not in methods or not any(dotted(b.value).split(".")[-1] == "Function" for b in owner.bases):
        return set()
    names = [p.name.value for p in methods["forward"].params.params]
    names = names if "setup_context" in methods else names[1:]  # without the context
    found = set()
    for function, call in _calls(table, f"{owner.name.value}.apply"):
        for name, arg in zip(names, call.args, strict=False):
            if arg.star or not _is_handed_on(function, arg.value):
                found.add(name)
    return found


def _calls(table: ModuleTable, name: str) -> Iterator[tuple[cst.FunctionDef, cst.Call]]:
    """The calls of something, each with every function around it."""
    parents = table.changes.parents
    for call in table.nodes(cst.Call):
        if dotted(call.func) == name:
            node: cst.CSTNode = call
            while node in parents:
                node = parents[node]
                if isinstance(node, cst.FunctionDef):
                    yield node, call


def _is_handed_on(function: cst.FunctionDef, value: cst.BaseExpression) -> bool:
    if not isinstance(value, cst.Name):
        return isinstance(value, cst.BaseNumber | cst.BaseString)
    params = function.params
    given = {p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params)}
    bound = (node.target for node in walk_kind(function.body, *_BINDING))
    names = {part.value for target in bound for part in walk_kind(target, cst.Name)}
    return value.value in {"None", "True", "False"} | (given - names)
