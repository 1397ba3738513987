"""What module-level expressions make: values that nothing can change, containers of such values, or others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.text.syntax import walk, walk_kind

# Libraries whose functions change no list, dictionary or object of a module that they are given.
LIBRARIES = frozenset("torch triton tilelang cuda numpy math itertools typing os logging packaging".split())

_MAKE_FIXED = frozenset(
    "int float bool str len round abs range object type frozenset isinstance hasattr".split()
)
_OF_FIXED = frozenset("tuple min max sum".split())  # fixed if all of their arguments are
_OF_FLAT = frozenset("list set sorted dict reversed enumerate zip".split())
_FROZEN_BASES = frozenset("NamedTuple Enum IntEnum StrEnum Flag IntFlag".split())


def head_of(node: cst.CSTNode) -> str:
    """`a` of `a.b.c[0]`; empty for what does not begin with a name."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def last_of(node: cst.CSTNode) -> str:
    """`c` of `a.b.c`; empty for what is no dotted name."""
    return _path(node).rpartition(".")[2]


def _path(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        left = _path(node.value)
        return f"{left}.{node.attr.value}" if left else ""
    return node.value if isinstance(node, cst.Name) else ""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The names of a module: the nodes that each may be bound to, and the full names of imports.

    The full name of a relative import begins with a dot.
    """

    bound: Mapping[str, tuple[cst.CSTNode, ...]]
    imports: Mapping[str, str]
    _known: dict[tuple[cst.CSTNode, frozenset[str], bool], bool] = field(default_factory=dict)

    def is_bound(self, name: str) -> bool:
        return name in self.bound or name in self.imports

    def is_class(self, name: str) -> bool:
        ways = self.bound.get(name, ())
        return bool(ways) and all(isinstance(way, cst.ClassDef) for way in ways)

    def has_method(self, name: str, method: str) -> bool:
        """Whether `name` is a class of the module, or an object of one, that itself defines a method."""
        for way in self.bound.get(name, ()):
            if isinstance(way, cst.Call) and isinstance(way.func, cst.Name) and self.is_class(way.func.value):
                return self.has_method(way.func.value, method)
            if not isinstance(way, cst.ClassDef):
                return False
            if not any(isinstance(s, cst.FunctionDef) and s.name.value == method for s in way.body.body):
                return False
        return name in self.bound

    def full_name(self, node: cst.CSTNode) -> str:
        head, dot, rest = _path(node).partition(".")
        return f"{self.imports[head]}{dot}{rest}" if head in self.imports else ""

    def library(self, node: cst.CSTNode) -> str:
        """The library that a dotted name is of; empty for any other name."""
        root = self.full_name(node).partition(".")[0]
        return root if root in LIBRARIES else ""

    def is_fixed(self, node: cst.CSTNode, own: frozenset[str] = frozenset()) -> bool:
        """Whether nothing can change what an expression gives; `own` are names of such values. What an import
        gives is counted in: see `ModuleTable.changes_imported`."""
        key = (node, own, True)
        if key not in self._known:
            self._known[key] = False  # for a name that is bound through itself
            self._known[key] = self._is_fixed(node, own)
        return self._known[key]

    def _is_fixed(self, node: cst.CSTNode, own: frozenset[str]) -> bool:
        def fixed(part: cst.CSTNode) -> bool:
            return self.is_fixed(part, own)

        match node:
            case (
                cst.Integer() | cst.Float() | cst.Imaginary() | cst.Lambda() | cst.Comparison() | cst.Ellipsis()
            ):
                return True
            case cst.SimpleString() | cst.ConcatenatedString() | cst.FormattedString() | cst.UnaryOperation():
                return True
            case cst.BinaryOperation() | cst.BooleanOperation():
                return fixed(node.left) and fixed(node.right)
            case cst.IfExp():
                return fixed(node.body) and fixed(node.orelse)
            case cst.Tuple():
                return all(not isinstance(e, cst.StarredElement) and fixed(e.value) for e in node.elements)
            case cst.NamedExpr():
                return fixed(node.value)
            case cst.FunctionDef():
                return True
            case cst.Name(value):
                if value in own or value in self.imports or value in ("None", "True", "False"):
                    return True
                ways = self.bound.get(value, ())
                return bool(ways) and all(map(fixed, ways))
            case cst.Attribute():
                return fixed(node.value) or self._is_field(node, own)
            case cst.Subscript():
                item = all(isinstance(part.slice, cst.Index) for part in node.slice)
                return head_of(node) in self.imports or (item and self.is_flat(node.value, own))
            case cst.Call():
                return self._makes_fixed(node, own)
        return False

    def item_is_fixed(self, node: cst.Subscript) -> bool:
        """Whether nothing can change the item of a display that has a name, such as `PAIR[0]`."""
        match node:
            case cst.Subscript(
                value=cst.Name(value),
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer() as place))],
            ):
                ways = self.bound.get(value, ())
                return bool(ways) and all(self._holds_fixed(way, place.evaluated_value) for way in ways)
        return False

    def _holds_fixed(self, display: cst.CSTNode, place: int) -> bool:
        if not isinstance(display, cst.Tuple | cst.List) or place >= len(display.elements):
            return False
        before = display.elements[: place + 1]
        return all(isinstance(e, cst.Element) for e in before) and self.is_fixed(before[place].value)

    def is_flat(self, node: cst.CSTNode, own: frozenset[str] = frozenset()) -> bool:
        """Whether all items, or fields of a class, are values that nothing can change."""
        key = (node, own, False)
        if key not in self._known:
            self._known[key] = False  # for a name that is bound through itself
            self._known[key] = self._is_flat(node, own)
        return self._known[key]

    def _is_flat(self, node: cst.CSTNode, own: frozenset[str]) -> bool:
        def flat(part: cst.CSTNode) -> bool:
            return self.is_flat(part, own)

        match node:
            case cst.List() | cst.Set() | cst.Tuple():
                return all(
                    flat(e.value) if isinstance(e, cst.StarredElement) else self.is_fixed(e.value, own)
                    for e in node.elements
                )
            case cst.Dict():
                return all(
                    self.is_fixed(e.value, own) if isinstance(e, cst.DictElement) else flat(e.value)
                    for e in node.elements
                )
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
                names, loop = own, node.for_in
                while True:
                    if not self.is_flat(loop.iter, names):
                        return False
                    names |= {n.value for n in walk_kind(loop.target, cst.Name)}
                    if loop.inner_for_in is None:
                        break
                    loop = loop.inner_for_in
                item = node.value if isinstance(node, cst.DictComp) else node.elt
                return self.is_fixed(item, names)
            case cst.BinaryOperation():
                return all(flat(part) or self.is_fixed(part, own) for part in (node.left, node.right))
            case cst.IfExp():
                return flat(node.body) and flat(node.orelse)
            case cst.Name(value):
                ways = self.bound.get(value, ())
                return bool(ways) and value not in own and all(map(flat, ways))
            case cst.ClassDef():
                return all(
                    self.is_fixed(n.value, own)
                    for n in walk(node.body, lambda n: not isinstance(n, cst.FunctionDef))
                    if isinstance(n, cst.Assign | cst.AnnAssign) and n.value is not None
                )
            case cst.Call(func=cst.Name("range")):
                return True
            case cst.Call(func=cst.Name(value)) if value in _OF_FLAT and not self.is_bound(value):
                return all(flat(arg.value) or self.is_fixed(arg.value, own) for arg in node.args)
            case cst.Call() if self.full_name(node.func) == "itertools.product":
                return all(flat(a.value) or self.is_fixed(a.value, own) for a in node.args)
            case cst.SimpleString():
                return True
        return False

    def _is_field(self, node: cst.Attribute, own: frozenset[str]) -> bool:
        ways = self.bound.get(node.value.value, ()) if isinstance(node.value, cst.Name) else ()
        return bool(ways) and all(isinstance(w, cst.ClassDef) and self.is_flat(w, own) for w in ways)

    def _makes_fixed(self, node: cst.Call, own: frozenset[str]) -> bool:
        of_fixed = all(self.is_fixed(arg.value, own) for arg in node.args)
        of_flat = all(self.is_fixed(a.value, own) or self.is_flat(a.value, own) for a in node.args)
        if isinstance(node.func, cst.Name) and not self.is_bound(node.func.value):
            name = node.func.value
            return name in _MAKE_FIXED or (name in _OF_FIXED and of_flat)
        if isinstance(node.func, cst.Name) and self.is_class(node.func.value):
            return of_fixed and all(map(self._is_frozen, self.bound[node.func.value]))
        full = self.full_name(node.func)
        if full.startswith("triton.") and full.endswith(".constexpr"):
            return True
        if full.startswith("itertools."):
            return False
        return self.library(node.func) != "" and (of_fixed or not full.startswith("triton."))

    def _is_frozen(self, node: cst.CSTNode) -> bool:
        """Whether objects of a class cannot be changed: named tuples, members of enums, frozen dataclasses."""
        if not isinstance(node, cst.ClassDef) or not self.is_flat(node):
            return False
        if any(last_of(base.value) in _FROZEN_BASES for base in node.bases):
            return True
        return any(
            isinstance(d.decorator, cst.Call)
            and self.full_name(d.decorator.func) == "dataclasses.dataclass"
            and any(
                a.keyword is not None
                and a.keyword.value == "frozen"
                and isinstance(a.value, cst.Name)
                and a.value.value == "True"
                for a in d.decorator.args
            )
            for d in node.decorators
        )
