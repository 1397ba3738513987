"""Which code of a module uses streams, events, graphs, dependent launches or asynchronous copies."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_programs.kernels import Kernels
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import children, has_kind, walk, walk_kind

# A file without any of these words has no such code.
WORDS = re.compile(
    r"\b(?:Stream|ExternalStream|set_stream|default_stream|wait_stream|wait_event|record_stream|record_event|"
    r"CUDAGraph|make_graphed_callables|capture_begin|non_blocking|launch_pdl|programmatic_dependent_launch|"
    r"cuda\.stream|cuda\.graph|replay|tilecheck\.host)\b|"
    r"\.(?:to|cuda|copy_)\([^()\n]*,\s*True\b|from torch\.cuda import|from tilecheck import"
)
_NAMES = frozenset(
    f"torch.cuda.{name}"
    for name in (
        "Stream ExternalStream stream StreamContext set_stream default_stream CUDAGraph graph "
        "make_graphed_callables graph_pool_handle"
    ).split()
) | {"torch.Stream"}
_METHODS = frozenset(
    "wait_stream wait_event record_stream record_event capture_begin capture_end replay".split()
)
_KEYWORDS = frozenset("non_blocking launch_pdl programmatic_dependent_launch".split())
_DEPENDENT = frozenset("launch_pdl programmatic_dependent_launch".split())
_IN_LOOPS = frozenset("record wait synchronize query".split())


_Around = tuple[tuple[cst.FunctionDef, ...], cst.ClassDef | None]


@dataclass(slots=True, eq=False)
class Place:
    """A function of a module, with what is around it."""

    node: cst.FunctionDef
    functions: tuple[cst.FunctionDef, ...]  # around it, outermost first
    made_by: cst.ClassDef | None  # the class whose method it is


@dataclass(slots=True, eq=False)
class Relevance:
    """The functions of a module that use streams, themselves or through helpers. Mutable: filled once."""

    table: ModuleTable
    kernels: Kernels
    places: list[Place] = field(default_factory=list)
    known: dict[cst.CSTNode, bool] = field(default_factory=dict)
    attributes: dict[cst.ClassDef, set[str]] = field(default_factory=dict)
    ordering: dict[cst.CSTNode, bool] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)  # private functions that use them, or call such
    users: set[str] = field(default_factory=set)  # all functions that do
    dependent: set[str] = field(default_factory=set)  # functions that start dependent launches, or call such
    generators: set[str] = field(default_factory=set)  # generator functions that use streams
    called: dict[str, int] = field(default_factory=dict)  # how often each name is called, in the text

    def __post_init__(self) -> None:
        self._collect(set(self.kernels.in_module(self.table)))
        direct = {place.node for place in self.places if self._uses(place.node)}
        helpers = {node.name.value for node in direct if self._is_helper(node)}
        self.helpers = self._closed(helpers, self._is_helper)
        launching = {p.node.name.value for p in self.places if any(map(_is_dependent, walk(p.node)))}
        self.dependent = self._closed(launching, lambda node: True)
        self.generators = {node.name.value for node in direct if _yields(node)}
        self.users = self._closed({node.name.value for node in direct}, lambda node: True)

    def _closed(self, names: set[str], counts: Callable[[cst.FunctionDef], bool]) -> set[str]:
        """The names of functions, and of those that call them."""
        while True:
            callers = (p.node for p in self.places if counts(p.node) and self._calls(p.node, names))
            more = {node.name.value for node in callers} - names
            if not more:
                return names
            names = names | more

    def _collect(self, kernels: set[object]) -> None:
        stack: list[tuple[cst.CSTNode, _Around]] = [(self.table.parsed.module, ((), None))]
        while stack:
            node, (functions, made_by) = stack.pop()
            around: _Around = (functions, made_by)
            if isinstance(node, cst.FunctionDef):
                if node in kernels:
                    continue
                self.places.append(Place(node, functions, made_by))
                around = ((*functions, node), None)
            elif isinstance(node, cst.ClassDef):
                around = (functions, node)
            elif isinstance(node, cst.Call):
                name = _last(node.func)
                self.called[name] = self.called.get(name, 0) + 1
            stack.extend((child, around) for child in reversed(children(node)))

    def _is_helper(self, node: cst.FunctionDef) -> bool:
        """Whether a function is only called by this module: a private one, or one inside another."""
        name = node.name.value
        private = name.startswith("_") and not name.startswith("__")
        nested = any(place.node is node and place.functions for place in self.places)
        return (private or nested or name == "__init__") and name in self.called

    def is_judged_where_called(self, node: cst.FunctionDef) -> bool:
        return self._is_helper(node) and node.name.value != "__init__"

    def _uses(self, node: cst.CSTNode) -> bool:
        return any(self._is_use(part) for part in walk(node))

    def _is_use(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Attribute(attr=cst.Name(value=name)) if name in _METHODS:
                return True
            case cst.Attribute() | cst.Name():
                text = dotted(node)
                full = self.table.full_name(text) if text else ""
                if full == text and isinstance(self.table.local_imports.get(text.partition(".")[0]), Import):
                    head, _, rest = text.partition(".")
                    full = f"{self.table.local_imports[head].name}.{rest}".rstrip(".")
                return full in _NAMES or full.startswith("tilecheck.host")
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _FLAGGED:
                return any(_is_true(arg) for arg in node.args)  # `non_blocking` by its position
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="Stream" | "ExternalStream" | "CUDAGraph"))):
                return True  # of a module that some name stands for
            case cst.SimpleString(evaluated_value=str(text)) if text in _DEPENDENT:
                return True  # of a dictionary of options
            case cst.Arg(keyword=cst.Name(value=name)) if name in _KEYWORDS:
                return not (isinstance(node.value, cst.Name) and node.value.value == "False")
            case _:
                return False

    def _calls(self, node: cst.CSTNode, names: set[str]) -> bool:
        return any(isinstance(part, cst.Call) and _called(part.func) in names for part in walk(node))

    def may_be_called(self, node: cst.FunctionDef, by: Sequence[cst.CSTNode]) -> bool:
        """Whether some of this code, or a helper that it calls, calls a function of this name."""
        seen: set[cst.CSTNode] = set()
        stack = list(by)
        while stack:
            code = stack.pop()
            if code in seen:
                continue
            seen.add(code)
            names = {_last(part.func) for part in walk_kind(code, cst.Call)}
            if node.name.value in names:
                return True
            stack += [p.node for p in self.places if p.node.name.value in names]
        return False

    def is_host(self, node: cst.CSTNode) -> bool:
        """Whether a function uses streams itself, or by a helper that is not judged alone.

        What a dependent launch runs beside is the work of the caller too, and what a generator yields is used
        while it has not ended.
        """
        called = self.helpers | self.dependent | self.generators
        return self._uses(node) or self._calls(node, called)

    def is_relevant(self, node: cst.CSTNode) -> bool:
        """Whether code uses streams, or calls a function of the module that does."""
        if node not in self.known:
            in_loop = isinstance(node, cst.For | cst.While) and any(
                isinstance(part, cst.Attribute) and part.attr.value in _IN_LOOPS for part in walk(node)
            )
            self.known[node] = in_loop or self._uses(node) or self._calls(node, self.users)
        return self.known[node]

    def orders(self, node: cst.CSTNode) -> bool:
        """Whether code does more with streams than to copy or launch on the current one, or to keep memory."""
        if node not in self.ordering:
            self.ordering[node] = self._calls(node, self.users) or any(
                self._is_use(part) for part in walk(node) if not _only_enqueues(part)
            )
        return self.ordering[node]

    def is_set_by_methods(self, made_by: cst.ClassDef, name: str) -> bool:
        """Whether a method that uses streams, which is read, gives objects of a class an attribute."""
        if made_by not in self.attributes:
            methods = [line for line in made_by.body.body if isinstance(line, cst.FunctionDef)]
            found = (self.changed(method) for method in methods if self.is_relevant(method))
            self.attributes[made_by] = set().union(*found)
        return name in self.attributes[made_by]

    def attributes_of(self, method: cst.FunctionDef) -> set[str]:
        """The attributes of `self` that a method names, itself or through private methods."""
        found: set[str] = set()
        stack, seen = [method], {method}
        while stack:
            found |= {name for node in walk(stack.pop().body) if (name := _of_self(node))}
            helpers = [p.node for p in self.places if p.node.name.value in found and p.node not in seen]
            seen.update(helpers)
            stack += helpers
        return found

    def changed(self, method: cst.FunctionDef, seen: frozenset[str] = frozenset()) -> set[str]:
        """The attributes of `self` that a method binds or changes, itself or through private methods."""
        found: set[str] = set()
        for node in walk(method.body):
            match node:
                case (
                    cst.AssignTarget(target=target)
                    | cst.AugAssign(target=target)
                    | cst.AnnAssign(target=target)
                ):
                    several = target.elements if isinstance(target, cst.Tuple | cst.List) else ()
                    found |= {_of_self(target), *(_of_self(element.value) for element in several)}
                case cst.Call(func=cst.Attribute(value=cst.Attribute() as owner, attr=cst.Name(value=name))):
                    found |= {_of_self(owner)} if name in _CHANGING else set()
                case cst.Call(func=cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name))):
                    helpers = [p.node for p in self.places if p.node.name.value == name and name not in seen]
                    for helper in helpers if name.startswith("_") else ():
                        found |= self.changed(helper, seen | {name})
        return found - {""}

    def module_body(self) -> bool:
        """Whether the module's own statements use streams."""

        def own(node: cst.CSTNode) -> bool:
            return not isinstance(node, cst.FunctionDef | cst.ClassDef)

        return any(
            self._is_use(part) or (isinstance(part, cst.Call) and _called(part.func) in self.helpers)
            for part in walk(self.table.parsed.module, own)
        )


_FLAGGED = frozenset("to cuda copy_".split())


def _is_dependent(node: cst.CSTNode) -> bool:
    """Whether this makes a launch dependent, or may."""
    match node:
        case cst.Arg(keyword=cst.Name(value=name), value=value):
            return name in _DEPENDENT and not (isinstance(value, cst.Name) and value.value == "False")
        case _:
            return False


def _is_true(arg: cst.Arg) -> bool:
    return arg.keyword is None and isinstance(arg.value, cst.Name) and arg.value.value == "True"


def _only_enqueues(node: cst.CSTNode) -> bool:
    is_copy = isinstance(node, cst.Call) and _last(node.func) in _FLAGGED
    return (
        is_copy
        or isinstance(node, cst.Arg)
        or (isinstance(node, cst.Attribute) and node.attr.value == "record_stream")
    )


_CHANGING = frozenset("append extend pop popleft insert clear update setdefault add remove appendleft".split())


def _of_self(node: cst.CSTNode) -> str:
    """The attribute of `self` that an assignment changes: itself, or an item of it."""
    while isinstance(node, cst.Subscript):
        node = node.value
    match node:
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
            return name
        case _:
            return ""


def _yields(node: cst.FunctionDef) -> bool:
    return not node.decorators and has_kind(node.body, cst.Yield)


def _called(node: cst.BaseExpression) -> str:
    """The name of a function that a call names itself, or as a method of its own object."""
    match node:
        case (
            cst.Name(value=name)
            | cst.Attribute(value=cst.Name(value="self" | "cls"), attr=cst.Name(value=name))
        ):
            return name
        case _:
            return ""


def _last(node: cst.CSTNode) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
        case _:
            return ""
