"""Shapes, strides and storage of tensors under the operations of host code.

A function returns None where the result's shape is not worth following; the caller then makes an unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilecheck.frontend.host.values import Tensor
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind
from tilecheck.ir.host import (
    ARGUMENT,
    COUNTS,
    DEVICE,
    OPAQUE,
    host_extent,
    host_numel,
    host_rank,
    host_stride,
    quotient,
    row_major,
)
from tilecheck.ir.overlap import Step

Part = tuple[Expr | None, Expr | None, Expr | None]  # start:stop:step of a subscript


def free(name: str) -> Tensor:
    """The tensor behind an argument: everything about it is free. `xs[0]` is a member or a part of `xs`."""
    whole, _, index = name.rpartition("[")
    if whole and index.endswith("]"):
        return Tensor(name, whole, shape_of=name, strides_of=name, part=(name,), span_of=name, offset=None)
    return Tensor(name, name, shape_of=name, strides_of=name, span_of=name)


def fresh(name: str, storage: str, shape: tuple[Expr, ...] | None, shape_of: str = "") -> Tensor:
    """A tensor that this function allocates, in row-major order."""
    made = Tensor(name, storage, fresh=True, shape=shape, shape_of=shape_of, contiguous=True, dense=True)
    return replace(made, room=numel(made))


def fresh_to_given(t: Tensor, holder: str) -> Tensor:
    """A tensor as an object gives it back that holds it: memory that was new lies in that object now."""
    if not t.fresh:
        return t
    among = tuple(f"{holder}.{name}" for name in t.among)
    return replace(t, storage=f"{holder}.{t.storage}", among=among)


def piece(t: Tensor, name: str) -> Tensor:
    """Some view of a tensor, of unknown shape: it has the tensor's storage."""
    return replace(
        t,
        name=name,
        shape=None,
        strides=None,
        shape_of="",
        strides_of="",
        contiguous=False,
        expanded=False,
        part=None,
        dense=False,
        span_of="",
        offset=None,
    )


def is_dense(t: Tensor) -> bool:
    """Whether the elements of a tensor lie side by side, in whatever order: they fill its span."""
    return (t.dense or t.contiguous) and not t.expanded


def is_line(t: Tensor) -> bool:
    """Whether a tensor has one axis at most, and no gaps: then it is contiguous, whatever it was made from."""
    return t.dense and not t.expanded and not t.contiguous and t.shape is not None and len(t.shape) <= 1


def whole(t: Tensor) -> str:
    """The free tensor of which `t` has the shape and the strides, axis by axis; empty if it is none."""
    if t.strides_of and t.strides_of == t.shape_of:
        return t.strides_of
    if not t.span_of or t.shape is None or t.strides is None:
        return ""
    extents = (E.sym(host_extent(t.span_of, k)) for k in range(len(t.shape)))
    strides = (E.sym(host_stride(t.span_of, k)) for k in range(len(t.shape)))
    return t.span_of if t.shape == tuple(extents) and t.strides == tuple(strides) else ""


def with_rank(t: Tensor, rank: int) -> Tensor:
    """The shape and strides of a tensor written out for a rank that its text has come to imply."""
    if t.shape is None and t.shape_of:
        t = replace(t, shape=tuple(E.sym(host_extent(t.shape_of, k)) for k in range(rank)), shape_of="")
    if t.strides is None and t.strides_of:
        t = replace(t, strides=tuple(E.sym(host_stride(t.strides_of, k)) for k in range(rank)), strides_of="")
    return t


def extent(t: Tensor, axis: int) -> Expr | None:
    """The extent along an axis, negative ones counted from the end."""
    if t.shape is not None:
        return t.shape[axis] if -len(t.shape) <= axis < len(t.shape) else None
    return E.sym(host_extent(t.shape_of, axis)) if t.shape_of else None


def stride(t: Tensor, axis: int) -> Expr | None:
    strides = strides_of(t)
    if strides is not None:
        return strides[axis] if -len(strides) <= axis < len(strides) else None
    return E.sym(host_stride(t.strides_of, axis)) if t.strides_of else None


def strides_of(t: Tensor) -> tuple[Expr, ...] | None:
    if t.strides is not None or t.shape is None:
        return t.strides
    if t.contiguous:
        return row_major(t.shape)
    return tuple(E.sym(host_stride(t.strides_of, k)) for k in range(len(t.shape))) if t.strides_of else None


def numel(t: Tensor) -> Expr | None:
    if t.shape is not None:
        return E.mul(*t.shape) if t.shape else E.ONE
    return E.sym(host_numel(t.shape_of)) if t.shape_of else None


def rank(t: Tensor) -> Expr | None:
    if t.shape is not None:
        return E.const(len(t.shape))
    return E.sym(host_rank(t.shape_of)) if t.shape_of else None


# ---- allocation --------------------------------------------------------------------------------------------


def like(t: Tensor, name: str, storage: str) -> Tensor:
    """`empty_like` and its kin keep the strides of a dense tensor, which need not be row-major."""
    kept = is_dense(t)
    return Tensor(
        name,
        storage,
        fresh=True,
        shape=t.shape,
        shape_of=t.shape_of,
        strides=t.strides if kept else None,
        strides_of=t.strides_of if kept else "",
        contiguous=t.contiguous and not t.expanded,
        dense=True,
        room=numel(t),
        dtype=t.dtype,
    )


def dense(t: Tensor) -> Tensor:
    """`t.contiguous()`: `t` itself where it is contiguous already, so its storage may be the same."""
    if in_row_major(t):
        return replace(t, contiguous=True)
    name = f"{t.name}.contiguous()"
    found = replace(t, name=name, strides=None, strides_of="", contiguous=True)
    return copied_unless_contiguous(found, t)


def copied_unless_contiguous(found: Tensor, t: Tensor) -> Tensor:
    """`found`, which holds the elements of `t`: in place where `t` is contiguous, as a free tensor may be. A
    copy repeats nothing, and has a span of its own."""
    if in_row_major(t):
        return replace(found, contiguous=True, span_of="")
    if t.expanded and not found.contiguous:  # a view where the axes that are joined repeat alike
        return replace(found, copied="perhaps", copy=0, dense=False, span_of="")
    free = t.span_of != "" and t.strides_of == t.span_of
    free |= t.span_of != "" and t.strides == tuple(
        E.sym(host_stride(t.span_of, k)) for k in range(len(t.shape or ()))
    )
    copied = "unless contiguous" if free and not t.copied else "perhaps"
    return replace(found, copied=copied, copy=0, expanded=False, span_of="")


def in_row_major(t: Tensor) -> bool:
    """Whether a tensor is certainly contiguous: the stride of an axis of length 1 does not matter."""
    strides = strides_of(t)
    if t.contiguous or t.expanded or t.shape is None or strides is None:
        return t.contiguous
    step = E.ONE
    for size, stride in zip(reversed(t.shape), reversed(strides), strict=True):
        if size is not E.ONE:
            if stride is not step:
                return False
            step = E.mul(size, step)
    return True


def in_order(t: Tensor, *, row_major: bool) -> Tensor:
    """A new tensor (or `t`, if it is one) whose elements lie side by side, row-major or in some order."""
    return replace(t, strides=None, strides_of="", contiguous=row_major, expanded=False, dense=True, span_of="")


def in_any_order(t: Tensor) -> Tensor:
    """A tensor of whose strides nothing is known."""
    return replace(t, strides=None, strides_of="", contiguous=False, dense=False, span_of="")


def converted(t: Tensor) -> Tensor:
    """`t.to(...)`, `t.half()`: `t` itself where nothing changes, else a copy with strides of its own."""
    if t.contiguous:
        return replace(t, copied="perhaps", copy=0)
    found = replace(t, strides=None, strides_of="", expanded=False, dense=is_dense(t), span_of="")
    return replace(found, copied="perhaps", copy=0)


# ---- views -------------------------------------------------------------------------------------------------


def reshaped(t: Tensor, shape: Sequence[Expr], count: Expr | None) -> tuple[Tensor, Expr] | None:
    """`t.view(shape)` and what it establishes: torch raises unless there are as many elements, of which -1
    stands for an exact quotient. `count` is the number of elements of `t`."""
    holes = [k for k, size in enumerate(shape) if size.value == -1]
    if count is None or len(holes) > 1:
        return None
    sizes, fact = list(shape), E.TRUE
    if holes:
        others = [s for k, s in enumerate(shape) if k != holes[0]]
        rest = E.mul(*others) if others else E.ONE
        sizes[holes[0]] = quotient(count, rest)
        if sizes[holes[0]].op == "floordiv":
            fact = E.eq(E.mod(count, rest), 0)
    else:
        fact = E.eq(E.mul(E.ONE, *sizes), count)
    ordered = in_row_major(t)
    result = replace(t, shape=tuple(sizes), shape_of="", strides=None, strides_of="", contiguous=ordered)
    return result, fact


def permuted(t: Tensor, axes: Sequence[int]) -> Tensor | None:
    """`t.permute(axes)`."""
    t = with_rank(t, len(axes))
    if t.shape is None or sorted(a % len(t.shape) for a in axes) != list(range(len(t.shape))):
        return None
    axes = [a % len(t.shape) for a in axes]
    strides = strides_of(t)
    return replace(
        t,
        shape=tuple(t.shape[a] for a in axes),
        strides=None if strides is None else tuple(strides[a] for a in axes),
        strides_of="",
        contiguous=False,
        dense=is_dense(t),
    )


def swapped(t: Tensor, a: int, b: int) -> Tensor | None:
    """`t.transpose(a, b)`."""
    if t.shape is None:
        return None
    axes = list(range(len(t.shape)))
    if not all(-len(axes) <= k < len(axes) for k in (a, b)):
        return None
    axes[a], axes[b] = axes[b], axes[a]
    return permuted(t, axes)


def expanded(t: Tensor, sizes: Sequence[Expr]) -> Tensor | None:
    """`t.expand(sizes)`: an axis of length 1 is repeated with stride 0."""
    strides = strides_of(t)
    if t.shape is None and all(size.value != -1 for size in sizes):
        return replace(
            t,
            shape=tuple(sizes),
            shape_of="",
            strides=None,
            strides_of="",
            expanded=True,
            contiguous=False,
            span_of="",
        )
    if t.shape is None or len(sizes) < len(t.shape):
        return None
    added = len(sizes) - len(t.shape)
    shape: list[Expr] = list(sizes[:added])
    steps: list[Expr] = [E.ZERO] * added
    repeats = added > 0
    for k, size in enumerate(sizes[added:]):
        old = t.shape[k]
        kept = size.value == -1 or size is old
        repeats |= not kept
        shape.append(old if kept else size)
        same = E.ONE if strides is None else strides[k]
        steps.append(same if kept else E.ite(E.eq(old, size), same, E.ZERO))
    known = None if strides is None else tuple(steps)
    return replace(
        t,
        shape=tuple(shape),
        strides=known,
        expanded=t.expanded or repeats,
        contiguous=t.contiguous and not repeats,
        span_of="" if repeats else t.span_of,
    )


def flattened(t: Tensor, start: int, end: int, count: Expr | None) -> Tensor | None:
    """`t.flatten(start, end)`: a view where it can be, else a copy."""
    if start == 0 and end == -1:
        return None if count is None else _flat(t, (count,))
    if t.shape is None:
        return None
    first, last = start % len(t.shape), end % len(t.shape)
    middle = E.mul(*t.shape[first : last + 1]) if first <= last else E.ONE
    return _flat(t, (*t.shape[:first], middle, *t.shape[last + 1 :]))


def _flat(t: Tensor, shape: tuple[Expr, ...]) -> Tensor:
    return copied_unless_contiguous(replace(t, shape=shape, shape_of="", strides=None, strides_of=""), t)


def unflattened(t: Tensor, axis: int, sizes: Sequence[Expr]) -> tuple[Tensor, Expr] | None:
    """`t.unflatten(axis, sizes)`: one axis as several in row-major order."""
    if t.shape is None or not -len(t.shape) <= axis < len(t.shape):
        return None
    at, strides = axis % len(t.shape), strides_of(t)
    own = reshaped(replace(t, strides=None), sizes, t.shape[at])
    if own is None or own[0].shape is None:
        return None
    inner = own[0].shape
    steps = None
    if strides is not None:
        steps = (*strides[:at], *(E.mul(s, strides[at]) for s in row_major(inner)), *strides[at + 1 :])
    shape = (*t.shape[:at], *inner, *t.shape[at + 1 :])
    kept = None if t.contiguous else steps
    return replace(t, shape=shape, strides=kept, strides_of=""), own[1]


def unfolded(t: Tensor, axis: int, size: Expr, step: Expr) -> tuple[Tensor, Expr] | None:
    """`t.unfold(axis, size, step)`, windows of which two may share elements, and what it establishes."""
    if t.shape is None or not -len(t.shape) <= axis < len(t.shape):
        return None
    at, strides = axis % len(t.shape), strides_of(t)
    count = E.add(E.floordiv(E.sub(t.shape[at], size), step), 1)
    steps = None
    if strides is not None:
        steps = (*strides[:at], E.mul(step, strides[at]), *strides[at + 1 :], strides[at])
    shape = (*t.shape[:at], count, *t.shape[at + 1 :], size)
    apart = size.value is not None and step.value is not None and size.value <= step.value
    own = replace(piece(t, t.name), offset=t.offset)
    found = replace(own, shape=shape, strides=steps, expanded=t.expanded or not apart)
    return found, E.all_of(E.le(0, size), E.le(size, t.shape[at]), E.lt(0, step))


def windowed(t: Tensor, shape: Sequence[Expr], strides: Sequence[Expr], offset: Expr | None) -> Tensor:
    """Elements of the storage of `t`, so many steps apart along each axis. Several indices may share one,
    unless the text shows that each stride is as long as what lies inside it."""
    own = replace(piece(t, t.name), shape=tuple(shape), strides=tuple(strides), offset=offset)
    found = replace(own, expanded=not is_apart(shape, strides))
    return replace(found, contiguous=True, dense=True) if in_row_major(found) else found


def is_apart(shape: Sequence[Expr], strides: Sequence[Expr]) -> bool:
    """Whether each stride is at least as long as what lies inside it, by literals or because it is the same."""
    for k, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        inner = E.mul(E.ONE, *shape[k + 1 :])
        reach = E.add(
            E.ONE, *(E.mul(E.sub(n, 1), s) for n, s in zip(shape[k + 1 :], strides[k + 1 :], strict=True))
        )
        if size is E.ONE or (stride is inner and _is_row_major(shape[k + 1 :], strides[k + 1 :])):
            continue
        if stride.value is None or reach.value is None or stride.value < reach.value:
            return False
    return True


def _is_row_major(shape: Sequence[Expr], strides: Sequence[Expr]) -> bool:
    return tuple(strides) == row_major(shape)


def unsqueezed(t: Tensor, axis: int) -> Tensor | None:
    if t.shape is None or not -len(t.shape) - 1 <= axis <= len(t.shape):
        return None
    at = axis % (len(t.shape) + 1)
    strides = strides_of(t)
    steps = None
    if strides is not None:
        step = E.mul(strides[at], t.shape[at]) if at < len(strides) else E.ONE
        steps = (*strides[:at], step, *strides[at:])
    return replace(t, shape=(*t.shape[:at], E.ONE, *t.shape[at:]), strides=steps, strides_of="")


def squeezed(t: Tensor, axis: int) -> Tensor | None:
    """`t.squeeze(axis)`, where the text says whether the extent is 1."""
    size = extent(t, axis)
    if t.shape is None or size is None or size.value is None:
        return None
    if size.value != 1:
        return t
    at = axis % len(t.shape)
    strides = strides_of(t)
    steps = None if strides is None else (*strides[:at], *strides[at + 1 :])
    return replace(t, shape=(*t.shape[:at], *t.shape[at + 1 :]), strides=steps, strides_of="")


# ---- slices ------------------------------------------------------------------------------------------------


def sliced(t: Tensor, axis: int, ends: Part) -> Tensor | None:
    """`t[..., start:stop:step, ...]` along one axis, clamped as Python clamps it."""
    if t.shape is None or not -len(t.shape) <= axis < len(t.shape):
        return None
    at, (start, stop, step) = axis % len(t.shape), ends
    size = t.shape[at]
    by = 1 if step is None else step.value
    if by is None or by < 1:
        return None
    if start is None and stop is None and by == 1:
        return t
    low, high = bounds(size, start, stop)
    if (low, high, by) == (E.ZERO, size, 1):
        return t
    part = part_of(t, at, low, high, by)
    length = length_between(low, high, by)
    strides = strides_of(t)
    steps = None
    if strides is not None:
        steps = (*strides[:at], E.mul(by, strides[at]), *strides[at + 1 :])
    inner = (*t.shape[:at], length, *t.shape[at + 1 :])
    # The first rows of a contiguous tensor are contiguous; any other slice of it need not be.
    kept = t.contiguous and at == 0 and by == 1
    return replace(
        t,
        shape=inner,
        strides=None if kept else steps,
        strides_of="",
        contiguous=kept,
        part=part,
        dense=kept,
        span_of="",
        offset=moved(t, low, None if strides is None else strides[at]),
    )


def bounds(size: Expr, start: Expr | None, stop: Expr | None) -> tuple[Expr, Expr]:
    """Where a slice of an axis begins and ends."""
    return (
        E.ZERO if start is None else _clamped(start, size),
        size if stop is None else _clamped(stop, size),
    )


def length_between(low: Expr, high: Expr, step: int = 1) -> Expr:
    """How many items a slice takes."""
    length = E.cdiv(E.sub(high, low), step)
    return length if _ordered(low, high) else E.maximum(0, length)


def _clamped(index: Expr, size: Expr) -> Expr:
    """Where a slice bound really lies: negative ones count from the end, large ones stop there."""
    if index.value is not None and index.value < 0:
        return E.maximum(0, E.add(size, index))
    if not nonnegative(index):
        index = E.ite(E.lt(index, 0), E.maximum(0, E.add(size, index)), index)
    return index if index is size or index is E.ZERO else E.minimum(index, size)


def _ordered(low: Expr, high: Expr) -> bool:
    return low is E.ZERO and nonnegative(high)


def part_of(t: Tensor, axis: int, low: Expr, high: Expr, by: int) -> tuple[object, ...] | None:
    """Which part of its storage a slice of `t` is; None where two slices of this text may differ: where its
    layout is not known, or an index is what unread code gave, or is read from an object that may change."""
    strides = strides_of(t)
    said = [s.name for s in E.symbols(low, high) if s.kind is Kind.HOST and s.origin in (ARGUMENT, OPAQUE)]
    if t.part is None or t.shape is None or strides is None or not all(name.isidentifier() for name in said):
        return None
    layout = (t.shape, strides, t.contiguous and not t.expanded)
    return (*t.part, Step(layout, axis, low, high, by))


def selected(t: Tensor, axis: int, index: Expr) -> Tensor | None:
    """`t[i]`: one position along an axis, which goes."""
    if t.shape is None or not -len(t.shape) <= axis < len(t.shape):
        return None
    axis %= len(t.shape)
    strides = strides_of(t)
    index = E.add(t.shape[axis], index) if index.value is not None and index.value < 0 else index
    # From which end an index of either sign counts is not known: it is the position that it is, and no other.
    after = E.add(index, 1) if nonnegative(index) else E.const(-1)
    return replace(
        t,
        shape=(*t.shape[:axis], *t.shape[axis + 1 :]),
        strides=None if strides is None else (*strides[:axis], *strides[axis + 1 :]),
        strides_of="",
        contiguous=t.contiguous and axis == 0,
        part=part_of(t, axis, index, after, 0),
        dense=t.contiguous and axis == 0,
        span_of="",
        offset=moved(t, _position(index, t.shape[axis]), None if strides is None else strides[axis]),
    )


def _position(index: Expr, size: Expr) -> Expr:
    """Where an index lies: a negative one counts from the end."""
    return index if nonnegative(index) else E.ite(E.lt(index, 0), E.add(size, index), index)


def moved(t: Tensor, steps: Expr, stride: Expr | None) -> Expr | None:
    """The offset of a view that begins so many steps behind `t`."""
    if t.offset is None or steps is E.ZERO:
        return t.offset
    return None if stride is None else E.add(t.offset, E.mul(steps, stride))


def nonnegative(e: Expr) -> bool:
    """Whether a value is clearly not negative."""
    match e.op:
        case "const":
            return bool(e.args[0] >= 0)
        case "sym":
            return e.args[0].origin in (*COUNTS, DEVICE) or e.args[0].kind is Kind.LOOP
        case "add" | "mul" | "min":
            return all(nonnegative(a) for a in e.args)
        case "max":
            return any(nonnegative(a) for a in e.args)
        case "floordiv" | "mod":
            return nonnegative(e.args[1]) and (e.op == "mod" or nonnegative(e.args[0]))
        case "ite":
            return all(nonnegative(a) for a in e.args[1:])
        case _:
            return False
