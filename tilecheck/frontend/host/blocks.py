"""Statements of host code that may end early without leaving the function: `with`, `try`, `match`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute import statements
from tilecheck.frontend.execute.expressions import evaluate
from tilecheck.frontend.host.memory.mutations import unread_code_runs
from tilecheck.frontend.host.memory.rejections import about, parts
from tilecheck.frontend.host.memory.sharing import unread_of
from tilecheck.frontend.host.sizes.operators import compare
from tilecheck.frontend.host.targets import assigned, forget
from tilecheck.frontend.host.values import Unknown
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.text.syntax import has_kind, walk
from tilecheck.frontend.values.values import Frame, Named
from tilecheck.ir import expr as E

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

# Modules, and names of others, whose context managers swallow no exceptions.
_PASSING = ("torch", "triton", "nvtx", "warnings", "threading", "tempfile")
_PASSING_NAMES = ("contextlib.nullcontext",)
_LEAVING = (cst.Return, cst.Break, cst.Continue)


def run_with(x: HostExecutor, node: cst.With, frame: Frame) -> None:
    """Managers run around the body; past one that may swallow exceptions, the body may have ended anywhere."""
    suppresses = False
    managers: list[Any] = []
    for item in node.items:
        value = evaluate(x, item.item, frame)
        manager = item.item.func if isinstance(item.item, cst.Call) else item.item
        passes = node.asynchronous is None and _passes(dotted(manager), frame)
        suppresses |= not passes
        managers += () if passes else (value,)
        if item.asname is not None:
            statements.assign(
                x, item.asname.name, value if isinstance(value, Unknown) else unread_of(x, "with", value), frame
            )
    if managers:
        unread_code_runs(x, managers, frame)  # `__enter__` runs, then `__exit__`
    if suppresses:
        _attempt(x, node.body.body, (), node, frame)
    else:
        statements.run_block(x, node.body.body, frame)
    if managers:
        unread_code_runs(x, managers, frame)


def _passes(manager: str, frame: Frame) -> bool:
    """Whether a context manager lets every exception out: by its full name, which no other value may bear."""
    root, dot, rest = manager.partition(".")
    held, binding = frame.find(root), frame.table.bindings.get(root)
    if isinstance(held, Named):  # imported inside a function
        full = held.name + dot + rest
    elif held is None and isinstance(binding, Import):
        full = binding.name + dot + rest
    else:
        return held is None and binding is None and manager == "open"
    return full.partition(".")[0] in _PASSING or full in _PASSING_NAMES


def run_try(x: HostExecutor, node: cst.Try, frame: Frame) -> None:
    body = [*node.body.body, *(node.orelse.body.body if node.orelse is not None else ())]
    ends = node.finalbody is not None and any(isinstance(n, _LEAVING) for n in walk(node.finalbody))
    if node.finalbody is not None and not ends:
        _finally(x, node, body, frame)
    elif node.finalbody is not None:  # it runs however the body ended, and may hold back what ended it
        _attempt(x, body, (*node.handlers, None), node, frame)
        statements.run_block(x, node.finalbody.body.body, frame)
    else:
        _attempt(x, body, node.handlers, node, frame)


def _finally(x: HostExecutor, node: cst.Try, body: Sequence[cst.CSTNode], frame: Frame) -> None:
    """A `finally` that does not leave goes on with what ended the body: what follows it is reached only after
    the end of the body, or of a handler."""
    assert node.finalbody is not None
    final = node.finalbody.body.body
    before, names, returns = x.guard, dict(frame.names), list(frame.returns)
    if has_kind(node.finalbody, cst.Call):  # of launches in it, after an exception
        kept, frame.names = frame.names, dict(names)
        x.guard = E.all_of(before, x.unread_test("an exception"))
        doubted = set(x.doubted)
        x.doubted |= about(node.body, frame)  # not every input need raise
        forget(x, node, frame)
        statements.run_block(x, final, frame)
        x.guard, frame.names, x.doubted = before, kept, doubted
        frame.returns[:] = returns
    x.finals.append((frame, tuple(final)))
    if node.handlers:
        _attempt(x, body, node.handlers, node, frame)
    else:
        statements.run_block(x, body, frame)
    x.finals.pop()
    if x.guard is not E.FALSE:
        statements.run_block(x, final, frame)


def _attempt(
    x: HostExecutor,
    body: Sequence[cst.CSTNode],
    handlers: Sequence[cst.ExceptHandler | None],
    node: cst.CSTNode,
    frame: Frame,
) -> None:
    """The body runs to its end, or an exception leaves it anywhere: then what it assigns is unknown."""
    before, names = x.guard, dict(frame.names)
    speaks = any(about(part, frame) for part in body)
    test = x.exception if speaks else x.test_of_machine
    raised = test("an exception")
    x.guard = E.all_of(before, E.negate(raised))
    statements.run_block(x, body, frame)
    ends = [(E.negate(raised), x.guard, frame.names)]
    raising = set[str]().union(*(about(part, frame) for part in body))
    if x.guard is E.FALSE:
        x.doubted |= raising  # who goes on after this has raised
    for handler in handlers or (None,):
        chosen = test("this exception")
        frame.names = dict(names)
        x.guard = E.all_of(before, raised, chosen)
        forget(x, node, frame)
        lost = (frame.names.get(name) for name in assigned(node))
        x.doubted.update(v.name for v in lost if isinstance(v, Unknown))  # nobody hands these in
        if handler is not None:
            outer, x.raising = x.raising, x.raising | raising
            statements.run_block(x, handler.body.body, frame)
            x.raising = outer
        ends.append((chosen, x.guard, frame.names))
    meet(x, ends, frame)


def meet(x: HostExecutor, ends: list[tuple[E.Expr, E.Expr, dict[str, Any]]], frame: Frame) -> None:
    """Join paths; one that ended takes no part."""
    reached = [end for end in ends if end[1] is not E.FALSE]
    if not reached:
        x.guard = E.FALSE
        return
    _, guard, names = reached[-1]
    for cond, other, others in reversed(reached[:-1]):
        names = x.merge_names(cond, others, names)
        guard = x.join(other, guard)
    x.guard, frame.names = guard, names


def run_match(x: HostExecutor, node: cst.Match, frame: Frame) -> None:
    """The first case that fits is run; which one that is, is followed for literals."""
    subject = evaluate(x, node.subject, frame)
    before, names = x.guard, dict(frame.names)
    ends: list[tuple[E.Expr, E.Expr, dict[str, Any]]] = []
    left = E.TRUE
    for case in node.cases:
        frame.names = dict(names)
        x.guard = E.all_of(before, left)
        fits = _fits(x, subject, case.pattern, frame)
        x.guard = E.all_of(x.guard, fits)
        if case.guard is not None:
            fits = E.all_of(fits, x.truth(evaluate(x, case.guard, frame)))
            x.guard = E.all_of(before, left, fits)
        chosen = E.all_of(left, fits)
        left = E.all_of(left, E.negate(fits))
        if x.guard is not E.FALSE:
            statements.run_block(x, case.body.body, frame)
        ends.append((chosen, x.guard, frame.names))
    ends.append((left, E.all_of(before, left), names))
    meet(x, ends, frame)


def _fits(x: HostExecutor, subject: Any, pattern: cst.MatchPattern, frame: Frame) -> E.Expr:
    """Whether a pattern fits; what it binds is unknown, but for a name that stands alone."""
    match pattern:
        case cst.MatchAs(pattern=None, name=name):
            if name is not None:
                frame.names[name.value] = subject
            return E.TRUE
        case cst.MatchValue(value=cst.BaseNumber() | cst.SimpleString()):
            try:
                return x.truth(compare(x, cst.Equal(), subject, evaluate(x, pattern.value, frame)))
            except UnsupportedConstruct:
                return _perhaps(x, subject)
        case cst.MatchOr():
            return E.any_of(*(_fits(x, subject, p.pattern, frame) for p in pattern.patterns))
        case _:
            for bound in assigned(pattern):
                frame.names[bound] = unread_of(x, bound, subject)
            return _perhaps(x, subject)


def _perhaps(x: HostExecutor, subject: Any) -> E.Expr:
    """A pattern that is not read may turn subjects away."""
    x.doubted |= parts(subject)
    return x.unread_test("this case")
