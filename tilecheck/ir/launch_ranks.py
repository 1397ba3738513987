"""Rewrites of launches: every expression mapped, and ranks written out once they are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tilecheck.ir.expr import TRUE, Expr, conjuncts, rebuild, sym
from tilecheck.ir.host import (
    SAME_SHAPE,
    SAME_STRIDES,
    host_extent,
    host_ranges,
    host_stride,
    named_same,
    ranks_in,
    row_major,
    shape_facts,
    with_ranks,
)
from tilecheck.ir.host_parts import in_pieces
from tilecheck.ir.launch import HostList, HostTensor, HostValue, Launch


def launch_expressions(launch: Launch) -> tuple[Expr, ...]:
    """The expressions of a launch, without its facts."""
    found: list[Expr] = [e for e in (*(launch.grid or ()), launch.warps) if e is not None]
    for _, value in (*launch.arguments, *launch.captured):
        found += _parts(value)
    return tuple(found)


def _parts(value: HostValue) -> list[Expr]:
    match value:
        case Expr():
            return [value]
        case HostTensor():
            absent = () if value.absent is None else (value.absent,)
            held = () if value.contents is None else value.contents.expressions
            return [*(value.shape or ()), *(value.strides or ()), *absent, *held]
        case HostList():
            return [e for item in value.items for e in _parts(item)]
        case _:
            return []


def _counts(value: HostValue) -> list[Expr]:
    """The numbers of elements of tensors whose rank is not known."""
    match value:
        case HostTensor():
            return [] if value.count is None else [value.count]
        case HostList():
            return [e for item in value.items for e in _counts(item)]
        case _:
            return []


def map_launch(launch: Launch, change: Callable[[Expr], Expr]) -> Launch:
    """A launch with every expression changed."""

    def of(value: HostValue) -> HostValue:
        match value:
            case Expr():
                return change(value)
            case HostTensor():
                shape = None if value.shape is None else tuple(map(change, value.shape))
                strides = None if value.strides is None else tuple(map(change, value.strides))
                number = None if value.number is None else change(value.number)
                absent = None if value.absent is None else change(value.absent)
                count = None if value.count is None else change(value.count)
                offset = None if value.offset is None else change(value.offset)
                room = None if value.room is None else change(value.room)
                block = None if value.block is None else tuple(map(change, value.block))
                by_rank = tuple(None if s is None else tuple(map(change, s)) for s in value.by_rank)
                kept = replace(value, shape=shape, strides=strides, number=number, absent=absent)
                held = None if value.contents is None else value.contents.mapped(change)
                return replace(
                    kept, count=count, offset=offset, room=room, block=block, contents=held, by_rank=by_rank
                )
            case HostList():
                return HostList(tuple(map(of, value.items)))
            case _:
                return value

    return replace(
        launch,
        grid=None if launch.grid is None else tuple(None if e is None else change(e) for e in launch.grid),
        arguments=tuple((name, of(value)) for name, value in launch.arguments),
        captured=tuple((name, of(value)) for name, value in launch.captured),
        facts=tuple(map(change, launch.facts)),
        warps=None if launch.warps is None else change(launch.warps),
    )


def with_known_ranks(launch: Launch, known: Mapping[str, int]) -> Launch:
    """A launch in terms of single extents, for free tensors whose rank is `known` or follows from the facts.

    What equal shapes, contiguity and the kinds of the symbols say is added to the facts.
    """
    ranks = {**fixed_ranks(launch.facts), **known}
    memo: dict[Expr, Expr] = {}
    launch = map_launch(launch, lambda e: with_ranks(e, ranks, memo))
    launch = replace(launch, arguments=tuple((n, _ranked(v, ranks)) for n, v in launch.arguments))
    facts = dict.fromkeys(part for fact in launch.facts for part in conjuncts(fact))
    facts.update(dict.fromkeys(shape_facts((*launch_expressions(launch), *facts), ranks)))
    launch, facts = _in_pieces(launch, facts, ranks)
    facts.update(dict.fromkeys(host_ranges((*launch_expressions(launch), *facts))))
    return replace(launch, facts=tuple(f for f in facts if f is not TRUE))


def _in_pieces(
    launch: Launch, facts: dict[Expr, None], ranks: Mapping[str, int]
) -> tuple[Launch, dict[Expr, None]]:
    """A launch with the sizes of tensors of unknown rank written over their smallest parts."""
    counts = [e for _, value in launch.arguments for e in _counts(value)]
    meant, more = in_pieces((*launch_expressions(launch), *facts), counts, ranks)
    if not meant:
        return launch, facts | dict.fromkeys(more)
    memo: dict[Expr, Expr] = {}
    launch = map_launch(launch, lambda e: rebuild(e, meant.get, memo))
    said = (rebuild(fact, meant.get, memo) for fact in (*facts, *more))
    return launch, dict.fromkeys(part for fact in said for part in conjuncts(fact))


def fixed_ranks(facts: Iterable[Expr]) -> dict[str, int]:
    """The ranks that facts fix, through equal shapes and strides too."""
    single = tuple(part for fact in facts for part in conjuncts(fact))
    ranks = ranks_in(single)
    tests = (p.args[0] for p in single if p.op == "bsym")
    same = [named_same(symbol) for symbol in tests if symbol.origin in (SAME_SHAPE, SAME_STRIDES)]
    for _ in same:
        for a, b in same:
            for one, other in ((a, b), (b, a)):
                if one in ranks:
                    ranks.setdefault(other, ranks[one])
    return ranks


def _ranked(value: HostValue, ranks: Mapping[str, int]) -> HostValue:
    match value:
        case HostTensor():
            return _ranked_tensor(value, ranks)
        case HostList():
            return HostList(tuple(_ranked(item, ranks) for item in value.items))
        case _:
            return value


def _ranked_tensor(t: HostTensor, ranks: Mapping[str, int]) -> HostTensor:
    if t.shape is None and t.shape_of in ranks:
        rank = ranks[t.shape_of]
        made = t.by_rank[rank] if 0 <= rank < len(t.by_rank) else None
        shape = made or tuple(sym(host_extent(t.shape_of, k)) for k in range(rank))
        t = replace(t, shape=shape, shape_of="")
    if t.strides is None and t.contiguous and t.shape is not None:
        t = replace(t, strides=row_major(t.shape))
    elif t.strides is None and t.strides_of in ranks:
        strides = tuple(sym(host_stride(t.strides_of, k)) for k in range(ranks[t.strides_of]))
        t = replace(t, strides=strides, strides_of="")
    return t
