"""Module-level names of the files of a project, resolved from text alone.

A module is never imported or run. Names are bound to syntax and evaluated on demand; a name that is bound
more than one way (in an `if`, a `try`, or a loop) is ambiguous and using it is unsupported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

from tilecheck.errors import SourceError
from tilecheck.frontend.pragmas import Pragma, PragmaKind, read_pragmas
from tilecheck.frontend.source import ParsedModule, load
from tilecheck.ir.kernel import UnsafeBlock
from tilecheck.model import Site, Span


@dataclass(frozen=True, slots=True)
class Import:
    """A name bound by an import: `module` is absolute, `member` the name taken from it (None: the module)."""

    module: str
    member: str | None
    level: int = 0


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
    pragmas: tuple[Pragma, ...] = ()

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
        """The module that an import names, when it is a file of the same project."""
        key = (imported, importer)
        if key not in self.found:
            self.found[key] = self._find(imported, importer)
        return self.found[key]

    def _find(self, imported: Import, importer: str) -> ModuleTable | None:
        for path in _candidates(imported, Path(importer)):
            key = str(path.resolve())
            if key in self.tables:
                return self.tables[key]
            if path.is_file():
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
        return table


def _candidates(imported: Import, importer: Path) -> list[Path]:
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
        elif isinstance(statement, cst.Try | cst.If | cst.With | cst.Else | cst.Finally | cst.ExceptHandler):
            _bind_compound(table, statement)
        elif isinstance(statement, cst.For | cst.While):
            _bind(table, statement.body.body, conditional=True)


def _bind_compound(table: ModuleTable, statement: cst.CSTNode) -> None:
    # `try: import a / except ImportError: a = None`: the first binding counts, since a kernel that needs
    # the module can only run where it imports.
    if isinstance(statement, cst.With | cst.Try):
        _bind(table, statement.body.body, conditional=False)
    if isinstance(statement, cst.If | cst.Else | cst.Finally | cst.ExceptHandler):
        _bind(table, statement.body.body, conditional=True)
    if isinstance(statement, cst.Try):
        known = dict(table.bindings)
        for part in (*statement.handlers, statement.orelse, statement.finalbody):
            if part is not None:
                _bind_compound(table, part)
        for name, binding in known.items():
            table.bindings[name] = binding
            table.ambiguous.discard(name)
    if isinstance(statement, cst.If) and statement.orelse is not None:
        _bind_compound(table, statement.orelse)


def _bind_small(table: ModuleTable, small: cst.BaseSmallStatement, *, conditional: bool) -> None:
    if isinstance(small, cst.Import | cst.ImportFrom):
        for name, imported in imports_of(small):
            _set(table, name, imported, conditional=conditional)
    elif isinstance(small, cst.Assign):
        for target in small.targets:
            _bind_target(table, target.target, small.value, conditional=conditional)
    elif isinstance(small, cst.AnnAssign) and small.value is not None:
        _bind_target(table, small.target, small.value, conditional=conditional)
    elif isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        table.ambiguous.add(small.target.value)


def _bind_target(
    table: ModuleTable, target: cst.BaseExpression, value: cst.BaseExpression, *, conditional: bool
) -> None:
    if isinstance(target, cst.Name):
        _set(table, target.value, value, conditional=conditional)
    elif isinstance(target, cst.Tuple | cst.List):
        for i, element in enumerate(target.elements):
            if isinstance(element.value, cst.Name):
                _set(table, element.value.value, Element(value, i), conditional=conditional)


def _set(table: ModuleTable, name: str, binding: Binding, *, conditional: bool) -> None:
    if conditional and name in table.bindings:
        table.ambiguous.add(name)
    elif not conditional:
        table.ambiguous.discard(name)
    table.bindings[name] = binding
