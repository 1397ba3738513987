"""Module-level names of the files of a project, resolved from text alone.

A module is never imported or run. Names are bound to syntax and evaluated on demand. A name that is bound more
than one way (in an `if`, a `try`, or a loop) is ambiguous; where it is certainly one of what these bind, it is
each of them, under a condition of its own. What is changed where this reading does not follow it (by a
function's `global`, through an attribute, an item, a method or another name) is not known, and using it is
unsupported.
"""

from __future__ import annotations

import builtins
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.frontend.modules.bindings import Binding, Element, Import, dotted, is_language
from tilecheck.frontend.modules.bound_names import bind_all
from tilecheck.frontend.modules.mutability import Kinds, last_of
from tilecheck.frontend.modules.mutations import Changes
from tilecheck.frontend.text.pragmas import Pragma, PragmaKind, read_pragmas
from tilecheck.frontend.text.source import ParsedModule, load, parse
from tilecheck.frontend.text.syntax import walk_kind
from tilecheck.ir.kernel import UnsafeBlock
from tilecheck.model import Site, Span
from tilecheck.overlay import is_file
from tilecheck.patches.patched import Patches
from tilecheck.text import Source

_ASSIGNED = re.compile(r"\.value\b|setattr")
_KNOWN = frozenset(
    {"tilecheck", "torch", "triton", "cuda", "numpy", "cupy"}
)  # libraries whose meaning is built in
_LONGEST_TEXT = 60  # characters
_Node = TypeVar("_Node", bound=cst.CSTNode)
_REPLACED = re.compile(r"\.__(?:code|defaults|kwdefaults)__\b")


@dataclass(slots=True, eq=False)
class ModuleTable:
    """The names that one module binds at its top level. Mutable: filled once, by `bind_all`."""

    parsed: ParsedModule
    project: Project
    bindings: dict[str, Binding] = field(default_factory=dict)
    ambiguous: set[str] = field(default_factory=set)
    ways: dict[str, tuple[Binding, ...]] = field(default_factory=dict)  # what an ambiguous name may be bound to
    lost: set[str] = field(default_factory=set)  # ambiguous names that may hold something else
    stood_in: set[str] = field(default_factory=set)  # settled names: host code may find what stands in for them
    rebound: set[str] = field(default_factory=set)  # bound more than once: what module code saw is not known
    # All that was ever bound to a name, with the statements; None where that is not known.
    history: dict[str, list[tuple[Binding | None, cst.CSTNode | None]]] = field(default_factory=dict)
    stars: list[ModuleTable | None] = field(default_factory=list)  # of `from m import *`; None: not found
    filled: bool = False  # all statements are read
    local_imports: dict[str, Import] = field(default_factory=dict)  # those inside functions
    pragmas: tuple[Pragma, ...] = ()
    changed: set[str] = field(default_factory=set)  # what holds a value, or a tuner, that other code changes
    _kinds: Kinds | None = None
    _changes: Changes | None = None
    _changes_elsewhere: dict[str, bool] = field(default_factory=dict)

    def nodes(self, *kinds: type[_Node]) -> Iterator[_Node]:
        """All nodes of the module that are of these types, which have no subclasses, parents first."""
        return walk_kind(self.parsed.module, *kinds)

    @property
    def kinds(self) -> Kinds:
        if self._kinds is None:
            bound = {name: self._values(name) for name, b in self.bindings.items() if not isinstance(b, Import)}
            every = {**self.local_imports, **self.bindings}
            imports = {n: "." * b.level + b.name for n, b in every.items() if isinstance(b, Import)}
            self._kinds = Kinds(bound, imports)
        return self._kinds

    @property
    def changes(self) -> Changes:
        if self._changes is None:
            self._changes = Changes(self.parsed.module, self.kinds)
        return self._changes

    def read_anew(self) -> None:
        """Forget what was read of the module while not all of its names were bound."""
        self._kinds = self._changes = None
        self._changes_elsewhere.clear()

    def _values(self, name: str) -> tuple[cst.CSTNode, ...]:
        """The syntax of what `name` may be bound to."""
        every = (*self.ways.get(name, ()), self.bindings[name])
        return tuple(b.value if isinstance(b, Element) else b for b in every if not isinstance(b, Import))

    def may_change(self, name: str) -> bool:
        """Whether code of this module changes what it binds to `name`."""
        ways = self._values(name)
        if all(isinstance(way, cst.FunctionDef) for way in ways):  # changed is what a tuner around it is given
            return any(map(_is_tuned, ways)) and self.changes.is_changed(name, flat=False)
        if all(map(self.kinds.is_fixed, ways)) and not self._changes_constants(ways):
            return False
        return self.changes.is_changed(name, flat=all(map(self.kinds.is_flat, ways)))

    def _changes_constants(self, ways: tuple[cst.CSTNode, ...]) -> bool:
        """Whether code may assign to what a `constexpr` object holds, under whatever name."""
        made = (way for way in ways if isinstance(way, cst.Call))
        if not any(last_of(way.func) == "constexpr" for way in made):
            return False
        if not _may_assign_values(self.parsed.words):
            return False
        c = self.changes
        if "setattr" in c.uses or "__setattr__" in c.uses:
            return True
        above = [c.parents[use] for use in c.uses.get("value", ())]
        return any(isinstance(node, cst.Attribute) and c.is_stored(node) for node in above)

    def changes_imported(self, path: str, binding: Import, found: ModuleTable) -> bool:
        """Whether code of this module changes what it imports as `path` from a module that is found."""
        if path not in self._changes_elsewhere:
            name = binding.member or ""
            values = found._values(name) if name in found.bindings else ()
            changed = self.changes.path_is_changed(path, fixed=all(map(found.kinds.is_fixed, values)))
            if not changed and any(map(_is_tuned, values)):
                changed = self.changes.path_is_changed(f"{path}.configs", fixed=False)
            self._changes_elsewhere[path] = changed
        return self._changes_elsewhere[path]

    def changes_member(self, node: cst.Attribute, found: ModuleTable) -> bool:
        """Whether code of this module changes `module.member` of a module that it imports."""
        path = dotted(node)
        return bool(path) and self.changes_imported(path, Import("", node.attr.value), found)

    def origin(self, name: str, *, imports: int = 4) -> tuple[ModuleTable, Binding] | None:
        """The one binding of a name, and the module of the project that it stands in, over so many imports;
        None where it is not known."""
        binding = self.bindings.get(name)
        if binding is None or name in self.ambiguous or name in self.lost:
            return None
        if not isinstance(binding, Import):
            return self, binding
        if binding.member is None or not imports:
            return None
        found = self.project.find(Import(binding.module, None, binding.level), self.file)
        if found is None or self.changes_imported(name, binding, found):
            return None
        return found.origin(binding.member, imports=imports - 1)

    @property
    def replaces_functions(self) -> bool:
        """Whether it may give a function other code or defaults, which no binding shows."""
        return _replaces_functions(self.parsed.words)

    def lose(self, name: str) -> None:
        """What `name` holds is not known."""
        self.doubt(name)
        self.history.setdefault(name, []).append((None, None))

    def doubt(self, name: str) -> None:
        """`name` holds something of what was bound to it, but which is not known."""
        self.ambiguous.add(name)
        self.lost.add(name)
        self.rebound.add(name)

    def lose_all(self) -> None:
        """What any name holds is not known, one of Python's functions either."""
        for name in (*self.bindings, *dir(builtins)):
            self.lose(name)

    def is_builtin(self, name: str) -> bool:
        """Whether a name of this module certainly is one of Python's own."""
        return hasattr(builtins, name) and name not in self.bindings and name not in self.lost

    def settle(self, name: str) -> None:
        """`name` certainly holds what it was bound to last."""
        self.ambiguous.discard(name)
        self.lost.discard(name)
        self.stood_in.discard(name)
        self.ways.pop(name, None)

    def may_stand_in(self, name: str, *, imports: int = 4) -> bool:
        """Whether host code may find something else under a name than the import that counts for kernels."""
        binding = self.bindings.get(name)
        if name in self.stood_in or not isinstance(binding, Import) or binding.member is None or not imports:
            return name in self.stood_in
        found = self.project.find(Import(binding.module, None, binding.level), self.file)
        return (
            found is not None and found is not self and found.may_stand_in(binding.member, imports=imports - 1)
        )

    def choices(self, name: str) -> tuple[Binding, ...]:
        """What an ambiguous name may be bound to; nothing if it may be something else."""
        return () if name in self.lost else self.ways.get(name, ())

    def full_name(self, text: str) -> str:
        """A dotted name of this module as imports spell it out."""
        head, _, rest = text.partition(".")
        binding = self.bindings.get(head)
        return f"{binding.name}.{rest}".rstrip(".") if isinstance(binding, Import) else text

    def unsafe_pragma(self, node: cst.CSTNode) -> UnsafeBlock | None:
        """The unsafe pragma that is attached to a statement, if any."""
        if not self.pragmas:
            return None
        start = self.span(node).start
        for pragma in self.pragmas:
            if pragma.kind is PragmaKind.UNSAFE and pragma.target.start == start:
                return UnsafeBlock(pragma.reason, Site(self.file, pragma.span))
        return None

    @property
    def file(self) -> str:
        return self.parsed.source.path

    def site(self, node: cst.CSTNode) -> Site:
        return Site(self.file, self.span(node))

    def span(self, node: cst.CSTNode) -> Span:
        """The bytes of a node; the start of the file for a node made from a contract's text."""
        return self.parsed.spans.find(node) or Span(0, 0)

    def text(self, node: cst.CSTNode) -> str:
        """A node as one short line."""
        span = self.span(node)
        raw = self.parsed.source.data[span.start : span.end].decode("utf-8", "replace")
        text = " ".join(raw.split()) or "value"
        return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


@dataclass(slots=True, eq=False)
class Project:
    """Finds and caches the modules that kernels import from their own project. Mutable cache.

    `patches` are the names that the files of the run assign in modules of each other, `packages` the folders of
    packages by their dotted names: an absolute import that leads nowhere from its own file leads there.
    `reading_s` is the processor time that reading them took: a module is read where a kernel first needs it,
    and that is not the time of that kernel. Without `trusts_unsafe` no block of them is an unsafe one.
    """

    patches: Patches = field(default_factory=Patches)
    packages: Mapping[str, str] = field(default_factory=dict)
    tables: dict[str, ModuleTable | None] = field(default_factory=dict)
    found: dict[tuple[Import, str], ModuleTable | None] = field(default_factory=dict)
    reading_s: float = 0.0
    trusts_unsafe: bool = True

    def add(self, parsed: ParsedModule) -> ModuleTable:
        key = str(Path(parsed.source.path).resolve())
        table = self.tables.get(key)
        if table is None or table.parsed is not parsed:
            table = self._table(parsed, key)
        return table

    def read(self, source: Source) -> ModuleTable:
        """The module of a file, parsed unless it was before: under this path, and with this text.

        Raises:
            SourceError: it is no Python, or nested too deeply to read.
        """
        key = str(Path(source.path).resolve())
        known = self.tables.get(key)
        if known is not None and known.parsed.source == source:
            return known
        return self._table(parse(source), key)

    def find(self, imported: Import, importer: str) -> ModuleTable | None:
        """The module that an import names, when it is a file of the same project.

        tilecheck's own interface never is, not even in tilecheck's own repository: what `tilecheck.launch`
        does is known, as what `cuda.tile.launch` does.
        """
        if imported.module == "tilecheck" and not imported.level:
            return None
        key = (imported, importer)
        if key not in self.found:
            self.found[key] = self._find(imported, importer)
        return self.found[key]

    def _find(self, imported: Import, importer: str) -> ModuleTable | None:
        for path in self.places(imported, importer):
            key = str(path.resolve())
            if key in self.tables:
                return self.tables[key]
            if is_file(path):
                return self._read(path, key)
        return None

    def places(self, imported: Import, importer: str) -> list[Path]:
        """The paths at which an imported module may be, the first that exists being it."""
        found = candidates(imported, Path(importer))
        parts = () if imported.level or is_language(imported) else tuple(imported.module.split("."))
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if name in self.packages and not (end == 1 and name in _KNOWN):
                where = Path(self.packages[name], *parts[end:])
                return [*found, where / "__init__.py", where.with_suffix(".py")]
        return found

    def _read(self, path: Path, key: str) -> ModuleTable | None:
        start, before = time.process_time(), self.reading_s
        try:
            parsed = load(path.as_posix())
        except SourceError:
            self.tables[key] = None  # reported where the file itself is verified
            return None
        else:
            return self._table(parsed, key)
        finally:
            self.reading_s = before + time.process_time() - start  # with what that reads in turn

    def _table(self, parsed: ParsedModule, key: str) -> ModuleTable:
        table = ModuleTable(parsed, self, pragmas=read_pragmas(parsed.source))
        self.tables[key] = table
        bind_all(table)
        return table


def candidates(imported: Import, importer: Path) -> list[Path]:
    """The paths at which an imported module may be, the first that exists being it. In each folder Python takes
    a package before a module of the same name."""
    parts = imported.module.split(".") if imported.module else []
    if imported.level:
        base = importer.parent
        for _ in range(imported.level - 1):
            base = base.parent
        roots = [base]
    else:
        # An absolute import starts at the folder that holds the importer's outermost package; a sibling
        # module counts too, as when the file is run from its own folder.
        top = importer.parent
        while (top / "__init__.py").is_file() and top.parent != top:
            top = top.parent
        # Packages may have no `__init__.py`: a module of what a folder around the importer is called is one of
        # that folder, unless it is a language's: folders have such names, too.
        own = len(parts) > 1 and not is_language(imported)
        around = [folder.parent for folder in importer.parents if own and folder.name == parts[0]]
        roots = [*dict.fromkeys((top, importer.parent, *around))]
    found = []
    for root in roots:
        where = root.joinpath(*parts) if parts else root
        found.append(where / "__init__.py")
        found += [where.with_suffix(".py")] if parts else []
    return found


def _is_tuned(function: cst.CSTNode) -> bool:
    """Whether a decorator holds configurations or the like, which other code may change."""
    return any(
        isinstance(d.decorator, cst.Call) and d.decorator.args for d in getattr(function, "decorators", ())
    )


@lru_cache(maxsize=64)
def _may_assign_values(text: str) -> bool:
    return _ASSIGNED.search(text) is not None


@lru_cache(maxsize=64)
def _replaces_functions(text: str) -> bool:
    return _REPLACED.search(text) is not None
