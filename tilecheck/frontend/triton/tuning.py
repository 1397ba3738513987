"""What `triton.autotune` does with a kernel's arrays while it runs the configurations one after another."""

from __future__ import annotations

import libcst as cst

from tilecheck.frontend.kernels.definitions import Definition
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk_kind
from tilecheck.ir.kernel import Tuning

_AUTOTUNE = ("triton.autotune", "triton.runtime.autotuner.autotune", "triton.runtime.autotune")
# In the order of its parameters: lists of names, and functions that may do the same.
_PARAMETERS = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook", "post_hook")
_KEEPS = ("reset_to_zero", "restore_value")
_HOOKS = ("pre_hook", "post_hook")
_LIBRARIES = ("triton", "itertools", "math", "os", "functools", "torch")  # make no configurations with hooks


def read_tuning(definition: Definition) -> Tuning | None:
    """What the tuner around a kernel puts back before each run.

    None where no tuner runs it more than once, and where that is not in the text: with a hook, or with lists
    that are not read.
    """
    table = definition.table
    for decorator in definition.node.decorators:
        node = decorator.decorator
        if isinstance(node, cst.Call) and table.full_name(dotted(node.func)) in _AUTOTUNE:
            return _read(table, node)
    return None


def _read(table: ModuleTable, node: cst.Call) -> Tuning | None:
    given: dict[str, cst.BaseExpression] = {}
    for number, argument in enumerate(node.args):
        if argument.star or (argument.keyword is None and number >= len(_PARAMETERS)):
            return None
        name = _PARAMETERS[number] if argument.keyword is None else argument.keyword.value
        if not (isinstance(argument.value, cst.Name) and argument.value.value == "None"):
            given[name] = argument.value
    configs = given.get("configs")
    if configs is None or any(hook in given for hook in _HOOKS):
        return None
    kept: set[str] = set()
    for name in _KEEPS:
        names = _names(table, given[name]) if name in given else frozenset()
        if names is None:
            return None
        kept |= names
    if _is_single(table, configs) or _may_hook(table, configs):
        return None
    return Tuning(table.site(node.func), frozenset(kept))


def _names(table: ModuleTable, node: cst.BaseExpression) -> frozenset[str] | None:
    node = _bound(table, node)
    if not isinstance(node, cst.List | cst.Tuple):
        return None
    found = [e.value.evaluated_value for e in node.elements if isinstance(e.value, cst.SimpleString)]
    names = frozenset(name for name in found if isinstance(name, str))
    return names if len(found) == len(node.elements) else None


def _is_single(table: ModuleTable, configs: cst.BaseExpression) -> bool:
    """Whether there is at most one configuration: the tuner takes it without a run."""
    configs = _bound(table, configs)
    return (
        isinstance(configs, cst.List | cst.Tuple)
        and len(configs.elements) < 2
        and not any(isinstance(e, cst.StarredElement) for e in configs.elements)
    )


def _may_hook(table: ModuleTable, configs: cst.BaseExpression) -> bool:
    """Whether a configuration may have a hook: the file speaks of one, or they come from elsewhere."""
    if any(hook in table.parsed.words for hook in _HOOKS):
        return True
    names = {n.value for n in walk_kind(_bound(table, configs), cst.Name)}
    imports = [b for name in names if isinstance(b := table.bindings.get(name), Import)]
    return any(b.level or (b.module or b.member or "").partition(".")[0] not in _LIBRARIES for b in imports)


def _bound(table: ModuleTable, node: cst.BaseExpression) -> cst.BaseExpression:
    """What a name of the module stands for."""
    if isinstance(node, cst.Name) and node.value not in table.ambiguous:
        found = table.bindings.get(node.value)
        return found if isinstance(found, cst.BaseExpression) else node
    return node
