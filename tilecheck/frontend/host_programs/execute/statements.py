"""Runs the statements of host code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import libcst as cst

from tilecheck.frontend.host_programs.calls.torch import in_place
from tilecheck.frontend.host_programs.execute import binding, exceptions, names
from tilecheck.frontend.host_programs.execute.code_texts import has_call, leaves, once, returns
from tilecheck.frontend.host_programs.execute.expressions import evaluate
from tilecheck.frontend.host_programs.execute.generators import go_over, in_loop
from tilecheck.frontend.host_programs.execute.merging import NeedsChoice, either, is_open, joins, raises
from tilecheck.frontend.host_programs.knowledge import (
    BreakLoop,
    ContinueLoop,
    Leaves,
    PathEnds,
    Raises,
    Returned,
)
from tilecheck.frontend.host_programs.loops.iteration import items_of
from tilecheck.frontend.host_programs.loops.loops import run_for, run_while
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.graph_captures import keep
from tilecheck.frontend.host_programs.values.kinds import resolved, truth
from tilecheck.frontend.host_programs.values.lifetimes import sweep
from tilecheck.frontend.host_programs.values.numbers import binary
from tilecheck.frontend.host_programs.values.undetermined import operand
from tilecheck.frontend.modules.bindings import dotted, imports_of


def run_block(m: Machine, body: Sequence[cst.CSTNode]) -> None:
    """Run statements, one after the other.

    Raises:
        Unread: one of them is not understood and may touch streams, graphs or memory in play.
        Returned, BreakLoop, ContinueLoop, PathEnds: the block is left.
    """
    for statement in body:
        _run(m, statement)


def _run(m: Machine, statement: cst.CSTNode) -> None:
    m.step(statement)
    if isinstance(statement, cst.SimpleStatementLine):
        if once(m, has_call, statement) and m.guards:
            exceptions.perhaps_raise(m, statement)
        for small in statement.body:
            _in_statement(m, small, _SIMPLE.get(type(small), _unread))
        return
    simple = _SIMPLE.get(type(statement))  # of a suite on the line of its header
    if simple is not None:
        _in_statement(m, statement, simple)
        return
    handler = _COMPOUND.get(type(statement), _unread)
    handler(m, statement)


def _in_statement(m: Machine, node: cst.CSTNode, handler: Callable[[Machine, cst.CSTNode], None]) -> None:
    """Run a simple statement; when it has ended, what no name holds any more is given back."""
    m.reads.append({})
    try:
        handler(m, node)
    finally:
        m.reads.pop()
    sweep(m, node)


def _unread(m: Machine, node: cst.CSTNode) -> None:
    raise m.unread(node, "this statement is not read")


def _nothing(m: Machine, node: cst.CSTNode) -> None:
    """`pass`."""


# ---- simple statements -------------------------------------------------------------------------------------


def _expression(m: Machine, node: cst.Expr) -> None:
    evaluate(m, node.value)


def _assign(m: Machine, node: cst.Assign) -> None:
    pairs = _pairs(node)
    if pairs is not None:
        found = []
        mark = len(m.pending)
        for target, value in pairs:
            found.append((target, _for_target(m, target, value)))
            m.pending.append(found[-1][1])
        del m.pending[mark:]
        for target, given in found:
            binding.bind(m, target, given)
        return
    value = _for_target(m, node.targets[0].target, node.value)
    for part in node.targets:
        binding.bind(m, part.target, value)


def _pairs(node: cst.Assign) -> list[tuple[cst.BaseExpression, cst.BaseExpression]] | None:
    """`a, b = x, y`, one by one."""
    if len(node.targets) != 1:
        return None
    match node.targets[0].target, node.value:
        case cst.Tuple(elements=targets), cst.Tuple(elements=items) if len(targets) == len(items):
            starred = [e for e in (*targets, *items) if isinstance(e, cst.StarredElement)]
            return None if starred else [(t.value, i.value) for t, i in zip(targets, items, strict=True)]
    return None


def _for_target(m: Machine, target: cst.CSTNode, value: cst.BaseExpression) -> V.Value:
    """The value for a variable: what is allocated for it gets its name."""
    before = m.target
    m.target = dotted(target) if isinstance(target, cst.Name | cst.Attribute) else ""
    try:
        return evaluate(m, value)
    finally:
        m.target = before


def _annotated(m: Machine, node: cst.AnnAssign) -> None:
    if node.value is not None:
        binding.bind(m, node.target, _for_target(m, node.target, node.value))


def _augmented(m: Machine, node: cst.AugAssign) -> None:
    """`x += y`: of a tensor, work in place; of anything else, another value."""
    before = evaluate(m, node.target)
    m.pending.append(before)
    try:
        value = evaluate(m, node.value)
    finally:
        m.pending.pop()
        m.rebound = True
    text = type(node.operator).__name__.removesuffix("Assign")
    tensor = operand(m, before, node)
    if tensor is not None:
        in_place(m, node, f"{text.lower()}_", tensor, value)
    elif isinstance(before, V.Sequence) and isinstance(value, V.Sequence) and not before.is_tuple:
        before.items += keep(m, node, value, m.scope.table.text(node.target), inside=True).items
    else:
        binding.bind(m, node.target, binary(m, node.operator, before, value))


def _return(m: Machine, node: cst.Return) -> None:
    raise Returned(V.NONE if node.value is None else evaluate(m, node.value), node)


def _raise(m: Machine, node: cst.Raise) -> None:
    raise Raises("raises")


def _assert(m: Machine, node: cst.Assert) -> None:
    """A path on which an assertion fails does not go on."""
    value = evaluate(m, node.test)
    if m.knowledge.joins and is_open(m, value):
        m.decided["truth", value.name] = 0
    if not truth(m, value, node.test):
        raise Raises("the assertion fails")


def _delete(m: Machine, node: cst.Del) -> None:
    targets = [e.value for e in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
    for target in targets:
        binding.delete(m, target)


def _import(m: Machine, node: cst.Import | cst.ImportFrom) -> None:
    for name, imported in imports_of(node):
        binding.set_name(m, name, names.imported(m, imported), node)


def _global(m: Machine, node: cst.Global) -> None:
    m.scope.globals.update(item.name.value for item in node.names)


def _nonlocal(m: Machine, node: cst.Nonlocal) -> None:
    m.scope.outside.update(item.name.value for item in node.names)


def _break(m: Machine, node: cst.Break) -> None:
    raise BreakLoop("break")


def _continue(m: Machine, node: cst.Continue) -> None:
    raise ContinueLoop("continue")


_SIMPLE: dict[type, Callable[..., None]] = {
    cst.Expr: _expression,
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augmented,
    cst.Return: _return,
    cst.Raise: _raise,
    cst.Assert: _assert,
    cst.Del: _delete,
    cst.Import: _import,
    cst.ImportFrom: _import,
    cst.Global: _global,
    cst.Nonlocal: _nonlocal,
    cst.Break: _break,
    cst.Continue: _continue,
    cst.Pass: _nothing,
}


# ---- compound statements -----------------------------------------------------------------------------------


def _header(m: Machine, node: cst.CSTNode, test: cst.BaseExpression) -> V.Value:
    m.reads.append({})
    try:
        return evaluate(m, test)
    finally:
        read = m.reads.pop()
        if m.captures and isinstance(node, cst.If | cst.While):
            m.branched.update(read)  # which way it goes is frozen too


def _if(m: Machine, node: cst.If) -> None:
    value = _header(m, node, node.test)
    if m.knowledge.joins and is_open(m, value) and _both(m, node, value):
        return
    taken = truth(m, value, node.test)
    sweep(m, node.test)
    if taken:
        run_block(m, node.body.body)
    elif isinstance(node.orelse, cst.If):
        _run(m, node.orelse)
    elif isinstance(node.orelse, cst.Else):
        run_block(m, node.orelse.body.body)


def _both(m: Machine, node: cst.If, value: V.Unknown) -> bool:
    """Run both ways of a branch that uses no streams; whether that was done."""
    orelse = node.orelse
    otherwise = orelse.body if isinstance(orelse, cst.Else) else None
    if raises(node.body) or raises(otherwise):  # the path goes on the other way
        m.decided["truth", value.name] = 1 if raises(node.body) else 0
        return False
    if not joins(m, node) or once(m, leaves, node.body) or (orelse is not None and once(m, leaves, orelse)):
        return False

    def first() -> V.Value:
        run_block(m, node.body.body)
        return V.NONE

    def second() -> V.Value:
        if isinstance(orelse, cst.If):
            _run(m, orelse)
        elif otherwise is not None:
            run_block(m, otherwise.body)
        return V.NONE

    with contextlib.suppress(NeedsChoice):
        either(m, node, first, second)
        return True
    return False


def _for(m: Machine, node: cst.For) -> None:
    if node.asynchronous is not None:
        raise m.unread(node.iter, "an asynchronous loop")
    whole = _header(m, node, node.iter)
    m.pending.append(whole)  # the loop holds its iterator
    name = node.target.value if isinstance(node.target, cst.Name) else ""

    def body(value: V.Value) -> None:
        binding.bind(m, node.target, value)
        sweep(m, node.target)
        run_block(m, node.body.body)

    over = in_loop(m, whole, node.iter)

    def run(*, skips: bool = True) -> bool:
        if over is not None:
            return go_over(m, over[0], lambda item: body(over[1](item)))
        return run_for(m, node, lambda: items_of(m, whole, node.iter, name), body, skips=skips)

    try:
        ended = (
            _run_or_not(m, node, run)
            if over is None and joins(m, node) and not once(m, returns, node.body)
            else run()
        )
    finally:
        m.pending.pop()
        m.rebound = True
    if ended and node.orelse is not None:
        run_block(m, node.orelse.body.body)


def _run_or_not(m: Machine, node: cst.For, run: Callable[..., bool]) -> bool:
    """A loop of an unknown number of rounds: none, or so many as stand for all, in one path."""

    def rounds() -> V.Value:
        return V.Const(run(skips=False))

    with contextlib.suppress(NeedsChoice):
        return bool(either(m, node, rounds, lambda: V.Const(value=True)) == V.Const(value=True))
    return run()


def _while(m: Machine, node: cst.While) -> None:
    def test() -> bool | None:
        value = resolved(m, _header(m, node, node.test))
        return None if isinstance(value, V.Unknown) else truth(m, value, node.test)

    if run_while(m, node, test, lambda: run_block(m, node.body.body)) and node.orelse is not None:
        run_block(m, node.orelse.body.body)


def _with(m: Machine, node: cst.With) -> None:
    if node.asynchronous is not None:
        raise m.unread(node.items[0].item, "an asynchronous context")
    _enter(m, node, list(node.items))


def _enter(m: Machine, node: cst.With, items: list[cst.WithItem]) -> None:
    if not items:
        run_block(m, node.body.body)
        return
    first, *rest = items
    context = _header(m, node, first.item)
    m.pending.append(context)
    try:
        binding.within(m, first, context, lambda: _enter(m, node, rest))
    finally:
        m.pending.pop()
        m.rebound = True


def _try(m: Machine, node: cst.Try) -> None:
    """The body runs to its end, or a handler runs after a part of it.

    Exceptions that leave the function are not followed.
    """
    try:
        try:
            exceptions.guarded(m, node, lambda: run_block(m, node.body.body))
        except PathEnds:
            if not node.handlers:
                raise
            way = m.choices.pick(len(node.handlers))
            handler = node.handlers[way]
            if handler.name is not None and isinstance(handler.name.name, cst.Name):
                error = V.Unknown("the exception", given=False, plain=True)
                binding.set_name(m, handler.name.name.value, error, node)
            run_block(m, handler.body.body)
        else:
            if node.orelse is not None:
                run_block(m, node.orelse.body.body)
    except (Leaves, PathEnds):
        if node.finalbody is not None:
            run_block(m, node.finalbody.body.body)
        raise
    if node.finalbody is not None:
        run_block(m, node.finalbody.body.body)


def _function(m: Machine, node: cst.FunctionDef) -> None:
    value = names.function(m, m.scope.table, node, m.scope)
    for decorator in reversed(node.decorators):
        if isinstance(value, V.Function) and isinstance(decorator.decorator, cst.Call):
            made = dotted(decorator.decorator.func)
            if made.rpartition(".")[2] in ("capture", "graph"):
                raise m.unread(decorator.decorator, "what this decorator makes of the function is not read")
    binding.set_name(m, node.name.value, value, node)


def _class(m: Machine, node: cst.ClassDef) -> None:
    binding.set_name(m, node.name.value, V.Class(node, m.scope.table), node)


_COMPOUND: dict[type, Callable[..., None]] = {
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.With: _with,
    cst.Try: _try,
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
}
