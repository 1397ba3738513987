"""The values that host code computes with, as far as the order of work on the device needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.kernels.definitions import Definition
from tilecheck.frontend.modules.bindings import Import
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host_program import Footprint, Region
from tilecheck.model import Site

Slopes = tuple[tuple[str, Expr], ...]  # by loop: how much a number grows in each round


@dataclass(frozen=True, slots=True)
class Const:
    """A Python constant that is no integer."""

    value: object


NONE = Const(None)


@dataclass(frozen=True, slots=True)
class Number:
    """An integer. `slopes` says how it grows with the rounds of loops; where it is `curved`, it depends on the
    round in another way, and stands for the rounds that are read alone. `origin` tells how it was computed, if
    that is known of a curved one: numbers of one origin are equal."""

    expr: Expr
    slopes: Slopes = ()
    curved: bool = False
    origin: str = ""

    @property
    def value(self) -> int | None:
        return self.expr.value


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the text does not give. Two unknowns of one name are one value.

    What is done with it decides what it is: a tensor, a stream, a number. `given` says that the caller made
    it: a parameter, or a part of one; else `site` is the call of an unknown function that gave it. `plain`
    says that it holds no tensor, stream or graph.
    """

    name: str
    given: bool = True
    plain: bool = False
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A view of memory: the box of elements that it covers.

    `box` has an interval for each leading axis of the memory that is cut (None: all of that axis). `axes` are
    the memory's axes behind the leading axes of the view, and `rest` is the one behind those that follow;
    `rest` is None where a change of shape has mixed them, so that further cuts are not followed. `holes` says
    that some elements of the box are not in the view, and `aliases` are other regions that the value may be
    instead. `host_view` marks an array of the host over the same memory (`t.numpy()`), and `kept` is the name
    under which the program kept the result of a replay. `perhaps` marks what unread code gave: it may be no
    tensor at all.
    """

    memory: str
    box: tuple[tuple[Number, Number] | None, ...] = ()
    axes: tuple[int, ...] = ()
    rest: int | None = 0
    holes: bool = False
    aliases: tuple[Region, ...] = ()
    host_view: bool = False
    kept: str = ""
    perhaps: bool = False

    def mixed(self, *, holes: bool = False) -> Tensor:
        """The same elements under another shape."""
        return replace(self, axes=(), rest=None, holes=self.holes or holes)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Event:
    """An event, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A CUDA graph, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of memory for captures: that of a graph, or a handle that graphs share."""

    name: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a `with` statement enters: `stream`, `graph` or `nothing`, with the values that it was made of."""

    kind: str
    parts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A handle of `tilecheck.host`: the right to write an array, or, if it `is_shared`, to read it. `owner` is
    the exclusive handle that a shared one was made of."""

    tensor: Tensor
    is_shared: bool = False
    owner: Handle | None = None


@dataclass(slots=True, eq=False)
class Operation:
    """An operation of `tilecheck.host`: parts that run one after the other, work, and what follows of the
    result. Mutable: it is used up when it runs, unless it runs once for many (`is_once`)."""

    name: str
    result: Any = NONE
    work: tuple[str, Footprint] | None = None
    taken: list[Handle] = field(default_factory=list)
    parts: list[Operation] = field(default_factory=list)
    follows: tuple[str, Any] | None = None
    is_once: bool = False
    has_run: bool = False


@dataclass(slots=True, eq=False)
class Sequence:
    """A list or a tuple of which all items are known. Mutable, as lists are.

    `count` is the number of items that it has, where those that are read stand for so many.
    """

    items: list[Any]
    is_tuple: bool = False
    count: Expr | None = None


@dataclass(slots=True, eq=False)
class Mapping:
    """A dictionary of which all items are known, by a text for each key. Mutable."""

    items: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Library:
    """A module, class or function of a library, by its full name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """A module of the project, or a member of one. It is not read, but for a kernel that is launched."""

    table: ModuleTable  # which imports it
    binding: Import

    @property
    def name(self) -> str:
        return self.binding.name


@dataclass(slots=True, eq=False, repr=False)
class Scope:
    """The names of one running function, and those of the functions around it. Mutable."""

    table: ModuleTable
    names: dict[str, Any] = field(default_factory=dict)
    outer: Scope | None = None
    function: str = ""
    globals: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)  # nonlocal names

    def find(self, name: str) -> Scope | None:
        """The innermost scope that binds a name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.outer
        return None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function:
    """A function of the project. `owner` is the object that it is a method of."""

    node: cst.FunctionDef | cst.Lambda
    table: ModuleTable
    closure: Scope | None = None
    owner: Any = None

    @property
    def name(self) -> str:
        return "lambda" if isinstance(self.node, cst.Lambda) else self.node.name.value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Class:
    """A class of the project."""

    node: cst.ClassDef
    table: ModuleTable


@dataclass(slots=True, eq=False, repr=False)
class Object:
    """An instance of a class of the project. Mutable, as its attributes are."""

    made_by: Class
    name: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """An object as a base class of its own sees it."""

    owner: Object
    base: Class


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kernel:
    """A kernel of the project."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class Gridded:
    """A kernel with its grid: what `kernel[grid]` gives."""

    kernel: Any
    grid: Any = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that is none of the project's objects."""

    owner: Any
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """`functools.partial(...)` of its arguments: the first is the function."""

    given: Any


@dataclass(frozen=True, slots=True, eq=False)
class Generator:
    """A generator of the project, of which nothing has run. `given` are the arguments of its function."""

    function: Function
    given: Any


@dataclass(frozen=True, slots=True)
class Range:
    """`range(start, stop, step)`."""

    start: Number
    stop: Number
    step: Number


@dataclass(frozen=True, slots=True)
class Slice:
    """`start:stop`, in a subscript or as an object; `holes` where it has a step."""

    start: Any
    stop: Any
    holes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """`enumerate(...)` or `zip(...)` (`kind`) of its arguments."""

    kind: str
    parts: tuple[Any, ...]


Value = Any  # one of the classes of this module


def number(value: int) -> Number:
    return Number(E.const(value))


_DESCRIPTIONS = frozenset(("shape", "dtype", "device"))


def is_description(value: Value) -> bool:
    """Whether the value is an attribute of a tensor that holds none of its memory."""
    return isinstance(value, Method) and isinstance(value.owner, Tensor) and value.name in _DESCRIPTIONS


def contents(value: Value, seen: set[int] | None = None) -> Iterator[Value]:
    """A value and all that it holds, each mutable part once."""
    seen = set() if seen is None else seen
    stack = [value]
    while stack:
        value = stack.pop()
        yield value
        below = _BELOW.get(type(value))
        if below is not None and id(value) not in seen:
            seen.add(id(value))
            stack += below(value)


def _closure(function: Function) -> list[Value]:
    return [part for part in (function.closure, function.owner) if part is not None]


_BELOW: dict[type, Callable[[Any], Iterable[Value]]] = {
    Sequence: lambda value: reversed(value.items),
    Mapping: lambda value: value.items.values(),
    Object: lambda value: value.fields.values(),
    Scope: lambda value: [*value.names.values(), *([] if value.outer is None else [value.outer])],
    Function: _closure,
    Method: lambda value: [] if is_description(value) else [value.owner],
    Gridded: lambda value: [value.kernel],
    Partial: lambda value: value.given.every(),
    Generator: lambda value: [value.function, *value.given.every()],
    Super: lambda value: [value.owner],
    Context: lambda value: value.parts,
    Rounds: lambda value: value.parts,
    Handle: lambda value: [value.tensor, *([] if value.owner is None else [value.owner])],
    Operation: lambda value: [value.result, *value.taken, *value.parts],
}
