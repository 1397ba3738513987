"""Names that a module binds in several ways of which one counts: what the others bind, no kernel can use.

    try:
        import triton.language as tl
    except ImportError:
        tl = None

A name of a kernel may lead to a module, a compiled function, or a constant of the language. Where it holds
`None`, an object of a class of the program, or a function that raises whatever it is given, the kernel that
uses it is not compiled. Anything else that one of the parts binds, a module or a function above all, is
another way.

Host code runs without a module that it does not use, so for it the name may hold any of the ways: it has the
import where it reads an attribute or calls it, which fails with the others, and is unknown to a test.

Code of the module itself may have seen any of the ways before a kernel is compiled, and may look whether it is
`None`: for such code the name has one value only if it neither asks for the name before the binding that counts
nor does more with it than to read its attributes.
"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.modules.bindings import Binding, Import, dotted, is_language
from tilecheck.frontend.modules.stubs import compiled_way, only_raises
from tilecheck.frontend.text.syntax import children

if TYPE_CHECKING:
    from tilecheck.frontend.modules.project import ModuleTable


def may_be_bound_already(table: ModuleTable, name: str, binding: Binding) -> bool:
    """Whether a name that the module has not bound itself may hold something before `binding` is bound to it:
    a function of Python, or what `from m import *` gives. A module that is not found does not use the name that
    is imported for the language for something else."""
    own = not (isinstance(binding, Import) and is_language(binding))
    return hasattr(builtins, name) or any(may_bind(found, name, binding, value=own) for found in table.stars)


def may_bind(
    module: ModuleTable | None, name: str, binding: Binding | None, *, value: bool, depth: int = 0
) -> bool:
    """Whether `from module import *` may bind a name to something else than `binding`; one that is not found is
    taken to bind `value`s alone."""
    if module is None or not module.filled or depth > _MOST_STARS:
        return value
    if name in module.lost or any(
        may_bind(found, name, binding, value=value, depth=depth + 1) for found in module.stars
    ):
        return True
    same = isinstance(binding, Import) and not binding.level and name not in module.ambiguous
    return name in module.bindings and not (same and module.bindings[name] == binding)


_MOST_STARS = 4


def stands_in(table: ModuleTable, way: Binding | None, binding: Binding) -> bool:
    """Whether no kernel is compiled that uses a name where it holds `way`, instead of `binding`."""
    if way is None:  # something that is not known
        return False
    if way == binding or (isinstance(way, cst.Name) and way.value == "None") or only_raises(way):
        return True
    if not isinstance(binding, Import) or not is_language(binding):
        return False
    if isinstance(way, Import):
        return is_language(way) and _last(way) in _SAME.get(_last(binding), (_last(binding),))
    if isinstance(way, cst.Call) and not _makes_a_mock(table, way):
        return not _ODD.search(table.parsed.words) and _names_plain_class(table, way.func)
    return isinstance(way, cst.Call) or _is_plain_class(table, way)


_SAME = {"math": ("math", "libdevice"), "libdevice": ("math", "libdevice")}  # one library under several names


def _last(imported: Import) -> str:
    return imported.name.rpartition(".")[2]


_OF_NONE = ("unittest.mock.MagicMock", "unittest.mock.Mock", "types.SimpleNamespace")


def _makes_a_mock(table: ModuleTable, call: cst.Call) -> bool:
    if dotted(call.func) == "object" and "object" not in table.bindings:
        return "object" not in table.lost
    head = dotted(call.func).partition(".")[0]
    known = head in table.bindings and head not in table.ambiguous
    return known and table.full_name(dotted(call.func)) in _OF_NONE


def _is_plain_class(table: ModuleTable, node: Binding, depth: int = 0) -> bool:
    """Whether the class and its objects are of the program's own: no module, and nothing that has all
    attributes, for it would have the one that marks the language's functions."""
    if not isinstance(node, cst.ClassDef) or node.decorators or node.keywords or depth > _MOST_BASES:
        return False
    if _ODD.search(table.parsed.words):  # it may also be given to the class from outside
        return False
    for base in node.bases:
        if table.full_name(dotted(base.value)) in ("types.ModuleType", "object"):
            continue  # an object of a class made from that of modules is none for the compiler
        if not _names_plain_class(table, base.value, depth + 1):
            return False
    return True


def _names_plain_class(table: ModuleTable, node: cst.BaseExpression, depth: int = 0) -> bool:
    name = node.value if isinstance(node, cst.Name) else ""
    binding = table.bindings.get(name)
    if binding is None or name in table.ambiguous or name in table.rebound or depth > _MOST_BASES:
        return False
    if not isinstance(binding, Import):
        return _is_plain_class(table, binding, depth)
    if binding.member is None:
        return False
    found = table.project.find(Import(binding.module, None, binding.level), table.file)
    return found is not None and _names_plain_class(found, cst.Name(binding.member), depth + 1)


_MOST_BASES = 3
_ODD = re.compile(r"__(?:new|getattr|getattribute|class)__|__triton_")


def settle_on(table: ModuleTable, name: str, binding: Binding) -> None:
    """`name` holds `binding` wherever a kernel is compiled that uses it."""
    table.settle(name)
    table.bindings[name] = binding
    ways = table.history[name]
    if all(way == binding for way, _ in ways):
        table.rebound.discard(name)
        return
    table.stood_in.add(name)
    if all(stands_in(table, way, binding) for way, _ in ways):
        [statement, *_] = [statement for way, statement in ways if way == binding]
        if not _is_looked_at(table, name, statement):
            table.rebound.discard(name)


def settle_languages(table: ModuleTable) -> None:
    """`if HAS_TRITON: import triton / else: triton = Placeholder()`: the import counts, as in a `try`."""
    for name, ways in list(table.ways.items()):
        modules = {way for way in ways if isinstance(way, Import)}
        if len(modules) != 1 or name in table.lost:
            continue
        [module] = modules
        if is_language(module) and all(stands_in(table, way, module) for way in ways):
            settle_on(table, name, module)


def settle_stubs(table: ModuleTable) -> None:
    """A function that is compiled, beside ones that only raise where Triton is missing."""
    for name, ways in list(table.ways.items()):
        compiled = None if name in table.lost else compiled_way(ways)
        if compiled is not None:
            settle_on(table, name, compiled)


def _is_looked_at(table: ModuleTable, name: str, statement: cst.CSTNode | None) -> bool:
    """Whether code may have asked for the name before that statement, inside whatever function, or does more
    with it anywhere than to read an attribute or to test it in an `if` (of whose parts each may be run)."""
    bound = False
    stack: list[tuple[cst.CSTNode, bool]] = [(table.parsed.module, False)]
    while stack:
        node, harmless = stack.pop()
        bound = bound or node is statement
        if isinstance(node, cst.Name) and node.value == name and not (bound and harmless):
            return True
        if isinstance(node, cst.Import | cst.ImportFrom):
            continue
        stack.extend(reversed([(below, _is_harmless(node, below)) for below in _read_in(node)]))
    return False


def _read_in(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes below that are no names of what is bound, of members, or of arguments."""
    left_out = (
        node.target if isinstance(node, cst.AssignTarget | cst.AnnAssign) and _is_name(node.target) else None,
        node.name if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Param) else None,
        node.attr if isinstance(node, cst.Attribute) else None,
        node.keyword if isinstance(node, cst.Arg) else None,
    )
    return [below for below in children(node) if not any(below is other for other in left_out)]


def _is_name(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name)


def _is_harmless(node: cst.CSTNode, below: cst.CSTNode) -> bool:
    if isinstance(node, cst.Attribute):
        return below is node.value
    return isinstance(node, cst.If) and below is node.test
