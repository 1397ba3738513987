"""Classes of plain fields: dataclasses, namespaces of constants, enums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.expressions import MODULE, evaluate
from tilecheck.frontend.modules.mutability import Kinds, last_of
from tilecheck.frontend.text.syntax import walk, walk_kind
from tilecheck.frontend.values.values import (
    Const,
    Frame,
    Function,
    ModuleRef,
    Named,
    Num,
    Poison,
    Record,
    RecordType,
    Seq,
)

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Executor
    from tilecheck.frontend.modules.project import ModuleTable

# Methods after which the fields of an object are not what the class body and the call say.
_MAKES_FIELDS = frozenset(
    "__init__ __post_init__ __new__ __getattr__ __getattribute__ __setattr__ __init_subclass__ "
    "__set_name__ __get__ __set__".split()
)
_KEEPING_DECORATORS = frozenset(
    "dataclasses.dataclass enum.unique typing.final functools.total_ordering typing.runtime_checkable".split()
)
_KEEPING_METACLASSES = frozenset("abc.ABCMeta enum.EnumMeta enum.EnumType".split())
_READING = frozenset("get items keys values index count copy".split())
_PLAIN = Num | Const | Seq | Function | ModuleRef | Named | Record | RecordType  # values without `__set_name__`
# With these a method may assign to any field.
_REFLECTION = frozenset("setattr delattr vars __dict__ __setattr__ __delattr__ locals exec eval".split())


def read_class(x: Executor, node: cst.ClassDef, table: ModuleTable) -> RecordType | Poison:
    """The fields of a class, as its body says, if nothing else may set them: no decorator, metaclass or base
    that is not known, no method, and nothing in the body but assignments."""
    name = node.name.value
    unread = _unread_part(node, table.kinds)
    if unread:
        return Poison(f"class `{name}` with {unread}")
    frame = Frame({}, None, table, MODULE, [], 0)
    inherited = _inherited(x, node, frame)
    if isinstance(inherited, Poison):
        return inherited
    own: dict[str, Any] = {}
    for statement in node.body.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if not isinstance(small, cst.Assign | cst.AnnAssign):
                continue
            targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else [small.target]
            names = [target.value for target in targets if isinstance(target, cst.Name)]
            if small.value is None:
                own.update((n, None) for n in names if n not in own)
                continue
            value = evaluate(x, small.value, frame)
            if _may_set_others(small.value, value, table.kinds):
                return Poison(f"class `{name}` with a field that is not read")
            for n in names:
                own[n] = frame.names[n] = value
    fields = {**dict(inherited.fields), **own}
    defined = [s for s in node.body.body if isinstance(s, cst.FunctionDef | cst.ClassDef)]
    methods = frozenset().union(inherited.sets, *map(_sets, defined))
    lost = fields.keys() & ({s.name.value for s in defined} | methods)
    if lost or (fields and "" in methods):
        return Poison(f"class `{name}` whose methods may set its fields")
    return RecordType(name, tuple(fields.items()), methods)


def _may_set_others(node: cst.BaseExpression, value: Any, kinds: Kinds) -> bool:
    """Whether the value of `node` may be an object whose `__set_name__` sets other fields of its class."""
    of_library = isinstance(node, cst.Call) and _is_of_library(node.func, kinds)
    return not of_library and not isinstance(value, _PLAIN)


def _is_of_library(node: cst.BaseExpression, kinds: Kinds) -> bool:
    return kinds.library(node) != "" or kinds.full_name(node).partition(".")[0] in ("dataclasses", "enum")


def _unread_part(node: cst.ClassDef, kinds: Kinds) -> str:
    """What of a class is not read; empty if all of it is."""
    for decorator in node.decorators:
        made = decorator.decorator
        if kinds.full_name(made.func if isinstance(made, cst.Call) else made) not in _KEEPING_DECORATORS:
            return "a decorator"
    if any(kinds.full_name(keyword.value) not in _KEEPING_METACLASSES for keyword in node.keywords):
        return "keywords"
    for statement in node.body.body:
        match statement:
            case cst.FunctionDef(name=cst.Name(method)):
                if method in _MAKES_FIELDS:
                    return f"`{method}`"
            case cst.SimpleStatementLine(body=parts):
                if not all(map(_is_plain, parts)):
                    return "more than fields"
            case cst.ClassDef():
                pass
            case _:
                return "more than fields"
    return ""


def _is_plain(part: cst.CSTNode) -> bool:
    match part:
        case cst.AnnAssign(target=target):
            return isinstance(target, cst.Name)
        case cst.Assign(targets=targets):
            return all(isinstance(target.target, cst.Name) for target in targets)
        case cst.Expr(value=value):
            return isinstance(value, cst.SimpleString | cst.ConcatenatedString | cst.Ellipsis)
    return isinstance(part, cst.Pass)


def _inherited(x: Executor, node: cst.ClassDef, frame: Frame) -> RecordType | Poison:
    """What a class has from the classes of the project below it; those of libraries set no fields of others."""
    unread = Poison(f"class `{node.name.value}` with a base that is not read")
    found: list[RecordType] = []
    for base in node.bases:
        try:
            value = evaluate(x, base.value, frame)
        except UnsupportedConstruct:
            value = None
        if isinstance(value, RecordType):
            found.append(value)
        elif base.star or not (isinstance(value, Named) or _is_generic(base.value)):
            return unread
    return unread if len(found) > 1 else found[0] if found else RecordType("", ())


def _is_generic(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Subscript) and last_of(node.value) in ("Generic", "Protocol")


def _sets(method: cst.FunctionDef | cst.ClassDef) -> frozenset[str]:
    """The attributes that a method may set, of whatever object; the empty name stands for any."""
    found: set[str] = set()
    for node in walk(method):
        match node:
            case cst.Name(name) if name in _REFLECTION:
                found.add("")
            case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.AnnAssign(target=target):
                found.update(_attributes(target))
            case cst.Del(target=target) | cst.For(target=target) | cst.AsName(name=target):
                found.update(_attributes(target))
            case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(name))) if name not in _READING:
                found.update(_attributes(held))
    return frozenset(found)


def _attributes(target: cst.CSTNode) -> set[str]:
    return {n.attr.value for n in walk_kind(target, cst.Attribute)}
