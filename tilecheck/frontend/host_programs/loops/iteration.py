"""What loops and comprehensions go over, round by round."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_programs.execute.code_texts import names_in, once
from tilecheck.frontend.host_programs.knowledge import Loop
from tilecheck.frontend.host_programs.loops.round_counts import bare, read_with
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values import views
from tilecheck.frontend.host_programs.values.graph_captures import keep
from tilecheck.frontend.host_programs.values.kinds import as_number, key_of, truth
from tilecheck.frontend.host_programs.values.numbers import add
from tilecheck.frontend.host_programs.values.objects import taken
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

MOST_EXACT = 4  # rounds of a loop that are all read
_RINGS = frozenset("Stream Event CUDAGraph graph".split())


@dataclass(frozen=True, slots=True)
class Items:
    """The item of each round; `exact` if the text gives them all, else `count`, if known, is their number.
    `read` is how many there are, where those stand for more."""

    at: Callable[[int], V.Value]
    exact: list[V.Value] | None = None
    count: Expr | None = None
    read: int | None = None


def items_of(m: Machine, value: V.Value, node: cst.CSTNode, name: str) -> Items:
    """What a loop over a value meets; `name` is the variable that gets it."""
    match value:
        case V.Sequence(items=items, count=count) if count is not None:
            return Items(partial(_item, m, list(items)), count=count, read=len(items))
        case V.Sequence(items=items):
            return _exactly(list(items))
        case V.Mapping(items=items):
            return _exactly([key_value(key) for key in items])
        case V.Range():
            return _of_range(m, value)
        case V.Tensor():
            return _of_tensor(m, value)
        case V.Generator() | V.Object():
            raise m.unread(node, "how far this iterator has come is not followed")
        case V.Rounds():
            return _joined(m, value, node, name)
        case V.Unknown(plain=True):
            return Items(
                lambda r: V.Unknown(f"{value.name}[{r}]", value.given, plain=True), count=_length(value)
            )
        case V.Unknown():
            # Whoever made the iterable made its items: memory of the caller, other memory in each round.

            def made(r: int) -> V.Value:
                return taken(m, value, m.fresh(name or f"{value.name}[{r}]", given=True))

            return Items(made, count=_length(value))
        case _:
            return Items(lambda r: m.fresh(name or "item", given=True))


def _item(m: Machine, items: list[V.Value], r: int) -> V.Value:
    """An item of a list that stands for longer ones."""
    for part in V.contents(items[r]):
        if isinstance(part, V.Tensor):
            m.loops[-1].items.setdefault(part.memory, r)
        elif isinstance(part, V.Stream | V.Event | V.Graph):
            m.loops[-1].items.setdefault(part.name, r)
    return items[r]


def _length(value: V.Unknown) -> Expr:
    return E.sym(Symbol(f"len({value.name})", Kind.HOST))


def _exactly(items: list[V.Value]) -> Items:
    return Items(items.__getitem__, items, E.const(len(items)))


def key_value(key: object) -> V.Value:
    """The value of a key of a dictionary."""
    match key:
        case E.Expr():
            return V.Number(key)
        case ("unknown", str(name)):
            return V.Unknown(name)
        case tuple():
            return V.Sequence([key_value(part) for part in key], is_tuple=True)
        case _:
            return V.Const(key)


def _of_range(m: Machine, value: V.Range) -> Items:
    start, stop, step = value.start, value.stop, value.step
    count: Expr | None = None
    size = m.settle(step.expr).value
    if size is None or size > 0:
        count = E.maximum(0, bare(m, E.cdiv(E.sub(stop.expr, start.expr), step.expr)))
    elif size < 0:
        count = E.maximum(0, bare(m, E.cdiv(E.sub(start.expr, stop.expr), E.neg(step.expr))))
    if count is not None and count.op == "max":
        open_ = [part for part in count.args if part.value != 0]
        count = open_[0] if len(open_) == 1 else count  # a path with rounds has a positive number of them

    def at(r: int) -> V.Number:
        return add(start, V.Number(E.mul(r, step.expr), _growth(m, step.expr)))

    exact = None if count is None else count.value
    if exact is not None and exact <= MOST_EXACT:
        return _exactly([V.Number(E.add(start.expr, E.mul(r, step.expr)), start.slopes) for r in range(exact)])
    return Items(at, count=count)


def _growth(m: Machine, step: Expr) -> V.Slopes:
    return ((m.loops[-1].name, step),) if m.loops else ()


def _of_tensor(m: Machine, tensor: V.Tensor) -> Items:
    length = views.shape(m, tensor, 0)

    def at(r: int) -> V.Value:
        return views.subscript(m, tensor, [V.Number(E.const(r), _growth(m, E.ONE))]) or tensor.mixed(holes=True)

    return Items(at, count=None if length is None else length.expr)


def _joined(m: Machine, value: V.Rounds, node: cst.CSTNode, name: str) -> Items:
    """`enumerate(...)` and `zip(...)`."""
    if value.kind == "enumerate":
        start = as_number(m, value.parts[1]) or V.number(0)
        whole = items_of(m, value.parts[0], node, name)

        def at(r: int) -> V.Value:
            counter = add(start, V.Number(E.const(r), _growth(m, E.ONE)))
            return V.Sequence([counter, whole.at(r)], is_tuple=True)

        if whole.exact is not None:
            plain = [V.Number(E.add(start.expr, r)) for r in range(len(whole.exact))]
            pairs = zip(plain, whole.exact, strict=True)
            return _exactly([V.Sequence(list(pair), is_tuple=True) for pair in pairs])
        return Items(at, count=whole.count, read=whole.read)
    parts = [items_of(m, part, node, "") for part in value.parts]
    lengths = [len(part.exact) for part in parts if part.exact is not None]
    if lengths:  # what is longer is cut
        rows = [[part.at(r) for part in parts] for r in range(min(lengths))]
        return _exactly([V.Sequence(row, is_tuple=True) for row in rows])
    shortest = min((part for part in parts if part.read is not None), key=_read, default=parts[0])
    row = lambda r: V.Sequence([part.at(r) for part in parts], is_tuple=True)  # noqa: E731
    return Items(row, count=shortest.count, read=shortest.read)


def _read(part: Items) -> int:
    return part.read or 0


# ---- comprehensions ----------------------------------------------------------------------------------------


def comprehension(m: Machine, node: cst.ListComp | cst.GeneratorExp | cst.SetComp | cst.DictComp) -> V.Value:
    """A container of what an expression gives in each round.

    Of one whose length is not known, lists of 1, 2 and 3 items are read if it makes streams, events or graphs:
    with 3, an item has a neighbour on either side and one that is neither, and two rounds of a loop over a
    longer ring are as far apart as some two of these. Other containers are read with 2 items.
    """
    inner = V.Scope(m.scope.table, {}, m.scope, m.scope.function)
    keys: list[object] = []
    found: list[V.Value] = []
    m.scopes.append(inner)
    m.pending.append(V.Sequence(found))
    try:
        number = _rounds(m, node, node.for_in, keys, found)
    finally:
        m.scopes.pop()
        m.pending.pop()
    if isinstance(node, cst.DictComp):
        return V.Mapping(dict(zip(keys, found, strict=True)))
    return V.Sequence(found, count=number)


def _rounds(
    m: Machine, node: cst.BaseComp, part: cst.CompFor, keys: list[object], found: list[V.Value]
) -> Expr | None:
    """Read the rounds; the number that they stand for, if each gives an item."""
    whole = items_of(m, m.evaluate(m, part.iter), node, _target(part.target))
    count, number = _how_many(m, node, whole)
    loop = Loop(m.site(part), m.unique("comprehension"))
    m.loops.append(loop)
    try:
        for r in range(count):
            loop.round = r
            value = whole.at(r)
            m.bind(m, part.target, _plain_number(value))
            if not all(truth(m, m.evaluate(m, test.test), test.test) for test in part.ifs):
                continue
            if part.inner_for_in is not None:
                _rounds(m, node, part.inner_for_in, keys, found)
            elif isinstance(node, cst.DictComp):
                keys.append(key_of(m.evaluate(m, node.key)))
                found.append(m.evaluate(m, node.value))
            elif isinstance(node, cst.ListComp | cst.GeneratorExp | cst.SetComp):
                value = m.evaluate(m, node.elt)
                found.append(keep(m, node.elt, value, f"item {len(found)}", inside=True))
    finally:
        m.loops.pop()
    return None if part.inner_for_in is not None or part.ifs else number


def _how_many(m: Machine, node: cst.BaseComp, whole: Items) -> tuple[int, Expr | None]:
    """How many items are read, and the number that they stand for, if they do."""
    if whole.exact is not None:
        return len(whole.exact), None
    if whole.read is not None:
        return whole.read, whole.count
    ways: tuple[int, ...] = (1, 2, 3) if once(m, names_in, node) & _RINGS else (2,)
    if whole.count is None:
        return ways[m.choices.pick(len(ways))], None
    rounds, period = m.knowledge.counts.get(whole.count, (0, 1))
    settled = m.settle(whole.count).value
    if whole.count in m.stand_ins and settled is not None:
        return settled, whole.count
    if rounds > ways[-1]:  # a loop of as many rounds must have them
        ways = (*ways[:-1], *range(rounds - period + 1, rounds + 1))
    if settled is not None:
        few = ways[-1] + (settled - ways[-1]) % period
        return (settled, None) if settled <= few else (few, whole.count)
    count = ways[m.choices.pick(len(ways))]
    read_with(m, whole.count, count, more=count > ways[-1] - period)
    return count, whole.count


def _plain_number(value: V.Value) -> V.Value:
    """A counter of a comprehension: all its rounds are read."""
    return V.Number(value.expr) if isinstance(value, V.Number) else value


def _target(target: cst.BaseExpression) -> str:
    return target.value if isinstance(target, cst.Name) else ""
