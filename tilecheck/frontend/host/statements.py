"""Statements that host code executes another way than kernels: exceptions, any loop, any target.

A statement that is not read makes the names that it may assign unknown, and leaves the path condition as it
was before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute import statements
from tilecheck.frontend.execute.expressions import evaluate, joined
from tilecheck.frontend.execute.state import Arguments
from tilecheck.frontend.host import lists
from tilecheck.frontend.host.blocks import run_match, run_try, run_with
from tilecheck.frontend.host.iterators import may_change_source
from tilecheck.frontend.host.memory import sharing
from tilecheck.frontend.host.memory.mutations import container_changed, elements_changed, item_stored, used_up
from tilecheck.frontend.host.memory.rejections import doubt, doubt_loop, header_of
from tilecheck.frontend.host.memory.unread_effects import defined, forget_effects, rebinds
from tilecheck.frontend.host.sizes.extent_products import multiplies
from tilecheck.frontend.host.sizes.operators import operate
from tilecheck.frontend.host.targets import assigned, change, delete, forget, lose_changed, unpack_unknown
from tilecheck.frontend.host.values import Dims, HostShape, Table, Tensor, Unknown, Updated
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import has_kind
from tilecheck.frontend.values.values import Choice, Const, Frame, Num, Range, Seq, integer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

_RETURNED = "<returned>"  # what a function gives back, among its names
_MOST_UNROLLED = 16  # items of a loop that is run item by item


def execute(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> bool:
    """Execute a statement if it needs a way of its own, or if the usual way turns out not to read it."""
    before, outer = x.guard, x.line
    x.deciding.append(header_of(node, frame))
    x.line = None
    try:
        if isinstance(node, cst.FunctionDef):
            defined(x, node, frame)
            return False
        if isinstance(node, cst.BaseSmallStatement):  # of a body on the line of its `if`, `for` or `def`
            _small(x, node, frame)
        elif type(node) in _HANDLERS:
            _HANDLERS[type(node)](x, node, frame)
        else:
            _lose(x, node, frame)
    except UnsupportedConstruct:
        x.guard = before
        _lose(x, node, frame)
    finally:
        header = x.deciding.pop()
        x.doubted |= header.names if header.ran else set()
        x.line = outer
    return True


def _lose(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """A statement that is not read: what it assigns is unknown, and it may have ended the function."""
    sharing.hand_on_named(x, node, frame)
    doubt(x, node, frame)
    forget(x, node, frame)


# ---- simple statements -------------------------------------------------------------------------------------


def _line(x: HostExecutor, node: cst.SimpleStatementLine | cst.SimpleStatementSuite, frame: Frame) -> None:
    for small in node.body:
        before = x.guard
        if before is E.FALSE:
            return
        try:
            _small(x, small, frame)
        except UnsupportedConstruct:
            x.guard = before
            _lose(x, small, frame)


def _small(x: HostExecutor, node: cst.BaseSmallStatement, frame: Frame) -> None:
    x.line = (node, frame)
    match node:
        case cst.Assign() | cst.AnnAssign() if node.value is not None:
            target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
            x.allocation = ",".join(_target_names(target))
            try:
                if not _unpacked_display(x, node, target, frame):
                    statements.run_small(x, node, frame)
            finally:
                x.allocation = ""
            for name in _target_names(target):
                _name_tensor(name, frame)
        case cst.AugAssign():
            _augmented(x, node, frame)
        case cst.Return():
            doubted = set(x.doubted)
            value = Const(None) if node.value is None else evaluate(x, node.value, frame)
            value = _finished(x, value, frame)
            if frame is x.outermost:
                x.doubted = doubted  # nothing is launched after what is returned
            frame.returns.append((x.guard, value))
            if frame is x.outermost and not x.dry:
                x.ends.append((x.guard, value, dict(frame.names)))
            x.guard = E.FALSE
        case cst.Nonlocal() | cst.Global():
            rebinds(x, node, frame)
        case cst.Del():
            _delete(x, node.target, frame)
        case cst.Assert(test=cst.GeneratorExp()):
            pass  # a generator is true, whatever its items would be
        case cst.Continue() | cst.Break() if not x.loops:
            x.guard = E.FALSE
        case _:
            statements.run_small(x, node, frame)


def _finished(x: HostExecutor, value: Any, frame: Frame) -> Any:
    """What is returned, once each `finally` around the `return` has run."""
    outer, own = x.finals, [final for at, final in x.finals if at is frame]
    frame.names[_RETURNED] = value
    for k, final in enumerate(reversed(own)):
        x.finals = [(frame, f) for f in own[: len(own) - 1 - k]]
        statements.run_block(x, final, frame)
    x.finals = outer
    return frame.names.pop(_RETURNED)


def _delete(x: HostExecutor, target: cst.BaseExpression, frame: Frame) -> None:
    match target:
        case cst.Subscript(value, [cst.SubscriptElement(part)]):
            held = evaluate(x, value, frame)
            if lists.is_list(held) and isinstance(part, cst.Index):
                with contextlib.suppress(UnsupportedConstruct):
                    lists.delete_item(x, held, evaluate(x, part.value, frame), frame)
                    return
            if isinstance(held, Unknown):
                container_changed(x, held)
    delete(x, target, frame)


def _unpacked_display(
    x: HostExecutor, node: cst.Assign | cst.AnnAssign, target: cst.BaseExpression, frame: Frame
) -> bool:
    """`b, h, n = *x.shape, 1`: how many axes there are follows from the targets. False if it is another."""
    if (
        not isinstance(target, cst.Tuple)
        or not isinstance(node.value, cst.Tuple)
        or (isinstance(node, cst.Assign) and len(node.targets) > 1)
    ):
        return False
    elements = node.value.elements
    starred = [k for k, element in enumerate(elements) if isinstance(element, cst.StarredElement)]
    plain = not any(isinstance(element, cst.StarredElement) for element in target.elements)
    if len(starred) != 1 or not plain or len(elements) == 1:
        return False
    values = [evaluate(x, element.value, frame) for element in elements]
    at = starred[0]
    if isinstance(values[at], HostShape | Dims):
        count = integer(len(target.elements) - len(elements) + 1)
        args = Arguments((count,), (), node, frame.table)
        values[at] = x.dialect.method(x, values[at], "<unpack>", args)
    if not isinstance(values[at], Seq):
        raise UnsupportedConstruct("starred element")
    statements.assign(x, target, Seq((*values[:at], *values[at].items, *values[at + 1 :])), frame)
    return True


def _augmented(x: HostExecutor, node: cst.AugAssign, frame: Frame) -> None:
    """`n += 1`. A tensor is updated in place, a list too."""
    before, amount = evaluate(x, node.target, frame), evaluate(x, node.value, frame)
    if isinstance(before, Tensor):
        elements_changed(x, (before,))
        return
    plain = isinstance(node.target, cst.Name)  # an attribute or an item is assigned below
    if isinstance(before, Unknown) and plain and before.name not in x.integer_names:
        item_stored(x, before, frame)  # a list or a tensor changes in place
    if isinstance(before, Table) or (isinstance(before, Seq) and before.is_list):
        adds = isinstance(node.operator, cst.AddAssign)
        if isinstance(before, Seq) and isinstance(amount, Seq) and adds:
            change(x, before, joined(before, amount.items), frame)
        else:
            change(x, before, sharing.unread_of(x, "list", before, amount), frame)
        return
    op = statements.AUGMENTED.get(type(node.operator))
    if op is None:
        raise UnsupportedConstruct("augmented assignment")
    statements.assign(x, node.target, _updated(x, op, before, amount), frame)


def _updated(x: HostExecutor, op: str, before: Any, amount: Any) -> Any:
    """What `before += amount` leaves in a name: a tensor stays the object that it was, a number is another."""
    match before:
        case Choice():
            return x.split(
                before.cond,
                lambda: _updated(x, op, before.first, amount),
                lambda: _updated(x, op, before.second, amount),
            )
        case Tensor():
            elements_changed(x, (before,))
            return before
        case Unknown() if before.name not in x.integer_names:
            after = _operated(x, op, before, amount)
            number = after.elem if isinstance(after, Num) and not after.shape else None
            if number is None or number.is_bool:  # of a number that is not followed
                number = x.number_of(x.unread(before.name), "value").elem or E.ZERO
            return Updated(before.name, before.opaque, number=number)
        case _:
            return operate(x, op, before, amount)


def _operated(x: HostExecutor, op: str, before: Any, amount: Any) -> Any:
    """The result of an operator; None where it is not followed."""
    try:
        return operate(x, op, before, amount)
    except UnsupportedConstruct:
        return None


def _target_names(target: cst.CSTNode) -> list[str]:
    """The plain names of a target, in order; none if it has other parts."""
    match target:
        case cst.Name():
            return [target.value]
        case cst.Tuple() | cst.List():
            names = [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
            return names if len(names) == len(target.elements) else []
        case _:
            return []


def _name_tensor(name: str, frame: Frame) -> None:
    """A fresh tensor is called what it is first assigned to."""
    held = frame.names.get(name)
    if isinstance(held, Tensor) and held.fresh and held.name in ("empty", "new", "arange", "result"):
        frame.names[name] = replace(held, name=name)


# ---- loops -------------------------------------------------------------------------------------------------


def _for(x: HostExecutor, node: cst.For, frame: Frame) -> None:
    source = evaluate(x, node.iter, frame)
    if multiplies(x, node, source, frame):
        _after(x, node, frame)
        return
    used_up(x, source, frame)
    if isinstance(source, Range) and not _known_length(source):
        doubt_loop(x, node, frame)
        _forget_places(x, node, frame)
        statements.range_loop(x, node, source, frame)
    else:
        items = _items(source)
        if items is not None and not _leaves(node) and not may_change_source(x, node, frame):
            statements.unrolled_loop(x, node, items, frame)
        else:
            doubt_loop(x, node, frame)
            _forget_places(x, node, frame)
            _any_items(x, node, frame)
            used_up(x, source, frame)
    _after(x, node, frame)


def _after(x: HostExecutor, node: cst.For | cst.While, frame: Frame) -> None:
    """The `else` of a loop: it runs unless a `break` left the loop, of which nothing is known."""
    if node.orelse is None:
        return
    left = has_kind(node.body, cst.Break)
    ran = x.unread_test("the loop was not left") if left else E.TRUE
    statements.branch(x, ran, node.orelse.body.body, (), frame)


def _forget_places(x: HostExecutor, node: cst.For | cst.While, frame: Frame) -> None:
    """What a loop changes through attributes, items and methods is unknown in each of its iterations."""
    sharing.flows(x, node, frame)
    lose_changed(x, node, frame)
    plain = statements.assigned_names(node)
    for name in assigned(node):
        if name not in plain and not isinstance(frame.names.get(name), Tensor):  # whose elements change alone
            lost = frame.names[name] = x.unread(name)
            x.computed.add(lost.name)
    forget_effects(x, node, frame)


def _known_length(r: Range) -> bool:
    return all(n.elem is not None and n.elem.value is not None for n in (r.start, r.stop, r.step))


def _items(source: Any) -> tuple[Any, ...] | None:
    if isinstance(source, Seq):
        return source.items if len(source.items) <= _MOST_UNROLLED else None
    if isinstance(source, Range):
        ends = [n.elem.value for n in (source.start, source.stop, source.step) if n.elem is not None]
        start, stop, step = (e if e is not None else 0 for e in ends)
        found = range(start, stop, step) if step else range(0)
        if len(found) <= _MOST_UNROLLED:
            return tuple(Num((), E.const(k), "int", None) for k in found)
    return None


def _leaves(node: cst.For) -> bool:
    """Whether a `break` ends the loop early: what follows is reached with what any of its items left. After a
    `return` nothing follows."""
    return has_kind(node.body, cst.Break)


def _any_items(x: HostExecutor, node: cst.For, frame: Frame) -> None:
    """A loop over items that are not known: its body runs for an unknown one."""
    k = E.sym(Symbol(f"iteration of `{dotted(node.target) or 'for'}`", Kind.LOOP, x.number()))

    def enter() -> None:
        x.guard = E.all_of(x.guard, E.le(0, k))
        unpack_unknown(x, cst.Tuple([cst.Element(node.target)]), frame)

    statements.symbolic_loop(x, node, k, enter, None, frame)


def _while(x: HostExecutor, node: cst.While, frame: Frame) -> None:
    doubt_loop(x, node, frame)
    _forget_places(x, node, frame)
    statements.run_while(x, node.with_changes(orelse=None) if node.orelse is not None else node, frame)
    _after(x, node, frame)


def _class(x: HostExecutor, node: cst.ClassDef, frame: Frame) -> None:
    defined(x, node, frame)
    frame.names[node.name.value] = x.unread(node.name.value)


_HANDLERS: Mapping[type, Callable[[HostExecutor, Any, Frame], None]] = {
    cst.SimpleStatementLine: _line,
    cst.SimpleStatementSuite: _line,
    cst.If: statements.run_if,
    cst.For: _for,
    cst.While: _while,
    cst.With: run_with,
    cst.Try: run_try,
    cst.TryStar: _lose,
    cst.Match: run_match,
    cst.ClassDef: _class,
}
