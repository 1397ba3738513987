"""Executes statements: branches run both ways, loops once with a symbolic iteration number.

Loops. The body is first run dry with unknown values for the variables that it assigns. A variable whose
value then grew by an amount that the loop does not change has the closed form v0 + k*d in iteration k; one
that is then some other value, the same after every iteration, has v0 in the first and that value in the rest;
the others are unknown in each iteration. The second run records, with these values. Both runs see every path
of the body, so the closed form holds on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.binary_search import Search, searches
from tilecheck.frontend.dataflow.loop_reductions import gathered, keep, mark
from tilecheck.frontend.dataflow.operations import combined, way_of
from tilecheck.frontend.execute.expressions import (
    MAX_UNROLL,
    MODULE,
    call,
    evaluate,
    imported,
    operate,
    static_items,
)
from tilecheck.frontend.execute.overflow_dependencies import is_new_unknown, resting, rests_of
from tilecheck.frontend.execute.state import MAX_DEPTH, Arguments, Executor, Loop, Unrolled
from tilecheck.frontend.kernels.annotations import read_annotation
from tilecheck.frontend.modules.bindings import dotted, imports_of
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import (
    Array,
    BlockPointer,
    Choice,
    Const,
    Frame,
    Function,
    Named,
    Num,
    Param,
    Pointer,
    Poison,
    Range,
    Rest,
    Seq,
    Token,
    alike,
    forgotten,
    parts,
    rebuilt,
    used,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import UnsafeBlock

AUGMENTED = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//",
    cst.ModuloAssign: "%",
    cst.PowerAssign: "**",
    cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>",
    cst.BitAndAssign: "&",
    cst.BitOrAssign: "|",
    cst.BitXorAssign: "^",
}


def run_block(x: Executor, body: Sequence[cst.CSTNode], frame: Frame) -> None:
    """Execute statements until the path ends (`x.guard` becomes false)."""
    for statement in body:
        if x.guard is E.FALSE:
            return
        x.step()
        run_statement(x, statement, frame)


def run_statement(x: Executor, node: cst.CSTNode, frame: Frame) -> None:
    if x.statement(node, frame):
        return
    match node:
        case cst.SimpleStatementLine() | cst.SimpleStatementSuite():
            with x.unsafe_statement(frame.table, node):
                for small in node.body:
                    if x.guard is not E.FALSE:
                        run_small(x, small, frame)
        case cst.BaseSmallStatement():  # of a body on the line of its `if`, `for` or `def`
            run_small(x, node, frame)
        case cst.If():
            with x.unsafe_statement(frame.table, node):
                run_if(x, node, frame)
        case cst.For():
            with x.unsafe_statement(frame.table, node):
                _for(x, node, frame)
        case cst.While():
            with x.unsafe_statement(frame.table, node):
                run_while(x, node, frame)
        case cst.With():
            _with(x, node, frame)
        case cst.FunctionDef():
            frame.names[node.name.value] = defined(x, node, frame)
        case _:
            raise _unsupported(f"{type(node).__name__.lower()} statement", node, frame)


def _unsupported(construct: str, node: cst.CSTNode, frame: Frame) -> UnsupportedConstruct:
    return UnsupportedConstruct(construct, frame.table.span(node), frame.table.file)


def run_small(x: Executor, node: cst.BaseSmallStatement, frame: Frame) -> None:
    match node:
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()) | cst.Pass():
            pass  # a docstring
        case cst.Expr():
            evaluate(x, node.value, frame)
        case cst.Assign():
            value = x.dialect.assigned(evaluate(x, node.value, frame))
            for target in node.targets:
                assign(x, target.target, value, frame)
        case cst.AnnAssign():
            if node.value is None and x.dialect.has_pointers:
                raise _unsupported("annotation without a value", node, frame)
            if node.value is not None:
                value = evaluate(x, node.value, frame)
                note = node.annotation.annotation
                quoted = isinstance(note, cst.SimpleString | cst.ConcatenatedString)
                is_constant = not quoted and read_annotation(frame.table, note).constant
                assign(x, node.target, value if is_constant else x.dialect.assigned(value), frame)
        case cst.AugAssign():
            before = evaluate(x, node.target, frame)
            amount = evaluate(x, node.value, frame)
            if type(node.operator) not in AUGMENTED:
                raise _unsupported("augmented assignment", node, frame)
            with x.at(frame.table, node):
                after = operate(x, AUGMENTED[type(node.operator)], before, amount)
                assign(x, node.target, x.dialect.assigned(after), frame)
        case cst.Return():
            value = Const(None) if node.value is None else evaluate(x, node.value, frame)
            if any(loop.frame is frame for loop in x.loops):
                if not _is_none(value):
                    raise _unsupported("return of a value inside a loop", node, frame)
                frame.left_loop = True
            frame.returns.append((x.guard, value))
            x.guard = E.FALSE
        case cst.Continue():
            loop = x.loops[-1]
            loop.continues.append((x.guard, dict(frame.names)))
            x.guard = E.FALSE
        case cst.Break():
            x.loops[-1].broken = True
            x.guard = E.FALSE
        case cst.Import() | cst.ImportFrom():
            for name, binding in imports_of(node):
                frame.names[name] = imported(x, binding, frame.table)
        case cst.Raise():
            x.guard = E.FALSE  # a compile-time error on this path: nothing runs after it
        case cst.Assert():
            x.dialect.call(x, "assert", Arguments((evaluate(x, node.test, frame),), (), node, frame.table))
        case _:
            raise _unsupported(f"{type(node).__name__.lower()} statement", node, frame)


def _is_none(value: Any) -> bool:
    return isinstance(value, Const) and value.value is None


# ---- assignment --------------------------------------------------------------------------------------------


def assign(x: Executor, target: cst.BaseExpression, value: Any, frame: Frame) -> None:
    """Bind a target to a value, unpacking tuples and the shape of an array."""
    if x.target(target, value, frame):
        return
    match target:
        case cst.Name():
            frame.names[target.value] = value
            x.note_name(target.value, value)
        case cst.Tuple() | cst.List():
            _unpack(x, target, value, frame)
        case _:
            raise _unsupported("assignment to an attribute or an item", target, frame)


def _unpack(x: Executor, target: cst.Tuple | cst.List, value: Any, frame: Frame) -> None:
    elements = target.elements
    if any(isinstance(e, cst.StarredElement) for e in elements):
        raise _unsupported("starred assignment", target, frame)
    if isinstance(value, Choice) and (fitting := _of_length(value, len(elements))) is not None:
        value = fitting
    if isinstance(value, Choice):
        first = Frame(dict(frame.names), frame.parent, frame.table, frame.function, [], frame.depth)
        _unpack(x, target, value.first, first)
        _unpack(x, target, value.second, frame)
        frame.names.update(x.merge_names(value.cond, first.names, frame.names))
        return
    if not isinstance(value, Seq):
        with x.at(frame.table, target):
            value = x.dialect.method(
                x, value, "<unpack>", Arguments((numbers_literal(len(elements)),), (), target, frame.table)
            )
    items = static_items(x, value, "unpacking")
    if len(items) != len(elements):
        raise _unsupported("unpacking of another length", target, frame)
    for element, item in zip(elements, items, strict=True):
        assign(x, element.value, item, frame)


def _of_length(value: Choice, length: int) -> Any | None:
    """The one of two sequences that unpacks into so many names: code with the other does not compile."""
    lengths = [len(way.items) if isinstance(way, Seq) else -1 for way in (value.first, value.second)]
    if -1 in lengths or lengths.count(length) != 1:
        return None
    return value.first if lengths[0] == length else value.second


def numbers_literal(value: int) -> Num:
    return Num((), E.const(value), "int", None)


# ---- branches ----------------------------------------------------------------------------------------------


def run_if(x: Executor, node: cst.If, frame: Frame) -> None:
    with x.at(frame.table, node.test):
        cond = x.truth(evaluate(x, node.test, frame))
    x.branch_on(cond)
    orelse: Sequence[cst.CSTNode] = ()
    if isinstance(node.orelse, cst.Else):
        orelse = node.orelse.body.body
    elif isinstance(node.orelse, cst.If):
        orelse = (node.orelse,)
    branch(x, cond, node.body.body, orelse, frame)


def branch(
    x: Executor, cond: Expr, body: Sequence[cst.CSTNode], orelse: Sequence[cst.CSTNode], frame: Frame
) -> None:
    """Run `body` where `cond` holds and `orelse` elsewhere, and merge the names they leave."""
    if cond is E.TRUE or cond is E.FALSE:
        run_block(x, body if cond is E.TRUE else orelse, frame)
        return
    before, names, changes = x.guard, dict(frame.names), x.changes_so_far()
    then_guard = x.guard = E.all_of(before, cond)
    run_block(x, body, frame)
    then_end, then_names, then_changes = x.guard, frame.names, x.changes_so_far()
    frame.names = names
    else_guard = x.guard = E.all_of(before, E.negate(cond))
    x.set_changes(changes)
    run_block(x, orelse, frame)
    else_end = x.guard
    x.join_changes(then_changes, ended=(then_end is E.FALSE, else_end is E.FALSE))
    if then_end is E.FALSE or else_end is E.FALSE:
        if else_end is E.FALSE:
            frame.names = then_names
        x.guard = x.join(then_end, else_end)
        return
    whole = then_end is then_guard and else_end is else_guard
    x.guard = before if whole else x.join(then_end, else_end)
    frame.names = x.merge_names(cond, then_names, frame.names)


# ---- loops -------------------------------------------------------------------------------------------------


def _for(x: Executor, node: cst.For, frame: Frame) -> None:
    if node.asynchronous is not None or node.orelse is not None:
        raise _unsupported("for loop with async or else", node, frame)
    source = evaluate(x, node.iter, frame)
    if isinstance(source, Poison):
        raise _unsupported(source.why, node.iter, frame)
    if isinstance(source, Range):
        if source.static and _has_known_length(source):
            source = Seq(static_items(x, source, "static loop"))
        else:
            range_loop(x, node, source, frame)
            return
    unrolled_loop(x, node, static_items(x, source, "loop"), frame)


def _has_known_length(r: Range) -> bool:
    values = [n.elem.value if n.elem is not None else None for n in (r.start, r.stop, r.step)]
    if None in values or values[2] == 0:
        return False
    return len(range(*values)) <= MAX_UNROLL  # type: ignore[arg-type]


def unrolled_loop(x: Executor, node: cst.For, items: tuple[Any, ...], frame: Frame) -> None:
    if len(items) > MAX_UNROLL:
        raise _unsupported(f"loop over more than {MAX_UNROLL} items", node, frame)
    loop = Loop(frame)
    x.loops.append(loop)
    try:
        for item in items:
            if x.guard is E.FALSE:
                break
            assign(x, node.target, item, frame)
            _body(x, node.body.body, loop, frame)
            if loop.broken:
                raise _unsupported("break in an unrolled loop", node, frame)
    finally:
        x.loops.pop()


def _body(x: Executor, body: Sequence[cst.CSTNode], loop: Loop, frame: Frame) -> None:
    """One iteration; paths that `continue` join at its end."""
    loop.continues = []
    run_block(x, body, frame)
    for guard, names in loop.continues:
        if x.guard is E.FALSE:
            frame.names, x.guard = dict(names), guard
        else:
            frame.names = x.merge_names(guard, names, frame.names)
            x.guard = x.join(guard, x.guard)


def range_loop(x: Executor, node: cst.For, r: Range, frame: Frame) -> None:
    with x.at(frame.table, node.iter):
        start, stop, step = (x.scalar(n, "loop bound") for n in (r.start, r.stop, r.step))
        downwards = _goes_down(x, step)
        rate = E.neg(step) if downwards else step
        if (
            rate.value == 0
            or (rate.value is None and rate.op != "sym")
            or (rate.op == "sym" and rate.args[0].kind is not Kind.GRID)
        ):
            x.steps_by(rate)
    if downwards and stop.value is not None:
        start = _floored(start, stop.value)
    elif not downwards and start.value is not None:
        stop = _floored(stop, start.value)
    name = dotted(node.target) or "i"
    counts = start is E.ZERO and step is E.ONE
    k = E.sym(Symbol(name if counts else f"iteration({name})", Kind.LOOP, x.number()))
    value = E.add(start, E.mul(k, step))
    within = E.lt(stop, value) if downwards else E.lt(value, stop)
    bits = next((n.bits for n in (r.start, r.stop, r.step) if n.bits == 64), 32)
    distance = E.sub(start, stop) if downwards else E.sub(stop, start)
    trips = E.maximum(0, E.cdiv(distance, rate))
    bounded = combined("loop", (1, len(x.nest)), way_of(r.start), way_of(r.stop), way_of(r.step))
    way = None if r.static else bounded  # unrolled, it is another literal in each iteration

    def enter() -> None:
        x.guard = E.all_of(x.guard, E.le(0, k), within)
        counter = Num((), value, "int", None if r.static else bits, way=way)
        assign(x, node.target, counter, frame)

    bounds = frozenset({E.le(0, k), within}) if r.static else None
    symbolic_loop(x, node, k, enter, trips, frame, variable=value, bounds=bounds)


def _floored(end: Expr, most: int) -> Expr:
    """The end of a loop that is above `most`, with floor division for one that truncates.

    The two differ where the dividend is negative, as the divisor is positive (it has an obligation of its own):
    then neither quotient is above 0. So where what is added to it is at most `most`, the loop does not run with
    the one nor the other.
    """
    terms = end.args if end.op == "add" else (end,)
    quotients = [t for t in terms if t.value is None]
    added = sum(t.value for t in terms if t.value is not None)
    floor = _floor_of(quotients[0]) if len(quotients) == 1 else None
    return end if floor is None or added > most else E.add(floor, added)


def _floor_of(quotient: Expr) -> Expr | None:
    """The floor of what a truncating division gives, if it is one (`TritonDialect.quotient`)."""
    if quotient.op != "ite" or quotient.args[1].op != "floordiv":
        return None
    other: Expr = quotient.args[2]
    floor: Expr = quotient.args[1]
    dividend, divisor = floor.args
    negative = E.neg(E.floordiv(E.neg(dividend), divisor))
    if other is negative and quotient is E.ite(E.le(0, dividend), floor, negative):
        return floor
    return floor if other.op == "ite" and _floor_of(other) is floor else None


def _goes_down(x: Executor, step: Expr) -> bool:
    """Whether a loop is written to count down: by a literal, or in Triton by what is known at compile time.

    Triton turns such a loop round while it compiles; by a number of the launch it counts upwards alone.
    """
    if step.value is not None:
        return step.value < 0
    if not x.dialect.has_pointers or step.op != "mul" or step.args[0].value is None:
        return False
    return step.args[0].value < 0 and all(s.kind is Kind.CONSTANT for s in E.symbols(step))


def run_while(x: Executor, node: cst.While, frame: Frame) -> None:
    if node.orelse is not None:
        raise _unsupported("while loop with else", node, frame)
    k = E.sym(Symbol("iteration(while)", Kind.LOOP, x.number()))

    def enter() -> None:
        x.guard = E.all_of(x.guard, E.le(0, k))
        # This counts for the last test too, which tells what holds after the loop.
        with x.at(frame.table, node.test):
            cond = x.truth(evaluate(x, node.test, frame))
        x.branch_on(cond)
        x.guard = E.all_of(x.guard, cond)

    settled = len(x.settled)
    broken = symbolic_loop(x, node, k, enter, None, frame)
    if broken or x.guard is E.FALSE:
        return
    before = x.guard
    outer, x.leaving = x.leaving, True
    with x.dry_run():
        cond = x.truth(evaluate(x, node.test, frame))
    x.leaving = outer
    x.guard = before
    ended = E.negate(cond)  # the loop ended because its condition failed
    if len(x.settled) > settled:
        x.settle(ended)
    else:
        x.guard = E.all_of(before, ended)


def symbolic_loop(
    x: Executor,
    node: cst.For | cst.While,
    k: Expr,
    enter: Any,
    trips: Expr | None,
    frame: Frame,
    variable: Expr | None = None,
    *,
    bounds: frozenset[Expr] | None = None,
) -> bool:
    """Run a loop body for iteration `k`; returns whether a `break` was seen.

    `variable` is the value of a `for` loop's variable, which the body may hand to a store as it is. `bounds`
    are given if the compiler unrolls the loop, and say what holds of `k`: then a variable may change its type.
    """
    before, settled = x.guard, len(x.settled)
    static = bounds is not None and trips is not None
    x.nest.append((k.args[0], variable))
    if bounds is not None and trips is not None:
        x.unrolled.append(Unrolled(trips, k.args[0], bounds))
    try:
        names = assigned_names(node)
        carried = [n for n in names if n in frame.names]
        entry = {n: _entering(x, frame.names[n]) for n in carried}
        steps, found = _find_steps(x, node, enter, entry, k.args[0].uid, frame)
        # A loop that the compiler unrolls may have a variable change its shape. Such a variable is no value: a
        # round that uses what it finds there, or something after the loop what it leaves, is refused.
        reshaped: set[str] = set()
        while static and (changed := {n for n in carried if _is_reshaped(steps[n])}) > reshaped:
            reshaped = changed
            entry.update(dict.fromkeys(reshaped, _RESHAPED_TILE))
            steps, found = _find_steps(x, node, enter, entry, k.args[0].uid, frame)
        for n in carried:
            frame.names[n] = _advance(x, entry[n], steps[n], k)
        mark(frame.names, carried if x.dialect.has_pointers else (), k.args[0])
        for search in found:
            search.asks(x, entry)
            x.guard = E.all_of(x.guard, search.hold(x, frame.names))
        nodes = _with_nodes(x, frame.names, entry)
        loop = Loop(frame)
        x.loops.append(loop)
        try:
            enter()
            if x.guard is not E.FALSE:
                _body(x, node.body.body, loop, frame)
            for search in found:  # what is known of its ends says it of others than a round's
                search.rests(x, frame.names)
            for name, left in nodes.items():
                x.overflow.feed(left, rests_of(frame.names.get(name)))
        finally:
            x.loops.pop()
    finally:
        if static:
            x.unrolled.pop()
        x.nest.pop()  # also where code of a module is given up: the kernel goes on outside of this loop
        del x.settled[settled:]  # what holds in a round
    x.guard = before
    needed = {} if loop.broken or trips is None else gathered(frame.names, k.args[0])
    _leave(x, entry, steps, trips, names, frame, broken=loop.broken)
    frame.names.update(dict.fromkeys(reshaped, _RESHAPED_TILE))
    keep(frame.names, needed)
    _rest_on(frame.names, entry, nodes)
    for search in () if loop.broken else found:
        x.settle(search.hold(x, frame.names, trips))
    return loop.broken


def _with_nodes(x: Executor, names: dict[str, Any], entry: Mapping[str, Any]) -> dict[str, Rest]:
    """Have the variables that a loop carries rest on what its rounds leave in them (S-32bit-3): a node each."""
    if x.dry or not x.has_machine_integers:
        return {}
    nodes = {name: x.overflow.node() for name in entry}
    _rest_on(names, entry, nodes)
    return nodes


def _rest_on(names: dict[str, Any], entry: Mapping[str, Any], nodes: Mapping[str, Rest]) -> None:
    for name, node in nodes.items():
        value = names[name]
        if not (isinstance(value, Num) and is_new_unknown(value, entry[name])):
            names[name] = resting(value, frozenset({node}))


def _entering(x: Executor, value: Any) -> Any:
    """A variable as a loop that assigns it finds it: a parameter that may be a pointer is a number until the
    runs have found the pointers; what flags chose among literals is a scalar."""
    if x.dialect.has_pointers and (
        isinstance(value, Param) or (isinstance(value, Choice) and _is_scalar(value))
    ):
        return x.number_of(value, "value")
    return value


def _is_scalar(value: Any) -> bool:
    value = used(value)
    if isinstance(value, Choice):
        return _is_scalar(value.first) and _is_scalar(value.second)
    return (isinstance(value, Num) and value.is_scalar) or (
        isinstance(value, Const) and isinstance(value.value, float)
    )


@lru_cache(maxsize=128)
def assigned_names(node: cst.For | cst.While) -> tuple[str, ...]:
    """The names that a loop may bind, in order of first appearance. Remembered: a loop is run several times."""
    found: dict[str, None] = {}

    class Collect(cst.CSTVisitor):
        def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: N802 - libcst's name
            found[node.name.value] = None
            return False

        def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: N802 - libcst's name
            return False

        def visit_AssignTarget(self, node: cst.AssignTarget) -> None:  # noqa: N802 - libcst's name
            targets(node.target)

        def visit_AnnAssign(self, node: cst.AnnAssign) -> None:  # noqa: N802 - libcst's name
            targets(node.target)

        def visit_AugAssign(self, node: cst.AugAssign) -> None:  # noqa: N802 - libcst's name
            targets(node.target)

        def visit_For(self, node: cst.For) -> None:  # noqa: N802 - libcst's name
            targets(node.target)

        def visit_NamedExpr(self, node: cst.NamedExpr) -> None:  # noqa: N802 - libcst's name
            targets(node.target)

        def visit_WithItem(self, node: cst.WithItem) -> None:  # noqa: N802 - libcst's name
            if node.asname is not None:
                targets(node.asname.name)

    def targets(target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            found[target.value] = None
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                targets(element.value)

    node.visit(Collect())
    return tuple(found)


_UNKNOWN = object()  # the variable has no closed form
_SAME = object()  # the loop does not change the variable
_RESHAPED = object()  # the variable is a tile of another shape after an iteration
_RESHAPED_TILE = Poison("tile whose shape changes in a loop of unknown length")


@dataclass(frozen=True, slots=True)
class _Put:
    """The variable holds this after every iteration. `kind` is that of a number (`Num.kind`) which is this or
    what it held before the loop."""

    value: Expr
    kind: str


@dataclass(frozen=True, slots=True)
class _Assigned:
    """What was perhaps a number of compile time before the loop: each iteration leaves a machine number."""

    step: Any


def _find_steps(
    x: Executor, node: Any, enter: Any, entry: dict[str, Any], mark: int, frame: Frame
) -> tuple[dict[str, Any], tuple[Search, ...]]:
    """How each carried variable moves in one iteration: an amount per element, `_SAME`, or `_UNKNOWN`; and the
    searches that the loop makes.

    `mark` is the number of the loop's iteration symbol: that symbol, and all made after it, vary.
    """
    saved, outer_returns = dict(frame.names), len(frame.returns)
    inputs = {n: _unknown_like(x, v) for n, v in entry.items()}
    frame.names.update(inputs)
    loop = Loop(frame)
    x.loops.append(loop)
    try:
        with x.dry_run():
            enter()
            if x.guard is not E.FALSE:
                _body(x, node.body.body, loop, frame)
            found = searches(x, inputs, frame.names, entry, mark) if x.follows_searches else ()
        return {n: _step_of(inputs[n], frame.names.get(n), mark, entry[n]) for n in entry}, found
    finally:
        x.loops.pop()
        del frame.returns[outer_returns:]
        frame.names = saved


def _unknown_like(x: Executor, value: Any) -> Any:
    match value:
        case Num() if value.elem is not None:
            boolean = value.kind == "bool"
            origin = x.derived(value.elem) if value.kind == "any" else "loop"
            elem = x.fresh(origin, per_lane=bool(value.shape), boolean=boolean)
            bits = 32 if value.bits is None and not boolean else value.bits
            return Num(value.shape, elem, value.kind, bits, folded=_folded(x, value))
        case Num():
            return forgotten(value)
        case Seq() | Pointer() | BlockPointer():
            return rebuilt(value, tuple(_unknown_like(x, item) for item in parts(value) or ()))
        case Choice():
            return Choice(value.cond, _unknown_like(x, value.first), _unknown_like(x, value.second))
        case _:
            return value


def _is_reshaped(step: Any) -> bool:
    return any(map(_is_reshaped, step)) if isinstance(step, tuple) else step is _RESHAPED


def _step_of(before: Any, after: Any, mark: int, entry: Any) -> Any:
    """What one iteration adds to a variable that held `before` and then `after`; `entry` before the loop."""
    if _RESHAPED_TILE in (before, after):
        return _RESHAPED
    if before is after:
        return _SAME
    if isinstance(before, Num) and isinstance(after, Num) and before.shape != after.shape:
        return _RESHAPED
    match before, after:
        case Num(), Num() if before.elem is not None and after.elem is not None:
            if len(before.shape) != len(after.shape) or before.kind == "bool" or after.kind == "bool":
                return _SAME if before.elem is after.elem else _put(before, after, mark, entry)
            moved = _moved(before.elem, after.elem, mark)
            if moved is None and _is_kept(before, after, entry):
                return _SAME
            step = _put(before, after, mark, entry) if moved is None else moved
            machine = before.folded is not E.FALSE and arithmetic.folded_where(after) is E.FALSE
            return _Assigned(step) if machine else step
        case ((Seq() | Pointer() | BlockPointer()), _) if alike(before, after):
            items = zip(parts(before) or (), parts(after) or (), parts(entry) or (), strict=True)
            return tuple(_step_of(b, a, mark, e) for b, a, e in items)
        case Choice(), Choice() if before.cond is after.cond:
            return (
                _step_of(before.first, after.first, mark, entry.first),
                _step_of(before.second, after.second, mark, entry.second),
            )
        case _:
            return _SAME if before == after else _UNKNOWN


def _is_kept(before: Num, after: Num, entry: Any) -> bool:
    """Whether an iteration leaves a variable as it found it or puts there what it held before the loop: then it
    holds that in every iteration, by induction."""
    if not isinstance(entry, Num) or (after.shape, after.kind) != (entry.shape, entry.kind):
        return False

    def kept(e: Expr | None) -> bool:
        if e is not None and e.op == "ite":
            return kept(e.args[1]) and kept(e.args[2])
        return e is before.elem or e is entry.elem

    return entry.elem is not None and kept(after.elem)


def _put(before: Num, after: Num, mark: int, entry: Any) -> Any:
    """What an iteration puts into a variable, if that is the same in each; else `_UNKNOWN`.

    A condition that the loop does not change sends all iterations the same way. Where that leaves the variable
    as it was, it holds what it held before the loop.
    """
    if not isinstance(entry, Num) or entry.elem is None:
        return _UNKNOWN
    if (after.shape, after.bits or 32) != (entry.shape, entry.bits or 32):
        return _UNKNOWN
    kinds = {after.kind, entry.kind}
    if len(kinds) > 1 and kinds != {"any", "int"}:
        return _UNKNOWN
    first = entry.elem

    def settled(e: Expr) -> Expr | None:
        if e is before.elem:
            return first
        if e.op == "ite" and _invariant(e.args[0], mark):
            one, two = settled(e.args[1]), settled(e.args[2])
            return None if one is None or two is None else E.ite(e.args[0], one, two)
        return e if _invariant(e, mark) else None

    assert after.elem is not None
    value = settled(after.elem)
    return _UNKNOWN if value is None else _Put(value, min(kinds))


def _moved(before: Expr, after: Expr, mark: int) -> Expr | None:
    """The amount that an iteration adds, the same in each; None if there is none such.

    Under a condition that the loop does not change it is that of one branch in all iterations.
    """
    if after is before:
        return E.ZERO
    if after.op == "ite" and _invariant(after.args[0], mark):
        first, second = (_moved(before, branch, mark) for branch in after.args[1:])
        return None if first is None or second is None else E.ite(after.args[0], first, second)
    moved = E.sub_terms(after, before)
    if moved is None:
        moved = E.sub(after, before)
    return moved if _invariant(moved, mark) else None


def _invariant(value: Expr, mark: int) -> bool:
    # The iteration number and everything made since may differ from one iteration to the next.
    return all(s.uid < mark for s in E.symbols(value))


def _folded(x: Executor, entry: Num, k: Expr | None = None) -> Expr:
    """Where a variable, of which this is the value before the loop, is a number of compile time: Triton makes
    machine numbers of what the iterations put there, if they do."""
    where = arithmetic.folded_where(entry) if x.dialect.has_pointers and entry.kind != "bool" else E.FALSE
    if where is E.FALSE:
        return E.FALSE
    some = x.fresh("data", per_lane=False, boolean=True)
    return E.all_of(where, some if k is None else E.any_of(E.le(k, 0), some))


def _advance(x: Executor, entry: Any, step: Any, k: Expr) -> Any:
    """The value of a carried variable at the start of iteration `k`."""
    if isinstance(entry, Num):  # an iteration may have put anything else there
        entry = forgotten(entry)
    if step is _SAME or entry is _RESHAPED_TILE:
        return entry
    if isinstance(step, _Assigned):
        where = E.all_of(arithmetic.folded_where(entry), E.le(k, 0))
        return replace(_advance(x, entry, step.step, k), folded=where)
    match entry:
        case Num() if isinstance(step, Expr) and entry.elem is not None:
            if step is E.ZERO:
                return entry
            bits = 32 if entry.bits is None else entry.bits
            elem = arithmetic.wrapped(E.add(entry.elem, E.mul(k, step)), bits)
            return replace(entry, elem=elem, bits=bits, folded=_folded(x, entry, k))
        case Num() if isinstance(step, _Put) and entry.elem is not None:
            choice, bits = E.either if entry.kind == "bool" else E.ite, 32 if entry.bits is None else entry.bits
            held = choice(E.le(k, 0), entry.elem, step.value)
            return replace(entry, elem=held, kind=step.kind, bits=bits, folded=_folded(x, entry, k))
        case Num() if entry.elem is None:
            return entry
        case Num():
            return _unknown_like(x, entry)
        case Seq() | Pointer() | BlockPointer() if isinstance(step, tuple):
            items = zip(parts(entry) or (), step, strict=True)
            return rebuilt(entry, tuple(_advance(x, e, s, k) for e, s in items))
        case Choice() if isinstance(step, tuple):
            first, second = _advance(x, entry.first, step[0], k), _advance(x, entry.second, step[1], k)
            return Choice(entry.cond, first, second)
        case Const(value=float()):
            return Num((), None, "data")
        case _:
            return Poison("a value that a loop changes")


def _leave(
    x: Executor,
    entry: dict[str, Any],
    steps: dict[str, Any],
    trips: Expr | None,
    names: Sequence[str],
    frame: Frame,
    *,
    broken: bool,
) -> None:
    """The names after a loop: closed forms at its last iteration, unknowns for the rest.

    A `break` may leave in the middle of the body, where a variable may hold something that it never holds
    at the end of an iteration: then nothing is known of what the loop assigns.
    """
    if broken:
        for name in names:
            if name in frame.names or name in entry:
                frame.names[name] = _lose(x, frame.names.get(name, entry.get(name)))
        return
    last = _last_iteration(x) if trips is None else trips
    for name in names:
        if name in entry:
            frame.names[name] = _after(x, entry[name], steps[name], last, frame.names.get(name))
        elif name in frame.names:
            frame.names[name] = _forget(x, frame.names[name])


def _lose(x: Executor, value: Any) -> Any:
    match value:
        case Num():
            return _unknown_like(x, value)
        case Seq() | Pointer() | BlockPointer():
            return rebuilt(value, tuple(_lose(x, item) for item in parts(value) or ()))
        case _:
            return Poison("a value that a loop with `break` assigns")


def _last_iteration(x: Executor) -> Expr:
    last = E.sym(Symbol("iterations", Kind.LOOP, x.number()))
    x.guard = E.all_of(x.guard, E.le(0, last))
    return last


def _after(x: Executor, entry: Any, step: Any, last: Expr, ended: Any) -> Any:
    value = _advance(x, entry, step, last)
    if (isinstance(value, Poison) or isinstance(entry, Const)) and ended is not None:
        return _forget(x, ended)
    if isinstance(entry, Num) and isinstance(ended, Num) and step in (_UNKNOWN, _RESHAPED):
        # The loop may run zero times: either what went in or what came out, both unknown here. Triton refuses
        # loops that change the type of a variable, and so its shape, whatever sizes the text leaves open.
        keeps = x.dialect.has_pointers and len(ended.shape) == len(entry.shape)
        return _forget(x, ended if not keeps and len(ended.shape) >= len(entry.shape) else entry)
    return value


def _forget(x: Executor, value: Any) -> Any:
    """A value of an iteration, seen after the loop: of the same shape, otherwise unknown."""
    match value:
        case Num():
            return _unknown_like(x, value)
        case Seq() | Pointer() | BlockPointer():
            return rebuilt(value, tuple(_forget(x, item) for item in parts(value) or ()))
        case Choice():
            return Choice(value.cond, _forget(x, value.first), _forget(x, value.second))
        case Array() if value.views or value.member is not None:
            return Poison("an array view made inside a loop")
        case Const() | Named() | Token() | Function() | Array():
            return value
        case _:
            return Poison("a value made inside a loop")


# ---- with --------------------------------------------------------------------------------------------------


def _with(x: Executor, node: cst.With, frame: Frame) -> None:
    if node.asynchronous is not None:
        raise _unsupported("async with", node, frame)
    _with_items(x, list(node.items), node, frame)


def _with_items(x: Executor, items: list[cst.WithItem], node: cst.With, frame: Frame) -> None:
    if not items:
        run_block(x, node.body.body, frame)
        return
    item, rest = items[0], items[1:]
    if not isinstance(item.item, cst.Call):
        raise _unsupported("context manager", item, frame)
    function = evaluate(x, item.item.func, frame)
    name = function.name if isinstance(function, Named | Function) else ""
    if name.split(".")[-1] == "unsafe":
        before = x.unsafe
        x.unsafe = _unsafe_block(x, item.item, frame) if x.project.trusts_unsafe else before
        try:
            _with_items(x, rest, node, frame)
        finally:
            x.unsafe = before
        return
    if not isinstance(function, Function) or isinstance(function.node, cst.Lambda):
        raise _unsupported("context manager", item, frame)
    _user_manager(x, function, item, rest, node, frame)


def _unsafe_block(x: Executor, node: cst.Call, frame: Frame) -> int:
    reason = None
    if node.args:
        value = evaluate(x, node.args[0].value, frame)
        if isinstance(value, Const) and isinstance(value.value, str):
            reason = value.value.strip() or None
        elif isinstance(value, Token):
            reason = "(computed text)"
    return x.unsafe_index(UnsafeBlock(reason, frame.table.site(node)))


def _user_manager(
    x: Executor, function: Function, item: cst.WithItem, rest: list[cst.WithItem], node: cst.With, frame: Frame
) -> None:
    """A generator with one plain `yield`: what stands before it, the body, what stands after it."""
    definition = function.node
    assert isinstance(definition, cst.FunctionDef)
    position, yielded = _find_yield(definition)
    if position is None or not isinstance(item.item, cst.Call):
        raise _unsupported("context manager", item, frame)
    arguments = [evaluate(x, a.value, frame) for a in item.item.args if a.keyword is None]
    keywords = [(a.keyword.value, evaluate(x, a.value, frame)) for a in item.item.args if a.keyword]
    inner = bind_parameters(x, function, Arguments(tuple(arguments), tuple(keywords), item, frame.table))
    statements = definition.body.body
    run_block(x, statements[:position], inner)
    value = Const(None) if yielded is None else evaluate(x, yielded, inner)
    if item.asname is not None:
        assign(x, item.asname.name, value, frame)
    _with_items(x, rest, node, frame)
    run_block(x, statements[position + 1 :], inner)


def _find_yield(definition: cst.FunctionDef) -> tuple[int | None, cst.BaseExpression | None]:
    for i, statement in enumerate(definition.body.body):
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
            small = statement.body[0]
            if isinstance(small, cst.Expr) and isinstance(small.value, cst.Yield):
                value = small.value.value
                return i, value if isinstance(value, cst.BaseExpression) else None
    return None, None


# ---- calls of the user's functions -------------------------------------------------------------------------


def _has_options(node: cst.FunctionDef | cst.Lambda) -> bool:
    """Whether a decorator of a helper has arguments: one says that it is not inlined."""
    return isinstance(node, cst.FunctionDef) and any(isinstance(d.decorator, cst.Call) for d in node.decorators)


def call_function(x: Executor, function: Function, args: Arguments) -> Any:
    """Inline a helper: its statements run in a frame of their own, under the caller's guard."""
    if x.depth >= MAX_DEPTH:
        raise UnsupportedConstruct(f"recursion in `{function.name}`")
    frame = x.bind(function, args) or bind_parameters(x, function, args)
    x.uneven |= _has_options(function.node)
    x.files[function.table.file] = None
    x.depth += 1
    before, loops, settled = x.guard, x.loops, len(x.settled)
    after = before
    x.loops = []
    try:
        if isinstance(function.node, cst.Lambda):
            return evaluate(x, function.node.body, frame)
        if function.node.asynchronous is not None:
            raise UnsupportedConstruct("async function")
        x.undecorated(function)
        run_block(x, function.node.body.body, frame)
        if frame.left_loop:
            del x.settled[settled:]
        after = x.settled_since(settled, x.guard_after(before, frame))
        return _returned(x, frame, before)
    finally:
        x.depth -= 1
        x.guard, x.loops = after, loops


def _returned(x: Executor, frame: Frame, before: Expr) -> Any:
    """Merge what the paths of a function return; falling off the end returns None.

    The result is used where `before` holds, so the conditions need not repeat it.
    """
    given = frozenset(E.conjuncts(before))
    paths = list(frame.returns)
    if x.guard is not E.FALSE:
        paths.append((x.guard, Const(None)))
    if not paths:
        return Const(None)
    result = paths[-1][1]
    for guard, value in reversed(paths[:-1]):
        own = E.all_of(*(c for c in E.conjuncts(guard) if c not in given))
        # Triton returns one number from several places as a machine number.
        same = value == result
        result = x.merge(own, value, result)
        result = result if same else x.dialect.assigned(result)
    return result


def defined(x: Executor, node: cst.FunctionDef, frame: Frame) -> Function:
    """A nested function; its defaults are evaluated where it is defined."""
    params = node.params
    named = (*params.posonly_params, *params.params, *params.kwonly_params)
    defaults = tuple((p.name.value, evaluate(x, p.default, frame)) for p in named if p.default is not None)
    return Function(node, frame.table, frame, defaults)


def bind_parameters(x: Executor, function: Function, args: Arguments) -> Frame:
    """A new frame with the parameters bound as Python binds them."""
    params = function.node.params
    if not isinstance(params.star_arg, cst.MaybeSentinel | cst.ParamStar) or params.star_kwarg is not None:
        raise UnsupportedConstruct(f"`*` parameters of `{function.name}`")
    frame = Frame({}, function.closure, function.table, function.name, [], x.depth + 1)
    positional = [*params.posonly_params, *params.params]
    if len(args.positional) > len(positional):
        raise UnsupportedConstruct(f"call of `{function.name}` with too many arguments")
    for param, value in zip(positional, args.positional, strict=False):
        frame.names[param.name.value] = value
    known = {p.name.value for p in (*positional, *params.kwonly_params)}
    for name, value in args.keywords:
        if name not in known or name in frame.names:
            raise UnsupportedConstruct(f"call of `{function.name}` with argument `{name}`")
        frame.names[name] = value
    for param in (*positional, *params.kwonly_params):
        if param.name.value in frame.names:
            continue
        if param.default is None:
            raise UnsupportedConstruct(f"call of `{function.name}` without `{param.name.value}`")
        if function.closure is not None and param.name.value in dict(function.defaults):
            frame.names[param.name.value] = dict(function.defaults)[param.name.value]
            continue
        outer = function.closure or Frame({}, None, function.table, MODULE, [], 0)
        frame.names[param.name.value] = evaluate(x, param.default, outer)
    return frame


__all__ = ["assign", "bind_parameters", "branch", "call", "call_function", "run_block"]
