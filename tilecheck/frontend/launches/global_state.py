"""What host code keeps between its calls: module globals, containers, attributes of classes and functions.

No caller hands such a value in: host code put it there itself, for another call. Names are those of host
values, as `_BUFFER`, `_CACHE[...]`, `self.buf`, `Op.buf`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk_kind

_CONTAINERS = (cst.Dict, cst.List, cst.Set, cst.DictComp, cst.ListComp)
_MADE = ("__init__", "__post_init__", "__new__")  # what these assign comes from whoever makes the object


def kept_names(table: ModuleTable, function: cst.FunctionDef) -> tuple[str, ...]:
    """The names under which a host function finds what the module keeps between calls."""
    return tuple(dict.fromkeys((*_of_module(table), *_fields(table), *_defaults(function))))


def _of_module(table: ModuleTable) -> Iterator[str]:
    for node in table.nodes(cst.Global):
        yield from (item.name.value for item in node.names)
    for name, binding in table.bindings.items():
        if isinstance(binding, (*_CONTAINERS, cst.FunctionDef, cst.ClassDef)):
            yield name


def _fields(table: ModuleTable) -> Iterator[str]:
    """Fields that methods assign after the object was made."""
    for owner in table.nodes(cst.ClassDef):
        for method in owner.body.body:
            if isinstance(method, cst.FunctionDef) and method.name.value not in _MADE:
                for node in walk_kind(method.body, cst.AssignTarget):
                    match node:
                        case cst.AssignTarget(cst.Attribute(cst.Name("self"), cst.Name(field))):
                            yield f"self.{field}"


def _defaults(function: cst.FunctionDef) -> Iterator[str]:
    """Parameters whose default is one container for all calls."""
    params = function.params
    for param in (*params.posonly_params, *params.params, *params.kwonly_params):
        if isinstance(param.default, _CONTAINERS):
            yield param.name.value
