"""What a decorator of a host function makes of the arguments before the function gets them.

The decorator's text is executed with a stand-in for the function. Of what it passes on, only contiguous copies
of the parameters are followed; a parameter that comes out another way stays whatever the caller passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.expressions import MODULE, evaluate
from tilecheck.frontend.execute.state import Arguments
from tilecheck.frontend.execute.statements import call_function
from tilecheck.frontend.host.functions import is_own
from tilecheck.frontend.host.values import StandIn, Tensor, Unknown
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import walk, walk_kind
from tilecheck.frontend.values.values import Choice, Frame, Function
from tilecheck.ir import expr as E
from tilecheck.ir.host import host_test

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor
    from tilecheck.frontend.modules.project import ModuleTable

_LIBRARIES = ("torch", "triton", "functools", "typing")


def hands_on(x: HostExecutor, table: ModuleTable, host: cst.FunctionDef) -> dict[str, Tensor] | None:
    """The parameters that decorators make contiguous wherever they are tensors.

    None if a decorator may hand on anything else, turn some arguments away, or return another value than the
    function does. Only one that does more than to hand on the function is followed.
    """
    decorators = (d.decorator for d in host.decorators)
    own = [d for d in decorators if not _is_plain(table, d) and not _registers(x, table, d)]
    if not own:
        return {}
    if len(own) != 1 or isinstance(own[0], cst.Call):
        return None
    names = [p.name.value for p in (*host.params.posonly_params, *host.params.params)]
    before, doubted, line, deciding = x.guard, set(x.doubted), x.line, list(x.deciding)
    stand_in = StandIn([], x.unread("result"))
    try:
        result = _apply(x, table, own[0], stand_in, [Unknown(name) for name in names])
        if x.doubted != doubted:
            return None
    except UnsupportedConstruct:
        return None
    finally:
        x.guard, x.doubted, x.line, x.deciding = before, doubted, line, deciding
    if len(stand_in.calls) != 1 or result is not stand_in.result:
        return None
    given = stand_in.calls[0]
    found = {name: made for name, value in zip(names, given, strict=False) if (made := _made(name, value))}
    kept = (name in found or value == Unknown(name) for name, value in zip(names, given, strict=False))
    return found if len(given) == len(names) and all(kept) else None


def _is_plain(table: ModuleTable, node: cst.BaseExpression) -> bool:
    """Whether a decorator of Python or of a library hands on every argument and every result."""
    text = dotted(node.func if isinstance(node, cst.Call) else node)
    name = table.full_name(text) if text else ""
    return name in ("staticmethod", "classmethod") or name.partition(".")[0] in _LIBRARIES


def _registers(x: HostExecutor, table: ModuleTable, node: cst.BaseExpression) -> bool:
    """Whether a decorator of the project gives back the function that it gets: it may keep it, too."""
    try:
        called = node.func if isinstance(node, cst.Call) else node
        function = evaluate(x, called, Frame({}, None, table, MODULE, [], 0))
    except UnsupportedConstruct:
        return False
    if not isinstance(function, Function) or not isinstance(function.node, cst.FunctionDef):
        return False
    maker = function.node
    if not isinstance(node, cst.Call):
        return _gives_back(maker, [p.name.value for p in maker.params.params])
    inner = [n for n in maker.body.body if isinstance(n, cst.FunctionDef)]
    return (
        len(inner) == 1
        and _gives_back(maker, [inner[0].name.value])
        and _gives_back(inner[0], [p.name.value for p in inner[0].params.params])
    )


def _gives_back(function: cst.FunctionDef, names: list[str]) -> bool:
    """Whether all that a function returns is what one name stands for, which nothing binds anew."""
    body = function.body.body
    last = body[-1].body[-1] if isinstance(body[-1], cst.SimpleStatementLine) else None
    if len(names) != 1 or function.decorators or function.asynchronous or not isinstance(last, cst.Return):
        return False
    found = [n for n in walk(function.body, is_own) if isinstance(n, cst.Return | cst.Yield)]
    plain = all(isinstance(n, cst.Return) and isinstance(n.value, cst.Name) for n in found)
    inner = {n.name.value for n in function.body.body if isinstance(n, cst.FunctionDef)}
    bound = Counter(_bound(function.body))
    bound -= Counter(
        inner - {p.name.value for p in function.params.params}
    )  # once, by the `def` that is given back
    returned = {n.value.value for n in found if isinstance(n.value, cst.Name)}
    return plain and returned == set(names) and names[0] not in bound


def _is_tuple(node: cst.CSTNode) -> bool:
    """Whether names inside a target are bound: not those of `FOUND[name]`."""
    return not isinstance(node, cst.Subscript | cst.Attribute)


def _bound(node: cst.CSTNode) -> Iterator[str]:
    """The names that code binds, the functions inside it included."""
    for n in walk(node):
        match n:
            case (
                cst.AssignTarget()
                | cst.AnnAssign()
                | cst.AugAssign()
                | cst.For()
                | cst.CompFor()
                | cst.Del()
                | cst.NamedExpr()
            ):
                yield from (name.value for name in walk(n.target, _is_tuple) if isinstance(name, cst.Name))
            case cst.FunctionDef() | cst.ClassDef() | cst.NameItem():
                yield n.name.value
            case cst.AsName():
                yield from (name.value for name in walk_kind(n.name, cst.Name))
            case cst.ImportAlias():
                yield dotted(n.name).partition(".")[0]
            case cst.MatchAs() | cst.MatchStar() if n.name is not None:
                yield n.name.value
            case cst.MatchMapping() if n.rest is not None:
                yield n.rest.value


def _apply(
    x: HostExecutor, table: ModuleTable, node: cst.BaseExpression, stand_in: StandIn, given: list[Any]
) -> Any:
    decorator = evaluate(x, node, Frame({}, None, table, MODULE, [], 0))
    if not isinstance(decorator, Function) or not isinstance(decorator.node, cst.FunctionDef):
        return None
    wrapper = call_function(x, decorator, Arguments((stand_in,), (), node, table))
    if not isinstance(wrapper, Function) or not isinstance(wrapper.node, cst.FunctionDef):
        return None
    return call_function(x, wrapper, Arguments(tuple(given), (), node, table))


def _made(name: str, value: Any) -> Tensor | None:
    """A parameter's contiguous copy, if that is what is passed for it where it is a tensor."""
    asked = host_test(f"isinstance({name}, torch.Tensor)")
    if isinstance(value, Choice) and value.cond in (asked, E.negate(asked)):
        ways = (value.first, value.second) if value.cond is asked else (value.second, value.first)
        value = ways[0] if ways[1] == Unknown(name) else None
    own = isinstance(value, Tensor) and value.storage == name and value.name == f"{name}.contiguous()"
    return value if isinstance(value, Tensor) and own and value.contiguous else None
