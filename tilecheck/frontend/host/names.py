"""Names, attributes and subscripts in host code, module-level values included."""

from __future__ import annotations

from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute import expressions
from tilecheck.frontend.execute.expressions import evaluate, module_name
from tilecheck.frontend.host.memory.mutations import is_mutable, lose_objects, read_global, read_member
from tilecheck.frontend.host.memory.sharing import kept, unread_of
from tilecheck.frontend.host.memory.unread_effects import stop_at_reshaping
from tilecheck.frontend.host.run import HostExecutor
from tilecheck.frontend.host.targets import kept_attribute, of_form
from tilecheck.frontend.host.values import Dims, Gridded, Order, Table, Unknown
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.modules.submodules import submodule
from tilecheck.frontend.values.values import (
    Choice,
    Frame,
    Function,
    ModuleRef,
    Named,
    Poison,
    Record,
    Seq,
)


def name(x: HostExecutor, node: cst.Name, frame: Frame) -> Any:
    if (frame.table.file, node.value) in x.events.rebound and node.value not in frame.names:
        return unread_of(x, node.value, frame.find(node.value))
    found = frame.find(node.value)
    if isinstance(found, Poison):  # lost by a loop or a branch: from here on one unknown value
        found = frame.names[node.value] = x.unread(node.value)
    if is_mutable(found):
        if frame.table.changes.is_lost_from_sight(node, flat=_is_flat(found)):
            lose_objects(x, (found,), frame)  # what is in it may change with it
            return unread_of(x, node.value, found)
        return found
    if found is None and expressions.sees_earlier(x, node.value, frame):
        return x.unread(node.value)
    return found if found is not None else perhaps_another(x, frame.table, node.value)


def perhaps_another(x: HostExecutor, table: ModuleTable, name: str) -> Any:
    """The value of a module-level name where `None` would do as well: unknown if something stands in for it
    where an import fails. A kernel is launched in the end, which nothing else is."""
    value = module_value(x, table, name)
    if not table.may_stand_in(name) or (isinstance(value, Function) and x.language_of(value)):
        return value
    return x.unread(name)


def used(x: HostExecutor, node: cst.BaseExpression, frame: Frame) -> Any:
    """What is called, subscripted or asked for an attribute: what stands in for an import has none of that."""
    name = node.value if isinstance(node, cst.Name) else ""
    if not name or frame.find(name) is not None or not frame.table.may_stand_in(name):
        return evaluate(x, node, frame)
    return module_value(x, frame.table, name)


def _is_flat(container: Any) -> bool:
    """Whether a container holds none that could be changed in it."""
    if isinstance(container, Dims | Order):
        return True
    if not isinstance(container, Seq | Table):
        return False
    items = container.items if isinstance(container, Seq) else container.items.values()
    return not any(
        isinstance(item, Table | Record) or (isinstance(item, Seq) and item.is_list) for item in items
    )


def module_value(x: HostExecutor, table: ModuleTable, name: str) -> Any:
    """The value of a module-level name, computed once in a run."""
    key = (table.file, name)
    if key not in x.module_values:
        allocation, x.allocation = x.allocation, name
        try:
            with x.before_call():
                value = kept(module_name(x, table, name))
        except UnsupportedConstruct:
            value = x.unread(name)
        finally:
            x.allocation = allocation
        x.module_values[key] = x.unread(name) if isinstance(value, Poison) else value
    found = x.module_values[key]
    return read_global(x, found) if isinstance(found, Unknown) and name in table.lost else found


def subscript(x: HostExecutor, node: cst.Subscript, frame: Frame) -> Any:
    """A module-level container gives what the module stores in it, if all of that has one form."""
    index = expressions.index_of(x, node, frame)
    if isinstance(node.value, cst.Name) and frame.find(node.value.value) is None:
        key = (frame.table.file, node.value.value)
        if key in x.forms:
            return of_form(x, x.forms[key], x.unread(frame.table.text(node)).name)
    return _item(x, used(x, node.value, frame), index)


def _item(x: HostExecutor, value: Any, index: Any) -> Any:
    match value:
        case Function() if x.language_of(value) == "triton":
            return Gridded(value, index)
        case Choice() if any(isinstance(way, Function) for way in (value.first, value.second)):
            return x.split(
                value.cond, lambda: _item(x, value.first, index), lambda: _item(x, value.second, index)
            )
        case _:
            return expressions.subscript(x, value, index)


def attribute_node(x: HostExecutor, node: cst.Attribute, frame: Frame) -> Any:
    stop_at_reshaping(x, node)
    assigned = kept_attribute(dotted(node), frame) if dotted(node) else None
    if assigned is not None:
        return assigned
    value = used(x, node.value, frame)
    if isinstance(value, ModuleRef) and frame.table.changes_member(node, value.table):
        return x.unread(dotted(node))
    return attribute(x, value, node.attr.value)


def attribute(x: HostExecutor, value: Any, name: str) -> Any:
    if isinstance(value, ModuleRef):
        inner = submodule(value.table, name)
        return perhaps_another(x, value.table, name) if inner is None else ModuleRef(inner)
    if isinstance(value, Function) and name == "_pyfunc":
        return value  # the function that a kernel was made of
    found = expressions.attribute(x, value, name)
    return read_member(x, found) if isinstance(found, Named) else found
