"""Which statements of a module bind which names, and what of that is known for certain."""

from __future__ import annotations

import builtins
from pathlib import PurePath
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.modules.alternatives import (
    may_be_bound_already,
    may_bind,
    settle_languages,
    settle_on,
    settle_stubs,
    stands_in,
)
from tilecheck.frontend.modules.bindings import Binding, Element, Import, dotted, imports_of, is_language
from tilecheck.frontend.modules.dynamic_names import names_assigned
from tilecheck.frontend.text.syntax import walk

if TYPE_CHECKING:
    from tilecheck.frontend.modules.project import ModuleTable


def bind_all(table: ModuleTable) -> None:
    """Fill the table of a module with what its text binds."""
    _bind(table, table.parsed.module.body, conditional=False)
    settle_languages(table)
    settle_stubs(table)
    table.read_anew()
    _bind_elsewhere(table)
    _lose_changed(table)
    _lose_patched(table)
    _lose_starred(table)
    table.filled = True


def _bind(table: ModuleTable, body: object, *, conditional: bool) -> None:
    for statement in body:  # type: ignore[attr-defined]
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                _bind_small(table, small, conditional=conditional)
        elif isinstance(statement, cst.FunctionDef | cst.ClassDef):
            _set(table, statement.name.value, statement, statement, conditional=conditional)
        elif isinstance(statement, cst.Try):
            _bind_try(table, statement, conditional=conditional)
        elif isinstance(statement, cst.If):
            _bind_branches(table, statement, conditional=conditional)
        elif isinstance(statement, cst.With):
            for item in statement.items:
                if item.asname is not None:
                    _lose(table, item.asname.name)
            # A context manager may swallow an exception: the body may have ended anywhere.
            _bind(table, statement.body.body, conditional=True)
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
    # The body may have ended anywhere.
    _bind(table, statement.body.body, conditional=True)
    tried = {n: b for n, b in table.bindings.items() if before.get(n) is not b}
    for part in (*statement.handlers, statement.orelse, statement.finalbody):
        if part is not None:
            _bind(table, part.body.body, conditional=True)
    for name, binding in tried.items():
        ways = [way for way, _ in table.history[name]]
        if isinstance(binding, Import) and all(stands_in(table, way, binding) for way in ways):
            settle_on(table, name, binding)
        elif name in before:  # the part that binds it anew may have ended before it got there
            table.doubt(name)
    for name in unsure - tried.keys() - table.ambiguous:
        table.lose(name)


_BINDING = (
    cst.Import,
    cst.ImportFrom,
    cst.NamedExpr,
    cst.Global,
    cst.AssignTarget,
    cst.AugAssign,
    cst.AnnAssign,
)


def _bind_elsewhere(table: ModuleTable) -> None:
    """Names that a function declares `global` may hold what it assigned whenever a kernel is compiled; so may
    a value or class whose attributes or items are assigned."""
    for node in table.nodes(*_BINDING):
        if isinstance(node, cst.Import | cst.ImportFrom):
            table.local_imports.update(imports_of(node))
        elif isinstance(node, cst.NamedExpr):
            table.lose(dotted(node.target))  # a local variable of that name is taken for it as well
        elif isinstance(node, cst.Global):
            for item in node.names:
                table.lose(item.name.value)
        elif isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign):
            head: cst.BaseExpression = node.target
            while isinstance(head, cst.Attribute | cst.Subscript):
                head = head.value
            if head is not node.target and isinstance(head, cst.Name):
                _change(table, head.value)


def _lose_changed(table: ModuleTable) -> None:
    """What holds a list or an object that code of the module may change is not known either."""
    for name in names_assigned(table.parsed.words, lambda: table.changes, _own_names(table)):
        if name is None:
            table.lose_all()
        else:
            table.lose(name)
    for name, binding in table.bindings.items():
        if name not in table.lost and not isinstance(binding, Import) and table.may_change(name):
            table.changed.add(name)
            if not isinstance(binding, cst.FunctionDef):
                table.lose(name)


def _lose_patched(table: ModuleTable) -> None:
    """What code of other files binds or changes in this module may be so whenever a kernel is compiled."""
    patched = table.project.patches.of(table.file)
    for name in patched.bound:
        if name:
            table.changed.add(name)
            table.lose(name)
        else:
            table.lose_all()
    for name in patched.changed & table.bindings.keys():
        table.changed.add(name)
        if not isinstance(table.bindings[name], Import | cst.FunctionDef):
            table.lose(name)


def _lose_starred(table: ModuleTable) -> None:
    """What `from m import *` may have put in the place of a function of Python is not known."""
    for name in dir(builtins) if table.stars else ():
        if name not in table.bindings and any(may_bind(found, name, None, value=True) for found in table.stars):
            table.lose(name)


def _own_names(table: ModuleTable) -> list[str]:
    """The names under which a module imports itself."""
    path = PurePath(table.file)
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    found = []
    for name, bound in (*table.bindings.items(), *table.local_imports.items()):
        if not isinstance(bound, Import) or is_language(bound) or bound.name.rpartition(".")[2] != stem:
            continue
        whole = ".".join(part for part in (bound.module, bound.member) if part)
        if table.project.find(Import(whole, None, bound.level), table.file) is table:
            found.append(name)
    return found


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
            _set(table, name, _handed_on(table, imported), small, conditional=conditional)
        if isinstance(small, cst.ImportFrom) and isinstance(small.names, cst.ImportStar):
            _bind_star(table, small, conditional=conditional)
    elif isinstance(small, cst.Assign):
        for target in small.targets:
            _bind_target(table, target.target, small.value, small, conditional=conditional)
    elif isinstance(small, cst.AnnAssign) and small.value is not None:
        _bind_target(table, small.target, small.value, small, conditional=conditional)
    elif isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        table.lose(small.target.value)
    elif isinstance(small, cst.Del):
        _lose(table, small.target)


_USUAL = {"triton": "triton", "tl": "triton.language"}
_INDUCTOR = "torch._inductor.runtime.triton_helpers"  # PyTorch's own module, which binds these for any release
_OF_INDUCTOR = {"libdevice": "triton.language.extra.libdevice", "math": "triton.language.math"}
_HANDED_ON = frozenset((*_USUAL, "language", "tldevice", "libdevice", "ct"))


def _handed_on(table: ModuleTable, imported: Import) -> Import:
    """What an import of a language by way of another module, `from package.compat import triton, tl`, leads to:
    what that module imports, or where it is not found, what everybody means by these names."""
    if imported.module == _INDUCTOR and imported.member in _OF_INDUCTOR:
        return Import(_OF_INDUCTOR[imported.member], None)
    if imported.member not in _HANDED_ON or is_language(imported):
        return imported
    found = table.project.find(Import(imported.module, None, imported.level), table.file)
    if found is None:
        usual = _USUAL.get(imported.member)
        return imported if usual is None else Import(usual, None)
    there = found.bindings.get(imported.member)
    known = isinstance(there, Import) and is_language(there) and imported.member not in found.ambiguous
    return there if known and isinstance(there, Import) else imported


def _bind_star(table: ModuleTable, small: cst.ImportFrom, *, conditional: bool) -> None:
    """`from m import *` binds anew what `m` binds; of a module that is not found, everything may be new but
    what comes from a library: no module uses its name for something else."""
    module, level = dotted(small.module), len(small.relative)
    found = table.project.find(Import(module, None, level), table.file)
    for name, binding in table.bindings.items():
        own = any(not _is_of_library(table, way) for way in (binding, *table.choices(name)))
        if may_bind(found, name, binding, value=own):
            table.lose(name)
    if found is not None and found.filled and not conditional:
        for name in _given(found):
            if name not in table.bindings and name not in table.lost:
                there = found.bindings[name]
                is_other = isinstance(there, Import) and not there.level
                imported = there if is_other else Import(module, name, level)
                _set(table, name, imported, small, conditional=False)
    table.stars.append(found)


def _given(module: ModuleTable) -> list[str]:
    """The names that `from module import *` certainly binds, and to what the module's own binding says."""
    if "__all__" in module.bindings or "__all__" in module.lost:
        return []
    sure = (name for name in module.bindings if name not in module.ambiguous and name not in module.lost)
    return [name for name in sure if not name.startswith("_")]


def _is_of_library(table: ModuleTable, binding: Binding) -> bool:
    if not isinstance(binding, Import) or binding.level:
        return False
    return is_language(binding) or table.project.find(Import(binding.module, None), table.file) is None


def _bind_target(
    table: ModuleTable,
    target: cst.BaseExpression,
    value: cst.BaseExpression,
    statement: cst.CSTNode,
    *,
    conditional: bool,
) -> None:
    if isinstance(target, cst.Name):
        _set(table, target.value, value, statement, conditional=conditional)
    elif isinstance(target, cst.Tuple | cst.List):
        items = target.elements
        if not all(isinstance(item, cst.Element) and isinstance(item.value, cst.Name) for item in items):
            _lose(table, target)  # `*a, b = c`: the place of `b` depends on how long `c` is
            return
        for i, item in enumerate(items):
            _set(table, dotted(item.value), Element(value, i), statement, conditional=conditional)


def _is_same_function(a: Binding, b: Binding) -> bool:
    """Whether two bindings are one function of Triton's, which it keeps at several paths."""
    if isinstance(a, cst.Attribute) and isinstance(b, cst.Attribute):
        ends = {tuple(dotted(node).split(".")[-2:]) for node in (a, b)}
        return len(ends) == 1 and "libdevice" in next(iter(ends))
    if not isinstance(a, Import) or not isinstance(b, Import):
        return False
    return a.member == b.member and a.module.startswith("triton.") and b.module.startswith("triton.")


def _set(table: ModuleTable, name: str, binding: Binding, statement: cst.CSTNode, *, conditional: bool) -> None:
    if name not in table.bindings and may_be_bound_already(table, name, binding):
        table.lose(name)  # until it is bound for certain
    table.history.setdefault(name, []).append((binding, statement))
    if name in table.bindings and table.bindings[name] != binding:
        table.rebound.add(name)
    if not conditional:
        table.settle(name)
    else:
        last = table.bindings.get(name, binding)
        if last != binding and not _is_same_function(last, binding):
            table.ambiguous.add(name)
            table.ways[name] = (*table.ways.get(name, (last,)), binding)
    table.bindings[name] = binding
