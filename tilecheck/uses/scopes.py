"""The scopes of a file, and what the names in them may lead to."""

from __future__ import annotations

import ast
from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.patches.places import bound_names
from tilecheck.uses.values import NOTHING, Leads

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(slots=True, eq=False)
class Scope:
    """A module, a class or a function with its names. Mutable: what they may lead to grows."""

    node: ast.AST
    parent: Scope | None
    bound: frozenset[str] | None = None  # None: whatever is asked for, in a module
    leads: dict[str, Leads] = field(default_factory=dict)
    functions: dict[str, list[Function]] = field(default_factory=dict)
    classes: dict[str, Scope] = field(default_factory=dict)
    returned: Leads = NOTHING

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def home(self, name: str) -> Scope:
        """The scope in which a name that is used here is bound: a class has none for what is inside its
        functions."""
        scope: Scope = self
        while scope.parent is not None:
            if (scope is self or not scope.is_class) and (scope.bound is None or name in scope.bound):
                return scope
            scope = scope.parent
        return scope

    @property
    def path(self) -> str:
        """The name under which other files can ask for it: of a function or method; empty if there is none."""
        name = getattr(self.node, "name", "")
        if self.parent is None or not name:
            return ""
        if self.parent.is_class:
            above = self.parent.path
            return f"{above}.{name}" if above else ""
        return name if self.parent.parent is None else ""

    @property
    def around(self) -> ast.ClassDef | None:
        """The class in whose text this is."""
        scope: Scope | None = self
        while scope is not None:
            if isinstance(scope.node, ast.ClassDef):
                return scope.node
            scope = scope.parent
        return None


def names_of(node: ast.AST) -> frozenset[str]:
    """The names that a class or function binds in its own scope."""
    if isinstance(node, ast.Lambda):
        return frozenset(parameters(node)) | bound_names([node.body])
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return frozenset(parameters(node)) | bound_names(node.body)
    return bound_names(node.body) if isinstance(node, ast.ClassDef) else frozenset()


def parameters(function: Function) -> list[str]:
    """Positional ones first, then those that only keywords give, then what takes the rest."""
    a = function.args
    rest = [one.arg for one in (a.vararg, a.kwarg) if one is not None]
    return [*(one.arg for one in (*a.posonlyargs, *a.args, *a.kwonlyargs)), *rest]


def positional(function: Function) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that a call may enter: its file, and its scope where that is the file of the call. A method
    is given the object as its first parameter."""

    file: str
    node: Function
    path: str
    home: Scope | None = None
    is_method: bool = False


def callee(file: str, node: Function, home: Scope | None, owner: str = "") -> Callee:
    static = any(
        isinstance(d, ast.Name) and d.id == "staticmethod" for d in getattr(node, "decorator_list", ())
    )
    name = getattr(node, "name", "")
    return Callee(file, node, f"{owner}.{name}" if owner else name, home, bool(owner) and not static)
