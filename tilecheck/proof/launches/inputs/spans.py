"""What a launch of a Triton kernel gives: a pointer's only extent is the span of the tensor behind it.

The span is the number of elements from the first that a tensor holds to the last that its shape and strides
reach: its number of elements where these lie side by side, none where it is empty. Where the host's text gives
neither strides nor density it is a value of its own, of which only what is certain is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tilecheck.ir.expr import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    any_of,
    bool_sym,
    eq,
    ite,
    le,
    mul,
    ne,
    negate,
    sub,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.host import (
    COUNTS,
    EXTENT,
    STRIDE,
    TEST,
    axis_of,
    host_extent,
    host_numel,
    host_span,
    host_stride,
    is_contiguous,
    owner,
    owners,
    ranks_in,
    row_major,
)
from tilecheck.ir.kernel import Kernel, extent_symbol
from tilecheck.ir.launch import HostTensor, HostValue, Launch
from tilecheck.ir.launch_ranks import launch_expressions


def flat_values(kernel: Kernel, launch: Launch) -> dict[Expr, Expr]:
    """Every value of the kernel's parameters that the launch's text gives, the grid apart."""
    pointers = pointers_of(kernel)
    arrays = {p.name for p in kernel.params if p.is_array}
    asked = {s.name for s in symbols(*_guards(kernel)) if s.name.endswith(" is None")}
    known: dict[Expr, Expr] = {}
    for name, value in launch.arguments:
        if name in pointers or name not in arrays:
            known |= dict(_values(name, value, is_pointer=name in pointers))
        elif isinstance(value, HostTensor) and value.described:
            known |= dict(_described(name, value))
        if f"{name} is None" in asked:
            known[bool_sym(Symbol(f"{name} is None", Kind.CONSTANT))] = _is_none(value)
    return known


def pointers_of(kernel: Kernel) -> frozenset[str]:
    """The parameters whose only extent is a span: not the descriptors, whose accesses are checked by axes."""
    descriptors = {a.array for a in kernel.accesses if a.checked}
    return frozenset(p.name for p in kernel.params if p.is_array and p.name not in descriptors)


def _described(name: str, value: HostTensor) -> Iterator[tuple[Expr, Expr]]:
    """The extents of a descriptor and of its blocks."""
    for k, size in enumerate(value.shape or ()):
        yield sym(extent_symbol(name, k)), size
    for k, size in enumerate(value.block or ()):
        yield sym(Symbol(f"{name}.block_shape[{k}]", Kind.CONSTANT)), size


def _guards(kernel: Kernel) -> Iterator[Expr]:
    """Where a kernel asks whether an argument is there."""
    for access in kernel.accesses:
        yield from (access.guard, access.mask, access.unchecked)
    yield from (check.guard for check in kernel.checks)
    yield from (sum_.guard for sum_ in kernel.arithmetic)


def _is_none(value: HostValue) -> Expr:
    match value:
        case HostTensor(absent=Expr() as absent):
            return absent
        case HostTensor(number=Expr(), shape=None):  # the caller may pass None
            return bool_sym(Symbol(f"{value.name} is None", Kind.HOST, origin=TEST))
        case "None":
            return TRUE
        case _:
            return FALSE


def _values(name: str, value: HostValue, *, is_pointer: bool) -> Iterator[tuple[Expr, Expr]]:
    match value:
        case HostTensor():
            if is_pointer:
                yield sym(extent_symbol(name, 0)), span(value, name)
            elif value.number is not None and value.absent is None:
                yield from scalar(name, value.number)
        case Expr():
            yield from scalar(name, value)


def scalar(name: str, value: Expr) -> Iterator[tuple[Expr, Expr]]:
    """A number or truth that is passed, under every name that a kernel has for it."""
    for kind in (Kind.SCALAR, Kind.CONSTANT):
        for origin in ("", "untyped", "converted"):
            symbol = Symbol(name, kind, origin=origin)
            if value.is_bool:
                yield bool_sym(symbol), value
                yield sym(symbol), ite(value, ONE, ZERO)
            else:
                yield sym(symbol), value
                yield bool_sym(symbol), ne(value, 0)


def span(tensor: HostTensor, param: str) -> Expr:
    """The span of the tensor that is passed for `param`: to the end of the buffer that it is a part of, where
    the host allocates that. What may be a copy may end where it does itself."""
    is_part = tensor.allocated and tensor.part != () and not tensor.copied
    if is_part and tensor.offset is not None and tensor.room is not None:
        return sub(tensor.room, tensor.offset)
    if tensor.shape is not None and (tensor.dense or tensor.contiguous):
        return mul(ONE, *tensor.shape)
    if tensor.shape is not None and tensor.strides is not None:
        return _reached(tensor.shape, tensor.strides)
    if tensor.count is not None and (tensor.dense or tensor.contiguous):
        return tensor.count
    return sym(host_span(tensor.span_of or f"`{param}`"))


def made_of_unread_size(launch: Launch) -> frozenset[Symbol]:
    """The spans of new tensors of which the text does not give the sizes, and of those that it repeats or makes
    of what is not read."""
    tensors = [(name, t) for name, t in launch.arguments if isinstance(t, HostTensor)]
    unread = {*launch.unread, *launch.doubted}
    made = ((name, t) for name, t in tensors if t.fresh or t.expanded or not unread.isdisjoint(_sized_by(t)))
    return frozenset(s for name, t in made for s in symbols(span(t, name)) if s == host_span(f"`{name}`"))


def _sized_by(t: HostTensor) -> Iterator[str]:
    yield from (t.name, t.shape_of)
    yield from owners(*(t.shape or ()), *([] if t.count is None else [t.count]))


def _reached(shape: tuple[Expr, ...], strides: tuple[Expr, ...]) -> Expr:
    last = add(ONE, *(mul(sub(n, 1), s) for n, s in zip(shape, strides, strict=True)))
    return ite(all_of(*(le(1, n) for n in shape)), last, ZERO)


def span_facts(launch: Launch, pointers: Collection[str]) -> tuple[Expr, ...]:
    """What is certain of the spans and strides of the tensors that are passed for `pointers`, and of tensors'
    strides that descriptors have: torch has none below 0."""
    found: dict[Expr, None] = {}
    for name, value in launch.arguments:
        if not isinstance(value, HostTensor) or not (name in pointers or value.described):
            continue
        if value.described:
            own = (sym(s) for s in symbols(*(value.strides or ())) if s.origin == STRIDE)
            found.update(dict.fromkeys(le(0, s) for s in own))
            continue
        found.update(dict.fromkeys(le(0, s) for s in value.strides or () if s.op == "sym"))
        if value.dense and value.shape is not None and value.strides is not None:
            found.update(dict.fromkeys(_density(value.shape, value.strides)))
        if value.span_of and value.span_of == value.shape_of:
            count, reach = _count(value), sym(host_span(value.span_of))
            found[le(0, count)] = found[le(0, reach)] = None
            found[any_of(negate(is_contiguous(value.span_of)), eq(reach, count))] = None
    return tuple(fact for fact in found if fact is not TRUE)


def _density(shape: tuple[Expr, ...], strides: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """That a tensor spans as many elements as it has. Strides in row-major order say so by themselves where no
    size is negative; where one is, nothing is reached, and the product of sizes of which none is 0 is not 0."""
    empty = any_of(*(eq(n, 0) for n in shape))
    if strides != row_major(shape):
        return (any_of(empty, eq(_reached(shape, strides), mul(ONE, *shape))),)
    unsure = [n for n in shape if not _is_count(n)]
    return (any_of(empty, all_of(*(le(1, n) for n in unsure))),) if unsure else ()


def _is_count(size: Expr) -> bool:
    """Whether it is never negative, by what it is."""
    return size.op == "sym" and size.args[0].origin in COUNTS


def usual_layout(launch: Launch, pointers: Collection[str]) -> dict[Expr, Expr]:
    """The strides and spans of the caller's tensors, and of what is laid out like them, if all are contiguous.

    A host function is to blame for what it does with contiguous tensors; what other layouts need is the
    caller's to know.
    """
    passed = [v for name, v in launch.arguments if isinstance(v, HostTensor) and name in pointers]
    tensors = [t for t in passed if t.dense or not t.fresh or _is_laid_out_like_another(t, launch)]
    found = {sym(host_span(t.span_of)): _count(t) for t in tensors if t.span_of and t.span_of == t.shape_of}
    shapes = _shapes(launch, tensors)
    turned = _turned_round(launch)
    for symbol in symbols(*launch_expressions(launch), *launch.facts):
        name = owner(symbol) or ""
        shape = shapes.get(name) if symbol.origin == STRIDE else None
        if shape is not None and 0 <= axis_of(symbol) < len(shape):
            strides = row_major(shape[::-1])[::-1] if name in turned else row_major(shape)
            found[sym(symbol)] = strides[axis_of(symbol)]
    for name in dict.fromkeys(t.span_of for t in tensors if t.span_of and t.span_of == t.shape_of):
        if name not in shapes:
            found |= _of_unknown_rank(name, launch)
    return found


def _is_laid_out_like_another(t: HostTensor, launch: Launch) -> bool:
    """Whether a new tensor has the strides of one that is handed in."""
    names = {t.span_of, *owners(*(t.strides or ()))} - {""}
    return bool(names) and names.isdisjoint(launch.unread)


def _turned_round(launch: Launch) -> frozenset[str]:
    """The views of which the text says that their axes are those of another tensor in reverse: `x.t()`, where
    the rank of `x` is not known before."""
    ties = (n.args for fact in launch.facts for n in walk(fact) if n.op == "eq")
    pairs = ([s.args[0] for s in tie] for tie in ties if all(s.op == "sym" for s in tie))
    tied = ({owner(a) or "", owner(b) or ""} for a, b in pairs if a.origin == b.origin == STRIDE)
    return frozenset(name for names in tied if len(names) > 1 for name in names & set(launch.unread))


def _of_unknown_rank(name: str, launch: Launch) -> dict[Expr, Expr]:
    """The strides of a contiguous tensor of unknown rank: each by the one of the last axis that is asked for,
    which is as large as the axes after it, or from the end."""
    spoken = symbols(*launch_expressions(launch), *launch.facts)
    own = [s for s in spoken if s.origin in (STRIDE, EXTENT) and owner(s) == name]
    strides = [s for s in own if s.origin == STRIDE]
    last = max(map(axis_of, own), default=-1)

    def extents(first: int, end: int) -> Iterator[Expr]:
        return (sym(host_extent(name, k)) for k in range(first, end))

    found = {sym(s): mul(ONE, *extents(axis_of(s) + 1, 0)) for s in strides if axis_of(s) < 0}
    if any(axis_of(s) >= 0 for s in strides):
        inner = sym(host_stride(name, last))
        for s in strides:
            if 0 <= axis_of(s) < last:
                found[sym(s)] = mul(inner, *extents(axis_of(s) + 1, last + 1))
        found[sym(host_numel(name))] = mul(inner, *extents(0, last + 1))
    return found


def _shapes(launch: Launch, tensors: Sequence[HostTensor]) -> dict[str, tuple[Expr, ...]]:
    """The shapes of the tensors whose strides are free. A view has a shape of its own, and strides of another
    tensor: that one's shape counts."""
    found: dict[str, tuple[Expr, ...]] = {}
    for name, rank in ranks_in(launch.facts).items():
        found[name] = tuple(sym(host_extent(name, k)) for k in range(rank))
    for t in tensors:
        if t.shape is None or t.strides is None or not all(map(_is_free_stride, t.strides)):
            continue
        own = tuple(sym(host_stride(t.strides_of or t.name, k)) for k in range(len(t.shape)))
        if t.strides == own:
            found.setdefault(t.strides_of or t.name, t.shape)
    return found


def _count(t: HostTensor) -> Expr:
    """The number of elements of a free tensor."""
    return sym(host_numel(t.span_of)) if t.count is None else t.count


def _is_free_stride(stride: Expr) -> bool:
    return stride.op == "sym" and stride.args[0].origin == STRIDE
