"""Fields of an object, by the text of its class: which may hold one tensor, and which hold a number that is
handed in.

A method is executed with an object of which nothing is known: `self.a` and `self.b` are two inputs. Where the
class assigns both from one variable, or one from the other, they may be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations

import libcst as cst

from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk, walk_kind


def class_around(table: ModuleTable, function: cst.FunctionDef) -> cst.ClassDef | None:
    """The class that a method belongs to; None for a function of no class, or without an object."""
    if not _owner(function):
        return None
    return next((c for c in _classes(table) if any(n is function for n in walk(c.body))), None)


def shared_fields(around: cst.ClassDef, method: cst.FunctionDef, *, calls: bool) -> dict[str, frozenset[str]]:
    """For each field of a method's object, the others that may hold the same tensor; with `calls` because a
    function may give back what it is given, else because the text assigns it."""
    owner = _owner(method)
    made_of: dict[str, set[str]] = {}
    for function in _methods(around):
        for names, value in _stores(function):
            sources = {*names, *(_sources(value, function) if calls else _views(value, function))}
            for name in names:
                made_of.setdefault(name, set()).update(sources)
    found: dict[str, set[str]] = {}
    for one, other in permutations(made_of, 2):
        if made_of[one] & made_of[other]:
            found.setdefault(f"{owner}.{one}", set()).add(f"{owner}.{other}")
    return {name: frozenset(others) for name, others in found.items()}


def given_fields(table: ModuleTable, around: cst.ClassDef, method: cst.FunctionDef) -> frozenset[str]:
    """The fields of a method's object that hold what whoever made the object handed in.

    The class stores each of them once: in `__init__`, from a parameter (`self.stride = stride`) of which it
    asks nothing. One that it tests is left out: it may turn away what breaks a launch.
    """
    makers = [f for f in _methods(around) if f.name.value == "__init__"]
    if len(makers) != 1 or makers[0] is method:
        return frozenset()
    (maker,) = makers
    pairs = [pair for node in walk_kind(maker.body, cst.Assign) for pair in _pairs(node)]
    asked = {name for node in walk(maker.body) for name in _asked(table, node)}
    params = {p.name.value for p in (*maker.params.params, *maker.params.kwonly_params)}
    handed_in = params - asked - {n.value for t in _targets(maker.body) for n in _variables_in(t)}
    given = {_field(t, _owner(maker)) for t, v in pairs if isinstance(v, cst.Name) and v.value in handed_in}
    given -= {*asked, *(f.name.value for f in _methods(around))}
    if not given:
        return frozenset()
    stores = Counter(_stored(table.parsed.module))
    for other in _unrelated(table, around):
        stores -= Counter(field for f in _methods(other) for field in _stored(f.body, _owner(f)))
    return frozenset(f"{_owner(method)}.{f}" for f in given if stores[f] == 1)


def _pairs(node: cst.Assign) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Each target of an assignment with its value: of `a, b = c, d` two, of what is not taken apart none."""
    for target in (t.target for t in node.targets):
        match target, node.value:
            case cst.Tuple(elements=targets), cst.Tuple(elements=values) if len(targets) == len(values):
                yield from ((t.value, v.value) for t, v in zip(targets, values, strict=True))
            case _:
                yield target, node.value


def _asked(table: ModuleTable, node: cst.CSTNode) -> Iterator[str]:
    """The names of which a node asks something, or which it hands to code that may ask."""
    match node:
        case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) | cst.Assert(test=test):
            yield from (n.value for n in walk_kind(test, cst.Name))
        case cst.Call() if (table.full_name(dotted(node.func)) or "").startswith("torch."):
            pass
        case cst.Comparison() | cst.BooleanOperation() | cst.Match() | cst.Del() | cst.Call():
            yield from (n.value for n in walk_kind(node, cst.Name))


def _targets(tree: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What the statements of a piece of code store into."""
    kinds = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.Del, cst.NamedExpr)
    yield from (n.target for n in walk_kind(tree, *kinds))
    yield from (n.name for n in walk_kind(tree, cst.AsName))


def _stored(tree: cst.CSTNode, owner: str = "") -> Iterator[str]:
    """The names of the attributes that a piece of code stores: of any object, or of one alone."""
    for target in _targets(tree):
        yield from (a.attr.value for a in walk_kind(target, cst.Attribute) if not owner or _field(a, owner))


def _unrelated(table: ModuleTable, around: cst.ClassDef) -> Iterator[cst.ClassDef]:
    """The classes of a module whose objects are none of a class, as far as the module says."""
    heirs, before = {around.name.value}, 0
    while len(heirs) > before:
        before = len(heirs)
        heirs |= {c.name.value for c in _classes(table) if any(dotted(b.value) in heirs for b in c.bases)}
    return (c for c in _classes(table) if c.name.value not in heirs)


def _variables_in(target: cst.CSTNode) -> Iterator[cst.Name]:
    members = {id(n.attr) for n in walk_kind(target, cst.Attribute)}
    yield from (n for n in walk_kind(target, cst.Name) if id(n) not in members)


def _classes(table: ModuleTable) -> Iterator[cst.ClassDef]:
    return table.nodes(cst.ClassDef)


def _methods(around: cst.ClassDef) -> Iterator[cst.FunctionDef]:
    return (s for s in around.body.body if isinstance(s, cst.FunctionDef))


def _stores(function: cst.FunctionDef) -> Iterator[tuple[list[str], cst.BaseExpression]]:
    """The fields that one statement assigns, with the value, and the buffers that a module registers."""
    owner = _owner(function)
    for node in walk_kind(function.body, cst.Assign, cst.AnnAssign, cst.Call):
        match node:
            case cst.Assign(targets=targets, value=value):
                names = [f for t in targets if (f := _field(t.target, owner))]
                if names:
                    yield names, value
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value) if _field(target, owner):
                yield [_field(target, owner)], value
            case cst.Call(args=[cst.Arg(value=cst.SimpleString() as name), cst.Arg(value=value), *_]) if dotted(
                node.func
            ) in (f"{owner}.register_buffer", f"{owner}.register_parameter"):
                yield [str(name.raw_value)], value


def _owner(function: cst.FunctionDef) -> str:
    params = (*function.params.posonly_params, *function.params.params)
    return params[0].name.value if params else ""


def _field(target: cst.BaseExpression, owner: str) -> str:
    """The field of the object that a target assigns; empty if it assigns none."""
    text = dotted(target)
    head, _, field = text.partition(".")
    return field if owner and head == owner and field and "." not in field else ""


def _sources(value: cst.BaseExpression, function: cst.FunctionDef) -> set[str]:
    """The fields and variables whose tensor a value may be: all that stand in it, as functions may give back
    what they are given."""
    owner = _owner(function)
    members = {id(n.attr) for n in walk_kind(value, cst.Attribute)}
    found: set[str] = set()
    for node in walk(value):
        match node:
            case cst.Attribute() if _field(node, owner):
                found.add(_field(node, owner))
            case cst.Name(name) if name != owner and id(node) not in members:
                found.add(f"{function.name.value}:{name}")
    called = {dotted(n.func).partition(".")[0] for n in walk_kind(value, cst.Call)}
    sized = {n.value for call in walk_kind(value, cst.Call) for n in _sizes(call)}
    return {s for s in found if s.rpartition(":")[2] not in called | sized}


def _views(value: cst.BaseExpression, function: cst.FunctionDef) -> set[str]:
    """The field or variable that a value is, or is a view of: `x[0].view(n)`."""
    node, owner = value, _owner(function)
    while True:
        match node:
            case cst.Attribute() if _field(node, owner):
                return {_field(node, owner)}
            case cst.Attribute(value=inner) | cst.Subscript(value=inner):
                node = inner
            case cst.Call(func=cst.Attribute(value=inner)):
                node = inner
            case cst.Name(name) if name in _variables(function):
                return {f"{function.name.value}:{name}"}
            case _:
                return set()


def _variables(function: cst.FunctionDef) -> set[str]:
    """The parameters of a method, but for its object, and the variables that it assigns."""
    params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
    targets = (n.target for n in walk_kind(function.body, cst.AssignTarget))
    names = {p.name.value for p in params} | {t.value for t in targets if isinstance(t, cst.Name)}
    return names - {_owner(function)}


def _sizes(call: cst.Call) -> Iterator[cst.Name]:
    """The names among the arguments of an allocation of torch: numbers and types."""
    if dotted(call.func).rpartition(".")[2] in ("empty", "zeros", "ones", "full", "rand", "randn", "arange"):
        for arg in call.args:
            yield from walk_kind(arg, cst.Name)
