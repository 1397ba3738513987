"""What `triton.autotune` and `triton.heuristics` pass to a kernel that a launch leaves to them.

The tuner runs the kernel with each of its configurations, so each is one that a launch may have: the parameters
become symbols, with one fact that lists the configurations. Where they are not read, or may be dropped before
they run, the parameters are values that nothing is known of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.expressions import MODULE, evaluate
from tilecheck.frontend.execute.state import Arguments
from tilecheck.frontend.host.values import WARPS, Table
from tilecheck.frontend.kernels.definitions import TRITON_MAKERS
from tilecheck.frontend.launches.configurations import literal_of, read_configurations
from tilecheck.frontend.launches.pruning import only_chooses
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.values.values import Const, Frame, Function, Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.host import DEFINED, OPAQUE

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

_AUTOTUNE = ("triton.autotune", "triton.runtime.autotuner.autotune", "triton.runtime.autotune")
_HEURISTICS = ("triton.heuristics", "triton.runtime.autotuner.heuristics", "triton.runtime.heuristics")

Caller = Callable[[Any, Arguments], Any]


def tuned(
    x: HostExecutor,
    kernel: Function,
    given: Mapping[str, Any],
    constants: Collection[str],
    call: Caller,
    args: Arguments,
) -> dict[str, Any]:
    """The parameters that the kernel's decorators set, by name; `constants` are those that they may set."""
    found: dict[str, Any] = {}
    frame = kernel.closure or Frame({}, None, kernel.table, MODULE, [], 0)
    is_read = True  # what was met so far: any other decorator may change the tuner that it is given
    for name, node in _decorators(kernel):
        if name in TRITON_MAKERS:
            continue
        if name in _HEURISTICS and isinstance(node, cst.Call):
            by_arguments = _heuristics(x, kernel, node, frame, {**given, **found}, call, args)
            if by_arguments is None:
                by_arguments = _any_of(x, kernel, constants, {**given, **found})
            found |= by_arguments
            continue
        own = None
        if is_read and name in _AUTOTUNE and isinstance(node, cst.Call) and not _is_changed(kernel, node):
            own = _autotuned(x, kernel, node, frame)
        is_read &= own is not None
        if own is None:  # a decorator that is not read may set any of them
            own = _any_of(x, kernel, constants, {**given, **found})
        found |= own
    return found


def _any_of(
    x: HostExecutor, kernel: Function, constants: Collection[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Numbers that are not read for all that a decorator may set."""
    return {name: x.unread(f"{kernel.name}.{name}") for name in constants if name not in given}


def tuned_warps(x: HostExecutor, kernel: Function, given: Mapping[str, Any]) -> int | None:
    """The largest number of warps that the kernel's decorators choose; None where one of them is not read."""
    if "num_warps" in given:  # by a heuristic
        return literal_of(given["num_warps"])
    for name, _ in _decorators(kernel):
        if name in _AUTOTUNE:
            configs = x.known.tuning.get(kernel.node)
            found = {None} if configs is None else configs.warps
            return None if None in found else max(w for w in found if w is not None)
        if name not in (*TRITON_MAKERS, *_HEURISTICS):
            return None
    return WARPS


def _is_changed(kernel: Function, node: cst.Call) -> bool:
    """Whether code changes the configurations after the text that is read here."""
    if kernel.closure is None or not isinstance(kernel.node, cst.FunctionDef):
        return kernel.name in kernel.table.changed
    return kernel.table.changes.tuner_is_changed(kernel.node, node)


def _decorators(kernel: Function) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The decorators, outermost first, by their full names."""
    for decorator in getattr(kernel.node, "decorators", ()):
        node = decorator.decorator
        yield kernel.table.full_name(dotted(node.func if isinstance(node, cst.Call) else node)), node


def _argument(node: cst.Call, name: str) -> cst.BaseExpression | None:
    """The first argument of a decorator, by position or by name."""
    for arg in node.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    first = node.args[0] if node.args else None
    return first.value if first is not None and first.keyword is None and not first.star else None


# ---- autotune ----------------------------------------------------------------------------------------------


def _autotuned(x: HostExecutor, kernel: Function, node: cst.Call, frame: Frame) -> dict[str, Any] | None:
    """One symbol for each parameter that the configurations set; None where these are not read."""
    known = x.known.tuning
    if kernel.node not in known:
        steps, x.steps = x.steps, 0
        with x.before_call():
            known[kernel.node] = read_configurations(x, _argument(node, "configs"), frame)
        x.steps = steps  # the configurations are read once, whoever launches first
    configs = known[kernel.node]
    if configs is None or not only_chooses(node, kernel.table):
        return None
    names = tuple(dict.fromkeys(str(k) for config in configs.tables for k in config.items))
    kinds = {name: _kind([config.items.get(name) for config in configs.tables]) for name in names}
    # A configuration that is dropped before it runs, for some sizes, is none that a launch is sure to have.
    dropped = any(a.keyword is not None and a.keyword.value == "prune_configs_by" for a in node.args)
    found: dict[str, Any] = {name: x.unread(f"{kernel.name}.{name}") for name in names if not kinds[name]}
    origin = OPAQUE if dropped or not configs.exact else DEFINED
    symbols = {name: Symbol(f"{kernel.name}.{name}", Kind.HOST, origin=origin) for name in names if kinds[name]}
    chosen = dict.fromkeys(_is_chosen(config, symbols) for config in configs.tables)
    for name, symbol in symbols.items():
        value = E.bool_sym(symbol) if kinds[name] == "bool" else E.sym(symbol)
        x.define(value, E.any_of(*chosen))
        found[name] = Num((), value, kinds[name], None)
    return found


def _kind(values: list[Any]) -> str:
    """The type that a parameter has in every configuration: int, bool, or neither."""
    kinds = set()
    for value in values:
        known = isinstance(value, Num) and not value.shape and value.elem is not None
        plain = known and (value.elem.value is not None or value.elem in (E.TRUE, E.FALSE))
        kinds.add(value.kind if plain else "")
    return kinds.pop() if len(kinds) == 1 and kinds <= {"int", "bool"} else ""


def _is_chosen(config: Table, symbols: Mapping[str, Symbol]) -> Expr:
    own = {str(name): value for name, value in config.items.items()}
    return E.all_of(*(_is(symbol, own[name]) for name, symbol in symbols.items()))


def _is(symbol: Symbol, value: Num) -> Expr:
    if value.kind == "bool":
        return E.bool_sym(symbol) if value.elem is E.TRUE else E.negate(E.bool_sym(symbol))
    return E.eq(E.sym(symbol), value.elem or E.ZERO)


# ---- heuristics --------------------------------------------------------------------------------------------


def _heuristics(
    x: HostExecutor,
    kernel: Function,
    node: cst.Call,
    frame: Frame,
    given: Mapping[str, Any],
    call: Caller,
    args: Arguments,
) -> dict[str, Any] | None:
    """`{"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}`: each function is called with the arguments. None
    where the table is not read."""
    first = _argument(node, "values")
    try:
        with x.before_call():
            table = None if first is None else evaluate(x, first, frame)
    except UnsupportedConstruct:
        table = None
    found: dict[str, Any] = {}
    if not isinstance(table, Table):
        return None
    for name, function in table.items.items():
        if not isinstance(function, Function):
            found[str(name)] = x.unread(f"{kernel.name}.{name}")
            continue
        before = x.guard
        value = call(function, Arguments((Table({**given, **found}),), (), args.node, args.table))
        x.guard = before
        found[str(name)] = Const(None) if value is None else value
    return found
