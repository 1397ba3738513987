"""What operations on tensors ask of the device: work on the current stream, copies, and waits of the host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import libcst as cst

from tilecheck.frontend.host_programs.knowledge import family
from tilecheck.frontend.host_programs.machine import ON_HOST, Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.ir import host_program as H
from tilecheck.ir.expr import Expr
from tilecheck.ir.host_program import Place, Region


def compute(
    m: Machine,
    node: cst.CSTNode,
    name: str,
    reads: Iterable[V.Tensor],
    writes: Iterable[V.Tensor] = (),
    *,
    exact: bool = True,
) -> None:
    """An operation: by the host if all its tensors lie there, else work on the current stream.

    Host tensors beside those of the device are numbers of no axis, which the host reads when it enqueues.
    """
    read, written = list(reads), list(writes)
    on_device = any(map(m.is_device, (*read, *written)))
    groups: dict[bool, tuple[list[Region], list[Region]]] = {True: ([], []), False: ([], [])}
    for tensors, at in ((read, 0), (written, 1)):
        for tensor in tensors:
            m.note_use(node, tensor)
            groups[on_device and m.is_device(tensor)][at].extend(m.regions(tensor, exact=exact))
    m.touch(node, name, *groups[False])
    if on_device:
        m.enqueue(node, name, *groups[True])


def result(
    m: Machine,
    node: cst.CSTNode,
    name: str,
    sources: Iterable[V.Tensor],
    *,
    extents: tuple[Expr, ...] | None = None,
    exact: bool = True,
) -> V.Tensor:
    """The new tensor that an operation gives: memory of the current stream that its work writes."""
    read = list(sources)
    guessed = all(tensor.perhaps for tensor in read) and bool(read)
    exact = exact and not any(tensor.perhaps for tensor in read)
    place = Place.DEVICE if any(map(m.is_device, read)) else Place.PAGEABLE
    found = m.allocate(node, name, place, extents)
    compute(m, node, name, read, [found], exact=exact)
    return replace(found, perhaps=guessed)


def perhaps_copied(m: Machine, node: cst.CSTNode, name: str, source: V.Tensor) -> V.Tensor:
    """The result of an operation that copies only where it must: the same memory or new memory."""
    return perhaps_view(m, node, name, [source])


def perhaps_view(m: Machine, node: cst.CSTNode, name: str, sources: list[V.Tensor]) -> V.Tensor:
    """The result of an operation that may give one of its tensors back, or a view of it."""
    found = result(m, node, name, sources, exact=False)
    aliases = tuple(replace(region, exact=False) for source in sources for region in m.regions(source))
    return replace(found, rest=None, aliases=tuple(dict.fromkeys(aliases)))


def read_on_host(m: Machine, node: cst.CSTNode, name: str, tensor: V.Tensor) -> None:
    """The host takes the elements of a tensor, and waits for those of the device to arrive."""
    m.note_use(node, tensor)
    if not m.is_device(tensor):
        m.touch(node, name, m.regions(tensor))
        return
    if m.captures:
        m.forbid(node, name, "the host reads memory of the device")
        return
    m.enqueue(node, name, m.regions(tensor), is_launch=False)
    m.join(node, name, stream=m.stream)


def copy(m: Machine, node: cst.CSTNode, name: str, to: V.Tensor, of: V.Tensor, *, asynchronous: bool) -> None:
    """A copy between any two places.

    Between the device and host memory, the host goes on at once only if the copy is asynchronous and the host
    memory is pinned. A pageable source is read before the call returns, a pageable target written.
    """
    places = m.place(to.memory), m.place(of.memory)
    if not asynchronous and places[0] is not Place.DEVICE and _lies_on_host(m, of):
        for tensor in (to, of):
            m.note_use(node, tensor)
        m.touch(node, name, (), m.regions(to))
        return
    if places == (Place.DEVICE, Place.DEVICE) or Place.DEVICE not in places:
        if Place.DEVICE in places and not (to.host_view or of.host_view):
            for tensor in (to, of):
                m.note_use(node, tensor)
            m.enqueue(node, name, m.regions(of), m.regions(to), is_launch=False)
        else:
            compute(m, node, name, [of], [to])
        return
    for tensor in (to, of):
        m.note_use(node, tensor)
    if Place.PAGEABLE in places and m.captures:
        m.forbid(node, name, "it copies between pageable memory and the device")
        return
    if of.memory in m.memories and places[1] is Place.PAGEABLE:
        m.touch(node, name, m.regions(of))
        m.enqueue(node, name, (), m.regions(to), is_launch=False)
    else:
        m.enqueue(node, name, m.regions(of), m.regions(to), is_launch=False)
    if not asynchronous or places[0] is Place.PAGEABLE:
        m.join(node, name, stream=m.stream)


def _lies_on_host(m: Machine, source: V.Tensor) -> bool:
    """Whether the source of a copy to the host is taken to lie there too: then nothing waits for the device.

    Where nothing but a guess says that it lies on the device, both are paths. What work on the device uses
    lies there.
    """
    name = family(source.memory)
    guessed = source.perhaps or m.memories[source.memory].handed_in
    if not guessed or not m.is_device(source) or name in m.knowledge.on_device or _is_used(m, source.memory):
        return False
    return m.choose((ON_HOST, name), 2) == 1


def _is_used(m: Machine, memory: str) -> bool:
    """Whether work on the device has used memory of this variable."""
    work = (action for action in m.actions if isinstance(action, H.Work))
    regions = (r for w in work for part in (w.before, w.after) for r, _ in part.regions())
    return any(family(region.memory) == family(memory) for region in regions)


def moved(
    m: Machine, node: cst.CSTNode, name: str, tensor: V.Tensor, place: Place, *, asynchronous: bool
) -> V.Tensor:
    """`t.to(device)`, `t.cuda()`, `t.cpu()`: the tensor at another place, if it is not there yet.

    A tensor of the caller that is copied to the device asynchronously is taken for pinned host memory, the only
    kind for which that matters.
    """
    memory = m.memories[tensor.memory]
    if memory.place is Place.DEVICE and place is Place.DEVICE:
        if memory.handed_in and asynchronous:
            m.knowledge.learn_place(tensor.memory, Place.PINNED)
        return perhaps_copied(m, node, name, tensor) if memory.handed_in else tensor
    if memory.place is not Place.DEVICE and place is not Place.DEVICE:
        return tensor
    if place is Place.DEVICE:
        found = m.allocate(node, name, Place.DEVICE, memory.extents if not tensor.box else None)
    else:
        # Without waiting, torch copies into pinned memory that it allocates for the result.
        pinned = Place.PINNED if asynchronous else Place.PAGEABLE
        found = m.allocate(node, name, pinned, memory.extents if not tensor.box else None)
    copy(m, node, name, found, tensor, asynchronous=asynchronous)
    return found


def unknown_work(
    m: Machine,
    node: cst.CSTNode,
    name: str,
    tensors: list[V.Tensor],
    *,
    gives: bool,
    held: tuple[list[V.Tensor], list[V.Tensor]] = ([], []),
    only_reads: bool = False,
) -> V.Tensor | None:
    """A call of unread code with tensors: it may read and write all of them on the current stream, and what it
    gives, if it gives a tensor, may be new or one of them.

    Unread code is taken to keep the rule of every function here: work on other streams that it starts is
    ordered before the current stream when it returns. It may also read and write what is `held`.
    """
    found = m.allocate(node, name, Place.DEVICE) if gives else None
    written = [*([] if only_reads else tensors), *held[1], *([] if found is None else [found])]
    if written or held[0]:
        compute(m, node, name, [*tensors, *held[0]], written, exact=False)
    if found is None:
        return None
    aliases = [] if only_reads else [replace(r, exact=False) for t in tensors for r in m.regions(t)]
    return replace(found, rest=None, holes=True, aliases=tuple(dict.fromkeys(aliases)), perhaps=True)
