"""Who answers for a requirement of a launch: the host function, or whoever calls it.

The caller answers for what relates inputs that are handed in apart, and for the layout of a tensor that is
handed in, and only where some ordinary call of several blocks meets it, together with all else. An ordinary
call passes contiguous tensors and leaves numbers with a default at that. Everything else is the host's own:

    one input alone     `n % T == 0`, `n >= 1`, `cdiv(n, T) <= n // T`
    numbers alone       `step >= width`: the host may compare what it is given
    a tile size         a number by which the grid divides is the host's unit, not data that is handed in
    what it keeps       tensors of another call, in module globals, caches and fields
    what it makes       a grid must fit the outputs that it allocates, but for those in the shape of an input
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilecheck.ir.expr import ZERO, Expr, Kind, all_of, eq, le, lt, negate, sub, substitute, sym, symbols, walk
from tilecheck.ir.host import (
    ARGUMENT,
    DEFINED,
    EXTENT,
    NUMEL,
    OPAQUE,
    RANK,
    SPAN,
    STRIDE,
    axis_of,
    owner,
    whole,
)
from tilecheck.ir.kernel import Effect
from tilecheck.ir.launch import HostTensor
from tilecheck.proof.algebra.linear import meaning
from tilecheck.proof.algebra.normal_form import Forms
from tilecheck.proof.launches.judge import Judge

_SIZES = frozenset({EXTENT, NUMEL})
_OF_TENSOR = frozenset({EXTENT, NUMEL, STRIDE, RANK, SPAN})


def callers(judge: Judge, conditions: Sequence[Expr]) -> tuple[Expr, ...]:
    """The conditions, of those that the host's text leaves open, for which the caller answers."""
    found: list[Expr] = []
    ordinary = judge.ordinary
    asked = [*ordinary.more_blocks()[0]]
    if not ordinary.possible(all_of(*asked)):  # some launches have one block whatever is passed
        asked.clear()
    for condition in conditions:
        wanted = ordinary.rewritten(condition)
        if _is_callers(judge, condition) and ordinary.possible(all_of(*asked, wanted)):
            found.append(condition)
            asked.append(wanted)
    return tuple(found)


def _is_callers(judge: Judge, condition: Expr) -> bool:
    wanted = judge.rewritten(condition)
    ordinary = judge.in_ordinary_call(wanted)
    is_own = _tensors(wanted).isdisjoint(judge.launch.unread) and is_of_own_outputs(judge, condition)
    if not _tensors(wanted) or is_own or _is_of_own_numbers(judge, condition):
        return False
    if is_of_layout(judge, condition):
        return True
    return relates_inputs(judge, ordinary) and judge.ordinary.possible(ordinary)


def is_of_layout(judge: Judge, condition: Expr) -> bool:
    """Whether only a layout, or a number that is not left at its default, keeps a condition open."""
    wanted = judge.rewritten(condition)
    ordinary = judge.in_ordinary_call(wanted)
    speaks = ordinary is not wanted or any(s.origin in (STRIDE, SPAN) for s in symbols(wanted))
    return speaks and not judge.ordinary.possible(negate(ordinary))


def is_of_given_layout(judge: Judge, condition: Expr) -> bool:
    """Whether only the layout of tensors that are handed in keeps a condition open: of views, too, that are
    contiguous where these are, as `x.view(m, -1)` is."""
    tensors = [t for _, t in judge.launch.arguments if isinstance(t, HostTensor)]
    views = {t.strides_of for t in tensors if t.given and t.span_of and t.shape is not None}
    spoken = _tensors(judge.rewritten(condition)) - views
    return spoken.isdisjoint(judge.launch.unread) and is_of_layout(judge, condition)


def _is_of_own_numbers(judge: Judge, condition: Expr) -> bool:
    """Whether a condition that names no array speaks of a number that the host function computes, and not of
    the layout of what is handed in."""
    if any(s.kind in (Kind.EXTENT, Kind.STRIDE) for s in symbols(condition)):
        return False
    if any(s.origin == STRIDE for s in symbols(judge.rewritten(condition))):
        return False
    values = [judge.rewritten(sym(s)) for s in symbols(condition)]
    if all(len(_tensors(v) | _numbers(v)) <= 1 for v in values):
        together = frozenset[str]().union(*(_tensors(v) | _numbers(v) for v in values))
        if len(together) > 1 and not together <= _numbers(all_of(*values)):
            return False  # `k.stride(2) >= q.shape[3] // 2`: each is of one input, and so is none of both
    return any(v.value is None and not _is_plain(v) for v in values)


def _is_plain(value: Expr) -> bool:
    """Whether a value is handed in, or a product of extents of one tensor, as its strides are."""
    factors = value.args if value.op == "mul" else (value,)
    if not all(isinstance(f, Expr) and f.op == "sym" for f in factors):
        return value.op == "sym"
    return len(factors) == 1 or ({f.args[0].origin for f in factors} <= _SIZES and len(_tensors(value)) == 1)


def relates_inputs(judge: Judge, wanted: Expr) -> bool:
    """Whether it speaks of two tensors, or of a tensor and a number, that are handed in apart: also when what
    the text says is equal is written over any one of them, and what cancels out is left out."""
    return all(_is_relation(judge, _cancelled(e)) for e in (wanted, *_over_one_tensor(judge, wanted)))


def _cancelled(wanted: Expr) -> Expr:
    """A condition without what both sides have: `n * c + k <= n * c` speaks of `k` alone."""
    if wanted.op not in ("le", "lt", "eq"):
        return wanted
    forms = Forms()
    left = meaning(forms.difference(*wanted.args), forms.meanings())
    return {"le": le, "lt": lt, "eq": eq}[wanted.op](left, ZERO)


def is_of_own_outputs(judge: Judge, condition: Expr) -> bool:
    """Whether all arrays of a condition are written, and tensors that the host function allocates in a shape of
    its own making. One in the shape of an input (`torch.empty_like(key)`) is as large as that is."""
    given = dict(judge.launch.arguments)
    written = {a.array for a in judge.kernel.accesses if a.effect is not Effect.READ}
    arrays = {s.name.partition(".")[0] for s in symbols(condition) if s.kind in (Kind.EXTENT, Kind.STRIDE)}
    tensors = [given.get(name) for name in arrays & written]
    return len(tensors) == len(arrays) > 0 and all(
        isinstance(t, HostTensor) and t.fresh and not _is_like_an_input(t) for t in tensors
    )


def _is_like_an_input(t: HostTensor) -> bool:
    """Whether a tensor has the shape of another, all of it and in its order."""
    if t.by_rank:
        return False  # its shape is made of parts
    if t.count is not None and any(n.op == "ite" for n in walk(t.count)):
        return False  # the text chooses between several
    if t.shape is None:
        return t.shape_of not in ("", t.name) and t.shape_of == whole(t.shape_of)
    extents = [n.args[0] for n in t.shape if n.op == "sym" and n.args[0].origin == EXTENT]
    names = {owner(s) for s in extents}
    in_order = [axis_of(s) for s in extents] == list(range(len(t.shape)))
    return len(names) == 1 and in_order and len(extents) > 0


def _is_relation(judge: Judge, wanted: Expr) -> bool:
    launch = judge.launch
    # `math.isqrt(x.numel())` is of `x`, as the facts say that define it.
    said = [f for f in launch.facts if any(s.origin == DEFINED and s in symbols(wanted) for s in symbols(f))]
    tensors = [name for name in _tensors(all_of(wanted, *said)) if not launch.keeps(name)]
    numbers = [name for name in _numbers(wanted) - _tile_sizes(judge) if not launch.keeps(name)]
    return len(tensors) > 1 or (bool(tensors) and bool(numbers))


def _over_one_tensor(judge: Judge, wanted: Expr) -> Iterator[Expr]:
    """A condition with as much of it as the text allows written over the sizes of one tensor."""
    for name in sorted(_tensors(wanted)):
        names: dict[Expr, Expr] = {}
        for equal in judge.equal:
            own = next((value for value in equal if name in _tensors(value)), None)
            names |= {} if own is None else dict.fromkeys(equal, own)
        yield substitute(wanted, names)


def _tensors(e: Expr) -> frozenset[str]:
    """The tensors whose extents or strides stand in it."""
    return frozenset(
        whole(owner(s) or "") for s in symbols(e) if s.kind is Kind.HOST and s.origin in _OF_TENSOR
    )


def _numbers(e: Expr) -> frozenset[str]:
    return frozenset(s.name for s in symbols(e) if s.kind is Kind.HOST and s.origin in (ARGUMENT, OPAQUE))


def _tile_sizes(judge: Judge) -> frozenset[str]:
    """The numbers by which the launch grid divides others: not a size of which the tile size follows."""
    grid = [size for size in judge.launch.grid or () if size is not None]
    quotients = [node.args for node in walk(*grid) if node.op == "floordiv"]
    # `cdiv(n, t)` is `(n + t - 1) // t`.
    divided = frozenset(name for top, by in quotients for name in _numbers(top) & _numbers(sub(top, by)))
    return frozenset(name for _, divisor in quotients for name in _numbers(divisor)) - divided
