"""What the names of modules stand for, and the members of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host_guards.kinds import (
    NOTHING,
    UNKNOWN,
    Class,
    Code,
    External,
    Kernel,
    Kind,
    Made,
    Module,
)
from tilecheck.frontend.modules.bindings import Binding, Element, Import, dotted

if TYPE_CHECKING:
    from tilecheck.frontend.host_guards.program import Program
    from tilecheck.frontend.modules.project import ModuleTable

_ROOT = "tilecheck"


def path(p: Program, table: ModuleTable, text: str) -> Kind:
    """What a dotted name of a module stands for."""
    head, *rest = text.split(".")
    found = value(p, table, head)
    for name in rest:
        found = NOTHING.union(*(_member_of(p, atom, name) for atom in found))
    return found


def _member_of(p: Program, atom: object, name: str) -> Kind:
    match atom:
        case External(name=full):
            return frozenset({External(f"{full}.{name}")})
        case Module(table=table):
            return of_module(p, table, name)
        case _:
            return UNKNOWN


def value(p: Program, table: ModuleTable, name: str) -> Kind:
    """What a name of a module stands for."""
    key = (table.file, name)
    if key in p.resolving:  # it is bound by means of itself
        return UNKNOWN
    p.resolving.add(key)
    try:
        return _value(p, table, name)
    finally:
        p.resolving.discard(key)


def _value(p: Program, table: ModuleTable, name: str) -> Kind:
    p.note(table)
    if name in table.lost and not _is_one_class(table, name):
        return UNKNOWN
    if name in table.ambiguous and name not in table.lost:
        ways = table.choices(name)
        return NOTHING.union(*(_bound(p, table, name, way) for way in ways)) if ways else UNKNOWN
    binding = table.bindings.get(name)
    if binding is None:
        return frozenset({External(f"builtins.{name}")}) if table.is_builtin(name) else UNKNOWN
    return _bound(p, table, name, binding)


def _is_one_class(table: ModuleTable, name: str) -> bool:
    """Whether a name is that of one class, which counts as lost because code may change its attributes alone:
    those are looked up with what replaces them."""
    patched = table.project.patches.of(table.file).bound
    if name not in table.changed or name in table.ways or name in patched or "" in patched:
        return False
    bound = [binding for binding, _ in table.history.get(name, ())]
    return len(bound) == 2 and isinstance(bound[0], cst.ClassDef) and bound[1] is None


def _bound(p: Program, table: ModuleTable, name: str, binding: Binding) -> Kind:
    match binding:
        case Import():
            return imported(p, table, binding)
        case cst.FunctionDef():
            is_kernel = binding in p.kernels.in_module(table)
            return frozenset({Kernel(binding.name.value, table.file) if is_kernel else Code(binding, table)})
        case cst.ClassDef():
            return frozenset({Class(binding, table)})
        case Element(value=cst.Tuple(elements=parts) | cst.List(elements=parts), index=at) if all(
            isinstance(part, cst.Element) for part in parts[: at + 1]
        ):
            return _bound(p, table, name, parts[at].value) if at < len(parts) else UNKNOWN
        case Element():
            return UNKNOWN
        case _:
            if table.may_change(name):
                return UNKNOWN
            return p.evaluate(p.frame(table.parsed.module, table), binding)


def imported(p: Program, table: ModuleTable, binding: Import) -> Kind:
    """What an import gives: something of a library or of the project, unless files replace what is in it."""
    root = "" if binding.level else binding.module.partition(".")[0]
    if root == _ROOT:
        return UNKNOWN if root in p.patched else frozenset({External(binding.name)})
    found = table.project.find(Import(binding.module, None, binding.level), table.file)
    if found is None:
        return frozenset({External(binding.name)}) if root and root not in p.patched else UNKNOWN
    p.note(found)
    if binding.member is None:
        return frozenset({Module(found)})
    return of_module(p, found, binding.member)


def of_module(p: Program, table: ModuleTable, name: str) -> Kind:
    """A name of another module, or a module inside it."""
    if p.is_replaced(name):
        return UNKNOWN
    if name in table.bindings or name in table.ambiguous or name in table.lost:
        return value(p, table, name)
    inner = table.project.find(Import(name, None, 1), table.file)
    if inner is None or not table.file.endswith("__init__.py"):
        return UNKNOWN
    p.note(inner)
    return frozenset({Module(inner)})


def expression_of(p: Program, table: ModuleTable, text: str) -> tuple[ModuleTable, cst.BaseExpression] | None:
    """The expression that a name of a module is bound to, with its module."""
    head, _, rest = text.partition(".")
    if rest:
        found = value(p, table, head)
        inner = next((atom.table for atom in found if isinstance(atom, Module)), None)
        return None if inner is None or len(found) > 1 else expression_of(p, inner, rest)
    origin = table.origin(head)
    if origin is None or not isinstance(origin[1], cst.BaseExpression):
        return None
    p.note(origin[0])
    return origin[0], origin[1]


# ---- classes -----------------------------------------------------------------------------------------------

_PLAIN_BASES = frozenset(
    "builtins.object abc.ABC typing.Protocol typing.Generic typing_extensions.Protocol".split()
)
_PLAIN_DECORATORS = frozenset(
    map(External, ("dataclasses.dataclass", "typing.final", "typing.runtime_checkable"))
)
_TUPLES = frozenset({"typing.NamedTuple"})
_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum"})


def bases(p: Program, of: Class) -> list[Kind]:
    found = []
    for base in of.node.bases:
        node = base.value.value if isinstance(base.value, cst.Subscript) else base.value
        text = dotted(node)
        found.append(path(p, of.table, text) if text else UNKNOWN)
    return found


def lineage(p: Program, of: Class) -> tuple[list[Class], bool]:
    """A class and those of the project that it inherits from, and whether no others give it members."""
    listed: list[Class] = []
    todo, is_whole = [of], True
    while todo:
        one = todo.pop(0)
        if one in listed:
            continue
        listed.append(one)
        if one.node.keywords or not _has_plain_body(p, one) or not _has_plain_decorators(p, one):
            is_whole = False  # a metaclass, for example, may give it others
        for base in bases(p, one):
            for atom in base:
                if isinstance(atom, Class):
                    todo.append(atom)
                elif not (isinstance(atom, External) and _is_plain_base(atom.name)):
                    is_whole = False
    return listed, is_whole


def _is_plain_base(name: str) -> bool:
    is_error = name.startswith("builtins.") and name.endswith(("Error", "Exception", "Warning", "Interrupt"))
    return name in _PLAIN_BASES | _TUPLES | _ENUMS or is_error


def is_tuple(p: Program, of: Class) -> bool:
    return any(isinstance(a, External) and a.name in _TUPLES for base in bases(p, of) for a in base)


def is_protocol(p: Program, of: Class) -> bool:
    return any(isinstance(a, External) and a.name.endswith(".Protocol") for base in bases(p, of) for a in base)


def members(p: Program, of: Class) -> Mapping[str, cst.CSTNode]:
    """What the body of a class binds: functions, expressions, and annotations alone."""
    known = p.texts.members.get(of.node)
    if known is not None:
        return known
    found = p.texts.members[of.node] = {}
    for line in of.node.body.body:
        match line:
            case cst.FunctionDef(name=cst.Name(value=name)):
                found[name] = line
            case cst.SimpleStatementLine(body=statements):
                for statement in statements:
                    match statement:
                        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                            found[name] = value
                        case cst.AnnAssign(target=cst.Name(value=name)):
                            found[name] = statement
    return found


def _has_plain_body(p: Program, of: Class) -> bool:
    """Whether the body of a class binds members in no other ways than those that are looked at."""
    known = p.texts.plain.get(of.node)
    if known is None:
        known = p.texts.plain[of.node] = _is_plain_body(of)
    return known


def _is_plain_body(of: Class) -> bool:
    for line in of.node.body.body:
        if isinstance(line, cst.FunctionDef):
            continue
        if not isinstance(line, cst.SimpleStatementLine):
            return False
        for statement in line.body:
            match statement:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]) | cst.AnnAssign() | cst.Pass():
                    pass
                case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString() | cst.Ellipsis()):
                    pass
                case _:
                    return False
    return True


def _has_plain_decorators(p: Program, of: Class) -> bool:
    """Whether the decorators of a class leave it what it is."""
    for decorator in of.node.decorators:
        named = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
        text = dotted(named)
        if not text or not path(p, of.table, text) <= _PLAIN_DECORATORS:
            return False
    return True


def member(p: Program, of: Class, name: str) -> tuple[Class, cst.CSTNode] | None:
    """A member of a class of the project, with the class that has it."""
    for one in lineage(p, of)[0]:
        found = members(p, one).get(name)
        if found is not None:
            return one, found
    return None


def is_abstract(p: Program, of: Class) -> bool:
    """Whether objects of a class lack a method: it only says what those of others do."""
    if is_protocol(p, of):
        return True
    known: set[str] = set()
    for one in lineage(p, of)[0]:
        for name, node in members(p, one).items():
            if name not in known and isinstance(node, cst.FunctionDef):
                decorators = {dotted(d.decorator).rpartition(".")[2] for d in node.decorators}
                if "abstractmethod" in decorators:
                    return True
        known |= members(p, one).keys()
    return False


def objects(p: Program, of: Class) -> Kind:
    """The objects that an annotation may stand for: of the class, of those in view that inherit from it, and of
    those that have all the methods of a protocol."""
    protocol = is_protocol(p, of)
    asked = {name for name, node in members(p, of).items() if isinstance(node, cst.FunctionDef)}
    found: list[Class] = [] if is_abstract(p, of) else [of]
    for table in list(p.tables.values()):
        for node in table.bindings.values():
            if not isinstance(node, cst.ClassDef) or node is of.node:
                continue
            one = Class(node, table)
            inherits = of in lineage(p, one)[0]
            has_all = protocol and asked and all(member(p, one, name) is not None for name in asked)
            if (inherits or has_all) and not is_abstract(p, one):
                found.append(one)
    p.open(found)
    return frozenset(map(Made, found or [of]))


def fields(p: Program, of: Class) -> dict[str, cst.BaseExpression | None]:
    """The fields of a data class or a named tuple, with their defaults."""
    found: dict[str, cst.BaseExpression | None] = {}
    for name, node in members(p, of).items():
        if isinstance(node, cst.AnnAssign):
            found[name] = node.value
    return found
