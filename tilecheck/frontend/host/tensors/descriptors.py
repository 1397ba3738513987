"""Tensor descriptors that host code makes: a shape, strides and a block shape over the memory of a tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.values import HostShape, Tensor
from tilecheck.frontend.values.values import Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import host_extent, host_stride

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor
    from tilecheck.frontend.modules.project import ModuleTable

CLASS = "triton.tools.tensor_descriptor.TensorDescriptor"
_OPTIONS = ("padding?", "round_f32_to_tf32?")


def made(x: HostExecutor, args: Arguments) -> Tensor:
    """`TensorDescriptor(base, shape, strides, block_shape)`."""
    given = args.bind(("base", "shape", "strides", "block_shape", *_OPTIONS), "TensorDescriptor")
    block = _numbers(x, given["block_shape"], None)
    base = x.known_rank(x.tensor(given["base"]))
    x.in_descriptors += [given["shape"], given["strides"], given["block_shape"]]
    shape = _numbers(x, given["shape"], len(block))
    found = _described(x, base, shape, _numbers(x, given["strides"], len(block)), block)
    return replace(found, block=None) if _sets_blocks(args.table) else found


def of_tensor(x: HostExecutor, args: Arguments) -> Tensor:
    """`TensorDescriptor.from_tensor(tensor, block_shape)`."""
    given = args.bind(("tensor", "block_shape", *_OPTIONS), "from_tensor")
    block = _numbers(x, given["block_shape"], None)
    t = x.laid_out(x.has_rank(x.tensor(given["tensor"]), len(block)))
    t = T.with_rank(t, len(block))
    strides = T.strides_of(t)
    if t.shape is None or strides is None:
        raise UnsupportedConstruct("descriptor of a tensor of unknown layout")
    found = _described(x, t, t.shape, strides, block)
    return replace(found, block=None) if _sets_blocks(args.table) else found


def _described(
    x: HostExecutor,
    base: Tensor,
    shape: tuple[Expr, ...],
    strides: tuple[Expr, ...],
    block: tuple[Expr, ...],
) -> Tensor:
    """What the class makes of them, which refuses empty axes and a last axis with gaps."""
    if not len(shape) == len(strides) == len(block):
        raise UnsupportedConstruct("descriptor whose lists have different lengths")
    x.assume(E.all_of(E.eq(strides[-1], 1), *(E.le(1, n) for n in shape)))
    is_same = base.shape == shape and T.strides_of(base) == strides
    return replace(
        base,
        shape=shape,
        strides=strides,
        shape_of="",
        strides_of="",
        contiguous=False,
        expanded=False,
        dense=False,
        part=base.part if is_same else None,
        span_of="",
        block=block,
        described=True,
        room=_room(base),
    )


def _room(base: Tensor) -> Expr | None:
    """How many elements the storage has from its first to the last that the text accounts for."""
    if base.offset is None or (base.room is not None and not base.copied):
        return base.room
    if base.expanded:
        return base.room
    strides = T.strides_of(base)
    if base.shape is not None and strides is not None:
        reach = (E.sub(E.mul(n, s), s) for n, s in zip(base.shape, strides, strict=True))
        return E.add(base.offset, 1, *reach)
    count = T.numel(base)
    return None if count is None else E.add(base.offset, count)


def _numbers(x: HostExecutor, value: Any, rank: int | None) -> tuple[Expr, ...]:
    """A list of sizes; that of a tensor of unknown rank has as many as the blocks have axes."""
    if isinstance(value, HostShape) and rank is not None:
        whole = T.free(value.of)
        x.has_rank(whole, rank)
        make = host_stride if value.strides else host_extent
        return tuple(E.sym(make(value.of, k)) for k in range(rank))
    if not isinstance(value, Seq) or not value.items:
        raise UnsupportedConstruct("descriptor with sizes of unknown number")
    return tuple(x.scalar(item, "size") for item in value.items)


def _sets_blocks(table: ModuleTable) -> bool:
    """Whether code of the module gives descriptors other blocks, as the hook of a tuner does."""
    targets = (n.target for n in table.nodes(cst.AssignTarget))
    return any(isinstance(t, cst.Attribute) and t.attr.value == "block_shape" for t in targets)
