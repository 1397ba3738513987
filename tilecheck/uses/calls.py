"""Calls: what is launched by them, which functions they hand kernels to, and what they give."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tilecheck.patches.places import last_name, text_of
from tilecheck.uses.scopes import Callee, Scope, callee, parameters, positional
from tilecheck.uses.values import KERNELS, NOT_READ, NOTHING, Kind, Lead, Leads, held, items, of_kind, shown

if TYPE_CHECKING:
    from tilecheck.uses.flow import Flow

_SAME = frozenset(  # what gives a kernel that launches as the one it is given, or gives a decorator that does
    "verified wrap_triton capture_triton jit kernel autotune heuristics partial wraps update_wrapper".split()
)
_LAUNCHERS = frozenset({"launch", "enqueue"})
_KERNEL_UP_TO = 2  # its place among their arguments
_FILLING = frozenset("append add insert extend update setdefault appendleft".split())
_CONTAINERS = frozenset("dict list tuple set frozenset deque zip enumerate sorted reversed iter next".split())
_LOOKING = frozenset(
    "isinstance issubclass hasattr callable print len repr str id type hash bool any all getsource getfile "
    "signature warmup preload".split()
)
_LIBRARY = __name__.partition(".")[0]
_Keywords = Mapping[str | None, Leads]


def call(flow: Flow, node: ast.Call, scope: Scope) -> Leads:
    """What a call may give."""
    function = flow.value(node.func, scope)
    given = [flow.value(one, scope) for one in node.args]
    keywords = {one.arg: flow.value(one.value, scope) for one in node.keywords}
    base = node.func
    by_method = isinstance(base, ast.Call) and last_name(base.func) == "__getitem__"
    if isinstance(base, ast.Call) and by_method:
        function = items(flow.value(base.func, scope))
    item = isinstance(base, ast.Subscript) or by_method
    launched = of_kind(function, Kind.GRIDDED, Kind.HELD) if item else of_kind(function, Kind.GRIDDED)
    if launched:
        flow.use(node, launched, NOT_READ)
        return NOTHING
    found = _looked_up(flow, node, given)
    return _handed(flow, node, given, keywords, scope) if found is None else found


def decorate(flow: Flow, decorator: ast.expr, leads: Leads, scope: Scope) -> None:
    """A decorator is called with the function that it stands above."""
    flow.value(decorator, scope)
    for one in callees(flow, decorator, scope):
        _enter(flow, one, [leads], {}, scope)


def _looked_up(flow: Flow, node: ast.Call, given: Sequence[Leads]) -> Leads | None:
    """A call that gives a module, or something in one."""
    index, file, name = flow.index, flow.file, last_name(node.func)
    if name in ("import_module", "__import__") and node.args and text_of(node.args[0]):
        return index.module(file, text_of(node.args[0]))
    inside = [lead.to.file for leads in given[:1] for lead in of_kind(leads, Kind.MODULE)]
    whole = NOTHING.union(*(index.all_of(module) for module in inside))
    if name == "vars" and len(given) == 1:
        return whole
    if name != "getattr" or len(given) <= 1:
        return None
    key = text_of(node.args[1])
    return NOTHING.union(flow.attribute(given[0], key) if key else held(given[0]) | whole, *given[2:])


def _handed(flow: Flow, node: ast.Call, given: Sequence[Leads], keywords: _Keywords, scope: Scope) -> Leads:
    """A call of something with values that may lead to kernels."""
    name = last_name(node.func)
    passed = of_kind(NOTHING.union(*given, *keywords.values()), *KERNELS, Kind.HELD)
    found = frozenset(Lead(lead.to, Kind.HELD) for lead in of_kind(flow.value(node.func, scope), Kind.GIVEN))
    if not passed:
        return found  # what a function of the project returns, its name leads to
    if _is_checked(flow, node.func):
        flow.use(node, passed, "")
        return found
    entered = list(callees(flow, node.func, scope))
    for one in entered:
        found |= _enter(flow, one, given, keywords, scope)
    if entered:
        return found
    first = node.args[0] if name == "partial" and node.args else None
    if first is not None and last_name(first) not in _LAUNCHERS:
        for one in callees(flow, first, scope):
            _enter(flow, one, given[1:], keywords, scope)
        return passed
    if name in _LAUNCHERS or first is not None:
        kernel = keywords.get("kernel", NOTHING).union(*given[: len(given) if first else _KERNEL_UP_TO + 1])
        flow.use(node, of_kind(kernel, *KERNELS, Kind.HELD), NOT_READ)
        return NOTHING
    if name in _CONTAINERS:
        return shown(passed)
    outer = node.func.func if isinstance(node.func, ast.Call) else node.func
    if last_name(outer) in _SAME:
        return passed
    if name in _FILLING and isinstance(node.func, ast.Attribute):
        flow.hold(node.func.value, passed, scope)
    elif name not in _LOOKING and not _fill_fields(flow, node.func, given, keywords, scope):
        flow.use(node, of_kind(passed, *KERNELS), f"it is handed to `{name or 'a call'}`, which is not read")
    return found


def _is_checked(flow: Flow, node: ast.expr) -> bool:
    """Whether it is a function of the library that checks the launches it makes, if it makes any, when they
    happen; `tilecheck.launch` and `tilecheck.verified` are read as launches themselves."""
    if last_name(node) in ("launch", "verified"):
        parent = node.value if isinstance(node, ast.Attribute) else None
        return isinstance(parent, ast.Name) and f"{_LIBRARY}.host" in flow.index.imported_as(
            flow.file, parent.id
        )
    head = node
    while isinstance(head, ast.Attribute):
        head = head.value
    names = flow.index.imported_as(flow.file, head.id) if isinstance(head, ast.Name) else ()
    return any(name.partition(".")[0] == _LIBRARY for name in names)


# ---- what is called ----------------------------------------------------------------------------------------


def callees(flow: Flow, node: ast.expr, scope: Scope) -> Iterator[Callee]:
    """The functions of the project that a call may enter."""
    match node:
        case ast.Name(id=name):
            home = scope.home(name)
            for function in home.functions.get(name, ()):
                yield callee(flow.file, function, home)
            if name in home.classes:
                made = home.classes[name]
                for function in made.functions.get("__init__", ()):
                    yield callee(flow.file, function, made, made.path)
            elif home is flow.module and name not in home.functions:
                yield from flow.index.callees(flow.file, name)
        case ast.Attribute(value=inner, attr=name):
            modules = of_kind(flow.value(inner, scope), Kind.MODULE)
            elsewhere = [c for lead in modules for c in flow.index.callees(lead.to.file, name)]
            yield from elsewhere
            if not elsewhere:
                for home in flow.classes:
                    for function in home.functions.get(name, ()):
                        yield callee(flow.file, function, home, home.path)
        case ast.Call(func=maker):  # what a function of the project gives, as a factory of decorators
            for one in callees(flow, maker, scope):
                for home in flow.scopes_of(one.node):
                    for name in _returned_names(one.node):
                        for function in home.functions.get(name, ()):
                            yield callee(flow.file, function, home)


def _returned_names(node: ast.AST) -> Iterator[str]:
    for below in ast.walk(node):
        if isinstance(below, ast.Return) and isinstance(below.value, ast.Name):
            yield below.value.id


def _enter(flow: Flow, one: Callee, given: Sequence[Leads], keywords: _Keywords, scope: Scope) -> Leads:
    """Hand values to the parameters of a function; what it returns."""
    node = one.node
    names = positional(node)[1:] if one.is_method else positional(node)
    every = parameters(node)
    pairs = list(zip(names, given, strict=False))
    if node.args.vararg is not None:
        pairs += [(node.args.vararg.arg, held(leads)) for leads in given[len(names) :]]
    for name, leads in keywords.items():
        if name is not None and name in every:
            pairs.append((name, leads))
        else:
            pairs += [(each, held(leads)) for each in every if name is None or node.args.kwarg is not None]
    for name, some in pairs:
        leads = of_kind(some, *KERNELS, Kind.HELD)
        if leads and one.home is not None:
            flow.bind(flow.scope(node, one.home), name, leads)
        elif leads:
            flow.changed |= flow.index.give(one.file, one.path, name, leads)
    return flow.scope(node, one.home).returned if one.home is not None else NOTHING


def _fill_fields(flow: Flow, node: ast.expr, given: Sequence[Leads], keywords: _Keywords, scope: Scope) -> bool:
    """Whether it is a class of the project whose fields take the arguments, as a data class."""
    if not isinstance(node, ast.Name):
        return False
    home = scope.home(node.id)
    made = home.classes.get(node.id)
    kind = made.node if made is not None else flow.index.class_of(flow.file, node.id)
    if not isinstance(kind, ast.ClassDef):
        return False
    fields = [s.target.id for s in kind.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    pairs = [*zip(fields, given, strict=False), *((str(n), v) for n, v in keywords.items() if n in fields)]
    for name, leads in pairs:
        if of_kind(leads, *KERNELS, Kind.HELD):
            flow.set_attribute(name, leads, made or flow.module)
    return bool(fields)
