"""What the texts of functions and modules say, looked up once for all functions of a file."""

from __future__ import annotations

from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_guards.scopes import Names, changed_targets, is_own, names_of
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk

ANY_NAME = ""
MAKING = ("__init__", "__post_init__", "__new__")
_SETTING = ("setattr", "delattr", "object.__setattr__", "object.__delattr__")


@dataclass(frozen=True, slots=True)
class Store:
    """A place that binds an attribute, or only changes what it holds: of the object of a method of the class
    `of`, or of any object."""

    of: cst.ClassDef | None
    is_bound: bool
    node: cst.CSTNode


Stores = dict[str, list[Store]]


@dataclass(slots=True)
class Texts:
    """A cache. Mutable: filled as texts are looked at.

    `members` are those of classes, and `plain` the classes whose bodies bind nothing else.
    """

    members: dict[cst.ClassDef, dict[str, cst.CSTNode]] = field(default_factory=dict)
    plain: dict[cst.ClassDef, bool] = field(default_factory=dict)
    _names: dict[cst.CSTNode, Names] = field(default_factory=dict)
    _stores: dict[str, Stores] = field(default_factory=dict)
    _patched: dict[str, frozenset[str]] = field(default_factory=dict)

    def names(self, node: cst.FunctionDef | cst.Lambda | cst.Module) -> Names:
        """The names that a function binds."""
        if node not in self._names:
            self._names[node] = names_of(node)
        return self._names[node]

    def stores(self, table: ModuleTable) -> Stores:
        """Where a file binds or changes attributes, by name, but for what the making of an object gives it."""
        if table.file not in self._stores:
            self._stores[table.file] = _stores_of(table)
        return self._stores[table.file]

    def patched(self, table: ModuleTable) -> frozenset[str]:
        """The modules and names of others to whose attributes a file stores, by their first part."""
        if table.file not in self._patched:
            self._patched[table.file] = frozenset(_patched_by(table))
        return self._patched[table.file]


def _patched_by(table: ModuleTable) -> set[str]:
    every = {**table.local_imports, **table.bindings}
    imports = {
        name: b.name.partition(".")[0] for name, b in every.items() if isinstance(b, Import) and not b.level
    }
    found: set[str] = set()
    for node in table.nodes(cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Call):
        target: cst.CSTNode | None = None
        match node:
            case cst.AssignTarget(target=cst.Attribute() as target):
                pass
            case (
                cst.AugAssign(target=cst.Attribute() as target)
                | cst.AnnAssign(target=cst.Attribute() as target)
            ):
                pass
            case cst.Call(func=func, args=[first, *_]) if dotted(func) in _SETTING:
                target = first.value
        head = dotted(target).partition(".")[0] if isinstance(target, cst.BaseExpression) else ""
        found |= {imports[head]} if head in imports else set()
    return found


def _stores_of(table: ModuleTable) -> Stores:
    found: Stores = {}
    # A body, whether it is a class's, the class of whose methods it is, what these call their object, and
    # whether they make that object.
    stack: list[tuple[cst.CSTNode, bool, cst.ClassDef | None, str, bool]] = []
    stack.append((table.parsed.module, False, None, "", False))
    while stack:
        body, is_class, of, owner, is_making = stack.pop()
        for node in walk(body, is_own):
            if isinstance(node, cst.ClassDef):
                stack.append((node.body, True, node, "", False))
            elif isinstance(node, cst.FunctionDef) and is_class:
                stack.append((node.body, False, of, _first(node), node.name.value in MAKING))
            elif isinstance(node, cst.FunctionDef | cst.Lambda):
                stack.append((node.body, False, of, owner, False))
            elif isinstance(node, cst.Call) and dotted(node.func) in _SETTING:
                found.setdefault(_named(node), []).append(Store(None, True, node))
            elif (isinstance(node, cst.Attribute) and node.attr.value == "__dict__") or (
                isinstance(node, cst.Call) and dotted(node.func) == "vars" and node.args
            ):
                found.setdefault(ANY_NAME, []).append(Store(None, True, node))
            for target in changed_targets(node):
                for attribute, is_bound in _attributes(target, is_bound=not isinstance(node, cst.Call)):
                    own = isinstance(attribute.value, cst.Name) and attribute.value.value == owner
                    if not (own and is_making):
                        store = Store(of if own else None, is_bound, node)
                        found.setdefault(attribute.attr.value, []).append(store)
    return found


def _named(call: cst.Call) -> str:
    """The attribute that `setattr` sets."""
    match call.args:
        case [_, cst.Arg(value=cst.SimpleString(evaluated_value=str(name))), *_]:
            return name
        case _:
            return ANY_NAME


def _attributes(target: cst.CSTNode, *, is_bound: bool) -> list[tuple[cst.Attribute, bool]]:
    """The attributes on the way to what is stored, and whether each is bound itself: of `a.b[0].c = 1` the
    attribute `c`; `b` holds what changes."""
    found = []
    while isinstance(target, cst.Subscript | cst.Attribute):
        if isinstance(target, cst.Attribute):
            found.append((target, is_bound))
        is_bound = False
        target = target.value
    return found


def _first(node: cst.FunctionDef) -> str:
    params = [*node.params.posonly_params, *node.params.params]
    decorators = {dotted(d.decorator) for d in node.decorators}
    return params[0].name.value if params and "staticmethod" not in decorators else ""
