"""Module-level names of the files of a project, resolved from text alone.

A module is never imported or run. Names are bound to syntax and evaluated on demand. A name that is bound more
than one way (in an `if`, a `try`, or a loop) is ambiguous; where it is certainly one of what these bind, it is
each of them, under a condition of its own. What is changed where this reading does not follow it (by a
function's `global`, through an attribute, an item, a method or another name) is not known, and using it is
unsupported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import libcst as cst

from tilecheck.errors import SourceError
from tilecheck.frontend.changes import Changes
from tilecheck.frontend.kinds import Kinds
from tilecheck.frontend.namespaces import names_assigned
from tilecheck.frontend.pragmas import Pragma, PragmaKind, read_pragmas
from tilecheck.frontend.source import ParsedModule, load
from tilecheck.frontend.syntax import walk
from tilecheck.ir.kernel import UnsafeBlock
from tilecheck.model import Site, Span
from tilecheck.overlay import is_file

_REPLACED = re.compile(r"\.__(?:code|defaults|kwdefaults)__\b")


@dataclass(frozen=True, slots=True)
class Import:
    """A name bound by an import: `module` is absolute, `member` the name taken from it (None: the module)."""

    module: str
    member: str | None
    level: int = 0

    @property
    def name(self) -> str:
        """The full dotted name of what is imported."""
        return f"{self.module}.{self.member}" if self.member else self.module


@dataclass(frozen=True, slots=True)
class Element:
    """A name bound by unpacking: item `index` of the tuple that `value` gives."""

    value: cst.BaseExpression
    index: int


Binding = cst.FunctionDef | cst.ClassDef | cst.BaseExpression | Import | Element


@dataclass(slots=True, eq=False)
class ModuleTable:
    """The names that one module binds at its top level. Mutable: filled once, by `_bind`."""

    parsed: ParsedModule
    project: Project
    bindings: dict[str, Binding] = field(default_factory=dict)
    ambiguous: set[str] = field(default_factory=set)
    ways: dict[str, tuple[Binding, ...]] = field(default_factory=dict)  # what an ambiguous name may be bound to
    lost: set[str] = field(default_factory=set)  # ambiguous names that may hold something else
    rebound: set[str] = field(default_factory=set)  # bound more than once: what module code saw is not known
    local_imports: dict[str, Import] = field(default_factory=dict)  # those inside functions
    pragmas: tuple[Pragma, ...] = ()
    changed: set[str] = field(default_factory=set)  # what holds a value, or a tuner, that other code changes
    _nodes: tuple[cst.CSTNode, ...] = ()
    _kinds: Kinds | None = None
    _changes: Changes | None = None
    _changes_elsewhere: dict[str, bool] = field(default_factory=dict)

    def nodes(self) -> tuple[cst.CSTNode, ...]:
        """All nodes of the module that are code, parents first: several passes go over them."""
        if not self._nodes:
            self._nodes = tuple(walk(self.parsed.module))
        return self._nodes

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

    def _values(self, name: str) -> tuple[cst.CSTNode, ...]:
        """The syntax of what `name` may be bound to."""
        every = (*self.ways.get(name, ()), self.bindings[name])
        return tuple(b.value if isinstance(b, Element) else b for b in every if not isinstance(b, Import))

    def may_change(self, name: str) -> bool:
        """Whether code of this module changes what it binds to `name`."""
        ways = self._values(name)
        if all(isinstance(way, cst.FunctionDef) for way in ways):  # changed is what a tuner around it is given
            return any(map(_is_tuned, ways)) and self.changes.is_changed(name, flat=False)
        if all(map(self.kinds.is_fixed, ways)):
            return False
        return self.changes.is_changed(name, flat=all(map(self.kinds.is_flat, ways)))

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
        return _replaces_functions(self.parsed.source.text)

    def lose(self, name: str) -> None:
        """What `name` holds is not known."""
        self.ambiguous.add(name)
        self.lost.add(name)

    def lose_all(self) -> None:
        """What any name holds is not known."""
        for name in self.bindings:
            self.lose(name)

    def settle(self, name: str) -> None:
        """`name` certainly holds what it was bound to last."""
        self.ambiguous.discard(name)
        self.lost.discard(name)
        self.ways.pop(name, None)

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
        return self.parsed.spans.get(node, Span(0, 0))


@dataclass(slots=True, eq=False)
class Project:
    """Finds and caches the modules that kernels import from their own project. Mutable cache."""

    tables: dict[str, ModuleTable | None] = field(default_factory=dict)
    found: dict[tuple[Import, str], ModuleTable | None] = field(default_factory=dict)

    def add(self, parsed: ParsedModule) -> ModuleTable:
        key = str(Path(parsed.source.path).resolve())
        table = self.tables.get(key)
        if table is None or table.parsed is not parsed:
            table = self._table(parsed, key)
        return table

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
        for path in candidates(imported, Path(importer)):
            key = str(path.resolve())
            if key in self.tables:
                return self.tables[key]
            if is_file(path):
                return self._read(path, key)
        return None

    def _read(self, path: Path, key: str) -> ModuleTable | None:
        try:
            parsed = load(path.as_posix())
        except SourceError:
            self.tables[key] = None  # reported where the file itself is verified
            return None
        return self._table(parsed, key)

    def _table(self, parsed: ParsedModule, key: str) -> ModuleTable:
        table = ModuleTable(parsed, self, pragmas=read_pragmas(parsed.source))
        self.tables[key] = table
        _bind(table, parsed.module.body, conditional=False)
        _bind_elsewhere(table)
        _lose_changed(table)
        return table


def candidates(imported: Import, importer: Path) -> list[Path]:
    """The paths at which an imported module may be, the first that exists being it."""
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
        roots = [top, importer.parent]
    found = []
    for root in roots:
        where = root.joinpath(*parts) if parts else root
        found += [where.with_suffix(".py")] if parts else []
        found.append(where / "__init__.py")
    return found


def dotted(node: cst.BaseExpression | None) -> str:
    """`a.b.c` as text; empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        left = dotted(node.value)
        return f"{left}.{node.attr.value}" if left else ""
    return ""


def imports_of(statement: cst.Import | cst.ImportFrom) -> list[tuple[str, Import]]:
    """The names that an import statement binds."""
    found: list[tuple[str, Import]] = []
    if isinstance(statement, cst.Import):
        for alias in statement.names:
            module = dotted(alias.name)
            if alias.asname is not None:
                found.append((dotted(alias.asname.name), Import(module, None)))
            else:
                found.append((module.split(".")[0], Import(module.split(".")[0], None)))
        return found
    if isinstance(statement.names, cst.ImportStar):
        return []
    module = dotted(statement.module)
    for alias in statement.names:
        member = dotted(alias.name)
        name = dotted(alias.asname.name) if alias.asname is not None else member
        found.append((name, Import(module, member, len(statement.relative))))
    return found


def _bind(table: ModuleTable, body: object, *, conditional: bool) -> None:
    for statement in body:  # type: ignore[attr-defined]
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                _bind_small(table, small, conditional=conditional)
        elif isinstance(statement, cst.FunctionDef | cst.ClassDef):
            _set(table, statement.name.value, statement, conditional=conditional)
        elif isinstance(statement, cst.Try):
            _bind_try(table, statement, conditional=conditional)
        elif isinstance(statement, cst.If):
            _bind_branches(table, statement, conditional=conditional)
        elif isinstance(statement, cst.With):
            for item in statement.items:
                if item.asname is not None:
                    _lose(table, item.asname.name)
            _bind(table, statement.body.body, conditional=conditional)
        elif isinstance(statement, cst.For | cst.While):
            if isinstance(statement, cst.For):
                _lose(table, statement.target)
            _bind(table, statement.body.body, conditional=True)
            if statement.orelse is not None:
                _bind(table, statement.orelse.body.body, conditional=True)
        else:  # `match` and what later versions of Python add
            _lose(table, statement)


def _bind_branches(table: ModuleTable, statement: cst.If, *, conditional: bool) -> None:
    decided = _is_for_known_triton(statement.test)
    if decided is not False:
        _bind(table, statement.body.body, conditional=conditional or decided is None)
    if decided:
        return
    if isinstance(statement.orelse, cst.If):
        _bind_branches(table, statement.orelse, conditional=conditional or decided is None)
    elif statement.orelse is not None:
        _bind(table, statement.orelse.body.body, conditional=conditional or decided is None)


_OLDEST_TRITON = (3, 4)  # what is verified is for this release or a later one
_AT_LEAST = {cst.GreaterThanEqual: True, cst.GreaterThan: True, cst.LessThan: False, cst.LessThanEqual: False}


def _is_for_known_triton(test: cst.BaseExpression) -> bool | None:
    """What `Version(triton.__version__) >= Version("3.0.0")` is with every release that is known; None where it
    depends on the release, and for any other test."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    operator, right = test.comparisons[0].operator, _only_argument(test.comparisons[0].comparator)
    if dotted(_only_argument(test.left)) != "triton.__version__" or not isinstance(right, cst.SimpleString):
        return None
    numbers = [int(part) for part in str(right.evaluated_value).split(".") if part.isdecimal()]
    return _AT_LEAST.get(type(operator)) if numbers and tuple(numbers) < _OLDEST_TRITON else None


def _only_argument(node: cst.BaseExpression) -> cst.BaseExpression:
    """What a function of versions, whatever its name, is called with."""
    return node.args[0].value if isinstance(node, cst.Call) and len(node.args) == 1 else node


def _bind_try(table: ModuleTable, statement: cst.Try, *, conditional: bool) -> None:
    """`try: import a / except ImportError: a = None`: the import counts, since a kernel that needs the module
    can only run where it imports. Any other name may have its value from any of the parts."""
    before, unsure = dict(table.bindings), set(table.ambiguous)
    _bind(table, statement.body.body, conditional=conditional)
    tried = {n: b for n, b in table.bindings.items() if before.get(n) is not b}
    for part in (*statement.handlers, statement.orelse, statement.finalbody):
        if part is not None:
            _bind(table, part.body.body, conditional=True)
    for name, binding in tried.items():
        if isinstance(binding, Import) and (name not in before or _is_none(before[name])):
            table.bindings[name] = binding
            table.settle(name)
            table.rebound.discard(name)
        elif name in before:  # the part that binds it anew may have ended before it got there
            table.lose(name)
    for name in unsure - tried.keys() - table.ambiguous:
        table.lose(name)


def _is_none(binding: Binding) -> bool:
    return isinstance(binding, cst.Name) and binding.value == "None"


_BINDING = frozenset(
    (cst.Import, cst.ImportFrom, cst.NamedExpr, cst.Global, cst.AssignTarget, cst.AugAssign, cst.AnnAssign)
)


def _bind_elsewhere(table: ModuleTable) -> None:
    """Names that a function declares `global` may hold what it assigned whenever a kernel is compiled; so may
    a value or class whose attributes or items are assigned."""
    for node in table.nodes():
        if type(node) not in _BINDING:  # most: `isinstance` is slow for these classes
            continue
        if isinstance(node, cst.Import | cst.ImportFrom):
            table.local_imports.update(imports_of(node))
        elif isinstance(node, cst.NamedExpr):
            _change(table, dotted(node.target))
        elif isinstance(node, cst.Global):
            for item in node.names:
                table.lose(item.name.value)
        elif isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign):
            head: cst.BaseExpression = node.target
            while isinstance(head, cst.Attribute | cst.Subscript):
                head = head.value
            if head is not node.target and isinstance(head, cst.Name):
                _change(table, head.value)


def _is_tuned(function: cst.CSTNode) -> bool:
    """Whether a decorator holds configurations or the like, which other code may change."""
    return any(
        isinstance(d.decorator, cst.Call) and d.decorator.args for d in getattr(function, "decorators", ())
    )


def _lose_changed(table: ModuleTable) -> None:
    """What holds a list or an object that code of the module may change is not known either."""
    for name in names_assigned(table.parsed.source.text, lambda: table.changes):
        if name is None:
            table.lose_all()
        elif name in table.bindings:
            table.lose(name)
    for name, binding in table.bindings.items():
        if name not in table.lost and not isinstance(binding, Import) and table.may_change(name):
            table.changed.add(name)
            if not isinstance(binding, cst.FunctionDef):
                table.lose(name)


def _change(table: ModuleTable, name: str) -> None:
    """Something in what `name` holds is assigned; a local variable of that name is taken for it as well."""
    known = (*table.choices(name), *((table.bindings[name],) if name in table.bindings else ()))
    if any(not isinstance(binding, Import | cst.FunctionDef) for binding in known):
        table.lose(name)


def _lose(table: ModuleTable, target: cst.CSTNode) -> None:
    """The names in a target whose value is not known."""
    for node in walk(target):
        if isinstance(node, cst.Name):
            table.lose(node.value)


def _bind_small(table: ModuleTable, small: cst.BaseSmallStatement, *, conditional: bool) -> None:
    if isinstance(small, cst.Import | cst.ImportFrom):
        for name, imported in imports_of(small):
            _set(table, name, imported, conditional=conditional)
        if isinstance(small, cst.ImportFrom) and isinstance(small.names, cst.ImportStar):
            _bind_star(table, Import(dotted(small.module), None, len(small.relative)))
    elif isinstance(small, cst.Assign):
        for target in small.targets:
            _bind_target(table, target.target, small.value, conditional=conditional)
    elif isinstance(small, cst.AnnAssign) and small.value is not None:
        _bind_target(table, small.target, small.value, conditional=conditional)
    elif isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        table.lose(small.target.value)
    elif isinstance(small, cst.Del):
        _lose(table, small.target)


def _bind_star(table: ModuleTable, module: Import) -> None:
    """`from m import *` binds anew what `m` binds; of a module that is not found, all values may be new."""
    found = table.project.find(module, table.file)
    for name, binding in table.bindings.items():
        values = (isinstance(b, cst.BaseExpression | Element) for b in (binding, *table.choices(name)))
        if name in found.bindings if found is not None else any(values):
            table.lose(name)


def _bind_target(
    table: ModuleTable, target: cst.BaseExpression, value: cst.BaseExpression, *, conditional: bool
) -> None:
    if isinstance(target, cst.Name):
        _set(table, target.value, value, conditional=conditional)
    elif isinstance(target, cst.Tuple | cst.List):
        for i, element in enumerate(target.elements):
            if isinstance(element.value, cst.Name):
                _set(table, element.value.value, Element(value, i), conditional=conditional)


def _is_same_function(a: Binding, b: Binding) -> bool:
    """Whether two bindings are one function of Triton's, which it keeps at several paths."""
    if isinstance(a, cst.Attribute) and isinstance(b, cst.Attribute):
        ends = {tuple(dotted(node).split(".")[-2:]) for node in (a, b)}
        return len(ends) == 1 and "libdevice" in next(iter(ends))
    if not isinstance(a, Import) or not isinstance(b, Import):
        return False
    return a.member == b.member and a.module.startswith("triton.") and b.module.startswith("triton.")


def _set(table: ModuleTable, name: str, binding: Binding, *, conditional: bool) -> None:
    if name in table.bindings and table.bindings[name] != binding:
        table.rebound.add(name)
    if conditional and name in table.bindings:
        if not _is_same_function(table.bindings[name], binding):
            table.ambiguous.add(name)
            table.ways[name] = (*table.ways.get(name, (table.bindings[name],)), binding)
    elif not conditional:
        table.settle(name)
    table.bindings[name] = binding


@lru_cache(maxsize=64)
def _replaces_functions(text: str) -> bool:
    return _REPLACED.search(text) is not None
