"""Statements that host code executes another way than kernels: exceptions, any loop, any target.

A statement that is not read makes the names that it may assign unknown, and leaves the path condition as it
was before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend import statements
from tilecheck.frontend.expressions import evaluate
from tilecheck.frontend.host_methods import literal
from tilecheck.frontend.host_operators import operate
from tilecheck.frontend.host_values import Table, Tensor, Unknown
from tilecheck.frontend.modules import dotted
from tilecheck.frontend.syntax import walk
from tilecheck.frontend.values import Const, Frame, Function, Num, Poison, Range, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol

if TYPE_CHECKING:
    from tilecheck.frontend.executor import Arguments
    from tilecheck.frontend.host import HostExecutor

UNKNOWN_KEYWORDS = "**"  # stands for keyword arguments whose names are not known
MUTATORS = frozenset("append extend insert pop remove clear sort reverse update setdefault popitem add".split())
_SWALLOWING = ("suppress", "raises", "assertRaises")  # context managers that swallow exceptions
_MOST_UNROLLED = 16  # items of a loop that is run item by item


def execute(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> bool:
    """Execute a statement if it needs a way of its own, or if the usual way turns out not to read it."""
    if isinstance(node, cst.FunctionDef):
        return False
    before = x.guard
    try:
        _HANDLERS.get(type(node), forget)(x, node, frame)
    except UnsupportedConstruct:
        x.guard = before
        forget(x, node, frame)
    return True


def forget(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Make everything that `node` may assign unknown."""
    for name in assigned(node):
        frame.names[name] = x.unread(name)


def assigned(node: cst.CSTNode) -> list[str]:
    """The names, attribute paths included, that a statement may assign."""
    found: dict[str, None] = {}
    for inner in walk(node):
        match inner:
            case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.For() | cst.NamedExpr():
                _names(inner.target, found)
            case cst.WithItem() if inner.asname is not None:
                _names(inner.asname.name, found)
            case cst.FunctionDef() | cst.ClassDef():
                found[inner.name.value] = None
            case cst.MatchAs() | cst.MatchStar() if inner.name is not None:
                found[inner.name.value] = None
            case cst.ExceptHandler() if inner.name is not None:
                _names(inner.name.name, found)
            case cst.Call(func=cst.Attribute(value=cst.Name(held), attr=cst.Name(method))) if (
                method in MUTATORS
            ):
                found[held] = None
    return list(found)


def _names(target: cst.CSTNode, found: dict[str, None]) -> None:
    match target:
        case cst.Name() | cst.Attribute():
            found[dotted(target)] = None
        case cst.Subscript():
            _names(target.value, found)
        case cst.Tuple() | cst.List():
            for element in target.elements:
                _names(element.value, found)


# ---- assignment --------------------------------------------------------------------------------------------


def assign_target(x: HostExecutor, target: cst.BaseExpression, value: Any, frame: Frame) -> bool:
    """Targets that kernels may not have: attributes, items, starred names."""
    match target:
        case cst.Name() if isinstance(value, Poison):
            frame.names[target.value] = x.unread(target.value)
        case cst.Attribute():
            _assign_attribute(x, target, value, frame)
        case cst.Subscript():
            _assign_item(x, target, value, frame)
        case cst.Tuple() | cst.List() if any(isinstance(e, cst.StarredElement) for e in target.elements):
            _unpack_starred(x, target, value, frame)
        case cst.Tuple() | cst.List() if isinstance(value, Tensor):
            _unpack_unknown(x, target, frame)
        case cst.Tuple() | cst.List() if isinstance(value, Seq) and len(value.items) != len(target.elements):
            x.guard = E.FALSE  # Python raises
            _unpack_unknown(x, target, frame)
        case _:
            return False
    return True


def _assign_attribute(x: HostExecutor, target: cst.Attribute, value: Any, frame: Frame) -> None:
    if target.attr.value in ("data", "shape", "strides"):
        x.stop(f"`.{target.attr.value}` of a tensor is assigned")
    if dotted(target):
        frame.names[dotted(target)] = value


def _assign_item(x: HostExecutor, target: cst.Subscript, value: Any, frame: Frame) -> None:
    """`d[k] = v`: a tensor keeps its shape, a display with literal keys is followed, others are lost."""
    name = dotted(target.value)
    held = frame.find(name) if name else None
    if isinstance(held, Table) and len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index):
        key = literal(evaluate(x, target.slice[0].slice.value, frame))
        _change(held, x.unread(name) if key is None else Table({**held.items, key: value}), frame)
    elif isinstance(held, Table | Seq):
        _change(held, x.unread(name), frame)
    elif held is None and isinstance(target.value, cst.Name):
        kept = x.stored.setdefault((frame.table.file, name), {})
        kept[frame.table.span(target).start] = form_of(value)


def form_of(value: Any) -> Any:
    """What of a stored value is the same whenever it is stored: kernels, and how many items there are."""
    match value:
        case Function():
            return value
        case Seq():
            return Seq(tuple(form_of(item) for item in value.items))
        case _:
            return None


def of_form(x: HostExecutor, form: Any, text: str) -> Any:
    """A value of that form; all but kernels is unknown."""
    match form:
        case Function():
            return form
        case Seq():
            return Seq(tuple(of_form(x, item, f"{text}[{k}]") for k, item in enumerate(form.items)))
        case _:
            return Unknown(text, opaque=True)


def bind_starred(x: HostExecutor, function: Function, args: Arguments) -> Frame | None:
    """The frame of a call whose function takes `*args` or `**kwargs`; None if it takes neither."""
    params = function.node.params
    star = params.star_arg if isinstance(params.star_arg, cst.Param) else None
    rest = params.star_kwarg
    if star is None and rest is None:
        return None
    plain = [*params.posonly_params, *params.params]
    known = {p.name.value for p in (*plain, *params.kwonly_params)}
    extra = tuple(args.positional[len(plain) :])
    others = {k: v for k, v in args.keywords if k not in known}
    if (extra and star is None) or (others and rest is None):
        raise UnsupportedConstruct(f"call of `{function.name}` with more arguments than it takes")
    named = params.with_changes(star_arg=cst.MaybeSentinel.DEFAULT, star_kwarg=None)
    simple = Function(function.node.with_changes(params=named), function.table, function.closure)
    keywords = tuple((k, v) for k, v in args.keywords if k in known)
    frame = statements.bind_parameters(
        x, simple, type(args)(args.positional[: len(plain)], keywords, args.node, args.table)
    )
    if star is not None:
        frame.names[star.name.value] = Seq(extra)
    if rest is not None:
        whole = UNKNOWN_KEYWORDS not in others
        frame.names[rest.name.value] = Table(others) if whole else x.unread(rest.name.value)
    return frame


def _unpack_starred(x: HostExecutor, target: cst.Tuple | cst.List, value: Any, frame: Frame) -> None:
    """`*batch, n = x.shape`: the names after the star count from the end."""
    elements = target.elements
    star = next(k for k, e in enumerate(elements) if isinstance(e, cst.StarredElement))
    after = len(elements) - star - 1
    if isinstance(value, Seq) and len(value.items) >= len(elements) - 1:
        stop = len(value.items) - after
        parts = [*value.items[:star], Seq(value.items[star:stop], True), *value.items[stop:]]
        for element, item in zip(elements, parts, strict=True):
            statements.assign(x, element.value, item, frame)
        return
    for k, element in enumerate(elements):
        position = k if k < star else k - len(elements)
        if isinstance(element, cst.StarredElement):
            statements.assign(x, element.value, x.unread(dotted(element.value) or "rest"), frame)
        else:
            statements.assign(x, element.value, _item_of(x, value, position), frame)


def _item_of(x: HostExecutor, value: Any, position: int) -> Any:
    try:
        return x.dialect.subscript(x, value, Num((), E.const(position), "int", None))
    except UnsupportedConstruct:
        return x.unread("item")


def _unpack_unknown(x: HostExecutor, target: cst.Tuple | cst.List, frame: Frame) -> None:
    found: dict[str, None] = {}
    _names(target, found)
    for name in found:
        frame.names[name] = x.unread(name)


def forget_lists(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Lists and dictionaries that unread code is given by name, or whose method it is, may change there."""
    if not isinstance(node, cst.Call):
        return
    given = [a.value for a in node.args]
    if isinstance(node.func, cst.Attribute):
        given.append(node.func.value)
    for value in given:
        name = dotted(value)
        held = frame.names.get(name) if name else None
        if isinstance(held, Table) or (isinstance(held, Seq) and held.is_list):
            _change(held, x.unread(name), frame)


def _change(held: Any, value: Any, frame: Frame) -> None:
    """A container changes in place: all names of it show the new value."""
    at: Frame | None = frame
    while at is not None:
        for name, other in at.names.items():
            if other is held:
                at.names[name] = value
        at = at.parent


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
            forget(x, small, frame)


def _small(x: HostExecutor, node: cst.BaseSmallStatement, frame: Frame) -> None:
    match node:
        case cst.Assign() | cst.AnnAssign() if node.value is not None:
            target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
            x.allocation = ",".join(_target_names(target))
            try:
                statements.run_small(x, node, frame)
            finally:
                x.allocation = ""
            for name in _target_names(target):
                _name_tensor(name, frame)
        case cst.AugAssign():
            _augmented(x, node, frame)
        case cst.Return():
            value = Const(None) if node.value is None else evaluate(x, node.value, frame)
            frame.returns.append((x.guard, value))
            x.guard = E.FALSE
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name(value="append")))):
            _append(x, node.value, frame)  # type: ignore[arg-type]  # the pattern says that it is a call
        case cst.Nonlocal() | cst.Global():
            for item in node.names:
                _lose_outer(x, item.name.value, frame)
        case cst.Del():
            for name in assigned(node):
                frame.names.pop(name, None)
        case cst.Continue() | cst.Break() if not x.loops:
            x.guard = E.FALSE
        case _:
            statements.run_small(x, node, frame)


def _augmented(x: HostExecutor, node: cst.AugAssign, frame: Frame) -> None:
    """`n += 1`. A tensor is updated in place, a list too."""
    before, amount = evaluate(x, node.target, frame), evaluate(x, node.value, frame)
    if isinstance(before, Tensor):
        return
    if isinstance(before, Table) or (isinstance(before, Seq) and before.is_list):
        longer = (
            isinstance(before, Seq) and isinstance(amount, Seq) and isinstance(node.operator, cst.AddAssign)
        )
        _change(before, Seq((*before.items, *amount.items), True) if longer else x.unread("list"), frame)
        return
    op = statements.AUGMENTED.get(type(node.operator))
    if op is None:
        raise UnsupportedConstruct("augmented assignment")
    statements.assign(x, node.target, operate(x, op, before, amount), frame)


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


def _append(x: HostExecutor, node: cst.Call, frame: Frame) -> None:
    name = dotted(node.func).rpartition(".")[0]
    held = frame.names.get(name)
    if isinstance(held, Seq) and len(node.args) == 1 and not x.loops:
        _change(held, Seq((*held.items, evaluate(x, node.args[0].value, frame)), held.is_list), frame)
    else:
        evaluate(x, node, frame)


def _lose_outer(x: HostExecutor, name: str, frame: Frame) -> None:
    outer = frame.parent
    while outer is not None:
        if name in outer.names:
            outer.names[name] = x.unread(name)
        outer = outer.parent


# ---- loops -------------------------------------------------------------------------------------------------


def _for(x: HostExecutor, node: cst.For, frame: Frame) -> None:
    source = evaluate(x, node.iter, frame)
    _forget_places(x, node, frame)
    if isinstance(source, Range) and not _known_length(source):
        statements.range_loop(x, node, source, frame)
    else:
        items = _items(source)
        if items is not None and not _leaves(node):
            statements.unrolled_loop(x, node, items, frame)
        else:
            _any_items(x, node, frame)
    if node.orelse is not None:
        statements.run_block(x, node.orelse.body.body, frame)


def _forget_places(x: HostExecutor, node: cst.For | cst.While, frame: Frame) -> None:
    """What a loop changes through attributes, items and methods is unknown in each of its iterations."""
    plain = statements.assigned_names(node)
    for name in assigned(node):
        if name not in plain:
            frame.names[name] = x.unread(name)


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
    """Whether a `break` or `return` ends the loop early."""
    return any(isinstance(n, cst.Break | cst.Return) for n in walk(node.body))


def _any_items(x: HostExecutor, node: cst.For, frame: Frame) -> None:
    """A loop over items that are not known: its body runs for an unknown one."""
    k = E.sym(Symbol(f"iteration of `{dotted(node.target) or 'for'}`", Kind.LOOP, x.number()))

    def enter() -> None:
        x.guard = E.all_of(x.guard, E.le(0, k))
        _unpack_unknown(x, cst.Tuple([cst.Element(node.target)]), frame)

    statements.symbolic_loop(x, node, k, enter, None, frame)


def _while(x: HostExecutor, node: cst.While, frame: Frame) -> None:
    _forget_places(x, node, frame)
    statements.run_while(x, node.with_changes(orelse=None) if node.orelse is not None else node, frame)
    if node.orelse is not None:
        statements.run_block(x, node.orelse.body.body, frame)


# ---- with, try, match --------------------------------------------------------------------------------------


def _with(x: HostExecutor, node: cst.With, frame: Frame) -> None:
    """Managers run around the body; past one that swallows exceptions, the body may have ended anywhere."""
    suppresses = False
    for item in node.items:
        value = evaluate(x, item.item, frame)
        suppresses |= isinstance(value, Unknown) and any(w in value.name for w in _SWALLOWING)
        if item.asname is not None:
            statements.assign(
                x, item.asname.name, value if isinstance(value, Unknown) else x.unread("with"), frame
            )
    if suppresses:
        _attempt(x, node.body.body, (), node, frame)
    else:
        statements.run_block(x, node.body.body, frame)


def _try(x: HostExecutor, node: cst.Try, frame: Frame) -> None:
    body = [*node.body.body, *(node.orelse.body.body if node.orelse is not None else ())]
    if node.handlers:
        _attempt(x, body, node.handlers, node, frame)
    else:
        statements.run_block(x, body, frame)
    if node.finalbody is not None:
        statements.run_block(x, node.finalbody.body.body, frame)


def _attempt(
    x: HostExecutor,
    body: Sequence[cst.CSTNode],
    handlers: Sequence[cst.ExceptHandler],
    node: cst.CSTNode,
    frame: Frame,
) -> None:
    """The body runs to its end, or an exception leaves it anywhere: then what it assigns is unknown."""
    before, names = x.guard, dict(frame.names)
    raised = x.unread_test("an exception")
    x.guard = E.all_of(before, E.negate(raised))
    statements.run_block(x, body, frame)
    ends = [(E.negate(raised), x.guard, frame.names)]
    for handler in handlers or (None,):
        chosen = x.unread_test("this exception")
        frame.names = dict(names)
        x.guard = E.all_of(before, raised, chosen)
        forget(x, node, frame)
        if handler is not None:
            statements.run_block(x, handler.body.body, frame)
        ends.append((chosen, x.guard, frame.names))
    _meet(x, ends, frame)


def _meet(x: HostExecutor, ends: list[tuple[E.Expr, E.Expr, dict[str, Any]]], frame: Frame) -> None:
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


def _match(x: HostExecutor, node: cst.Match, frame: Frame) -> None:
    """Any case may be the one, or none."""
    evaluate(x, node.subject, frame)
    before, names = x.guard, dict(frame.names)
    ends = [(x.unread_test("no case"), before, names)]
    for case in node.cases:
        chosen = x.unread_test("this case")
        frame.names = dict(names)
        x.guard = E.all_of(before, chosen)
        for name in assigned(case.pattern):
            frame.names[name] = x.unread(name)
        statements.run_block(x, case.body.body, frame)
        ends.append((chosen, x.guard, frame.names))
    _meet(x, ends, frame)


def _class(x: HostExecutor, node: cst.ClassDef, frame: Frame) -> None:
    frame.names[node.name.value] = x.unread(node.name.value)


_HANDLERS: Mapping[type, Callable[[HostExecutor, Any, Frame], None]] = {
    cst.SimpleStatementLine: _line,
    cst.SimpleStatementSuite: _line,
    cst.If: statements.run_if,
    cst.For: _for,
    cst.While: _while,
    cst.With: _with,
    cst.Try: _try,
    cst.TryStar: forget,
    cst.Match: _match,
    cst.ClassDef: _class,
}
