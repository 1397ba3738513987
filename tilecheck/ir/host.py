"""The free values of a host function, as symbols: extents and strides of its tensors, scalars, devices.

Every symbol has kind HOST; its `origin` says what it is. Tensors are named by their text in the host function,
so `x.shape[0]` is the extent of the argument `x`. A negative axis (`x.shape[-1]`) is used while the rank is not
known; `Ranks` replaces it, and the number of elements, once it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from tilecheck.ir.expr import (
    ONE,
    ZERO,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    bool_sym,
    children,
    conjuncts,
    eq,
    floordiv,
    le,
    mul,
    neg,
    negate,
    rebuild,
    sub,
    sym,
    symbols,
)

EXTENT = "extent"
STRIDE = "stride"
NUMEL = "numel"
RANK = "rank"
SPAN = "span"
ARGUMENT = "argument"  # a scalar that the caller passes
OPAQUE = "opaque"  # a value computed by code that is not read
DEFINED = "defined"  # a value that a fact fixes, as a power of two
TEST = "test"  # whether an argument is None, has some type, ...: a truth that says nothing about sizes
NATURAL = "natural"  # a size or a stride of which no more is known: any number from 0 on
DEVICE = "device"  # a count that the machine decides: any number from 1 on
SAME_SHAPE = "same-shape"
SAME_STRIDES = "same-strides"
CONTIGUOUS = "contiguous"

# Numbers that are never negative: torch has no negative strides.
COUNTS = frozenset({EXTENT, STRIDE, NUMEL, RANK, SPAN, NATURAL})
RAISED = "raised"  # whether an exception ended a block early, which the code around it may let go on
TRUTHS = frozenset({TEST, SAME_SHAPE, SAME_STRIDES, CONTIGUOUS, RAISED})
_OF_TENSOR = (EXTENT, STRIDE, NUMEL, RANK, SPAN)
_MOST_AXES = 8
_PART = re.compile(r"\.shape\[(-?\d*):(-?\d*)\]\.numel\(\)$")


def host_extent(tensor: str, axis: int) -> Symbol:
    return Symbol(f"{tensor}.shape[{axis}]", Kind.HOST, origin=EXTENT)


def host_stride(tensor: str, axis: int) -> Symbol:
    return Symbol(f"{tensor}.stride({axis})", Kind.HOST, origin=STRIDE)


def host_numel(tensor: str) -> Symbol:
    return Symbol(f"{tensor}.numel()", Kind.HOST, origin=NUMEL)


def host_part(tensor: str, start: int, stop: int | None) -> Symbol:
    """The product of the extents that Python's `tensor.shape[start:stop]` gives."""
    if start == 0 and stop is None:
        return host_numel(tensor)
    return host_numel(f"{tensor}.shape[{start or ''}:{'' if stop is None else stop}]")


def part_of_shape(symbol: Symbol) -> tuple[int, int | None]:
    """The slice of a tensor's shape of which a symbol is the product."""
    found = _PART.search(symbol.name)
    if found is None:
        return 0, None
    return int(found[1] or 0), int(found[2]) if found[2] else None


def host_span(tensor: str) -> Symbol:
    """The number of elements from a tensor's first to the last that it reaches, gaps included."""
    return Symbol(f"{tensor}.span()", Kind.HOST, origin=SPAN)


def host_rank(tensor: str) -> Symbol:
    return Symbol(f"{tensor}.ndim", Kind.HOST, origin=RANK)


def host_scalar(name: str, *, opaque: bool = False) -> Symbol:
    return Symbol(name, Kind.HOST, origin=OPAQUE if opaque else ARGUMENT)


def scalars(value: Expr) -> list[Symbol]:
    """The symbols that it is computed with whose type the text does not give: what only decides between numbers
    need be none."""
    found, seen, stack = dict[Symbol, None](), set[Expr](), [value]
    while stack:
        node = stack.pop()
        if node in seen or (node.is_bool and not value.is_bool):
            continue
        seen.add(node)
        if node.op in ("sym", "bsym"):
            found[node.args[0]] = None
        stack.extend(children(node))
    return [s for s in found if s.kind is Kind.HOST and s.origin in (ARGUMENT, OPAQUE)]


def host_test(text: str) -> Expr:
    """Whether an argument has some type or attribute: the same truth for the same text."""
    return bool_sym(Symbol(text, Kind.HOST, origin=TEST))


def is_whole(name: str) -> Expr:
    """Whether a number is an integer, or as large as one."""
    return host_test(f"{name} is whole")


def same_shape(a: str, b: str) -> Expr:
    """Whether two free tensors have one shape; equal names always do."""
    a, b = sorted((a, b))
    return all_of() if a == b else bool_sym(Symbol(f"{a}.shape == {b}.shape", Kind.HOST, origin=SAME_SHAPE))


def same_strides(a: str, b: str) -> Expr:
    """Whether two free tensors have the same strides; equal names always do."""
    a, b = sorted((a, b))
    text = f"{a}.stride() == {b}.stride()"
    return all_of() if a == b else bool_sym(Symbol(text, Kind.HOST, origin=SAME_STRIDES))


def named_same(symbol: Symbol) -> tuple[str, str]:
    """The two tensors whose shapes or strides are the same where a truth holds."""
    a, _, b = symbol.name.partition(" == ")
    ending = ".shape" if symbol.origin == SAME_SHAPE else ".stride()"
    return a.removesuffix(ending), b.removesuffix(ending)


def is_contiguous(tensor: str) -> Expr:
    return bool_sym(Symbol(f"{tensor}.is_contiguous()", Kind.HOST, origin=CONTIGUOUS))


def axis_of(symbol: Symbol) -> int:
    """The axis of an extent or a stride."""
    return int(re.split(r"[\[(]", symbol.name)[-1][:-1])


def owner(symbol: Symbol) -> str | None:
    """The argument (or unread value) that a symbol belongs to; None for what no caller decides."""
    if symbol.origin in _OF_TENSOR:
        name = symbol.name.rpartition(".")[0]
        return name.rpartition(".shape[")[0] if symbol.origin == NUMEL and _PART.search(symbol.name) else name
    return symbol.name if symbol.origin in (ARGUMENT, OPAQUE, NATURAL) else None


def whole(name: str) -> str:
    """The tensor of which a part of its shape is named: `x` of `x.shape[:dim]`."""
    return name.partition(".shape[")[0]


def owners(*exprs: Expr) -> tuple[str, ...]:
    """The owners of the symbols in `exprs`, in order of appearance."""
    found = (owner(s) for s in symbols(*exprs))
    return tuple(dict.fromkeys(name for name in found if name is not None))


def host_ranges(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
    """What holds of the symbols in `exprs` in every run of the host function."""
    found: dict[Expr, None] = {}
    for symbol in symbols(*exprs):
        if (symbol.origin in COUNTS and symbol.origin != STRIDE) or symbol.kind is Kind.LOOP:
            found[le(0, sym(symbol))] = None
        elif symbol.origin == DEVICE:
            found[le(1, sym(symbol))] = None
    return tuple(found)


def row_major(shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """The strides of a contiguous tensor. The stride of an axis of length 1 selects nothing, so it is taken
    to be the product of the later extents as well."""
    strides = [ONE]
    for size in reversed(shape[1:]):
        strides.append(mul(1 if size.value == 0 else size, strides[-1]))
    return tuple(reversed(strides)) if shape else ()


# ---- ranks -------------------------------------------------------------------------------------------------


def ranks_in(facts: Iterable[Expr]) -> dict[str, int]:
    """The ranks that facts fix: `x.ndim == 2`, or `x.ndim == y.ndim` beside it."""
    found: dict[str, int] = {}
    alike: list[tuple[str, str]] = []
    for fact in stated(facts):
        names = (
            [a.args[0].name.removesuffix(".ndim") for a in fact.args if _is_rank(a)] if fact.op == "eq" else []
        )
        fixed = _fixed(sub(*fact.args), 0) if fact.op == "eq" else None
        if len(names) == 2:
            alike.append((names[0], names[1]))
        elif fixed is not None and fixed[1] >= 0:
            found.setdefault(*fixed)
    for _ in alike:
        for a, b in (*alike, *((b, a) for a, b in alike)):
            if a in found:
                found.setdefault(b, found[a])
    return found


def _fixed(e: Expr, value: int) -> tuple[str, int] | None:
    """The rank that `e == value` fixes: 2 for `max(0, x.ndim - 1) + 1 == 2`."""
    literal = next((a.value for a in e.args if a.value is not None), 0) if e.op == "add" else 0
    rest, value = sub(e, literal), value - literal
    if _is_rank(rest):
        return rest.args[0].name.removesuffix(".ndim"), value
    if _is_rank(neg(rest)):
        return neg(rest).args[0].name.removesuffix(".ndim"), -value
    if rest.op == "max" and ZERO in rest.args and value >= 1:
        return _fixed(next(a for a in rest.args if a is not ZERO), value)
    return None


def _is_rank(e: object) -> bool:
    return isinstance(e, Expr) and e.op == "sym" and e.args[0].origin == RANK


def stated(facts: Iterable[Expr]) -> dict[Expr, None]:
    """The single facts that facts state: of `x is None or x.ndim == 2` the latter if the former is denied."""
    found = dict.fromkeys(part for fact in facts for part in conjuncts(fact))
    for fact in tuple(found):
        left = [way for way in (fact.args if fact.op == "any" else ()) if negate(way) not in found]
        found |= dict.fromkeys(conjuncts(left[0]) if len(left) == 1 else ())
    return found


def with_ranks(e: Expr, ranks: Mapping[str, int], memo: dict[Expr, Expr] | None = None) -> Expr:
    """`e` with negative axes and numbers of elements written out where the rank is known.

    `memo` may be shared between calls with the same ranks.
    """
    memo = {} if memo is None else memo

    def change(node: Expr) -> Expr | None:
        if node.op == "floordiv":
            return _quotient(*(rebuild(part, change, memo) for part in node.args))
        if node.op != "sym":
            return None
        symbol: Symbol = node.args[0]
        rank = ranks.get(owner(symbol) or "")
        if rank is None or symbol.origin not in _OF_TENSOR:
            return None
        return _written_out(symbol, rank)

    return rebuild(e, change, memo) if ranks else e


def _written_out(symbol: Symbol, rank: int) -> Expr | None:
    name = owner(symbol) or ""
    if symbol.origin == NUMEL:
        start, stop = part_of_shape(symbol)
        return mul(ONE, *(sym(host_extent(name, k)) for k in range(rank)[start:stop]))
    if symbol.origin in (EXTENT, STRIDE):
        axis = axis_of(symbol)
        if -rank <= axis < 0:
            make = host_extent if symbol.origin == EXTENT else host_stride
            return sym(make(name, axis + rank))
    return None


def quotient(a: Expr, b: Expr) -> Expr:
    """`a // b`, common factors cancelled: valid because `b` is not 0 wherever the division is defined."""
    return _quotient(a, b)


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """`a // b` where `b` is clearly a factor of `a`; None elsewhere."""
    left, right = _cancelled(a, b)
    return mul(ONE, *left) if not right else None


def _quotient(a: Expr, b: Expr) -> Expr:
    left, right = _cancelled(a, b)
    return floordiv(mul(ONE, *left), mul(ONE, *right))


def _cancelled(a: Expr, b: Expr) -> tuple[list[Expr], list[Expr]]:
    left = list(a.args) if a.op == "mul" else [a]
    right = list(b.args) if b.op == "mul" else [b]
    for factor in list(right):
        if factor in left and factor.value != 0:
            left.remove(factor)
            right.remove(factor)
    while (found := next(_parts_without(left, right), None)) is not None:
        part, factor, rest = found
        left[left.index(part)] = rest
        right.remove(factor)
    return left, right


def _parts_without(left: list[Expr], right: list[Expr]) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Products of axes, a factor that is the last (first) of these, and the product of the others. Only where
    nothing is left out at the other end: else the two ends may be one axis."""
    for part in left:
        if part.op != "sym" or part.args[0].origin != NUMEL:
            continue
        name, (start, stop) = owner(part.args[0]) or "", part_of_shape(part.args[0])
        last, first = sym(host_extent(name, (stop or 0) - 1)), sym(host_extent(name, start))
        if start == 0 and (stop is None or stop < 0) and last in right:
            yield part, last, sym(host_part(name, 0, (stop or 0) - 1))
        elif start >= 0 and stop is None and first in right:
            yield part, first, sym(host_part(name, start + 1, None))


def shape_facts(exprs: Iterable[Expr], ranks: Mapping[str, int]) -> Iterator[Expr]:
    """What contiguity, and equality of shapes and strides, mean for the extents and strides in `exprs`."""
    exprs = tuple(exprs)
    truths = [s for s in symbols(*exprs) if s.origin in (SAME_SHAPE, SAME_STRIDES, CONTIGUOUS)]
    for symbol in truths:
        if symbol.origin != CONTIGUOUS:
            yield from _facts_of_same(symbol, exprs, ranks)
            continue
        name = symbol.name.removesuffix(".is_contiguous()")
        shape = [sym(host_extent(name, k)) for k in range(ranks.get(name, 0))]
        strides = [eq(sym(host_stride(name, k)), s) for k, s in enumerate(row_major(shape))]
        yield any_of(negate(bool_sym(symbol)), all_of(*strides))
        if name in ranks:
            yield any_of(bool_sym(symbol), negate(all_of(*strides)))
    yield from _alike(truths)


def _alike(truths: Sequence[Symbol]) -> Iterator[Expr]:
    """What equality of shapes and strides means for others that are spoken of: it is transitive, and tensors
    that agree in both are contiguous together."""
    shapes, strides = (
        {named_same(s): bool_sym(s) for s in truths if s.origin == origin}
        for origin in (SAME_SHAPE, SAME_STRIDES)
    )
    for same in (shapes, strides):
        for one, other in combinations(same, 2):
            ends = sorted({*one} ^ {*other})
            if len(ends) == 2 and (ends[0], ends[1]) in same:
                yield any_of(negate(same[one]), negate(same[other]), same[ends[0], ends[1]])
    laid = {s.name.removesuffix(".is_contiguous()"): bool_sym(s) for s in truths if s.origin == CONTIGUOUS}
    for a, b in strides:
        if (a, b) in shapes and a in laid and b in laid:
            differ = any_of(negate(strides[a, b]), negate(shapes[a, b]))
            yield any_of(differ, negate(laid[a]), laid[b])
            yield any_of(differ, negate(laid[b]), laid[a])


def _facts_of_same(symbol: Symbol, exprs: tuple[Expr, ...], ranks: Mapping[str, int]) -> Iterator[Expr]:
    test, (a, b) = bool_sym(symbol), named_same(symbol)
    of_shape = symbol.origin == SAME_SHAPE
    part = host_extent if of_shape else host_stride
    rank = ranks.get(a, ranks.get(b))
    axes = range(rank) if rank is not None else _axes_named(exprs, a, b, part)
    same = [eq(sym(part(a, k)), sym(part(b, k))) for k in axes]
    same += [eq(sym(host_rank(a)), sym(host_rank(b)))]
    counts = [eq(sym(host_numel(a)), sym(host_numel(b)))] if rank is None and of_shape else []
    yield any_of(negate(test), all_of(*same, *counts))
    if rank is not None and ranks.get(a) == ranks.get(b):
        yield any_of(test, negate(all_of(*same)))


def _axes_named(exprs: tuple[Expr, ...], a: str, b: str, part: Callable[[str, int], Symbol]) -> list[int]:
    """The axes of either tensor that are spoken of while neither rank is known."""
    names = {s.name for s in symbols(*exprs) if s.origin in (EXTENT, STRIDE)}
    axes = range(-_MOST_AXES, _MOST_AXES)
    return [k for k in axes if part(a, k).name in names or part(b, k).name in names]
