"""Views of tensors as boxes of their memory: subscripts, slices, and methods that give views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.kinds import as_number
from tilecheck.frontend.host_programs.values.numbers import add, subtract
from tilecheck.frontend.host_programs.values.undetermined import learn_number
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

# Methods and attributes of tensors that give the same elements under another shape.
SAME_ELEMENTS = frozenset(
    "view unsqueeze squeeze flatten unflatten detach view_as data swapaxes swapdims transpose permute "
    "t movedim moveaxis alias real imag __dlpack__ refine_names".split()
)
# Those that may copy: the result is the same memory or another.
MAY_COPY = frozenset("reshape contiguous float half bfloat16 double int long bool type ravel type_as".split())
# Those of some of the elements, which is not followed further.
SOME_ELEMENTS = frozenset(
    "expand expand_as broadcast_to as_strided diagonal unfold split unbind tensor_split hsplit vsplit chunk "
    "split_with_sizes".split()
)


NEW_AXIS = V.NONE
DOTS = V.Const(Ellipsis)


def subscript(m: Machine, tensor: V.Tensor, indices: Sequence[V.Value | V.Slice]) -> V.Tensor | None:
    """The view that a subscript of integers and slices gives; None if it copies, as one by tensors does."""
    if any(_copies(m, index) for index in indices):
        return None
    if tensor.rest is None:  # under another shape: some of the same box
        return replace(tensor, holes=True)
    if DOTS in indices:
        spelled = _spelled_out(m, tensor, indices)
        if spelled is None:
            return tensor.mixed(holes=True)
        indices = spelled
    kept: list[int] = []
    at = 0
    for index in indices:
        if index == NEW_AXIS:
            return tensor.mixed(holes=True)
        axis = _axis(tensor, at)
        at += 1
        tensor, stays = cut(m, tensor, axis, index)
        if stays:
            kept.append(axis)
    axes = (*kept, *tensor.axes[at:])
    rest = max(tensor.rest or 0, (tensor.rest or 0) + at - len(tensor.axes))
    return replace(tensor, axes=axes, rest=rest)


def _spelled_out(m: Machine, tensor: V.Tensor, indices: Sequence[V.Value]) -> list[V.Value] | None:
    """A subscript with whole slices for its `...`; None if it counts axes from an end that is not known."""
    at = next(position for position, index in enumerate(indices) if index == DOTS)
    before, behind = list(indices[:at]), list(indices[at + 1 :])
    if not behind:
        return before
    extents = m.memories[tensor.memory].extents
    rank = None if extents is None else len(tensor.axes) + len(extents) - (tensor.rest or 0)
    left = None if rank is None else rank - len(before) - len(behind)
    if left is None or left < 0:
        return None
    return [*before, *[V.Slice(None, None)] * left, *behind]


def _copies(m: Machine, index: V.Value | V.Slice) -> bool:
    if isinstance(index, V.Slice) or index in (DOTS, NEW_AXIS):
        return False
    return as_number(m, index) is None or (isinstance(index, V.Const) and isinstance(index.value, bool))


def _axis(tensor: V.Tensor, at: int) -> int:
    """The axis of the memory behind an axis of the view."""
    return tensor.axes[at] if at < len(tensor.axes) else (tensor.rest or 0) + at - len(tensor.axes)


def cut(m: Machine, tensor: V.Tensor, axis: int, index: V.Value | V.Slice) -> tuple[V.Tensor, bool]:
    """The view cut along an axis of its memory, and whether that axis stays."""
    interval = tensor.box[axis] if axis < len(tensor.box) else None
    extent = V.Number(m.extent(tensor.memory, axis))
    low, high = interval or (V.number(0), extent)
    length = subtract(high, low)
    if not isinstance(index, V.Slice):
        at = as_number(m, index)
        if at is None:
            return _with(replace(tensor, holes=True), axis, interval), False
        at = _from_end(at, length)
        m.assume(E.le(0, at.expr))
        m.assume(E.lt(at.expr, length.expr))
        start = add(low, at)
        return _with(tensor, axis, (start, add(start, V.number(1)))), False
    first, last = _bound(m, index.start, length), _bound(m, index.stop, length)
    unread = (index.start is not None and first is None) or (index.stop is not None and last is None)
    if unread:
        return _with(replace(tensor, holes=True), axis, interval), True
    start = low if first is None else add(low, first)
    stop = high if last is None else add(low, _shorter(last, length))
    tensor = replace(tensor, holes=tensor.holes or index.holes)
    if first is None and last is None:
        return _with(tensor, axis, interval), True
    return _with(tensor, axis, (start, stop)), True


def _bound(m: Machine, value: V.Value | None, length: V.Number) -> V.Number | None:
    """A bound of a slice: it is taken to lie inside the axis, which is a premise of what is read."""
    found = None if value is None or value == V.NONE else as_number(m, value)
    if found is None:
        return None
    found = _from_end(found, length)
    m.assume(E.le(0, found.expr))
    if found.value is None or length.value is None:
        m.assume(E.le(found.expr, length.expr))
    return found


def _from_end(at: V.Number, length: V.Number) -> V.Number:
    return add(length, at) if at.value is not None and at.value < 0 else at


def _shorter(stop: V.Number, length: V.Number) -> V.Number:
    """A literal stop behind the end of the axis is its end."""
    if stop.value is not None and length.value is not None and stop.value > length.value:
        return length
    return stop


def _with(tensor: V.Tensor, axis: int, interval: tuple[V.Number, V.Number] | None) -> V.Tensor:
    box = [*tensor.box, *([None] * (axis + 1 - len(tensor.box)))]
    box[axis] = interval
    return replace(tensor, box=tuple(box))


def narrow(m: Machine, tensor: V.Tensor, axis: V.Value, start: V.Value, length: V.Value) -> V.Tensor | None:
    """`t.narrow(axis, start, length)`."""
    at, first, size = as_number(m, axis), as_number(m, start), as_number(m, length)
    if at is None or at.value is None or at.value < 0 or first is None or size is None:
        return tensor.mixed(holes=True)
    indices: list[V.Value | V.Slice] = [V.Slice(None, None)] * at.value
    return subscript(m, tensor, [*indices, V.Slice(first, add(first, size))])


def chunks(m: Machine, tensor: V.Tensor, count: int) -> list[V.Tensor] | None:
    """`t.chunk(count)` along the first axis; None where the view is not followed."""
    if tensor.rest is None:
        return None
    axis = _axis(tensor, 0)
    interval = tensor.box[axis] if axis < len(tensor.box) else None
    low, high = interval or (V.number(0), V.Number(m.extent(tensor.memory, axis)))
    # `chunk` rounds the length of a piece up; where the count does not divide it, the last piece is shorter.
    length = E.cdiv(subtract(high, low).expr, count)
    found = []
    for piece in range(count):
        start = add(low, V.Number(E.mul(piece, length)))
        stop = high if piece == count - 1 else add(start, V.Number(length))
        found.append(_with(tensor, axis, (start, stop)))
    return found


def pieces(m: Machine, tensor: V.Tensor, size: int) -> list[V.Tensor] | None:
    """`t.split(size)` along the first axis; None where the number of pieces is not known."""
    length = shape(m, tensor, 0)
    whole = None if length is None else m.settle(length.expr).value
    if whole is None or not 0 < whole <= size * _MOST_PIECES:
        return None
    starts = range(0, whole, size)
    found = [subscript(m, tensor, [V.Slice(V.number(at), V.number(min(at + size, whole)))]) for at in starts]
    return [piece for piece in found if piece is not None]


_MOST_PIECES = 8


def shape(m: Machine, tensor: V.Tensor, axis: int) -> V.Number | None:
    """The length of an axis of a view; None where it is not followed."""
    if tensor.rest is None or axis < 0:
        return None
    at = _axis(tensor, axis)
    interval = tensor.box[at] if at < len(tensor.box) else None
    if interval is None:
        return V.Number(m.extent(tensor.memory, at))
    return subtract(interval[1], interval[0])


def extents(m: Machine, sizes: Sequence[V.Value]) -> tuple[Expr, ...] | None:
    """The extents of an allocation from its arguments; None where some are not numbers."""
    found = []
    for size in sizes:
        learn_number(m, size)
        n = as_number(m, size)
        if n is None or n.slopes or n.curved:
            return None
        found.append(n.expr)
        if n.value is None:
            m.assume(E.le(1, n.expr))
    return tuple(found) if found else None
