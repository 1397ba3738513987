"""Reads the statements of a function: which kinds its variables, attributes and containers get."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_guards import api
from tilecheck.frontend.host_guards.calls.arguments import of_values
from tilecheck.frontend.host_guards.calls.containers import put
from tilecheck.frontend.host_guards.calls.dispatch import call, get, run_code
from tilecheck.frontend.host_guards.frames import Frame
from tilecheck.frontend.host_guards.kinds import (
    NONE,
    NOTHING,
    PLAIN,
    Atom,
    Box,
    Checked,
    Class,
    Code,
    Kernel,
    Kind,
    Made,
    Sort,
)
from tilecheck.frontend.host_guards.program import Program
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.read.expressions import elements, evaluate, quietly
from tilecheck.frontend.host_guards.read.operators import looked_at, operate
from tilecheck.frontend.host_guards.read.targets import bind
from tilecheck.frontend.host_guards.run import Run
from tilecheck.frontend.modules.bindings import imports_of


def new_run(p: Program, frame: Frame) -> Run:
    return Run(p, frame, call, bind, get)


def read(p: Program, frame: Frame) -> None:
    """Read a function once."""
    r = new_run(p, frame)
    match frame.node:
        case cst.Lambda(body=body):
            _returns(r, evaluate(r, body))
        case cst.FunctionDef(body=body):
            _block(r, body)
        case cst.Module(body=body) if frame in p.whole:
            for statement in body:
                _statement(r, statement)


def expression(p: Program, frame: Frame, node: cst.BaseExpression) -> Kind:
    """The kind of an expression that belongs to a function, such as a default."""
    return evaluate(new_run(p, frame), node)


def _returns(r: Run, kind: Kind) -> None:
    if not kind <= r.frame.returns:
        r.frame.returns |= kind
        r.p.has_changed = True


def _block(r: Run, body: cst.CSTNode) -> None:
    for statement in body.body:  # type: ignore[attr-defined]
        _statement(r, statement)


def _statement(r: Run, node: cst.CSTNode) -> None:
    if isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
        for small in node.body:
            _statement(r, small)
        return
    handler = _HANDLERS.get(type(node))
    if handler is None:
        r.refuse(node, "this statement is not read")
    else:
        handler(r, node)


# ---- simple statements -------------------------------------------------------------------------------------


def _expression(r: Run, node: cst.Expr) -> None:
    evaluate(r, node.value)


def _assign(r: Run, node: cst.Assign) -> None:
    kind = evaluate(r, node.value)
    for target in node.targets:
        bind(r, target.target, kind)


def _annotated(r: Run, node: cst.AnnAssign) -> None:
    if node.value is not None:
        bind(r, node.target, evaluate(r, node.value))


def _augmented(r: Run, node: cst.AugAssign) -> None:
    """`x += y`: of a container, a change in place."""
    before = quietly(r, node.target)
    value = evaluate(r, node.value)
    for atom in before:
        if isinstance(atom, Box):
            r.frame.facts.changes.append((atom, node))
            inside = elements(r, node, value)
            put(r, node, atom, inside | elements(r, node, inside))
            r.p.fill(atom, NOTHING, NOTHING.union(*(r.p.keys(a) for a in value if isinstance(a, Box))))
        elif atom is Sort.ARRAY:
            r.frame.facts.changes.append((None, node))
    kept = frozenset(a for a in before if isinstance(a, Box))
    bind(r, node.target, operate(r, node, (before, value)) | kept)


def _return(r: Run, node: cst.Return) -> None:
    _returns(r, NONE if node.value is None else evaluate(r, node.value))


def _raise(r: Run, node: cst.Raise) -> None:
    if node.exc is not None:
        evaluate(r, node.exc)
    if isinstance(node.cause, cst.From):
        evaluate(r, node.cause.item)


def _assert(r: Run, node: cst.Assert) -> None:
    looked_at(r, node.test, evaluate(r, node.test))
    if node.msg is not None:
        evaluate(r, node.msg)


def _import(r: Run, node: cst.Import | cst.ImportFrom) -> None:
    if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
        r.refuse(node, "which names this binds is not followed")
        return
    for name, imported in imports_of(node):
        holder = r.frame.holder(name)
        if holder is not None:
            r.p.bind(holder, name, names.imported(r.p, r.table, imported))


def _delete(r: Run, node: cst.Del) -> None:
    targets = [e.value for e in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
    for target in targets:
        if isinstance(target, cst.Subscript):
            bind(r, target, NOTHING)


def _nothing(r: Run, node: cst.CSTNode) -> None:
    """Statements that change no kind."""


# ---- compound statements -----------------------------------------------------------------------------------


def _if(r: Run, node: cst.If) -> None:
    looked_at(r, node.test, quietly(r, node.test) if _fills_gap(node) else evaluate(r, node.test))
    _block(r, node.body)
    if isinstance(node.orelse, cst.If):
        _if(r, node.orelse)
    elif node.orelse is not None:
        _block(r, node.orelse.body)


def _fills_gap(node: cst.If) -> bool:
    """`if k not in d: d[k] = ...`: whichever way it goes, the item is there."""
    match node.test, node.orelse, node.body:
        case (
            cst.Comparison(left=key, comparisons=[cst.ComparisonTarget(cst.NotIn(), owner)]),
            None,
            cst.IndentedBlock(
                body=[
                    cst.SimpleStatementLine(
                        body=[
                            cst.Assign(
                                targets=[
                                    cst.AssignTarget(
                                        cst.Subscript(stored, [cst.SubscriptElement(cst.Index(value=index))])
                                    )
                                ]
                            )
                        ]
                    )
                ]
            ),
        ):
            return stored.deep_equals(owner) and index.deep_equals(key)
    return False


def _for(r: Run, node: cst.For) -> None:
    if node.asynchronous is not None:
        r.refuse(node.iter, "an asynchronous loop is not followed")
    bind(r, node.target, elements(r, node.iter, evaluate(r, node.iter)))
    _block(r, node.body)
    if node.orelse is not None:
        _block(r, node.orelse.body)


def _while(r: Run, node: cst.While) -> None:
    looked_at(r, node.test, evaluate(r, node.test))
    _block(r, node.body)
    if node.orelse is not None:
        _block(r, node.orelse.body)


def _try(r: Run, node: cst.Try) -> None:
    _block(r, node.body)
    for handler in node.handlers:
        if handler.name is not None:
            bind(r, handler.name.name, PLAIN)
        _block(r, handler.body)
    if node.orelse is not None:
        _block(r, node.orelse.body)
    if node.finalbody is not None:
        _block(r, node.finalbody.body)


def _with(r: Run, node: cst.With) -> None:
    if node.asynchronous is not None:
        r.refuse(node.items[0].item, "an asynchronous context is not followed")
    around = r.within
    for item in node.items:
        kind = evaluate(r, item.item)
        given: Kind = NOTHING
        for atom in kind:
            given |= _entered(r, node, item.item, atom)
        if item.asname is not None:
            bind(r, item.asname.name, given)
    _block(r, node.body)
    r.within = around


def _entered(r: Run, node: cst.With, item: cst.BaseExpression, atom: Atom) -> Kind:
    """What a context gives; the body of a capture lies in it."""
    match atom:
        case Checked(name=name) if name in api.ENTERED:
            r.frame.facts.uses_library = True
            if name == "Scope":
                r.within = r.within or node
                r.frame.facts.has_capture = True
            return frozenset({Checked(api.ENTERED[name])})
        case Sort.PLAIN | Sort.NONE:
            return PLAIN
        case Box():
            return r.p.items(atom)  # of a function that is made a context: what it yields
        case Made(of=of):
            found: Kind = NOTHING
            for hook, count in (("__enter__", 0), ("__exit__", 3)):
                member = names.member(r.p, of, hook)
                if member is None or not isinstance(member[1], cst.FunctionDef):
                    return r.refuse(item, "what this context does is not in view")
                code = Code(member[1], member[0].table, None, atom)
                given = run_code(r, code, of_values(r, item, *[PLAIN | NONE] * count))
                found |= given if hook == "__enter__" else NOTHING
            return found
        case _:
            return r.refuse(item, "what this context does is not in view")


def _function(r: Run, node: cst.FunctionDef) -> None:
    is_kernel = node in r.p.kernels.in_module(r.table)
    atom = (
        Kernel(node.name.value, r.table.file)
        if is_kernel
        else Code(node, r.table, None if _is_outermost(r) else r.frame)
    )
    bind(r, node.name, frozenset({atom}))


def _is_outermost(r: Run) -> bool:
    return isinstance(r.frame.node, cst.Module)


def _class(r: Run, node: cst.ClassDef) -> None:
    if not _is_outermost(r):
        bind(r, node.name, frozenset({Class(node, r.table)}))
        if any(isinstance(line, cst.FunctionDef) for line in node.body.body):
            r.refuse(node, "a class inside a function is not followed")


def _match(r: Run, node: cst.Match) -> None:
    r.refuse(node.subject, "what these patterns bind is not followed")
    evaluate(r, node.subject)
    for case in node.cases:
        _block(r, case.body)


_HANDLERS: dict[type, Callable[..., None]] = {
    cst.Expr: _expression,
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augmented,
    cst.Return: _return,
    cst.Raise: _raise,
    cst.Assert: _assert,
    cst.Import: _import,
    cst.ImportFrom: _import,
    cst.Del: _delete,
    cst.Global: _nothing,
    cst.Nonlocal: _nothing,
    cst.Pass: _nothing,
    cst.Break: _nothing,
    cst.Continue: _nothing,
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.Try: _try,
    cst.With: _with,
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
    cst.Match: _match,
}
