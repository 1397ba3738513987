"""The whole of what one function may run: its own text and that of the project's functions behind its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_guards.frames import Facts, Frame, Text
from tilecheck.frontend.host_guards.kinds import NOTHING, Box, Class, Kind, Pending
from tilecheck.frontend.host_guards.source_facts import ANY_NAME, Store, Texts

if TYPE_CHECKING:
    from tilecheck.frontend.host_programs.kernels import Kernels
    from tilecheck.frontend.modules.project import ModuleTable

ANY, KEYS, RESULT = "any", "keys", "result"
_MOST_FRAMES = 600
_MOST_READINGS = 60


class TooMuch(Exception):
    """More code than is followed."""


@dataclass(slots=True)
class Program:
    """What is known of the functions that an entry may run. Mutable: it grows until it settles.

    Args:
        kernels: which functions are kernels.
        texts: what texts say.
        ordered: functions whose own records say that they leave nothing in flight beside the caller's stream.
        read: reads a function once, from its text.
        express: the kind of an expression of a function.
        enter_all: gives the methods of a class the arguments of callers that are not in view.
    """

    kernels: Kernels
    texts: Texts
    ordered: frozenset[cst.CSTNode]
    read: Callable[[Program, Frame], None]
    express: Callable[[Program, Frame, cst.BaseExpression], Kind]
    enter_all: Callable[[Program, Class], None]
    frames: dict[tuple[Text, Frame | None, bool], Frame] = field(default_factory=dict)
    store: dict[tuple[Any, ...], Kind] = field(default_factory=dict)
    tables: dict[str, ModuleTable] = field(default_factory=dict)
    opened: dict[cst.ClassDef, Class] = field(default_factory=dict)
    whole: set[Frame] = field(default_factory=set)  # modules whose statements run
    resolving: set[tuple[str, str]] = field(default_factory=set)  # names of modules that are being looked up
    replaced: set[str] = field(default_factory=set)  # attributes that code gives objects from outside
    patched: set[str] = field(default_factory=set)  # libraries to whose names code stores
    has_changed: bool = False

    def frame(
        self, node: Text, table: ModuleTable, outer: Frame | None = None, *, is_entered: bool = False
    ) -> Frame:
        """The function of a text, inside another that runs: called, or entered by callers out of view."""
        key = (node, outer, is_entered)
        found = self.frames.get(key)
        if found is None:
            if len(self.frames) >= _MOST_FRAMES:
                raise TooMuch
            self.note(table)
            found = self.frames[key] = Frame(node, table, self.texts.names(node), outer)
            self.has_changed = True
        return found

    def note(self, table: ModuleTable) -> None:
        """Note a file whose text is looked at."""
        if table.file not in self.tables:
            self.tables[table.file] = table
            self.patched |= self.texts.patched(table)
            stores = self.texts.stores(table).items()
            self.replaced.update(n for n, of in stores if any(s.is_bound and s.of is None for s in of))
            self.has_changed = True

    def evaluate(self, frame: Frame, node: cst.BaseExpression) -> Kind:
        """The kind of an expression of a function, such as a default."""
        return self.express(self, frame, node)

    def open(self, classes: Iterable[Class]) -> None:
        """Read all methods of classes whose objects others have made: what they leave in their attributes."""
        for of in classes:
            if of.node not in self.opened:
                self.opened[of.node] = of
                self.has_changed = True

    def settle(self) -> None:
        """Read all functions until nothing more is learned.

        Raises:
            TooMuch: that takes too long.
        """
        for _ in range(_MOST_READINGS):
            self.has_changed = False
            for of in list(self.opened.values()):
                self.enter_all(self, of)
            for frame in list(self.frames.values()):
                frame.facts = Facts()
                self.read(self, frame)
            if not self.has_changed:
                return
        raise TooMuch

    # ---- what is held where ----------------------------------------------------------------------------------

    def add(self, key: tuple[Any, ...], kind: Kind) -> None:
        """Note what may lie in a place."""
        known = self.store.get(key, NOTHING)
        if not kind <= known:
            self.store[key] = known | kind
            self.has_changed = True

    def bind(self, frame: Frame, name: str, kind: Kind) -> None:
        """Note what a variable may hold."""
        known = frame.variables.get(name, NOTHING)
        if not kind <= known:
            frame.variables[name] = known | kind
            self.has_changed = True

    def field(self, of: Class, name: str) -> Kind:
        """What an attribute of the objects of a class may hold."""
        return self.store.get((of.node, name), NOTHING)

    def add_field(self, of: Class, name: str, kind: Kind) -> None:
        self.add((of.node, name), kind)

    def items(self, box: Box) -> Kind:
        """All that a container may hold, keys apart."""
        count = self.store.get((box, "count"), NOTHING)
        found = self.store.get((box, ANY), NOTHING)
        return found.union(*(self.store.get((box, k), NOTHING) for k in range(max(count, default=0))))

    def item(self, box: Box, index: int) -> Kind:
        """What a container may hold at an index from 0."""
        count = max(self.store.get((box, "count"), NOTHING), default=0)
        found = self.store.get((box, ANY), NOTHING)
        return found | self.store.get((box, index), NOTHING) if index < count else self.items(box)

    def keys(self, box: Box) -> Kind:
        return self.store.get((box, KEYS), NOTHING)

    def fill(self, box: Box, kind: Kind, keys: Kind = NOTHING) -> Kind:
        """Note what a container may hold; the container."""
        self.add((box, ANY), kind)
        self.add((box, KEYS), keys)
        return frozenset({box})

    def row(self, box: Box, kinds: Iterable[Kind]) -> Kind:
        """Note what a container holds item by item; the container."""
        listed = list(kinds)
        self.add((box, "count"), frozenset({len(listed)}))
        for index, kind in enumerate(listed):
            self.add((box, index), kind)
        return frozenset({box})

    def result(self, operation: Pending) -> Kind:
        return self.store.get((operation, RESULT), NOTHING)

    def give(self, operation: Pending, result: Kind) -> Kind:
        """Note what an operation may give; the operation."""
        self.add((operation, RESULT), result)
        return frozenset({operation})

    def inside(self, kind: Kind) -> Kind:
        """A value, and all that it holds."""
        found: set[Any] = set()
        todo = list(kind)
        while todo:
            atom = todo.pop()
            if atom in found:
                continue
            found.add(atom)
            if isinstance(atom, Box):
                todo += [*self.items(atom), *self.keys(atom)]
        return frozenset(found)

    # ---- what other code does to attributes ------------------------------------------------------------------

    def stores(self, name: str) -> list[Store]:
        """Where files that were looked at bind or change an attribute of this name (`Texts.stores`)."""
        found = []
        for table in self.tables.values():
            found += [*self.texts.stores(table).get(name, ()), *self.texts.stores(table).get(ANY_NAME, ())]
        return found

    def is_replaced(self, name: str) -> bool:
        """Whether code may give an object or class an attribute of this name from outside."""
        return name in self.replaced or ANY_NAME in self.replaced
