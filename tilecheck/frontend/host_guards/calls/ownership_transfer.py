"""Memory that a function makes and gives to the library for good.

An array of PyTorch or NumPy that is given to `tilecheck.host` has a handle from then on, and the library does
not see what other names of it are used for. So it has to be new, and its only other name unused after that.
"""

from __future__ import annotations

import libcst as cst

from tilecheck.frontend.host_guards.kinds import External, Sort, is_raw
from tilecheck.frontend.host_guards.read.expressions import evaluate
from tilecheck.frontend.host_guards.run import Run
from tilecheck.frontend.host_guards.scopes import is_own, loops_around
from tilecheck.frontend.host_programs.calls.torch_names import ALLOCATORS
from tilecheck.frontend.text.syntax import walk, walk_kind

_TORCH = frozenset(ALLOCATORS - frozenset("as_tensor asarray from_numpy frombuffer".split()))
_NUMPY = frozenset(
    "array zeros ones empty full arange linspace zeros_like ones_like empty_like full_like eye concatenate "
    "stack copy".split()
)
_ASKED = frozenset("shape dtype device ndim size numel nbytes itemsize dim stride element_size".split())


def is_given_away(r: Run, node: cst.BaseExpression, call: cst.CSTNode) -> bool:
    """Whether a call gets new memory, which nothing else names after it."""
    return _is_new(r, node) or (isinstance(node, cst.Name) and _is_last_use(r, node, call))


def _is_new(r: Run, node: cst.BaseExpression) -> bool:
    """Whether an expression makes the arrays in its value."""
    match node:
        case cst.Call(func=func):
            return _makes(r, func, node)
        case cst.Tuple(elements=parts) | cst.List(elements=parts):
            return all(_is_free(r, part.value) and not isinstance(part, cst.StarredElement) for part in parts)
        case cst.Dict(elements=parts):
            return all(isinstance(part, cst.DictElement) and _is_free(r, part.value) for part in parts)
        case cst.ListComp(elt=value) | cst.DictComp(value=value) | cst.GeneratorExp(elt=value):
            return _is_free(r, value)
        case _:
            return False


def _is_free(r: Run, node: cst.BaseExpression) -> bool:
    return _is_new(r, node) or not any(map(is_raw, r.p.inside(evaluate(r, node))))


def _makes(r: Run, func: cst.BaseExpression, call: cst.Call) -> bool:
    """Whether a call makes an array that no other name stands for."""
    kind = evaluate(r, func)
    name = next((atom.name for atom in kind if isinstance(atom, External)), "") if len(kind) == 1 else ""
    head, _, last = name.rpartition(".")
    if any(arg.star or (arg.keyword is not None and arg.keyword.value in ("out", "copy")) for arg in call.args):
        return False  # it may be given the memory
    if head == "torch":
        return last in _TORCH
    if head == "numpy" and last in ("asarray", "ascontiguousarray") and call.args:
        inside = r.p.inside(evaluate(r, call.args[0].value))
        return not any(is_raw(atom) or atom is Sort.UNKNOWN for atom in inside)
    return head == "numpy" and last in _NUMPY


def _is_last_use(r: Run, node: cst.Name, call: cst.CSTNode) -> bool:
    """Whether a variable holds new memory, which nothing else holds, and the call is its last use."""
    frame, name = r.frame, node.value
    if frame.holder(name) is not frame or not isinstance(frame.node, cst.FunctionDef):
        return False
    bound = frame.names.bound[name]
    if len(bound) != 1 or not isinstance(bound[0], cst.AssignTarget):
        return False
    assign = frame.names.parents.get(bound[0])
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1 or not _is_new(r, assign.value):
        return False
    if loops_around(frame.names, assign) != loops_around(frame.names, call):
        return False
    if _inside(frame.node.body, name):
        return False
    start, end = r.table.span(assign).start, r.table.span(call).start
    for use in walk(frame.node.body, is_own):
        if not isinstance(use, cst.Name) or use.value != name or use is node or use is bound[0].target:
            continue
        if _is_only_a_name(frame.names.parents.get(use), use) or _is_deleted(frame.names.parents.get(use)):
            continue
        if not start < r.table.span(use).start < end or not _leaves_nothing(r, use):
            return False
    return True


def _inside(body: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    """The uses of a name by functions inside a function, which may run later."""
    found: list[cst.CSTNode] = []
    for node in walk(body, is_own):
        if not is_own(node):
            found += [part for part in walk_kind(node, cst.Name) if part.value == name]
    return found


def _is_only_a_name(above: cst.CSTNode | None, use: cst.Name) -> bool:
    """Whether a name names an attribute or an argument, no variable."""
    match above:
        case cst.Attribute(attr=attr):
            return attr is use
        case cst.Arg(keyword=keyword):
            return keyword is use
        case _:
            return False


def _is_deleted(above: cst.CSTNode | None) -> bool:
    return isinstance(above, cst.Del)


def _leaves_nothing(r: Run, use: cst.Name) -> bool:
    """Whether a use leaves no other name of the memory: a statement that is a method's call, or a question."""
    parents = r.frame.names.parents
    node: cst.CSTNode = use
    while True:
        above = parents.get(node)
        match above:
            case cst.Attribute(value=value, attr=cst.Name(value=name)) if value is node:
                if name in _ASKED:
                    return True
                node = above
            case cst.Subscript(value=value) if value is node:
                node = above
            case cst.Call(func=func) if func is node:
                node = above
            case cst.Expr():
                return node is not use
            case cst.AssignTarget(target=target) if target is node:
                return isinstance(node, cst.Subscript)
            case _:
                return False
