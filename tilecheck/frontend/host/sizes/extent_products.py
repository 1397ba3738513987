"""Loops that multiply extents of a shape of any rank, and may set them to 1 as they go.

`for size in x.shape: n *= size`, `for i in range(dim): n *= shape[i]` or `n *= x.size(i)`, and for axes that
the text does not give `for i in dims: n *= shape[i]; shape[i] = 1`. Such a loop has a known result whatever the
rank and the axes are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.execute.expressions import evaluate
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.sizes.operators import operate
from tilecheck.frontend.host.targets import change
from tilecheck.frontend.host.values import Axes, Dims, HostShape, Unknown
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.values.values import Frame, Num, Range, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import host_numel, host_rank

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor


@dataclass(frozen=True, slots=True)
class _Product:
    """`name *= factor`."""

    name: str
    factor: cst.BaseExpression


@dataclass(frozen=True, slots=True)
class _Store:
    """`shape[i] = 1`."""

    shape: str
    value: cst.BaseExpression


def multiplies(x: HostExecutor, node: cst.For, source: Any, frame: Frame) -> bool:
    """Run a loop of this kind at once. False, and nothing is changed, if the loop is another."""
    variable = node.target.value if isinstance(node.target, cst.Name) else ""
    steps = list(_steps(node, variable))
    products = [s for s in steps if isinstance(s, _Product)]
    stores = [s for s in steps if isinstance(s, _Store)]
    names = [s.name for s in products]
    shapes = {_shape_named(s.factor, variable) for s in products} | {s.shape for s in stores}
    if not variable or None in steps or len({*names, variable}) <= len(names) or len(stores) > 1:
        return False
    held = [frame.names.get(name) for name in names]
    of = next(iter(shapes), None)
    if of is None or len(shapes) != 1 or not all(isinstance(value, Num) for value in held):
        return False
    if isinstance(source, HostShape | Dims):
        found = None if of else _over_shape(x, source)
    else:
        found = _over_axes(x, source, steps, _value(x, of, frame), stores, frame)
    if found is None:
        return False
    factor, after = found
    for name, value in zip(names, held, strict=True):
        frame.names[name] = operate(x, "*", value, Num((), unknown_ranks.meant(x, factor), "int", None))
    if stores:
        change(x, _value(x, of, frame), unknown_ranks.shape_of_parts(after, is_list=True), frame)
    frame.names[variable] = x.natural(variable)
    return True


def _steps(node: cst.For, variable: str) -> Iterator[_Product | _Store | None]:
    """What the body does; None for anything else."""
    for line in node.body.body:
        smalls = line.body if isinstance(line, cst.SimpleStatementLine) else (line,)
        for small in smalls:
            match small:
                case cst.AugAssign(cst.Name(name), cst.MultiplyAssign(), factor):
                    yield _Product(name, factor)
                case cst.Assign([cst.AssignTarget(cst.Name(name))], cst.BinaryOperation() as right):
                    ways = {dotted(right.left): right.right, dotted(right.right): right.left}
                    plain = isinstance(right.operator, cst.Multiply) and name in ways
                    yield _Product(name, ways[name]) if plain else None
                case cst.Assign([cst.AssignTarget(cst.Subscript() as target)]):
                    shape = _shape_named(target, variable)
                    yield _Store(shape, small.value) if shape else None
                case _:
                    yield None


def _shape_named(factor: cst.CSTNode, variable: str) -> str | None:
    """The shape of which `shape[i]` or `x.size(i)` is an item; empty for the loop's variable itself."""
    match factor:
        case cst.Name(name) if name == variable:
            return ""
        case cst.Call(cst.Attribute(value, cst.Name("size")), [cst.Arg(cst.Name(name))]) if name == variable:
            return f"{dotted(value)}.size()" if dotted(value) else None
        case cst.Subscript(value, [cst.SubscriptElement(cst.Index(cst.Name(name)))]) if name == variable:
            return dotted(value) or None
        case _:
            return None


def _value(x: HostExecutor, path: str, frame: Frame) -> Any:
    """What a name, or an attribute of what it names, stands for."""
    return evaluate(x, cst.parse_expression(path), frame) if path else None


def _over_shape(x: HostExecutor, source: HostShape | Dims) -> tuple[Expr, unknown_ranks.Parts] | None:
    parts = unknown_ranks.parts_of(x, source)
    return None if parts is None else (unknown_ranks.product(parts), parts)


def _over_axes(
    x: HostExecutor, source: Any, steps: list[Any], held: Any, stores: list[_Store], frame: Frame
) -> tuple[Expr, unknown_ranks.Parts] | None:
    """The product of the extents along some axes, and the shape where these are 1."""
    parts = unknown_ranks.parts_of(x, held) if isinstance(held, HostShape | Dims) else None
    if parts is None:
        return None
    if stores:
        # In a later round an axis may come again, and what is multiplied then is the 1 that was stored.
        one = evaluate(x, stores[0].value, frame)
        if steps[-1] is not stores[0] or not isinstance(one, Num) or one.elem is not E.ONE:
            return None
    if isinstance(source, Range):
        return _over_range(x, source, parts)
    if not stores or isinstance(source, Seq):
        return None
    only = parts[0] if len(parts) == 1 else None
    if not isinstance(only, Axes) or not only.is_whole:
        return None
    return _over_any(x, source.name if isinstance(source, Unknown) else "(dims)", only.of)


def _over_range(
    x: HostExecutor, r: Range, parts: unknown_ranks.Parts
) -> tuple[Expr, unknown_ranks.Parts] | None:
    start, stop, step = (x.scalar(n, "loop bound") for n in (r.start, r.stop, r.step))
    if step is not E.ONE or not all(_counts(x, at, parts) for at in (start, stop)):
        return None
    ends = unknown_ranks.divided(x, parts, stop)
    ways = None if ends is None else unknown_ranks.divided(x, ends[0], start)
    if ends is None or ways is None:
        return None
    ones = Axes(unknown_ranks.of_count(x, "shape", E.ONE, unknown_ranks.rank(ways[1])))
    return unknown_ranks.product(ways[1]), (*ways[0], ones, *ends[1])


def _counts(x: HostExecutor, at: Expr, parts: unknown_ranks.Parts) -> bool:
    """Whether a position is none that a slice would count from the end."""
    less = E.sub(at, unknown_ranks.rank(parts)).value
    return unknown_ranks.is_nonnegative(x, at) or (less is not None and less <= 0)


def _over_any(x: HostExecutor, dims: str, of: str) -> tuple[Expr, unknown_ranks.Parts]:
    """Any axes of a free tensor, in any order: the product of their extents, and that of all others, make the
    number of its elements."""
    inside, others = f"{of}.shape[{dims}]", f"{of}.shape[not {dims}]"
    key = (of, E.sym(host_rank(inside)))
    if key not in x.cuts:
        unknown_ranks.parted(x, key, inside, others)
        x.define(E.sym(host_rank(others)), E.eq(E.sym(host_rank(others)), E.sym(host_rank(of))))
    return E.sym(host_numel(inside)), (Axes(others),)
