"""What annotations say that values are: they are believed, as those of numbers and tensors are elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host_guards import api
from tilecheck.frontend.host_guards.kinds import (
    ARRAY,
    NONE,
    NOTHING,
    PLAIN,
    TENSOR,
    UNKNOWN,
    Box,
    Class,
    External,
    Kind,
    Pending,
    checked,
)
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.modules.bindings import dotted

if TYPE_CHECKING:
    from tilecheck.frontend.host_guards.program import Program
    from tilecheck.frontend.modules.project import ModuleTable

_PLAIN = frozenset("int float bool str bytes bytearray complex range slice".split())
_PLAIN_NAMES = frozenset(
    "torch.dtype torch.device torch.Size pathlib.Path pathlib.PurePath numpy.dtype argparse.Namespace "
    "typing.Literal typing.TextIO typing.BinaryIO".split()
)
_CONTAINERS = frozenset(
    "list tuple set frozenset dict List Tuple Set FrozenSet Dict Sequence MutableSequence Iterable Iterator "
    "Collection Mapping MutableMapping Generator deque OrderedDict defaultdict Counter KeysView ValuesView "
    "ItemsView Optional Union Final ClassVar Annotated".split()
)
_SAME = frozenset("Optional Union Final ClassVar Annotated".split())
_TYPING = ("typing.", "collections.abc.", "collections.", "typing_extensions.", "builtins.")
_DEEPEST = 8


def kind_of(p: Program, table: ModuleTable, note: cst.BaseExpression, depth: int = 0) -> Kind:
    """What a value with this annotation may be."""
    if depth > _DEEPEST:
        return UNKNOWN
    match note:
        case cst.SimpleString():
            return _quoted(p, table, note, depth)
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            return kind_of(p, table, left, depth + 1) | kind_of(p, table, right, depth + 1)
        case cst.Subscript(value=value, slice=items):
            given = [i.slice.value for i in items if isinstance(i.slice, cst.Index)]
            return _generic(p, table, note, value, given, depth)
        case cst.Name(value="None"):
            return NONE
        case cst.Name() | cst.Attribute():
            return _named(p, table, note, depth)
        case _:
            return UNKNOWN


def _quoted(p: Program, table: ModuleTable, note: cst.SimpleString, depth: int) -> Kind:
    text = note.evaluated_value
    try:
        read = cst.parse_expression(text) if isinstance(text, str) else None
    except cst.ParserSyntaxError:
        read = None
    return UNKNOWN if read is None else kind_of(p, table, read, depth + 1)


def _generic(
    p: Program,
    table: ModuleTable,
    note: cst.Subscript,
    of: cst.BaseExpression,
    given: list[cst.BaseExpression],
    depth: int,
) -> Kind:
    """`C[X, Y]`."""
    name = _full_name(p, table, of)
    short = name.rpartition(".")[2]
    if name.startswith(_TYPING) and short in _CONTAINERS:
        given = given[:1] if short == "Annotated" else given
        inside = NOTHING.union(*(kind_of(p, table, part, depth + 1) for part in given if not _is_rest(part)))
        return inside if short in _SAME else p.fill(Box(note), inside, inside)
    if name == "tilecheck.host.Operation":
        return p.give(Pending(note), kind_of(p, table, given[0], depth + 1) if given else UNKNOWN)
    return kind_of(p, table, of, depth + 1)


def _is_rest(part: cst.BaseExpression) -> bool:
    return isinstance(part, cst.Ellipsis)


def _full_name(p: Program, table: ModuleTable, node: cst.BaseExpression) -> str:
    text = dotted(node)
    if not text:
        return ""
    (atom, *others) = names.path(p, table, text) or {None}
    return atom.name if isinstance(atom, External) and not others else ""


def _named(p: Program, table: ModuleTable, note: cst.Name | cst.Attribute, depth: int) -> Kind:
    meant = names.expression_of(p, table, dotted(note))  # an alias: `Pairs = Sequence[tuple[int, int]]`
    if meant is not None:
        return kind_of(p, meant[0], meant[1], depth + 1)
    name = _full_name(p, table, note)
    if name:
        return _external(p, note, name)
    (found, *others) = names.path(p, table, dotted(note)) or {None}
    return names.objects(p, found) if isinstance(found, Class) and not others else UNKNOWN


def _external(p: Program, note: cst.CSTNode, name: str) -> Kind:
    short = name.rpartition(".")[2]
    if (name.startswith("builtins.") and short in _PLAIN) or name in _PLAIN_NAMES:
        return PLAIN
    if name.startswith(_TYPING) and short in _CONTAINERS - _SAME:
        return p.fill(Box(note), UNKNOWN, UNKNOWN)
    if name in ("torch.Tensor", "torch.nn.Parameter"):
        return TENSOR
    if name in ("numpy.ndarray", "numpy.typing.NDArray"):
        return ARRAY
    if name.startswith(api.PREFIX) and short in api.CLASSES and name == api.PREFIX + short:
        return p.give(Pending(note), UNKNOWN) if short == "Operation" else checked(short)
    return UNKNOWN
