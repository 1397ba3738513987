"""Which inputs a host function may have turned away in code that is not read.

`enforce(n % 256 == 0)` says nothing that is followed, but may let only some `n` pass. A launch after it is not
blamed for what goes wrong with other `n`: `Launch.doubted` has the tensors and numbers of which this is so.
Naming too many of them costs a finding, never a proof: no facts are made from them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host.values import (
    Axes,
    Dims,
    HostShape,
    Pair,
    Ratio,
    Split,
    Table,
    Tensor,
    Unknown,
    named_in,
)
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import has_kind, walk, walk_kind
from tilecheck.frontend.values.values import Choice, Frame, Function, Method, Num, Record, Seq
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import owners

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

# Calls that turn no sizes away, by their last name: they report, wait, or hold what they are given.
_HARMLESS = frozenset(
    "print debug info warning warning_once warn log getLogger get_logger synchronize current_stream "
    "set_device current_device device record_stream save_for_backward mark_dirty mark_non_differentiable "
    "set_materialize_grads get_device_properties getattr hasattr setattr isinstance type id str repr "
    "format manual_seed finfo iinfo time perf_counter is_available is_initialized device_count "
    "get_device_capability get_device_name Version float bool update get items keys values startswith "
    "endswith lower upper strip split join result_type promote_types can_cast is_tensor len list tuple "
    "set sorted zip enumerate append insert extend get_default_dtype tensor numel conj view_as_real "
    "bit_length is_non_overlapping_and_dense is_contiguous get_state set_state get_rng_state "
    "initial_seed all_reduce barrier get_rank get_world_size".split()
)
_CONVERSIONS = ("int", "round")  # of Python: they fail for what they are given, or not at all
_REDUCTIONS = ("sum", "any", "all", "mean", "max", "min")
_OF_TYPE = frozenset({"device", "dtype", "is_cuda", "requires_grad", "layout"})
_LEAVING = (cst.Return, cst.Raise, cst.Assert)
_CONDITIONAL = (cst.BooleanOperation, cst.IfExp, cst.Lambda, cst.CompFor)
_STRINGS = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)


def about(node: cst.CSTNode, frame: Frame) -> set[str]:
    """The tensors and numbers that the values named in `node` are made of. Where a tensor lies, and which type
    its elements have, says nothing of its sizes."""
    plain = {n.value for n in walk_kind(node, cst.Attribute) if n.attr.value in _OF_TYPE}
    names = dict.fromkeys(n.value for n in walk_kind(node, cst.Name) if n not in plain)
    return parts(*(value for name in names if (value := frame.find(name)) is not None))


def parts(*values: Any) -> set[str]:
    """The tensors and numbers that values are made of."""
    found: set[str] = set()
    stack, seen = list(values), set[int]()
    while stack:
        value = stack.pop()
        match value:
            case Unknown():
                found.add(value.name)
            case Tensor():
                found.update({value.name, value.storage, value.shape_of, value.strides_of})
                found.update(owners(*(value.shape or ()), *(value.strides or ())))
            case HostShape():
                found.add(value.of)
            case Dims():
                found.update(part.of for part in value.parts if isinstance(part, Axes))
                stack += [part for part in value.parts if isinstance(part, Expr)]
            case Split():
                stack.append(value.tensor)
            case Pair():
                stack += [value.values, value.indices]
            case Num():
                found.update(owners(value.elem) if value.elem is not None else ())
            case Expr():
                found.update(owners(value))
            case Ratio():
                stack += [value.top, value.bottom]
            case Seq():
                stack += value.items
            case Table():
                stack += value.items.values()
            case Record():
                stack += value.fields.values()
            case Choice():
                stack += [value.cond, value.first, value.second]
            case Method():
                stack.append(value.value)
            case Function() if value.closure is not None and id(value.node) not in seen:
                seen.add(id(value.node))
                stack += named_in(value.node, value.closure)
    return found - {""}


_ARITHMETIC = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.BooleanOperation)


def doubt(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Unread code stands in `node`: execution may go on only for some of the values named there, in the rest of
    its statement, or in what decides whether the statement runs."""
    if isinstance(node, cst.Call) and (_last_name(node.func) in _HARMLESS or _is_reduction(node)):
        return
    if isinstance(node, _STRINGS) and not has_kind(node, cst.Call):
        return
    product = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply)
    if isinstance(node, _ARITHMETIC) and not product:
        return  # of tensors it asks for shapes that go together: a relation of inputs, which callers answer for
    if isinstance(node, cst.Subscript) and all(_is_type(part.slice) for part in node.slice):
        return  # a table of types
    own = about(node, frame)
    x.doubted |= own
    runs = (n for n in walk_kind(node, cst.Call) if not _is_conversion(n, frame))
    if not any(runs):
        return  # no code is run that might look at anything else, or raise whatever it is given
    for header in x.deciding[-1:]:
        x.doubted |= header.names
    for header in x.deciding[:-1]:
        header.ran = True
    if x.line is not None:
        x.doubted |= about(*x.line)


def _is_reduction(node: cst.Call) -> bool:
    """`(mask != 0).sum()` of all that is compared, and its only element by `.item()`."""
    match node:
        case cst.Call(cst.Attribute(cst.Call() as inner, cst.Name("item")), []):
            return _is_reduction(inner)
        case cst.Call(cst.Attribute(cst.Comparison() as compared, cst.Name(name)), []) if name in _REDUCTIONS:
            return not has_kind(compared, cst.Call, cst.Subscript)
    return False


def _is_conversion(node: cst.Call, frame: Frame) -> bool:
    name = node.func.value if isinstance(node.func, cst.Name) else ""
    return name in _CONVERSIONS and frame.table.is_builtin(name) and frame.find(name) is None


def _is_type(index: cst.BaseSlice) -> bool:
    """Whether something is looked up by the type of a tensor, or by the device where it lies."""
    return (
        isinstance(index, cst.Index)
        and isinstance(index.value, cst.Attribute)
        and index.value.attr.value in _OF_TYPE
    )


def _last_name(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else dotted(node)


@dataclass(slots=True)
class Header:
    """The tensors and numbers that the header of a statement asks: they decide whether its body runs.

    A header that is computed `at_once` does not decide which calls in itself are made. Execution may leave the
    body of a loop and go on after it. Mutable: `ran` says that unread code stood in the body. It may have
    raised: then execution goes on after the statement only for inputs that the header does not lead there.
    """

    names: frozenset[str] = frozenset()
    at_once: bool = True
    is_of_loop: bool = False
    ran: bool = False


def header_of(node: cst.CSTNode, frame: Frame) -> Header:
    """The header of a statement; a simple one has none that asks anything."""
    match node:
        case cst.If(test=header) | cst.For(iter=header) | cst.Match(subject=header):
            at_once = not any(map(_is_conditional, walk(header)))
            return Header(frozenset(about(header, frame)), at_once, isinstance(node, cst.For))
        case cst.While(test=header):  # after its body it is computed again
            return Header(frozenset(about(header, frame)), at_once=False, is_of_loop=True)
        case _:
            return Header()


def _is_conditional(node: cst.CSTNode) -> bool:
    """Whether what comes first in an expression decides whether the rest of it is computed."""
    chained = isinstance(node, cst.Comparison) and len(node.comparisons) > 1
    return chained or isinstance(node, _CONDITIONAL)


def doubt_loop(x: HostExecutor, node: cst.For | cst.While, frame: Frame) -> None:
    """A loop that is run for any one item: what its iterations establish is lost."""
    inside = list(walk(node.body))
    calls = any(isinstance(n, cst.Call) and _is_function(n, frame) for n in inside)
    if calls or any(isinstance(n, (*_LEAVING, cst.Break)) for n in inside):
        x.doubted |= about(node, frame)


def _is_function(node: cst.Call, frame: Frame) -> bool:
    """Whether a function of the project may be called, which may raise."""
    name = dotted(node.func)
    return isinstance(frame.find(name), Function) or isinstance(
        frame.table.bindings.get(name.partition(".")[0]), cst.FunctionDef
    )


def doubt_inputs(
    x: HostExecutor, function: cst.FunctionDef, frame: Frame, plain: frozenset[str], *, followed: bool
) -> None:
    """A decorator that is not `followed` may call the function for some arguments only; `Literal[...]` lists
    those that are meant."""
    decorators = (d.decorator for d in function.decorators)
    names = (dotted(d.func if isinstance(d, cst.Call) else d) for d in decorators)
    if not followed and any(not _is_plain(frame.table.full_name(name) or "", plain) for name in names):
        x.doubted |= about(function.params, frame)
    for p in (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params):
        words = [n.value for n in walk_kind(p.annotation, cst.Name)] if p.annotation else []
        if any(re.fullmatch("Literal|Annotated", word) for word in words):
            x.doubted.add(p.name.value)


def _is_plain(name: str, plain: frozenset[str]) -> bool:
    """Whether a decorator hands on every argument: those of libraries check types and devices, not sizes."""
    head = name.partition(".")[0]
    return name in plain or head in ("torch", "triton", "functools", "typing", "contextlib", "abc", "property")
