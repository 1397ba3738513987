"""Whether what prunes the configurations of `triton.autotune` only chooses among those that are listed.

`early_config_prune` gets the configurations and may return any: also new ones, or those that it has changed.
What it returns are those of the list if its code, and that of the functions it names, makes no configuration,
stores into nothing, and takes values of the module from nowhere but constants.
"""

from __future__ import annotations

import libcst as cst

from tilecheck.frontend.modules.bindings import Import
from tilecheck.frontend.modules.mutability import LIBRARIES
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk

_OPTIONS = ("early_config_prune", "perf_model", "top_k")  # the last two: which run first, and how many
# Of Python's functions, those that change nothing they are given and make nothing that runs code.
_BUILTINS = frozenset(
    "None True False __name__ len sum any all min max abs round divmod pow range enumerate zip reversed sorted "
    "iter next filter map list tuple set frozenset dict int float bool str repr print isinstance hasattr "
    "Exception ValueError KeyError RuntimeError AssertionError NotImplementedError".split()
)
# Methods of lists, tables, texts, tensors, loggers and configurations after which each configuration is as it
# was. A table has none of those that change lists: what a configuration passes is held in tables.
_METHODS = frozenset(
    "append extend insert remove sort reverse index count copy get items keys values all_kwargs "
    "numel size stride dim element_size join format startswith endswith debug info warning".split()
)


def only_chooses(tuner: cst.Call, table: ModuleTable) -> bool:
    """Whether no call of the tuner runs a configuration that its list does not have.

    `tuner` is the call of `triton.autotune` in a module; a call that does not prune only chooses.
    """
    for place, arg in enumerate(tuner.args):
        name = "" if arg.keyword is None else arg.keyword.value
        if arg.star:
            chooses = arg.star == "**" and _names_no_prune(arg.value, table)
        else:
            is_option = name == "prune_configs_by" or (not name and place == 2)
            chooses = not is_option or _chooses(arg.value, table)
        if not chooses:
            return False
    return True


def _names_no_prune(options: cst.CSTNode, table: ModuleTable) -> bool:
    """Whether `**options` cannot hold `prune_configs_by`."""
    match options:
        case cst.Dict(elements=elements):
            keys = [e.key for e in elements if isinstance(e, cst.DictElement)]
            texts = [key.evaluated_value for key in keys if isinstance(key, cst.SimpleString)]
            return len(texts) == len(elements) and "prune_configs_by" not in texts
        case cst.IfExp(body=body, orelse=orelse):
            return all(_names_no_prune(way, table) for way in (body, orelse))
        case cst.Name(name) if table.changes.key(options)[0] is None:
            where, value = table.origin(name) or (table, None)
            return isinstance(value, cst.Dict | cst.IfExp) and _names_no_prune(value, where)
    return False


def _chooses(options: cst.BaseExpression, table: ModuleTable) -> bool:
    if not isinstance(options, cst.Dict):
        return False
    for element in options.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return False
        if element.key.evaluated_value not in _OPTIONS:
            return False
        if element.key.evaluated_value == _OPTIONS[0] and not _is_harmless(element.value, table, set()):
            return False
    return True


def _is_harmless(code: cst.CSTNode, table: ModuleTable, seen: set[cst.CSTNode]) -> bool:
    """Whether running a function, or evaluating an expression, changes and makes no configuration."""
    if code in seen:
        return True
    nodes = tuple(walk(code, lambda node: not isinstance(node, cst.Annotation)))
    seen.update(nodes)
    return all(_is_step_harmless(node, table, seen) for node in nodes)


def _is_step_harmless(node: cst.CSTNode, table: ModuleTable, seen: set[cst.CSTNode]) -> bool:
    match node:
        case cst.ClassDef() | cst.Global() | cst.Nonlocal() | cst.Import() | cst.ImportFrom() | cst.Decorator():
            return False
        case cst.Subscript():
            return not table.changes.is_stored(node)
        case cst.AugAssign():  # `|=` changes the table that a name is bound to
            return not isinstance(node.operator, cst.BitOrAssign)
        case cst.Attribute():
            return not table.changes.is_stored(node) and _is_attribute_harmless(node, table)
        case cst.Call(func=cst.Name() as called):
            return table.changes.key(called)[0] is None  # a local variable may hold any function
        case cst.Call(func=cst.Attribute()):
            return True
        case cst.Call():
            return False
        case cst.Name():
            return _is_name_harmless(node, table, seen)
    return True


def _is_attribute_harmless(node: cst.Attribute, table: ModuleTable) -> bool:
    """Whether `x.name` is no function that makes or changes a configuration."""
    name = node.attr.value
    if table.kinds.library(node):
        return name != "Config"
    called = table.changes.parents[node]
    if isinstance(called, cst.Call) and called.func is node:
        return name in _METHODS
    return not name.startswith("_") and name not in ("update", "setdefault", "pop", "popitem", "clear")


def _is_name_harmless(node: cst.Name, table: ModuleTable, seen: set[cst.CSTNode]) -> bool:
    changes = table.changes
    if changes.is_name_only(node):
        return True
    scope, name = changes.key(node)
    if scope is not None:
        return scope in seen  # then it holds what other parts of the code give
    binding = table.bindings.get(name)
    if binding is None:
        return name in _BUILTINS and name not in table.lost
    if isinstance(binding, Import) and binding.name.partition(".")[0] in LIBRARIES and not binding.level:
        return binding.member != "Config" and name not in table.ambiguous
    origin = table.origin(name)
    if origin is None:
        return False
    where, value = origin
    if isinstance(value, cst.FunctionDef):
        return not where.replaces_functions and _is_harmless(value, where, seen)
    # Nothing can put a configuration into what is fixed, and its own text makes none.
    return (
        isinstance(value, cst.BaseExpression)
        and where.kinds.is_fixed(value)
        and _is_harmless(value, where, seen)
    )
