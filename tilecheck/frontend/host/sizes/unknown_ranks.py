"""Shapes of tensors whose rank the text does not give: their axes, slices, products and comparisons.

Such a shape is a sequence of parts, each an extent or some consecutive axes of a free tensor. A tensor with a
shape of this form gets a name for it (`named`), as a free tensor has; `meant` writes what is said of that name
over the free tensors that the parts belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.memory.mutations import read_sequence
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.values import Axes, Dims, HostShape, Tensor, Unknown
from tilecheck.frontend.values.values import Choice, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Symbol
from tilecheck.ir.host import (
    EXTENT,
    NUMEL,
    OPAQUE,
    RANK,
    axis_of,
    exact_quotient,
    host_extent,
    host_numel,
    host_part,
    host_rank,
    owner,
    owners,
    quotient,
)

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

Parts = tuple[Expr | Axes, ...]


def parts_of(x: HostExecutor, value: Any) -> Parts | None:
    """The parts of a shape; None for a value that is no shape."""
    match value:
        case HostShape(strides=False):
            return x.shapes.get(value.of, (Axes(value.of),))
        case Dims():
            return value.parts
        case Seq():
            return tuple(x.scalar(item, "size") for item in value.items)
        case Unknown() if value.name in x.sequence_names:
            return (Axes(read_sequence(x, value).name),)
        case Choice():
            return _of_either(x, value)
        case _:
            return None


def _of_either(x: HostExecutor, choice: Choice) -> Parts | None:
    """One shape or another: axis by axis where both are known, else as many axes and elements."""
    first, second = parts_of(x, choice.first), parts_of(x, choice.second)
    if first is None or second is None or first == second:
        return None if second is None else first
    pairs = tuple(zip(first, second, strict=False))
    plain = all(isinstance(a, Expr) and isinstance(b, Expr) for a, b in pairs)
    if plain and len(first) == len(second):
        return tuple(E.ite(choice.cond, a, b) for a, b in pairs if isinstance(a, Expr) and isinstance(b, Expr))
    count, axes = (E.ite(choice.cond, f(first), f(second)) for f in (product, rank))
    return (Axes(of_count(x, "shape", count, axes)),)


def sequence(x: HostExecutor, value: Any) -> Parts | None:
    """The parts of what is used as a sequence of sizes: an argument that is used so is one."""
    if isinstance(value, Unknown | Tensor):
        x.sequences_seen.add(value.name if isinstance(value, Unknown) else value.storage)
    return parts_of(x, value)


def shape_of_parts(parts: Parts, *, is_list: bool = False) -> Any:
    """A shape as the value that is handled most easily."""
    if all(isinstance(part, Expr) for part in parts):
        return Seq(tuple(Num((), part, "int", None) for part in parts if isinstance(part, Expr)), is_list)
    only = parts[0]
    if len(parts) == 1 and isinstance(only, Axes) and only.is_whole and not is_list:
        return HostShape(only.of)
    return Dims(parts, is_list)


def as_list(x: HostExecutor, value: Any) -> Any:
    """`list(x.shape)`: an object of its own, which may be changed."""
    parts = parts_of(x, value)
    if parts is None:
        raise UnsupportedConstruct("list of this value")
    return shape_of_parts(parts, is_list=True)


def named(x: HostExecutor, parts: Parts) -> str:
    """A name for a shape: the same for equal parts."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, Axes) and only.is_whole:
        return only.of
    for name, known in x.shapes.items():
        if known == parts:
            return name
    name = x.unread("shape").name
    x.shapes[name] = parts
    return name


def of_ranks(parts: Parts, ranks: Mapping[str, int]) -> tuple[Expr, ...] | None:
    """The extents of a shape, where the ranks of all tensors in it are known."""
    found: list[Expr] = []
    for part in parts:
        if isinstance(part, Expr):
            found.append(part)
        elif part.of in ranks:
            axes = range(ranks[part.of])[part.start : part.stop]
            found += [E.sym(host_extent(part.of, k)) for k in axes]
        else:
            return None
    return tuple(found) or None


# ---- what is asked of a shape ------------------------------------------------------------------------------


def product(parts: Parts) -> Expr:
    """The number of elements of a tensor of that shape."""
    sizes = (p if isinstance(p, Expr) else E.sym(host_part(p.of, p.start, p.stop)) for p in parts)
    return E.mul(E.ONE, *sizes)


def rank(parts: Parts) -> Expr:
    """The number of axes."""
    found: Expr = E.ZERO
    for part in parts:
        if isinstance(part, Expr):
            found = E.add(found, 1)
            continue
        of = E.sym(host_rank(part.of))
        if part.is_edge:
            found = E.add(found, E.minimum(of, -part.start if part.stop is None else part.stop))
        elif part.is_whole:
            found = E.add(found, of)
        else:
            found = E.add(found, E.maximum(0, E.sub(of, part.start - (part.stop or 0))))
    return found


def item(parts: Parts, axis: int) -> Expr | None:
    """The extent along an axis. Python raises where there is none: the outermost part has it then."""
    order, away = (parts, axis) if axis >= 0 else (parts[::-1], -axis - 1)
    for k, part in enumerate(order):
        if isinstance(part, Expr):
            if k == away:
                return part
            continue
        at = part.start + away - k if axis >= 0 else (part.stop or 0) - (away - k) - 1
        size = E.sym(host_extent(part.of, at))
        if k == len(order) - 1 and not part.is_edge:
            return size
        if k != away or not part.is_whole:
            return None
        # Where there are no axes, the next part begins here.
        rest = item(order[k + 1 :] if axis >= 0 else order[k + 1 :][::-1], 0 if axis >= 0 else -1)
        return None if rest is None else E.ite(E.le(1, rank((part,))), size, rest)
    return None


def sliced(parts: Parts, start: int | None, stop: int | None) -> Parts | None:
    """`shape[start:stop]`; None where how many axes that takes hangs on the rank."""
    start = start or 0
    if start < 0 and stop is None:
        return _tail(parts, -start)
    if start >= 0 and (stop is None or stop < 0):
        after = _without(parts, start, last=False)
        return None if after is None else _without(after, -(stop or 0), last=True)
    if start == 0 and stop is not None:
        return _head(parts, stop)
    return None


def _without(parts: Parts, count: int, *, last: bool) -> Parts | None:
    """A shape without its first (last) axes, as many as there are of these."""
    left = parts[::-1] if last else parts
    while count and left:
        part = left[0]
        if isinstance(part, Axes):
            if len(left) > 1 or part.is_edge:
                return None
            cut = (part.start, (part.stop or 0) - count) if last else (part.start + count, part.stop)
            return (Axes(part.of, *cut),)
        left, count = left[1:], count - 1
    return left[::-1] if last else left


def _tail(parts: Parts, count: int) -> Parts | None:
    """The last axes of a shape."""
    after = parts[-count:]
    if len(after) == count and all(isinstance(p, Expr) for p in after):
        return after
    only = parts[0] if len(parts) == 1 else None
    return (Axes(only.of, -count, None),) if isinstance(only, Axes) and only.is_whole else None


def _head(parts: Parts, count: int) -> Parts | None:
    before = parts[:count]
    if len(before) == count and all(isinstance(p, Expr) for p in before):
        return before
    only = parts[0] if len(parts) == 1 else None
    return (Axes(only.of, 0, count),) if isinstance(only, Axes) and only.is_whole else None


def item_somewhere(x: HostExecutor, parts: Parts, axis: Expr) -> Expr | None:
    """The extent along an axis, perhaps a computed one."""
    axis = _plainer(x, parts, axis)
    if E.sub(axis, rank(parts)).value == -1:  # `shape[n - 1]`: where there are no axes, both raise
        return item(parts, -1)
    if axis.value is not None:
        return item(parts, axis.value)
    ways = divided(x, parts, axis)
    return None if ways is None else item(ways[1], 0)


def between(x: HostExecutor, parts: Parts, start: Expr, stop: Expr | None) -> Parts | None:
    """`shape[start:stop]` with computed ends."""
    ways = (parts, ()) if stop is None else divided(x, parts, stop)
    found = None if ways is None else divided(x, ways[0], start)
    return None if found is None else found[1]


def divided(x: HostExecutor, parts: Parts, at: Expr) -> tuple[Parts, Parts] | None:
    """The axes `shape[:at]` and `shape[at:]`, as Python slices them; None where that is not followed."""
    at = _plainer(x, parts, at)
    if at.value is not None:
        return _pair(sliced(parts, 0, at.value), sliced(parts, at.value, None))
    before: Expr = E.ZERO
    for k in range(len(parts) + 1):
        more = E.sub(at, before).value
        # A position that counts from the start does so in each part of a shape that begins there too.
        if more is not None and more >= 0 and is_nonnegative(x, before):
            ways = _pair(sliced(parts[k:], 0, more), sliced(parts[k:], more, None))
            return None if ways is None else ((*parts[:k], *ways[0]), ways[1])
        if k < len(parts):
            part = parts[k]
            ends = (at for (_, at), (first, _) in x.cuts.items() if part == Axes(first))
            before = E.add(before, next(ends, rank((part,))))
    for (_, other), (first, last) in x.cuts.items():
        # In a shape with as many axes, `shape` with some of them set, a position is where it was.
        if parts[:1] == (Axes(first),) and E.sub(at, other).value == 0 and _follow(parts[1:], last):
            return parts[:1], parts[1:]
    less = E.sub(at, rank(parts)).value
    if less is not None and -_SURELY_CLAMPED <= less < 0:
        return _pair(sliced(parts, 0, less), sliced(parts, less, None))
    only = parts[0] if len(parts) == 1 else None
    if not isinstance(only, Axes) or not only.is_whole:
        return None
    for (of, other), names in x.cuts.items():
        more = E.sub(at, other).value
        if of == only.of and more == 0:
            return (Axes(names[0]),), (Axes(names[1]),)
        if of == only.of and more is not None and _counts_on(x, parts, other, more):
            ways = _pair(sliced((Axes(names[1]),), 0, more), sliced((Axes(names[1]),), more, None))
            return None if ways is None else ((Axes(names[0]), *ways[0]), ways[1])
    return _cut(x, only.of, at)


def _plainer(x: HostExecutor, parts: Parts, at: Expr) -> Expr:
    """A position as a number, or as one from the end, where the path to here says that it is equal to that."""
    if at.value is not None:
        return at
    equal = [E.sub(*c.args) for c in E.conjuncts(x.guard) if c.op == "eq"]
    axes = rank(parts)
    for position in (p for e in equal for p in (E.sub(at, e), E.add(at, e))):
        if position.value is not None or E.sub(position, axes).value is not None:
            return position
    return at


def modulo_rank(axis: Expr, ranks: frozenset[Expr]) -> Expr:
    """An axis but for multiples of the number of axes: what is equal then is one axis, wherever torch takes it
    for one, from whichever end it counts (`dim`, `dim % x.ndim`, `dim + x.ndim if dim < 0 else dim`)."""
    if axis.op == "ite":
        a, b = (modulo_rank(branch, ranks) for branch in axis.args[1:])
        return a if a is b else E.ite(axis.args[0], a, b)
    if axis.op == "mod" and axis.args[1] in ranks:
        return modulo_rank(axis.args[0], ranks)
    terms = axis.args if axis.op == "add" else (axis,)
    return E.add(*(term for term in terms if term not in ranks))


def is_read(position: Expr) -> bool:
    """Whether all of a position is read: what is said of one that is not would say it of the shape as well."""
    return all(s.origin != OPAQUE for s in E.symbols(position))


def is_nonnegative(x: HostExecutor, position: Expr) -> bool:
    """Whether a position counts from the start: clearly, or because the path to here says so."""
    return T.nonnegative(position) or E.le(0, position) in E.conjuncts(x.guard)


def _counts_on(x: HostExecutor, parts: Parts, before: Expr, more: int) -> bool:
    """Whether `before + more` lies so many axes after `before`, whichever end they count from."""
    return more > 0 and (is_nonnegative(x, before) or (more == 1 and _has_next(x, parts, before) is E.TRUE))


def _has_next(x: HostExecutor, parts: Parts, before: Expr) -> Expr:
    """What the path to here does not say of: the axis after `before` is `before + 1`. After the last one, -1,
    that is 0, the first of all."""
    said = E.conjuncts(x.guard)
    return E.all_of(*(c for c in (E.le(E.neg(rank(parts)), before), E.ne(before, -1)) if c not in said))


def wraps(x: HostExecutor, parts: Parts, at: Expr) -> Expr | None:
    """For a position that is one after another where a shape is divided, and that may count from the end: when
    it does not begin anew. Where it does, a slice cuts at the very start. None for any other position."""
    only = parts[0] if len(parts) == 1 else None
    if at.value is not None or not isinstance(only, Axes) or not only.is_whole:
        return None
    for of, other in x.cuts:
        if of == only.of and E.sub(at, other).value == 1 and not is_nonnegative(x, other):
            return _has_next(x, parts, other)
    return None


def _follow(parts: Parts, last: str) -> bool:
    """Whether there are as many parts as axes of `last`: some in place of its first ones, and its rest."""
    changed = sum(1 for part in parts if isinstance(part, Expr))
    return parts[changed:] == (Axes(last, changed, None),)


# `shape[: n - k]` is `shape[:-k]` for a shape of `n` axes, where that many are left or both take none.
_SURELY_CLAMPED = 2


def _pair(first: Parts | None, last: Parts | None) -> tuple[Parts, Parts] | None:
    return None if first is None or last is None else (first, last)


def _cut(x: HostExecutor, of: str, at: Expr) -> tuple[Parts, Parts]:
    """The axes of a free tensor before and from a computed position on: two shapes, free themselves."""
    words = x.short(at).replace("(", "[").replace(")", "]")
    first, last = f"{of}.shape[:{words}]", f"{of}.shape[{words}:]"
    if not all(x.is_given(name) for name in owners(at)):
        x.doubted |= {first, last}  # unread code may choose some positions only
    parted(x, (of, at), first, last)
    if not is_read(at):
        return (Axes(first),), (Axes(last),)
    none, rest, axes = E.sym(host_numel(first)), E.sym(host_part(last, 1, None)), E.sym(host_rank(of))
    x.define(none, E.all_of(x.definitions[none], E.any_of(E.ne(at, 0), E.eq(none, 1))))  # of no axes
    x.define(rest, E.all_of(*(E.any_of(E.ne(at, end), E.eq(rest, 1)) for end in (E.sub(axes, 1), E.const(-1)))))
    return (Axes(first),), (Axes(last),)


def parted(x: HostExecutor, key: tuple[str, Expr], first: str, last: str) -> None:
    """Note that each axis of a free tensor is one of one shape or of another."""
    x.cuts[key] = first, last
    counts = E.sym(host_numel(first)), E.sym(host_numel(last))
    whole = E.eq(E.sym(host_numel(key[0])), E.mul(*counts))
    for count in counts:
        x.define(count, whole)


def replaced(parts: Parts, axis: int, value: Expr) -> Parts | None:
    """`shape[axis] = value`. Python raises where there is no such axis."""
    order, away = (parts, axis) if axis >= 0 else (parts[::-1], -axis - 1)
    for k, part in enumerate(order):
        if k == away and isinstance(part, Expr):
            found = (*order[:k], value, *order[k + 1 :])
            return found if axis >= 0 else found[::-1]
        if isinstance(part, Axes):
            if k < len(order) - 1 or part.is_edge:
                return None
            more = range(away - k)
            if axis >= 0:
                own = [E.sym(host_extent(part.of, part.start + j)) for j in more]
                return (*order[:k], *own, value, Axes(part.of, part.start + away - k + 1, part.stop))
            end = part.stop or 0
            own = [E.sym(host_extent(part.of, end - j - 1)) for j in reversed(more)]
            return (Axes(part.of, part.start, end - (away - k) - 1), value, *own, *parts[len(parts) - k :])
    return None


def replaced_somewhere(x: HostExecutor, parts: Parts, axis: Expr, value: Expr) -> Parts | None:
    """`shape[axis] = value` for a computed axis. Python raises where there is no such axis."""
    ways = divided(x, parts, axis)
    after = None if ways is None else replaced(ways[1], 0, value)
    return None if ways is None or after is None else (*ways[0], *after)


def repeated(x: HostExecutor, items: Seq, times: Expr) -> Any:
    """`[1] * x.ndim`."""
    if len(items.items) != 1 or x.scalar(items.items[0], "size") is not E.ONE:
        raise UnsupportedConstruct("sequence repeated a symbolic number of times")
    return shape_of_parts((Axes(of_count(x, "shape", E.ONE, times)),), is_list=items.is_list)


def of_count(x: HostExecutor, text: str, count: Expr, axes: Expr) -> str:
    """The name of a shape of which the number of elements and of axes are known."""
    name = x.unread(text).name
    x.counts[name] = count
    x.define(E.sym(host_rank(name)), E.eq(E.sym(host_rank(name)), axes))
    return name


def unpacked(x: HostExecutor, parts: Parts, count: int) -> tuple[Expr, ...] | None:
    """The extents of a shape that is assigned to so many targets: Python raises unless there are as many."""
    hole = _hole(parts)
    if hole is None:
        return None
    missing = count - len(parts) + 1
    if missing < 0:
        x.assume(E.FALSE)
        return None
    found = of_rank(parts, count)
    if found is not None:
        most = -hole.start if hole.stop is None else hole.stop
        x.assume(E.le(most, E.sym(host_rank(hole.of))) if hole.is_edge else _has_axes(hole, missing))
    return found


def _hole(parts: Parts) -> Axes | None:
    """The only part that is no single extent."""
    holes = [part for part in parts if isinstance(part, Axes)]
    return holes[0] if len(holes) == 1 else None


def of_rank(parts: Parts, rank: int) -> tuple[Expr, ...] | None:
    """The extents of a shape that has so many axes; None where that is not followed, or cannot be."""
    hole, missing = _hole(parts), rank - len(parts) + 1
    if hole is None or missing < 0:
        return None
    if hole.is_edge and missing != (-hole.start if hole.stop is None else hole.stop):
        return None
    at = parts.index(hole)
    own = [E.sym(host_extent(hole.of, hole.start + j)) for j in range(missing)]
    return tuple(part for part in (*parts[:at], *own, *parts[at + 1 :]) if isinstance(part, Expr))


def _has_axes(part: Axes, count: int) -> Expr:
    """Whether a part that leaves out some axes at the ends has so many."""
    rank, cut = E.sym(host_rank(part.of)), part.start - (part.stop or 0)
    return E.eq(rank, count + cut) if count else E.le(rank, cut)


def equals_items(parts: Parts, items: Sequence[Expr]) -> Expr | None:
    """Whether a shape has these extents; None where that is not followed."""
    holes = [k for k, part in enumerate(parts) if isinstance(part, Axes)]
    hole = parts[holes[0]] if len(holes) == 1 else None
    if not isinstance(hole, Axes) or hole.is_edge:
        return None
    at, missing = holes[0], len(items) - len(parts) + 1
    if missing < 0:
        return E.FALSE
    own = [E.sym(host_extent(hole.of, hole.start + j)) for j in range(missing)]
    found = [*parts[:at], *own, *parts[at + 1 :]]
    same = (E.eq(a, b) for a, b in zip(found, items, strict=True) if isinstance(a, Expr))
    return E.all_of(_has_axes(hole, missing), *same)


# ---- names of shapes, written out --------------------------------------------------------------------------


def meant(x: HostExecutor, e: Expr, memo: dict[Expr, Expr] | None = None) -> Expr:
    """An expression with what is said of named shapes written over the tensors that these follow."""
    if not x.shapes and not x.counts:
        return e
    return divided_out(e, lambda symbol: _of_named(x, symbol), {} if memo is None else memo)


def divided_out(e: Expr, meaning: Callable[[Symbol], Expr | None], memo: dict[Expr, Expr]) -> Expr:
    """An expression with the meaning of its symbols, and without quotients that this makes exact."""

    def change(node: Expr) -> Expr | None:
        if node.op in ("floordiv", "mod"):
            whole, by = (E.rebuild(part, change, memo) for part in node.args)
            if node.op == "floordiv":
                return quotient(whole, by)
            return E.mod(whole, by) if exact_quotient(whole, by) is None else E.ZERO
        return meaning(node.args[0]) if node.op == "sym" else None

    return E.rebuild(e, change, memo)


def _of_named(x: HostExecutor, symbol: Symbol) -> Expr | None:
    name = owner(symbol) if symbol.origin in (EXTENT, NUMEL, RANK) else None
    if name is None:
        return None
    if name in x.counts and x.counts[name] is E.ONE and symbol.origin in (EXTENT, NUMEL):
        return E.ONE  # a tensor with one element is of size 1 along every axis
    if symbol.origin == NUMEL and name in x.counts and symbol == host_part(name, 0, None):
        return x.counts[name]
    parts = x.shapes.get(name)
    if parts is None:
        return None
    match symbol.origin:
        case "numel":
            return product(parts) if symbol == host_part(name, 0, None) else None
        case "rank":
            return rank(parts)
        case _:
            return item(parts, axis_of(symbol))


def same_parts(a: Sequence[Expr | Axes], b: Sequence[Expr | Axes]) -> Expr | None:
    """Whether two shapes are equal, where their parts stand side by side; None where that is not known."""
    if len(a) != len(b):
        return None
    tests: list[Expr] = []
    for one, other in zip(a, b, strict=True):
        if isinstance(one, Expr) and isinstance(other, Expr):
            tests.append(E.eq(one, other))
        elif one != other:
            return None
    return E.all_of(*tests)
