"""Calls of PyTorch on tensors: functions, methods and operators."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from tilecheck.frontend.host_programs.calls import torch_names as names
from tilecheck.frontend.host_programs.calls.launches import tensors_in
from tilecheck.frontend.host_programs.calls.tensors import (
    compute,
    copy,
    moved,
    perhaps_copied,
    perhaps_view,
    read_on_host,
    result,
    unknown_work,
)
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values import views
from tilecheck.frontend.host_programs.values.kinds import (
    as_number,
    as_stream,
    as_tensor,
    place_of,
    resolved,
    truth,
)
from tilecheck.frontend.host_programs.values.objects import SHARED
from tilecheck.frontend.host_programs.values.undetermined import note_result
from tilecheck.ir.expr import Expr
from tilecheck.ir.host_program import Place

# ---- functions ---------------------------------------------------------------------------------------------


def function(m: Machine, name: str, a: Arguments) -> V.Value | None:
    """A call of a function of torch that works on tensors; None if it is none that is known."""
    prefix = next((p for p in names.FUNCTION_PREFIXES if name.startswith(p)), None)
    if prefix is None or name.startswith(names.PLAIN_PREFIXES):
        return None
    short = name.removeprefix(prefix)
    if short in names.ALLOCATORS:
        return _allocated(m, short, a, _given_tensor(m, a))
    if short == "device":
        device = resolved(m, a.get(0))
        return device if isinstance(device, V.Const) else V.Const("cuda")
    if short in (
        "chunk",
        "split",
        "unbind",
        "narrow",
        "reshape",
        "transpose",
        "permute",
        "squeeze",
        "unsqueeze",
    ):
        tensor = as_tensor(m, a.get(0, "input"), a.node)
        return None if tensor is None else method(m, tensor, short, replace(a, positional=a.positional[1:]))
    if short not in names.OPERATIONS and (prefix == "torch." or "." in short):
        return None
    found = [t for value in a.every() for t in tensors_in(m, value, a.node)]
    if not found:
        return V.Unknown(m.unique(short), given=False, plain=True)
    return _operation(m, short, found, a)


def _result(m: Machine, node: cst.CSTNode, name: str, sources: list[V.Tensor]) -> V.Tensor:
    """The result of an operation: new memory, but where it may give its input back."""
    found = perhaps_view(m, node, name, sources) if name in names.MAY_ALIAS else result(m, node, name, sources)
    if name in names.COMPARING or (name in names.LOGICAL and all(s.memory in m.masks for s in sources)):
        m.masks[found.memory] = None
    elif name in names.INDEXING:
        m.numbered[found.memory] = None
    return found


def gather(m: Machine, node: cst.CSTNode, tensor: V.Tensor, indices: list[V.Tensor]) -> V.Tensor:
    """`t[indices]`: a copy on the current stream. Where an index holds truths, the host waits to count them.

    Raises:
        Unread: it is captured, and not known to hold numbers.
    """
    found = result(m, node, "gather", [tensor.mixed(holes=True), *indices])
    check_indices(m, node, indices)
    return found


def check_indices(m: Machine, node: cst.CSTNode, indices: list[V.Tensor]) -> None:
    """The host waits for an index that holds truths.

    Raises:
        Unread: it is not known what it holds, and a capture does not allow the host to wait.
    """
    for index in filter(m.is_device, indices):
        if index.memory in m.masks:
            m.join(node, "mask", stream=m.stream)
        elif m.captures and index.memory not in m.numbered:
            raise m.unread(node, "whether this index is a mask, for which the host waits, is not known")


def _operation(m: Machine, name: str, found: list[V.Tensor], a: Arguments) -> V.Value:
    if name.endswith("_") and not name.endswith("__"):
        compute(m, a.node, name, found[1:] if name in names.OVERWRITING else found, found[:1])
        return found[0]
    out = a.keywords.get("out")
    if out is not None and out != V.NONE:
        written = tensors_in(m, out, a.node)
        compute(m, a.node, name, [t for t in found if t not in written], written)
        return out
    given = _result(m, a.node, name, found)
    selects = name == "where" and len(a.positional) + len(a.keywords) == 1  # `nonzero` by another name
    if (selects or name in names.WAITING) and any(map(m.is_device, found)):
        m.join(a.node, name, stream=m.stream)
    return given


def _given_tensor(m: Machine, a: Arguments) -> V.Tensor | None:
    first = resolved(m, a.get(0, "input"))
    return first if isinstance(first, V.Tensor) else None


def _allocated(m: Machine, name: str, a: Arguments, like: V.Tensor | None) -> V.Value:
    """A new tensor. What is made of host values is written as it is copied, and the host waits for that."""
    out = a.keywords.get("out")
    if out is not None and out != V.NONE:
        compute(m, a.node, name, [], tensors_in(m, out, a.node))
        return out
    if name.endswith("_like") and like is None:
        like = as_tensor(m, a.get(0, "input"), a.node)
    place = place_of(m, a.keywords.get("device"))
    pinned = a.keywords.get("pin_memory")
    if pinned is not None and truth(m, pinned, a.node):
        place = Place.PINNED
    if place is None and like is not None:
        place = Place.DEVICE if m.is_device(like) else Place.PAGEABLE
    place = place or m.default_place
    if name in names.FROM_HOST and like is not None and name in ("as_tensor", "asarray", "from_numpy"):
        return moved(m, a.node, name, like, place, asynchronous=False)
    found = m.allocate(a.node, name, place, _extents(m, name, a, like))
    if name in ("arange", "randperm", "randint"):
        m.numbered[found.memory] = None
    if name in names.UNWRITTEN:
        return found
    if name in names.FROM_HOST and place is Place.DEVICE:
        if m.captures:
            m.forbid(a.node, name, "it copies between pageable memory and the device")
            return found
        m.enqueue(a.node, name, (), m.regions(found), is_launch=False)
        m.join(a.node, name, stream=m.stream)
        return found
    if place is Place.DEVICE:
        compute(m, a.node, name, [], [found])
    return found  # the host fills its memory before anything else can see it


def _extents(m: Machine, name: str, a: Arguments, like: V.Tensor | None) -> tuple[Expr, ...] | None:
    if name.endswith("_like"):
        whole = like is not None and not like.box and like.rest == 0
        return m.memories[like.memory].extents if like is not None and whole else None
    sizes = a.positional
    if name in names.SIZED or name in names.SIZED_FIRST:
        named = resolved(m, a.keywords.get("size"))
        first = named if named is not None else resolved(m, sizes[0]) if sizes else None
        if isinstance(first, V.Sequence):
            return views.extents(m, first.items)
        return views.extents(m, sizes) if name in names.SIZED else None
    if name == "arange" and len(sizes) == 1:
        return views.extents(m, sizes)
    return None


# ---- methods -----------------------------------------------------------------------------------------------


def method(m: Machine, tensor: V.Tensor, name: str, a: Arguments) -> V.Value:
    """A call of a method of a tensor."""
    if name == "record_stream":
        stream = as_stream(m, a.get(0, "stream"), a.node)
        if stream is not None:
            kept = m.recorded.setdefault(tensor.memory, [])
            kept += [] if stream.name in kept else [stream.name]
        return V.NONE
    if name in names.TAKING:
        read_on_host(m, a.node, name, tensor)
        return V.Unknown(m.unique(f"{tensor.memory}.{name}()"), given=False, plain=True)
    if name in names.ASKING:
        return _asked(m, tensor, name, a)
    if name in names.BOOKKEEPING or name == "data_ptr":
        return tensor
    if name in views.SAME_ELEMENTS:
        return tensor.mixed()
    if name in ("to", "cuda", "cpu", "pin_memory", "numpy"):
        return _moved(m, tensor, name, a)
    if name in views.MAY_COPY:
        return perhaps_copied(m, a.node, name, tensor)
    if name in ("narrow", "select", "chunk", "unbind", "split", *views.SOME_ELEMENTS):
        return _part(m, tensor, name, a)
    if name.startswith("new_"):
        return _allocated(m, name, a, tensor)
    if name in ("set_", "resize_", "resize_as_"):
        raise m.unread(a.node, "the tensor gets other memory")
    if name in ("backward", "register_hook", "share_memory_"):
        return _backward(m, tensor, name, a)
    return _method_operation(m, tensor, name, a)


def _method_operation(m: Machine, tensor: V.Tensor, name: str, a: Arguments) -> V.Value:
    others = [t for value in a.every() for t in tensors_in(m, value, a.node)]
    if name == "copy_" and others:
        given = a.get(1, "non_blocking")
        asynchronous = given is not None and truth(m, given, a.node)
        copy(m, a.node, name, tensor, others[0], asynchronous=asynchronous)
        return tensor
    if name.endswith("_") and not name.endswith("__"):
        compute(m, a.node, name, others if name in names.OVERWRITING else [tensor, *others], [tensor])
        return tensor
    if name in names.OPERATIONS or name in names.WAITING:
        return _operation(m, name, [tensor, *others], a)
    return unknown_work(m, a.node, name, [tensor, *others], gives=True)


def _asked(m: Machine, tensor: V.Tensor, name: str, a: Arguments) -> V.Value:
    if name in ("untyped_storage", "storage"):
        return tensor.mixed()
    axis = as_number(m, a.get(0, "dim")) if a.get(0, "dim") is not None else None
    if name == "size" and axis is not None and axis.value is not None:
        found = views.shape(m, tensor, axis.value)
        if found is not None:
            return found
    if name == "__len__":
        found = views.shape(m, tensor, 0)
        if found is not None:
            return found
    if name == "size" and axis is None:
        return V.Method(tensor, "shape")
    text = "" if axis is None else str(axis.value)
    return V.Unknown(f"{tensor.memory}.{name}({text})", given=False, plain=True)


def _moved(m: Machine, tensor: V.Tensor, name: str, a: Arguments) -> V.Value:
    flag = a.keywords.get("non_blocking")
    if flag is None and name in ("cuda", "to"):
        second = resolved(m, a.get(1))
        is_flag = name == "cuda" or (isinstance(second, V.Const) and isinstance(second.value, bool))
        flag = second if is_flag else a.get(2)
    asynchronous = flag is not None and truth(m, flag, a.node)
    if name == "numpy":
        if m.is_device(tensor):
            if m.memories[tensor.memory].handed_in:
                m.knowledge.learn_place(tensor.memory, Place.PINNED)
            read_on_host(m, a.node, name, tensor)
        return replace(tensor, host_view=True)
    if name == "pin_memory":
        if m.place(tensor.memory) is Place.PINNED:
            return tensor
        if m.is_device(tensor):  # only what lies on the host can be pinned
            m.knowledge.learn_place(tensor.memory, Place.PAGEABLE)
        found = m.allocate(a.node, name, Place.PINNED, m.memories[tensor.memory].extents)
        m.touch(a.node, name, m.regions(tensor), m.regions(found))
        return found
    if name == "cpu":
        return moved(m, a.node, name, tensor, Place.PAGEABLE, asynchronous=asynchronous)
    if name == "cuda":
        return moved(m, a.node, name, tensor, Place.DEVICE, asynchronous=asynchronous)
    place = _target(m, a)
    if place is None:
        return perhaps_copied(m, a.node, name, tensor)
    return moved(m, a.node, name, tensor, place, asynchronous=asynchronous)


def _target(m: Machine, a: Arguments) -> Place | None:
    """Where `.to(...)` moves a tensor; None where it only changes its type."""
    if "device" in a.keywords:
        return place_of(m, a.keywords["device"])
    first = resolved(m, a.get(0))
    match first:
        case V.Tensor():
            return Place.DEVICE if m.is_device(first) else Place.PAGEABLE
        case V.Library(name=name):
            return None if not name.startswith("device:") else place_of(m, first)
        case V.Unknown(name=name):
            return None if "dtype" in name.lower() or "type" in name.lower() else Place.DEVICE
        case V.Method(name="dtype") | None:
            return None
        case _:
            return place_of(m, first)


def _part(m: Machine, tensor: V.Tensor, name: str, a: Arguments) -> V.Value:
    """A view of some of the elements."""
    given = a.get(0, "split_size" if name == "split" else "chunks")
    first = as_number(m, given) if given is not None else None
    if name == "narrow":
        parts = (a.get(0, "dim"), a.get(1, "start"), a.get(2, "length"))
        return tensor.mixed(holes=True) if None in parts else views.narrow(m, tensor, *parts) or tensor.mixed()
    if name == "select" and first is not None and first.value == 0 and a.get(1, "index") is not None:
        found = views.subscript(m, tensor, [a.get(1, "index")])
        return found or tensor.mixed(holes=True)
    along_first = a.get(1, "dim") is None or as_number(m, a.get(1, "dim")) == V.number(0)
    if name == "chunk" and first is not None and first.value is not None and 0 < first.value <= _MOST_CHUNKS:
        pieces = views.chunks(m, tensor, first.value) if along_first else None
        if pieces is None:
            pieces = [tensor.mixed(holes=True)] * first.value
        return V.Sequence(list(pieces), is_tuple=True)
    if name == "split" and along_first and first is not None and first.value is not None and first.value > 0:
        split = views.pieces(m, tensor, first.value)
        return tensor.mixed(holes=True) if split is None else V.Sequence([*split], is_tuple=True)
    return tensor.mixed(holes=True)


_MOST_CHUNKS = 8


def _backward(m: Machine, tensor: V.Tensor, name: str, a: Arguments) -> V.Value:
    """Gradients go to what objects hold. Torch runs them on the streams of their forward operations, but orders
    that before and after the current stream as any other call."""
    shared = [m.handed_in(SHARED, a.node)] if name == "backward" else []
    unknown_work(m, a.node, name, [tensor], gives=False, held=(shared, shared))
    return V.NONE


def operator(m: Machine, node: cst.CSTNode, text: str, operands: list[V.Value]) -> V.Value:
    """An operator with a tensor among its operands."""
    found = _result(m, node, text, _operands(m, node, operands))
    note_result(m, found, operands)
    return found


def _operands(m: Machine, node: cst.CSTNode, values: list[V.Value]) -> list[V.Tensor]:
    known = [v for v in values if not (isinstance(v, V.Unknown) and v.name in m.knowledge.numbers)]
    return [t for value in known for t in tensors_in(m, value, node)]


def in_place(m: Machine, node: cst.CSTNode, text: str, target: V.Tensor, value: V.Value) -> None:
    """`x += y`, which torch does in place."""
    compute(m, node, text, [target, *_operands(m, node, [value])], [target])
