"""Places that a file names in other modules, and what its code does there."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from dataclasses import replace

from tilecheck.dataclass import dataclass

DICT = "__dict__"


class Root(enum.Enum):
    """Where the path of a place begins."""

    ABSOLUTE = "absolute"  # as after `import`
    RELATIVE = "relative"  # in the package that the level names, as after `from .`
    OWN = "own"  # in the file itself
    ANY = "any"  # in a module that the text does not tell


@dataclass(frozen=True, slots=True)
class Place:
    """A module, or something in one, as a path of names from a root."""

    root: Root
    path: tuple[str, ...] = ()
    level: int = 0

    def below(self, *names: str) -> Place:
        return replace(self, path=(*self.path, *names))

    @property
    def above(self) -> Place:
        return replace(self, path=self.path[:-1])

    @property
    def is_dictionary(self) -> bool:
        """Whether it is the dictionary of the names of a module."""
        return self.path[-1:] == (DICT,)


class Effect(enum.Enum):
    """What is done at a place."""

    BINDS = "binds"  # the name that ends the path is bound anew
    CHANGES = "changes"  # an object is changed
    HANDS_ON = "hands on"  # a module is given to code that may bind any of its names


@dataclass(frozen=True, slots=True)
class Event:
    """One effect of a file. A path that ends with an empty name stands for any name."""

    place: Place
    effect: Effect


MODULES = Place(Root.ABSOLUTE, ("sys", "modules"))
ANY = Place(Root.ANY)
OWN = Place(Root.OWN)


def named(text: str) -> Place:
    """The place of a dotted name as `import_module` takes it."""
    level = len(text) - len(text.lstrip("."))
    path = tuple(part for part in text.split(".") if part)
    if text == "__main__":
        return ANY
    return Place(Root.RELATIVE, path, level) if level else Place(Root.ABSOLUTE, path)


def of_key(key: ast.expr | None) -> Place:
    """The module that a key of `sys.modules`, or the argument of `import_module`, names."""
    text = text_of(key)
    if text:
        return named(text)
    return OWN if isinstance(key, ast.Name) and key.id == "__name__" else ANY


def text_of(node: ast.expr | None) -> str:
    """A text literal; empty for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`; empty for what is no name or attribute."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def imported(node: ast.Import | ast.ImportFrom) -> list[tuple[str, Place]]:
    """The names that an import binds, with their places; `*` stands for all."""
    found: list[tuple[str, Place]] = []
    for alias in node.names:
        path = tuple(alias.name.split("."))
        if isinstance(node, ast.Import):
            found.append(
                (alias.asname, Place(Root.ABSOLUTE, path)) if alias.asname else (path[0], named(path[0]))
            )
        else:
            start = Place(Root.RELATIVE if node.level else Root.ABSOLUTE, level=node.level)
            whole = start.below(*(part for part in (node.module or "").split(".") if part), alias.name)
            found.append((alias.asname or alias.name, whole))
    return found


def bound_names(scope: Sequence[ast.AST]) -> frozenset[str]:
    """The names that a piece of code binds in its own scope; those of comprehensions are counted in."""
    found: set[str] = set()
    elsewhere: set[str] = set()
    stack = list(scope)
    while stack:
        node = stack.pop()
        if type(node) in _BINDING:  # few are: the test costs less than the patterns
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                    continue
                case ast.Lambda():
                    continue
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    found.add(name)
                case ast.Import() | ast.ImportFrom():
                    found.update(name for name, _ in imported(node))
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    elsewhere.update(names)
                case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                    found.add(name)
        if type(node) not in _LEAVES:
            for name in node._fields:  # `ast.iter_child_nodes` takes several times as long
                value = getattr(node, name, None)
                if type(value) is list:
                    stack += [item for item in value if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    stack.append(value)
    return frozenset(found - elsewhere)


_BINDING = frozenset(
    (
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Name, ast.Import),
        *(ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ExceptHandler, ast.MatchAs),
    )
)
_LEAVES = frozenset((ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del))
