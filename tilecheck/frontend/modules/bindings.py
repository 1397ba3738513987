"""What a name of a module is bound to, as syntax: a function, a class, an expression, or an import."""

from __future__ import annotations

import libcst as cst

from tilecheck.dataclass import dataclass


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


def dotted(node: cst.BaseExpression | None) -> str:
    """`a.b.c` as text; empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        left = dotted(node.value)
        return f"{left}.{node.attr.value}" if left else ""
    return ""


def is_language(imported: Import) -> bool:
    """Whether an import is one of Triton or cuTile, or of a part of them."""
    return not imported.level and f"{imported.name}.".startswith(("triton.", "cuda.tile."))


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
