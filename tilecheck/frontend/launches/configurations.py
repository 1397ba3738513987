"""The configurations of `triton.autotune`, read from their lists.

Lists often depend on the machine in what is no matter here (`num_warps`), so a list is read with every choice
that its text leaves open. It is exact if every choice gives the same configurations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import TilecheckError, UnsupportedConstruct
from tilecheck.frontend.execute import statements
from tilecheck.frontend.execute.expressions import MODULE, evaluate, static_items
from tilecheck.frontend.host.values import Config, Table
from tilecheck.frontend.values.values import Choice, Frame, Num, Seq
from tilecheck.ir import expr as E

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

_MOST = 128  # different configurations
_MOST_MADE = 4000  # that a comprehension makes, equal ones included


@dataclass(frozen=True, slots=True)
class Configurations:
    """What each configuration passes; `exact` if there are just these on every machine. `warps` are their
    numbers of warps, None among them if one is not a literal."""

    tables: tuple[Table, ...]
    exact: bool
    warps: frozenset[int | None] = frozenset()


def read_configurations(
    x: HostExecutor, node: cst.BaseExpression | None, frame: Frame
) -> Configurations | None:
    """The configurations that an expression lists; None where it is not read."""
    if node is None:
        return None
    try:
        found = _read(x, node, frame)
    except TilecheckError:  # not read, or too large
        return None
    return found if found.tables and len(found.tables) <= _MOST else None


def _read(x: HostExecutor, node: cst.BaseExpression, frame: Frame) -> Configurations:
    match node:
        case cst.ListComp() | cst.GeneratorExp():
            return _comprehended(x, node, node.for_in, frame)
        case cst.List() | cst.Tuple():
            return _joined([_read(x, element.value, frame) for element in node.elements])
        case cst.BinaryOperation(operator=cst.Add()):
            return _joined([_read(x, node.left, frame), _read(x, node.right, frame)])
        case cst.IfExp():
            return _either(_read(x, node.body, frame), _read(x, node.orelse, frame))
        case cst.Name() if frame.find(node.value) is None and node.value not in frame.table.ambiguous:
            bound = frame.table.bindings.get(node.value)
            if isinstance(bound, cst.List | cst.ListComp | cst.BinaryOperation | cst.IfExp):
                return _read(x, bound, Frame({}, None, frame.table, MODULE, [], 0))
    return _of_value(evaluate(x, node, frame))


def _of_value(value: Any) -> Configurations:
    match value:
        case Config():
            return Configurations((value.values,), True, frozenset({literal_of(value.warps)}))
        case Choice():
            return _either(_of_value(value.first), _of_value(value.second))
        case Seq():
            return _joined([_of_value(item) for item in value.items])
        case _:
            raise UnsupportedConstruct("configuration")


def _comprehended(
    x: HostExecutor, node: cst.ListComp | cst.GeneratorExp, loop: cst.CompFor, frame: Frame
) -> Configurations:
    """One loop of a comprehension, and the loops inside it."""
    source = evaluate(x, loop.iter, frame)
    if isinstance(source, Choice):
        ways = [_loop(x, node, loop, way, frame) for way in (source.first, source.second)]
        return _either(*ways)
    return _loop(x, node, loop, source, frame)


def _loop(
    x: HostExecutor, node: cst.ListComp | cst.GeneratorExp, loop: cst.CompFor, source: Any, frame: Frame
) -> Configurations:
    try:
        items = static_items(x, source, "configurations")
    except UnsupportedConstruct:
        items = (x.unread("an item"),)  # some item: a configuration that contains it is not known
    inner = Frame(dict(frame.names), frame.parent, frame.table, frame.function, frame.returns, frame.depth)
    found: list[Configurations] = []
    exact = True
    for item in items:
        statements.assign(x, loop.target, item, inner)
        keep = E.all_of(*(x.truth(evaluate(x, test.test, inner)) for test in loop.ifs))
        exact &= keep is E.TRUE or keep is E.FALSE
        if keep is not E.FALSE:
            deeper = loop.inner_for_in
            found.append(_read(x, node.elt, inner) if deeper is None else _comprehended(x, node, deeper, inner))
        if sum(len(f.tables) for f in found) > _MOST_MADE:
            raise UnsupportedConstruct("configurations without end")
    joined = _joined(found)
    return replace(joined, exact=joined.exact and exact)


def _joined(parts: list[Configurations]) -> Configurations:
    tables = {_key(table): table for part in parts for table in part.tables}
    warps = frozenset().union(*(part.warps for part in parts))
    return Configurations(tuple(tables.values()), all(part.exact for part in parts), warps)


def _either(a: Configurations, b: Configurations) -> Configurations:
    same = {_key(t) for t in a.tables} == {_key(t) for t in b.tables}
    both = _joined([a, b])
    return replace(both, exact=both.exact and same)


def literal_of(value: Any) -> int | None:
    """The integer that a value of the host is, if its text says it."""
    known = isinstance(value, Num) and not value.shape and value.elem is not None
    return value.elem.value if known else None


def _key(table: Table) -> tuple[Any, ...]:
    """What tells two configurations apart: the same for the same numbers and truths."""
    return tuple(
        (name, value.kind, value.elem) if isinstance(value, Num) and not value.shape else (name, id(value))
        for name, value in table.items.items()
    )
