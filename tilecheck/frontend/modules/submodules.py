"""Names of a package that its submodules may take: importing `p.cfg` binds `cfg` in `p`.

Python binds it once, when the submodule is first loaded. What `__init__.py` binds to the same name counts only
if the submodule was certainly loaded before.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.modules.bindings import Import, dotted

if TYPE_CHECKING:
    from tilecheck.frontend.modules.project import ModuleTable


def submodule(table: ModuleTable, name: str) -> ModuleTable | None:
    """The submodule that a name of a package stands for, if no statement of the package binds it: whoever reads
    it has loaded the submodule."""
    if name in table.bindings or name in table.lost or PurePath(table.file).name != "__init__.py":
        return None
    return None if table.stars else table.project.find(Import(name, None, 1), table.file)


def may_hold_submodule(table: ModuleTable, name: str) -> bool:
    """Whether a name that a package binds may hold a submodule of that name instead."""
    if name not in table.bindings or PurePath(table.file).name != "__init__.py":
        return False
    submodule = table.project.find(Import(name, None, 1), table.file)
    return submodule is not None and not _is_bound_after_loading(table, name, submodule)


def _is_bound_after_loading(table: ModuleTable, name: str, submodule: ModuleTable) -> bool:
    """Whether a statement that always runs loads the submodule, and the name is bound by it or after it."""
    last = table.history[name][-1][1]
    if last is not None and _loads(table, last, name, submodule):
        return True
    loaded = False
    for statement in table.parsed.module.body:
        parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
        for part in parts:
            if part is last:
                return loaded
            loaded = loaded or _loads(table, part, name, submodule)
    return False


def _loads(table: ModuleTable, node: cst.CSTNode, name: str, submodule: ModuleTable) -> bool:
    """Whether an import loads the submodule first of all."""

    def leads_there(module: str, level: int) -> bool:
        parts = module.split(".")
        heads = (".".join(parts[: n + 1]) for n in range(len(parts)))
        return any(table.project.find(Import(head, None, level), table.file) is submodule for head in heads)

    if isinstance(node, cst.Import):
        return any(leads_there(dotted(alias.name), 0) for alias in node.names)
    if not isinstance(node, cst.ImportFrom):
        return False
    module, level = dotted(node.module), len(node.relative)
    if module and leads_there(module, level):
        return True
    if isinstance(node.names, cst.ImportStar):
        return False
    taken = any(dotted(alias.name) == name for alias in node.names)
    return taken and leads_there(f"{module}.{name}".lstrip("."), level)
