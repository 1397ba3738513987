"""The kinds of expressions, and what evaluating them does beside the library."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_guards.kinds import (
    ARRAY,
    NONE,
    NOTHING,
    PLAIN,
    TENSOR,
    UNKNOWN,
    Atom,
    Box,
    Checked,
    Class,
    Code,
    External,
    Kernel,
    Kind,
    Made,
    Pending,
    Sort,
    checked,
    is_handle,
)
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.read.attributes import attribute
from tilecheck.frontend.host_guards.read.operators import is_used_up, looked_at, operate
from tilecheck.frontend.host_guards.run import Run


def evaluate(r: Run, node: cst.BaseExpression) -> Kind:
    """The kind of an expression."""
    handler = _HANDLERS.get(type(node))
    return r.refuse(node, "this expression is not read") if handler is None else handler(r, node)


def quietly(r: Run, node: cst.BaseExpression) -> Kind:
    """The kind of an expression whose value as a whole does not matter."""
    was_quiet, r.is_quiet = r.is_quiet, True
    try:
        return evaluate(r, node)
    finally:
        r.is_quiet = was_quiet


def _plain(r: Run, node: cst.CSTNode) -> Kind:
    return PLAIN


def _name(r: Run, node: cst.Name) -> Kind:
    if node.value in ("True", "False"):
        return PLAIN
    if node.value == "None":
        return NONE
    return variable(r, node, node.value)


def variable(r: Run, node: cst.CSTNode, name: str) -> Kind:
    """What a name holds where the function reads it."""
    holder = r.frame.holder(name)
    if holder is None:
        found = names.value(r.p, r.table, name)
        if name in r.table.lost or name in r.table.rebound:
            r.note_read(node, (r.p.frame(r.table.parsed.module, r.table), name), found)
        return found
    found = holder.variables.get(name, NOTHING)
    r.note_read(node, (holder, name), found)
    return found


def _formatted(r: Run, node: cst.FormattedString) -> Kind:
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            looked_at(r, part.expression, evaluate(r, part.expression))
    return PLAIN


def _attribute(r: Run, node: cst.Attribute) -> Kind:
    return attribute(r, node, evaluate(r, node.value), node.attr.value)


def _joined(r: Run, node: cst.ConcatenatedString) -> Kind:
    return evaluate(r, node.left) | evaluate(r, node.right)


# ---- operators ---------------------------------------------------------------------------------------------


def _binary(r: Run, node: cst.BinaryOperation) -> Kind:
    return operate(r, node, (evaluate(r, node.left), evaluate(r, node.right)))


def _unary(r: Run, node: cst.UnaryOperation) -> Kind:
    kind = evaluate(r, node.expression)
    if isinstance(node.operator, cst.Not):
        looked_at(r, node, kind)
        return PLAIN
    return operate(r, node, (kind,))


def _boolean(r: Run, node: cst.BooleanOperation) -> Kind:
    left = evaluate(r, node.left)
    looked_at(r, node.left, left)
    return left | evaluate(r, node.right)


def _comparison(r: Run, node: cst.Comparison) -> Kind:
    kinds = [evaluate(r, node.left), *(evaluate(r, target.comparator) for target in node.comparisons)]
    if all(isinstance(t.operator, (cst.In, cst.NotIn)) for t in node.comparisons):
        looked_at(
            r, node, NOTHING.union(*kinds), frozenset({"__contains__", "__iter__", "__getitem__", "__eq__"})
        )
        return PLAIN
    if all(isinstance(t.operator, (cst.Is, cst.IsNot)) for t in node.comparisons):
        return PLAIN
    # Objects of the library are compared by what they are.
    found = operate(
        r, node, (kind - {a for a in kind if isinstance(a, (Checked, Box, Class, Code))} for kind in kinds)
    )
    return (found & (ARRAY | TENSOR | UNKNOWN)) | PLAIN


def _conditional(r: Run, node: cst.IfExp) -> Kind:
    looked_at(r, node.test, evaluate(r, node.test))
    return evaluate(r, node.body) | evaluate(r, node.orelse)


# ---- containers --------------------------------------------------------------------------------------------


def _sequence(r: Run, node: cst.Tuple | cst.List | cst.Set) -> Kind:
    kinds = []
    starred: Kind = NOTHING
    for element in node.elements:
        kind = evaluate(r, element.value)
        if isinstance(element, cst.StarredElement):
            starred |= elements(r, element.value, kind)
        else:
            kinds.append(kind)
    if isinstance(node, cst.Tuple) and len(kinds) == len(node.elements):
        return r.p.row(r.box(node), kinds)
    return r.p.fill(r.box(node), starred.union(*kinds))


def _dictionary(r: Run, node: cst.Dict) -> Kind:
    keys: Kind = NOTHING
    values: Kind = NOTHING
    for element in node.elements:
        kind = evaluate(r, element.value)
        if isinstance(element, cst.DictElement):
            keys, values = keys | evaluate(r, element.key), values | kind
        else:
            values |= elements(r, element.value, kind)
            keys |= NOTHING.union(*(r.p.keys(atom) for atom in kind if isinstance(atom, Box)))
    return r.p.fill(r.box(node), values, keys)


def elements(r: Run, node: cst.CSTNode, kind: Kind) -> Kind:
    """What a value gives when it is iterated over."""
    found: Kind = NOTHING
    for atom in kind:
        match atom:
            case Box():
                found |= r.p.items(atom) | r.p.keys(atom)
            case Sort.PLAIN | Sort.ARRAY | Sort.UNKNOWN:
                found |= frozenset({atom})
            case Sort.TENSOR:
                r.raw(node)
                found |= TENSOR
            case Checked(name="Partition"):
                found |= checked("Array")
            case Made(of=of):
                found |= _inside(r, node, of, "__iter__", "__getitem__")
            case Class() | External():
                found |= UNKNOWN  # an enumeration
            case _:
                pass  # it is nothing that can be iterated over
    return found


def _subscript(r: Run, node: cst.Subscript) -> Kind:
    owner = quietly(r, node.value)
    at: int | None = None
    is_cut = False
    for element in node.slice:
        match element.slice:
            case cst.Index(value=cst.Integer(value=text)) if len(node.slice) == 1:
                at = int(text, 0)
            case cst.Index(value=value):
                evaluate(r, value)
            case cst.Slice() as cut:
                is_cut = True
                for bound in (cut.lower, cut.upper, cut.step):
                    if bound is not None:
                        evaluate(r, bound)
    found: Kind = NOTHING
    for atom in owner:
        found |= _item(r, node, atom, at, is_cut=is_cut)
    match node.value:
        case cst.Name(value=name):
            holder = r.frame.holder(name)
            r.note_read(node, None if holder is None else (holder, name), found, within=owner)
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            r.note_read(node, name, found, of=quietly(r, value), within=owner)
        case _:
            r.note_read(node, None, found, within=owner)
    return found


def _item(r: Run, node: cst.Subscript, atom: Atom, at: int | None, *, is_cut: bool) -> Kind:
    match atom:
        case Box() if is_cut:
            return r.p.fill(r.box(node), r.p.items(atom), r.p.keys(atom))
        case Box():
            return r.p.items(atom) if at is None else r.p.item(atom, at)
        case Sort.PLAIN | Sort.UNKNOWN:
            return frozenset({atom})
        case Sort.ARRAY:
            return ARRAY | PLAIN
        case Sort.TENSOR:
            r.raw(node)
            return TENSOR
        case Checked(name="Partition"):
            return checked("Array")
        case Kernel(name=name, file=file):
            return frozenset({Kernel(name, file, has_grid=True)})
        case External(name=name) if name.startswith(_OF_TYPES):
            return frozenset({atom})
        case External(name=name):
            return frozenset({Kernel(name, has_grid=True)})
        case Made(of=of):
            return _inside(r, node, of, "__getitem__")
        case Class() | Code():
            return frozenset({atom}) if isinstance(atom, Class) else UNKNOWN
        case _:
            return NOTHING


_OF_TYPES = ("builtins.", "collections.", "typing.", "numpy.", "tilecheck.host.")


def _inside(r: Run, node: cst.CSTNode, of: Class, *hooks: str) -> Kind:
    """What the items of an object may be: the fields of a named tuple."""
    if names.is_tuple(r.p, of):
        return NOTHING.union(*(r.p.field(of, name) for name in names.members(r.p, of)))
    has_hook = any(names.member(r.p, of, hook) is not None for hook in hooks)
    if has_hook or not names.lineage(r.p, of)[1]:
        return r.refuse(node, "what the items of this object are is not followed")
    return NOTHING  # it has none


def _comprehension(r: Run, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Kind:
    if isinstance(node, cst.GeneratorExp) and not is_used_up(r, node):
        r.frame.facts.lazy.append(r.table.site(node))
    _rounds(r, node.for_in)
    kind = evaluate(r, node.elt)
    if any(is_handle(atom) for atom in r.p.inside(kind)):
        r.frame.facts.kept.append(node.elt)
    return r.p.fill(r.box(node), kind)


def _dict_comprehension(r: Run, node: cst.DictComp) -> Kind:
    _rounds(r, node.for_in)
    return r.p.fill(r.box(node), evaluate(r, node.value), evaluate(r, node.key))


def _rounds(r: Run, loop: cst.CompFor) -> None:
    r.bind(r, loop.target, elements(r, loop.iter, evaluate(r, loop.iter)))
    for test in loop.ifs:
        looked_at(r, test.test, evaluate(r, test.test))
    if loop.inner_for_in is not None:
        _rounds(r, loop.inner_for_in)


# ---- others ------------------------------------------------------------------------------------------------


def _lambda(r: Run, node: cst.Lambda) -> Kind:
    return frozenset({Code(node, r.table, r.frame)})


def _walrus(r: Run, node: cst.NamedExpr) -> Kind:
    kind = evaluate(r, node.value)
    r.bind(r, node.target, kind)
    return kind


def _call(r: Run, node: cst.Call) -> Kind:
    return r.call(r, node)


def _await(r: Run, node: cst.Await) -> Kind:
    found: Kind = NOTHING
    if r.within is not None:
        r.refuse(node, "what other tasks do while the capture goes on is not in view")
    for atom in evaluate(r, node.expression):
        if isinstance(atom, Pending):
            found |= r.p.result(atom)
        elif atom is not Sort.NONE:
            found |= r.refuse(node, "what this waits for is not followed")
    return found


def _yield(r: Run, node: cst.Yield) -> Kind:
    if r.within is not None:
        r.refuse(node, "what the caller does while the capture goes on is not in view")
    kind = NONE
    if isinstance(node.value, cst.From):
        kind = elements(r, node, evaluate(r, node.value.item))
    elif node.value is not None:
        kind = evaluate(r, node.value)
    if any(is_handle(atom) for atom in r.p.inside(kind)):
        r.frame.facts.kept.append(node)
    if not kind <= r.frame.yields:
        r.frame.yields |= kind
        r.p.has_changed = True
    return UNKNOWN


_HANDLERS: dict[type, Callable[..., Kind]] = {
    cst.Name: _name,
    cst.Integer: _plain,
    cst.Float: _plain,
    cst.Imaginary: _plain,
    cst.SimpleString: _plain,
    cst.ConcatenatedString: _joined,
    cst.FormattedString: _formatted,
    cst.Ellipsis: _plain,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean,
    cst.Comparison: _comparison,
    cst.IfExp: _conditional,
    cst.Tuple: _sequence,
    cst.List: _sequence,
    cst.Set: _sequence,
    cst.Dict: _dictionary,
    cst.ListComp: _comprehension,
    cst.SetComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.DictComp: _dict_comprehension,
    cst.Lambda: _lambda,
    cst.NamedExpr: _walrus,
    cst.Call: _call,
    cst.Await: _await,
    cst.Yield: _yield,
}
