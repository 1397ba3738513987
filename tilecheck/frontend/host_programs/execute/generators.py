"""Generator functions, which run where something goes over what they yield, and context managers of them."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_programs.execute import names
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.knowledge import BreakLoop, ContinueLoop, Leaves
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.graph_captures import keep

Body = Callable[[V.Value], None]


class _Stopped(Leaves):
    """The code that goes over a generator leaves it."""

    def __init__(self, by: Leaves) -> None:
        super().__init__("stopped")
        self.by = by


def run(m: Machine, function: V.Function, given: Arguments, at_yield: Body) -> None:
    """Run a generator function; at each `yield` something runs in the scope that is open now."""
    scope, depth = m.scope, len(m.calls)

    def outside(value: V.Value) -> None:
        own, calls = m.inside_yield.pop(), m.calls[depth:]
        del m.calls[depth:]
        m.scopes.append(scope)
        try:
            at_yield(value)
        finally:
            m.scopes.pop()
            m.calls += calls
            m.inside_yield.append(own)

    m.inside_yield.append((function.node, outside))
    m.consumers.append(scope)
    try:
        m.run_function(m, function, given)
    finally:
        m.inside_yield.pop()
        m.consumers.pop()


def manage(m: Machine, function: V.Function, given: Arguments, body: Body) -> None:
    """Run a body inside a context manager: its function goes on behind `yield` however the body is left."""
    left: list[Leaves] = []

    def at_yield(value: V.Value) -> None:
        try:
            body(value)
        except Leaves as error:
            left.append(error)

    run(m, function, given, at_yield)
    if left:
        raise left[0]


def go_over(m: Machine, generator: V.Generator, body: Body) -> bool:
    """A loop over what a generator yields; whether it ended without `break`."""
    stopped: list[_Stopped] = []

    def at_yield(value: V.Value) -> None:
        try:
            body(value)
        except ContinueLoop:
            pass
        except Leaves as error:  # the generator is closed: it runs its `finally` alone
            stopped.append(_Stopped(error))
            raise stopped[0] from None

    try:
        run(m, generator.function, generator.given, at_yield)
    except _Stopped as error:
        if error not in stopped:
            raise
        if not isinstance(error.by, BreakLoop):
            raise error.by from None
        return False
    return True


def in_loop(
    m: Machine, value: V.Value, node: cst.CSTNode
) -> tuple[V.Generator, Callable[[V.Value], V.Value]] | None:
    """The generator that a `for` loop goes over, and what the loop makes of what it yields; None for others."""
    match value:
        case V.Generator():
            return value, lambda item: item
        case V.Rounds(kind="enumerate", parts=[V.Generator() as generator, *_]):
            return generator, lambda item: V.Sequence([_number(m), item], is_tuple=True)
        case V.Object():
            found = names.member_with_class(m, value.made_by, "__iter__")
            if found is not None and isinstance(found[1], cst.FunctionDef):
                made = m.call_function(m, V.Function(found[1], found[0].table, None, value), Arguments(node))
                return None if isinstance(made, V.Object) else in_loop(m, made, node)
    return None


def _number(m: Machine) -> V.Unknown:
    return V.Unknown(m.unique("the number of a round"), given=False, plain=True)


def collected(m: Machine, generator: V.Generator, node: cst.CSTNode) -> list[V.Value]:
    """All that a generator yields."""
    found: list[V.Value] = []
    holder = V.Sequence(found)
    m.pending.append(holder)
    try:
        go_over(m, generator, lambda item: found.append(keep(m, node, item, f"item {len(found)}", inside=True)))
    finally:
        m.pending.remove(holder)
    return found
